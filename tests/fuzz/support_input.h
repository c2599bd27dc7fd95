/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzzer's input as a sequence of decisions. Anything read beyond the end is 0, so that every
 * input means something and a shorter one means nearly the same.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_INPUT_H
#define VB_TESTS_FUZZ_SUPPORT_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct input {
	const uint8_t *data;
	size_t size;
};

/* An invariant of the engine; prints the one that does not hold before it ends the run. */
#define REQUIRE(condition)                                                                        \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: violated: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                  \
		}                                                                                 \
	} while (0)

static inline bool input_has_more(const struct input *input)
{
	return input->size > 0;
}

static inline uint8_t input_8(struct input *input)
{
	if (!input->size)
		return 0;
	input->size--;
	return *input->data++;
}

static inline uint16_t input_16(struct input *input)
{
	uint16_t high = input_8(input);

	return (uint16_t)(high << 8 | input_8(input));
}

static inline uint32_t input_32(struct input *input)
{
	uint32_t high = input_16(input);

	return high << 16 | input_16(input);
}

static inline uint64_t input_64(struct input *input)
{
	uint64_t high = input_32(input);

	return high << 32 | input_32(input);
}

static inline uint32_t input_below(struct input *input, uint32_t bound)
{
	return input_8(input) % bound;
}

static inline bool input_bool(struct input *input)
{
	return input_8(input) & 1;
}

/* Up to `length` bytes of the input itself; *taken is their number. */
static inline const uint8_t *input_bytes(struct input *input, size_t length, size_t *taken)
{
	const uint8_t *bytes = input->data;

	*taken = length < input->size ? length : input->size;
	input->data += *taken;
	input->size -= *taken;
	return bytes;
}

#endif
