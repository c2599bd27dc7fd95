/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connect and a disconnect between two connection managers, with every fate of the first
 * messages: each of them arrives, is lost, arrives twice, or arrives after the next one. Whatever
 * happens to them, both programs get what they get without faults, and both machines are empty
 * afterwards.
 */
#include "harness.h"

#include "base/timer.h"
#include "mgmt/cm.h"

#include <string.h>

enum fate { ARRIVES, LOST, DOUBLED, LATE, FATES };
enum { CLIENT, SERVER };

/* messages with a fate of their own; a connect and a disconnect need five if all goes well */
#define MESSAGES 7
#define HELD_MAX 16
#define STEPS_MAX 200

struct run {
	uint32_t fates; /* in base FATES; the fate of the first message is the last digit */
	/* the client disconnects immediately; otherwise the server does once connected */
	bool is_hasty;
	uint64_t now_ns;
	struct vb_cm *cm[2];
	struct vb_cm_mad held[HELD_MAX]; /* in transit, in the order of arrival */
	uint32_t held_count;
	uint32_t late_count; /* how many of those held, at the end, are late */
	uint32_t sent_count;
	uint32_t events[2][VB_CM_EVENT_COUNT]; /* how often each came */
	uint32_t server_qpn; /* as reported to the client */
};

static struct vb_gid gid_of(int side)
{
	return vb_gid_from_ipv4(0x0a000001 + (uint32_t)side);
}

static enum fate fate_of(struct run *run)
{
	uint32_t digits = run->fates;

	if (run->sent_count >= MESSAGES)
		return ARRIVES;
	for (uint32_t i = 0; i < run->sent_count; i++)
		digits /= FATES;
	return (enum fate)(digits % FATES);
}

static void hold(struct run *run, const struct vb_cm_mad *mad, uint32_t position)
{
	EXPECT(run->held_count < HELD_MAX);
	memmove(&run->held[position + 1], &run->held[position],
		(run->held_count - position) * sizeof(*mad));
	run->held[position] = *mad;
	run->held_count++;
}

/* A late message lets the next one pass: it waits at the end, and others are put before it. */
static void send_mad(struct run *run, const struct vb_cm_mad *mad)
{
	enum fate fate = fate_of(run);
	uint32_t position = run->held_count - run->late_count;

	run->sent_count++;
	if (fate == LOST)
		return;
	if (fate == LATE) {
		hold(run, mad, run->held_count);
		run->late_count++;
		return;
	}
	hold(run, mad, position);
	if (fate == DOUBLED)
		hold(run, mad, position);
	run->late_count = 0;
}

static void on_event(struct run *run, int side, const struct vb_cm_event *event)
{
	struct vb_cm_connection *connection = event->connection;
	struct vb_cm_reply reply = { .qpn = { 0x22 } };

	run->events[side][event->kind]++;
	switch (event->kind) {
	case VB_CM_REQUEST:
		EXPECT_EQ(event->message.req.qpn.v, 0x11);
		EXPECT_EQ(vb_cm_accept(connection, &reply, run->now_ns), VB_OK);
		break;
	case VB_CM_RESPONSE:
		run->server_qpn = event->message.rep.qpn.v;
		EXPECT_EQ(vb_cm_establish(connection, NULL, run->now_ns), VB_OK);
		if (run->is_hasty)
			EXPECT_EQ(vb_cm_disconnect(connection, NULL, run->now_ns), VB_OK);
		break;
	case VB_CM_ESTABLISHED:
		if (!run->is_hasty)
			EXPECT_EQ(vb_cm_disconnect(connection, NULL, run->now_ns), VB_OK);
		break;
	case VB_CM_DISCONNECTED:
		EXPECT(!event->is_timeout);
		if ((side == SERVER) == run->is_hasty)
			EXPECT_EQ(vb_cm_disconnect(connection, NULL, run->now_ns), VB_OK);
		break;
	case VB_CM_TIMEWAIT_EXIT:
		vb_cm_connection_destroy(connection, run->now_ns);
		break;
	case VB_CM_REJECTED:
	case VB_CM_UNREACHABLE:
	case VB_CM_SIDR_REQUEST:
	case VB_CM_SIDR_RESPONSE:
		FAIL("fates %o: %s", run->fates, vb_cm_event_describe(event->kind));
	}
}

static void receive(struct run *run, const struct vb_cm_mad *mad)
{
	struct vb_gid server = gid_of(SERVER);
	int side = vb_gid_equal(&mad->flow.destination, &server);
	struct vb_cm_addressee addressee;

	if (vb_cm_receive(run->cm[side], &mad->flow, VB_MAD_QPN, mad->bytes, VB_MAD_SIZE,
			  run->now_ns, &addressee) == VB_CM_NOT_MINE)
		vb_cm_refuse(run->cm[side], &mad->flow, VB_MAD_QPN, mad->bytes, VB_MAD_SIZE);
}

static void drive(struct run *run)
{
	struct vb_cm_event event;
	struct vb_cm_mad mad;

	for (int side = 0; side < 2; side++) {
		while (vb_cm_take_event(run->cm[side], &event))
			on_event(run, side, &event);
		while (vb_cm_take_mad(run->cm[side], &mad))
			send_mad(run, &mad);
	}
}

/*
 * Delivers the next message, or moves to the next deadline when none is in transit; false: nothing
 * more will happen.
 */
static bool step(struct run *run)
{
	uint64_t deadline_ns;

	if (run->held_count) {
		struct vb_cm_mad mad = run->held[0];

		run->held_count--;
		if (run->late_count > run->held_count)
			run->late_count = run->held_count;
		memmove(&run->held[0], &run->held[1], run->held_count * sizeof(mad));
		receive(run, &mad);
		return true;
	}
	deadline_ns = vb_cm_deadline(run->cm[CLIENT]);
	if (vb_cm_deadline(run->cm[SERVER]) < deadline_ns)
		deadline_ns = vb_cm_deadline(run->cm[SERVER]);
	if (deadline_ns == VB_NEVER)
		return false;
	run->now_ns = deadline_ns;
	vb_cm_fire_timers(run->cm[CLIENT], run->now_ns);
	vb_cm_fire_timers(run->cm[SERVER], run->now_ns);
	return true;
}

static void begin(struct run *run)
{
	struct vb_cm_service service = { .id = 1, .takes = VB_CM_RAW };
	struct vb_cm_request request = {
		.service = 1,
		.flow = {
			.source = gid_of(CLIENT),
			.destination = gid_of(SERVER),
			.hop_limit = 64,
		},
		.qpn = { 0x11 },
		.packet_life_time = VB_CM_PACKET_LIFE_TIME,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = VB_CM_RETRIES_MAX,
	};
	struct vb_cm_connection *connection;
	struct vb_cm_listener *listener;

	for (uint32_t side = 0; side < 2; side++) {
		struct vb_cm_config config = {
			.seed = side, .ca_guid = side, .connection_max = 1, .listener_max = 1
		};

		EXPECT_EQ(vb_cm_create(&config, &run->cm[side]), VB_OK);
	}
	EXPECT_EQ(vb_cm_listen(run->cm[SERVER], &service, 1, NULL, &listener), VB_OK);
	EXPECT_EQ(vb_cm_connection_create(run->cm[CLIENT], NULL, &connection), VB_OK);
	EXPECT_EQ(vb_cm_connect(connection, &request, 0), VB_OK);
}

static void live(uint32_t fates, bool is_hasty)
{
	struct run run = { .fates = fates, .is_hasty = is_hasty };
	uint32_t steps = 0;
	struct vb_cm_connection *connection;

	begin(&run);
	do {
		drive(&run);
		if (++steps > STEPS_MAX)
			FAIL("fates %o: no end", fates);
	} while (step(&run));
	/* With is_hasty, the DREQ may overtake the RTU: then the server is never ESTABLISHED. */
	if (run.events[SERVER][VB_CM_REQUEST] != 1 || run.events[CLIENT][VB_CM_RESPONSE] != 1 ||
	    run.events[SERVER][VB_CM_ESTABLISHED] + is_hasty < 1 ||
	    run.events[SERVER][VB_CM_ESTABLISHED] > 1 ||
	    run.events[CLIENT][VB_CM_DISCONNECTED] != 1 ||
	    run.events[SERVER][VB_CM_DISCONNECTED] != 1 ||
	    run.events[CLIENT][VB_CM_TIMEWAIT_EXIT] != 1 ||
	    run.events[SERVER][VB_CM_TIMEWAIT_EXIT] != 1 || run.server_qpn != 0x22)
		FAIL("fates %o: not all events came once", fates);
	for (int side = 0; side < 2; side++) {
		EXPECT_EQ(vb_cm_connection_create(run.cm[side], NULL, &connection), VB_OK);
		vb_cm_destroy(run.cm[side]);
	}
}

TEST(every_loss_doubling_and_reordering_of_the_first_messages_ends_well)
{
	uint32_t count = 1;

	for (int i = 0; i < MESSAGES; i++)
		count *= FATES;
	for (uint32_t fates = 0; fates < count; fates++) {
		live(fates, false);
		live(fates, true);
	}
}
