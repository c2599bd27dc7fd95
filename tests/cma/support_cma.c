/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the tests of librdmacm share. */
#include "support_cma.h"

#include "namespace.h"

#include <arpa/inet.h>
#include <string.h>

void enter_network(void)
{
	namespace_enter();
	ip("link set lo up");
}

union address address_of(const char *text, uint16_t port)
{
	union address address = { 0 };

	if (inet_pton(AF_INET, text, &address.ipv4.sin_addr) == 1) {
		address.any.sa_family = AF_INET;
		address.ipv4.sin_port = htons(port);
		return address;
	}
	EXPECT_EQ(inet_pton(AF_INET6, text, &address.ipv6.sin6_addr), 1);
	address.any.sa_family = AF_INET6;
	address.ipv6.sin6_port = htons(port);
	return address;
}

/* Most tests leave their channels to the end of their process. */
static struct rdma_event_channel *channels[8];

struct rdma_event_channel *make_channel(void)
{
	static size_t count;

	EXPECT(count < sizeof(channels) / sizeof(channels[0]));
	channels[count] = rdma_create_event_channel();
	EXPECT(channels[count]);
	return channels[count++];
}

struct rdma_cm_id *make_id(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	struct rdma_cm_id *id;

	EXPECT_EQ(rdma_create_id(channel, &id, NULL, space), 0);
	return id;
}

struct rdma_cm_id *make_listener_with_room(struct rdma_event_channel *channel,
					   enum rdma_port_space space, int backlog)
{
	struct rdma_cm_id *id = make_id(channel, space);
	union address address = address_of("0.0.0.0", PORT);

	EXPECT_EQ(rdma_bind_addr(id, &address.any), 0);
	EXPECT_EQ(rdma_listen(id, backlog), 0);
	return id;
}

struct rdma_cm_id *make_listener(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	return make_listener_with_room(channel, space, 16);
}

void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};

	EXPECT_EQ(rdma_create_qp(id, NULL, &attr), 0);
}

struct rdma_cm_id *make_client_of(struct rdma_event_channel *channel, enum rdma_port_space space,
				  const char *server)
{
	struct rdma_cm_id *id = make_id(channel, space);
	union address address = address_of(server, PORT);

	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ROUTE_RESOLVED), 0);
	make_qp(id);
	return id;
}

struct rdma_cm_id *make_client(struct rdma_event_channel *channel, enum rdma_port_space space)
{
	return make_client_of(channel, space, "127.0.0.1");
}

struct rdma_cm_id *take_request(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	struct rdma_cm_id *id = event->id;

	EXPECT_EQ(rdma_ack_cm_event(event), 0);
	return id;
}

void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	EXPECT_EQ(rdma_destroy_id(id), 0);
}

struct rdma_cm_event *take_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event;

	EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
	EXPECT_STR(rdma_event_str(event->event), rdma_event_str(type));
	return event;
}

int pass_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *event = take_event(channel, type);
	int status = event->status;

	EXPECT_EQ(rdma_ack_cm_event(event), 0);
	return status;
}

void pair_connect(struct pair *pair)
{
	pair->server_channel = make_channel();
	pair->client_channel = make_channel();
	pair->listener = make_listener(pair->server_channel, RDMA_PS_TCP);
	pair->client = make_client(pair->client_channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(pair->client, NULL), 0);
	pair->server = take_request(pair->server_channel);
	make_qp(pair->server);
	EXPECT_EQ(rdma_accept(pair->server, NULL), 0);
	EXPECT_EQ(pass_event(pair->client_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	EXPECT_EQ(pass_event(pair->server_channel, RDMA_CM_EVENT_ESTABLISHED), 0);
}

void pair_destroy(struct pair *pair)
{
	destroy(pair->client);
	destroy(pair->server);
	destroy(pair->listener);
	rdma_destroy_event_channel(pair->client_channel);
	rdma_destroy_event_channel(pair->server_channel);
}

enum ibv_qp_state state_of(struct rdma_cm_id *id)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	EXPECT_EQ(ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}
