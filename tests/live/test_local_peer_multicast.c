/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast on an interface with a cable to another host. Each member gets each datagram once,
 * whether it has a shared-memory link to the sender, wants packets, is the sender itself or is on
 * the other host. That holds also while links open, senders are killed and others come with their
 * numbers, and readers are delayed. A member with a shared-memory link gets the datagram by it.
 */
#include "support_station.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_each_once(const char *address, const char *remote, const char *group)
{
	struct place here = { END_A, "auto", "vb_va", address, group };
	struct place wired = { END_A, "wire", "vb_va", address, group };
	struct place there = { END_B, "auto", "vb_vb", remote, group };
	enum { ALL = 0xf, COUNT = 6 * BURST };
	static struct station station;
	pid_t near, far, packets;
	struct counts before, own_before;
	uint32_t next;

	make_network();
	near = start_reader(1, here);
	packets = start_reader(2, wired);
	far = start_reader(3, there);
	open_station(&station, &here, SELF);
	next = send_until_by_shm_link(&station, ALL, near, 0);
	next = send_until_by_shm_link(&station, ALL, getpid(), next);
	before = ask_when_quiet(near, 1);
	own_before = ask_when_quiet(getpid(), SELF);
	for (uint32_t i = 1; i <= COUNT; i++) {
		send_note(&station, 0, next);
		if (i < 2 * BURST || !(i % BURST))
			await_note(&station, ALL, 0, next);
		next++;
	}
	EXPECT_EQ(ask_when_quiet(near, 1).received, before.received + COUNT);
	EXPECT_EQ(ask_when_quiet(getpid(), SELF).received, own_before.received + COUNT);
	EXPECT(!ask(packets).has_shm_links);
	for (uint32_t reader = 0; reader < READERS; reader++)
		expect_once(reader, 0, next);
	end_reader(near);
	end_reader(packets);
	end_reader(far);
}

TEST(every_member_gets_each_datagram_once_and_local_peers_by_shared_memory)
{
	expect_each_once("10.9.0.1", "10.9.0.2", "239.1.2.3");
}

TEST(every_member_gets_each_datagram_once_and_local_peers_by_shared_memory_over_ipv6)
{
	expect_each_once("fe80::1", "fe80::2", "ff12::123");
}

TEST(a_sender_that_wants_packets_reaches_members_by_them)
{
	struct place wired = { END_A, "wire", "vb_va", "10.9.0.1", "239.1.2.3" };
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { ALL = 7, COUNT = 20 };
	static struct station station;
	pid_t near, packets;

	make_network();
	near = start_reader(1, here);
	packets = start_reader(2, wired);
	open_station(&station, &wired, SELF);
	for (uint32_t i = 0; i < COUNT; i++) {
		send_note(&station, 0, i);
		await_note(&station, ALL, 0, i);
	}
	EXPECT_EQ(ask(near).received, 0);
	for (uint32_t reader = 0; reader < 3; reader++)
		expect_once(reader, 0, COUNT);
	end_reader(near);
	end_reader(packets);
}

TEST(local_peers_on_another_interface_or_in_another_group_get_nothing)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	struct place beside = { END_A, "auto", "vb_other", "10.8.0.1", "239.1.2.3" };
	struct place elsewhere = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.4" };
	enum { COUNT = 50, MEMBERS = 3 };
	static struct station station;
	pid_t near, other, apart;
	uint32_t next;

	make_network();
	enter_end(END_A);
	command("ip link add other type veth peer name unused");
	command("ip link set unused up");
	command("ip addr add 10.8.0.1/24 dev other");
	command("ip link set other up");
	near = start_reader(1, here);
	other = start_reader(2, beside);
	apart = start_reader(3, elsewhere);
	open_station(&station, &here, SELF);
	connect_to(&station, "10.8.0.1", board->qpn[2]);
	EXPECT(ask(getpid()).has_qp_on_shm_link);
	connect_to(&station, "10.9.0.1", board->qpn[3]);
	next = send_until_by_shm_link(&station, MEMBERS, near, 0);
	for (uint32_t i = 0; i < COUNT; i++, next++) {
		send_note(&station, 0, next);
		await_note(&station, MEMBERS, 0, next);
	}
	EXPECT_EQ(ask(other).received, 0);
	EXPECT_EQ(ask(apart).received, 0);
	for (uint32_t i = 0; i < next; i++)
		EXPECT_EQ(count_of(2, 0, i) + count_of(3, 0, i), 0);
	end_reader(near);
	end_reader(other);
	end_reader(apart);
}

/*
 * Waits for each reader's acknowledgment at first, then sends a little more, and dies in the middle
 * of that.
 */
static void run_short_life(uint32_t sender, const struct place *place, uint32_t acknowledged)
{
	static struct station station;
	pid_t child = fork_station();

	if (child) {
		EXPECT_EQ(waitpid(child, NULL, 0), child);
		return;
	}
	open_station(&station, place, NOBODY);
	for (uint32_t i = 0; i < acknowledged; i++) {
		send_note(&station, sender, i);
		await_note(&station, 6, sender, i);
	}
	for (uint32_t i = 0; i < sender; i++)
		send_note(&station, sender, acknowledged + i);
	kill(getpid(), SIGKILL);
}

/*
 * The senders have the same number among the members, and datagrams with the same PSNs, one after
 * the other.
 */
TEST(datagrams_of_senders_that_come_and_are_killed_arrive_once)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	struct place wired = { END_A, "wire", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { ACKNOWLEDGED = 60 };
	pid_t near, packets;

	make_network();
	near = start_reader(1, here);
	packets = start_reader(2, wired);
	for (uint32_t sender = 0; sender < SENDERS; sender++)
		run_short_life(sender, &here, ACKNOWLEDGED);
	enter_end(END_A);
	await_rest(near, 1);
	EXPECT(ask(near).received > 0);
	for (uint32_t reader = 1; reader < 3; reader++) {
		for (uint32_t sender = 0; sender < SENDERS; sender++)
			expect_once(reader, sender, ACKNOWLEDGED);
		expect_no_more_than_once(reader);
	}
	end_reader(near);
	end_reader(packets);
}

/* Its ring is full long before its socket is: what did not fit there comes only by the wire. */
TEST(a_reader_that_was_stopped_gets_nothing_twice)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { COUNT = 3000, MEMBERS = 2 };
	static struct station station;
	pid_t near;
	uint32_t next;

	make_network();
	near = start_reader(1, here);
	open_station(&station, &here, NOBODY);
	next = send_until_by_shm_link(&station, MEMBERS, near, 0);
	EXPECT_EQ(kill(near, SIGSTOP), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		send_note(&station, 0, next++);
	EXPECT_EQ(kill(near, SIGCONT), 0);
	await_rest(near, 1);
	EXPECT(count_all(1) > COUNT / 2);
	EXPECT(ask(near).copies > COUNT / 30); /* a stock kernel's socket holds few */
	expect_no_more_than_once(1);
	end_reader(near);
}

/* Other datagrams are before it in the ring, and none in the socket. */
TEST(the_wires_copy_does_not_overtake_shared_memorys)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { COUNT = 500, MEMBERS = 2, SINGLE = 1, LAST = SEQUENCES - 1 };
	static struct station station;
	struct ibv_ah *ah;
	pid_t near;

	make_network();
	near = start_reader(1, here);
	open_station(&station, &here, NOBODY);
	ah = make_handle(&station, "10.9.0.1", "10.9.0.1");
	(void)send_until_by_shm_link(&station, MEMBERS, near, 0);
	EXPECT_EQ(kill(near, SIGSTOP), 0);
	for (uint32_t i = 0; i < COUNT; i++)
		send_note_to(&station, ah, board->qpn[1], (struct note){ SINGLE, i });
	send_note(&station, 0, LAST);
	EXPECT_EQ(kill(near, SIGCONT), 0);
	await_note(&station, MEMBERS, 0, LAST);
	await_rest(near, 1);
	expect_once(1, SINGLE, COUNT);
	expect_no_more_than_once(1);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_reader(near);
}

/* Notes before it may be lost. */
static uint32_t send_until_one_arrives(struct station *station, uint32_t reader, uint32_t sender,
				       uint32_t sequence)
{
	do {
		send_note(station, sender, ++sequence);
		usleep(10000);
		serve(station);
	} while (!count_of(reader, sender, sequence));
	return sequence + 1;
}

TEST(a_reader_that_has_lost_its_descriptors_gets_each_once_again)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { COUNT = 50, MEMBERS = 2 };
	static struct station station;
	unsigned long before;
	uint32_t next;
	pid_t near;

	make_network();
	near = start_reader(1, here);
	open_station(&station, &here, NOBODY);
	next = send_until_by_shm_link(&station, MEMBERS, near, 0);
	atomic_store(&board->shall_close, true);
	while (atomic_load(&board->shall_close))
		usleep(1000);
	next = send_until_one_arrives(&station, 1, 0, next);
	before = ask(near).received;
	while (ask(near).received == before) {
		send_note(&station, 0, next);
		await_note(&station, MEMBERS, 0, next++);
	}
	before = ask(near).received;
	for (uint32_t i = 0; i < COUNT; i++, next++) {
		send_note(&station, 0, next);
		await_note(&station, MEMBERS, 0, next);
	}
	EXPECT_EQ(ask(near).received, before + COUNT);
	await_rest(near, 1);
	expect_no_more_than_once(1);
	end_reader(near);
}

static pid_t start_flood(uint32_t sender, const struct place *place)
{
	static struct station station;
	pid_t child = fork_station();
	uint32_t next;

	if (child)
		return child;
	open_station(&station, place, NOBODY);
	next = send_until_one_arrives(&station, 1, sender, 0);
	while (next < SEQUENCES)
		send_note(&station, sender, next++);
	_exit(0);
}

/* The senders are faster than a reader at times, so that rings are full. */
TEST(a_flood_from_several_senders_doubles_nothing)
{
	struct place here = { END_A, "auto", "vb_va", "10.9.0.1", "239.1.2.3" };
	struct place wired = { END_A, "wire", "vb_va", "10.9.0.1", "239.1.2.3" };
	enum { FLOODS = 4 };
	pid_t near, packets;
	pid_t floods[FLOODS];

	make_network();
	near = start_reader(1, here);
	packets = start_reader(2, wired);
	for (uint32_t i = 0; i < FLOODS; i++)
		floods[i] = start_flood(i, &here);
	for (uint32_t i = 0; i < FLOODS; i++)
		join_process(floods[i]);
	enter_end(END_A);
	await_rest(near, 1);
	expect_no_more_than_once(1);
	expect_no_more_than_once(2);
	end_reader(near);
	end_reader(packets);
}
