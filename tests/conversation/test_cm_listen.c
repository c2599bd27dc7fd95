/* SPDX-License-Identifier: BSD-2-Clause */
/* Listeners, rejecting, backlogs, and service ID resolution. */
#include "harness.h"
#include "support_cm.h"

#include "base/bytes.h"

#include <string.h>

static const struct vb_gid any = { { 0 } };
static const struct vb_gid ipv6_address = { { 0xfe, 0x80, [15] = 2 } };

static struct vb_cm_listener *listen_to(struct talk *talk, uint16_t port, uint32_t takes,
					struct vb_gid address)
{
	struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP, port),
					 .takes = takes,
					 .address = address };
	struct vb_cm_listener *listener;

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 4, NULL, &listener), VB_OK);
	return listener;
}

/* The listener that gets a request for that address, or NULL. */
static struct vb_cm_listener *reached(struct talk *talk, uint16_t port, struct vb_gid address)
{
	static uint32_t next_qpn = 0x1000;
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = { .source = address, .destination = address };
	struct vb_cm_connection *connection;
	struct vb_cm_event event = { 0 };
	struct vb_cm_mad mad;

	request.service = vb_service_id(VB_SERVICE_SPACE_TCP, port);
	request.ip = &ip;
	request.qpn.v = next_qpn++;
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], NULL, &connection), VB_OK);
	EXPECT_EQ(vb_cm_connect(connection, &request, talk->now_ns), VB_OK);
	EXPECT(vb_cm_take_mad(talk->cm[CLIENT], &mad));
	vb_cm_receive(talk->cm[SERVER], &mad.flow, VB_MAD_QPN, mad.bytes, VB_MAD_SIZE, talk->now_ns,
		      &talk->addressee);
	vb_cm_connection_destroy(connection, talk->now_ns);
	EXPECT(vb_cm_take_mad(talk->cm[CLIENT], &mad));
	if (!vb_cm_take_event(talk->cm[SERVER], &event))
		return NULL;
	vb_cm_connection_destroy(event.connection, talk->now_ns);
	EXPECT(vb_cm_take_mad(talk->cm[SERVER], &mad));
	return event.listener;
}

TEST(a_request_reaches_the_listener_of_its_address_before_that_of_any)
{
	struct talk *talk = talk_begin();
	struct vb_gid one = vb_gid_from_ipv4(0x0a000002), other = vb_gid_from_ipv4(0x0a000003);
	struct vb_cm_listener *at_one = listen_to(talk, PORT, VB_CM_IPV4, one);

	EXPECT(reached(talk, PORT, one) == at_one);
	EXPECT(reached(talk, PORT, other) == talk->listener);
	EXPECT(!reached(talk, PORT + 1, one));
	EXPECT_EQ(talk->addressee.kind, VB_MAD_REQ);
	EXPECT(talk->addressee.has_service);
	EXPECT_EQ(talk->addressee.service, vb_service_id(VB_SERVICE_SPACE_TCP, PORT + 1));
	EXPECT_MEM(&talk->addressee.address, &one, sizeof(one));
	EXPECT_EQ(talk->addressee.sender_guid, CLIENT_GUID);
	talk_end(talk);
}

TEST(a_listener_for_any_takes_the_families_that_it_was_made_for)
{
	struct talk *talk = talk_begin();
	struct vb_gid ipv4 = vb_gid_from_ipv4(0x0a000002);
	struct vb_cm_listener *only_6 = listen_to(talk, 1, VB_CM_IPV6, any);
	struct vb_cm_listener *both = listen_to(talk, 2, VB_CM_IPV4 | VB_CM_IPV6, any);

	EXPECT(!reached(talk, PORT, ipv6_address));
	EXPECT(reached(talk, 1, ipv6_address) == only_6);
	EXPECT(!reached(talk, 1, ipv4));
	EXPECT(reached(talk, 2, ipv6_address) == both);
	EXPECT(reached(talk, 2, ipv4) == both);
	talk_end(talk);
}

TEST(a_service_that_is_no_ip_service_is_found_by_its_id_alone)
{
	struct talk *talk = talk_begin();
	struct vb_cm_service service = { .id = 0x1000000000001234, .takes = VB_CM_RAW };
	struct vb_cm_request request = talk_request();
	struct vb_cm_listener *listener;

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_OK);
	request.service = service.id;
	request.private_data = (struct vb_cm_private){ "all of it is the program's", 27 };
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	EXPECT(!talk->event.has_ip && talk->event.listener == listener);
	EXPECT_EQ(talk->event.private_length, 92);
	EXPECT_STR((const char *)talk->event.message.private_data, "all of it is the program's");
	talk_end(talk);
}

TEST(the_same_service_and_address_cannot_be_listened_to_twice)
{
	struct talk *talk = talk_begin();
	struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP, PORT),
					 .takes = VB_CM_IPV4 | VB_CM_IPV6 };
	struct vb_cm_listener *listener;

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_EBUSY);
	service.takes = VB_CM_IPV6;
	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_OK);
	vb_cm_listener_destroy(talk->listener, talk->now_ns);
	service.takes = VB_CM_IPV4;
	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_OK);
	talk_end(talk);
}

TEST(a_listener_that_can_take_nothing_is_refused)
{
	struct talk *talk = talk_begin();
	struct vb_cm_service service = { .id = 1 };
	struct vb_cm_listener *listener;

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_EINVAL);
	service.takes = 8;
	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_EINVAL);
	service.takes = VB_CM_IPV4;
	service.address = ipv6_address;
	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_EINVAL);
	talk_end(talk);
}

TEST(a_rejection_arrives_with_reason_information_and_private_data)
{
	struct talk *talk = talk_begin();
	struct vb_cm_rejection rejection = {
		.reason = VB_MAD_CONSUMER_DEFINED,
		.info = "because",
		.info_length = 7,
		.private_data = { "no", 2 },
	};

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	EXPECT_EQ(vb_cm_reject(talk->connection[SERVER], &rejection, talk->now_ns), VB_OK);
	say(talk, SERVER, "REJ of REQ: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	EXPECT_EQ(talk->event.message.rej.reason, 28);
	EXPECT_EQ(talk->event.message.rej.info_length, 7);
	EXPECT_MEM(talk->event.message.rej.info, "because", 7);
	EXPECT_EQ(talk->event.private_length, 148);
	EXPECT_MEM(talk->event.message.private_data, "no", 3);
	expect_state(talk, CLIENT, "CLOSED");
	EXPECT_EQ(vb_cm_deadline(talk->cm[CLIENT]), UINT64_MAX);
	talk_end(talk);
}

TEST(an_answer_can_be_rejected_by_the_client)
{
	struct talk *talk = talk_begin();
	struct vb_cm_rejection rejection = { .reason = VB_MAD_CONSUMER_DEFINED };

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	EXPECT_EQ(vb_cm_reject(talk->connection[CLIENT], &rejection, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "REJ of REP: consumer defined");
	lose_held(talk);
	pass_to_deadline_of(talk, SERVER);
	say(talk, SERVER, "REP"); /* the REJ was lost */
	say(talk, CLIENT, "REJ of REP: consumer defined");
	expect_events(talk, SERVER, "REJECTED");
	talk_end(talk);
}

TEST(a_response_that_is_withdrawn_before_the_program_saw_it_is_a_rejection)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	say(talk, SERVER, "REJ of other: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_transport_that_there_is_not_is_rejected)
{
	struct talk *talk = talk_begin();
	struct vb_mad mad;

	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	mad = parse_held_mad(talk, 0);
	mad.req.transport = VB_MAD_TRANSPORT_RD;
	vb_mad_store(talk->mads[0].bytes, &mad);
	deliver_held(talk, SERVER);
	expect_no_events(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: invalid transport type");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

/* Each request has a client of its own: another ID and another QP. */
static void flood(struct talk *talk, uint32_t count)
{
	struct vb_service_ip ip = talk_ip();

	for (uint32_t i = 0; i < count; i++) {
		struct vb_mad mad = { .kind = VB_MAD_REQ,
				      .local_id = 100 + i,
				      .req = { .service = vb_service_id(VB_SERVICE_SPACE_TCP, PORT),
					       .ca_guid = 0xf100d,
					       .qpn = { 100 + i } } };

		vb_service_ip_store(mad.private_data, &ip);
		vb_mad_store(talk->mads[0].bytes, &mad);
		talk->mads[0].flow = talk_flow(CLIENT);
		talk->mad_count = 1;
		deliver_held(talk, SERVER);
	}
}

TEST(requests_over_the_backlog_are_dropped_and_may_come_again)
{
	struct talk *talk = talk_begin();

	flood(talk, 5);
	expect_events(talk, SERVER, "REQUEST", "REQUEST");
	EXPECT_EQ(vb_cm_counters(talk->cm[SERVER])->over_backlog, 3);
	expect_silence_of(talk, SERVER);
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	client_connects(talk);
	say(talk, CLIENT, "REQ"); /* there is room again */
	expect_events(talk, SERVER, "REQUEST");
	talk_end(talk);
}

TEST(a_flood_is_bounded_by_the_connections_of_the_machine)
{
	struct talk *talk = talk_begin();
	struct vb_cm_service service = { .id = 0x1, .takes = VB_CM_RAW };
	struct vb_cm_listener *listener;
	struct vb_mad mad = { .kind = VB_MAD_REQ, .req.service = 1 };

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1000, NULL, &listener), VB_OK);
	for (uint32_t i = 0; i < 20; i++) {
		mad.local_id = mad.req.qpn.v = 100 + i;
		vb_mad_store(talk->mads[0].bytes, &mad);
		talk->mad_count = 1;
		deliver_held(talk, SERVER);
	}
	EXPECT_EQ(vb_cm_counters(talk->cm[SERVER])->over_backlog, 12);
	vb_cm_listener_destroy(listener, talk->now_ns);
	expect_no_events(talk, SERVER);
	talk_end(talk);
}

TEST(a_listener_that_goes_rejects_requests_that_no_program_has_seen)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	vb_cm_listener_destroy(talk->listener, talk->now_ns);
	expect_no_events(talk, SERVER);
	say(talk, SERVER, "REJ of REQ: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_request_that_was_seen_outlives_its_listener)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	vb_cm_listener_destroy(talk->listener, talk->now_ns);
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	talk_end(talk);
}

TEST(a_listener_that_has_just_gone_is_remembered_for_a_while)
{
	struct talk *talk = talk_begin();
	struct vb_cm_addressee other;

	vb_cm_listener_destroy(talk->listener, talk->now_ns);
	EXPECT(!reached(talk, PORT + 1, talk_flow(CLIENT).destination));
	other = talk->addressee;
	EXPECT(!reached(talk, PORT, talk_flow(CLIENT).destination));
	EXPECT(!vb_cm_has_listener(talk->cm[SERVER], &talk->addressee));
	EXPECT(vb_cm_had_listener(talk->cm[SERVER], &talk->addressee, talk->now_ns + 500, 500));
	EXPECT(!vb_cm_had_listener(talk->cm[SERVER], &talk->addressee, talk->now_ns + 501, 500));
	EXPECT(!vb_cm_had_listener(talk->cm[SERVER], &other, talk->now_ns, 500));
	talk_end(talk);
}

/* --- UD --------------------------------------------------------------------------------------- */

static void resolve(struct talk *talk)
{
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_resolution resolution = {
		.service = vb_service_id(VB_SERVICE_SPACE_UDP, PORT),
		.ip = &ip,
		.flow = talk_flow(CLIENT),
		.pkey = 0xffff,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = 2,
		.private_data = { "who", 3 },
	};
	struct vb_cm_service service = { .id = resolution.service, .takes = VB_CM_IPV4 };
	struct vb_cm_listener *listener;

	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 1, NULL, &listener), VB_OK);
	EXPECT_EQ(vb_cm_resolve(talk->connection[CLIENT], &resolution, talk->now_ns), VB_OK);
}

TEST(a_service_is_resolved_to_qpn_and_qkey)
{
	struct talk *talk = talk_begin();
	struct vb_cm_sidr answer = { .qpn = SERVER_QPN,
				     .qkey = 0x01234567,
				     .ece = { 0x123456, 0x9 },
				     .private_data = { "me", 2 } };

	resolve(talk);
	say(talk, CLIENT, "SIDR_REQ");
	expect_events(talk, SERVER, "SIDR_REQUEST");
	EXPECT(talk->event.has_ip);
	EXPECT_EQ(talk->event.private_length, 180);
	EXPECT_MEM(talk->event.message.private_data, "who", 4);
	EXPECT_EQ(vb_cm_answer(talk->connection[SERVER], &answer, talk->now_ns), VB_OK);
	say(talk, SERVER, "SIDR_REP");
	expect_events(talk, CLIENT, "SIDR_RESPONSE");
	EXPECT_EQ(talk->event.message.sidr_rep.status, VB_MAD_SIDR_VALID);
	EXPECT_EQ(talk->event.message.sidr_rep.qpn.v, SERVER_QPN.v);
	EXPECT_EQ(talk->event.message.sidr_rep.qkey, 0x01234567);
	EXPECT_EQ(load24(talk->event.message.sidr_rep.vendor), 0x123456);
	EXPECT_EQ(talk->event.message.modifier, 0x9);
	EXPECT_EQ(talk->event.private_length, 136);
	EXPECT_MEM(talk->event.message.private_data, "me", 3);
	expect_state(talk, CLIENT, "CLOSED");
	EXPECT_EQ(vb_cm_deadline(talk->cm[CLIENT]), UINT64_MAX);
	talk_end(talk);
}

TEST(resolving_and_answering_in_the_wrong_state_is_refused)
{
	struct talk *talk = talk_begin();
	struct vb_cm_resolution resolution = { .service = 1 };
	struct vb_cm_sidr answer = { 0 };

	client_connects(talk);
	EXPECT_EQ(vb_cm_resolve(talk->connection[CLIENT], &resolution, 0), VB_EINVAL);
	EXPECT_EQ(vb_cm_answer(talk->connection[CLIENT], &answer, 0), VB_EINVAL);
	expect_state(talk, CLIENT, "REQ_SENT");
	talk_end(talk);
}

TEST(a_sidr_request_that_comes_again_is_one_and_its_answer_is_sent_again)
{
	struct talk *talk = talk_begin();
	struct vb_cm_sidr answer = { .status = VB_MAD_SIDR_NO_QP };

	resolve(talk);
	expect_mads(talk, CLIENT, "SIDR_REQ");
	deliver_and_keep(talk, SERVER);
	deliver_held(talk, SERVER);
	expect_events(talk, SERVER, "SIDR_REQUEST");
	EXPECT_EQ(vb_cm_answer(talk->connection[SERVER], &answer, talk->now_ns), VB_OK);
	expect_mads(talk, SERVER, "SIDR_REP");
	lose_held(talk);
	pass_to_deadline_of(talk, CLIENT);
	say(talk, CLIENT, "SIDR_REQ");
	expect_no_events(talk, SERVER);
	say(talk, SERVER, "SIDR_REP");
	expect_events(talk, CLIENT, "SIDR_RESPONSE");
	EXPECT_EQ(talk->event.message.sidr_rep.status, VB_MAD_SIDR_NO_QP);
	talk_end(talk);
}

TEST(a_sidr_request_without_an_answer_ends_unreachable)
{
	struct talk *talk = talk_begin();

	resolve(talk);
	for (int i = 0; i < 3; i++) {
		expect_mads(talk, CLIENT, "SIDR_REQ");
		pass_to_deadline_of(talk, CLIENT);
	}
	expect_silence_of(talk, CLIENT);
	expect_events(talk, CLIENT, "UNREACHABLE");
	talk_end(talk);
}

TEST(destroying_a_sidr_request_rejects_it)
{
	struct talk *talk = talk_begin();

	resolve(talk);
	say(talk, CLIENT, "SIDR_REQ");
	expect_events(talk, SERVER, "SIDR_REQUEST");
	vb_cm_connection_destroy(talk->connection[SERVER], talk->now_ns);
	say(talk, SERVER, "SIDR_REP");
	expect_events(talk, CLIENT, "SIDR_RESPONSE");
	EXPECT_EQ(talk->event.message.sidr_rep.status, VB_MAD_SIDR_REJECTED);
	talk_end(talk);
}
