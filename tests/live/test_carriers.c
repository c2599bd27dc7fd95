/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every carrier must do. The same traffic runs over each of them: two engines exchange
 * messages of all lengths, and every byte is checked. A new carrier adds a row here.
 */
#include "support_cable.h"
#include "support_carriers.h"
#include "support_pipe.h"
#include "support_verbs.h"

#include "host/local/local_peer.h"
#include "host/memory/dma.h"
#include "host/port/carrier_shm.h"
#include "host/port/carrier_udp.h"
#include "host/port/tap.h"
#include "host/registry/port_member.h"
#include "link/udp.h"
#include "nic/peer_memory.h"

#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum { SEEDS = 20, MEETING_TURNS = 100000, SOURCES = 4, CUT_ONE_OF = 300, LONGEST = 9622 };

/* --- UDP --- */

static struct udp_end {
	struct vb_port_member *member;
	struct vb_udp *udp;
	struct vb_carrier_udp *wire;
} udp_ends[2];

/* Both ends are port members of one host, which has one address. */
static void prepare_udp(struct carrier_ends *ends)
{
	static const struct vb_gid gid = { { [10] = 0xff, 0xff, 10, 0, 0, 1 } };

	for (uint32_t i = 0; i < 2; i++) {
		struct udp_end *own = &udp_ends[i];
		struct vb_nic_config *config = &ends->end[i].config;
		struct vb_udp_config udp = { .source_count = SOURCES, .is_segmenting = true };

		MUST(vb_port_member_join(1 << 20, &own->member));
		udp.receiver = vb_port_member_receiver(own->member);
		udp.ifindex = if_nametoindex("d0");
		MUST(vb_udp_open(&udp, &own->udp));
		vb_port_member_steer(own->udp, vb_port_member_number(own->member));
		ends->end[i].gid = gid;
		config->framing.icrc_mode = VB_ICRC_SOLVED;
		config->qpn_first =
			(vb_port_member_number(own->member) << VB_PORT_MEMBER_QPN_SHIFT) + 2;
		config->framing.batch_qpn_mask = VB_PORT_MEMBER_QPN_MASK
						 << VB_PORT_MEMBER_QPN_SHIFT;
		config->source_port_count = SOURCES;
		for (uint32_t k = 0; k < SOURCES; k++)
			config->source_ports[k] = vb_udp_source_port(own->udp, k);
	}
}

static void open_udp(struct carrier_ends *ends)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct udp_end *own = &udp_ends[i];

		MUST(vb_carrier_udp_create(ends->end[i].nic, own->udp, own->member, &own->wire));
		ends->end[i].parts.wire = vb_carrier_udp_base(own->wire);
		ends->end[i].parts.member = own->member;
	}
}

static void close_udp(struct carrier_ends *ends)
{
	(void)ends;
	for (uint32_t i = 0; i < 2; i++) {
		vb_carrier_udp_destroy(udp_ends[i].wire);
		vb_udp_close(udp_ends[i].udp);
		vb_port_member_leave(udp_ends[i].member);
	}
}

/* --- shared memory; the ends meet by mail --- */

static struct vb_local_peers *peers[2];
static struct vb_carrier_shm shm[2];

static void open_shm(struct carrier_ends *ends)
{
	open_udp(ends);
	for (uint32_t i = 0; i < 2; i++) {
		MUST(vb_local_peers_create(ends->end[i].nic, if_nametoindex("d0"), &peers[i]));
		MUST(vb_local_peers_plug_in(peers[i], udp_ends[i].member));
		vb_port_member_set_taker(udp_ends[i].member, vb_local_peers_take_member_mail,
					 peers[i]);
		vb_carrier_shm_init(&shm[i], peers[i]);
		ends->end[i].parts.peers = peers[i];
		ends->end[i].parts.links = &shm[i].carrier;
	}
}

static bool have_met(void)
{
	bool is_open = true;

	for (uint32_t i = 0; i < 2; i++)
		is_open &= vb_local_peer_request_link(peers[i],
						      vb_port_member_number(udp_ends[!i].member)) ==
			   VB_LOCAL_PEER_OPEN;
	return is_open;
}

static void attach_shm(struct carrier_ends *ends)
{
	uint32_t turns = 0;

	for (uint32_t i = 0; i < 2; i++)
		vb_local_peers_hold_mark(peers[i]);
	while (!have_met()) {
		EXPECT(++turns < MEETING_TURNS);
		carrier_ends_turn(ends);
	}
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < CARRIER_QPS; k++) {
			vb_local_peer_attach_qp(peers[i],
						vb_port_member_number(udp_ends[!i].member),
						ends->end[i].qps[k]);
			EXPECT(vb_qp_link(ends->end[i].qps[k]));
		}
}

static void close_shm(struct carrier_ends *ends)
{
	for (uint32_t i = 0; i < 2; i++) {
		vb_local_peers_unplug(peers[i]);
		vb_local_peers_destroy(peers[i]);
	}
	close_udp(ends);
}

/* --- a cable inside this process --- */

static struct cable *cable;

static void open_cable(struct carrier_ends *ends)
{
	struct vb_carrier *carriers[2];

	cable = cable_open(ends->seed, carriers);
	for (uint32_t i = 0; i < 2; i++)
		ends->end[i].parts.wire = carriers[i];
}

static void close_cable(struct carrier_ends *ends)
{
	(void)ends;
	cable_close(cable);
}

/* --- a byte pipe for each QP, inside this process --- */

static struct pipes *pipes;
static struct vb_prng cuts;

static void open_pipes(struct carrier_ends *ends)
{
	struct vb_nic *nics[2] = { ends->end[0].nic, ends->end[1].nic };
	struct vb_carrier *carriers[2];

	open_cable(ends); /* for the wire */
	pipes = pipes_create(ends->seed, nics, carriers);
	vb_prng_init(&cuts, ends->seed);
	for (uint32_t i = 0; i < 2; i++)
		ends->end[i].parts.links = carriers[i];
}

static void attach_pipes(struct carrier_ends *ends)
{
	for (uint32_t k = 0; k < CARRIER_QPS; k++) {
		pipes_open(pipes, 1 + k);
		for (uint32_t i = 0; i < 2; i++)
			vb_qp_set_stream(ends->end[i].qps[k], 1 + k);
	}
}

/* Now and then, a pipe is cut and opened again. */
static void cut_a_pipe(struct carrier_ends *ends)
{
	uint32_t link = 1 + (uint32_t)vb_prng_below(&cuts, CARRIER_QPS);

	(void)ends;
	if (vb_prng_below(&cuts, CUT_ONE_OF))
		return;
	pipes_close(pipes, link);
	pipes_open(pipes, link);
}

static void close_pipes(struct carrier_ends *ends)
{
	pipes_destroy(pipes);
	close_cable(ends);
}

/* --- the rows --- */

static const struct carrier_row rows[] = {
	{ "UDP", .may_lose = true, .prepare = prepare_udp, .open = open_udp, .close = close_udp },
	{ "shared memory", .prepare = prepare_udp, .open = open_shm, .attach = attach_shm,
	  .close = close_shm },
	{ "cable", .open = open_cable, .close = close_cable },
	{ "pipe", .open = open_pipes, .attach = attach_pipes, .close = close_pipes },
};

#define FOR_EACH_ROW(row) \
	for (const struct carrier_row *row = rows; row < rows + sizeof(rows) / sizeof(*rows); row++)

/* Once for the process. */
static void begin(void)
{
	static bool has_begun;

	if (has_begun)
		return;
	has_begun = true;
	MUST(vb_dma_install());
	program_enter_namespace();
}

TEST(each_carrier_delivers_every_byte)
{
	begin();
	FOR_EACH_ROW(row)
	{
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct carrier_ends *ends = carrier_ends_open(row, seed);

			carrier_ends_exchange(row, ends);
			carrier_ends_close(row, ends);
		}
	}
}

TEST(no_packet_is_repeated_on_a_carrier_that_loses_none)
{
	begin();
	FOR_EACH_ROW(row)
	{
		struct carrier_ends *ends;

		if (row->may_lose)
			continue;
		ends = carrier_ends_open(row, 1);
		carrier_ends_exchange(row, ends);
		EXPECT_EQ(carrier_ends_repetitions(ends), 0);
		carrier_ends_close(row, ends);
	}
}

/* A raw frame with a head and application memory, for a QP of the other end. */
static void fill_long(const struct carrier_ends *ends, struct vb_slot *slot, uint32_t link)
{
	vb_qpn qpn = vb_qp_number(ends->end[1].qps[0]);

	*slot = (struct vb_slot){
		.path.ip = { .source = ends->end[0].gid,
			     .destination = ends->end[1].gid,
			     .source_port = ends->end[0].config.source_ports[0],
			     .hop_limit = 64 },
		.head_length = VB_BTH_SIZE,
		.path.link = (uint16_t)link,
		.span_count = 1,
		.spans = { { (uintptr_t)ends->end[0].source, LONGEST - VB_BTH_SIZE } },
		.length = LONGEST,
	};
	slot->head[5] = (uint8_t)(qpn.v >> 16);
	slot->head[6] = (uint8_t)(qpn.v >> 8);
	slot->head[7] = (uint8_t)qpn.v;
	for (uint32_t i = 0; i < LONGEST - VB_BTH_SIZE; i++)
		ends->end[0].source[i] = (uint8_t)(i * 13 + (i >> 8));
}

static struct vb_frame carry(struct vb_carrier *from, struct vb_carrier *to, struct vb_slot *slot)
{
	struct vb_frame frames[VB_CARRIER_BATCH];
	uint32_t tries = 0, sent = 0;

	for (;;) {
		EXPECT(++tries < MEETING_TURNS);
		if (!sent)
			sent = from->type->send(from, slot, 1);
		from->type->flush(from);
		if (to->type->receive(to, tries, VB_CARRIER_GLANCE, frames, VB_CARRIER_BATCH))
			return frames[0];
	}
}

TEST(each_carrier_takes_frames_of_9622_bytes)
{
	static struct vb_slot slot;

	begin();
	FOR_EACH_ROW(row)
	{
		struct carrier_ends *ends = carrier_ends_open(row, 1);
		const struct vb_port_parts *from = &ends->end[0].parts;
		const struct vb_port_parts *to = &ends->end[1].parts;
		struct vb_carrier *carrier = to->links ? to->links : to->wire;
		struct vb_frame frame;

		EXPECT(carrier->type->frame_length_max >= LONGEST);
		fill_long(ends, &slot, to->links ? vb_qp_link(ends->end[0].qps[0]) : 0);
		frame = carry(from->links ? from->links : from->wire, carrier, &slot);
		EXPECT_EQ(frame.head.length, LONGEST);
		EXPECT(!memcmp(frame.head.data + VB_BTH_SIZE, ends->end[0].source,
			       LONGEST - VB_BTH_SIZE));
		carrier->type->release(carrier);
		carrier_ends_close(row, ends);
	}
}

static const struct carrier_row *row_named(const char *name)
{
	FOR_EACH_ROW(row)
	{
		if (!strcmp(row->name, name))
			return row;
	}
	FAIL("no row %s", name);
}

TEST(what_a_carrier_has_no_room_for_is_offered_again)
{
	const struct carrier_row *row = row_named("cable");
	struct carrier_ends *ends;

	begin();
	ends = carrier_ends_open(row, 7);
	carrier_ends_exchange(row, ends);
	EXPECT(cable_refused(cable) > 100);
	EXPECT_EQ(carrier_ends_repetitions(ends), 0);
	carrier_ends_close(row, ends);
}

/* The retries of the port are its deadline, and cost no QP anything. */
TEST(a_wire_without_room_holds_up_nothing_but_itself)
{
	const struct carrier_row *row = row_named("cable");
	struct carrier_ends *ends;
	uint64_t sent;

	begin();
	ends = carrier_ends_open(row, 3);
	cable_shut(cable, true);
	carrier_ends_post(ends);
	carrier_ends_turn(ends);
	sent = vb_nic_counters(ends->end[0].nic)->counts[VB_COUNTER_TX_PACKETS];
	EXPECT(sent > 0 && sent <= VB_CARRIER_BATCH);
	EXPECT(vb_port_deadline(ends->end[0].port) <= ends->now_ns + 20 * CARRIER_TURN_NS);
	for (uint32_t i = 0; i < 1000; i++)
		carrier_ends_turn(ends);
	EXPECT_EQ(vb_nic_counters(ends->end[0].nic)->counts[VB_COUNTER_TX_PACKETS], sent);
	cable_shut(cable, false);
	carrier_ends_complete(row, ends);
	EXPECT_EQ(carrier_ends_repetitions(ends), 0);
	carrier_ends_close(row, ends);
}

/* A slot that is held must not depend on memory that its program may free meanwhile. */
TEST(held_packets_keep_their_bytes)
{
	const struct carrier_row *row = row_named("cable");
	struct carrier_ends *ends;

	begin();
	ends = carrier_ends_open(row, 5);
	cable_shut(cable, true);
	carrier_ends_post(ends);
	carrier_ends_turn(ends);
	carrier_ends_scribble(ends);
	cable_shut(cable, false);
	for (uint32_t i = 0; i < 2000; i++)
		carrier_ends_turn(ends);
	for (uint32_t i = 0; i < 2; i++) {
		const struct vb_counters *counters = vb_nic_counters(ends->end[i].nic);

		EXPECT_EQ(counters->drops[VB_DROP_ICRC], 0);
		EXPECT(counters->counts[VB_COUNTER_RX_PACKETS] > 0);
	}
	carrier_ends_close(row, ends);
}

/* --- memory that vanishes between the engine and the carrier --- */

enum { PAGE = 4096 };

/* The page of the first packet of a batch, which comes right behind a shorter packet. */
struct vanishing {
	struct vb_tap tap;
	void *page; /* NULL: there was none yet */
};

static void *page_of(uint64_t address)
{
	return (void *)(uintptr_t)(address & ~(uint64_t)(PAGE - 1));
}

/* The other packets of the batch keep their memory, except those on the same page. */
static void vanish(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	struct vanishing *vanishing = owner;

	(void)now_ns;
	for (uint32_t i = 1; i + 1 < count && !vanishing->page; i++)
		if (!slots[i].continues && slots[i].span_count && slots[i + 1].continues &&
		    slots[i - 1].length < slots[i].length &&
		    page_of(slots[i].spans[0].address) != page_of(slots[i + 1].spans[0].address)) {
			vanishing->page = page_of(slots[i].spans[0].address);
			EXPECT_EQ(mprotect(vanishing->page, PAGE, PROT_NONE), 0);
		}
}

static void see_nothing(void *owner, uint64_t now_ns, const struct vb_frame *frames, uint32_t count)
{
	(void)owner, (void)now_ns, (void)frames, (void)count;
}

static void see_no_execution(void *owner, const struct vb_executed *parts, uint32_t count,
			     const uint8_t *bytes)
{
	(void)owner, (void)parts, (void)count, (void)bytes;
}

/* The cable expects what continues a batch right behind the packet before it. */
TEST(a_held_batch_whose_first_packet_vanished_is_lost_as_a_whole)
{
	struct vanishing vanishing = {
		.tap = { &vanishing, vanish, see_nothing, see_no_execution },
	};
	const struct carrier_row *row = row_named("cable");
	struct carrier_ends *ends;

	begin();
	ends = carrier_ends_open(row, 11);
	MUST(vb_port_add_tap(ends->end[0].port, &vanishing.tap));
	cable_shut(cable, true);
	carrier_ends_post(ends);
	carrier_ends_turn(ends);
	EXPECT(vanishing.page);
	EXPECT_EQ(mprotect(vanishing.page, PAGE, PROT_READ | PROT_WRITE), 0);
	vb_port_remove_tap(ends->end[0].port, &vanishing.tap);
	cable_shut(cable, false);
	carrier_ends_complete(row, ends);
	carrier_ends_close(row, ends);
}

/* The pages of all that slots point to. */
struct gone {
	uintptr_t first, end; /* 0, 0: none */
};

static void vanish_whole(void *owner, uint64_t now_ns, const struct vb_slot *slots, uint32_t count)
{
	struct gone *gone = owner;

	(void)now_ns;
	for (uint32_t i = 0; i < count; i++)
		for (uint32_t k = 0; k < slots[i].span_count; k++) {
			const struct vb_span *span = &slots[i].spans[k];
			uintptr_t first = (uintptr_t)page_of(span->address);
			uintptr_t end = (uintptr_t)page_of(span->address + span->length - 1) + PAGE;

			EXPECT_EQ(mprotect((void *)first, end - first, PROT_NONE), 0);
			if (!gone->first || first < gone->first)
				gone->first = first;
			if (end > gone->end)
				gone->end = end;
		}
}

static bool loses_without_memory(void *owner, const struct vb_slot *slot)
{
	(void)owner;
	return !slot->span_count;
}

static bool loses_nothing_received(void *owner, const struct vb_frame *frame)
{
	(void)owner, (void)frame;
	return false;
}

/* Nothing is held then that could be offered again, so nothing would tell that there is room. */
TEST(a_full_wire_whose_packets_have_all_vanished_opens_again)
{
	struct gone gone = { 0, 0 };
	struct vb_tap tap = { &gone, vanish_whole, see_nothing, see_no_execution };
	struct vb_fault_point faults = { NULL, loses_without_memory, loses_nothing_received };
	const struct carrier_row *row = row_named("cable");
	struct carrier_ends *ends;

	begin();
	ends = carrier_ends_open(row, 11);
	MUST(vb_port_add_tap(ends->end[0].port, &tap));
	vb_port_set_fault_point(ends->end[0].port, &faults);
	cable_shut(cable, true);
	carrier_ends_post(ends);
	carrier_ends_turn(ends);
	EXPECT(gone.first);
	EXPECT_EQ(mprotect((void *)gone.first, gone.end - gone.first, PROT_READ | PROT_WRITE), 0);
	vb_port_remove_tap(ends->end[0].port, &tap);
	vb_port_set_fault_point(ends->end[0].port, NULL);
	cable_shut(cable, false);
	carrier_ends_complete(row, ends);
	carrier_ends_close(row, ends);
}

enum { CROWD = VB_CARRIER_BATCH, CROWD_SGE = 10, CROWD_LEFT = 4 };

/* A packet of a batch with as many SGEs as one can have, all of them at `memory`. */
static void fill_crowded(const struct carrier_ends *ends, struct vb_slot *slot, uint32_t index,
			 const uint8_t *memory)
{
	fill_long(ends, slot, 0);
	slot->span_count = VB_SGE_MAX;
	for (uint32_t i = 0; i < VB_SGE_MAX; i++)
		slot->spans[i] = (struct vb_span){ (uintptr_t)memory, CROWD_SGE };
	slot->length = VB_BTH_SIZE + VB_SGE_MAX * CROWD_SGE;
	slot->continues = index > 0;
	slot->ip_id = (uint16_t)index;
}

/* More than a system call takes, if each SGE were given to the kernel by itself. */
TEST(packets_of_many_sges_whose_memory_vanished_are_lost_alone)
{
	static struct vb_slot slots[CROWD];
	const struct carrier_row *row = row_named("UDP");
	struct carrier_ends *ends;
	struct vb_carrier *from, *to;
	struct vb_frame frames[VB_CARRIER_BATCH];
	uint32_t arrived = 0, tries = 0;
	uint8_t *gone;

	begin();
	ends = carrier_ends_open(row, 1);
	from = ends->end[0].parts.wire;
	to = ends->end[1].parts.wire;
	gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(gone != MAP_FAILED);
	for (uint32_t i = 0; i < CROWD; i++)
		fill_crowded(ends, &slots[i], i,
			     i < CROWD - CROWD_LEFT ? gone : ends->end[0].source);
	EXPECT_EQ(from->type->send(from, slots, CROWD), CROWD);
	while (arrived < CROWD_LEFT) {
		EXPECT(++tries < MEETING_TURNS);
		arrived +=
			to->type->receive(to, tries, VB_CARRIER_GLANCE, frames, VB_CARRIER_BATCH);
		to->type->release(to);
	}
	EXPECT_EQ(arrived, CROWD_LEFT);
	EXPECT_EQ(munmap(gone, PAGE), 0);
	carrier_ends_close(row, ends);
}

TEST(frames_pass_a_pipe_in_pieces)
{
	const struct carrier_row *row = row_named("pipe");
	struct carrier_ends *ends;

	begin();
	ends = carrier_ends_open(row, 2);
	carrier_ends_exchange(row, ends);
	EXPECT(pipes_pieced(pipes) > 100);
	carrier_ends_close(row, ends);
}

TEST(a_pipe_that_is_cut_at_any_byte_loses_only_what_was_in_it)
{
	struct carrier_row row = *row_named("pipe");
	uint64_t torn = 0;

	begin();
	row.disturb = cut_a_pipe;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct carrier_ends *ends = carrier_ends_open(&row, seed);

		carrier_ends_exchange(&row, ends);
		torn += pipes_torn(pipes);
		carrier_ends_close(&row, ends);
	}
	EXPECT(torn > SEEDS);
}
