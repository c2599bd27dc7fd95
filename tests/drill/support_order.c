/* SPDX-License-Identifier: BSD-2-Clause */
/* Orders are read here alone, so that each peer takes the same ones. */
#include "drill/support_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t pattern_byte(uint32_t offset)
{
	return (uint8_t)((offset + 1) * 0x9e3779b1u >> 24);
}

void pattern_fill(uint8_t *region)
{
	for (uint32_t i = 0; i < REGION_LENGTH; i++)
		region[i] = pattern_byte(i);
}

/* Where a word that begins like this begins. */
static const char *find_word(const char *order, const char *start)
{
	const char *at = order;

	while ((at = strstr(at, start))) {
		if (at == order || at[-1] == ' ')
			return at;
		at++;
	}
	return NULL;
}

uint64_t order_value(const char *order, const char *name, uint64_t usual)
{
	char start[32];
	const char *word;

	snprintf(start, sizeof(start), "%s=", name);
	word = find_word(order, start);
	return word ? strtoull(word + strlen(start), NULL, 0) : usual;
}

bool order_has(const char *order, const char *word)
{
	const char *at = find_word(order, word);

	return at && (at[strlen(word)] == ' ' || !at[strlen(word)]);
}

bool order_begins(const char *order, const char *words)
{
	size_t length = strlen(words);

	return !strncmp(order, words, length) && (order[length] == ' ' || !order[length]);
}

struct order_attr order_attr(const char *order)
{
	return (struct order_attr){
		.access = (uint32_t)order_value(order, "access", 2 | 4 | 8),
		.mtu = (uint32_t)order_value(order, "mtu", 1024),
		.timeout = (uint8_t)order_value(order, "timeout", 0),
		.retry = (uint8_t)order_value(order, "retry", 7),
		.rnr_retry = (uint8_t)order_value(order, "rnr_retry", 7),
		.min_rnr = (uint8_t)order_value(order, "min_rnr", 12),
		.reads_in = (uint32_t)order_value(order, "reads_in", 4),
		.reads_out = (uint32_t)order_value(order, "reads_out", 4),
		.rq_psn = (uint32_t)order_value(order, "rq_psn", 100),
		.sq_psn = (uint32_t)order_value(order, "sq_psn", 500),
	};
}

static enum order_operation operation_of(const char *order)
{
	static const char *const names[] = {
		[ORDER_RECV] = "post recv",	      [ORDER_SEND] = "post send",
		[ORDER_SEND_IMM] = "post send_imm",   [ORDER_WRITE] = "post write",
		[ORDER_WRITE_IMM] = "post write_imm", [ORDER_READ] = "post read",
		[ORDER_FETCH_ADD] = "post fetch_add", [ORDER_COMPARE_SWAP] = "post compare_swap",
	};
	enum order_operation operation = ORDER_RECV;

	while (operation < ORDER_UNKNOWN && !order_begins(order, names[operation]))
		operation++;
	return operation;
}

static bool is_fetching(enum order_operation operation)
{
	return operation == ORDER_READ || operation == ORDER_FETCH_ADD ||
	       operation == ORDER_COMPARE_SWAP;
}

struct order_post order_post(const char *order)
{
	enum order_operation operation = operation_of(order);
	const char *number = strchr(order, ' ');
	struct order_post post = { .operation = operation };
	uint32_t usual_length = is_fetching(operation) && operation != ORDER_READ ? 8 : 0;
	uint32_t usual_offset;

	number = number ? strchr(number + 1, ' ') : NULL;
	post.number = number ? strtoull(number, NULL, 0) : 0;
	usual_offset = operation == ORDER_RECV	? RECV + (uint32_t)post.number * RECV_STEP
		       : is_fetching(operation) ? SINK
						: SOURCE;
	post.offset = (uint32_t)order_value(order, "offset", usual_offset);
	post.length = (uint32_t)order_value(order, "len", usual_length);
	post.imm = (uint32_t)order_value(order, "imm", 0);
	post.compare_add = operation == ORDER_FETCH_ADD ? order_value(order, "add", 0)
							: order_value(order, "compare", 0);
	post.swap = order_value(order, "swap", 0);
	post.is_fenced = order_has(order, "fence");
	if (post.offset > REGION_LENGTH || post.length > REGION_LENGTH - post.offset)
		post.operation = ORDER_UNKNOWN;
	return post;
}

void order_answer_bytes(char *answer, const uint8_t *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		sprintf(answer + 2 * i, "%02x", bytes[i]);
	answer[2 * length] = '\0';
}
