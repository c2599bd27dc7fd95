/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binding to a loopback address. In the kernel no device has one: an identifier that is bound there
 * has no device and takes requests for every address. Our host may have a loopback device beside
 * others, or nothing else.
 */
#include "support_cma.h"

#include "namespace.h"

#include <errno.h>
#include <stdlib.h>

static struct rdma_event_channel *channel;
static struct rdma_cm_id *listener;

/* Makes a network with loopback, and an interface with an address. */
static void enter_network_of_two(void)
{
	enter_network();
	namespace_add_dummy("one");
	ip("address add 10.9.0.1/24 dev one");
}

static void listen_at(const char *text)
{
	union address address = address_of(text, PORT);

	channel = make_channel();
	listener = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_bind_addr(listener, &address.any), 0);
	EXPECT_EQ(rdma_listen(listener, 1), 0);
}

static void expect_connection_to(const char *text)
{
	struct rdma_cm_id *client = make_client_of(channel, RDMA_PS_TCP, text), *server;

	EXPECT_EQ(rdma_connect(client, NULL), 0);
	server = take_request(channel);
	EXPECT(server->verbs == client->verbs);
	make_qp(server);
	EXPECT_EQ(rdma_accept(server, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	destroy(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(server);
}

TEST(the_loopback_device_is_meant_where_there_is_no_other)
{
	enter_network();
	listen_at("127.0.0.1");
	EXPECT_STR(ibv_get_device_name(listener->verbs->device), "vb_lo");
	expect_connection_to("127.0.0.1");
	destroy(listener);
}

TEST(beside_other_devices_a_loopback_address_names_none)
{
	struct rdma_cm_id *client;

	enter_network_of_two();
	listen_at("127.0.0.1");
	EXPECT(!listener->verbs);
	expect_connection_to("127.0.0.1");
	client = make_client_of(channel, RDMA_PS_TCP, "10.9.0.1");
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_REJECTED), 8);
	destroy(client);
	destroy(listener);
}

TEST(where_no_device_has_it_a_loopback_address_stands_for_all)
{
	union address address = address_of("10.9.0.1", PORT);
	struct rdma_cm_id *other;

	setenv("VERBATIM_DEVICES", "one", 1);
	enter_network_of_two();
	listen_at("127.0.0.1");
	EXPECT(!listener->verbs);
	expect_connection_to("10.9.0.1");
	other = make_id(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_bind_addr(other, &address.any), EADDRNOTAVAIL);
	destroy(other);
	destroy(listener);
}

TEST(where_no_device_has_it_the_loopback_address_of_ipv6_stands_for_all)
{
	setenv("VERBATIM_DEVICES", "one", 1);
	enter_network_of_two();
	listen_at("::1");
	EXPECT(!listener->verbs);
	expect_connection_to("10.9.0.1");
	destroy(listener);
}
