/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that arrive twice, late, or for something that has ended. */
#include "harness.h"
#include "support_cm.h"

/* Until the server's program has seen the request; the REQ is still held. */
static struct talk *talk_requested(void)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	return talk;
}

TEST(a_req_that_comes_twice_is_one_request)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	deliver_and_keep(talk, SERVER);
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	EXPECT_EQ(vb_cm_counters(talk->cm[SERVER])->duplicates, 1);
	talk_end(talk);
}

TEST(a_slow_program_has_an_mra_sent_when_the_req_comes_again)
{
	struct talk *talk = talk_requested();

	deliver_held(talk, SERVER);
	expect_mads(talk, SERVER, "MRA of REQ");
	EXPECT_EQ(parse_held_mad(talk, 0).mra.service_timeout, VB_CM_SERVICE_TIMEOUT);
	EXPECT_EQ(parse_held_mad(talk, 0).remote_id, vb_cm_connection_id(talk->connection[CLIENT]));
	expect_state(talk, SERVER, "MRA_REQ_SENT");
	deliver_held(talk, CLIENT);
	expect_state(talk, CLIENT, "MRA_REQ_RCVD");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	talk_end(talk);
}

TEST(an_mra_puts_off_the_next_retry)
{
	struct talk *talk = talk_requested();
	uint64_t begin_ns;

	pass_ns(talk, 1000000);
	deliver_held(talk, SERVER);
	say(talk, SERVER, "MRA of REQ");
	begin_ns = talk->now_ns;
	pass_to_deadline_of(talk, CLIENT);
	EXPECT_EQ(talk->now_ns - begin_ns, vb_mad_timeout_ns(24) + vb_mad_timeout_ns(17));
	say(talk, CLIENT, "REQ");
	say(talk, SERVER, "MRA of REQ");
	begin_ns = talk->now_ns;
	pass_to_deadline_of(talk, CLIENT);
	EXPECT_EQ(talk->now_ns - begin_ns, vb_mad_timeout_ns(24) + vb_mad_timeout_ns(17));
	talk_end(talk);
}

TEST(a_req_that_comes_again_after_the_rep_has_it_sent_again)
{
	struct talk *talk = talk_requested();

	pass_ns(talk, 1000000); /* the server's own retry comes later than the client's */
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	lose_held(talk);
	pass_to_deadline_of(talk, CLIENT);
	say(talk, CLIENT, "REQ");
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	expect_no_events(talk, SERVER);
	talk_end(talk);
}

TEST(a_req_that_comes_again_when_connected_is_ignored)
{
	struct talk *talk = talk_requested();
	struct vb_cm_mad req = talk->mads[0];

	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	say(talk, CLIENT, "RTU");
	expect_events(talk, SERVER, "ESTABLISHED");
	talk->mads[0] = req;
	talk->mad_count = 1;
	deliver_held(talk, SERVER);
	expect_silence_of(talk, SERVER);
	expect_no_events(talk, SERVER);
	expect_state(talk, SERVER, "CONNECTED");
	talk_end(talk);
}

TEST(a_req_that_comes_again_in_timewait_is_stale)
{
	struct talk *talk = talk_requested();
	struct vb_cm_mad req = talk->mads[0];

	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	say(talk, CLIENT, "RTU");
	expect_events(talk, SERVER, "ESTABLISHED");
	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	disconnect_from(talk, SERVER);
	say(talk, SERVER, "DREP");
	talk->mads[0] = req;
	talk->mad_count = 1;
	deliver_held(talk, SERVER);
	expect_no_events(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: stale connection");
	expect_events(talk, CLIENT, "DISCONNECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	talk_end(talk);
}

TEST(a_rej_that_was_lost_is_sent_again_for_the_same_req)
{
	struct talk *talk = talk_requested();
	struct vb_cm_rejection rejection = { .reason = VB_MAD_NO_RESOURCES };

	EXPECT_EQ(vb_cm_reject(talk->connection[SERVER], &rejection, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "REJ of REQ: no resources");
	lose_held(talk);
	pass_to_deadline_of(talk, CLIENT);
	say(talk, CLIENT, "REQ");
	expect_no_events(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: no resources");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_rep_that_comes_again_when_connected_has_the_rtu_sent_again)
{
	struct talk *talk = talk_requested();
	struct vb_cm_private private_data = { "hello", 5 };

	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "RESPONSE");
	EXPECT_EQ(vb_cm_establish(talk->connection[CLIENT], &private_data, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "RTU");
	lose_held(talk);
	pass_to_deadline_of(talk, SERVER);
	say(talk, SERVER, "REP");
	expect_no_events(talk, CLIENT);
	expect_mads(talk, CLIENT, "RTU");
	EXPECT_MEM(parse_held_mad(talk, 0).private_data, "hello", 6);
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "ESTABLISHED");
	talk_end(talk);
}

TEST(a_slow_client_has_an_mra_sent_when_the_rep_comes_again)
{
	struct talk *talk = talk_requested();

	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	pass_to_deadline_of(talk, SERVER);
	say(talk, SERVER, "REP");
	say(talk, CLIENT, "MRA of REP");
	expect_state(talk, CLIENT, "MRA_REP_SENT");
	expect_state(talk, SERVER, "MRA_REP_RCVD");
	client_establishes(talk);
	say(talk, CLIENT, "RTU");
	expect_events(talk, SERVER, "ESTABLISHED");
	talk_end(talk);
}

TEST(a_rep_for_a_connection_that_another_one_answered_is_refused)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_REP,
			      .local_id = 0x666,
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rep.qpn = { 0x99 } };

	talk->mads[0].flow = talk_flow(SERVER);
	vb_mad_store(talk->mads[0].bytes, &mad);
	talk->mad_count = 1;
	deliver_held(talk, CLIENT);
	expect_mads(talk, CLIENT, "REJ of REP: invalid communication ID");
	EXPECT_EQ(parse_held_mad(talk, 0).remote_id, 0x666);
	EXPECT_EQ(parse_held_mad(talk, 0).local_id, mad.remote_id);
	expect_no_events(talk, CLIENT);
	expect_state(talk, CLIENT, "CONNECTED");
	talk_end(talk);
}

TEST(an_rtu_that_comes_twice_is_one_event)
{
	struct talk *talk = talk_requested();

	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	expect_mads(talk, CLIENT, "RTU");
	deliver_and_keep(talk, SERVER);
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "ESTABLISHED");
	talk_end(talk);
}

TEST(a_rej_for_the_req_that_comes_after_the_rep_is_ignored)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_REJ,
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rej = { .about = VB_MAD_ABOUT_REQ,
				       .reason = VB_MAD_INVALID_SERVICE_ID } };

	hold_mad(talk, SERVER, &mad);
	deliver_held(talk, CLIENT);
	expect_no_events(talk, CLIENT);
	expect_state(talk, CLIENT, "CONNECTED");
	talk_end(talk);
}

TEST(a_rej_that_overtakes_its_rep_ends_the_attempt)
{
	struct talk *talk = talk_requested();
	struct vb_cm_mad rep;

	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	rep = talk->mads[0];
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	say(talk, SERVER, "REJ of other: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk->mads[0] = rep;
	talk->mad_count = 1;
	deliver_held(talk, CLIENT);
	expect_no_events(talk, CLIENT);
	say(talk, CLIENT, "REJ of REP: invalid communication ID");
	talk_end(talk);
}

TEST(a_request_with_a_qp_that_is_connected_is_stale_and_ends_the_old_connection)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_connection *again;
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();

	request.ip = &ip; /* with the same QPN: the peer was started again */
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &again), VB_OK);
	EXPECT_EQ(vb_cm_connect(again, &request, talk->now_ns), VB_OK);
	say(talk, CLIENT, "REQ");
	expect_no_events(talk, SERVER);
	expect_mads(talk, SERVER, "REJ of REQ: stale connection", "DREQ");
	EXPECT_EQ(parse_held_mad(talk, 1).remote_id, vb_cm_connection_id(talk->connection[CLIENT]));
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "REJECTED", "DISCONNECTED");
	expect_state(talk, SERVER, "DREQ_SENT");
	talk_end(talk);
}

TEST(a_reply_with_a_qp_that_is_connected_is_stale)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_connection *first[2] = { talk->connection[0], talk->connection[1] };

	request.ip = &ip;
	request.qpn = (vb_qpn){ 0x12 };
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &talk->connection[CLIENT]),
		  VB_OK);
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk); /* with the QPN of the first */
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "REJECTED");
	EXPECT_EQ(talk->event.message.rej.reason, VB_MAD_STALE_CONNECTION);
	say(talk, CLIENT, "REJ of REP: stale connection", "DREQ");
	expect_events(talk, SERVER, "REJECTED", "DISCONNECTED");
	EXPECT_EQ(vb_cm_connection_state(first[CLIENT]), VB_CM_DREQ_SENT);
	EXPECT_EQ(vb_cm_connection_state(first[SERVER]), VB_CM_DREQ_RCVD);
	expect_state(talk, SERVER, "TIMEWAIT");
	talk_end(talk);
}
