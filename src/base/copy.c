/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything up to the last aligned word goes by memcpy; that word's bytes follow as one store, or as
 * naturally aligned stores in ascending order, each with release. A store that does not cross a cache line
 * is seen whole, and a release store is seen after everything before it.
 */
#include "base/copy.h"

#include <stdatomic.h>
#include <string.h>

static void store_tail(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length == 8) {
		uint64_t v;

		memcpy(&v, from, 8);
		__atomic_store_n((uint64_t *)(void *)to, v, __ATOMIC_RELEASE);
		return;
	}
	if (length & 4) {
		uint32_t v;

		memcpy(&v, from, 4);
		__atomic_store_n((uint32_t *)(void *)to, v, __ATOMIC_RELEASE);
		to += 4;
		from += 4;
	}
	if (length & 2) {
		uint16_t v;

		memcpy(&v, from, 2);
		__atomic_store_n((uint16_t *)(void *)to, v, __ATOMIC_RELEASE);
		to += 2;
		from += 2;
	}
	if (length & 1)
		__atomic_store_n(to, *from, __ATOMIC_RELEASE);
}

void vb_copy_last_byte_last(void *to, const void *from, size_t length)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	size_t body;

	if (!length)
		return;
	/* The tail begins at the aligned word that holds the last byte, or at the start if that is later. */
	body = (size_t)((((uintptr_t)out + length - 1) & ~(uintptr_t)7) - (uintptr_t)out);
	if (body > length)
		body = 0;
	memcpy(out, in, body);
	if (body) {
		store_tail(out + body, in + body, length - body);
		return;
	}
	/* Short and within one aligned word, but perhaps not at its start: byte by byte until aligned. */
	while (length && ((uintptr_t)out & 7) && length < 8) {
		size_t step = 1;

		while (!((uintptr_t)out & step) && step * 2 <= length)
			step *= 2;
		store_tail(out, in, step);
		out += step;
		in += step;
		length -= step;
	}
	if (length)
		store_tail(out, in, length);
}
