/* SPDX-License-Identifier: BSD-2-Clause */
/* The two connection managers of the tests: see support_cm.h. */
#include "support_cm.h"

#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 1024

struct vb_flow talk_flow(int from)
{
	struct vb_gid gids[2] = { vb_gid_from_ipv4(0x0a000001), vb_gid_from_ipv4(0x0a000002) };

	return (struct vb_flow){ .source = gids[from],
				 .destination = gids[!from],
				 .traffic_class = 0x68,
				 .hop_limit = 64 };
}

struct vb_service_ip talk_ip(void)
{
	struct vb_flow flow = talk_flow(CLIENT);

	return (struct vb_service_ip){ .source_port = 40000,
				       .source = flow.source,
				       .destination = flow.destination };
}

struct talk *talk_begin(void)
{
	struct talk *talk = calloc(1, sizeof(*talk));
	struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP, PORT),
					 .takes = VB_CM_IPV4 };

	EXPECT(talk);
	talk->now_ns = 1000;
	for (int i = 0; i < 2; i++) {
		struct vb_cm_config config = {
			.seed = 7 + (uint64_t)i,
			.ca_guid = i == CLIENT ? CLIENT_GUID : SERVER_GUID,
			.id_prefix = 0x5,
			.id_prefix_bits = 4,
			.ack_delay = 15,
			.connection_max = 8,
			.listener_max = 4,
			.rows = talk->rows[i],
		};

		EXPECT_EQ(vb_cm_create(&config, &talk->cm[i]), VB_OK);
	}
	EXPECT_EQ(vb_cm_listen(talk->cm[SERVER], &service, 2, talk, &talk->listener), VB_OK);
	EXPECT_EQ(vb_cm_connection_create(talk->cm[CLIENT], talk, &talk->connection[CLIENT]),
		  VB_OK);
	return talk;
}

void talk_end(struct talk *talk)
{
	vb_cm_destroy(talk->cm[CLIENT]);
	vb_cm_destroy(talk->cm[SERVER]);
	free(talk);
}

struct vb_cm_request talk_request(void)
{
	return (struct vb_cm_request){
		.service = vb_service_id(VB_SERVICE_SPACE_TCP, PORT),
		.flow = talk_flow(CLIENT),
		.transport = VB_CM_RC,
		.qpn = CLIENT_QPN,
		.starting_psn = { 0x111 },
		.responder_resources = 4,
		.initiator_depth = 3,
		.retry_count = 7,
		.rnr_retry_count = 6,
		.mtu = 3,
		.packet_rate = 2,
		.pkey = 0xffff,
		.packet_life_time = VB_CM_PACKET_LIFE_TIME,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = 3,
	};
}

struct vb_cm_reply talk_reply(void)
{
	return (struct vb_cm_reply){
		.qpn = SERVER_QPN,
		.starting_psn = { 0x222 },
		.responder_resources = 2,
		.initiator_depth = 1,
		.rnr_retry_count = 5,
	};
}

void client_connects(struct talk *talk)
{
	struct vb_cm_request request = talk_request();
	struct vb_service_ip ip = talk_ip();

	request.ip = &ip;
	EXPECT_EQ(vb_cm_connect(talk->connection[CLIENT], &request, talk->now_ns), VB_OK);
}

void server_accepts(struct talk *talk)
{
	struct vb_cm_reply reply = talk_reply();

	EXPECT_EQ(vb_cm_accept(talk->connection[SERVER], &reply, talk->now_ns), VB_OK);
}

void client_establishes(struct talk *talk)
{
	EXPECT_EQ(vb_cm_establish(talk->connection[CLIENT], NULL, talk->now_ns), VB_OK);
}

void disconnect_from(struct talk *talk, int side)
{
	EXPECT_EQ(vb_cm_disconnect(talk->connection[side], NULL, talk->now_ns), VB_OK);
}

struct talk *talk_begin_connected(void)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	say(talk, CLIENT, "RTU");
	expect_events(talk, SERVER, "ESTABLISHED");
	return talk;
}

/* --- MADs ------------------------------------------------------------------------------------- */

struct vb_mad parse_held_mad(const struct talk *talk, uint32_t index)
{
	struct vb_mad mad;

	EXPECT(index < talk->mad_count);
	EXPECT_EQ(vb_mad_parse(talk->mads[index].bytes, VB_MAD_SIZE, &mad), VB_MAD_PARSED);
	return mad;
}

/*
 * Describes a REJ or an MRA in full. For other messages only the kind is given: the rest is the
 * same each time, or random.
 */
static void describe(const struct vb_mad *mad, char *text, uint32_t size)
{
	static const char *const subjects[] = { "REQ", "REP", "other", "?" };

	if (mad->kind == VB_MAD_REJ)
		snprintf(text, size, "REJ of %s: %s", subjects[mad->rej.about],
			 vb_mad_reason_describe(mad->rej.reason));
	else if (mad->kind == VB_MAD_MRA)
		snprintf(text, size, "MRA of %s", subjects[mad->mra.about]);
	else
		snprintf(text, size, "%s", vb_mad_kind_describe(mad->kind));
}

static void join(char *text, const char *word)
{
	if (*text)
		strncat(text, "; ", TEXT_MAX - strlen(text) - 1);
	strncat(text, word, TEXT_MAX - strlen(text) - 1);
}

static void expect_words(const char *file, int line, const char *const *words, const char *got)
{
	char expected[TEXT_MAX] = "";

	for (; *words; words++)
		join(expected, *words);
	test_expect_str(file, line, "got", "expected", got, expected);
}

void expect_mads_at(const char *file, int line, struct talk *talk, int side,
		    const char *const *words)
{
	char got[TEXT_MAX] = "";

	talk->mad_count = 0;
	while (talk->mad_count < MADS_MAX &&
	       vb_cm_take_mad(talk->cm[side], &talk->mads[talk->mad_count])) {
		struct vb_mad mad;
		char text[100];

		talk->mad_count++;
		mad = parse_held_mad(talk, talk->mad_count - 1);
		describe(&mad, text, sizeof(text));
		join(got, text);
	}
	expect_words(file, line, words, got);
}

static enum vb_cm_verdict deliver(struct talk *talk, int to, const struct vb_cm_mad *mad)
{
	return vb_cm_receive(talk->cm[to], &mad->flow, VB_MAD_QPN, mad->bytes, VB_MAD_SIZE,
			     talk->now_ns, &talk->addressee);
}

void deliver_and_keep(struct talk *talk, int to)
{
	for (uint32_t i = 0; i < talk->mad_count; i++)
		EXPECT_EQ(deliver(talk, to, &talk->mads[i]), VB_CM_TAKEN);
}

void deliver_held(struct talk *talk, int to)
{
	deliver_and_keep(talk, to);
	lose_held(talk);
}

void lose_held(struct talk *talk)
{
	talk->mad_count = 0;
}

void deliver_unwanted(struct talk *talk, int to, bool refuses)
{
	for (uint32_t i = 0; i < talk->mad_count; i++) {
		const struct vb_cm_mad *mad = &talk->mads[i];

		EXPECT_EQ(deliver(talk, to, mad), VB_CM_NOT_MINE);
		if (refuses)
			vb_cm_refuse(talk->cm[to], &mad->flow, VB_MAD_QPN, mad->bytes, VB_MAD_SIZE);
	}
	lose_held(talk);
}

/* --- events and time -------------------------------------------------------------------------- */

void expect_events_at(const char *file, int line, struct talk *talk, int side,
		      const char *const *words)
{
	char got[TEXT_MAX] = "";

	while (vb_cm_take_event(talk->cm[side], &talk->event)) {
		join(got, vb_cm_event_describe(talk->event.kind));
		if (talk->event.kind == VB_CM_REQUEST || talk->event.kind == VB_CM_SIDR_REQUEST)
			talk->connection[side] = talk->event.connection;
	}
	expect_words(file, line, words, got);
}

void pass_to_deadline_of(struct talk *talk, int side)
{
	uint64_t deadline_ns = vb_cm_deadline(talk->cm[side]);

	EXPECT(deadline_ns != UINT64_MAX);
	pass_ns(talk, deadline_ns - talk->now_ns);
}

void pass_ns(struct talk *talk, uint64_t ns)
{
	talk->now_ns += ns;
	vb_cm_fire_timers(talk->cm[CLIENT], talk->now_ns);
	vb_cm_fire_timers(talk->cm[SERVER], talk->now_ns);
}

void report_unreachable(struct talk *talk, int side)
{
	struct vb_flow flow = talk_flow(side);

	vb_cm_on_unreachable(talk->cm[side], &flow.destination, talk->now_ns);
}

void hold_mad(struct talk *talk, int from, const struct vb_mad *mad)
{
	talk->mads[0] = (struct vb_cm_mad){ .flow = talk_flow(from), .qpn = VB_MAD_QPN };
	vb_mad_store(talk->mads[0].bytes, mad);
	talk->mad_count = 1;
}
