/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports: which are taken, by which process, and when they are free again. */
#include "support_cma.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int bind_to(struct rdma_cm_id *id, const char *text, uint16_t port)
{
	union address address = address_of(text, port);

	return rdma_bind_addr(id, &address.any);
}

static struct rdma_event_channel *channel;

static struct rdma_cm_id *make_only(void)
{
	struct rdma_cm_id *id = make_id(channel, RDMA_PS_TCP);
	int on = 1;

	EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &on, sizeof(on)), 0);
	return id;
}

TEST(port_0_becomes_a_free_one)
{
	struct rdma_cm_id *one, *other;

	enter_network();
	channel = make_channel();
	one = make_id(channel, RDMA_PS_TCP);
	other = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(bind_to(one, "0.0.0.0", 0), 0);
	EXPECT_EQ(bind_to(other, "0.0.0.0", 0), 0);
	EXPECT(rdma_get_src_port(one) && rdma_get_src_port(other));
	EXPECT(rdma_get_src_port(one) != rdma_get_src_port(other));
	destroy(one);
	destroy(other);
}

TEST(a_port_has_one_owner_in_its_space_until_that_is_gone)
{
	struct rdma_cm_id *one, *other, *datagram;

	enter_network();
	channel = make_channel();
	one = make_id(channel, RDMA_PS_TCP);
	other = make_id(channel, RDMA_PS_TCP);
	datagram = make_id(channel, RDMA_PS_UDP);
	EXPECT_EQ(bind_to(one, "127.0.0.1", PORT), 0);
	EXPECT_ERRNO(bind_to(other, "127.0.0.1", PORT), EADDRINUSE);
	EXPECT_ERRNO(bind_to(other, "0.0.0.0", PORT), EADDRNOTAVAIL);
	EXPECT_EQ(bind_to(datagram, "127.0.0.1", PORT), 0);
	destroy(one);
	EXPECT_EQ(bind_to(other, "127.0.0.1", PORT), 0);
	destroy(other);
	destroy(datagram);
}

TEST(all_of_ipv4_and_all_of_ipv6_share_a_port_if_each_is_for_its_family_only)
{
	struct rdma_cm_id *ipv4, *ipv6, *both;

	enter_network();
	channel = make_channel();
	ipv4 = make_listener(channel, RDMA_PS_TCP);
	both = make_id(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(bind_to(both, "::", PORT), EADDRNOTAVAIL);
	ipv6 = make_only();
	EXPECT_EQ(bind_to(ipv6, "::", PORT), 0);
	EXPECT_EQ(rdma_listen(ipv6, 1), 0);
	destroy(ipv4);
	destroy(ipv6);
	EXPECT_EQ(bind_to(both, "::", PORT), 0);
	destroy(both);
}

TEST(identifiers_that_share_a_port_may_bind_but_only_one_listens)
{
	struct rdma_cm_id *one, *other;
	int on = 1;

	enter_network();
	channel = make_channel();
	one = make_id(channel, RDMA_PS_TCP);
	other = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_set_option(one, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)),
		  0);
	EXPECT_EQ(rdma_set_option(other, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)),
		  0);
	EXPECT_EQ(bind_to(one, "127.0.0.1", PORT), 0);
	EXPECT_EQ(bind_to(other, "127.0.0.1", PORT), 0);
	EXPECT_EQ(rdma_listen(one, 1), 0);
	EXPECT_ERRNO(rdma_listen(other, 1), EADDRINUSE);
	destroy(one);
	destroy(other);
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	EXPECT_EQ(syscall(SYS_capset, &header, none), 0);
}

/* As in the kernel, whose rdma_cm does not know /proc/sys/net/ipv4/ip_unprivileged_port_start. */
TEST(a_port_below_1024_wants_a_capability)
{
	struct rdma_cm_id *one, *other;

	enter_network();
	channel = make_channel();
	one = make_id(channel, RDMA_PS_TCP);
	other = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(bind_to(one, "127.0.0.1", 1023), 0);
	drop_capabilities();
	EXPECT_ERRNO(bind_to(other, "127.0.0.1", 1022), EACCES);
	EXPECT_EQ(bind_to(other, "127.0.0.1", 1024), 0);
	destroy(one);
	destroy(other);
}

/* Starts a process that listens and announces it. */
static pid_t start_listener(void)
{
	int said[2];
	pid_t pid;
	char byte;

	EXPECT_EQ(pipe(said), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		make_listener(make_channel(), RDMA_PS_TCP);
		EXPECT_EQ(write(said[1], "", 1), 1);
		pause();
	}
	EXPECT_EQ(read(said[0], &byte, 1), 1);
	return pid;
}

TEST(a_port_of_another_process_is_taken_until_it_dies)
{
	struct rdma_cm_id *id;
	pid_t pid;

	enter_network();
	pid = start_listener();
	channel = make_channel();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(bind_to(id, "0.0.0.0", PORT), EADDRINUSE);
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	EXPECT_EQ(bind_to(id, "0.0.0.0", PORT), 0);
	destroy(id);
}

TEST(a_forked_child_begins_anew_and_leaves_its_parents_identifiers_alone)
{
	struct pair pair;
	int status;
	pid_t pid;

	enter_network();
	pair_connect(&pair);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		struct pair own;

		EXPECT_ERRNO(rdma_disconnect(pair.client), EIO);
		EXPECT_EQ(rdma_destroy_id(pair.listener), 0);
		own.server_channel = make_channel();
		own.client = make_client(own.server_channel, RDMA_PS_TCP);
		EXPECT_EQ(rdma_connect(own.client, NULL), 0);
		own.client_channel = own.server_channel;
		EXPECT(pass_event(own.client_channel, RDMA_CM_EVENT_REJECTED) > 0);
		destroy(own.client);
		_exit(0);
	}
	/* The parent's listener gets the child's request. */
	{
		struct rdma_cm_event *event =
			take_event(pair.server_channel, RDMA_CM_EVENT_CONNECT_REQUEST);
		struct rdma_cm_id *id = event->id;

		rdma_ack_cm_event(event);
		EXPECT_EQ(rdma_reject(id, NULL, 0), 0);
		destroy(id);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(rdma_disconnect(pair.client), 0);
	EXPECT_EQ(pass_event(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	pair_destroy(&pair);
}

/*
 * The server of a program that becomes a daemon: it listens, forks, and goes on in the child while
 * the parent exits.
 */
static void become_a_daemon_and_serve(int said)
{
	struct rdma_event_channel *requests = make_channel();
	struct rdma_cm_id *listener = make_listener(requests, RDMA_PS_TCP), *id;
	uint8_t class = 0;
	pid_t pid = fork();

	EXPECT(pid >= 0);
	if (pid)
		_exit(0);
	/* Any call will do: it waits for the parent's end. */
	EXPECT_EQ(rdma_set_option(listener, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &class, 1), 0);
	EXPECT_EQ(write(said, "", 1), 1);
	id = take_request(requests);
	make_qp(id);
	EXPECT_EQ(rdma_accept(id, NULL), 0);
	EXPECT_EQ(pass_event(requests, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(pass_event(requests, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(id);
	destroy(listener);
	EXPECT_EQ(write(said, "", 1), 1);
	_exit(0);
}

/*
 * A child that goes on may find the sanitizer's allocator locked, by a thread that the child does
 * not have.
 */
static void skip_with_sanitizer(void)
{
#ifdef VB_TESTING
	SKIP("the sanitizer's allocator does not stand a fork beside threads");
#endif
}

TEST(a_child_whose_parent_is_gone_goes_on_with_its_listeners)
{
	struct rdma_cm_id *client;
	int said[2], status;
	pid_t pid;
	char byte;

	skip_with_sanitizer();
	enter_network();
	EXPECT_EQ(pipe(said), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		become_a_daemon_and_serve(said[1]);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(read(said[0], &byte, 1), 1);
	channel = make_channel();
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(rdma_disconnect(client), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(client);
	EXPECT_EQ(read(said[0], &byte, 1), 1);
}
