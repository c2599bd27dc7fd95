/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of other kinds than RC over IPv4 in the space of TCP: link-local addresses,
 * RDMA_PS_IB, UC, and ECE. And what happens to all of them when their interface goes away.
 */
#include "support_cma.h"

#include "namespace.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

/* Connects, with both ends in this process, and disconnects. */
static void connect_and_end(struct rdma_event_channel *channel, struct rdma_cm_id *client)
{
	struct rdma_cm_id *server;

	EXPECT_EQ(rdma_connect(client, NULL), 0);
	server = take_request(channel);
	EXPECT_EQ(server->qp_type, client->qp_type);
	EXPECT_EQ(server->ps, client->ps);
	make_qp(server);
	EXPECT_EQ(rdma_accept(server, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(state_of(client), IBV_QPS_RTS);
	EXPECT_EQ(state_of(server), IBV_QPS_RTS);
	destroy(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(server);
}

static struct rdma_cm_id *resolve(struct rdma_event_channel *channel, union address *to)
{
	struct rdma_cm_id *id = make_id(channel, RDMA_PS_TCP);

	EXPECT_EQ(rdma_resolve_addr(id, NULL, &to->any, 1000), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	return id;
}

/* Two interfaces have the same address: only the scope distinguishes them. */
TEST(a_link_local_address_is_found_by_its_scope)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("fe80::7", PORT);
	struct rdma_cm_id *listener, *client;

	enter_network();
	namespace_add_dummy("one");
	namespace_add_dummy("two");
	ip("address add fe80::7/64 dev one nodad");
	ip("address add fe80::7/64 dev two nodad");
	address.ipv6.sin6_scope_id = if_nametoindex("two");
	listener = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_bind_addr(listener, &address.any), 0);
	EXPECT_STR(ibv_get_device_name(listener->verbs->device), "vb_two");
	EXPECT_EQ(rdma_listen(listener, 1), 0);
	client = resolve(channel, &address);
	EXPECT_STR(ibv_get_device_name(client->verbs->device), "vb_two");
	EXPECT_EQ(client->route.addr.src_sin6.sin6_scope_id, address.ipv6.sin6_scope_id);
	make_qp(client);
	connect_and_end(channel, client);
	destroy(listener);
}

TEST(the_space_ib_has_ports_of_its_own)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *other;

	enter_network();
	listener = make_listener(channel, RDMA_PS_IB);
	other = make_listener(channel, RDMA_PS_TCP);
	connect_and_end(channel, make_client(channel, RDMA_PS_IB));
	destroy(listener);
	destroy(other);
}

static struct rdma_cm_id *make_endpoint(const char *node, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags,
				       .ai_port_space = RDMA_PS_IB,
				       .ai_qp_type = IBV_QPT_UC };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_UC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_addrinfo *info;
	struct rdma_cm_id *id;

	EXPECT_EQ(rdma_getaddrinfo(node, "7471", &hints, &info), 0);
	EXPECT_EQ(info->ai_qp_type, IBV_QPT_UC);
	EXPECT_EQ(rdma_create_ep(&id, info, NULL, &attr), 0);
	rdma_freeaddrinfo(info);
	return id;
}

TEST(a_uc_connection_is_made_by_endpoints)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *client, *server;

	enter_network();
	listener = make_endpoint("127.0.0.1", RAI_PASSIVE);
	EXPECT_EQ(rdma_listen(listener, 1), 0);
	client = make_endpoint("127.0.0.1", 0);
	EXPECT_EQ(client->qp->qp_type, IBV_QPT_UC);
	EXPECT_EQ(rdma_migrate_id(client, channel), 0);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(rdma_get_request(listener, &server), 0);
	EXPECT_EQ(server->qp->qp_type, IBV_QPT_UC);
	EXPECT_EQ(rdma_migrate_id(server, channel), 0);
	EXPECT_EQ(rdma_accept(server, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(state_of(client), IBV_QPS_RTS);
	EXPECT_EQ(state_of(server), IBV_QPS_RTS);
	rdma_destroy_ep(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	rdma_destroy_ep(server);
	rdma_destroy_ep(listener);
}

/* Both ends report what their vendor offers; the QPs are the program's own. */
TEST(ece_options_are_told_to_the_other_end)
{
	struct rdma_event_channel *channel = make_channel();
	struct ibv_ece offer = { .vendor_id = 0x15b3, .options = 0x12345678 },
		       answer = { .vendor_id = 0x15b3, .options = 0x10000000 }, got;
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct rdma_cm_id *listener, *client, *server;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_set_local_ece(client, &offer), EINVAL);
	rdma_destroy_qp(client);
	EXPECT_EQ(rdma_set_local_ece(client, &offer), 0);
	EXPECT_EQ(rdma_connect(client, &param), 0);
	server = take_request(channel);
	EXPECT_EQ(rdma_get_remote_ece(server, &got), 0);
	EXPECT_EQ(got.vendor_id, offer.vendor_id);
	EXPECT_EQ(got.options, offer.options);
	EXPECT_EQ(rdma_set_local_ece(server, &answer), 0);
	param.qp_num = 0x5678;
	EXPECT_EQ(rdma_accept(server, &param), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE), 0);
	EXPECT_EQ(rdma_get_remote_ece(client, &got), 0);
	EXPECT_EQ(got.options, answer.options);
	EXPECT_EQ(rdma_establish(client), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	destroy(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(server);
	destroy(listener);
}

TEST(a_rejection_for_its_ece_says_so)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *client, *server;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	server = take_request(channel);
	EXPECT_EQ(rdma_reject_ece(server, NULL, 0), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_REJECTED), 35);
	destroy(server);
	destroy(client);
	destroy(listener);
}

TEST(an_identifier_bound_to_a_device_learns_that_it_was_removed)
{
	struct rdma_event_channel *channel = make_channel(), *others = make_channel();
	union address address = address_of("10.9.0.1", PORT);
	struct rdma_cm_id *listener, *client, *server, *stranger;

	enter_network();
	namespace_add_dummy("one");
	ip("address add 10.9.0.1/24 dev one");
	stranger = make_client(others, RDMA_PS_TCP);
	listener = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_bind_addr(listener, &address.any), 0);
	EXPECT_EQ(rdma_listen(listener, 1), 0);
	client = resolve(channel, &address);
	make_qp(client);
	EXPECT_STR(ibv_get_device_name(client->verbs->device), "vb_one");
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	server = take_request(channel);
	ip("link delete one");
	for (int i = 0; i < 3; i++)
		EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DEVICE_REMOVAL), 0);
	destroy(server);
	destroy(client);
	destroy(listener);
	EXPECT_EQ(rdma_connect(stranger, NULL), 0);
	EXPECT_EQ(pass_event(others, RDMA_CM_EVENT_REJECTED), 8);
	destroy(stranger);
}
