/* SPDX-License-Identifier: BSD-2-Clause */
/* Parsing of orders. It is done here alone, so that each peer takes the same ones. */
#include "drill/support_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t pattern_byte(uint32_t offset)
{
	return (uint8_t)((offset + 1) * 0x9e3779b1u >> 24);
}

/* Finds the first word that starts like this. */
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
		.service = order_has(order, "UD")   ? IBV_QPT_UD
			   : order_has(order, "UC") ? IBV_QPT_UC
						    : IBV_QPT_RC,
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
		.qkey = (uint32_t)order_value(order, "qkey", USUAL_QKEY),
	};
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* Finds the operation to post, and the usual place of its buffer. */
static void find_operation(const char *order, struct order_post *post)
{
	static const struct {
		const char *words;
		enum ibv_wr_opcode opcode;
		uint32_t buffer;
	} operations[] = {
		{ "post send", IBV_WR_SEND, SOURCE },
		{ "post send_imm", IBV_WR_SEND_WITH_IMM, SOURCE },
		{ "post write", IBV_WR_RDMA_WRITE, SOURCE },
		{ "post write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, SOURCE },
		{ "post read", IBV_WR_RDMA_READ, SINK },
		{ "post fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, SINK },
		{ "post compare_swap", IBV_WR_ATOMIC_CMP_AND_SWP, SINK },
	};

	post->is_receive = order_begins(order, "post recv");
	post->is_known = post->is_receive;
	post->offset = RECV + (uint32_t)post->number * RECV_STEP;
	for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
		if (!order_begins(order, operations[i].words))
			continue;
		post->is_known = true;
		post->opcode = operations[i].opcode;
		post->offset = operations[i].buffer;
	}
}

struct order_post order_post(const char *order)
{
	const char *number = strchr(order, ' ');
	struct order_post post = { 0 };

	number = number ? strchr(number + 1, ' ') : NULL;
	post.number = number ? strtoull(number, NULL, 0) : 0;
	find_operation(order, &post);
	post.offset = (uint32_t)order_value(order, "offset", post.offset);
	post.length = (uint32_t)order_value(order, "len", is_atomic(post.opcode) ? 8 : 0);
	post.imm = (uint32_t)order_value(order, "imm", 0);
	post.compare_add = order_value(order, "add", order_value(order, "compare", 0));
	post.swap = order_value(order, "swap", 0);
	post.qkey = (uint32_t)order_value(order, "qkey", USUAL_QKEY);
	post.is_fenced = order_has(order, "fence");
	post.is_known &= post.offset <= REGION_LENGTH && post.length <= REGION_LENGTH - post.offset;
	return post;
}
