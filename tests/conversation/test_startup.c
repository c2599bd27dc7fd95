/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of iWARP connections that come up: requests and replies, however their bytes are cut,
 * and what both ends agree upon. test_startup_refused.c has those that do not come up.
 */
#include "support_startup.h"

/* --- it comes up ------------------------------------------------------------------------------ */

TEST(both_ends_come_up_however_the_bytes_are_cut)
{
	struct vb_startup_offer of_initiator = offer_of(4, 6, "from a"),
				of_responder = offer_of(6, 4, "from b, longer");

	for (uint32_t most = 1; most < 60; most++) {
		struct vb_startup_event event = begin_request(&of_initiator, most);

		expect_private(&event, "from a");
		EXPECT_EQ(event.ird, 6);
		EXPECT_EQ(event.ord, 4);
		EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_OK);
		expect_nothing(&responder);
		carry(&responder, &initiator, most);
		EXPECT_EQ(initiator.state, VB_STARTUP_UP);
		EXPECT_EQ(responder.state, VB_STARTUP_UP);
		expect_event(&responder, VB_CM_ESTABLISHED, &event);
		EXPECT_EQ(event.private_length, 0);
		expect_event(&initiator, VB_CM_ESTABLISHED, &event);
		expect_private(&event, "from b, longer");
		EXPECT_EQ(event.ird, 4);
		EXPECT_EQ(event.ord, 6);
		expect_nothing(&initiator);
		expect_nothing(&responder);
		EXPECT(!initiator.terms.has_crc && !responder.terms.has_crc);
		EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_NOTHING);
		EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_NOTHING);
	}
}

TEST(a_request_is_of_revision_2_without_markers_crc_or_peer_to_peer)
{
	struct vb_mpa_frame request = begin_initiator(3, 5);

	EXPECT_EQ(request.revision, 2);
	EXPECT(request.is_enhanced && !request.is_peer_to_peer);
	EXPECT(!request.wants_markers && !request.wants_crc);
	EXPECT_EQ(request.ird, 3);
	EXPECT_EQ(request.ord, 5);
	EXPECT_EQ(request.private_length, 5);
}

TEST(bytes_behind_a_reply_belong_to_the_qp)
{
	struct vb_mpa_frame reply = reply_frame;
	uint8_t bytes[VB_MPA_FRAME_MAX + 8];
	uint32_t length;

	begin_initiator(4, 6);
	length = vb_mpa_frame_store(bytes, &reply);
	memset(bytes + length, 0x55, 8);
	EXPECT_EQ(vb_startup_receive(&initiator, bytes, 10, now_ns), 10);
	EXPECT_EQ(vb_startup_receive(&initiator, bytes + 10, length - 10 + 8, now_ns), length - 10);
	EXPECT_EQ(initiator.state, VB_STARTUP_UP);
	EXPECT_EQ(vb_startup_receive(&initiator, bytes + length, 8, now_ns), 0);
}

TEST(an_initiator_may_send_immediately)
{
	begin_initiator(4, 6);
	EXPECT(!vb_startup_may_send(&initiator));
	give(&initiator, &reply_frame);
	EXPECT(vb_startup_may_send(&initiator));
	EXPECT_EQ(vb_startup_deadline(&initiator), VB_NEVER);
}

/* siw takes an FPDU right behind the reply for an error. RFC 5044, 7.1.2. */
TEST(a_responder_waits_for_the_first_fpdu_or_50_ms)
{
	begin_responder(&request_frame, 4, 4);
	EXPECT(!vb_startup_may_send(&responder));
	vb_startup_on_fpdu(&responder);
	EXPECT(vb_startup_may_send(&responder));
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);

	begin_responder(&request_frame, 4, 4);
	wait_for(&responder, 50 * MS);
	EXPECT(vb_startup_may_send(&responder));
	EXPECT_EQ(responder.state, VB_STARTUP_UP);
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);
}

TEST(a_responder_is_established_when_its_reply_has_left)
{
	struct vb_startup_event event;
	uint32_t length;

	begin_with(&usual_config, &usual_config);
	give(&responder, &request_frame);
	expect_event(&responder, VB_CM_REQUEST, &event);
	accept_request(4, 4);
	vb_startup_output(&responder, &length);
	vb_startup_on_sent(&responder, length - 1, now_ns);
	expect_nothing(&responder);
	EXPECT_EQ(responder.state, VB_STARTUP_REPLY_SENT);
	vb_startup_on_sent(&responder, 1, now_ns);
	expect_event(&responder, VB_CM_ESTABLISHED, &event);
	EXPECT_EQ(responder.state, VB_STARTUP_UP);
}

TEST(the_end_of_initiator_stream_disconnects)
{
	struct vb_startup_event event;

	begin_initiator(4, 6);
	give(&initiator, &reply_frame);
	vb_startup_on_ended(&initiator, now_ns);
	expect_event(&initiator, VB_CM_ESTABLISHED, &event);
	expect_event(&initiator, VB_CM_DISCONNECTED, &event);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
	begin_responder(&request_frame, 4, 4);
	vb_startup_on_ended(&responder, now_ns);
	expect_event(&responder, VB_CM_ESTABLISHED, &event);
	expect_event(&responder, VB_CM_DISCONNECTED, &event);
	EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);
}

/* --- CRC and markers -------------------------------------------------------------------------- */

TEST(there_is_a_crc_if_either_end_asks_for_it)
{
	struct vb_startup_config asks = usual_config;

	asks.wants_crc = true;
	for (uint32_t i = 0; i < 4; i++) {
		struct vb_startup_offer of_initiator = offer_of(4, 4, "");

		begin_with(i & 1 ? &asks : &usual_config, i & 2 ? &asks : &usual_config);
		connect_initiator(&of_initiator);
		carry(&initiator, &responder, 1000);
		accept_request(4, 4);
		carry(&responder, &initiator, 1000);
		EXPECT_EQ(initiator.peer.wants_crc, i != 0);
		EXPECT_EQ(initiator.terms.has_crc, i != 0);
		EXPECT_EQ(responder.terms.has_crc, i != 0);
	}
}

TEST(a_request_with_markers_is_rejected)
{
	struct vb_mpa_frame request = request_frame, reply;

	request.wants_markers = true;
	begin_with(&usual_config, &usual_config);
	give(&responder, &request);
	expect_nothing(&responder);
	reply = taken_frame(&responder, VB_MPA_REPLY);
	EXPECT(reply.is_rejected && !reply.wants_markers);
	EXPECT(reply.is_enhanced);
	EXPECT_EQ(reply.revision, 2);
	EXPECT_EQ(responder.reason, VB_STARTUP_MARKERS);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_FINISH);
}

TEST(a_reply_with_markers_ends_the_connection)
{
	struct vb_mpa_frame reply = reply_frame;

	reply.wants_markers = true;
	begin_initiator(4, 6);
	give(&initiator, &reply);
	expect_rejected(&initiator, VB_STARTUP_MARKERS);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_DROP);
}

TEST(a_peer_may_take_long_fpdus)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length = vb_mpa_frame_store(bytes, &reply_frame);

	begin_initiator(4, 6);
	bytes[16] |= 0x08;
	vb_startup_receive(&initiator, bytes, length, now_ns);
	EXPECT_EQ(initiator.state, VB_STARTUP_UP);
	EXPECT(initiator.terms.takes_long_fpdus);
	begin_responder(&request_frame, 4, 4);
	EXPECT(!responder.terms.takes_long_fpdus);
}

/* --- depths: RFC 6581, 9.1 -------------------------------------------------------------------- */

TEST(a_responder_fits_its_depths_to_the_request)
{
	static const struct {
		uint16_t peer_ird, peer_ord, ird, ord, expected_ird, expected_ord;
	} cases[] = {
		{ 4, 6, 6, 4, 6, 4 }, /* as asked */
		{ 4, 6, 1, 1, 6, 1 }, /* an IRD is raised, an ORD stays */
		{ 4, 6, 20, 20, 20, 4 }, /* an ORD is lowered, an IRD stays */
		{ 0, 0, 0, 0, 0, 0 },
		{ 300, 300, 16, 16, 128, 16 }, /* no more than there is */
		{ 300, 300, 300, 300, 128, 128 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_mpa_frame request = request_frame, reply;

		request.ird = cases[i].peer_ird;
		request.ord = cases[i].peer_ord;
		reply = begin_responder(&request, cases[i].ird, cases[i].ord);
		EXPECT_EQ(reply.ird, cases[i].expected_ird);
		EXPECT_EQ(reply.ord, cases[i].expected_ord);
		EXPECT_EQ(responder.terms.ird, cases[i].expected_ird);
		EXPECT_EQ(responder.terms.ord, cases[i].expected_ord);
	}
}

TEST(depths_that_the_initiator_does_not_say_are_not_said_in_the_reply)
{
	struct vb_mpa_frame request = request_frame, reply;
	struct vb_startup_event event;

	request.ird = request.ord = VB_MPA_DEPTH_UNSAID;
	begin_with(&usual_config, &usual_config);
	give(&responder, &request);
	expect_event(&responder, VB_CM_REQUEST, &event);
	EXPECT_EQ(event.ird, 128);
	EXPECT_EQ(event.ord, 128);
	accept_request(7, 9);
	reply = taken_frame(&responder, VB_MPA_REPLY);
	EXPECT_EQ(reply.ird, VB_MPA_DEPTH_UNSAID);
	EXPECT_EQ(reply.ord, VB_MPA_DEPTH_UNSAID);
	EXPECT_EQ(responder.terms.ird, 7);
	EXPECT_EQ(responder.terms.ord, 9);
}

TEST(an_initiator_fits_its_depths_to_the_reply)
{
	static const struct {
		uint16_t ird, ord, peer_ird, peer_ord, expected_ird, expected_ord;
	} cases[] = {
		{ 4, 6, 6, 4, 4, 6 }, { 4, 6, 2, 4, 4, 2 },	{ 4, 6, 20, 1, 4, 6 },
		{ 4, 6, 6, 9, 9, 6 }, { 4, 6, 0, 128, 128, 0 }, { 4, 6, 0x3fff, 0x3fff, 4, 6 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_mpa_frame reply = reply_frame;
		struct vb_startup_event event;

		begin_initiator(cases[i].ird, cases[i].ord);
		reply.ird = cases[i].peer_ird;
		reply.ord = cases[i].peer_ord;
		give(&initiator, &reply);
		expect_event(&initiator, VB_CM_ESTABLISHED, &event);
		EXPECT_EQ(event.ird, cases[i].expected_ird);
		EXPECT_EQ(event.ord, cases[i].expected_ord);
		EXPECT_EQ(initiator.terms.ird, cases[i].expected_ird);
		EXPECT_EQ(initiator.terms.ord, cases[i].expected_ord);
	}
}

TEST(a_reply_that_wants_too_many_reads_gets_a_terminate)
{
	struct vb_mpa_frame reply = reply_frame;

	for (uint32_t has_crc = 0; has_crc < 2; has_crc++) {
		begin_initiator(4, 6);
		reply.ord = 129;
		reply.wants_crc = has_crc;
		give(&initiator, &reply);
		expect_rejected(&initiator, VB_STARTUP_DEPTH);
		EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_NOTHING);
		expect_terminate(&initiator, has_crc, 6);
		EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_FINISH);
	}
}

TEST(depths_beyond_the_adapter_are_lowered)
{
	struct vb_mpa_frame request = begin_initiator(1000, 1000);

	EXPECT_EQ(request.ird, 128);
	EXPECT_EQ(request.ord, 128);
}

/* --- peer-to-peer: RFC 6581, 9.2 -------------------------------------------------------------- */

TEST(peer_to_peer_is_granted_and_established_by_the_rtr)
{
	static const struct {
		uint8_t asked, granted;
	} cases[] = {
		{ VB_MPA_RTR_WRITE, VB_MPA_RTR_WRITE },
		{ VB_MPA_RTR_READ, VB_MPA_RTR_READ },
		{ VB_MPA_RTR_READ | VB_MPA_RTR_WRITE, VB_MPA_RTR_READ | VB_MPA_RTR_WRITE },
		{ VB_MPA_RTR_SEND | VB_MPA_RTR_READ, VB_MPA_RTR_READ },
		{ VB_MPA_RTR_SEND, VB_MPA_RTR_WRITE }, /* it learns what we can do */
		{ 0, VB_MPA_RTR_WRITE },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_mpa_frame request = request_frame, reply;
		struct vb_startup_event event;

		request.is_peer_to_peer = true;
		request.rtr = cases[i].asked;
		reply = begin_responder(&request, 4, 4);
		EXPECT(reply.is_peer_to_peer);
		EXPECT_EQ(reply.rtr, cases[i].granted);
		expect_nothing(&responder);
		EXPECT_EQ(responder.state, VB_STARTUP_UP);
		EXPECT(!vb_startup_may_send(&responder));
		now_ns += 60 * MS; /* the usual_config wait does not count here */
		vb_startup_fire_timers(&responder, now_ns);
		EXPECT(!vb_startup_may_send(&responder));
		vb_startup_on_fpdu(&responder);
		expect_event(&responder, VB_CM_ESTABLISHED, &event);
		EXPECT(vb_startup_may_send(&responder));
		EXPECT_EQ(vb_startup_deadline(&responder), VB_NEVER);
		vb_startup_on_fpdu(&responder);
		expect_nothing(&responder);
	}
}

TEST(an_rtr_by_read_needs_an_ird)
{
	struct vb_mpa_frame request = request_frame, reply;

	request.is_peer_to_peer = true;
	request.rtr = VB_MPA_RTR_READ;
	request.ord = 0;
	reply = begin_responder(&request, 0, 0);
	EXPECT_EQ(reply.ird, 1);
	EXPECT_EQ(responder.terms.ird, 1);
}

TEST(an_rtr_that_does_not_come_ends_the_connection)
{
	struct vb_mpa_frame request = request_frame;
	struct vb_startup_event event;

	request.is_peer_to_peer = true;
	request.rtr = VB_MPA_RTR_WRITE;
	begin_responder(&request, 4, 4);
	wait_for(&responder, 10 * S);
	expect_event(&responder, VB_CM_UNREACHABLE, &event);
	EXPECT_EQ(vb_startup_wants(&responder), VB_STARTUP_DROP);

	begin_responder(&request, 4, 4);
	vb_startup_on_ended(&responder, now_ns);
	expect_rejected(&responder, VB_STARTUP_LOST);
}

TEST(a_reply_with_peer_to_peer_gets_an_rtr_or_a_terminate)
{
	static const struct {
		uint8_t offered, rtr;
	} cases[] = {
		{ VB_MPA_RTR_WRITE, VB_MPA_RTR_WRITE },
		{ VB_MPA_RTR_READ, VB_MPA_RTR_READ },
		{ VB_MPA_RTR_READ | VB_MPA_RTR_WRITE, VB_MPA_RTR_WRITE },
		{ VB_MPA_RTR_SEND, 0 },
		{ 0, 0 },
	};

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_mpa_frame reply = reply_frame;

		begin_initiator(4, 6);
		reply.is_peer_to_peer = true;
		reply.rtr = cases[i].offered;
		give(&initiator, &reply);
		EXPECT_EQ(initiator.terms.rtr, cases[i].rtr);
		EXPECT_EQ(initiator.state, cases[i].rtr ? VB_STARTUP_UP : VB_STARTUP_CLOSING);
		if (!cases[i].rtr)
			expect_terminate(&initiator, false, 7);
	}
}
