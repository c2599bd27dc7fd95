/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of a sender that knows the numbers of a connection, but sends from another address than
 * the peer's. They change nothing, and the sender gets the answer that any wrong guess gets.
 */
#include "harness.h"
#include "support_cm.h"

static struct vb_flow flow_from_elsewhere(int to)
{
	struct vb_flow flow = talk_flow(!to);

	flow.source = vb_gid_from_ipv4(0x0a000063);
	return flow;
}

/* Makes the held MADs come from the other address. */
static void disguise(struct talk *talk, int to)
{
	for (uint32_t i = 0; i < talk->mad_count; i++)
		talk->mads[i].flow = flow_from_elsewhere(to);
}

static void expect_nothing_to_say_to_peer(struct talk *talk, int side)
{
	struct vb_flow flow = flow_from_elsewhere(side);
	struct vb_cm_mad mad;

	while (vb_cm_take_mad(talk->cm[side], &mad))
		EXPECT(vb_gid_equal(&mad.flow.destination, &flow.source));
}

/* The held MADs come from elsewhere and belong to no connection; then they come from the peer. */
static void hear_from_stranger(struct talk *talk, int to, const char *state)
{
	struct vb_cm_mad real = talk->mads[0];

	EXPECT_EQ(talk->mad_count, 1);
	disguise(talk, to);
	deliver_unwanted(talk, to, true);
	expect_nothing_to_say_to_peer(talk, to);
	expect_no_events(talk, to);
	expect_state(talk, to, state);
	talk->mads[0] = real;
	talk->mad_count = 1;
	deliver_held(talk, to);
}

/* A new connection of the client's machine with that QPN, and its REQ, which is held. */
static struct vb_cm_connection *request_again(struct talk *talk, vb_qpn qpn)
{
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_connection *again;

	request.ip = &ip;
	request.qpn = qpn;
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &again), VB_OK);
	EXPECT_EQ(vb_cm_connect(again, &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	return again;
}

TEST(a_stale_req_from_another_address_leaves_the_old_connection_alone)
{
	struct talk *talk = talk_begin_connected();

	request_again(talk, CLIENT_QPN);
	disguise(talk, SERVER);
	deliver_held(talk, SERVER);
	expect_silence_of(talk, SERVER);
	expect_state(talk, SERVER, "CONNECTED");
	expect_events(talk, SERVER, "REQUEST"); /* a connection of the stranger's own */
	EXPECT_EQ(vb_cm_connection_state(talk->event.connection), VB_CM_REQ_RCVD);
	talk_end(talk);
}

TEST(a_req_from_another_address_does_not_keep_the_peer_from_its_next_connection)
{
	struct talk *talk = talk_begin();
	struct vb_cm_mad real;

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	real = talk->mads[0];
	disguise(talk, SERVER); /* with the same ID, GUID and QPN */
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	talk->mads[0] = real;
	talk->mad_count = 1;
	deliver_held(talk, SERVER);
	expect_silence_of(talk, SERVER); /* neither a duplicate nor stale */
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	talk_end(talk);
}

TEST(a_req_from_another_address_is_no_duplicate)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	disguise(talk, SERVER);
	deliver_held(talk, SERVER);
	EXPECT_EQ(vb_cm_counters(talk->cm[SERVER])->duplicates, 0);
	expect_state(talk, SERVER, "REQ_RCVD");
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(an_mra_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	deliver_held(talk, SERVER);
	expect_mads(talk, SERVER, "MRA of REQ");
	hear_from_stranger(talk, CLIENT, "REQ_SENT");
	expect_state(talk, CLIENT, "MRA_REQ_RCVD");
	talk_end(talk);
}

TEST(a_rep_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	hear_from_stranger(talk, CLIENT, "REQ_SENT");
	expect_events(talk, CLIENT, "RESPONSE");
	talk_end(talk);
}

TEST(an_rtu_from_another_address_is_nobodys)
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
	hear_from_stranger(talk, SERVER, "REP_SENT");
	expect_events(talk, SERVER, "ESTABLISHED");
	talk_end(talk);
}

TEST(a_dreq_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	hear_from_stranger(talk, SERVER, "CONNECTED");
	expect_events(talk, SERVER, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_drep_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	disconnect_from(talk, SERVER);
	expect_mads(talk, SERVER, "DREP");
	hear_from_stranger(talk, CLIENT, "DREQ_SENT");
	expect_events(talk, CLIENT, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_rej_of_a_req_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin();
	struct vb_mad rej = { .kind = VB_MAD_REJ,
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rej = { .about = VB_MAD_ABOUT_REQ,
				       .reason = VB_MAD_INVALID_SERVICE_ID } };

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	hold_mad(talk, SERVER, &rej);
	hear_from_stranger(talk, CLIENT, "REQ_SENT");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_rej_of_a_connection_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad rej = { .kind = VB_MAD_REJ,
			      .local_id = vb_cm_connection_id(talk->connection[SERVER]),
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rej = { .about = VB_MAD_ABOUT_REP, .reason = VB_MAD_NO_RESOURCES } };

	hold_mad(talk, SERVER, &rej);
	hear_from_stranger(talk, CLIENT, "CONNECTED");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

/* The REJ names its sender only, by ID and GUID, which a stranger may know. */
TEST(a_rej_for_a_timeout_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad rej = {
		.kind = VB_MAD_REJ,
		.local_id = vb_cm_connection_id(talk->connection[CLIENT]),
		.rej = { .about = VB_MAD_ABOUT_REQ, .reason = VB_MAD_TIMEOUT, .info_length = 8 }
	};

	for (int i = 0; i < 8; i++)
		rej.rej.info[i] = (uint8_t)(CLIENT_GUID >> (56 - 8 * i));
	hold_mad(talk, CLIENT, &rej);
	hear_from_stranger(talk, SERVER, "CONNECTED");
	expect_events(talk, SERVER, "REJECTED");
	talk_end(talk);
}

TEST(a_lap_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad lap = { .kind = VB_MAD_LAP,
			      .local_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .remote_id = vb_cm_connection_id(talk->connection[SERVER]) };

	hold_mad(talk, CLIENT, &lap);
	hear_from_stranger(talk, SERVER, "CONNECTED");
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(a_sidr_rep_from_another_address_is_nobodys)
{
	struct talk *talk = talk_begin();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_resolution resolution = { .service = talk_request().service,
					       .ip = &ip,
					       .flow = talk_flow(CLIENT),
					       .pkey = 0xffff,
					       .response_timeout = 20,
					       .retries_max = 3 };
	struct vb_cm_sidr answer = { .qpn = SERVER_QPN, .qkey = 5 };

	EXPECT_EQ(vb_cm_resolve(talk->connection[CLIENT], &resolution, talk->now_ns), VB_OK);
	say(talk, CLIENT, "SIDR_REQ");
	expect_events(talk, SERVER, "SIDR_REQUEST");
	EXPECT_EQ(vb_cm_answer(talk->event.connection, &answer, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "SIDR_REP");
	hear_from_stranger(talk, CLIENT, "SIDR_REQ_SENT");
	expect_events(talk, CLIENT, "SIDR_RESPONSE");
	talk_end(talk);
}
