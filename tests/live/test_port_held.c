/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user, or a program that does not share it, has the RoCE port. Devices open all the same
 * and serve this user's programs on this host, over every address of the host. Nothing is sent to
 * other hosts, and the log says why.
 */
#include "support_link.h"
#include "support_verbs.h"

#include "namespace.h"

#include "host/registry/port_holders.h"
#include "wire/flow.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534
#define ROUNDS 20
#define DESCRIPTORS 8192

static struct program program;

/* --- the holder of the port ------------------------------------------------------------------- */

enum holder { ANOTHER_USER, ANOTHER_PROGRAM };

static void bind_to_port(enum holder holder)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = htons(VB_ROCE_PORT) };
	int is_shared = holder == ANOTHER_USER;
	int fd;

	if (holder == ANOTHER_USER)
		EXPECT_EQ(setuid(NOBODY), 0);
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	EXPECT(fd >= 0);
	EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &is_shared, sizeof(is_shared)), 0);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
}

static pid_t start_holder(enum holder holder)
{
	int pipes[2];
	pid_t pid;

	if (holder == ANOTHER_USER && geteuid() != 0)
		SKIP("only root can be two users");
	EXPECT_EQ(pipe(pipes), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		bind_to_port(holder);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		EXPECT_EQ(write(pipes[1], "k", 1), 1);
		for (;;)
			pause();
	}
	close(pipes[1]);
	EXPECT_EQ(read(pipes[0], &(char){ 0 }, 1), 1);
	close(pipes[0]);
	return pid;
}

static void end_holder(pid_t pid)
{
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

static uint32_t own_sockets_on_port(void)
{
	struct vb_port_holders holders;

	vb_port_holders_find(VB_ROCE_PORT, &holders);
	return holders.own_count;
}

/* --- two programs ----------------------------------------------------------------------------- */

struct peer {
	pid_t pid;
	int exchange;
};

/* Expects what the other program has written, in the order of rounds. */
static void expect_written(unsigned round)
{
	for (unsigned i = 0; i < PROGRAM_LENGTH; i++)
		EXPECT_EQ(program.target[i], (unsigned char)(i * 7 + round));
}

static void write_and_be_written_to(int exchange)
{
	for (unsigned round = 1; round <= ROUNDS; round++) {
		char letter;

		program_post(&program);
		EXPECT_STR(program_poll(&program), "success");
		EXPECT_EQ(write(exchange, "w", 1), 1);
		EXPECT_EQ(read(exchange, &letter, 1), 1);
		expect_written(round);
		EXPECT_EQ(write(exchange, "s", 1), 1);
		EXPECT_EQ(read(exchange, &letter, 1), 1);
	}
}

static void be_peer(int exchange, struct path path)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	program_open_with_peer_on(&program, exchange, path);
	write_and_be_written_to(exchange);
	EXPECT_EQ(write(exchange, "e", 1), 1);
	EXPECT_EQ(read(exchange, &(char){ 0 }, 1), 1); /* the program stays until it may exit */
	program_close(&program);
	EXPECT_EQ(write(exchange, "e", 1), 1);
	_exit(0);
}

static struct peer start_peer(struct path path)
{
	struct peer peer;
	int pair[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	peer.pid = fork();
	EXPECT(peer.pid >= 0);
	if (!peer.pid)
		be_peer(pair[1], path);
	close(pair[1]);
	peer.exchange = pair[0];
	return peer;
}

static void end_peer(struct peer peer)
{
	EXPECT_EQ(read(peer.exchange, &(char){ 0 }, 1), 1);
	EXPECT_EQ(write(peer.exchange, "e", 1), 1);
	EXPECT_EQ(read(peer.exchange, &(char){ 0 }, 1), 1);
	EXPECT_EQ(waitpid(peer.pid, NULL, 0), peer.pid);
	close(peer.exchange);
}

static void exchange_on(struct path own, struct path others)
{
	struct peer peer = start_peer(others);

	program_open_with_peer_on(&program, peer.exchange, own);
	write_and_be_written_to(peer.exchange);
	end_peer(peer);
	program_close(&program);
}

static void exchange_on_every_address(void)
{
	struct path loopback = { .device = "vb_lo" }, dummy = { .device = "vb_d0" };

	exchange_on(loopback, loopback);
	exchange_on(dummy, dummy);
	exchange_on((struct path){ "vb_d0", "::ffff:10.1.0.1" },
		    (struct path){ "vb_d1", "::ffff:10.0.0.1" });
}

static pid_t enter_network(enum holder holder)
{
	program_enter_namespace();
	namespace_add_dummy("d1");
	ip("address add 10.1.0.1/24 dev d1");
	return start_holder(holder);
}

/* --- tests ------------------------------------------------------------------------------------ */

TEST(programs_reach_each_other_on_this_host_while_another_user_has_the_port)
{
	enter_network(ANOTHER_USER);
	exchange_on_every_address();
	EXPECT_EQ(own_sockets_on_port(), 0);
}

TEST(programs_reach_each_other_on_this_host_while_a_program_has_the_port_for_itself)
{
	enter_network(ANOTHER_PROGRAM);
	exchange_on_every_address();
	EXPECT_EQ(own_sockets_on_port(), 1);
}

static void expect_that_others_are_not_reached(enum holder holder, const char *who)
{
	char line[256];

	program_keep_log("debug");
	enter_network(holder);
	program_open_on(&program, (struct path){ "vb_d0", "::ffff:10.0.0.9" });
	snprintf(line, sizeof(line), "warn: vb_d0: UDP port 4791 is held by %s", who);
	program_expect_in_log(line);
	program_post(&program);
	EXPECT_STR(program_poll(&program), "transport retry counter exceeded");
	program_expect_in_log("warn: packets to other hosts are dropped");
	program_close(&program);
	program_expect_in_log("vb_d0: udp_tx_drop_port_held_by_others ");
	EXPECT(!strstr(program_read_log(), "udp_tx_datagrams"));
}

/* The adapter distinguishes packets from this host by that. */
TEST(ports_of_this_users_sockets_are_told_from_those_of_others)
{
	static struct vb_user_ports ports;
	struct sockaddr_in name = { .sin_family = AF_INET };
	socklen_t length = sizeof(name);
	int fd;

	enter_network(ANOTHER_USER);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	EXPECT(fd >= 0);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	EXPECT_EQ(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	EXPECT(vb_user_ports_has(&ports, geteuid(), ntohs(name.sin_port)));
	EXPECT(!vb_user_ports_has(&ports, geteuid(), VB_ROCE_PORT));
	close(fd);
	while (vb_user_ports_has(&ports, geteuid(), ntohs(name.sin_port)))
		;
}

TEST(nothing_is_sent_to_other_hosts_while_another_user_has_the_port)
{
	expect_that_others_are_not_reached(ANOTHER_USER, "uid 65534:");
}

TEST(nothing_is_sent_to_other_hosts_while_a_program_has_the_port_for_itself)
{
	expect_that_others_are_not_reached(ANOTHER_PROGRAM, "a program of this user");
}

/* The programs must find each other, and only a running program knows where. */
static void expect_that_newcomers_join_until_all_are_gone(enum holder holder)
{
	struct path path = { .device = "vb_d0" };
	pid_t pid;
	struct peer first;

	program_keep_log("warn");
	pid = enter_network(holder);
	first = start_peer(path);
	program_open_with_peer_on(&program, first.exchange, path);
	write_and_be_written_to(first.exchange);
	program_close(&program);
	end_holder(pid);
	exchange_on(path, path); /* with a new program; the first is still there */
	EXPECT_EQ(own_sockets_on_port(), 0);
	program_expect_in_log("vb_d0: UDP port 4791 is free now, but was not");
	end_peer(first);
	program_open(&program);
	EXPECT_EQ(own_sockets_on_port(), 1);
	program_round(&program);
	program_close(&program);
}

TEST(a_newcomer_joins_the_others_when_the_port_is_free_again_until_all_are_gone)
{
	expect_that_newcomers_join_until_all_are_gone(ANOTHER_USER);
}

TEST(a_newcomer_joins_the_others_when_the_port_is_not_shared_any_more_until_all_are_gone)
{
	expect_that_newcomers_join_until_all_are_gone(ANOTHER_PROGRAM);
}

TEST(a_group_on_another_port_has_places_for_all)
{
	enum { PEERS = 5 };
	struct path path = { .device = "vb_d0" };
	struct peer peers[PEERS];

	program_keep_log("info");
	enter_network(ANOTHER_PROGRAM);
	for (int i = 0; i < PEERS; i++) {
		peers[i] = start_peer(path);
		program_open_with_peer_on(&program, peers[i].exchange, path);
		write_and_be_written_to(peers[i].exchange);
		program_close(&program);
	}
	for (int i = 0; i < PEERS; i++)
		end_peer(peers[i]);
	EXPECT(!strstr(program_read_log(), "packets take a detour"));
}

/* The others still have the sockets that the program had, and send to them. */
static void expect_that_who_closes_all_descriptors_comes_back(void)
{
	struct path path = { .device = "vb_d0" };
	struct peer peer = start_peer(path);

	program_open_with_peer_on(&program, peer.exchange, path);
	for (int fd = 3; fd < DESCRIPTORS; fd++)
		if (fd != peer.exchange)
			close(fd);
	write_and_be_written_to(peer.exchange);
	end_peer(peer);
	program_close(&program);
}

TEST(a_program_that_closes_all_descriptors_comes_back_to_the_others)
{
	program_enter_namespace();
	expect_that_who_closes_all_descriptors_comes_back();
}

TEST(a_program_that_closes_all_descriptors_comes_back_to_the_others_on_another_port)
{
	enter_network(ANOTHER_PROGRAM);
	expect_that_who_closes_all_descriptors_comes_back();
}
