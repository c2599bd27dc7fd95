/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pattern: each word mixes the key and the word's index; unaligned ends are handled byte by
 * byte.
 */
#include "sim/pattern.h"

#include <string.h>

static uint64_t word(uint64_t key, uint64_t index)
{
	uint64_t z = key * 0x9e3779b97f4a7c15u + index * 0xd1342543de82ef95u;

	z = (z ^ z >> 32) * 0xbf58476d1ce4e5b9u;
	return z ^ z >> 29;
}

static uint8_t byte(uint64_t key, uint64_t offset)
{
	return (uint8_t)(word(key, offset / 8) >> offset % 8 * 8);
}

void vb_pattern_fill(uint8_t *to, uint64_t key, uint64_t offset, uint64_t length)
{
	uint64_t i = 0;

	while (i < length) {
		if ((offset + i) % 8 == 0 && length - i >= 8) {
			uint64_t w = word(key, (offset + i) / 8);

			memcpy(to + i, &w, sizeof(w));
			i += 8;
		} else {
			to[i] = byte(key, offset + i);
			i++;
		}
	}
}

bool vb_pattern_equal(const uint8_t *at, uint64_t key, uint64_t offset, uint64_t length,
		      uint64_t *wrong)
{
	uint64_t i = 0;

	while (i < length) {
		if ((offset + i) % 8 == 0 && length - i >= 8) {
			uint64_t expected = word(key, (offset + i) / 8);

			if (memcmp(at + i, &expected, sizeof(expected)) == 0) {
				i += 8;
				continue;
			}
		}
		if (at[i] != byte(key, offset + i)) {
			*wrong = i;
			return false;
		}
		i++;
	}
	return true;
}
