/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of 8 bytes on one RC connection, pipelined: the cost of an operation without its data.
 * Requests are posted in bursts with one doorbell, and the last request of a burst is signaled, as
 * careful programs do it.
 */
#include "support_measures.h"
#include "support_rig.h"

enum {
	DEPTH = 128,
	BURST = 16,
	RECV_DEPTH = 256,
	/* Where the messages come from and go to; more than are under way. */
	WORDS = 1024,
	POLL = 32,
	REPEATS = 9,
	OPERATIONS = 400 * WORDS,
};

struct stream {
	struct rig *rig;
	struct rig_link link;
	enum vb_wr_opcode opcode;
	uint32_t flags;
	uint64_t posted; /* all three count operations since the beginning */
	uint64_t completed;
	uint64_t received;
	uint64_t receives_posted;
};

static uint64_t *word(const struct stream *stream, enum side side, uint64_t operation)
{
	return (uint64_t *)(void *)stream->rig->node[side].memory + operation % WORDS;
}

static uint64_t value_of(uint64_t operation)
{
	return (operation + 1) * 0x9e3779b97f4a7c15u;
}

static void post_one(struct stream *stream, uint64_t operation, bool is_signaled)
{
	const struct rig_node *node = stream->rig->node;
	uint64_t *from = word(stream, A, operation);
	struct vb_sge sge = { (uintptr_t)from, 8, vb_mr_key(node[A].mr) };
	struct vb_send_request request = {
		.wr_id = operation,
		.opcode = stream->opcode,
		.flags = stream->flags | (is_signaled ? VB_SEND_SIGNALED : 0),
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)word(stream, B, operation),
		.rkey = vb_mr_key(node[B].mr),
	};

	*from = value_of(operation);
	BENCH_CHECK(vb_qp_post_send(stream->link.qp[A], &request) == VB_OK);
}

static void post_burst(struct stream *stream)
{
	for (uint32_t i = 0; i < BURST; i++)
		post_one(stream, stream->posted++, i + 1 == BURST);
	vb_qp_publish_and_ring(stream->link.qp[A]);
}

static void poll_sends(struct stream *stream)
{
	struct vb_completion completions[POLL];
	uint32_t count = vb_cq_poll(stream->rig->node[A].send_cq, completions, POLL);

	for (uint32_t i = 0; i < count; i++) {
		BENCH_CHECK(completions[i].status == VB_STATUS_SUCCESS);
		BENCH_CHECK(completions[i].wr_id == stream->completed + BURST - 1);
		stream->completed += BURST;
	}
}

static void post_receive(struct stream *stream)
{
	const struct rig_node *node = &stream->rig->node[B];
	uint64_t operation = stream->receives_posted++;
	struct vb_sge sge = { (uintptr_t)word(stream, B, operation), 8, vb_mr_key(node->mr) };
	struct vb_recv_request request = { .wr_id = operation, .sges = &sge, .sge_count = 1 };

	BENCH_CHECK(vb_qp_post_recv(stream->link.qp[B], &request) == VB_OK);
}

static void poll_receives(struct stream *stream)
{
	struct vb_completion completions[POLL];
	uint32_t count;

	while ((count = vb_cq_poll(stream->rig->node[B].recv_cq, completions, POLL))) {
		for (uint32_t i = 0; i < count; i++) {
			uint64_t operation = stream->received++;

			BENCH_CHECK(completions[i].status == VB_STATUS_SUCCESS);
			BENCH_CHECK(completions[i].wr_id == operation);
			BENCH_CHECK(completions[i].byte_length == 8);
			BENCH_CHECK(*word(stream, B, operation) == value_of(operation));
			post_receive(stream);
		}
	}
}

static void run(struct stream *stream, uint64_t operations)
{
	uint64_t end = stream->posted + operations;

	while (stream->completed < end) {
		while (stream->posted < end && stream->posted + BURST <= stream->completed + DEPTH)
			post_burst(stream);
		rig_drive(stream->rig);
		if (stream->opcode == VB_WR_SEND)
			poll_receives(stream);
		poll_sends(stream);
	}
}

static void check_arrived(const struct stream *stream)
{
	for (uint64_t i = stream->posted - WORDS; i < stream->posted; i++)
		BENCH_CHECK(*word(stream, B, i) == value_of(i));
	rig_check_clean(stream->rig);
}

static double millions_a_second(struct stream *stream, uint64_t operations)
{
	uint64_t start_ns = clock_used_ns();

	run(stream, operations);
	return (double)operations * 1e3 / (double)(clock_used_ns() - start_ns);
}

/* The median rate of an 8-byte operation. */
static double rate_of(const struct report *report, enum vb_wr_opcode opcode, uint32_t flags)
{
	struct rig_setup setup = {
		.mtu = 4096,
		.send_depth = DEPTH,
		.recv_depth = RECV_DEPTH,
		.cq_depth = 1024,
		.qp_row_count = 1024,
		.memory_length = WORDS * sizeof(uint64_t),
	};
	struct stream stream = { .rig = rig_create(&setup), .opcode = opcode, .flags = flags };
	uint32_t repeats = report_repeats(report, REPEATS);
	uint32_t operations = report_work(report, OPERATIONS);
	double rates[REPEATS_MAX];

	stream.link = rig_connect(stream.rig);
	while (opcode == VB_WR_SEND && stream.receives_posted < RECV_DEPTH)
		post_receive(&stream);
	run(&stream, operations); /* warm-up */
	for (uint32_t i = 0; i < repeats; i++) {
		rates[i] = millions_a_second(&stream, operations);
		check_arrived(&stream);
	}
	rig_disconnect(&stream.link);
	rig_destroy(stream.rig);
	return median(rates, repeats);
}

void measure_writes(struct report *report)
{
	report_at_least(report, "8-byte RC WRITE, inline",
			rate_of(report, VB_WR_WRITE, VB_SEND_INLINE), "M/s", 5);
	report_at_least(report, "8-byte RC WRITE, from registered memory",
			rate_of(report, VB_WR_WRITE, 0), "M/s", 5);
}

void measure_sends(struct report *report)
{
	report_at_least(report, "8-byte RC SEND and receive, inline",
			rate_of(report, VB_WR_SEND, VB_SEND_INLINE), "M/s", 4);
	report_at_least(report, "8-byte RC SEND and receive, from registered memory",
			rate_of(report, VB_WR_SEND, 0), "M/s", 4);
}
