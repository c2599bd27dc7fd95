/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ordered copy. Everything before the cache line that holds the last byte is copied with memcpy, in
 * whole lines where possible. At least the last bytes of that line follow as naturally aligned
 * stores in ascending order. Such a store becomes visible as a whole. The last one, with release,
 * becomes visible after everything before it.
 */
#include "base/copy.h"

#include <string.h>

#define LINE 64u
#define WORD 8u

/* One naturally aligned store of 1, 2, 4 or 8 bytes. */
static void store_aligned(uint8_t *to, const uint8_t *from, size_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 8:
		memcpy(&v8, from, 8);
		__atomic_store_n((uint64_t *)(void *)to, v8, __ATOMIC_RELEASE);
		break;
	case 4:
		memcpy(&v4, from, 4);
		__atomic_store_n((uint32_t *)(void *)to, v4, __ATOMIC_RELEASE);
		break;
	case 2:
		memcpy(&v2, from, 2);
		__atomic_store_n((uint16_t *)(void *)to, v2, __ATOMIC_RELEASE);
		break;
	default:
		__atomic_store_n(to, *from, __ATOMIC_RELEASE);
		break;
	}
}

/*
 * The largest power of two, up to a word, that `to` is aligned to and that does not exceed `left`.
 */
static size_t step_at(const uint8_t *to, size_t left)
{
	size_t step = WORD;

	while ((uintptr_t)to & (step - 1) || step > left)
		step /= 2;
	return step;
}

void vb_copy_last_byte_last(void *to, const void *from, size_t length)
{
	uint8_t *out = to;
	const uint8_t *in = from;
	size_t last_line; /* bytes in the line of the last byte */

	if (!length)
		return;
	last_line = (((uintptr_t)out + length - 1) & (LINE - 1)) + 1;
	if (last_line < length) {
		memcpy(out, in, length - last_line);
		out += length - last_line;
		in += length - last_line;
		length = last_line;
	}
	if (length == LINE) { /* a whole line, the usual end of large copies */
		memcpy(out, in, LINE - WORD);
		store_aligned(out + LINE - WORD, in + LINE - WORD, WORD);
		return;
	}
	while (length) {
		size_t step = step_at(out, length);

		store_aligned(out, in, step);
		out += step;
		in += step;
		length -= step;
	}
}
