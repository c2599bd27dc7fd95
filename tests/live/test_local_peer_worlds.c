/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds of a few adapters that meet, talk, lose their descriptors, die and come again, in an order
 * that a seed decides. All are in one process and one thread, with real mailboxes and rings. At any
 * time, what is received was sent by the adapter with that number, once and in order. At rest all
 * have met, both ends of each shared-memory link agree, and nothing is lost, however often a ring
 * is filled.
 */
#include "support_link.h"

#include "base/prng.h"
#include "host/local/local_peer_priv.h"
#include "host/registry/port_member_priv.h"
#include "nic/nic.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { STATIONS = 3, STEPS = 300, FRAMES = 16, CALM = 200, PACKET = 700 };

struct station {
	uint32_t number;
	struct vb_nic *nic;
	uint8_t *tables;
	struct vb_port_member *member;
	struct vb_local_peers *peers;
	uint32_t sent[STATIONS]; /* the last that was sent to each … */
	uint32_t received[STATIONS]; /* … and came from each */
};

static struct station stations[STATIONS];
static struct vb_prng prng;

/* The content of a packet. */
struct note {
	uint32_t from, to, sequence;
};

/* --- stations --- */

static size_t tables_size(void)
{
	return VB_EXPORT_KEY_ROWS * sizeof(struct vb_key_row) +
	       VB_EXPORT_QP_ROWS * sizeof(struct vb_qp_row);
}

static void make_engine(struct station *station)
{
	struct vb_nic_config config = {
		.key_row_count = VB_EXPORT_KEY_ROWS,
		.qp_row_count = VB_EXPORT_QP_ROWS,
		.seed = 1,
		.qpn_first = 2,
	};

	station->tables = mmap(NULL, tables_size(), PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	EXPECT(station->tables != MAP_FAILED);
	config.key_rows = (void *)station->tables;
	config.qp_rows = (void *)(config.key_rows + VB_EXPORT_KEY_ROWS);
	EXPECT_EQ(vb_nic_create(&config, &station->nic), VB_OK);
}

static void plug_in(struct station *station)
{
	struct vb_mail_user user = vb_mail_user();
	struct vb_mail_name name = vb_port_member_name(&user, station->number);

	station->member = calloc(1, sizeof(*station->member));
	EXPECT(station->member);
	station->member->number = station->number;
	station->member->user = user;
	station->member->box = vb_mail_open(&user, VB_MAIL_CONNECTIONS);
	EXPECT(vb_mail_claim(station->member->box, &name));
	EXPECT_EQ(vb_local_peers_plug_in(station->peers, station->member), VB_OK);
}

static void unplug(struct station *station)
{
	vb_local_peers_unplug(station->peers);
	vb_mail_close(station->member->box);
	free(station->member);
}

static void begin_station(struct station *station, uint32_t number)
{
	station->number = number;
	make_engine(station);
	EXPECT_EQ(vb_local_peers_create(station->nic, 0, &station->peers), VB_OK);
	plug_in(station);
}

static void end_station(struct station *station)
{
	unplug(station);
	vb_local_peers_destroy(station->peers);
	EXPECT_EQ(vb_nic_destroy(station->nic), VB_OK);
	munmap(station->tables, tables_size());
}

/* --- events --- */

static void meet(struct station *station, uint32_t number)
{
	if (vb_prng_below(&prng, 2)) /* time has passed */
		station->peers->table[number].asked_ns = 0;
	(void)vb_local_peer_request_link(station->peers, number);
}

static bool take_mail(struct station *station)
{
	uint8_t bytes[256];
	struct vb_mail mail;
	uint32_t kind;

	if (!vb_mail_receive(station->member->box, bytes, sizeof(bytes), &mail))
		return false;
	memcpy(&kind, bytes, sizeof(kind));
	vb_local_peers_on_mail(station->peers, kind, bytes, &mail);
	vb_mail_close_fds(&mail);
	return true;
}

static bool send_to(struct station *station, uint32_t to)
{
	static struct vb_slot slot;
	struct note note = { station->number, to, station->sent[to] + 1 };

	slot = (struct vb_slot){ .head_length = PACKET, .length = PACKET };
	memcpy(slot.head, &note, sizeof(note));
	if (!vb_local_peer_is_open(station->peers, to) ||
	    !vb_local_peer_send(station->peers, to, &slot))
		return false;
	station->sent[to]++;
	return true;
}

/* The note is later than the last one, from that station, to this one, and already sent. */
static void expect_note(struct station *station, const struct vb_frame *frame)
{
	struct note note;

	EXPECT_EQ(frame->head.length, PACKET);
	memcpy(&note, frame->head.data, sizeof(note));
	EXPECT(note.from < STATIONS && note.to == station->number);
	EXPECT(note.sequence > station->received[note.from]);
	EXPECT(note.sequence <= stations[note.from].sent[station->number]);
	station->received[note.from] = note.sequence;
}

static bool receive(struct station *station)
{
	struct vb_frame frames[FRAMES];
	uint32_t count = vb_local_peers_receive(station->peers, frames, FRAMES);

	for (uint32_t i = 0; i < count; i++)
		expect_note(station, &frames[i]);
	vb_local_peers_release(station->peers);
	return count;
}

static void lose_descriptors(struct station *station)
{
	unplug(station);
	plug_in(station);
}

/*
 * The mark is what the kernel leaves of a process. The successor knows nothing, and continues the
 * packet numbers from there.
 */
static void die_and_come_again(struct station *station)
{
	_Atomic uint32_t *mark = (void *)&station->peers->block->head.mark;

	atomic_store(mark, FUTEX_OWNER_DIED);
	end_station(station);
	begin_station(station, station->number);
}

static void step(void)
{
	struct station *station = &stations[vb_prng_below(&prng, STATIONS)];
	uint32_t other = (station->number + 1 + (uint32_t)vb_prng_below(&prng, STATIONS - 1)) %
			 STATIONS;

	switch (vb_prng_below(&prng, 40)) {
	case 0:
		lose_descriptors(station);
		break;
	case 1:
		die_and_come_again(station);
		break;
	case 2:
	case 3:
		vb_local_peers_close_gone(station->peers);
		break;
	case 4:
		vb_local_peers_offer_again(station->peers);
		break;
	case 5:
	case 6:
		(void)vb_local_peers_begin_sleep(station->peers);
		vb_local_peers_end_sleep(station->peers);
		break;
	case 7 ... 11:
		meet(station, other);
		break;
	case 12 ... 20:
		(void)take_mail(station);
		break;
	case 21 ... 26:
		(void)receive(station);
		break;
	default:
		(void)send_to(station, other);
		vb_local_peers_flush(station->peers);
	}
}

/* --- rest --- */

static bool look_at_all(void)
{
	bool has_moved = false;

	for (uint32_t i = 0; i < STATIONS; i++) {
		has_moved |= take_mail(&stations[i]);
		has_moved |= receive(&stations[i]);
	}
	return has_moved;
}

/* A second passes between two tries, as far as the stations know. */
static void come_to_rest(void)
{
	for (uint32_t tries = 0; tries < 4; tries++) {
		for (uint32_t i = 0; i < STATIONS * STATIONS; i++) {
			struct station *station = &stations[i / STATIONS];

			if (i / STATIONS == i % STATIONS)
				continue;
			station->peers->table[i % STATIONS].asked_ns = 0;
			(void)vb_local_peer_request_link(station->peers, i % STATIONS);
		}
		while (look_at_all())
			;
	}
}

static void expect_all_have_met(void)
{
	for (uint32_t i = 0; i < STATIONS; i++)
		for (uint32_t k = 0; k < STATIONS; k++) {
			const struct vb_local_peer *near = &stations[i].peers->table[k];
			const struct vb_local_peer *far = &stations[k].peers->table[i];

			if (i == k)
				continue;
			EXPECT_EQ(near->state, VB_LOCAL_PEER_OPEN);
			EXPECT_EQ(near->out_ring, far->in_ring);
			EXPECT_EQ(near->incarnation, stations[k].peers->block->head.incarnation);
		}
}

/* Sends more than a ring holds, so that it is full in between. */
static void expect_nothing_is_lost(void)
{
	for (uint32_t i = 0; i < STATIONS; i++) {
		uint32_t to = (i + 1) % STATIONS;
		uint32_t before = stations[to].received[i] = stations[i].sent[to];
		uint32_t full_count = 0;

		for (uint32_t n = 0; n < 3 * CALM;) {
			bool is_sent = send_to(&stations[i], to);

			n += is_sent;
			full_count += !is_sent;
			if (!is_sent)
				EXPECT(receive(&stations[to]));
		}
		while (receive(&stations[to]))
			;
		EXPECT_EQ(stations[to].received[i], before + 3 * CALM);
		EXPECT(full_count > 0);
	}
}

TEST(adapters_that_come_and_go_meet_again_and_lose_nothing_at_rest)
{
	uint64_t seeds = test_is_thorough() ? 300 : 25;

	enter_own_network();
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		vb_prng_init(&prng, seed);
		memset(stations, 0, sizeof(stations));
		for (uint32_t i = 0; i < STATIONS; i++)
			begin_station(&stations[i], i);
		for (uint32_t i = 0; i < STEPS; i++)
			step();
		come_to_rest();
		expect_all_have_met();
		expect_nothing_is_lost();
		for (uint32_t i = 0; i < STATIONS; i++)
			end_station(&stations[i]);
	}
}

/* That holds however recent the last offer is. */
TEST(an_adapter_with_new_descriptors_offers_them_at_once)
{
	enter_own_network();
	for (uint32_t i = 0; i < STATIONS; i++)
		begin_station(&stations[i], i);
	for (uint32_t i = 0; i < STATIONS; i++)
		(void)vb_local_peer_request_link(stations[i].peers, (i + 1) % STATIONS);
	while (look_at_all())
		;
	expect_all_have_met();
	lose_descriptors(&stations[1]);
	while (look_at_all())
		;
	expect_all_have_met();
}

static void set_descriptors_max(rlim_t max)
{
	struct rlimit limit;

	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = max;
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Otherwise each datagram to itself would try once more. */
TEST(an_adapter_that_cannot_open_a_link_to_itself_says_why_and_waits_before_it_tries_again)
{
	struct station *station = &stations[0];
	struct rlimit limit;

	enter_own_network();
	begin_station(station, 0);
	EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	set_descriptors_max(0);
	EXPECT_EQ(vb_local_peer_request_link(station->peers, 0), VB_LOCAL_PEER_ABSENT);
	set_descriptors_max(limit.rlim_cur);
	EXPECT(strstr(vb_local_peer_describe(station->peers, 0), "ulimit -n"));
	EXPECT_EQ(vb_local_peer_request_link(station->peers, 0), VB_LOCAL_PEER_ABSENT);
	station->peers->table[0].asked_ns = 0; /* time has passed */
	EXPECT_EQ(vb_local_peer_request_link(station->peers, 0), VB_LOCAL_PEER_OPEN);
	end_station(station);
}

static void set_address_space_max(rlim_t max)
{
	struct rlimit limit;

	EXPECT_EQ(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = max;
	EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

/* Otherwise the adapter that made the offer would wait for the answer. */
TEST(an_adapter_that_has_no_memory_for_a_new_ring_of_a_peer_refuses_it)
{
	enter_own_network();
	for (uint32_t i = 0; i < STATIONS; i++)
		begin_station(&stations[i], i);
	come_to_rest();
	expect_all_have_met();
	vb_local_peer_close(stations[0].peers, 1);
	stations[0].peers->table[1].asked_ns = 0;
	EXPECT_EQ(vb_local_peer_request_link(stations[0].peers, 1), VB_LOCAL_PEER_ASKED);
	set_address_space_max(0);
	EXPECT(take_mail(&stations[1]));
	set_address_space_max(RLIM_INFINITY);
	EXPECT(take_mail(&stations[0]));
	EXPECT(strstr(vb_local_peer_describe(stations[0].peers, 1), "no shared memory"));
	EXPECT(strstr(vb_local_peer_describe(stations[1].peers, 0), "no memory"));
}
