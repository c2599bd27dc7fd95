/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRCs by isa-l, which is called only here, and by tables. The tables take 16 bytes in each
 * step, with one table for each distance of a byte from the end of the step. They are computed when
 * they are first chosen.
 */
#include "base/crc.h"

#include "base/err.h"

#include <isa-l/crc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define STEP 16u
#define ISCSI_LENGTH_MAX (1u << 30) /* isa-l counts the bytes of CRC32c in an int */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest of a word");

typedef uint32_t step_tables[STEP][256];

static step_tables ethernet, castagnoli;
static _Atomic bool has_chosen_tables;

/* The polynomial is reflected. */
static void make_tables(step_tables tables, uint32_t polynomial)
{
	for (uint32_t value = 0; value < 256; value++) {
		uint32_t crc = value;

		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
		tables[0][value] = crc;
	}
	for (uint32_t distance = 1; distance < STEP; distance++)
		for (uint32_t value = 0; value < 256; value++) {
			uint32_t nearer = tables[distance - 1][value];

			tables[distance][value] = nearer >> 8 ^ tables[0][nearer & 255];
		}
}

/* The CRC of 8 bytes, the first of which has this distance. */
static inline uint32_t of_word(const step_tables tables, uint64_t word, uint32_t distance)
{
	uint32_t crc = 0;

	for (uint32_t i = 0; i < 8; i++)
		crc ^= tables[distance - i][word >> 8 * i & 255];
	return crc;
}

static inline uint32_t by_tables(const step_tables tables, uint32_t crc, const uint8_t *bytes,
				 size_t length)
{
	uint64_t word[2];

	crc = ~crc;
	for (; length >= STEP; bytes += STEP, length -= STEP) {
		memcpy(word, bytes, STEP);
		crc = of_word(tables, word[0] ^ crc, 15) ^ of_word(tables, word[1], 7);
	}
	for (; length; bytes++, length--)
		crc = crc >> 8 ^ tables[0][(crc ^ *bytes) & 255];
	return ~crc;
}

/*
 * isa-l leaves data in the upper halves of the vector registers. As long as data is there, many
 * CPUs wait some 70 cycles each time that AVX instructions follow those of SSE or the reverse, and
 * the compiler uses SSE everywhere.
 */
static inline void clear_upper_halves(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vzeroupper" : : : "memory");
#endif
}

static uint32_t by_instructions(uint32_t crc, const uint8_t *bytes, size_t length)
{
	crc = crc32_gzip_refl(crc, bytes, length);
	clear_upper_halves();
	return crc;
}

static uint32_t castagnoli_by_instructions(uint32_t crc, const uint8_t *bytes, size_t length)
{
	crc = ~crc; /* unlike the other function, this one does not invert */
	while (length) {
		size_t part = length < ISCSI_LENGTH_MAX ? length : ISCSI_LENGTH_MAX;

		/* It only reads the bytes, although its argument is not const. */
		crc = crc32_iscsi((uint8_t *)(uintptr_t)bytes, (int)part, crc);
		bytes += part;
		length -= part;
	}
	clear_upper_halves();
	return ~crc;
}

VB_NOINLINE uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	/* Pairs with the store in vb_crc_choose(): the tables are made. */
	if (atomic_load_explicit(&has_chosen_tables, memory_order_acquire))
		return by_tables(ethernet, crc, bytes, length);
	return by_instructions(crc, bytes, length);
}

VB_NOINLINE uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t length)
{
	/* Pairs with the store in vb_crc_choose(): the tables are made. */
	if (atomic_load_explicit(&has_chosen_tables, memory_order_acquire))
		return by_tables(castagnoli, crc, bytes, length);
	return castagnoli_by_instructions(crc, bytes, length);
}

void vb_crc_choose(enum vb_crc_method method)
{
	if (method == VB_CRC_TABLES && !castagnoli[0][1]) {
		make_tables(ethernet, 0xedb88320);
		make_tables(castagnoli, 0x82f63b78);
	}
	atomic_store_explicit(&has_chosen_tables, method == VB_CRC_TABLES, memory_order_release);
}
