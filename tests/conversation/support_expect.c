/* SPDX-License-Identifier: BSD-2-Clause */
/* Time, and everything besides packets that the adapters produce: completions, events, memory. */
#include "support_pair.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Time */

static uint64_t next_deadline(struct pair *p)
{
	uint64_t a = vb_nic_deadline(p->node[A].nic);
	uint64_t b = vb_nic_deadline(p->node[B].nic);

	return a < b ? a : b;
}

static void expire_at(struct pair *p, uint64_t time_ns)
{
	if (time_ns > p->now_ns)
		p->now_ns = time_ns;
	vb_nic_fire_timers(p->node[A].nic, p->now_ns);
	vb_nic_fire_timers(p->node[B].nic, p->now_ns);
}

void wait_ns(struct pair *p, uint64_t ns)
{
	uint64_t end_ns = p->now_ns + ns;
	uint32_t steps = 0;

	while (next_deadline(p) < end_ns) {
		EXPECT(steps++ < 10000);
		expire_at(p, next_deadline(p));
	}
	expire_at(p, end_ns);
}

uint64_t wait_until_work(struct pair *p, enum side side)
{
	uint64_t start_ns = p->now_ns;
	uint32_t steps = 0;

	while (!pair_has_packet(p, side)) {
		EXPECT(next_deadline(p) != VB_NEVER);
		EXPECT(steps++ < 10000);
		expire_at(p, next_deadline(p));
	}
	return p->now_ns - start_ns;
}

uint64_t wait_until_completion(struct pair *p, enum side side)
{
	uint64_t start_ns = p->now_ns;
	uint32_t steps = 0;

	while (!vb_cq_waiting(p->node[side].send_cq) && !vb_cq_waiting(p->node[side].recv_cq)) {
		EXPECT(next_deadline(p) != VB_NEVER);
		EXPECT(steps++ < 10000);
		expire_at(p, next_deadline(p));
	}
	return p->now_ns - start_ns;
}

void expect_rest(struct pair *p, enum side side)
{
	wait_ns(p, 100000 * MS);
	expect_silence(p, side);
	expect_no_completion(p, side);
	EXPECT(!vb_nic_has_work(p->node[side].nic));
	EXPECT_EQ(vb_nic_deadline(p->node[side].nic), VB_NEVER);
}

/* Completions */

static bool has_length(const struct vb_completion *c)
{
	return c->is_receive || c->opcode == VB_COMPLETION_READ ||
	       c->opcode == VB_COMPLETION_COMPARE_SWAP || c->opcode == VB_COMPLETION_FETCH_ADD;
}

/* Formats a completion as "wr=1 SUCCESS RECV len=8 imm=0x2a grh", or "wr=1 WR_FLUSH_ERR". */
static void describe_completion(const struct vb_completion *c, char *text, size_t size)
{
	int used =
		snprintf(text, size, "wr=%" PRIu64 " %s", c->wr_id, vb_status_describe(c->status));

	if (c->status != VB_STATUS_SUCCESS)
		return;
	used += snprintf(text + used, size - (size_t)used, " %s",
			 vb_completion_opcode_describe(c->opcode));
	if (has_length(c))
		used += snprintf(text + used, size - (size_t)used, " len=%u", c->byte_length);
	if (c->flags & VB_COMPLETION_HAS_IMM)
		used += snprintf(text + used, size - (size_t)used, " imm=0x%x", c->imm);
	if (c->flags & VB_COMPLETION_HAS_INV)
		used += snprintf(text + used, size - (size_t)used, " inv=0x%x", c->imm);
	if (c->flags & VB_COMPLETION_HAS_GRH)
		used += snprintf(text + used, size - (size_t)used, " grh");
	if (c->flags & VB_COMPLETION_TM_MATCH)
		used += snprintf(text + used, size - (size_t)used,
				 " match tag=0x%" PRIx64 " context=0x%x", c->tag, c->tag_context);
	if (c->flags & VB_COMPLETION_TM_DATA_VALID)
		used += snprintf(text + used, size - (size_t)used, " valid");
	if (c->flags & VB_COMPLETION_TM_SYNC_REQ)
		snprintf(text + used, size - (size_t)used, " sync");
}

/* Compares the completions in the CQ with the lines; returns the first line without a match. */
static const char *const *take_completions(const char *file, int line, struct vb_cq *cq,
					   const char *const *expected)
{
	struct vb_completion completion;
	char text[128];

	while (vb_cq_poll(cq, &completion, 1)) {
		describe_completion(&completion, text, sizeof(text));
		if (!*expected)
			test_fail(file, line, "one completion more: \"%s\"", text);
		if (!words_match(text, *expected))
			test_fail(file, line, "completion \"%s\"\n        expected   \"%s\"", text,
				  *expected);
		expected++;
	}
	return expected;
}

void pair_expect_completions_of(const char *file, int line, struct vb_cq *cq,
				const char *const *expected)
{
	expected = take_completions(file, line, cq, expected);
	if (*expected)
		test_fail(file, line, "no completion \"%s\"", *expected);
}

void pair_expect_completions(const char *file, int line, struct pair *p, enum side side,
			     const char *const *expected)
{
	expected = take_completions(file, line, p->node[side].send_cq, expected);
	pair_expect_completions_of(file, line, p->node[side].recv_cq, expected);
}

/* Events */

void pair_expect_events(const char *file, int line, struct pair *p, enum side side,
			const char *const *expected)
{
	struct vb_event event;

	while (vb_nic_take_events(p->node[side].nic, &event, 1)) {
		const char *text = vb_event_describe(event.kind);

		if (!*expected)
			test_fail(file, line, "one event more at %c: %s", "AB"[side], text);
		if (strcmp(text, *expected) != 0)
			test_fail(file, line, "event %s at %c, expected %s", text, "AB"[side],
				  *expected);
		EXPECT(event.qp || event.cq || event.srq);
		expected++;
	}
	if (*expected)
		test_fail(file, line, "no event %s at %c", *expected, "AB"[side]);
}

/* Memory */

void pair_expect_injected(const char *file, int line, struct pair *p, enum side side,
			  uint32_t offset, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (p->node[side].memory[offset + i] != USUAL_BYTE)
			test_fail(file, line, "byte %u of %u at %c's 0x%x is not the injected one",
				  i, length, "AB"[side], offset);
}

uint64_t word_at(struct pair *p, enum side side, uint32_t offset)
{
	uint64_t word;

	memcpy(&word, p->node[side].memory + offset, sizeof(word));
	return word;
}

void set_word(struct pair *p, enum side side, uint32_t offset, uint64_t value)
{
	memcpy(p->node[side].memory + offset, &value, sizeof(value));
}

void set_bytes(struct pair *p, enum side side, uint32_t offset, uint8_t value, uint32_t length)
{
	memset(p->node[side].memory + offset, value, length);
}
