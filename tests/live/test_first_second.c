/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that have just been made. The kernel's link watch, neighbour discovery and routes are still
 * busy with them then, and programs that start immediately must not notice. Nothing here waits for
 * a link, and the two programs exchange their addresses by a socket that needs no network.
 */
#include "support_link.h"
#include "support_verbs.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HOSTS 50

static void expect_active_port(struct ibv_context *context)
{
	struct ibv_port_attr attr;

	EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
	EXPECT_STR(ibv_port_state_str(attr.state), "active");
}

static void run_end(enum end end, int exchange)
{
	static const struct path paths[] = {
		[END_A] = { "vb_va", "::ffff:10.9.0.2" },
		[END_B] = { "vb_vb", "::ffff:10.9.0.1" },
	};
	static struct program program;
	struct place ready;

	enter_end(end);
	program_open_with_peer_on(&program, exchange, paths[end]);
	expect_active_port(program.context);
	program_post(&program);
	EXPECT_STR(program_poll(&program), "success");
	/* The peer may still need our answers. */
	EXPECT_EQ(write(exchange, &ready, sizeof(ready)), sizeof(ready));
	EXPECT_EQ(read(exchange, &ready, sizeof(ready)), sizeof(ready));
	EXPECT_MEM(program.target, program.source, PROGRAM_LENGTH);
	program_close(&program);
}

static void run_b(void *argument)
{
	const int *exchange = argument;

	close(exchange[0]);
	run_end(END_B, exchange[1]);
}

/*
 * Plugs the cable in as the last step. Before that, `ip` asks for the interface, which makes the
 * kernel's link watch look at it.
 */
static void plug_in(void)
{
	enter_end(END_B);
	command("ip link set vb down");
	enter_end(END_A);
	command("ip link set va down && ip link set va up");
	enter_end(END_B);
	command("ip link set vb up");
}

static void make_and_use_hosts(void *argument)
{
	int exchange[2];
	pid_t other;

	(void)argument;
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, exchange), 0);
	make_wire();
	plug_in();
	other = start_process(run_b, exchange);
	close(exchange[1]);
	run_end(END_A, exchange[0]);
	join_process(other);
}

TEST(two_hosts_that_were_just_made_reach_each_other_at_once)
{
	setenv("VERBATIM_PATH", "wire", 1);
	enter_own_network(); /* otherwise the test is skipped */
	for (int i = 0; i < HOSTS; i++)
		join_process(start_process(make_and_use_hosts, NULL));
}

static void set_other_end(const char *state)
{
	enter_end(END_B);
	command("ip link set vb %s", state);
	enter_end(END_A);
}

static void expect_event(struct ibv_context *context, enum ibv_event_type type)
{
	struct ibv_async_event event;

	EXPECT_EQ(ibv_get_async_event(context, &event), 0);
	EXPECT_STR(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	ibv_ack_async_event(&event);
}

static struct ibv_context *open_only_device(void)
{
	struct ibv_device **list;
	struct ibv_context *context;

	setenv("VERBATIM_DEVICES", "va", 1);
	list = ibv_get_device_list(NULL);
	EXPECT(list && list[0]);
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
	return context;
}

TEST(a_port_is_active_as_soon_as_its_cable_is_plugged_in)
{
	struct ibv_context *context;
	struct ibv_port_attr attr;

	make_wire();
	set_other_end("down");
	context = open_only_device();
	EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
	EXPECT_STR(ibv_port_state_str(attr.state), "down");
	for (int i = 0; i < 3; i++) {
		set_other_end("up");
		expect_active_port(context);
		expect_event(context, IBV_EVENT_PORT_ACTIVE);
		set_other_end("down");
		expect_event(context, IBV_EVENT_PORT_ERR);
	}
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_thread_in_another_namespace_asks_for_the_same_port)
{
	struct ibv_context *context;

	make_wire();
	context = open_only_device();
	set_other_end("down");
	expect_event(context, IBV_EVENT_PORT_ERR);
	set_other_end("up");
	enter_own_network();
	expect_active_port(context);
	expect_event(context, IBV_EVENT_PORT_ACTIVE);
	EXPECT_EQ(ibv_close_device(context), 0);
}
