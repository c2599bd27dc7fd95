/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the checker itself: each feeds the model a history without any engine behind it, with
 * one fault in it, and expects the rule that it breaks. The first tests show that correct histories
 * pass.
 */
#include "harness.h"

#include "sim/model.h"
#include "sim/pattern.h"

#include <string.h>

#define BASE ((uint64_t)1 << 40)
#define SIZE 65536
#define KEY 0x1234567

/* Two QPs, each with memory of its own. */
struct history {
	struct vb_model model;
	struct vb_arena *arenas[2];
	uint32_t qps[2];
	uint64_t next_address;
};

static struct history begin(enum vb_qp_type type)
{
	struct history h = { .next_address = 0x100 };

	vb_model_init(&h.model);
	for (uint32_t i = 0; i < 2; i++) {
		struct vb_model_qp qp = {
			.type = type,
			.number = 100 + i,
			.node = i,
			.peer = VB_MODEL_NONE,
			.srq = VB_MODEL_NONE,
			.send = { .depth = 4 },
			.recv = { .depth = 4 },
		};

		h.arenas[i] = vb_arena_create(BASE * (i + 1), SIZE, i);
		qp.arena = h.arenas[i];
		h.qps[i] = vb_model_add_qp(&h.model, &qp);
	}
	vb_model_connect(&h.model, h.qps[0], h.qps[1]);
	return h;
}

static void end(struct history *h)
{
	vb_arena_destroy(h->arenas[0]);
	vb_arena_destroy(h->arenas[1]);
	vb_model_fini(&h->model);
}

static uint64_t place(struct history *h, uint32_t side, uint32_t length)
{
	uint64_t address = h->arenas[side]->base + h->next_address;

	h->next_address += (length + 64) & ~7u;
	return address;
}

/* Posts a request of end 0; returns its wr_id. */
static uint64_t post(struct history *h, enum vb_wr_opcode opcode, uint32_t length, bool is_signaled)
{
	struct vb_model_request request = vb_model_request_of(h->qps[0], opcode);
	uint64_t id = vb_model_next_id(&h->model);

	request.length = length;
	request.key = KEY + id;
	request.is_signaled = is_signaled;
	request.is_message = opcode == VB_WR_SEND;
	request.arena = h->arenas[0];
	request.pieces[0] = (struct vb_model_piece){ place(h, 0, length), length, false };
	request.piece_count = 1;
	request.opens_local = opcode == VB_WR_READ;
	if (opcode == VB_WR_WRITE || opcode == VB_WR_READ) {
		request.remote = h->arenas[1];
		request.remote_address = place(h, 1, length);
		request.opens_remote = opcode == VB_WR_WRITE;
	}
	vb_model_on_post(&h->model, &request);
	return id;
}

static uint64_t post_receive(struct history *h, uint32_t capacity)
{
	struct vb_model_request request = vb_model_request_of(h->qps[1], VB_WR_SEND);
	uint64_t id = vb_model_next_id(&h->model);

	request.is_receive = true;
	request.length = capacity;
	request.arena = h->arenas[1];
	request.pieces[0] = (struct vb_model_piece){ place(h, 1, capacity), capacity, false };
	request.piece_count = 1;
	request.opens_local = true;
	vb_model_on_post(&h->model, &request);
	return id;
}

static void complete(struct history *h, uint64_t id, uint8_t status)
{
	struct vb_model_completion completion = {
		.wr_id = id, .qp = h->qps[0], .status = status, .source_qp = VB_MODEL_NONE
	};

	switch (h->model.requests[id - 1].opcode) {
	case VB_WR_WRITE:
		completion.opcode = VB_COMPLETION_WRITE;
		break;
	case VB_WR_READ:
		completion.opcode = VB_COMPLETION_READ;
		break;
	case VB_WR_FETCH_ADD:
		completion.opcode = VB_COMPLETION_FETCH_ADD;
		break;
	case VB_WR_COMPARE_SWAP:
		completion.opcode = VB_COMPLETION_COMPARE_SWAP;
		break;
	default:
		completion.opcode = VB_COMPLETION_SEND;
	}
	vb_model_on_completion(&h->model, &completion);
}

static void complete_receive(struct history *h, uint64_t id, uint32_t byte_length)
{
	struct vb_model_completion completion = { .wr_id = id,
						  .qp = h->qps[1],
						  .is_receive = true,
						  .opcode = VB_COMPLETION_RECV,
						  .byte_length = byte_length,
						  .source_qp = VB_MODEL_NONE };

	vb_model_on_completion(&h->model, &completion);
}

/* The engine puts data into remote memory, as it should. */
static void deliver_write(struct history *h, uint64_t id)
{
	const struct vb_model_request *request = &h->model.requests[id - 1];

	vb_pattern_fill(vb_arena_bytes(request->remote, request->remote_address), request->key, 0,
			request->length);
}

static void deliver_read(struct history *h, uint64_t id)
{
	const struct vb_model_request *request = &h->model.requests[id - 1];

	vb_pattern_fill(vb_arena_bytes(request->arena, request->pieces[0].address), request->key, 0,
			request->length);
}

static void deliver_message(struct history *h, uint64_t send, uint64_t receive)
{
	const struct vb_model_request *message = &h->model.requests[send - 1];
	const struct vb_model_request *target = &h->model.requests[receive - 1];

	vb_pattern_fill(vb_arena_bytes(target->arena, target->pieces[0].address), message->key, 0,
			message->length);
}

static void expect_rule(const struct history *h, const char *words)
{
	if (!strstr(h->model.violation, words))
		FAIL("expected a violation with \"%s\", found \"%s\"", words, h->model.violation);
}

static void expect_fine(const struct history *h)
{
	EXPECT_STR(h->model.violation, "");
}

/* --- correct histories --- */

TEST(a_right_history_passes)
{
	struct history h = begin(VB_QP_RC);
	uint64_t receive = post_receive(&h, 100);
	uint64_t write = post(&h, VB_WR_WRITE, 50, false);
	uint64_t read = post(&h, VB_WR_READ, 60, true);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);

	deliver_write(&h, write);
	deliver_read(&h, read);
	deliver_message(&h, send, receive);
	complete(&h, read, VB_STATUS_SUCCESS);
	complete_receive(&h, receive, 70);
	complete(&h, send, VB_STATUS_SUCCESS);
	vb_model_check_rest(&h.model);
	vb_model_check_end(&h.model);
	expect_fine(&h);
	end(&h);
}

TEST(a_failure_with_a_cause_and_what_it_flushes_pass)
{
	struct history h = begin(VB_QP_RC);
	uint64_t first = post(&h, VB_WR_SEND, 10, true);
	uint64_t second = post(&h, VB_WR_SEND, 10, false);

	vb_model_expect(&h.model, h.qps[0], VB_CAUSE_HOSTILE);
	complete(&h, first, VB_STATUS_RETRY_EXC_ERR);
	complete(&h, second, VB_STATUS_WR_FLUSH_ERR);
	vb_model_check_rest(&h.model);
	expect_fine(&h);
	end(&h);
}

/* --- completions --- */

TEST(a_missing_completion_is_found)
{
	struct history h = begin(VB_QP_RC);

	post(&h, VB_WR_SEND, 10, true);
	vb_model_check_rest(&h.model);
	expect_rule(&h, "never did");
	end(&h);
}

TEST(a_completion_that_comes_twice_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_SEND, 10, true);

	complete(&h, id, VB_STATUS_SUCCESS);
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_rule(&h, "exactly once");
	end(&h);
}

TEST(a_completion_of_nothing_is_found)
{
	struct history h = begin(VB_QP_RC);
	struct vb_model_completion completion = { .wr_id = 99, .qp = h.qps[0] };

	vb_model_on_completion(&h.model, &completion);
	expect_rule(&h, "never posted");
	end(&h);
}

TEST(completions_out_of_order_are_found)
{
	struct history h = begin(VB_QP_RC);

	post(&h, VB_WR_SEND, 10, true);
	complete(&h, post(&h, VB_WR_SEND, 10, true), VB_STATUS_SUCCESS);
	expect_rule(&h, "in order");
	end(&h);
}

TEST(receives_out_of_order_are_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t second, send;

	post_receive(&h, 100);
	second = post_receive(&h, 100);
	send = post(&h, VB_WR_SEND, 10, true);
	deliver_message(&h, send, second);
	complete_receive(&h, second, 10);
	expect_rule(&h, "order in which they were posted");
	end(&h);
}

TEST(a_completion_of_an_unsignaled_request_is_found)
{
	struct history h = begin(VB_QP_RC);

	complete(&h, post(&h, VB_WR_SEND, 10, false), VB_STATUS_SUCCESS);
	expect_rule(&h, "unsignaled");
	end(&h);
}

TEST(a_completion_with_the_wrong_opcode_is_found)
{
	struct history h = begin(VB_QP_RC);
	struct vb_model_completion completion = { .wr_id = post(&h, VB_WR_SEND, 10, true),
						  .qp = h.qps[0],
						  .opcode = VB_COMPLETION_READ };

	vb_model_on_completion(&h.model, &completion);
	expect_rule(&h, "wrong operation");
	end(&h);
}

TEST(a_completion_that_survives_a_reset_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_SEND, 10, true);

	vb_model_on_removed(&h.model, h.qps[0]);
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_rule(&h, "purges");
	end(&h);
}

TEST(a_completion_of_a_drained_queue_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_SEND, 10, true);

	vb_model_on_drained(&h.model, h.qps[0]);
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_rule(&h, "drained");
	end(&h);
}

/* --- statuses --- */

TEST(a_failure_without_a_cause_is_found)
{
	struct history h = begin(VB_QP_RC);

	complete(&h, post(&h, VB_WR_SEND, 10, true), VB_STATUS_RETRY_EXC_ERR);
	expect_rule(&h, "nothing explains");
	end(&h);
}

TEST(a_flush_without_a_failure_is_found)
{
	struct history h = begin(VB_QP_RC);

	complete(&h, post(&h, VB_WR_SEND, 10, true), VB_STATUS_WR_FLUSH_ERR);
	expect_rule(&h, "nothing explains");
	end(&h);
}

TEST(a_success_behind_a_failure_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t first = post(&h, VB_WR_SEND, 10, true);
	uint64_t second = post(&h, VB_WR_SEND, 10, true);

	vb_model_expect(&h.model, h.qps[0], VB_CAUSE_HOSTILE);
	complete(&h, first, VB_STATUS_RETRY_EXC_ERR);
	complete(&h, second, VB_STATUS_SUCCESS);
	expect_rule(&h, "nothing explains");
	end(&h);
}

TEST(a_flush_that_leaves_one_out_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t first = post(&h, VB_WR_SEND, 10, true);
	uint64_t third;

	post(&h, VB_WR_SEND, 10, false);
	third = post(&h, VB_WR_SEND, 10, true);
	vb_model_expect(&h.model, h.qps[0], VB_CAUSE_HOSTILE);
	complete(&h, first, VB_STATUS_RETRY_EXC_ERR);
	complete(&h, third, VB_STATUS_WR_FLUSH_ERR);
	expect_rule(&h, "flushed in order");
	end(&h);
}

TEST(a_request_that_must_be_refused_but_succeeds_is_found)
{
	struct history h = begin(VB_QP_RC);
	struct vb_model_request request = vb_model_request_of(h.qps[0], VB_WR_SEND);

	request.allowed = VB_STATUS_BIT(VB_STATUS_REM_ACCESS_ERR);
	vb_model_on_post(&h.model, &request);
	complete(&h, 1, VB_STATUS_SUCCESS);
	expect_rule(&h, "nothing explains");
	end(&h);
}

TEST(a_refused_request_that_completes_silently_is_found)
{
	struct history h = begin(VB_QP_RC);
	struct vb_model_request request = vb_model_request_of(h.qps[0], VB_WR_SEND);

	request.allowed = VB_STATUS_BIT(VB_STATUS_LOC_PROT_ERR);
	request.is_signaled = false;
	vb_model_on_post(&h.model, &request);
	complete(&h, post(&h, VB_WR_SEND, 10, true), VB_STATUS_SUCCESS);
	expect_rule(&h, "completed silently");
	end(&h);
}

/* --- data --- */

TEST(a_wrong_byte_of_a_write_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_WRITE, 50, true);

	deliver_write(&h, id);
	*vb_arena_bytes(h.arenas[1], h.model.requests[id - 1].remote_address + 49) ^= 1;
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_rule(&h, "WRITE that completed is in place");
	end(&h);
}

TEST(a_wrong_byte_of_a_read_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_READ, 50, true);

	deliver_read(&h, id);
	*vb_arena_bytes(h.arenas[0], h.model.requests[id - 1].pieces[0].address) ^= 1;
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_rule(&h, "READ returns");
	end(&h);
}

TEST(a_wrong_byte_of_a_message_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t receive = post_receive(&h, 100);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);

	deliver_message(&h, send, receive);
	*vb_arena_bytes(h.arenas[1], h.model.requests[receive - 1].pieces[0].address + 30) ^= 1;
	complete_receive(&h, receive, 70);
	expect_rule(&h, "arrives whole");
	end(&h);
}

TEST(a_byte_behind_a_message_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t receive = post_receive(&h, 100);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);

	deliver_message(&h, send, receive);
	*vb_arena_bytes(h.arenas[1], h.model.requests[receive - 1].pieces[0].address + 70) ^= 1;
	complete_receive(&h, receive, 70);
	expect_rule(&h, "only its length");
	end(&h);
}

TEST(a_wrong_byte_len_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t receive = post_receive(&h, 100);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);

	deliver_message(&h, send, receive);
	complete_receive(&h, receive, 71);
	expect_rule(&h, "byte_len");
	end(&h);
}

TEST(a_message_that_arrives_twice_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t first = post_receive(&h, 100);
	uint64_t second = post_receive(&h, 100);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);

	deliver_message(&h, send, first);
	deliver_message(&h, send, second);
	complete_receive(&h, first, 70);
	complete_receive(&h, second, 70);
	expect_rule(&h, "more came than were sent");
	end(&h);
}

TEST(an_acknowledged_message_that_never_arrives_is_found)
{
	struct history h = begin(VB_QP_RC);

	complete(&h, post(&h, VB_WR_SEND, 70, true), VB_STATUS_SUCCESS);
	vb_model_check_end(&h.model);
	expect_rule(&h, "acknowledged");
	end(&h);
}

TEST(an_unreliable_message_in_pieces_of_two_is_found)
{
	struct history h = begin(VB_QP_UC);
	uint64_t receive = post_receive(&h, 100);
	uint64_t send = post(&h, VB_WR_SEND, 70, true);
	uint64_t other = post(&h, VB_WR_SEND, 70, true);
	uint64_t address = h.model.requests[receive - 1].pieces[0].address;

	deliver_message(&h, send, receive);
	vb_pattern_fill(vb_arena_bytes(h.arenas[1], address + 32), h.model.requests[other - 1].key,
			32, 38);
	complete_receive(&h, receive, 70);
	expect_rule(&h, "no message that was sent fits");
	end(&h);
}

TEST(unreliable_messages_out_of_order_are_found)
{
	struct history h = begin(VB_QP_UC);
	uint64_t receives[2] = { post_receive(&h, 100), post_receive(&h, 100) };
	uint64_t first = post(&h, VB_WR_SEND, 70, true);
	uint64_t second = post(&h, VB_WR_SEND, 70, true);

	deliver_message(&h, second, receives[0]);
	deliver_message(&h, first, receives[1]);
	complete_receive(&h, receives[0], 70);
	expect_fine(&h);
	complete_receive(&h, receives[1], 70);
	expect_rule(&h, "no message that was sent fits");
	end(&h);
}

/* --- memory --- */

TEST(a_changed_guard_byte_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_WRITE, 50, true);
	uint64_t behind = h.model.requests[id - 1].remote_address + 50;
	uint64_t wrong = 0;

	deliver_write(&h, id);
	/* the WRITE is outstanding: its range may change */
	EXPECT(vb_arena_check(h.arenas[1], &wrong));
	*vb_arena_bytes(h.arenas[1], behind) ^= 1;
	EXPECT(!vb_arena_check(h.arenas[1], &wrong));
	EXPECT_EQ(wrong, behind);
	end(&h);
}

TEST(a_late_write_into_a_closed_range_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t id = post(&h, VB_WR_WRITE, 50, true);
	uint64_t wrong = 0;

	deliver_write(&h, id);
	complete(&h, id, VB_STATUS_SUCCESS);
	expect_fine(&h);
	*vb_arena_bytes(h.arenas[1], h.model.requests[id - 1].remote_address) ^= 1;
	EXPECT(!vb_arena_check(h.arenas[1], &wrong));
	end(&h);
}

/* --- atomics --- */

static void set_word(struct history *h, uint64_t address, uint64_t value)
{
	memcpy(vb_arena_bytes(h->arenas[1], address), &value, 8);
}

/* An atomic of end 0 that returned `old`, or failed. */
static uint64_t atomic(struct history *h, enum vb_wr_opcode opcode, uint32_t counter,
		       uint64_t compare_add, uint64_t swap, uint64_t old)
{
	struct vb_model_request request = vb_model_request_of(h->qps[0], opcode);
	uint64_t id = vb_model_next_id(&h->model);
	uint64_t address = place(h, 0, 8);

	request.length = 8;
	request.arena = h->arenas[0];
	request.pieces[0] = (struct vb_model_piece){ address, 8, false };
	request.piece_count = 1;
	request.opens_local = true;
	request.counter = counter;
	request.compare_add = compare_add;
	request.swap = swap;
	vb_model_on_post(&h->model, &request);
	memcpy(vb_arena_bytes(h->arenas[0], address), &old, 8);
	return id;
}

static uint32_t counter_at(struct history *h, uint64_t address, bool is_swap)
{
	set_word(h, address, 1000);
	return vb_model_add_counter(&h->model, h->arenas[1], address, is_swap);
}

TEST(fetch_adds_that_happen_once_pass)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, false);
	uint64_t first = atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 1000);
	uint64_t second = atomic(&h, VB_WR_FETCH_ADD, counter, 7, 0, 1005);

	complete(&h, first, VB_STATUS_SUCCESS);
	complete(&h, second, VB_STATUS_SUCCESS);
	set_word(&h, address, 1012);
	vb_model_check_end(&h.model);
	expect_fine(&h);
	end(&h);
}

TEST(a_failed_fetch_add_may_have_happened_once)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, false);

	vb_model_expect(&h.model, h.qps[0], VB_CAUSE_HOSTILE);
	complete(&h, atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 0), VB_STATUS_RETRY_EXC_ERR);
	set_word(&h, address, 1005);
	vb_model_check_end(&h.model);
	expect_fine(&h);
	end(&h);
}

TEST(a_fetch_add_applied_twice_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, false);

	complete(&h, atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 1000), VB_STATUS_SUCCESS);
	set_word(&h, address, 1010);
	vb_model_check_end(&h.model);
	expect_rule(&h, "exactly once");
	end(&h);
}

TEST(a_failed_fetch_add_applied_twice_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, false);

	vb_model_expect(&h.model, h.qps[0], VB_CAUSE_HOSTILE);
	complete(&h, atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 0), VB_STATUS_RETRY_EXC_ERR);
	set_word(&h, address, 1010);
	vb_model_check_end(&h.model);
	expect_rule(&h, "exactly once");
	end(&h);
}

TEST(two_fetch_adds_that_saw_the_same_value_are_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, false);

	complete(&h, atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 1000), VB_STATUS_SUCCESS);
	complete(&h, atomic(&h, VB_WR_FETCH_ADD, counter, 5, 0, 1000), VB_STATUS_SUCCESS);
	set_word(&h, address, 1010);
	vb_model_check_end(&h.model);
	expect_rule(&h, "same step");
	end(&h);
}

TEST(a_chain_of_compare_swaps_passes)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, true);

	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 21, 1000), VB_STATUS_SUCCESS);
	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 22, 21), VB_STATUS_SUCCESS);
	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 21, 23, 21), VB_STATUS_SUCCESS);
	set_word(&h, address, 23);
	vb_model_check_end(&h.model);
	expect_fine(&h);
	end(&h);
}

TEST(a_compare_swap_that_was_lost_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, true);

	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 21, 1000), VB_STATUS_SUCCESS);
	set_word(&h, address, 1000);
	vb_model_check_end(&h.model);
	expect_rule(&h, "one chain");
	end(&h);
}

TEST(two_compare_swaps_that_both_won_are_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, true);

	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 21, 1000), VB_STATUS_SUCCESS);
	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 22, 1000), VB_STATUS_SUCCESS);
	set_word(&h, address, 22);
	vb_model_check_end(&h.model);
	expect_rule(&h, "one chain");
	end(&h);
}

TEST(a_compare_swap_that_returns_a_value_from_nowhere_is_found)
{
	struct history h = begin(VB_QP_RC);
	uint64_t address = h.arenas[1]->base + 0x8000;
	uint32_t counter = counter_at(&h, address, true);

	complete(&h, atomic(&h, VB_WR_COMPARE_SWAP, counter, 1000, 21, 77), VB_STATUS_SUCCESS);
	vb_model_check_end(&h.model);
	expect_rule(&h, "value that was there");
	end(&h);
}
