/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every operation on RC against all drops and duplications of up to two of its first eight packets,
 * counted over both directions: it completes with success, exactly once, with the right data.
 */
#include "harness.h"

#include "sim/pair.h"
#include "sim/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PACKETS 8
#define HARMED_MAX 2
#define MTU 256

struct scenario {
	enum vb_wr_opcode opcode;
	uint32_t length;
	bool binds_peer; /* a window of the other end is bound before */
	bool binds_own; /* a window of its own end is bound before */
	bool sends_after; /* a SEND of that length follows */
	uint32_t sends_length;
};

static void describe(const enum vb_packet_fate *script, char text[PACKETS + 1])
{
	for (uint32_t i = 0; i < PACKETS; i++)
		text[i] = (char)(script[i] == VB_FATE_DELIVERED ? '.'
				 : script[i] == VB_FATE_LOST	? 'L'
								: 'D');
	text[PACKETS] = '\0';
}

static void expect_fine(struct vb_world *world, const enum vb_packet_fate *script)
{
	char text[PACKETS + 1];

	if (!*vb_world_violation(world))
		return;
	describe(script, text);
	FAIL("fates %s: %s", text, vb_world_violation(world));
}

static void expect_done(struct vb_world *world, uint32_t request, const enum vb_packet_fate *script)
{
	char text[PACKETS + 1];

	if (vb_pair_is_done(world, request))
		return;
	describe(script, text);
	FAIL("fates %s: request %" PRIu32 " has status %s", text, request,
	     request < world->model.request_count
		     ? vb_status_describe(world->model.requests[request].status)
		     : "not posted");
}

static void run(const struct scenario *scenario, const enum vb_packet_fate script[PACKETS])
{
	struct vb_world *world = vb_pair_create(7);
	struct vb_channel *channel = vb_pair_connect(world, VB_QP_RC, MTU);
	uint32_t request, after = VB_MODEL_NONE;

	if (scenario->binds_peer)
		vb_window_bind(world, channel, 1);
	if (scenario->binds_own)
		vb_window_bind(world, channel, 0);
	vb_pair_post_receives(world, channel, 0, 4);
	vb_world_run(world);
	expect_fine(world, script);
	memcpy(world->fabric.faults.script, script, PACKETS * sizeof(*script));
	world->fabric.faults.script_length = PACKETS;
	request = scenario->opcode == VB_WR_BIND_MW
			  ? world->model.request_count
			  : vb_pair_post(world, channel, 0, scenario->opcode, scenario->length);
	if (scenario->opcode == VB_WR_BIND_MW)
		vb_window_bind(world, channel, 0);
	if (scenario->sends_after)
		after = vb_pair_post(world, channel, 0, VB_WR_SEND, scenario->sends_length);
	vb_world_run(world);
	expect_fine(world, script);
	expect_done(world, request, script);
	if (scenario->sends_after)
		expect_done(world, after, script);
	vb_world_finish(world);
	expect_fine(world, script);
	vb_world_destroy(world);
}

/* All combinations of faults of up to `left` packets from `at` on. */
static void try_all(const struct scenario *scenario, enum vb_packet_fate *script, uint32_t at,
		    uint32_t left)
{
	run(scenario, script);
	for (uint32_t i = at; left && i < PACKETS; i++) {
		script[i] = VB_FATE_LOST;
		try_all(scenario, script, i + 1, left - 1);
		script[i] = VB_FATE_DUPLICATED;
		try_all(scenario, script, i + 1, left - 1);
		script[i] = VB_FATE_DELIVERED;
	}
}

static void exhaust(struct scenario scenario)
{
	enum vb_packet_fate script[PACKETS] = { VB_FATE_DELIVERED };

	try_all(&scenario, script, 0, HARMED_MAX);
}

TEST(send_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND, .length = 200 });
}

TEST(send_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND, .length = 700 });
}

TEST(empty_send_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND });
}

TEST(send_imm_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND_IMM, .length = 200 });
}

TEST(send_imm_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND_IMM, .length = 700 });
}

TEST(send_inv_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND_INV, .length = 200, .binds_peer = true });
}

TEST(send_inv_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_SEND_INV, .length = 700, .binds_peer = true });
}

TEST(write_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_WRITE, .length = 200 });
}

TEST(write_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_WRITE, .length = 700 });
}

TEST(write_imm_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_WRITE_IMM, .length = 200 });
}

TEST(write_imm_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_WRITE_IMM, .length = 700 });
}

TEST(read_of_one_packet_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_READ, .length = 200 });
}

TEST(read_of_three_packets_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_READ, .length = 700 });
}

TEST(read_and_send_behind_it_survive_any_two_faults)
{
	exhaust((struct scenario){
		.opcode = VB_WR_READ, .length = 700, .sends_after = true, .sends_length = 300 });
}

TEST(compare_swap_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_COMPARE_SWAP, .length = 8 });
}

TEST(fetch_add_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_FETCH_ADD, .length = 8 });
}

TEST(fetch_add_and_send_behind_it_survive_any_two_faults)
{
	exhaust((struct scenario){
		.opcode = VB_WR_FETCH_ADD, .length = 8, .sends_after = true, .sends_length = 300 });
}

TEST(atomic_write_survives_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_ATOMIC_WRITE, .length = 8 });
}

TEST(bind_and_send_of_one_packet_survive_any_two_faults)
{
	exhaust((struct scenario){
		.opcode = VB_WR_BIND_MW, .sends_after = true, .sends_length = 200 });
}

TEST(bind_and_send_of_three_packets_survive_any_two_faults)
{
	exhaust((struct scenario){
		.opcode = VB_WR_BIND_MW, .sends_after = true, .sends_length = 700 });
}

TEST(local_inv_and_send_of_one_packet_survive_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_LOCAL_INV,
				   .binds_own = true,
				   .sends_after = true,
				   .sends_length = 200 });
}

TEST(local_inv_and_send_of_three_packets_survive_any_two_faults)
{
	exhaust((struct scenario){ .opcode = VB_WR_LOCAL_INV,
				   .binds_own = true,
				   .sends_after = true,
				   .sends_length = 700 });
}
