/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages that are not answered: when they are sent again, how often, and what follows. */
#include "harness.h"
#include "support_cm.h"

#define RETRY_NS (2 * vb_mad_timeout_ns(16) + vb_mad_timeout_ns(20))

/* The side sends the message repeatedly; every copy is lost. */
static void lose_all(struct talk *talk, int side, const char *word, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t begin_ns = talk->now_ns;

		expect_mads(talk, side, word);
		lose_held(talk);
		pass_to_deadline_of(talk, side);
		EXPECT_EQ(talk->now_ns - begin_ns, RETRY_NS);
	}
}

TEST(a_req_is_sent_again_after_the_response_timeout_and_two_ways)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	lose_all(talk, CLIENT, "REQ", 2);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	EXPECT_EQ(vb_cm_counters(talk->cm[CLIENT])->sent[0], 3);
	EXPECT_EQ(vb_cm_counters(talk->cm[CLIENT])->retried, 2);
	talk_end(talk);
}

TEST(a_req_without_an_answer_ends_unreachable_after_its_retries)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	lose_all(talk, CLIENT, "REQ", 4);
	expect_events(talk, CLIENT, "UNREACHABLE");
	expect_state(talk, CLIENT, "CLOSED");
	expect_mads(talk, CLIENT, "REJ of other: timeout");
	EXPECT_EQ(vb_cm_deadline(talk->cm[CLIENT]), UINT64_MAX);
	talk_end(talk);
}

TEST(a_rej_for_a_timeout_finds_its_connection_by_id_and_guid_of_its_sender)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ"); /* no answer comes back */
	expect_events(talk, SERVER, "REQUEST");
	pass_to_deadline_of(talk, CLIENT);
	lose_all(talk, CLIENT, "REQ", 3);
	expect_events(talk, CLIENT, "UNREACHABLE");
	expect_mads(talk, CLIENT, "REJ of other: timeout");
	EXPECT_EQ(parse_held_mad(talk, 0).remote_id, 0);
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REJECTED");
	EXPECT_EQ(talk->event.message.rej.reason, VB_MAD_TIMEOUT);
	expect_state(talk, SERVER, "CLOSED");
	talk_end(talk);
}

TEST(a_request_that_is_withdrawn_before_the_program_saw_it_never_was)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	vb_cm_connection_destroy(talk->connection[CLIENT], talk->now_ns);
	say(talk, CLIENT, "REJ of other: timeout");
	expect_no_events(talk, SERVER);
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(a_rep_without_an_answer_ends_unreachable_and_in_timewait)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	lose_all(talk, SERVER, "REP", 4);
	expect_events(talk, SERVER, "UNREACHABLE");
	expect_state(talk, SERVER, "TIMEWAIT");
	expect_mads(talk, SERVER, "REJ of other: timeout");
	talk_end(talk);
}

TEST(a_client_that_thinks_it_is_connected_learns_that_the_server_gave_up)
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
	pass_to_deadline_of(talk, SERVER);
	lose_all(talk, SERVER, "REP", 3);
	expect_events(talk, SERVER, "UNREACHABLE");
	say(talk, SERVER, "REJ of other: timeout");
	expect_events(talk, CLIENT, "REJECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	talk_end(talk);
}

TEST(an_rtu_after_the_peer_gave_up_is_answered_with_the_rej)
{
	struct talk *talk = talk_begin();
	struct vb_cm_mad rtu;

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	expect_mads(talk, CLIENT, "RTU");
	rtu = talk->mads[0];
	report_unreachable(talk, SERVER);
	expect_events(talk, SERVER, "UNREACHABLE");
	expect_mads(talk, SERVER, "REJ of other: timeout");
	talk->mads[0] = rtu;
	deliver_held(talk, SERVER);
	say(talk, SERVER, "REJ of other: timeout");
	expect_events(talk, CLIENT, "REJECTED");
	expect_state(talk, CLIENT, "TIMEWAIT");
	talk_end(talk);
}

TEST(a_rep_that_comes_after_the_client_gave_up_is_answered_with_a_rej)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	report_unreachable(talk, CLIENT);
	expect_events(talk, CLIENT, "UNREACHABLE");
	expect_mads(talk, CLIENT, "REJ of other: timeout");
	lose_held(talk);
	server_accepts(talk);
	say(talk, SERVER, "REP");
	say(talk, CLIENT, "REJ of REP: invalid communication ID");
	expect_events(talk, SERVER, "REJECTED");
	expect_state(talk, SERVER, "CLOSED");
	talk_end(talk);
}

TEST(a_client_that_never_heard_of_the_rep_learns_that_the_server_gave_up)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	lose_held(talk);
	report_unreachable(talk, SERVER);
	say(talk, SERVER, "REJ of other: timeout");
	expect_events(talk, CLIENT, "REJECTED");
	expect_state(talk, CLIENT, "CLOSED");
	talk_end(talk);
}

TEST(a_req_that_comes_again_after_the_server_gave_up_is_stale)
{
	struct talk *talk = talk_begin();
	struct vb_cm_mad req;

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	req = talk->mads[0];
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	report_unreachable(talk, SERVER);
	expect_mads(talk, SERVER, "REJ of other: timeout");
	talk->mads[0] = req;
	deliver_held(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: stale connection");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_peer_that_cannot_be_reached_ends_only_what_waits_for_it)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_connection *waiting;
	struct vb_cm_request request = talk_request();
	struct vb_flow elsewhere = talk_flow(SERVER);

	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &waiting), VB_OK);
	EXPECT_EQ(vb_cm_connect(waiting, &request, talk->now_ns), VB_OK);
	vb_cm_on_unreachable(talk->cm[CLIENT], &elsewhere.destination, talk->now_ns);
	expect_no_events(talk, CLIENT);
	report_unreachable(talk, CLIENT);
	expect_events(talk, CLIENT, "UNREACHABLE");
	EXPECT(talk->event.connection == waiting);
	expect_state(talk, CLIENT, "CONNECTED");
	talk_end(talk);
}

TEST(a_dreq_without_an_answer_ends_in_timewait_all_the_same)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, CLIENT);
	lose_all(talk, CLIENT, "DREQ", 4);
	expect_events(talk, CLIENT, "DISCONNECTED");
	EXPECT(talk->event.is_timeout && !talk->event.has_message);
	expect_state(talk, CLIENT, "TIMEWAIT");
	expect_silence_of(talk, CLIENT);
	talk_end(talk);
}

TEST(a_peer_that_wants_answers_at_once_does_not_make_a_storm)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();
	uint64_t begin_ns = talk->now_ns;

	request.ip = &ip;
	request.packet_life_time = 0;
	request.response_timeout = 0;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REQ");
	pass_to_deadline_of(talk, CLIENT);
	EXPECT_EQ(talk->now_ns - begin_ns, 1000000);
	talk_end(talk);
}
