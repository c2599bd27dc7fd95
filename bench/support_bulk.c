/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of 1 MB. Two CRCs read a packet's bytes and one copy moves them; memcpy reads and writes
 * them once. These two, and the bare copies and CRCs without an adapter around them, take turns
 * over the same buffers, so that other load on the machine hits all of them. The number of buffers
 * decides the outcome: memcpy loses more than the others once they do not fit into the caches. So
 * does the order of work: each packet is handed over as soon as it is made, as the bare copies and
 * CRCs do it, and the receiver finds its bytes in the nearest cache.
 */
#include "support_measures.h"
#include "support_rig.h"

#include "base/crc.h"
#include "base/dma.h"

#include <string.h>

enum {
	MESSAGE = 1 << 20,
	BUFFERS = 8, /* on each side */
	BUFFERS_CACHED = 2,
	BUFFERS_BEYOND = 32,
	MESSAGES = 32, /* in one turn */
	UNDER_WAY = 4,
	CHUNK = 4096,
	TOGETHER = 1, /* packets that are handed over together */
	REPEATS = 15,
};

struct bulk {
	struct rig *rig;
	struct rig_link link;
	enum vb_wr_opcode opcode;
	uint32_t buffers; /* on each side */
	uint64_t posted;
	uint64_t completed;
};

static uint8_t *buffer(const struct bulk *bulk, enum side side, uint64_t message)
{
	return bulk->rig->node[side].memory + message % bulk->buffers * MESSAGE;
}

/* The side a message comes from: a READ's data flows from B to A. */
static enum side source_side(const struct bulk *bulk)
{
	return bulk->opcode == VB_WR_READ ? B : A;
}

/* Makes the sources differ from what was moved before. */
static void stamp(const struct bulk *bulk, uint64_t turn)
{
	uint8_t *memory = bulk->rig->node[source_side(bulk)].memory;

	for (uint64_t at = 0; at < (uint64_t)bulk->buffers * MESSAGE; at += sizeof(uint64_t)) {
		uint64_t value = (turn << 32 | at) * 0x9e3779b97f4a7c15u;

		memcpy(memory + at, &value, sizeof(value));
	}
}

static void check_same(const struct bulk *bulk)
{
	BENCH_CHECK(!memcmp(bulk->rig->node[A].memory, bulk->rig->node[B].memory,
			    (size_t)bulk->buffers * MESSAGE));
}

static void post(struct bulk *bulk)
{
	const struct rig_node *node = bulk->rig->node;
	struct vb_sge sge = { (uintptr_t)buffer(bulk, A, bulk->posted), MESSAGE,
			      vb_mr_key(node[A].mr) };
	struct vb_send_request request = {
		.wr_id = bulk->posted,
		.opcode = bulk->opcode,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)buffer(bulk, B, bulk->posted),
		.rkey = vb_mr_key(node[B].mr),
	};

	BENCH_CHECK(vb_qp_post_send(bulk->link.qp[A], &request) == VB_OK);
	vb_qp_publish_and_ring(bulk->link.qp[A]);
	bulk->posted++;
}

static void move_by_engine(struct bulk *bulk)
{
	uint64_t end = bulk->posted + MESSAGES;
	struct vb_completion completion;

	while (bulk->completed < end) {
		while (bulk->posted < end && bulk->posted < bulk->completed + UNDER_WAY)
			post(bulk);
		rig_drive(bulk->rig);
		while (vb_cq_poll(bulk->rig->node[A].send_cq, &completion, 1)) {
			BENCH_CHECK(completion.status == VB_STATUS_SUCCESS);
			BENCH_CHECK(completion.wr_id == bulk->completed++);
		}
	}
}

static void move_by_memcpy(struct bulk *bulk)
{
	enum side from = source_side(bulk);

	for (uint32_t i = 0; i < MESSAGES; i++)
		memcpy(buffer(bulk, !from, i), buffer(bulk, from, i), MESSAGE);
}

/* What every adapter with an ICRC must do: the sender's CRC, the receiver's CRC, and the copy. */
static void move_bare(struct bulk *bulk)
{
	enum side from = source_side(bulk);

	for (uint32_t i = 0; i < MESSAGES; i++) {
		for (uint32_t at = 0; at < MESSAGE; at += CHUNK) {
			const uint8_t *source = buffer(bulk, from, i) + at;
			uint32_t sent = vb_crc32(0, source, CHUNK);

			BENCH_CHECK(vb_crc32(0, source, CHUNK) == sent);
			memcpy(buffer(bulk, !from, i) + at, source, CHUNK);
		}
	}
}

/* Returns the nanoseconds of one turn; checks the data afterwards. */
static double time_turn(struct bulk *bulk, uint64_t turn, void (*move)(struct bulk *bulk))
{
	uint64_t start_ns;
	uint64_t end_ns;

	stamp(bulk, turn);
	start_ns = clock_used_ns();
	move(bulk);
	end_ns = clock_used_ns();
	check_same(bulk);
	return (double)(end_ns - start_ns);
}

struct variant {
	enum vb_wr_opcode opcode;
	uint32_t mtu;
	uint32_t batch;
	uint32_t buffers;
};

struct figures {
	double gigabytes; /* a second, by the engine */
	double memcpy_gigabytes;
	double ratio; /* to memcpy */
	double bare_ratio;
};

static struct bulk open_bulk(const struct variant *variant)
{
	struct rig_setup setup = {
		.mtu = variant->mtu,
		.send_depth = 16,
		.recv_depth = 16,
		.cq_depth = 64,
		.qp_row_count = 1024,
		.batch = variant->batch,
		.memory_length = (uint64_t)variant->buffers * MESSAGE,
	};
	struct bulk bulk = {
		.rig = rig_create(&setup),
		.opcode = variant->opcode,
		.buffers = variant->buffers,
	};

	bulk.link = rig_connect(bulk.rig);
	return bulk;
}

static void close_bulk(struct bulk *bulk)
{
	rig_check_clean(bulk->rig);
	rig_disconnect(&bulk->link);
	rig_destroy(bulk->rig);
}

static struct figures measure(const struct report *report, const struct variant *variant)
{
	const double bytes = (double)MESSAGES * MESSAGE;
	struct bulk bulk = open_bulk(variant);
	uint32_t repeats = report_repeats(report, REPEATS);
	double rate[REPEATS_MAX];
	double memcpy_rate[REPEATS_MAX];
	double ratio[REPEATS_MAX];
	double bare_ratio[REPEATS_MAX];

	time_turn(&bulk, 1, move_by_engine); /* warm-up */
	for (uint32_t i = 0; i < repeats; i++) {
		double copy_ns = time_turn(&bulk, 3 * i + 2, move_by_memcpy);
		double engine_ns = time_turn(&bulk, 3 * i + 3, move_by_engine);
		double bare_ns = time_turn(&bulk, 3 * i + 4, move_bare);

		rate[i] = bytes / engine_ns;
		memcpy_rate[i] = bytes / copy_ns;
		ratio[i] = copy_ns / engine_ns;
		bare_ratio[i] = copy_ns / bare_ns;
	}
	close_bulk(&bulk);
	return (struct figures){
		.gigabytes = median(rate, repeats),
		.memcpy_gigabytes = median(memcpy_rate, repeats),
		.ratio = median(ratio, repeats),
		.bare_ratio = median(bare_ratio, repeats),
	};
}

static void note(const struct report *report, const char *what, struct variant variant)
{
	report_figure(what, measure(report, &variant).ratio, "memcpy");
}

/*
 * The same with other footprints: in the caches memcpy is at its best, beyond them everything waits
 * for memory.
 */
static void note_footprint(const struct report *report, const char *bare, const char *engine,
			   uint32_t buffers)
{
	struct variant variant = { VB_WR_WRITE, 4096, TOGETHER, buffers };
	struct figures figures = measure(report, &variant);

	report_figure(bare, figures.bare_ratio, "memcpy");
	report_figure(engine, figures.ratio, "memcpy");
}

void measure_bulk(struct report *report)
{
	struct variant variant = { VB_WR_WRITE, 4096, TOGETHER, BUFFERS };
	struct figures figures = measure(report, &variant);

	report_figure("memcpy of 1 MB", figures.memcpy_gigabytes, "GB/s");
	report_figure("bare copies and CRCs of 4096 bytes", figures.bare_ratio, "memcpy");
	report_figure("1 MB RC WRITE, MTU 4096", figures.gigabytes, "GB/s");
	report_figure("1 MB RC WRITE, MTU 4096", figures.ratio / figures.bare_ratio, "bare");
	report_at_least(report, "1 MB RC WRITE, MTU 4096", figures.ratio, "memcpy", 0.5);
	note(report, "1 MB RC WRITE, MTU 4096, batches of 64 packets",
	     (struct variant){ VB_WR_WRITE, 4096, RIG_ROUND, BUFFERS });
	note(report, "1 MB RC WRITE, MTU 1024",
	     (struct variant){ VB_WR_WRITE, 1024, TOGETHER, BUFFERS });
	note(report, "1 MB RC READ, MTU 4096",
	     (struct variant){ VB_WR_READ, 4096, TOGETHER, BUFFERS });
	note_footprint(report, "2 + 2 buffers: bare copies and CRCs",
		       "2 + 2 buffers: 1 MB RC WRITE, MTU 4096", BUFFERS_CACHED);
	note_footprint(report, "32 + 32 buffers: bare copies and CRCs",
		       "32 + 32 buffers: 1 MB RC WRITE, MTU 4096", BUFFERS_BEYOND);
}
