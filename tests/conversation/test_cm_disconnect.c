/* SPDX-License-Identifier: BSD-2-Clause */
/* Ending a connection: DREQ and DREP, TIMEWAIT, and destroying in every state. */
#include "harness.h"
#include "support_cm.h"

#include <string.h>

TEST(a_dreq_is_answered_by_the_program_and_both_learn_of_the_end)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, SERVER);
	expect_mads(talk, SERVER, "DREQ");
	EXPECT_EQ(parse_held_mad(talk, 0).dreq.remote_qpn.v, CLIENT_QPN.v);
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "DISCONNECTED");
	expect_silence_of(talk, CLIENT);
	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREP");
	expect_events(talk, SERVER, "DISCONNECTED");
	EXPECT(!talk->event.is_timeout);
	expect_state(talk, CLIENT, "TIMEWAIT");
	expect_state(talk, SERVER, "TIMEWAIT");
	talk_end(talk);
}

TEST(timewait_lasts_as_long_as_a_packet_may_be_under_way)
{
	struct talk *talk = talk_begin_connected();
	uint64_t begin_ns = talk->now_ns;

	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	disconnect_from(talk, SERVER);
	say(talk, SERVER, "DREP");
	expect_events(talk, CLIENT, "DISCONNECTED");
	pass_ns(talk, vb_mad_timeout_ns(17) - 1);
	expect_no_events(talk, CLIENT);
	pass_to_deadline_of(talk, CLIENT);
	EXPECT_EQ(talk->now_ns - begin_ns, vb_mad_timeout_ns(17));
	expect_events(talk, CLIENT, "TIMEWAIT_EXIT");
	expect_events(talk, SERVER, "TIMEWAIT_EXIT");
	expect_state(talk, CLIENT, "CLOSED");
	talk_end(talk);
}

TEST(a_dreq_that_comes_again_in_timewait_has_the_drep_sent_again)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_private private_data = { "bye", 3 };

	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	EXPECT_EQ(vb_cm_disconnect(talk->connection[SERVER], &private_data, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "DREP");
	lose_held(talk);
	vb_cm_fire_timers(talk->cm[CLIENT], vb_cm_deadline(talk->cm[CLIENT]));
	say(talk, CLIENT, "DREQ");
	expect_no_events(talk, SERVER);
	expect_mads(talk, SERVER, "DREP");
	EXPECT_MEM(parse_held_mad(talk, 0).private_data, "bye", 4);
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_dreq_that_comes_twice_is_one_event)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	deliver_and_keep(talk, SERVER);
	deliver_and_keep(talk, SERVER);
	expect_events(talk, SERVER, "DISCONNECTED");
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(two_dreqs_that_cross_end_both_sides)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_mad dreq;

	disconnect_from(talk, CLIENT);
	disconnect_from(talk, SERVER);
	expect_mads(talk, SERVER, "DREQ");
	dreq = talk->mads[0];
	say(talk, CLIENT, "DREQ");
	talk->mads[0] = dreq;
	talk->mad_count = 1;
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "DISCONNECTED");
	expect_events(talk, SERVER, "DISCONNECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	expect_state(talk, SERVER, "TIMEWAIT");
	say(talk, CLIENT, "DREP");
	say(talk, SERVER, "DREP");
	expect_no_events(talk, CLIENT);
	expect_no_events(talk, SERVER);
	talk_end(talk);
}

TEST(a_dreq_with_another_qpn_is_ignored)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad;

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	mad = parse_held_mad(talk, 0);
	mad.dreq.remote_qpn.v++;
	vb_mad_store(talk->mads[0].bytes, &mad);
	deliver_held(talk, SERVER);
	expect_no_events(talk, SERVER);
	expect_silence_of(talk, SERVER);
	expect_state(talk, SERVER, "CONNECTED");
	talk_end(talk);
}

TEST(a_dreq_before_the_rtu_ends_an_accepted_connection)
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
	lose_held(talk);
	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	EXPECT_EQ(vb_cm_deadline(talk->cm[SERVER]), UINT64_MAX);
	talk_end(talk);
}

TEST(an_rtu_that_was_not_sent_yet_goes_before_the_dreq)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "RTU", "DREQ");
	expect_events(talk, SERVER, "ESTABLISHED", "DISCONNECTED");
	talk_end(talk);
}

TEST(a_dreq_or_rtu_of_another_peer_for_our_id_is_nobodys)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_DREQ,
			      .local_id = 0x666,
			      .remote_id = vb_cm_connection_id(talk->connection[SERVER]),
			      .dreq.remote_qpn = SERVER_QPN };

	talk->mads[0].flow = talk_flow(CLIENT);
	vb_mad_store(talk->mads[0].bytes, &mad);
	talk->mad_count = 1;
	deliver_held(talk, SERVER);
	expect_mads(talk, SERVER, "DREP");
	EXPECT_EQ(parse_held_mad(talk, 0).remote_id, 0x666);
	mad.kind = VB_MAD_RTU;
	hold_mad(talk, CLIENT, &mad);
	deliver_held(talk, SERVER);
	expect_mads(talk, SERVER, "REJ of other: invalid communication ID");
	expect_no_events(talk, SERVER);
	expect_state(talk, SERVER, "CONNECTED");
	talk_end(talk);
}

TEST(a_dreq_for_what_is_not_answered_yet_is_ignored)
{
	struct talk *talk = talk_begin();
	struct vb_mad mad = { .kind = VB_MAD_DREQ,
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .dreq.remote_qpn = CLIENT_QPN };

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	hold_mad(talk, SERVER, &mad);
	deliver_held(talk, CLIENT);
	expect_silence_of(talk, CLIENT);
	expect_no_events(talk, CLIENT);
	expect_state(talk, CLIENT, "REQ_SENT");
	talk_end(talk);
}

/* --- destroying ------------------------------------------------------------------------------- */

/* False once the communication ID is gone: a message for it belongs to no connection. */
static bool is_known(struct talk *talk, int side, uint32_t id)
{
	struct vb_mad mad = { .kind = VB_MAD_DREP, .remote_id = id };
	struct vb_flow flow = talk_flow(!side);
	uint8_t bytes[VB_MAD_SIZE];

	vb_mad_store(bytes, &mad);
	return vb_cm_receive(talk->cm[side], &flow, VB_MAD_QPN, bytes, sizeof(bytes), talk->now_ns,
			     &talk->addressee) == VB_CM_TAKEN;
}

TEST(destroying_an_idle_connection_frees_it)
{
	struct talk *talk = talk_begin();
	struct vb_cm_connection *other;

	while (vb_cm_connection_create(talk->cm[CLIENT], NULL, &other) == VB_OK)
		;
	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &other), VB_OK);
	expect_silence_of(talk, CLIENT);
	talk_end(talk);
}

TEST(destroying_a_connected_connection_disconnects_until_the_dreq_is_answered)
{
	struct talk *talk = talk_begin_connected();
	uint32_t id = vb_cm_connection_id(talk->connection[CLIENT]);

	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	expect_mads(talk, CLIENT, "DREQ");
	lose_held(talk);
	pass_to_deadline_of(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	say(talk, SERVER, "DREP");
	expect_no_events(talk, CLIENT);
	EXPECT(is_known(talk, CLIENT, id));
	pass_to_deadline_of(talk, CLIENT);
	expect_no_events(talk, CLIENT);
	EXPECT(!is_known(talk, CLIENT, id));
	talk_end(talk);
}

TEST(destroying_a_connection_that_disconnects_lets_it_finish)
{
	struct talk *talk = talk_begin_connected();
	uint32_t id = vb_cm_connection_id(talk->connection[CLIENT]);

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	lose_held(talk);
	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	expect_silence_of(talk, CLIENT);
	pass_to_deadline_of(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	disconnect_from(talk, SERVER);
	say(talk, SERVER, "DREP");
	expect_no_events(talk, CLIENT);
	pass_to_deadline_of(talk, CLIENT);
	EXPECT(!is_known(talk, CLIENT, id));
	talk_end(talk);
}

TEST(destroying_a_request_rejects_it)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	expect_mads(talk, SERVER, "REJ of REQ: consumer defined");
	EXPECT_EQ(parse_held_mad(talk, 0).local_id, 0);
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(destroying_an_accepted_connection_rejects_it_and_holds_it_in_timewait)
{
	struct talk *talk = talk_begin();
	uint32_t id;

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	id = vb_cm_connection_id(talk->connection[SERVER]);
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	say(talk, SERVER, "REJ of other: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	EXPECT(is_known(talk, SERVER, id));
	pass_to_deadline_of(talk, SERVER);
	EXPECT(!is_known(talk, SERVER, id));
	talk_end(talk);
}

TEST(a_req_that_comes_again_after_an_accepted_connection_was_destroyed_hears_why)
{
	struct talk *talk = talk_begin();
	struct vb_cm_mad req;

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	req = talk->mads[0];
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	expect_mads(talk, SERVER, "REJ of other: consumer defined");
	talk->mads[0] = req; /* REP and REJ were lost */
	deliver_held(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(destroying_an_answered_request_rejects_the_answer)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	expect_no_events(talk, CLIENT);
	say(talk, CLIENT, "REJ of REP: consumer defined");
	expect_events(talk, SERVER, "REJECTED");
	talk_end(talk);
}

TEST(an_id_is_not_given_again_during_timewait)
{
	struct talk *talk = talk_begin_connected();
	uint32_t id = vb_cm_connection_id(talk->connection[CLIENT]);
	struct vb_cm_connection *others[7];

	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	for (int i = 0; i < 7; i++) {
		EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &others[i]), VB_OK);
		EXPECT(vb_cm_connection_id(others[i]) != id);
	}
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &others[0]), VB_ENOSPC);
	talk_end(talk);
}

TEST(a_rej_ends_a_connection_that_stands)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_REJ,
			      .local_id = vb_cm_connection_id(talk->connection[SERVER]),
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rej = { .about = VB_MAD_ABOUT_OTHER,
				       .reason = VB_MAD_INVALID_COMM_ID } };

	hold_mad(talk, SERVER, &mad);
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "REJECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	talk_end(talk);
}

TEST(a_rej_after_our_dreq_is_the_answer)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_REJ,
			      .local_id = vb_cm_connection_id(talk->connection[SERVER]),
			      .remote_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .rej = { .about = VB_MAD_ABOUT_OTHER,
				       .reason = VB_MAD_INVALID_COMM_ID } };

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	hold_mad(talk, SERVER, &mad);
	deliver_held(talk, CLIENT);
	expect_events(talk, CLIENT, "DISCONNECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	talk_end(talk);
}
