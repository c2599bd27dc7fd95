/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim demo`: two adapters exchange every operation over a link that loses and repeats
 * packets. The same code runs on a real wire; the seed is fixed, so every run shows the same
 * losses.
 */
#include "verbatim.h"

#include "sim/ladder.h"
#include "sim/pair.h"
#include "sim/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SEED 78 /* shows a NAK, a lost response and a lost answer of an atomic */
#define MTU 1024

struct demo {
	struct vb_world *world;
	struct vb_ladder ladder;
	struct vb_channel *rc;
	struct vb_channel *uc;
	struct vb_channel *ud;
	struct vb_channel *xrc;
	uint64_t shown; /* trace entries */
	uint32_t operations;
	uint32_t undelivered; /* unreliable messages that the link dropped */
};

static void show(struct demo *demo)
{
	char text[VB_LADDER_TEXT_MAX];

	for (; demo->shown < demo->world->trace.count; demo->shown++) {
		const struct vb_trace_entry *entry =
			vb_trace_entry(&demo->world->trace, demo->shown);

		if (!entry)
			continue;
		vb_ladder_describe(&demo->ladder, entry, text);
		if (text[0])
			puts(text);
	}
}

/* Runs until nothing is under way any more, and draws it. */
static void run(struct demo *demo)
{
	vb_world_run(demo->world);
	show(demo);
}

static void explain(struct demo *demo, const char *title, const char *words)
{
	char text[VB_LADDER_TEXT_MAX];

	printf("\n%s\n", title);
	for (size_t i = 0; title[i]; i++)
		putchar('=');
	printf("\n%s\n\n", words);
	vb_ladder_describe_head("node 0  10.0.0.1", "node 1  10.0.0.2", text);
	puts(text);
	demo->shown = demo->world->trace.count;
	demo->ladder.previous_ns = demo->world->now_ns;
}

static void show_request(struct demo *demo, struct vb_channel *channel, const char *title,
			 const char *words, enum vb_wr_opcode opcode, uint32_t length)
{
	uint32_t request;

	explain(demo, title, words);
	if (vb_draft_is_message(opcode))
		vb_pair_post_receives(demo->world, channel, 0, 1);
	request = vb_pair_post(demo->world, channel, 0, opcode, length);
	run(demo);
	demo->operations++;
	if (channel != demo->rc && channel != demo->xrc &&
	    !demo->world->model.requests[request].delivered) {
		demo->undelivered++;
		puts("              The link ate it: the sender is not told, the receiver's buffer waits for the next one.");
	}
}

static void show_messages(struct demo *demo)
{
	show_request(
		demo, demo->rc, "RC: SEND",
		"Three packets into the receive that node 1 has posted. Every loss is noticed and made good.",
		VB_WR_SEND, 2500);
	show_request(demo, demo->rc, "RC: SEND with immediate",
		     "The receiver's completion carries 32 bits of the sender's.", VB_WR_SEND_IMM,
		     300);
	show_request(
		demo, demo->rc, "RC: WRITE",
		"Straight into node 1's memory, which is checked for key, range and rights. No completion there.",
		VB_WR_WRITE, 4000);
	show_request(demo, demo->rc, "RC: WRITE with immediate",
		     "The same, and a receive completes when all of it is in place.",
		     VB_WR_WRITE_IMM, 1500);
	show_request(
		demo, demo->rc, "RC: READ",
		"Node 1's adapter answers by itself. A missing response is asked for again, from where it is missing.",
		VB_WR_READ, 4000);
}

static void show_atomics(struct demo *demo)
{
	show_request(demo, demo->rc, "RC: FETCH_ADD",
		     "Happens exactly once: if the answer gets lost, the saved one is sent again.",
		     VB_WR_FETCH_ADD, 8);
	show_request(demo, demo->rc, "RC: COMPARE_SWAP", "Likewise.", VB_WR_COMPARE_SWAP, 8);
	show_request(demo, demo->rc, "RC: ATOMIC_WRITE", "Eight bytes in one piece.",
		     VB_WR_ATOMIC_WRITE, 8);
}

static void show_windows(struct demo *demo)
{
	explain(demo, "RC: BIND_MW",
		"Node 1 opens a window on its memory, without a packet, under a new key.");
	vb_window_bind(demo->world, demo->rc, 1);
	run(demo);
	demo->operations++;
	show_request(demo, demo->rc, "RC: SEND with invalidate",
		     "The message closes that window: its key is worthless from now on.",
		     VB_WR_SEND_INV, 100);
	explain(demo, "RC: LOCAL_INV", "Node 0 opens a window and closes it again itself.");
	vb_window_bind(demo->world, demo->rc, 0);
	run(demo);
	vb_pair_post(demo->world, demo->rc, 0, VB_WR_LOCAL_INV, 0);
	run(demo);
	demo->operations += 2;
}

static void show_other_types(struct demo *demo)
{
	show_request(
		demo, demo->xrc, "XRC: SEND",
		"The message names the shared receive queue that it goes to; reliable as RC is.",
		VB_WR_SEND, 1500);
	show_request(demo, demo->uc, "UC: SEND",
		     "Unreliable: a message arrives whole or not at all. Nothing is acknowledged.",
		     VB_WR_SEND, 2500);
	show_request(
		demo, demo->uc, "UC: WRITE with immediate",
		"Into remote memory without an acknowledgement: the immediate tells that it came.",
		VB_WR_WRITE_IMM, 2000);
	show_request(demo, demo->ud, "UD: SEND",
		     "A datagram to any QP, here with its 40 bytes of GRH in front.", VB_WR_SEND,
		     500);
	show_request(demo, demo->ud, "UD: SEND with immediate",
		     "As long as a datagram can be: one packet of the port's MTU.", VB_WR_SEND_IMM,
		     4096);
}

static void connect_all(struct demo *demo)
{
	struct vb_fault_plan *faults = &demo->world->fabric.faults;

	faults->packets.end_ns = UINT64_MAX;
	faults->loss = 1500;
	faults->duplicate = 400;
	faults->mood = VB_MOOD_HOSTILE;
	demo->rc = vb_pair_connect(demo->world, VB_QP_RC, MTU);
	demo->uc = vb_pair_connect(demo->world, VB_QP_UC, MTU);
	demo->ud = vb_pair_connect(demo->world, VB_QP_UD, MTU);
	demo->xrc = vb_pair_connect(demo->world, VB_QP_XRC_SEND, MTU);
}

static int conclude(struct demo *demo)
{
	vb_world_finish(demo->world);
	if (*vb_world_violation(demo->world)) {
		printf("\nA rule was broken: %s\n", vb_world_violation(demo->world));
		return 1;
	}
	printf("\n%" PRIu32 " operations, %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64
	       " sent again; all data, completions and atomics verified.\n",
	       demo->operations, demo->ladder.packets, demo->ladder.lost, demo->ladder.repeated);
	if (demo->undelivered)
		printf("%" PRIu32 " unreliable message(s) did not arrive, as they may.\n",
		       demo->undelivered);
	puts("\nNext: `verbatim sim --seeds 200` lets random programs run on up to four adapters with every kind of\n"
	     "fault and checks every rule; `verbatim sim --seed 7 --verbose` shows one such world packet by packet.");
	return 0;
}

int command_demo(int argc, char **argv)
{
	struct demo demo = { 0 };
	int status;

	if (argc > 1) {
		puts("usage: verbatim demo\n\n"
		     "Two adapters in the simulator exchange every operation over a lossy link; prints the ladder of packets.");
		return strcmp(argv[1], "--help") && strcmp(argv[1], "-h") ? 2 : 0;
	}
	demo.world = vb_pair_create(SEED);
	connect_all(&demo);
	puts("Two RDMA adapters, joined by a link that loses about every seventh packet and repeats some.\n"
	     "A rung is a packet, drawn when it is sent; it arrives 1 us later. X is where one gets lost.");
	show_messages(&demo);
	show_atomics(&demo);
	show_windows(&demo);
	show_other_types(&demo);
	status = conclude(&demo);
	vb_world_destroy(demo.world);
	return status;
}
