/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that close every descriptor that they do not know, as daemons do when they start. The
 * adapter's descriptors are not closed, and it goes on working. The program's own descriptors are
 * closed as usual.
 */
#include "harness.h"
#include "support_verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 4096, PROGRAMS_OWN = 700 };

static struct node nodes[2];
static char memory[2][LENGTH];

static void close_one_by_one(void)
{
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
}

static void close_from(void)
{
	closefrom(3);
}

static void close_in_a_range(void)
{
	EXPECT_EQ(close_range(3, ~0u, 0), 0);
}

/* Sends one message from A to B, and one back. */
static void play_ping_pong(struct ibv_mr *regions[2])
{
	for (enum side from = A; from <= B; from++) {
		enum side to = from == A ? B : A;
		struct ibv_sge out = make_sge(regions[from], LENGTH);

		memset(memory[from], 'a' + (int)from, LENGTH);
		memset(memory[to], 0, LENGTH);
		post_recv(&nodes[to], make_sge(regions[to], LENGTH));
		post_send(&nodes[from], make_request(IBV_WR_SEND, &out, NULL));
		EXPECT_EQ(await_status(nodes, to, true), IBV_WC_SUCCESS);
		EXPECT_EQ(await_status(nodes, from, true), IBV_WC_SUCCESS);
		EXPECT_MEM(memory[from], memory[to], LENGTH);
	}
}

/* The descriptors that programs wait on also belong to the adapter. */
static void check_close(void (*close_all)(void))
{
	struct ibv_comp_channel *channel;
	struct ibv_mr *regions[2];
	int own;

	open_nodes(nodes);
	connect_nodes(nodes);
	for (enum side side = A; side <= B; side++)
		regions[side] = register_memory(&nodes[side], memory[side], LENGTH);
	channel = ibv_create_comp_channel(nodes[A].context);
	EXPECT(channel);
	own = fcntl(0, F_DUPFD, PROGRAMS_OWN);
	EXPECT(own >= PROGRAMS_OWN);

	close_all();
	EXPECT_EQ(fcntl(own, F_GETFD), -1);
	EXPECT(fcntl(channel->fd, F_GETFD) >= 0);
	EXPECT(fcntl(nodes[A].context->async_fd, F_GETFD) >= 0);
	play_ping_pong(regions);
	connect_nodes(nodes);
	play_ping_pong(regions);
	EXPECT_EQ(poll(&(struct pollfd){ .fd = channel->fd, .events = POLLIN }, 1, 0), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
}

TEST(descriptors_closed_one_by_one)
{
	check_close(close_one_by_one);
}

TEST(descriptors_closed_from_a_number_on)
{
	check_close(close_from);
}

TEST(descriptors_closed_in_a_range)
{
	check_close(close_in_a_range);
}

TEST(nothing_takes_the_place_of_an_adapters_descriptor)
{
	struct ibv_comp_channel *channel;
	int own = dup(0);

	open_nodes(nodes);
	channel = ibv_create_comp_channel(nodes[A].context);
	EXPECT_EQ(dup2(own, channel->fd), -1);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(dup3(own, channel->fd, O_CLOEXEC), -1);
	EXPECT_EQ(errno, EBUSY);
	EXPECT_EQ(dup2(channel->fd, channel->fd), channel->fd);
	EXPECT_EQ(close(channel->fd), -1);
	EXPECT_EQ(errno, EBADF);
	EXPECT_EQ(dup2(own, PROGRAMS_OWN), PROGRAMS_OWN);
	EXPECT_EQ(dup2(0, PROGRAMS_OWN), PROGRAMS_OWN);
	EXPECT_EQ(close(PROGRAMS_OWN), 0);
}

TEST(a_number_is_the_programs_again_when_the_adapter_gave_it_up)
{
	struct ibv_comp_channel *channel;
	int number;

	open_nodes(nodes);
	channel = ibv_create_comp_channel(nodes[A].context);
	number = channel->fd;
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	EXPECT_EQ(dup2(0, number), number);
	EXPECT_EQ(close(number), 0);
	EXPECT_EQ(close(number), -1);
	EXPECT_EQ(errno, EBADF);
}
