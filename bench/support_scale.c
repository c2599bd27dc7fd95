/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many QPs: what an idle QP costs in memory, and what an operation costs with 100,000 of them.
 * Every operation is one 8-byte WRITE with its own doorbell and completion, each on the next QP in
 * turn, 64 at a time.
 */
#include "support_measures.h"
#include "support_rig.h"

#include "base/prng.h"
#include "host/memory/blocks.h"

enum {
	FEW = 10,
	MANY = 100000,
	ROUND = 64, /* operations that are posted before packets are moved */
	ROWS = 1 << 18,
	LINE = 64, /* each QP writes into its own cache line */
	REPEATS = 9,
	OPERATIONS = 2 * MANY,
	SAMPLE = 1024, /* QPs over which memory is averaged */
};

/* Bytes that the engine has allocated, without the program's own. */
static double allocated(void)
{
	return (double)vb_blocks_mapped();
}

/* Bytes of an RC QP in RTS, including its rings. */
static double qp_bytes(uint32_t depth)
{
	struct rig_setup setup = {
		.mtu = 4096,
		.send_depth = depth,
		.recv_depth = depth,
		.cq_depth = 64,
		.qp_row_count = 2 * SAMPLE,
		.memory_length = 4096,
	};
	struct rig *rig = rig_create(&setup);
	struct vb_qp *qps[SAMPLE];
	double before = allocated();
	double bytes;

	for (uint32_t i = 0; i < SAMPLE; i++) {
		qps[i] = rig_create_qp(rig, A);
		rig_bring_up(rig, A, qps[i], vb_qp_number(qps[i]));
	}
	bytes = (allocated() - before) / SAMPLE;
	for (uint32_t i = 0; i < SAMPLE; i++)
		BENCH_CHECK(vb_qp_destroy(qps[i]) == VB_OK);
	rig_destroy(rig);
	/* The QP's place in the tables existed before. */
	return bytes + sizeof(struct vb_qp_row) + sizeof(struct vb_qp *);
}

void measure_memory(struct report *report)
{
	double bytes = qp_bytes(16);
	double rings = qp_bytes(32) - bytes; /* 16 more of both */

	report_figure("rings of an RC QP with 16+16 work requests", rings, "bytes");
	report_at_most(report, "idle RC QP in RTS apart from its rings", bytes - rings, "bytes",
		       4096);
}

struct crowd {
	struct rig *rig;
	struct rig_link *links;
	uint32_t *turns; /* the order in which the QPs take turns */
	uint32_t count;
	uint32_t active; /* how many of them take turns */
	uint32_t next; /* index into turns */
	uint64_t posted;
	uint64_t completed;
};

static struct crowd crowd_create(uint32_t count)
{
	struct rig_setup setup = {
		.mtu = 4096,
		.send_depth = 16,
		.recv_depth = 16,
		.cq_depth = 1024,
		.qp_row_count = ROWS,
		.memory_length = (uint64_t)count * LINE,
	};
	struct crowd crowd = {
		.rig = rig_create(&setup),
		.links = calloc(count, sizeof(*crowd.links)),
		.turns = calloc(count, sizeof(*crowd.turns)),
		.count = count,
		.active = count,
	};

	BENCH_CHECK(crowd.links && crowd.turns);
	for (uint32_t i = 0; i < count; i++) {
		crowd.links[i] = rig_connect(crowd.rig);
		crowd.turns[i] = i;
	}
	return crowd;
}

static void crowd_destroy(struct crowd *crowd)
{
	for (uint32_t i = 0; i < crowd->count; i++)
		rig_disconnect(&crowd->links[i]);
	free(crowd->turns);
	free(crowd->links);
	rig_destroy(crowd->rig);
}

/* After this, the memory of consecutive turns is no longer adjacent. */
static void shuffle(struct crowd *crowd)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 1);
	for (uint32_t i = crowd->count - 1; i; i--) {
		uint32_t other = (uint32_t)vb_prng_below(&prng, i + 1);
		uint32_t turn = crowd->turns[i];

		crowd->turns[i] = crowd->turns[other];
		crowd->turns[other] = turn;
	}
}

static uint64_t *word_of(const struct crowd *crowd, uint32_t index)
{
	return (uint64_t *)(void *)(crowd->rig->node[B].memory + (size_t)index * LINE);
}

static void post_next(struct crowd *crowd)
{
	uint32_t index = crowd->turns[crowd->next];
	struct vb_qp *qp = crowd->links[index].qp[A];
	uint64_t value = crowd->posted++;
	struct vb_sge sge = { (uintptr_t)&value, sizeof(value), 0 };
	struct vb_send_request request = {
		.wr_id = value,
		.opcode = VB_WR_WRITE,
		.flags = VB_SEND_INLINE | VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)word_of(crowd, index),
		.rkey = vb_mr_key(crowd->rig->node[B].mr),
	};

	BENCH_CHECK(vb_qp_post_send(qp, &request) == VB_OK);
	vb_qp_publish_and_ring(qp);
	if (++crowd->next == crowd->active)
		crowd->next = 0;
}

static void poll(struct crowd *crowd)
{
	struct vb_completion completions[ROUND];
	uint32_t count = vb_cq_poll(crowd->rig->node[A].send_cq, completions, ROUND);

	for (uint32_t i = 0; i < count; i++) {
		BENCH_CHECK(completions[i].status == VB_STATUS_SUCCESS);
		BENCH_CHECK(crowd->posted - completions[i].wr_id <= ROUND);
	}
	crowd->completed += count;
}

static void run(struct crowd *crowd, uint32_t operations)
{
	for (uint32_t done = 0; done < operations; done += ROUND) {
		for (uint32_t i = 0; i < ROUND; i++)
			post_next(crowd);
		while (crowd->completed < crowd->posted) {
			rig_drive(crowd->rig);
			poll(crowd);
		}
	}
}

/* The last turns must have left their numbers. */
static void check_arrived(const struct crowd *crowd)
{
	uint32_t turn = crowd->next;
	uint64_t value = crowd->posted;

	for (uint32_t i = 0; i < crowd->active && i < crowd->posted; i++) {
		turn = turn ? turn - 1 : crowd->active - 1;
		BENCH_CHECK(*word_of(crowd, crowd->turns[turn]) == --value);
	}
	rig_check_clean(crowd->rig);
}

/* Nanoseconds per operation when the first `active` QPs take turns. */
static double time_turns(struct crowd *crowd, uint32_t active, uint32_t operations)
{
	uint64_t start_ns;
	uint64_t end_ns;

	crowd->active = active;
	crowd->next = 0;
	run(crowd, active); /* warm-up: every QP once */
	start_ns = clock_used_ns();
	run(crowd, operations);
	end_ns = clock_used_ns();
	check_arrived(crowd);
	return (double)(end_ns - start_ns) / operations;
}

void measure_scale(struct report *report)
{
	uint32_t repeats = report_repeats(report, REPEATS);
	uint32_t operations = report_work(report, OPERATIONS) / ROUND * ROUND;
	struct crowd few = crowd_create(FEW);
	struct crowd many = crowd_create(MANY);
	double few_ns[REPEATS_MAX];
	double active[REPEATS_MAX];
	double all[REPEATS_MAX];
	double shuffled[REPEATS_MAX];

	for (uint32_t i = 0; i < repeats; i++) {
		few_ns[i] = time_turns(&few, FEW, operations);
		active[i] = time_turns(&many, FEW, operations) / few_ns[i];
		all[i] = time_turns(&many, MANY, operations) / few_ns[i];
	}
	shuffle(&many);
	for (uint32_t i = 0; i < repeats; i++)
		shuffled[i] = time_turns(&many, MANY, operations) /
			      time_turns(&few, FEW, operations);
	report_figure("8-byte RC WRITE, 10 QPs", median(few_ns, repeats), "ns");
	report_at_most(report, "10 of 100,000 QPs active", median(active, repeats), "times", 2);
	report_at_most(report, "100,000 QPs take turns", median(all, repeats), "times", 4);
	report_figure("100,000 QPs take turns in a random order", median(shuffled, repeats),
		      "times");
	crowd_destroy(&many);
	crowd_destroy(&few);
}
