/* SPDX-License-Identifier: BSD-2-Clause */
/* Big-endian loads and stores (the wire's order) on bytes of any alignment. */
#ifndef VB_BASE_BYTES_H
#define VB_BASE_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint16_t load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap16(v);
}

static inline uint32_t load24(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap32(v);
}

static inline uint64_t load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

static inline void store16(uint8_t *p, uint16_t v)
{
	v = __builtin_bswap16(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store24(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	p[1] = (uint8_t)(v >> 8);
	p[2] = (uint8_t)v;
}

static inline void store32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, sizeof(v));
}

static inline void store64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, sizeof(v));
}

static inline uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint32_t max32(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Smallest power of two that is at least v (v from 1 to 2^31). */
static inline uint32_t power_of_two_above(uint32_t v)
{
	return v <= 1 ? 1 : 1u << (32 - __builtin_clz(v - 1));
}

/* For data that is mostly shorter than 64 bytes, where a call would cost more than the copy. */
static inline void copy_short(uint8_t *to, const uint8_t *from, uint32_t length)
{
	uint8_t first[16], second[16], last[32];

	if (length < 16 || length > 64) {
		memcpy(to, from, length);
		return;
	}
	memcpy(first, from, 16);
	if (length <= 32) {
		memcpy(second, from + length - 16, 16);
		memcpy(to + length - 16, second, 16);
	} else {
		memcpy(second, from + 16, 16);
		memcpy(last, from + length - 32, 32);
		memcpy(to + 16, second, 16);
		memcpy(to + length - 32, last, 32);
	}
	memcpy(to, first, 16);
}

#endif
