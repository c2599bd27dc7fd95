/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer whose process is killed, before, during and after the accept. The surviving end learns
 * what the kernel would report to it.
 */
#include "support_cma.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum stage { LISTENING, REQUESTED, ACCEPTED, ESTABLISHED };

/* A server that goes up to this stage, announces it, and waits. */
static void serve(enum stage last, int said)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *id = NULL;

	make_listener(channel, RDMA_PS_TCP);
	EXPECT_EQ(write(said, "", 1), 1);
	if (last >= REQUESTED)
		id = take_request(channel);
	if (last >= ACCEPTED) {
		make_qp(id);
		EXPECT_EQ(rdma_accept(id, NULL), 0);
	}
	if (last >= ESTABLISHED)
		EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
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

static enum rdma_cm_event_type next_type(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
	type = event->event;
	EXPECT_EQ(rdma_ack_cm_event(event), 0);
	return type;
}

/*
 * The survivor has not taken the answer yet: the connection is not established, or only for a
 * moment, and then ends in either way.
 */
static void expect_end(struct rdma_event_channel *channel)
{
	enum rdma_cm_event_type type = next_type(channel);

	if (type == RDMA_CM_EVENT_ESTABLISHED)
		type = next_type(channel);
	EXPECT(type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_DISCONNECTED);
}

TEST(whose_request_was_accepted_by_a_process_that_was_killed_does_not_stay_connected)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *client;
	int said;
	pid_t pid;

	enter_network();
	pid = start_server(ACCEPTED, &said);
	channel = make_channel();
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	expect_said(said);
	kill_it(pid);
	expect_end(channel);
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

/* --- the client is killed --------------------------------------------------------------------- */

/* The client begins when it reads a byte, and writes one when it has reached its stage. */
static pid_t start_client(bool is_to_be_established, int *line)
{
	int ends[2];
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		struct rdma_event_channel *channel = make_channel();

		expect_said(ends[1]);
		EXPECT_EQ(rdma_connect(make_client(channel, RDMA_PS_TCP), NULL), 0);
		if (is_to_be_established)
			EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
		EXPECT_EQ(write(ends[1], "", 1), 1);
		pause();
	}
	close(ends[1]);
	*line = ends[0];
	return pid;
}

TEST(a_server_whose_client_is_killed_is_disconnected)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *server;
	int line;
	pid_t pid;

	enter_network();
	pid = start_client(true, &line);
	channel = make_channel();
	make_listener(channel, RDMA_PS_TCP);
	EXPECT_EQ(write(line, "", 1), 1);
	server = take_request(channel);
	make_qp(server);
	EXPECT_EQ(rdma_accept(server, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	expect_said(line);
	kill_it(pid);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(server);
}

TEST(a_request_whose_client_is_killed_is_withdrawn)
{
	struct rdma_event_channel *channel;
	struct rdma_cm_id *server;
	int line;
	pid_t pid;

	enter_network();
	pid = start_client(false, &line);
	channel = make_channel();
	make_listener(channel, RDMA_PS_TCP);
	EXPECT_EQ(write(line, "", 1), 1);
	server = take_request(channel);
	expect_said(line);
	kill_it(pid);
	EXPECT(pass_event(channel, RDMA_CM_EVENT_REJECTED) > 0);
	destroy(server);
}
