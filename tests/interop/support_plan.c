/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans and patterns are pure functions of the seed. */
#include "interop/support_plan.h"

#include <stddef.h>

static uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	x *= 0x9fb21c651e98df25;
	x ^= x >> 28;
	x *= 0x7fb5d329728ea185;
	return x ^ x >> 29;
}

static uint64_t draw(uint64_t *state)
{
	return mix(*state += 0x632be59bd9b4e019);
}

bool kind_has_receive(enum kind kind)
{
	return kind == KIND_SEND || kind == KIND_SEND_IMM || kind == KIND_WRITE_IMM;
}

bool kind_is_atomic(enum kind kind)
{
	return kind == KIND_FETCH_ADD || kind == KIND_COMPARE_SWAP;
}

static enum kind draw_kind(uint64_t *state, enum transport transport)
{
	static const uint32_t count[] = {
		[TRANSPORT_RC] = KIND_COUNT,
		[TRANSPORT_UC] = KIND_WRITE_IMM + 1,
		[TRANSPORT_UD] = KIND_SEND_IMM + 1,
	};

	return (enum kind)(draw(state) % count[transport]);
}

/* UC reports the arrival of a WRITE to neither end, only the arrival of something behind it. */
static enum kind choose_kind(uint64_t *state, enum transport transport, uint32_t index)
{
	enum kind kind = draw_kind(state, transport);
	bool is_told = transport != TRANSPORT_UC || index + 1 < OPERATIONS;

	return is_told ? kind : KIND_WRITE_IMM;
}

/* Lengths around the borders between packets, and any others. */
static uint32_t draw_length(uint64_t *state, const struct plan_limits *limits)
{
	const uint32_t mtu = limits->mtu;
	const uint32_t borders[] = { 0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2 * mtu, 3 * mtu + 5 };
	const uint32_t border_count = sizeof(borders) / sizeof(borders[0]);
	uint64_t choice = draw(state) % (2 * border_count);
	uint32_t length = choice < border_count
				  ? borders[choice]
				  : (uint32_t)(draw(state) % (limits->length_max + 1));

	return length < limits->length_max ? length : limits->length_max;
}

void plan_make(struct plan *plan, const struct plan_limits *limits, uint64_t seed, uint32_t round,
	       bool is_client)
{
	uint64_t state = mix(seed) ^ mix((uint64_t)round << 1 | is_client);
	uint64_t counter;

	plan->pattern = draw(&state);
	plan->counter = counter = draw(&state);
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		struct operation *operation = &plan->operations[i];

		operation->kind = choose_kind(&state, limits->transport, i);
		operation->length = kind_is_atomic(operation->kind) ? 8
								    : draw_length(&state, limits);
		operation->immediate = (uint32_t)draw(&state);
		operation->operand = draw(&state);
		/* Half of the comparisons succeed. */
		operation->compare = draw(&state) & 1 ? counter : ~counter;
		if (operation->kind == KIND_FETCH_ADD)
			counter += operation->operand;
		if (operation->kind == KIND_COMPARE_SWAP && operation->compare == counter)
			counter = operation->operand;
	}
}

static uint8_t pattern_byte(uint64_t pattern, uint64_t offset)
{
	return (uint8_t)(mix(pattern + offset / 8) >> offset % 8 * 8);
}

void pattern_fill(uint8_t *bytes, uint64_t length, uint64_t pattern, uint64_t offset)
{
	for (uint64_t i = 0; i < length; i++)
		bytes[i] = pattern_byte(pattern, offset + i);
}

uint64_t pattern_check(const uint8_t *bytes, uint64_t length, uint64_t pattern, uint64_t offset)
{
	uint64_t i = 0;

	while (i < length && bytes[i] == pattern_byte(pattern, offset + i))
		i++;
	return i;
}
