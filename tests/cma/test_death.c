/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer whose process is killed, before, during and after the accept. Whoever is left is told what the kernel would tell it. */
#include "support_cma.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum stage { LISTENING, REQUESTED, ESTABLISHED };

/* A server that goes so far, says so, and waits. */
static void serve(enum stage last, int said)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	make_listener(channel, RDMA_PS_TCP);
	EXPECT_EQ(write(said, "", 1), 1);
	if (last >= REQUESTED) {
		event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		id = event->id;
		rdma_ack_cm_event(event);
	}
	if (last >= ESTABLISHED) {
		make_qp(id);
		EXPECT_EQ(rdma_accept(id, NULL), 0);
		EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	}
	EXPECT_EQ(write(said, "", 1), 1);
	pause();
}

static void expect_said(int said)
{
	char byte;

	EXPECT_EQ(read(said, &byte, 1), 1);
}

static pid_t start_server(enum stage last, int *said)
{
	int ends[2];
	pid_t pid;

	EXPECT_EQ(pipe(ends), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		serve(last, ends[1]);
	close(ends[1]);
	*said = ends[0];
	expect_said(*said);
	return pid;
}

static void kill_it(pid_t pid)
{
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

TEST(whose_peer_is_killed_is_disconnected)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *client;
	int said;
	pid_t pid;

	enter_network();
	pid = start_server(ESTABLISHED, &said);
	channel = make_channel();
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	expect_said(said);
	kill_it(pid);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(client);
}

TEST(whose_request_was_not_answered_by_a_process_that_was_killed_is_rejected)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *client;
	int said;
	pid_t pid;

	enter_network();
	pid = start_server(REQUESTED, &said);
	channel = make_channel();
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	expect_said(said);
	kill_it(pid);
	EXPECT(pass_event(channel, RDMA_CM_EVENT_REJECTED) > 0);
	destroy(client);
}

TEST(where_the_listener_was_killed_a_connect_is_rejected)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *client;
	int said;
	pid_t pid;

	enter_network();
	pid = start_server(LISTENING, &said);
	channel = make_channel();
	client = make_client(channel, RDMA_PS_TCP);
	kill_it(pid);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_REJECTED), 8);
	destroy(client);
}
