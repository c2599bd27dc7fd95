/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of iWARP connections that need a second try, are rejected, take too long, or end with
 * bytes that may not come; and calls that are refused.
 */
#include "support_startup.h"

/* --- revision 1 ------------------------------------------------------------------------------- */

TEST(a_request_of_revision_1_gets_a_reply_of_revision_1)
{
	struct vb_mpa_frame request = { .kind = VB_MPA_REQUEST, .revision = 1 }, reply;
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	give(&responder, &request);
	expect_event(&responder, VB_CM_REQUEST, &event);
	EXPECT_EQ(event.ird, 128); /* the programs know it by themselves */
	EXPECT_EQ(event.ord, 128);
	accept_request(7, 9);
	reply = taken_frame(&responder, VB_MPA_REPLY);
	EXPECT_EQ(reply.revision, 1);
	EXPECT(!reply.is_enhanced && !reply.is_rejected);
	EXPECT_EQ(responder.terms.ird, 7);
	EXPECT_EQ(responder.terms.ord, 9);
	request.revision = 2;
	reply = begin_responder(&request, 1, 1);
	EXPECT_EQ(reply.revision, 2);
	EXPECT(!reply.is_enhanced);
}

/* The initiator wants a second connection, and sends its request with revision 1 there. */
static void expect_second_try(void)
{
	struct vb_mpa_frame request;

	expect_nothing(&initiator);
	EXPECT_EQ(initiator.state, VB_STARTUP_CONNECTING);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_CONNECT);
	EXPECT_EQ(vb_startup_deadline(&initiator), now_ns + 10 * S);
	vb_startup_on_connected(&initiator, now_ns);
	request = taken_frame(&initiator, VB_MPA_REQUEST);
	EXPECT_EQ(request.revision, 1);
	EXPECT(!request.is_enhanced);
	EXPECT_EQ(request.private_length, 5);
	EXPECT_MEM(request.private_data, "hello", 5);
}

TEST(a_reply_of_revision_1_leads_to_a_second_try)
{
	for (uint32_t is_rejected = 0; is_rejected < 2; is_rejected++) {
		struct vb_mpa_frame reply = { .kind = VB_MPA_REPLY,
					      .revision = 1,
					      .is_rejected = is_rejected };
		struct vb_startup_event event;

		begin_initiator(4, 6);
		give(&initiator, &reply);
		expect_second_try();
		reply.is_rejected = false;
		give(&initiator, &reply);
		expect_event(&initiator, VB_CM_ESTABLISHED, &event);
		EXPECT_EQ(initiator.terms.ird, 4);
		EXPECT_EQ(initiator.terms.ord, 6);
	}
}

TEST(a_reply_without_the_enhanced_words_leads_to_a_second_try)
{
	struct vb_mpa_frame reply = { .kind = VB_MPA_REPLY, .revision = 2 };

	begin_initiator(4, 6);
	give(&initiator, &reply);
	expect_second_try();
	give(&initiator, &reply); /* of revision 2, but in the form of the request */
	EXPECT_EQ(initiator.state, VB_STARTUP_UP);
}

/* RFC 6581, 10: a responder that knows only revision 1 closes the connection. */
TEST(an_end_without_a_reply_leads_to_a_second_try)
{
	struct vb_mpa_frame reply = { .kind = VB_MPA_REPLY, .revision = 1 };
	struct vb_startup_event event;

	begin_initiator(4, 6);
	vb_startup_on_ended(&initiator, now_ns);
	expect_second_try();
	give(&initiator, &reply);
	expect_event(&initiator, VB_CM_ESTABLISHED, &event);
}

TEST(there_is_no_third_try)
{
	struct vb_mpa_frame reply = { .kind = VB_MPA_REPLY, .revision = 1, .is_rejected = true };

	begin_initiator(4, 6);
	vb_startup_on_ended(&initiator, now_ns);
	expect_second_try();
	vb_startup_on_ended(&initiator, now_ns);
	expect_rejected(&initiator, VB_STARTUP_LOST);

	begin_initiator(4, 6);
	vb_startup_on_ended(&initiator, now_ns);
	vb_startup_on_unconnected(&initiator,
				  true); /* the listener is gone: the first reason counts */
	expect_rejected(&initiator, VB_STARTUP_LOST);

	begin_initiator(4, 6);
	give(&initiator, &reply);
	expect_second_try();
	give(&initiator, &reply);
	expect_rejected(&initiator, VB_STARTUP_REJECTED);
}

TEST(an_enhanced_reply_to_revision_1_is_refused)
{
	begin_initiator(4, 6);
	vb_startup_on_ended(&initiator, now_ns);
	expect_second_try();
	give(&initiator, &reply_frame);
	expect_rejected(&initiator, VB_STARTUP_MALFORMED);
	expect_terminate(&initiator, false, 4);
}

/* --- it does not come up ---------------------------------------------------------------------- */

TEST(a_rejection_brings_its_private_data)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "please");
	struct vb_startup_event event;

	begin_request(&of_initiator, 1000);
	EXPECT_EQ(vb_startup_reject(&responder, "no", 2, now_ns), VB_OK);
	expect_nothing(&responder);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_NOTHING);
	carry(&responder, &initiator, 3);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_FINISH);
	expect_event(&initiator, VB_CM_REJECTED, &event);
	EXPECT_EQ(event.reason, VB_STARTUP_REJECTED);
	expect_private(&event, "no");
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
	EXPECT_EQ(initiator.peer.ird, 128); /* what it could have had */
	EXPECT_EQ(initiator.peer.ord, 4);
}

TEST(a_rejecting_end_closes_after_its_peer_or_a_second)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");
	uint8_t byte = 1;

	begin_request(&of_initiator, 1000);
	EXPECT_EQ(vb_startup_reject(&responder, NULL, 0, now_ns), VB_OK);
	carry(&responder, &initiator, 1000);
	EXPECT_EQ(vb_startup_receive(&responder, &byte, 1, now_ns), 1); /* thrown away */
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_FINISH);
	vb_startup_on_ended(&responder, now_ns);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);

	begin_request(&of_initiator, 1000);
	EXPECT_EQ(vb_startup_reject(&responder, NULL, 0, now_ns), VB_OK);
	wait_for(&responder, 1 * S); /* even if the peer reads nothing */
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
	expect_nothing(&responder);
}

TEST(nobody_listens_or_nobody_is_there)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	EXPECT_EQ(vb_startup_connect(&initiator, &of_initiator, now_ns), VB_OK);
	vb_startup_on_unconnected(&initiator, true);
	expect_rejected(&initiator, VB_STARTUP_REFUSED);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);

	begin_with(&usual_config, &usual_config);
	EXPECT_EQ(vb_startup_connect(&initiator, &of_initiator, now_ns), VB_OK);
	vb_startup_on_unconnected(&initiator, false);
	expect_event(&initiator, VB_CM_UNREACHABLE, &event);
	EXPECT_EQ(event.reason, VB_STARTUP_TIMEOUT);

	begin_with(&usual_config, &usual_config);
	EXPECT_EQ(vb_startup_connect(&initiator, &of_initiator, now_ns), VB_OK);
	wait_for(&initiator, 10 * S); /* TCP itself would try longer */
	expect_event(&initiator, VB_CM_UNREACHABLE, &event);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
}

TEST(no_reply_for_ten_seconds_is_the_end)
{
	struct vb_startup_event event;
	uint8_t bytes[VB_MPA_FRAME_MAX];

	begin_initiator(4, 6);
	vb_mpa_frame_store(bytes, &reply_frame);
	now_ns += 9 * S;
	vb_startup_receive(&initiator, bytes, 23, now_ns); /* a part of it does not count */
	EXPECT_EQ(vb_startup_deadline(&initiator), now_ns + 1 * S);
	wait_for(&initiator, 1 * S);
	expect_event(&initiator, VB_CM_UNREACHABLE, &event);
	EXPECT_EQ(event.reason, VB_STARTUP_TIMEOUT);
	expect_nothing(&initiator);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
}

TEST(no_request_for_five_seconds_closes_in_silence)
{
	uint8_t byte = 'M';

	begin_with(&usual_config, &usual_config);
	vb_startup_receive(&responder, &byte, 1, now_ns);
	wait_for(&responder, 5 * S);
	expect_nothing(&responder);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	EXPECT_EQ(responder.reason, VB_STARTUP_TIMEOUT);
}

TEST(a_program_may_think_about_a_request_forever)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");

	begin_request(&of_initiator, 1000);
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);
}

TEST(a_reply_that_nobody_takes_is_the_end)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");
	struct vb_startup_event event;

	begin_request(&of_initiator, 1000);
	accept_request(4, 4);
	wait_for(&responder, 10 * S);
	expect_event(&responder, VB_CM_UNREACHABLE, &event);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
}

TEST(an_end_within_a_reply_is_a_rejection)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];

	begin_initiator(4, 6);
	vb_mpa_frame_store(bytes, &reply_frame);
	vb_startup_receive(&initiator, bytes, 1, now_ns);
	vb_startup_on_ended(&initiator, now_ns);
	expect_rejected(&initiator, VB_STARTUP_LOST);
}

TEST(an_initiator_that_leaves_is_noticed_by_the_accept)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, ""), of_responder = of_initiator;

	begin_request(&of_initiator, 1000);
	vb_startup_on_ended(&responder, now_ns);
	expect_nothing(&responder);
	EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_reject(&responder, NULL, 0, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);

	begin_request(&of_initiator, 1000);
	EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_OK);
	vb_startup_on_ended(&responder, now_ns);
	expect_rejected(&responder, VB_STARTUP_LOST);
}

TEST(a_request_that_is_withdrawn_before_the_program_sees_it_never_was)
{
	uint8_t byte = 0;

	begin_with(&usual_config, &usual_config);
	give(&responder, &request_frame);
	vb_startup_on_ended(&responder, now_ns);
	expect_nothing(&responder);
	begin_with(&usual_config, &usual_config);
	give(&responder, &request_frame);
	vb_startup_receive(&responder, &byte, 1, now_ns);
	expect_nothing(&responder);
}

TEST(a_connection_that_ends_before_its_request_is_forgotten)
{
	begin_with(&usual_config, &usual_config);
	vb_startup_on_ended(&responder, now_ns);
	expect_nothing(&responder);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);
}

/* --- what may not come ------------------------------------------------------------------------ */

TEST(what_is_no_request_closes_the_connection)
{
	struct vb_mpa_frame reply = reply_frame;
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length = vb_mpa_frame_store(bytes, &request_frame);

	begin_with(&usual_config, &usual_config);
	give(&responder, &reply);
	EXPECT_EQ(responder.reason, VB_STARTUP_MALFORMED);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	expect_nothing(&responder);
	for (uint32_t i = 0; i < 16; i++) {
		begin_with(&usual_config, &usual_config);
		bytes[i] ^= 1;
		EXPECT_EQ(vb_startup_receive(&responder, bytes, i, now_ns), i);
		EXPECT_EQ(responder.state, VB_STARTUP_AWAIT_REQUEST);
		EXPECT_EQ(vb_startup_receive(&responder, bytes + i, length - i, now_ns),
			  length - i);
		EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
		EXPECT_EQ(take_output(&responder, bytes, 100), 0);
		vb_mpa_frame_store(bytes, &request_frame);
	}
	begin_with(&usual_config, &usual_config);
	bytes[17] = 3;
	vb_startup_receive(&responder, bytes, length, now_ns);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
	begin_with(&usual_config, &usual_config);
	bytes[17] = 2;
	store16(bytes + 18, 513);
	vb_startup_receive(&responder, bytes, length, now_ns);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
}

TEST(nothing_may_come_between_request_and_reply)
{
	uint8_t bytes[VB_MPA_FRAME_MAX + 1];
	uint32_t length = vb_mpa_frame_store(bytes, &request_frame);
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	vb_startup_receive(&responder, bytes, length + 1, now_ns);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
	expect_nothing(&responder);

	begin_with(&usual_config, &usual_config);
	give(&responder, &request_frame);
	expect_event(&responder, VB_CM_REQUEST, &event);
	EXPECT_EQ(vb_startup_receive(&responder, bytes, 1, now_ns), 1);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
	expect_nothing(&responder);

	begin_with(&usual_config, &usual_config);
	give(&responder, &request_frame);
	expect_event(&responder, VB_CM_REQUEST, &event);
	accept_request(1, 1);
	EXPECT_EQ(vb_startup_receive(&responder, bytes, 1, now_ns), 1);
	expect_rejected(&responder, VB_STARTUP_MALFORMED);
}

TEST(what_is_no_reply_gets_a_terminate)
{
	struct vb_mpa_frame request = request_frame;

	begin_initiator(4, 6);
	give(&initiator, &request); /* two initiators */
	expect_rejected(&initiator, VB_STARTUP_MALFORMED);
	expect_terminate(&initiator, false, 4);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_FINISH);
	begin_initiator(4, 6);
	EXPECT_EQ(vb_startup_receive(&initiator, (const uint8_t *)"HTTP/1.1 400", 12, now_ns), 12);
	expect_rejected(&initiator, VB_STARTUP_MALFORMED);
}

TEST(a_reply_to_a_part_of_a_request_is_refused)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length;

	begin_with(&usual_config, &usual_config);
	connect_initiator(&of_initiator);
	vb_startup_output(&initiator, &length);
	vb_startup_on_sent(&initiator, length - 1, now_ns);
	give(&initiator, &reply_frame);
	expect_rejected(&initiator, VB_STARTUP_MALFORMED);
	EXPECT_EQ(take_output(&initiator, bytes, 100), 0); /* not even a Terminate */
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
}

/* --- calls ------------------------------------------------------------------------------------ */

TEST(private_data_that_does_not_fit_is_refused)
{
	static const char data[600];
	struct vb_startup_offer of_initiator = { .private_data = data, .private_length = 509 };
	struct vb_startup_offer of_responder = of_initiator;
	struct vb_mpa_frame request = { .kind = VB_MPA_REQUEST, .revision = 1 };
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	EXPECT_EQ(vb_startup_connect(&initiator, &of_initiator, now_ns), VB_EINVAL);
	EXPECT_EQ(initiator.state, VB_STARTUP_IDLE);
	of_initiator.private_length = 508;
	event = begin_request(&of_initiator, 100);
	EXPECT_EQ(event.private_length, 508);
	EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_reject(&responder, data, 509, now_ns), VB_EINVAL);
	EXPECT_EQ(responder.state, VB_STARTUP_REQUEST_RCVD);
	of_responder.private_length = 508;
	EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_OK);
	carry(&responder, &initiator, 100);
	expect_event(&initiator, VB_CM_ESTABLISHED, &event);
	EXPECT_EQ(event.private_length, 508);

	begin_with(&usual_config, &usual_config);
	give(&responder, &request);
	EXPECT_EQ(vb_startup_reject(&responder, data, 513, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_reject(&responder, data, 512, now_ns), VB_OK);
}

TEST(calls_in_another_state_are_refused)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");

	begin_with(&usual_config, &usual_config);
	EXPECT_EQ(vb_startup_accept(&responder, &of_initiator, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_reject(&responder, NULL, 0, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_connect(&responder, &of_initiator, now_ns), VB_EINVAL);
	connect_initiator(&of_initiator);
	EXPECT_EQ(vb_startup_connect(&initiator, &of_initiator, now_ns), VB_EINVAL);
	EXPECT_EQ(vb_startup_accept(&initiator, &of_initiator, now_ns), VB_EINVAL);
	vb_startup_on_connected(&initiator, now_ns + 5);
	EXPECT_EQ(vb_startup_deadline(&initiator), now_ns + 10 * S);
	vb_startup_on_unconnected(&initiator, true);
	EXPECT_EQ(initiator.state, VB_STARTUP_REQUEST_SENT);
	vb_startup_on_fpdu(&initiator);
	expect_nothing(&initiator);
}

TEST(a_connection_may_be_abandoned_in_any_state)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "");
	struct vb_mpa_frame reply;

	begin_with(&usual_config, &usual_config);
	connect_initiator(&of_initiator);
	vb_startup_abandon(&initiator, now_ns);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
	expect_nothing(&initiator);

	begin_request(&of_initiator, 1000);
	vb_startup_abandon(&responder, now_ns);
	reply = taken_frame(&responder, VB_MPA_REPLY);
	EXPECT(reply.is_rejected);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_FINISH);
	vb_startup_abandon(&responder, now_ns);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_FINISH);

	begin_responder(&request_frame, 4, 4);
	vb_startup_abandon(&responder, now_ns);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);
	expect_nothing(&responder); /* not even ESTABLISHED */
	vb_startup_abandon(&responder, now_ns);
	EXPECT_EQ(responder.state, VB_STARTUP_CLOSED);
}

TEST(states_and_reasons_have_words)
{
	for (enum vb_startup_state i = VB_STARTUP_IDLE; i <= VB_STARTUP_CLOSED; i++)
		EXPECT(strlen(vb_startup_state_describe(i)) > 1);
	for (enum vb_startup_reason i = VB_STARTUP_NO_REASON; i <= VB_STARTUP_GONE; i++)
		EXPECT(strlen(vb_startup_reason_describe(i)) > 1);
}
