/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of the same host holds the names by which our programs find each other, connects to
 * our programs and sends what it likes. It gets nothing, and our programs still find each other by
 * shared-memory links. The log says which user holds what.
 */
#include "support_ends.h"
#include "support_stranger.h"

#include "namespace.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NUMBERS = 255, CROWD = 3000, JOINING = 24, OVERFLOW_UID = 65534 };

static const char *const members[] = { "verbatim/0/%u", "verbatim/0/qp1/%u", NULL };

static void begin_as_root(void)
{
	need_another_user();
	begin();
}

/* --- names ------------------------------------------------------------------------------------ */

static void write_through(struct end *end)
{
	memset(end->memory, 0x5a, LENGTH);
	do_at(end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	memset(end->memory, 0, LENGTH);
	do_at(end, IBV_WR_RDMA_READ, 0, LENGTH);
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(end->memory[i], 0x5a);
}

static void expect_no_spoils(const struct spoils *spoils)
{
	EXPECT_EQ(spoils->messages, 0);
	EXPECT_EQ(spoils->descriptors, 0);
}

/*
 * Two programs meet, and offer to a number that a process of another user has: a peer chooses the
 * number that it is connected to.
 */
static void meet_among_strangers(const struct hold *hold)
{
	struct spoils *spoils;
	struct end end = { 0 };
	struct place nobody;
	pid_t stranger, child;

	begin_as_root();
	stranger = stranger_start(hold, &spoils);
	EXPECT_EQ(spoils->name_count, 2 * hold->count);
	child = meet_target(&end, IBV_QPT_RC, private_memory);
	write_through(&end);
	program_expect_in_log("path: shared memory");
	EXPECT(!strstr(program_read_log(), "packets take a detour"));
	nobody = place_of(&end);
	nobody.qpn = 200u << 16 | 77;
	end.qp = create_qp(&end, IBV_QPT_RC);
	connect_end(&end, nobody);
	program_expect_in_log("the peer belongs to another user or is gone");
	expect_no_spoils(spoils);
	end_target(child);
	stranger_end(stranger);
}

TEST(a_stranger_that_holds_a_name_that_others_may_have_gets_nothing)
{
	meet_among_strangers(&(struct hold){ SOCK_SEQPACKET, false, members, 200, 1 });
}

TEST(a_stranger_that_holds_such_a_name_by_a_datagram_socket_gets_nothing)
{
	meet_among_strangers(&(struct hold){ SOCK_DGRAM, false, members, 200, 1 });
}

TEST(names_that_are_all_held_by_a_stranger_keep_nobody_from_anything)
{
	meet_among_strangers(&(struct hold){ SOCK_SEQPACKET, false, members, 0, NUMBERS });
	program_expect_in_log("warn: uid 4711 holds the name verbatim/0/0");
}

TEST(names_that_are_all_held_by_datagram_sockets_keep_nobody_from_anything)
{
	meet_among_strangers(&(struct hold){ SOCK_DGRAM, false, members, 0, NUMBERS });
}

TEST(names_that_are_all_held_by_sockets_that_do_not_listen_keep_nobody_from_anything)
{
	meet_among_strangers(&(struct hold){ SOCK_SEQPACKET, true, members, 0, NUMBERS });
}

TEST(a_crowd_of_names_like_those_that_replace_others_keeps_nobody_from_anything)
{
	static const char *const crowd[] = { "verbatim/0/0~%016x", "verbatim/0/1~%016x", NULL };

	meet_among_strangers(&(struct hold){ SOCK_SEQPACKET, false, crowd, 0, CROWD });
}

/* --- the lock --------------------------------------------------------------------------------- */

static void open_and_wait(int ready, int end)
{
	struct end own = { 0 };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_end(&own, private_memory());
	EXPECT_EQ(write(ready, &own.qp->qp_num, sizeof(own.qp->qp_num)),
		  (ssize_t)sizeof(own.qp->qp_num));
	EXPECT_EQ(read(end, &(char){ 0 }, 1), 0);
	_exit(0);
}

/* Opens all at the same time; each has a number of its own. */
static void open_many(uint32_t count)
{
	bool is_taken[NUMBERS] = { false };
	int ready[2], end[2];
	uint32_t qpn;

	EXPECT(!pipe(ready) && !pipe(end));
	for (uint32_t i = 0; i < count; i++)
		if (!fork_end()) {
			close(end[1]);
			open_and_wait(ready[1], end[0]);
		}
	for (uint32_t i = 0; i < count; i++) {
		EXPECT_EQ(read(ready[0], &qpn, sizeof(qpn)), (ssize_t)sizeof(qpn));
		EXPECT(!is_taken[qpn >> 16]);
		is_taken[qpn >> 16] = true;
	}
	close(end[1]);
	for (uint32_t i = 0; i < count; i++)
		EXPECT(wait(NULL) > 0);
}

static void open_many_with_lock_held(int type, bool is_silent)
{
	static const char *const lock[] = { "verbatim/0/joining", "verbatim/0/joining~%u", NULL };
	struct hold hold = { type, is_silent, lock, 0, 8 };
	struct spoils *spoils;
	pid_t stranger;

	begin_as_root();
	stranger = stranger_start(&hold, &spoils);
	EXPECT_EQ(spoils->name_count, 9);
	open_many(JOINING);
	/* The processes have waited for each other: each number is a socket's place … */
	EXPECT(!strstr(program_read_log(), "packets take a detour"));
	/* … and the first of them had made its GUID when the others asked. */
	EXPECT(!strstr(program_read_log(), "this one makes another"));
	expect_no_spoils(spoils);
	stranger_end(stranger);
}

TEST(a_stranger_that_holds_the_lock_of_joining_members_does_not_disturb_them)
{
	open_many_with_lock_held(SOCK_STREAM, false);
}

TEST(a_stranger_that_has_the_name_of_that_lock_does_not_disturb_them)
{
	open_many_with_lock_held(SOCK_STREAM, true);
}

TEST(processes_that_open_a_device_all_at_once_have_numbers_of_their_own)
{
	begin();
	open_many(test_is_thorough() ? 200 : 100);
}

/* --- visits ----------------------------------------------------------------------------------- */

static double seconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void await_rounds(const struct spoils *spoils, uint32_t count)
{
	uint32_t until = spoils->round + count;

	while (spoils->round < until)
		usleep(1000);
}

TEST(what_strangers_send_is_thrown_away_with_its_descriptors)
{
	struct spoils *spoils;
	struct end end = { 0 };
	pid_t stranger, child;

	begin_as_root();
	child = meet_target(&end, IBV_QPT_RC, private_memory);
	stranger = stranger_visit("verbatim/0/", true, &spoils);
	await_rounds(spoils, 50);
	write_through(&end);
	EXPECT(spoils->visits > 0);
	stranger_end(stranger);
	end_target(child);
}

/* These connections cost half of a CPU once. */
TEST(strangers_that_connect_as_fast_as_they_can_cost_little)
{
	struct spoils *spoils;
	struct end end = { 0 };
	double cpu, wall;
	pid_t stranger;

	begin_as_root();
	open_end(&end, private_memory());
	stranger = stranger_visit("verbatim/0/", false, &spoils);
	await_rounds(spoils, 1);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	wall = seconds(CLOCK_MONOTONIC);
	while (seconds(CLOCK_MONOTONIC) < wall + 2)
		usleep(100000);
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall = seconds(CLOCK_MONOTONIC) - wall;
	fprintf(stderr, "%.1f %% of a CPU, %u visits\n", 100 * cpu / wall, spoils->visits);
	EXPECT(cpu < wall / 20);
	stranger_end(stranger);
}

TEST(programs_meet_while_strangers_connect_as_fast_as_they_can)
{
	struct spoils *spoils;
	struct end end = { 0 };
	pid_t stranger, child;

	begin_as_root();
	stranger = stranger_visit("verbatim/0/", false, &spoils);
	child = meet_target(&end, IBV_QPT_RC, private_memory);
	write_through(&end);
	EXPECT(spoils->visits > 0);
	program_expect_in_log("path: shared memory");
	EXPECT(!strstr(program_read_log(), "makes another"));
	end_target(child);
	stranger_end(stranger);
}

/* --- user namespaces -------------------------------------------------------------------------- */

static bool write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	return file && fputs(text, file) >= 0 && !fclose(file);
}

/* Continues as this user, who is `inside` in a namespace of its own, or has no UID there. */
static void enter_user_namespace(uid_t user, int inside)
{
	char map[64];

	if (user && (setgid(user) || setuid(user)))
		_exit(77);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid() has ended that */
	prctl(PR_SET_DUMPABLE, 1); /* otherwise /proc/self belongs to root */
	if (unshare(CLONE_NEWUSER))
		_exit(77);
	snprintf(map, sizeof(map), "%d %u 1", inside, user);
	if (inside >= 0 && !write_file("/proc/self/uid_map", map))
		_exit(77);
}

/*
 * Starts a child that runs this, announces it, and stays. Skips the test where there are no user
 * namespaces.
 */
static pid_t start_in_namespace(uid_t user, int inside, void (*run)(void))
{
	int ready[2];
	char letter;
	pid_t child;

	EXPECT(!pipe(ready));
	child = fork_end();
	if (!child) {
		enter_user_namespace(user, inside);
		run();
		EXPECT_EQ(write(ready[1], "r", 1), 1);
		for (;;)
			pause();
	}
	close(ready[1]);
	if (read(ready[0], &letter, 1) != 1) {
		int status;

		EXPECT_EQ(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			SKIP("there are no user namespaces for other users here");
		FAIL("the process in the namespace has ended");
	}
	close(ready[0]);
	return child;
}

static void open_one(void)
{
	static struct end end;

	open_end(&end, private_memory());
}

/* The process has the port, as any other user may, and nothing else. */
TEST(another_user_who_is_root_in_a_namespace_takes_no_names_of_root)
{
	struct end end = { 0 };
	pid_t other, child;

	begin_as_root();
	other = start_in_namespace(STRANGER, 0, open_one);
	EXPECT(is_named("@verbatim/4711/0"));
	EXPECT(!is_named("@verbatim/0/"));
	child = meet_target(&end, IBV_QPT_RC, private_memory);
	write_through(&end);
	program_expect_in_log("path: shared memory");
	EXPECT(!strstr(program_read_log(), "packets take a detour"));
	end_target(child);
	stranger_end(other);
}

static struct board *common_board;

static void be_target(void)
{
	static struct end end;

	open_end(&end, private_memory());
	common_board->places[1] = place_of(&end);
	connect_end(&end, common_board->places[0]);
}

TEST(a_user_meets_himself_inside_and_outside_of_a_namespace)
{
	struct end end = { 0 };
	pid_t other;

	begin_as_root();
	common_board = make_board();
	open_end(&end, private_memory());
	common_board->places[0] = place_of(&end);
	other = start_in_namespace(0, 5, be_target);
	connect_end(&end, common_board->places[1]);
	write_through(&end);
	program_expect_in_log("path: shared memory");
	stranger_end(other);
}

static void work_alone(void)
{
	static struct program program;

	EXPECT_EQ(geteuid(), OVERFLOW_UID);
	program_keep_log("debug"); /* the existing one belongs to root */
	program_open(&program);
	program_expect_in_log("warn: this user has the overflow uid 65534");
	program_round(&program);
	program_round(&program);
}

/* Other users look like this one there, so the process trusts none of them. */
TEST(a_user_with_the_overflow_uid_of_a_namespace_works_and_sends_nothing_to_lookalikes)
{
	static const char *const names[] = { "verbatim/65534/%u", "verbatim/4712/%u", NULL };
	struct hold hold = { SOCK_SEQPACKET, false, names, 0, NUMBERS };
	struct spoils *spoils;
	pid_t stranger, other;

	begin_as_root();
	stranger = stranger_start(&hold, &spoils);
	other = start_in_namespace(STRANGER + 1, -1, work_alone);
	expect_no_spoils(spoils);
	EXPECT(!is_named("@verbatim/65534/qp1"));
	stranger_end(other);
	stranger_end(stranger);
}

/* --- a process that becomes another user ------------------------------------------------------ */

static void meet_and_become_another(struct board *board)
{
	struct end end = { 0 };

	open_end(&end, private_memory());
	EXPECT_EQ(setuid(STRANGER), 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* setuid() has ended that */
	board->places[1] = place_of(&end);
	reach_step(board, 1);
	for (;;)
		pause();
}

/*
 * The daemon refuses immediately, rather than leave us waiting for an answer that would not be
 * accepted.
 */
TEST(a_daemon_that_has_become_another_user_refuses_shm_links)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin_as_root();
	child = fork_end();
	if (!child)
		meet_and_become_another(board);
	await_step(board, 1);
	open_end(&end, private_memory());
	connect_end(&end, board->places[1]);
	program_expect_in_log("path: wire: the peer, or this process, has become another user");
	end_target(child);
}
