/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several machines form the connection manager of one host: messages for another process, messages
 * for no process, and the last messages for a process that died.
 */
#include "harness.h"
#include "support_cm.h"

#include <string.h>

/* A second process on the server's host. */
static struct vb_cm *survivor_create(void)
{
	struct vb_cm_config config = { .seed = 99,
				       .ca_guid = SERVER_GUID,
				       .id_prefix = 0x6,
				       .id_prefix_bits = 4,
				       .connection_max = 4 };
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	return cm;
}

TEST(a_message_for_another_comm_id_is_not_mine_and_changes_nothing)
{
	static const enum vb_mad_kind kinds[] = { VB_MAD_MRA,	   VB_MAD_REJ,	VB_MAD_REP,
						  VB_MAD_RTU,	   VB_MAD_DREQ, VB_MAD_DREP,
						  VB_MAD_SIDR_REP, VB_MAD_LAP,	VB_MAD_APR };
	struct talk *talk = talk_begin();

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct vb_mad mad = { .kind = kinds[i], .local_id = 7, .remote_id = 0x60001234 };

		vb_mad_store(talk->mads[0].bytes, &mad);
		talk->mad_count = 1;
		deliver_unwanted(talk, SERVER, false);
		EXPECT(!talk->addressee.has_service);
		EXPECT_EQ(talk->addressee.kind, kinds[i]);
		EXPECT_EQ(talk->addressee.comm_id, 0x60001234);
		expect_silence_of(talk, SERVER);
	}
	talk_end(talk);
}

TEST(a_request_that_is_nobodys_is_refused_with_an_invalid_service_id)
{
	struct talk *talk = talk_begin();

	vb_cm_listener_destroy(talk->listener, talk->now_ns);
	client_connects(talk);
	expect_mads(talk, CLIENT, "REQ");
	deliver_unwanted(talk, SERVER, true);
	say(talk, SERVER, "REJ of REQ: invalid service ID");
	expect_events(talk, CLIENT, "REJECTED");
	EXPECT_EQ(talk->event.message.rej.reason, 8);
	expect_state(talk, CLIENT, "CLOSED");
	talk_end(talk);
}

TEST(a_request_can_be_looked_up_in_another_process)
{
	struct talk *talk = talk_begin();
	struct vb_cm *other = survivor_create();
	struct vb_cm_mad mad;

	client_connects(talk);
	EXPECT(vb_cm_take_mad(talk->cm[CLIENT], &mad));
	EXPECT_EQ(vb_cm_receive(other, &mad.flow, VB_MAD_QPN, mad.bytes, VB_MAD_SIZE, 0,
				&talk->addressee),
		  VB_CM_NOT_MINE);
	EXPECT(!vb_cm_has_listener(other, &talk->addressee));
	EXPECT(vb_cm_has_listener(talk->cm[SERVER], &talk->addressee));
	vb_cm_destroy(other);
	talk_end(talk);
}

TEST(a_dreq_that_is_nobodys_is_answered_with_a_drep)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm *other = survivor_create();

	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREQ");
	vb_cm_destroy(talk->cm[SERVER]); /* its process has died */
	talk->cm[SERVER] = other;
	deliver_unwanted(talk, SERVER, true);
	say(talk, SERVER, "DREP");
	expect_events(talk, CLIENT, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_rep_or_rtu_that_is_nobodys_is_refused_with_an_invalid_comm_id)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	expect_mads(talk, SERVER, "REP");
	deliver_and_keep(talk, CLIENT);
	expect_events(talk, CLIENT, "RESPONSE");
	client_establishes(talk);
	expect_mads(talk, CLIENT, "RTU");
	vb_cm_destroy(talk->cm[SERVER]);
	talk->cm[SERVER] = survivor_create();
	deliver_unwanted(talk, SERVER, true);
	say(talk, SERVER, "REJ of other: invalid communication ID");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_sidr_request_that_is_nobodys_is_unsupported)
{
	struct talk *talk = talk_begin();
	struct vb_service_ip ip = talk_ip();
	struct vb_cm_resolution resolution = { .service = vb_service_id(VB_SERVICE_SPACE_UDP, 9),
					       .ip = &ip,
					       .flow = talk_flow(CLIENT) };

	EXPECT_EQ(vb_cm_resolve(talk->connection[CLIENT], &resolution, talk->now_ns), VB_OK);
	expect_mads(talk, CLIENT, "SIDR_REQ");
	deliver_unwanted(talk, SERVER, true);
	say(talk, SERVER, "SIDR_REP");
	expect_events(talk, CLIENT, "SIDR_RESPONSE");
	EXPECT_EQ(talk->event.message.sidr_rep.status, VB_MAD_SIDR_UNSUPPORTED);
	EXPECT_EQ(talk->event.message.sidr_rep.service, resolution.service);
	talk_end(talk);
}

TEST(an_answer_that_is_nobodys_is_not_answered)
{
	static const enum vb_mad_kind kinds[] = { VB_MAD_MRA,	   VB_MAD_REJ, VB_MAD_DREP,
						  VB_MAD_SIDR_REP, VB_MAD_LAP, VB_MAD_APR };
	struct talk *talk = talk_begin();

	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct vb_mad mad = { .kind = kinds[i], .remote_id = 0x60001234 };

		vb_mad_store(talk->mads[0].bytes, &mad);
		talk->mad_count = 1;
		deliver_unwanted(talk, SERVER, true);
	}
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(an_alternate_path_is_not_answered)
{
	struct talk *talk = talk_begin_connected();
	struct vb_mad mad = { .kind = VB_MAD_LAP,
			      .local_id = vb_cm_connection_id(talk->connection[CLIENT]),
			      .remote_id = vb_cm_connection_id(talk->connection[SERVER]) };

	vb_mad_store(talk->mads[0].bytes, &mad);
	talk->mad_count = 1;
	deliver_held(talk, SERVER);
	expect_silence_of(talk, SERVER);
	expect_no_events(talk, SERVER);
	expect_state(talk, SERVER, "CONNECTED");
	talk_end(talk);
}

TEST(refusals_that_are_not_taken_do_not_pile_up)
{
	struct talk *talk = talk_begin();
	struct vb_mad mad = { .kind = VB_MAD_DREQ, .remote_id = 1 };
	struct vb_flow flow = talk_flow(CLIENT);
	struct vb_cm_mad out;
	uint8_t bytes[VB_MAD_SIZE];
	uint32_t count = 0;

	vb_mad_store(bytes, &mad);
	for (uint32_t i = 0; i < 1000; i++)
		vb_cm_refuse(talk->cm[SERVER], &flow, VB_MAD_QPN, bytes, sizeof(bytes));
	while (vb_cm_take_mad(talk->cm[SERVER], &out))
		count++;
	EXPECT_EQ(count + vb_cm_counters(talk->cm[SERVER])->answers_lost, 1000);
	EXPECT(count > 0 && count < 100);
	talk_end(talk);
}

TEST(what_is_no_mad_is_malformed)
{
	struct talk *talk = talk_begin();
	struct vb_flow flow = talk_flow(CLIENT);
	uint8_t bytes[VB_MAD_SIZE] = { 0 };

	EXPECT_EQ(vb_cm_receive(talk->cm[SERVER], &flow, VB_MAD_QPN, bytes, sizeof(bytes), 0,
				&talk->addressee),
		  VB_CM_MALFORMED);
	vb_cm_refuse(talk->cm[SERVER], &flow, VB_MAD_QPN, bytes, 3);
	EXPECT_EQ(vb_cm_counters(talk->cm[SERVER])->malformed, 1);
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

/* --- last words ------------------------------------------------------------------------------- */

/* The only row of the side that has a peer to notify. */
static struct vb_cm_row row_of(const struct talk *talk, int side)
{
	struct vb_cm_row found = { 0 };

	for (uint32_t i = 0; i < 8; i++) {
		const struct vb_cm_row *row = &talk->rows[side][i];

		EXPECT_EQ(row->generation % 2, 0);
		if (row->state != VB_CM_IDLE) {
			EXPECT_EQ(found.state, VB_CM_IDLE);
			found = *row;
		}
	}
	return found;
}

/*
 * The server's process dies; another process of its host sends the farewell from the row's
 * contents.
 */
static void die(struct talk *talk)
{
	struct vb_cm_row row = row_of(talk, SERVER);

	EXPECT(row.state != VB_CM_IDLE);
	vb_cm_destroy(talk->cm[SERVER]);
	talk->cm[SERVER] = survivor_create();
	vb_cm_send_farewell(talk->cm[SERVER], &row);
}

TEST(a_connection_of_a_dead_process_is_ended_by_a_dreq)
{
	struct talk *talk = talk_begin_connected();

	die(talk);
	say(talk, SERVER, "DREQ");
	expect_events(talk, CLIENT, "DISCONNECTED");
	disconnect_from(talk, CLIENT);
	expect_mads(talk, CLIENT, "DREP");
	deliver_unwanted(talk, SERVER, true);
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

/*
 * As in a forked process that continues with a copy of the machine: the old rows are its parent's.
 */
TEST(rows_elsewhere_hold_what_the_old_ones_did)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_row before = row_of(talk, SERVER), after;

	memset(talk->rows[SERVER], 0, sizeof(talk->rows[SERVER]));
	vb_cm_set_rows(talk->cm[SERVER], talk->rows[SERVER]);
	after = row_of(talk, SERVER);
	EXPECT_EQ(after.state, VB_CM_CONNECTED);
	EXPECT_EQ(after.local_id, before.local_id);
	die(talk);
	say(talk, SERVER, "DREQ");
	expect_events(talk, CLIENT, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_request_to_a_dead_process_is_rejected)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	die(talk);
	say(talk, SERVER, "REJ of REQ: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(an_answer_of_a_dead_process_is_withdrawn)
{
	struct talk *talk = talk_begin();

	client_connects(talk);
	say(talk, CLIENT, "REQ");
	expect_events(talk, SERVER, "REQUEST");
	server_accepts(talk);
	say(talk, SERVER, "REP");
	expect_events(talk, CLIENT, "RESPONSE");
	die(talk);
	say(talk, SERVER, "REJ of other: consumer defined");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_request_of_a_dead_process_is_withdrawn)
{
	struct talk *talk = talk_begin();
	struct vb_cm_request request = talk_request();
	struct vb_cm_service service = { .id = 5, .takes = VB_CM_RAW };
	struct vb_cm_connection *connection;

	EXPECT_EQ(vb_cm_listen(talk->cm[CLIENT], &service, 1, NULL, &talk->listener), VB_OK);
	EXPECT_EQ(vb_cm_connection_create(talk->cm[SERVER], NULL, &connection), VB_OK);
	request.service = 5;
	request.flow = talk_flow(SERVER);
	EXPECT_EQ(vb_cm_connect(connection, &request, talk->now_ns), VB_OK);
	say(talk, SERVER, "REQ");
	expect_events(talk, CLIENT, "REQUEST");
	die(talk);
	say(talk, SERVER, "REJ of other: timeout");
	expect_events(talk, CLIENT, "REJECTED");
	talk_end(talk);
}

TEST(a_disconnect_that_a_dead_process_was_asked_for_is_answered)
{
	struct talk *talk = talk_begin_connected();

	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	die(talk);
	say(talk, SERVER, "DREP");
	expect_events(talk, CLIENT, "DISCONNECTED");
	talk_end(talk);
}

TEST(a_row_that_was_being_written_or_is_rubbish_has_no_last_words)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_row row = row_of(talk, SERVER);

	row.generation++;
	vb_cm_send_farewell(talk->cm[SERVER], &row);
	row.generation++;
	row.state = 0xee;
	vb_cm_send_farewell(talk->cm[SERVER], &row);
	expect_silence_of(talk, SERVER);
	talk_end(talk);
}

TEST(a_connection_that_is_over_has_no_peer_to_notify)
{
	struct talk *talk = talk_begin_connected();
	struct vb_cm_row row;

	disconnect_from(talk, CLIENT);
	say(talk, CLIENT, "DREQ");
	expect_events(talk, SERVER, "DISCONNECTED");
	disconnect_from(talk, SERVER);
	say(talk, SERVER, "DREP");
	row = row_of(talk, SERVER);
	EXPECT_EQ(row.state, VB_CM_IDLE);
	row = row_of(talk, CLIENT);
	EXPECT_EQ(row.state, VB_CM_IDLE);
	talk_end(talk);
}

/* Each process has few IDs of its own, and must not reuse one before it has used them all. */
TEST(communication_ids_come_back_late_and_do_not_tell_the_next)
{
	struct vb_cm_config config = { .seed = 9,
				       .id_prefix = 0x1234,
				       .id_prefix_bits = 16,
				       .connection_max = 1,
				       .listener_max = 1 };
	static bool is_used[1 << 16];
	uint32_t last = 0, successors = 0, id;
	struct vb_cm_connection *connection;
	struct vb_cm *cm;

	EXPECT_EQ(vb_cm_create(&config, &cm), VB_OK);
	for (uint32_t i = 0; i < 1 << 16; i++) {
		EXPECT_EQ(vb_cm_connection_create(cm, NULL, &connection), VB_OK);
		id = vb_cm_connection_id(connection);
		EXPECT_EQ(id >> 16, 0x1234);
		EXPECT(!is_used[id & 0xffff]);
		is_used[id & 0xffff] = true;
		successors += id - last <= 16;
		last = id;
		vb_cm_connection_destroy(connection, 0);
	}
	EXPECT(successors < 100); /* by chance */
	vb_cm_destroy(cm);
}
