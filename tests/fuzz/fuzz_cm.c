/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers whose programs and whose network follow the input: calls in any order,
 * and messages lost, duplicated, changed or made up, with the communication IDs that exist.
 * Whatever happens, events belong to connections that their program has, a deadline passes, refused
 * calls change nothing, and in the end everything is freed.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "base/timer.h"
#include "mgmt/cm.h"

#include <string.h>

enum {
	MACHINES = 2,
	HELD_MAX = 6,
	MADS_MAX = 16,
	CONNECTIONS_MAX = 8,
	STEPS_MAX = 400,
	WAITS_MAX = 2000
};

struct fuzz {
	struct input input;
	uint64_t now_ns;
	struct vb_cm *cm[MACHINES];
	struct vb_cm_row rows[MACHINES][CONNECTIONS_MAX];
	struct vb_cm_listener *listeners[MACHINES];
	struct vb_cm_connection *held[MACHINES][HELD_MAX]; /* the connections of the programs */
	struct vb_cm_mad mads[MADS_MAX]; /* in transit, oldest first */
	uint32_t mad_count;
};

static struct vb_gid gid_of(uint32_t machine)
{
	return vb_gid_from_ipv4(0x0a000001 + machine);
}

static struct vb_flow flow_from(uint32_t machine)
{
	return (struct vb_flow){ .source = gid_of(machine), .destination = gid_of(!machine) };
}

static struct vb_cm_connection **slot(struct fuzz *fuzz, uint32_t *machine)
{
	uint32_t choice = input_8(&fuzz->input);

	*machine = choice & 1;
	return &fuzz->held[*machine][(choice >> 1) % HELD_MAX];
}

/* --- the programs ----------------------------------------------------------------------------- */

static struct vb_cm_connection **slot_of(struct fuzz *fuzz, uint32_t machine,
					 const struct vb_cm_connection *connection)
{
	for (uint32_t i = 0; i < HELD_MAX; i++)
		if (fuzz->held[machine][i] == connection)
			return &fuzz->held[machine][i];
	return NULL;
}

static void on_event(struct fuzz *fuzz, uint32_t machine, const struct vb_cm_event *event)
{
	struct vb_cm_connection **free_slot = slot_of(fuzz, machine, NULL);

	REQUIRE(event->private_length <= VB_MAD_PRIVATE_MAX);
	if (event->kind != VB_CM_REQUEST && event->kind != VB_CM_SIDR_REQUEST) {
		REQUIRE(slot_of(fuzz, machine, event->connection));
		return;
	}
	REQUIRE(event->listener == fuzz->listeners[machine]);
	REQUIRE(!slot_of(fuzz, machine, event->connection));
	if (free_slot)
		*free_slot = event->connection;
	else
		vb_cm_connection_destroy(event->connection, fuzz->now_ns);
}

static void listen_or_not(struct fuzz *fuzz, uint32_t machine)
{
	struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP, 1),
					 .takes = VB_CM_IPV4 };

	if (fuzz->listeners[machine]) {
		vb_cm_listener_destroy(fuzz->listeners[machine], fuzz->now_ns);
		fuzz->listeners[machine] = NULL;
	} else {
		REQUIRE(vb_cm_listen(fuzz->cm[machine], &service, 3, NULL,
				     &fuzz->listeners[machine]) == VB_OK);
	}
}

static vb_err ask(struct fuzz *fuzz, uint32_t machine, struct vb_cm_connection *connection,
		  bool is_sidr)
{
	struct vb_service_ip ip = { .source = gid_of(machine), .destination = gid_of(!machine) };
	struct vb_cm_request request = {
		.service = vb_service_id(VB_SERVICE_SPACE_TCP, 1),
		.ip = &ip,
		.flow = flow_from(machine),
		.transport = (enum vb_cm_transport)input_below(&fuzz->input, 3),
		.qpn = { input_below(&fuzz->input, 8) },
		.packet_life_time = input_8(&fuzz->input) & 0x1f,
		.response_timeout = input_8(&fuzz->input) & 0x1f,
		.retries_max = input_below(&fuzz->input, 4),
		.private_data = { "x", input_bool(&fuzz->input) },
	};
	struct vb_cm_resolution resolution = {
		.service = request.service,
		.ip = &ip,
		.flow = request.flow,
		.response_timeout = request.response_timeout,
		.retries_max = request.retries_max,
	};

	return is_sidr ? vb_cm_resolve(connection, &resolution, fuzz->now_ns)
		       : vb_cm_connect(connection, &request, fuzz->now_ns);
}

static vb_err decide(struct fuzz *fuzz, struct vb_cm_connection *connection, uint32_t call)
{
	struct vb_cm_reply reply = { .qpn = { input_below(&fuzz->input, 8) } };
	struct vb_cm_rejection rejection = { .reason = input_16(&fuzz->input) };
	struct vb_cm_sidr sidr = { .status = input_8(&fuzz->input) };
	struct vb_cm_private private_data = { "yz", 2 };

	switch (call) {
	case 0:
		return vb_cm_accept(connection, &reply, fuzz->now_ns);
	case 1:
		return vb_cm_reject(connection, &rejection, fuzz->now_ns);
	case 2:
		return vb_cm_establish(connection, &private_data, fuzz->now_ns);
	case 3:
		return vb_cm_disconnect(connection, &private_data, fuzz->now_ns);
	case 4:
		return vb_cm_answer(connection, &sidr, fuzz->now_ns);
	default:
		vb_cm_on_communication(connection, fuzz->now_ns);
		return VB_OK;
	}
}

static void call(struct fuzz *fuzz, uint32_t what)
{
	uint32_t machine;
	struct vb_cm_connection **held = slot(fuzz, &machine);
	enum vb_cm_state before;
	vb_err err;

	if (!*held) {
		if (vb_cm_connection_create(fuzz->cm[machine], NULL, held) != VB_OK) {
			*held = NULL;
			return;
		}
	}
	before = vb_cm_connection_state(*held);
	if (what < 2)
		err = ask(fuzz, machine, *held, what);
	else
		err = decide(fuzz, *held, what - 2);
	REQUIRE(err == VB_OK || vb_cm_connection_state(*held) == before);
}

static void destroy(struct fuzz *fuzz)
{
	uint32_t machine;
	struct vb_cm_connection **held = slot(fuzz, &machine);

	if (*held)
		vb_cm_connection_destroy(*held, fuzz->now_ns);
	*held = NULL;
}

/* --- the network ------------------------------------------------------------------------------ */

static void receive(struct fuzz *fuzz, uint32_t machine, const struct vb_cm_mad *mad)
{
	struct vb_flow flow = flow_from(!machine);
	struct vb_cm_addressee addressee;
	enum vb_cm_verdict verdict = vb_cm_receive(fuzz->cm[machine], &flow, VB_MAD_QPN, mad->bytes,
						   VB_MAD_SIZE, fuzz->now_ns, &addressee);

	if (verdict != VB_CM_NOT_MINE)
		return;
	REQUIRE(!vb_cm_has_listener(fuzz->cm[machine], &addressee));
	if (input_bool(&fuzz->input))
		vb_cm_refuse(fuzz->cm[machine], &flow, VB_MAD_QPN, mad->bytes, VB_MAD_SIZE);
}

static void lose_peer(struct fuzz *fuzz, uint32_t machine)
{
	struct vb_gid peer = gid_of(!machine);

	vb_cm_on_unreachable(fuzz->cm[machine], &peer, fuzz->now_ns);
}

static uint32_t receiver_of(const struct vb_cm_mad *mad)
{
	struct vb_gid first = gid_of(0);

	return !vb_gid_equal(&mad->flow.destination, &first);
}

static void take_from_wire(struct fuzz *fuzz, uint32_t index)
{
	fuzz->mad_count--;
	memmove(&fuzz->mads[index], &fuzz->mads[index + 1],
		(fuzz->mad_count - index) * sizeof(fuzz->mads[0]));
}

static void change(struct fuzz *fuzz, uint8_t *bytes, uint32_t length)
{
	uint32_t offset = input_8(&fuzz->input) % length;

	bytes[offset] = input_8(&fuzz->input);
}

enum fate { ARRIVES, LOST, DOUBLED, CHANGED };

static void deliver(struct fuzz *fuzz, enum fate fate)
{
	struct vb_cm_mad mad;
	uint32_t index;

	if (!fuzz->mad_count)
		return;
	index = input_below(&fuzz->input, fuzz->mad_count);
	mad = fuzz->mads[index];
	if (fate != DOUBLED)
		take_from_wire(fuzz, index);
	if (fate == CHANGED)
		change(fuzz, mad.bytes, VB_MAD_SIZE);
	if (fate != LOST)
		receive(fuzz, receiver_of(&mad), &mad);
}

static uint32_t some_id(struct fuzz *fuzz)
{
	uint32_t machine;
	struct vb_cm_connection **held = slot(fuzz, &machine);

	return *held ? vb_cm_connection_id(*held) : input_8(&fuzz->input);
}

/* A made-up message that no machine sent. */
static void invent(struct fuzz *fuzz)
{
	uint32_t machine = input_bool(&fuzz->input);
	struct vb_cm_mad out = { .qpn = VB_MAD_QPN };
	struct vb_service_ip ip = { .source = gid_of(!machine), .destination = gid_of(machine) };
	struct vb_mad mad = { .kind = (enum vb_mad_kind)(
				      VB_MAD_REQ + input_below(&fuzz->input, VB_MAD_KIND_COUNT)) };
	uint32_t change_count;

	mad.local_id = some_id(fuzz);
	mad.remote_id = some_id(fuzz);
	if (mad.kind == VB_MAD_REQ)
		mad.req.service = vb_service_id(VB_SERVICE_SPACE_TCP, 1);
	else if (mad.kind == VB_MAD_SIDR_REQ)
		mad.sidr_req.service = vb_service_id(VB_SERVICE_SPACE_TCP, 1);
	if (mad.kind == VB_MAD_REQ || mad.kind == VB_MAD_SIDR_REQ)
		vb_service_ip_store(mad.private_data, &ip);
	vb_mad_store(out.bytes, &mad);
	change_count = input_below(&fuzz->input, 6);
	for (uint32_t i = 0; i < change_count; i++)
		change(fuzz, out.bytes + VB_MAD_HEADER_SIZE, 96);
	receive(fuzz, machine, &out);
}

static void drive(struct fuzz *fuzz)
{
	for (uint32_t i = 0; i < MACHINES; i++) {
		struct vb_cm_event event;
		struct vb_cm_mad mad;

		while (vb_cm_take_event(fuzz->cm[i], &event))
			on_event(fuzz, i, &event);
		while (vb_cm_take_mad(fuzz->cm[i], &mad)) {
			struct vb_mad parsed;

			REQUIRE(vb_mad_parse(mad.bytes, VB_MAD_SIZE, &parsed) == VB_MAD_PARSED);
			if (fuzz->mad_count < MADS_MAX)
				fuzz->mads[fuzz->mad_count++] = mad;
		}
	}
}

static bool wait(struct fuzz *fuzz)
{
	uint64_t deadline_ns = VB_NEVER;

	for (uint32_t i = 0; i < MACHINES; i++)
		if (vb_cm_deadline(fuzz->cm[i]) < deadline_ns)
			deadline_ns = vb_cm_deadline(fuzz->cm[i]);
	if (deadline_ns == VB_NEVER)
		return false;
	if (deadline_ns > fuzz->now_ns)
		fuzz->now_ns = deadline_ns;
	for (uint32_t i = 0; i < MACHINES; i++) {
		vb_cm_fire_timers(fuzz->cm[i], fuzz->now_ns);
		REQUIRE(vb_cm_deadline(fuzz->cm[i]) > fuzz->now_ns);
	}
	return true;
}

/* --- a life ----------------------------------------------------------------------------------- */

static void step(struct fuzz *fuzz)
{
	uint32_t what = input_below(&fuzz->input, 24);

	if (what < 8)
		call(fuzz, what);
	else if (what < 11)
		destroy(fuzz);
	else if (what == 11)
		listen_or_not(fuzz, input_bool(&fuzz->input));
	else if (what == 12)
		wait(fuzz);
	else if (what == 13 && input_bool(&fuzz->input))
		lose_peer(fuzz, input_bool(&fuzz->input));
	else if (what == 13)
		vb_cm_send_farewell(fuzz->cm[0],
				    &fuzz->rows[1][input_below(&fuzz->input, CONNECTIONS_MAX)]);
	else if (what == 14)
		deliver(fuzz, LOST);
	else if (what == 15)
		deliver(fuzz, DOUBLED);
	else if (what < 18)
		deliver(fuzz, CHANGED);
	else if (what < 20)
		invent(fuzz);
	else
		deliver(fuzz, ARRIVES);
}

static void begin(struct fuzz *fuzz)
{
	for (uint32_t i = 0; i < MACHINES; i++) {
		struct vb_cm_config config = { .seed = i,
					       .ca_guid = i,
					       .id_prefix = i,
					       .id_prefix_bits = 1,
					       .connection_max = CONNECTIONS_MAX,
					       .listener_max = 1,
					       .rows = fuzz->rows[i] };

		REQUIRE(vb_cm_create(&config, &fuzz->cm[i]) == VB_OK);
		listen_or_not(fuzz, i);
	}
}

/*
 * All connections are destroyed; what is in transit is lost; time passes. Then there is room for
 * all connections again.
 */
static void finish(struct fuzz *fuzz)
{
	for (uint32_t i = 0; i < MACHINES; i++) {
		if (fuzz->listeners[i])
			listen_or_not(fuzz, i);
		for (uint32_t j = 0; j < HELD_MAX; j++)
			if (fuzz->held[i][j])
				vb_cm_connection_destroy(fuzz->held[i][j], fuzz->now_ns);
	}
	memset(fuzz->held, 0, sizeof(fuzz->held));
	drive(fuzz);
	for (uint32_t i = 0; wait(fuzz); i++) {
		REQUIRE(i < WAITS_MAX);
		drive(fuzz);
	}
	for (uint32_t i = 0; i < MACHINES; i++) {
		struct vb_cm_connection *connection;

		for (uint32_t j = 0; j < CONNECTIONS_MAX; j++) {
			REQUIRE(fuzz->rows[i][j].state == VB_CM_IDLE);
			REQUIRE(vb_cm_connection_create(fuzz->cm[i], NULL, &connection) == VB_OK);
		}
		vb_cm_destroy(fuzz->cm[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.input = (struct input){ data, size };
	begin(&fuzz);
	for (uint32_t i = 0; i < STEPS_MAX && input_has_more(&fuzz.input); i++) {
		step(&fuzz);
		drive(&fuzz);
	}
	finish(&fuzz);
	return 0;
}
