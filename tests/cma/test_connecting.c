/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections from the first call to the last event, both ends in one process: what each end
 * learns, and which states the QPs are in. Numbers are those that the kernel's rdma_cm reports.
 */
#include "support_cma.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

TEST(an_established_pair_has_its_qps_in_rts_and_knows_both_addresses)
{
	struct pair pair;

	enter_network();
	pair_connect(&pair);
	EXPECT_EQ(state_of(pair.client), IBV_QPS_RTS);
	EXPECT_EQ(state_of(pair.server), IBV_QPS_RTS);
	EXPECT_EQ(be16toh(rdma_get_dst_port(pair.client)), PORT);
	EXPECT_EQ(be16toh(rdma_get_src_port(pair.server)), PORT);
	EXPECT_EQ(rdma_get_src_port(pair.client), rdma_get_dst_port(pair.server));
	EXPECT_EQ(pair.server->route.addr.dst_sin.sin_addr.s_addr, htobe32(0x7f000001));
	EXPECT(pair.server->verbs == pair.client->verbs);
	pair_destroy(&pair);
}

TEST(both_ends_of_a_disconnect_get_the_event_once)
{
	struct pair pair;

	enter_network();
	pair_connect(&pair);
	EXPECT_EQ(rdma_disconnect(pair.client), 0);
	EXPECT_EQ(state_of(pair.client), IBV_QPS_ERR);
	EXPECT_EQ(pass_event(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	EXPECT_EQ(rdma_disconnect(pair.server), 0);
	EXPECT_EQ(pass_event(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	EXPECT_EQ(rdma_disconnect(pair.server), 0);
	EXPECT_EQ(pass_event(pair.client_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	EXPECT_EQ(pass_event(pair.server_channel, RDMA_CM_EVENT_TIMEWAIT_EXIT), 0);
	pair_destroy(&pair);
}

TEST(destroying_one_end_disconnects_the_other)
{
	struct pair pair;

	enter_network();
	pair_connect(&pair);
	destroy(pair.server);
	EXPECT_EQ(pass_event(pair.client_channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(pair.client);
	destroy(pair.listener);
}

TEST(private_data_is_padded_to_what_the_messages_carry)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_conn_param param = { .private_data = "ask",
					 .private_data_len = 4,
					 .retry_count = 3 };
	struct rdma_cm_event *event;
	struct rdma_cm_id *listener, *client, *server;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	EXPECT(event->listen_id == listener);
	EXPECT_EQ(event->param.conn.private_data_len, 56);
	EXPECT_STR(event->param.conn.private_data, "ask");
	EXPECT_EQ(event->param.conn.retry_count, 3);
	EXPECT_EQ(event->param.conn.qp_num, client->qp->qp_num);
	rdma_ack_cm_event(event);
	make_qp(server);
	param.private_data = "answer";
	param.private_data_len = 7;
	EXPECT_EQ(rdma_accept(server, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(event->id == client);
	EXPECT_EQ(event->param.conn.private_data_len, 196);
	EXPECT_STR(event->param.conn.private_data, "answer");
	EXPECT_EQ(event->param.conn.qp_num, server->qp->qp_num);
	rdma_ack_cm_event(event);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	destroy(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	destroy(server);
	destroy(listener);
}

TEST(more_private_data_than_fits_is_refused_and_another_try_is_allowed)
{
	struct rdma_event_channel *channel = make_channel();
	char data[57] = "";
	struct rdma_conn_param param = { .private_data = data, .private_data_len = sizeof(data) };
	struct rdma_cm_id *listener, *client;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_connect(client, &param), EINVAL);
	param.private_data_len--;
	EXPECT_EQ(rdma_connect(client, &param), 0);
	destroy(client);
	destroy(listener);
}

TEST(a_rejection_brings_its_reason_and_148_bytes)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *event;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rdma_ack_cm_event(event);
	EXPECT_EQ(rdma_reject(server, "no", 3), 0);
	event = take_event(channel, RDMA_CM_EVENT_REJECTED);
	EXPECT_EQ(event->status, 28);
	EXPECT_EQ(event->param.conn.private_data_len, 148);
	EXPECT_STR(event->param.conn.private_data, "no");
	rdma_ack_cm_event(event);
	EXPECT_EQ(state_of(client), IBV_QPS_ERR);
	destroy(server);
	destroy(client);
	destroy(listener);
}

TEST(where_nobody_listens_a_connect_is_rejected_with_the_kernels_reason)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *client;

	enter_network();
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_REJECTED), 8);
	destroy(client);
}

TEST(a_request_that_nobody_has_taken_is_rejected_with_its_listener)
{
	struct rdma_event_channel *server_channel = make_channel(), *channel = make_channel();
	struct rdma_cm_id *listener, *client;

	enter_network();
	listener = make_listener(server_channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	rdma_destroy_id(listener);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_REJECTED) != 0, 1);
	destroy(client);
	rdma_destroy_event_channel(server_channel);
	rdma_destroy_event_channel(channel);
}

TEST(a_request_that_is_withdrawn_is_an_event_and_cannot_be_accepted)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *event;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	rdma_ack_cm_event(event);
	destroy(client);
	EXPECT(pass_event(channel, RDMA_CM_EVENT_REJECTED) > 0);
	make_qp(server);
	EXPECT_ERRNO(rdma_accept(server, NULL), EINVAL);
	destroy(server);
	destroy(listener);
}

/* The QP belongs to the program: the program learns how to set it, and says when it is ready. */
TEST(without_a_qp_of_its_own_the_answer_is_told_and_established_by_the_program)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_conn_param param = { .qp_num = 0x1234 };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *event;
	int mask;

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	client = make_client(channel, RDMA_PS_TCP);
	rdma_destroy_qp(client);
	EXPECT_ERRNO(rdma_connect(client, NULL), EINVAL);
	EXPECT_EQ(rdma_connect(client, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	EXPECT_EQ(event->param.conn.qp_num, 0x1234);
	rdma_ack_cm_event(event);
	EXPECT_EQ(rdma_init_qp_attr(server, &attr, &mask), 0);
	EXPECT_EQ(attr.dest_qp_num, 0x1234);
	EXPECT(mask & IBV_QP_AV && mask & IBV_QP_RQ_PSN);
	param.qp_num = 0x5678;
	EXPECT_EQ(rdma_accept(server, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_RESPONSE);
	EXPECT_EQ(event->param.conn.qp_num, 0x5678);
	rdma_ack_cm_event(event);
	EXPECT_EQ(rdma_establish(client), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	rdma_destroy_id(client);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	rdma_destroy_id(server);
	rdma_destroy_id(listener);
}

TEST(a_datagram_service_tells_its_qp_and_the_key_of_all_such_qps)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_conn_param param = { .private_data = "ask", .private_data_len = 4 };
	struct rdma_cm_id *listener, *client, *server;
	struct rdma_cm_event *event;

	enter_network();
	listener = make_listener(channel, RDMA_PS_UDP);
	client = make_client(channel, RDMA_PS_UDP);
	EXPECT_EQ(rdma_connect(client, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	server = event->id;
	EXPECT_EQ(event->param.ud.private_data_len, 180);
	rdma_ack_cm_event(event);
	make_qp(server);
	EXPECT_EQ(rdma_accept(server, &param), 0);
	event = take_event(channel, RDMA_CM_EVENT_ESTABLISHED);
	EXPECT(event->id == client);
	EXPECT_EQ(event->param.ud.private_data_len, 136);
	EXPECT_EQ(event->param.ud.qp_num, server->qp->qp_num);
	EXPECT_EQ(event->param.ud.qkey, RDMA_UDP_QKEY);
	EXPECT_EQ(event->param.ud.ah_attr.is_global, 1);
	rdma_ack_cm_event(event);
	destroy(server);
	destroy(client);
	destroy(listener);
}

TEST(a_datagram_service_that_is_not_there_is_unreachable)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *client;

	enter_network();
	client = make_client(channel, RDMA_PS_UDP);
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_UNREACHABLE), 1);
	destroy(client);
}

TEST(a_group_is_told_by_its_mapped_gid_and_left_once)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *id = make_id(channel, RDMA_PS_UDP);
	union address address, group = address_of("239.1.2.3", 0),
			       other = address_of("10.0.0.1", 0);
	struct rdma_cm_event *event;
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

	enter_network();
	address = address_of("127.0.0.1", 0);
	EXPECT_ERRNO(rdma_join_multicast(id, &group.any, NULL), EINVAL);
	EXPECT_EQ(rdma_bind_addr(id, &address.any), 0);
	make_qp(id);
	EXPECT_ERRNO(rdma_join_multicast(id, &other.any, NULL), EINVAL);
	EXPECT_EQ(rdma_join_multicast(id, &group.any, &group), 0);
	event = take_event(channel, RDMA_CM_EVENT_MULTICAST_JOIN);
	EXPECT_MEM(event->param.ud.ah_attr.grh.dgid.raw, gid, sizeof(gid));
	EXPECT_EQ(event->param.ud.qp_num, 0xffffff);
	EXPECT_EQ(event->param.ud.qkey, RDMA_UDP_QKEY);
	EXPECT(event->param.ud.private_data == &group);
	rdma_ack_cm_event(event);
	EXPECT_EQ(rdma_leave_multicast(id, &group.any), 0);
	EXPECT_ERRNO(rdma_leave_multicast(id, &group.any), EADDRNOTAVAIL);
	destroy(id);
}

/*
 * Programs that have agreed over one connection make the next one on the same port, of another
 * kind.
 */
TEST(a_port_that_was_just_closed_in_one_space_is_waited_for_in_another)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *listener, *client;
	struct rdma_cm_event *event;

	enter_network();
	client = make_client(channel, RDMA_PS_UDP);
	destroy(make_listener(channel, RDMA_PS_TCP));
	EXPECT_EQ(rdma_connect(client, NULL), 0);
	listener = make_listener(channel, RDMA_PS_UDP);
	event = take_event(channel, RDMA_CM_EVENT_CONNECT_REQUEST);
	EXPECT(event->listen_id == listener);
	destroy(event->id);
	rdma_ack_cm_event(event);
	destroy(listener);
	destroy(client);
}
