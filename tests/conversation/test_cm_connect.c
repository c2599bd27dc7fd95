/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making a connection: the contents of the messages, what both programs learn, and which listener a
 * request reaches.
 */
#include "harness.h"
#include "support_cm.h"

#include "base/bytes.h"

#include <string.h>

TEST(both_sides_are_connected_after_req_rep_and_rtu)
{
	struct talk *talk = talk_begin_connected();

	expect_state(talk, CLIENT, "CONNECTED");
	expect_state(talk, SERVER, "CONNECTED");
	expect_silence_of(talk, CLIENT);
	expect_silence_of(talk, SERVER);
	EXPECT_EQ(vb_cm_deadline(talk->cm[CLIENT]), UINT64_MAX);
	EXPECT_EQ(vb_cm_deadline(talk->cm[SERVER]), UINT64_MAX);
	talk_end(talk);
}

TEST(each_side_learns_how_to_set_its_qp)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_qp client, server;
	struct vb_flow to_server = talk_flow(CLIENT), to_client = talk_flow(SERVER);

	vb_cm_connection_qp(talk->connection[CLIENT], &client);
	vb_cm_connection_qp(talk->connection[SERVER], &server);
	EXPECT_EQ(client.remote_qpn.v, SERVER_QPN.v);
	EXPECT_EQ(server.remote_qpn.v, CLIENT_QPN.v);
	EXPECT_EQ(client.receive_psn.v, 0x111);
	EXPECT_EQ(client.send_psn.v, 0x222);
	EXPECT_EQ(server.receive_psn.v, 0x222);
	EXPECT_EQ(server.send_psn.v, 0x111);
	EXPECT_MEM(&client.flow, &to_server, sizeof(to_server));
	EXPECT_MEM(&server.flow, &to_client, sizeof(to_client));
	EXPECT_EQ(client.mtu, 3);
	EXPECT_EQ(server.mtu, 3);
	EXPECT_EQ(client.initiator_depth, 2); /* what the server accepts */
	EXPECT_EQ(client.responder_resources, 1); /* what the server has outstanding */
	EXPECT_EQ(server.initiator_depth, 1);
	EXPECT_EQ(server.responder_resources, 2);
	EXPECT_EQ(client.rnr_retry_count, 5); /* the server's, and vice versa */
	EXPECT_EQ(server.rnr_retry_count, 6);
	EXPECT_EQ(client.retry_count, 7);
	EXPECT_EQ(server.retry_count, 7);
	EXPECT_EQ(client.ack_timeout, 17);
	EXPECT_EQ(server.ack_timeout, 17);
	talk_end(talk);
}

TEST(a_request_says_what_the_program_wants)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_mad mad;

	request.ece = (struct vb_cm_ece){ .vendor = 0x123456, .options = 0x77 };
	request.has_srq = true;
	request.has_flow_control = true;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	EXPECT_EQ(talk->mads[0].qpn.v, 1);
	EXPECT_MEM(&talk->mads[0].flow, &request.flow, sizeof(request.flow));
	mad = parse_held_mad(talk, 0);
	EXPECT_EQ(mad.local_id, vb_cm_connection_id(talk->connection[CLIENT]));
	EXPECT_EQ(mad.local_id >> 28, 5); /* the prefix of the process */
	EXPECT_EQ(mad.modifier, 0x77);
	EXPECT_EQ(load24(mad.req.vendor), 0x123456);
	EXPECT_EQ(mad.req.ca_guid, CLIENT_GUID);
	EXPECT_EQ(mad.req.responder_resources, 4);
	EXPECT_EQ(mad.req.initiator_depth, 3);
	EXPECT_EQ(mad.req.remote_response_timeout, 20);
	EXPECT_EQ(mad.req.local_response_timeout, 20);
	EXPECT_EQ(mad.req.cm_retries_max, 3);
	EXPECT_EQ(mad.req.has_srq, 1);
	EXPECT_EQ(mad.req.has_flow_control, 1);
	EXPECT_EQ(mad.req.primary.local_lid, 0xffff);
	EXPECT_EQ(mad.req.primary.remote_lid, 0xffff);
	EXPECT_EQ(mad.req.primary.is_subnet_local, 0);
	EXPECT_EQ(mad.req.primary.traffic_class, 0x68);
	EXPECT_EQ(mad.req.primary.hop_limit, 64);
	EXPECT_EQ(mad.req.primary.ack_timeout, 17);
	EXPECT_EQ(mad.req.alternate.local_lid, 0);
	talk_end(talk);
}

TEST(a_path_of_one_hop_is_in_the_subnet_and_has_no_lids)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();

	request.flow.hop_limit = 1;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	EXPECT_EQ(parse_held_mad(talk, 0).req.primary.local_lid, 0);
	EXPECT_EQ(parse_held_mad(talk, 0).req.primary.is_subnet_local, 1);
	talk_end(talk);
}

TEST(an_ack_timeout_covers_the_way_there_and_back_and_the_delay)
{
	static const uint8_t cases[][3] = { /* delay, life time, timeout */
					    { 0, 16, 17 },  { 15, 16, 17 }, { 16, 16, 18 },
					    { 17, 16, 18 }, { 18, 16, 19 }, { 19, 16, 19 },
					    { 31, 31, 31 }
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_cm_config config = { .ack_delay = cases[i][0], .connection_max = 1 };
		struct vb_cm_request request = talk_request();
		struct vb_cm_connection *connection;
		struct vb_cm_mad out;
		struct vb_mad mad;
		struct vb_cm *cm;

		request.packet_life_time = cases[i][1];
		EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
		EXPECT_EQ(vb_cm_connection_create(cm, NULL, &connection), VB_OK);
		EXPECT_EQ(vb_cm_connect(connection, &request, 0), VB_OK);
		EXPECT(vb_cm_take_mad(cm, &out));
		EXPECT_EQ(vb_mad_parse(out.bytes, VB_MAD_SIZE, &mad), VB_MAD_PARSED);
		EXPECT_EQ(mad.req.primary.ack_timeout, cases[i][2]);
		vb_cm_destroy(cm);
	}
}

TEST(private_data_and_addresses_arrive)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_cm_reply reply = talk_reply();
	struct vb_service_ip ip = talk_ip();
	uint8_t data[224];

	memset(data, 0x33, sizeof(data));
	request.ip = &ip;
	request.private_data = (struct vb_cm_private){ data, 56 };
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	EXPECT(talk->event.owner == talk && talk->event.listener == talk->listener);
	EXPECT(talk->event.has_ip);
	EXPECT_MEM(&talk->event.ip, &ip, sizeof(ip));
	EXPECT_EQ(talk->event.private_length, 56);
	EXPECT_MEM(talk->event.message.private_data, data, 56);
	reply.private_data = (struct vb_cm_private){ data, 196 };
	EXPECT_EQ(vb_cm_accept(talk->connection[SERVER], &reply, talk->now_ns), VB_OK);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	EXPECT(!talk->event.has_ip);
	EXPECT_EQ(talk->event.private_length, 196);
	EXPECT_MEM(talk->event.message.private_data, data, 196);
	talk_end(talk);
}

TEST(private_data_that_does_not_fit_is_refused)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_cm_reply reply = talk_reply();
	struct vb_cm_rejection rejection = { .reason = VB_MAD_CONSUMER_DEFINED };
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_private private_data = { .length = 225 };
	uint8_t data[256] = { 0 };

	private_data.data = data;
	request.ip = &ip;
	request.private_data = (struct vb_cm_private){ data, 57 };
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, 0), VB_EINVAL);
	request.ip = NULL;
	request.private_data.length = 93;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, 0), VB_EINVAL);
	expect_state(talk, CLIENT, "IDLE");
	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	reply.private_data = (struct vb_cm_private){ data, 197 };
	EXPECT_EQ(vb_cm_accept(talk->connection[SERVER], &reply, 0), VB_EINVAL);
	rejection.private_data = (struct vb_cm_private){ data, 149 };
	EXPECT_EQ(vb_cm_reject(talk->connection[SERVER], &rejection, 0), VB_EINVAL);
	rejection = (struct vb_cm_rejection){ .info = data, .info_length = 73 };
	EXPECT_EQ(vb_cm_reject(talk->connection[SERVER], &rejection, 0), VB_EINVAL);
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	EXPECT_EQ(vb_cm_establish(talk->connection[CLIENT], &private_data, 0), VB_EINVAL);
	client_establishes(talk);
	private_data.length = 221;
	EXPECT_EQ(vb_cm_disconnect(talk->connection[CLIENT], &private_data, 0), VB_EINVAL);
	expect_state(talk, CLIENT, "CONNECTED");
	talk_end(talk);
}

TEST(a_call_in_the_wrong_state_is_refused_and_changes_nothing)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_cm_reply reply = talk_reply();
	struct vb_cm_rejection rejection = { .reason = VB_MAD_CONSUMER_DEFINED };
	struct vb_cm_connection *connection = talk->connection[CLIENT];

	EXPECT_EQ(vb_cm_accept(connection, &reply, 0), VB_EINVAL);
	EXPECT_EQ(vb_cm_establish(connection, NULL, 0), VB_EINVAL);
	EXPECT_EQ(vb_cm_disconnect(connection, NULL, 0), VB_EINVAL);
	EXPECT_EQ(vb_cm_reject(connection, &rejection, 0), VB_EINVAL);
	vb_cm_on_communication(connection, 0);
	report_unreachable(talk, CLIENT);
	client_connects(talk);
	EXPECT_EQ(vb_cm_connect(connection, &request, 0), VB_EINVAL);
	EXPECT_EQ(vb_cm_disconnect(connection, NULL, 0), VB_EINVAL);
	expect_state(talk, CLIENT, "REQ_SENT");
	expect_mads(talk, CLIENT, "REQ");
	expect_no_events(talk, CLIENT);
	talk_end(talk);
}

TEST(the_first_packet_of_the_peer_establishes_before_the_rtu)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	expect_mads(talk, CLIENT, "RTU");
	vb_cm_on_communication(talk->connection[SERVER], talk->now_ns);
	expect_events(talk, SERVER, "ESTABLISHED");
	EXPECT_EQ(vb_cm_deadline(talk->cm[SERVER]), UINT64_MAX);
	deliver_held(talk, SERVER);
	expect_no_events(talk, SERVER);
	talk_end(talk);
}

TEST(an_xrc_target_has_its_qpn_in_another_place)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_qp qp;

	request.ip = &ip;
	request.transport = VB_CM_XRC;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	EXPECT_EQ(parse_held_mad(talk, 0).req.transport, VB_MAD_TRANSPORT_EXTENDED);
	EXPECT_EQ(parse_held_mad(talk, 0).req.extended_transport, VB_MAD_EXTENDED_XRC);
	EXPECT_EQ(parse_held_mad(talk, 0).req.responder_resources, 0);
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	EXPECT_EQ(parse_held_mad(talk, 0).rep.qpn.v, 0);
	EXPECT_EQ(parse_held_mad(talk, 0).rep.eecn, SERVER_QPN.v);
	EXPECT_EQ(parse_held_mad(talk, 0).rep.has_srq, 1);
	deliver_held(talk, CLIENT);
	vb_cm_connection_qp(talk->connection[CLIENT], &qp);
	EXPECT_EQ(qp.remote_qpn.v, SERVER_QPN.v);
	EXPECT_EQ(qp.transport, VB_CM_XRC);
	talk_end(talk);
}

TEST(uc_is_asked_for_as_such)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_qp qp;

	request.ip = &ip;
	request.transport = VB_CM_UC;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	EXPECT_EQ(parse_held_mad(talk, 0).req.transport, VB_MAD_TRANSPORT_UC);
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	vb_cm_connection_qp(talk->connection[SERVER], &qp);
	EXPECT_EQ(qp.transport, VB_CM_UC);
	talk_end(talk);
}

TEST(a_machine_can_connect_to_itself)
{
	struct talk *talk = talk_begin();
	struct vb_cm_connection *client;
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();

	EXPECT_EQ(vb_cm_connection_create(talk->cm[SERVER], NULL, &client), VB_OK);
	request.ip = &ip;
	EXPECT_EQ(vb_cm_connect(client, &request, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "REQ");
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "RESPONSE");
	EXPECT(talk->event.connection == client);
	EXPECT_EQ(vb_cm_establish(client, NULL, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "RTU");
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "ESTABLISHED");
	talk_end(talk);
}
