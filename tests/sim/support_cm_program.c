/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs of a world of connection managers, and the model that watches them. Private data carries
 * which attempt and which end a message is about, so that the model needs no look into any machine.
 */
#include "support_cm_world.h"

#include "base/bytes.h"
#include "sim/dice.h"

#include <stdlib.h>

#define MS 1000000ull
#define SECOND 1000000000ull
#define PORT_FIRST 5000
#define RETRIES_MIN 3
#define END_NONE CM_ENDS_MAX

static bool is_alive(const struct cm_world *world, const struct cm_end *end)
{
	const struct cm_process *process = &world->processes[end->process];

	return process->cm && process->lives == end->life;
}

static uint32_t index_of(const struct cm_world *world, const struct cm_end *end)
{
	return (uint32_t)(end - world->ends);
}

static void must(struct cm_world *world, vb_err err, const char *what)
{
	if (err != VB_OK)
		cm_violate(world, "%s was refused: %d", what, (int)err);
}

static void plan_decision(struct cm_world *world, struct cm_end *end, uint64_t delay_ns)
{
	cm_plan(world, delay_ns, CM_ITEM_DECIDE, index_of(world, end),
		(void *)(uintptr_t)++end->turn);
}

/* Most programs answer immediately, some only after the peer has asked again. */
static uint64_t hesitation(struct cm_world *world)
{
	if (vb_dice_chance(&world->prng, 1, 6))
		return vb_prng_below(&world->prng, 20 * SECOND);
	return vb_prng_below(&world->prng, 10 * MS);
}

static struct cm_end *add_end(struct cm_world *world, uint32_t process, uint32_t attempt)
{
	struct cm_end *end;

	if (world->end_count == CM_ENDS_MAX) {
		cm_violate(world, "too many requests for %u attempts", world->attempt_count);
		return &world->ends[0];
	}
	end = &world->ends[world->end_count++];
	end->process = process;
	end->life = world->processes[process].lives;
	end->attempt = attempt;
	end->peer_end = END_NONE;
	end->qpn.v = world->processes[process].next_qpn++;
	end->psn.v = (uint32_t)vb_prng_below(&world->prng, 1 << 24);
	return end;
}

static void *owner_of(const struct cm_world *world, const struct cm_end *end)
{
	return (void *)(uintptr_t)(index_of(world, end) + 1);
}

/* --- connecting ------------------------------------------------------------------------------- */

void cm_program_listen(struct cm_world *world, uint32_t process)
{
	uint32_t per_host = world->process_count / world->host_count;
	struct cm_process *self = &world->processes[process];

	for (uint32_t port = 0; port < CM_PORTS; port++) {
		struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP,
								     (uint16_t)(PORT_FIRST + port)),
						 .takes = VB_CM_IPV4 };

		if (port % per_host != process / world->host_count || self->listeners[port] ||
		    vb_dice_chance(&world->prng, 1, 8))
			continue;
		if (vb_dice_chance(&world->prng, 1, 2))
			service.address = cm_address(self->host);
		self->listening_ns[port] = world->now_ns;
		must(world,
		     vb_cm_listen(self->cm, &service, 2 + (uint32_t)vb_prng_below(&world->prng, 8),
				  NULL, &self->listeners[port]),
		     "listening");
	}
}

void cm_program_relisten(struct cm_world *world, uint32_t process)
{
	struct cm_process *self = &world->processes[process];

	if (!self->cm)
		return;
	for (uint32_t port = 0; port < CM_PORTS; port++) {
		if (self->listeners[port])
			vb_cm_listener_destroy(self->listeners[port], world->now_ns);
		self->listeners[port] = NULL;
	}
	cm_program_listen(world, process);
}

static void ask(struct cm_world *world, struct cm_end *end, uint64_t service, uint32_t host)
{
	struct vb_flow flow = { .source = cm_address(world->processes[end->process].host),
				.destination = cm_address(host),
				.hop_limit = 64 };
	struct vb_service_ip ip = { .source_port = 1,
				    .source = flow.source,
				    .destination = flow.destination };
	uint8_t response_timeout = (uint8_t)vb_dice_between(&world->prng, 16, 20);
	uint8_t retries_max = (uint8_t)vb_dice_between(&world->prng, RETRIES_MIN, 15);
	uint8_t data[4];
	struct vb_cm_request request = {
		.service = service,
		.ip = &ip,
		.flow = flow,
		.qpn = end->qpn,
		.starting_psn = end->psn,
		.packet_life_time = (uint8_t)vb_dice_between(&world->prng, 12, 16),
		.response_timeout = response_timeout,
		.retries_max = retries_max,
		.private_data = { data, sizeof(data) },
	};
	struct vb_cm_resolution resolution = {
		.service = service,
		.ip = &ip,
		.flow = flow,
		.response_timeout = response_timeout,
		.retries_max = retries_max,
		.private_data = { data, sizeof(data) },
	};

	store32(data, end->attempt);
	must(world,
	     end->is_sidr ? vb_cm_resolve(end->connection, &resolution, world->now_ns)
			  : vb_cm_connect(end->connection, &request, world->now_ns),
	     "connecting");
}

void cm_program_connect(struct cm_world *world, uint32_t attempt)
{
	uint32_t process = (uint32_t)vb_prng_below(&world->prng, world->process_count);
	uint32_t host = (uint32_t)vb_prng_below(&world->prng, world->host_count);
	uint32_t port = (uint32_t)vb_prng_below(&world->prng, CM_PORTS);
	struct cm_end *end;

	world->client_ends[attempt] = END_NONE;
	if (!world->processes[process].cm)
		return;
	end = add_end(world, process, attempt);
	world->client_ends[attempt] = index_of(world, end);
	end->phase = CM_ASKING;
	end->host = host;
	end->port = port;
	end->asked_ns = world->now_ns;
	end->is_sidr = vb_dice_chance(&world->prng, 1, 6);
	must(world,
	     vb_cm_connection_create(world->processes[process].cm, owner_of(world, end),
				     &end->connection),
	     "a connection");
	ask(world, end, vb_service_id(VB_SERVICE_SPACE_TCP, (uint16_t)(PORT_FIRST + port)), host);
	if (vb_dice_chance(&world->prng, 1, 10))
		plan_decision(world, end, vb_prng_below(&world->prng, 5 * SECOND));
}

/* --- events ----------------------------------------------------------------------------------- */

static void be_over(struct cm_world *world, struct cm_end *end)
{
	end->phase = CM_OVER;
	plan_decision(world, end, vb_prng_below(&world->prng, 3 * SECOND));
}

static void on_request(struct cm_world *world, uint32_t process, const struct vb_cm_event *event)
{
	uint32_t attempt = load32(event->message.private_data);
	bool is_sidr = event->kind == VB_CM_SIDR_REQUEST;
	struct cm_end *client, *end;

	if (attempt >= world->attempt_count || world->client_ends[attempt] == END_NONE) {
		cm_violate(world, "a request of nobody");
		return;
	}
	client = &world->ends[world->client_ends[attempt]];
	end = add_end(world, process, attempt);
	end->phase = CM_ASKED;
	end->is_server = true;
	end->is_sidr = is_sidr;
	end->connection = event->connection;
	end->peer_qpn = client->qpn;
	vb_cm_connection_set_owner(end->connection, owner_of(world, end));
	cm_note(world, "end %u of process %u: REQUEST of end %u", index_of(world, end), process,
		index_of(world, client));
	if (client->is_sidr != is_sidr)
		cm_violate(world, "a request of another kind than was sent");
	if (!is_sidr && (event->message.req.qpn.v != client->qpn.v ||
			 event->message.req.starting_psn.v != client->psn.v))
		cm_violate(world, "a request with another QP than was sent");
	plan_decision(world, end, hesitation(world));
}

/* The client's end hears what the server's end said. */
static struct cm_end *answering_end(struct cm_world *world, const struct cm_end *end,
				    const struct vb_cm_event *event)
{
	uint32_t index = load32(event->message.private_data);
	struct cm_end *server;

	if (index >= world->end_count) {
		cm_violate(world, "an answer of nobody");
		return NULL;
	}
	server = &world->ends[index];
	if (!server->is_server || server->attempt != end->attempt) {
		cm_violate(world, "an answer to another attempt");
		return NULL;
	}
	return server;
}

static void on_response(struct cm_world *world, struct cm_end *end, const struct vb_cm_event *event)
{
	struct cm_end *server = answering_end(world, end, event);
	struct vb_cm_qp qp;

	if (!server)
		return;
	vb_cm_connection_qp(end->connection, &qp);
	if (qp.remote_qpn.v != server->qpn.v || qp.send_psn.v != server->psn.v ||
	    qp.receive_psn.v != end->psn.v)
		cm_violate(world, "an answer with another QP than was sent");
	end->peer_qpn = server->qpn;
	end->peer_end = index_of(world, server);
	end->phase = CM_OFFERED;
	plan_decision(world, end, hesitation(world));
}

static void be_up(struct cm_world *world, struct cm_end *end)
{
	end->phase = CM_UP;
	end->was_up = true;
	if (vb_dice_chance(&world->prng, 2, 3))
		plan_decision(world, end, vb_prng_below(&world->prng, 20 * SECOND));
}

static void on_established(struct cm_world *world, struct cm_end *end)
{
	const struct cm_end *client = &world->ends[world->client_ends[end->attempt]];

	if (!client->was_up || client->peer_end != index_of(world, end))
		cm_violate(world, "established without the client");
	be_up(world, end);
}

static void on_sidr_response(struct cm_world *world, struct cm_end *end,
			     const struct vb_cm_event *event)
{
	struct cm_end *server;

	be_over(world, end);
	if (event->message.sidr_rep.status != VB_MAD_SIDR_VALID)
		return;
	server = answering_end(world, end, event);
	if (server && server->qpn.v != event->message.sidr_rep.qpn.v)
		cm_violate(world, "resolved to another QP than was sent");
}

/*
 * True if so little has gone wrong that every attempt must come to a decision of the programs. One
 * of the tries may be spent without a loss: the MRA of a slow program answers only the second one.
 */
static bool is_bearable(const struct cm_world *world)
{
	return world->lost_count < RETRIES_MIN && !world->death_count;
}

static void on_unreachable(struct cm_world *world, struct cm_end *end)
{
	uint64_t over_backlog = 0;

	for (uint32_t i = 0; i < world->process_count; i++)
		if (world->processes[i].cm)
			over_backlog += vb_cm_counters(world->processes[i].cm)->over_backlog;
	/* A SIDR_REQ has no MRA: the retries run out when the program is slow. */
	if (is_bearable(world) && !over_backlog && !end->is_sidr)
		cm_violate(world, "unreachable with %u losses", world->lost_count);
	be_over(world, end);
}

/* "No such service" must not come from a process that did not ask the listening one. */
static void on_rejected(struct cm_world *world, struct cm_end *end, uint16_t reason)
{
	world->coverage->stale += reason == VB_MAD_STALE_CONNECTION;
	if (reason == VB_MAD_STALE_CONNECTION && is_bearable(world))
		cm_violate(world, "stale although nobody was started anew");
	for (uint32_t i = end->host; i < world->process_count; i += world->host_count) {
		const struct cm_process *process = &world->processes[i];

		if (reason == VB_MAD_INVALID_SERVICE_ID && process->listeners[end->port] &&
		    process->listening_ns[end->port] < end->asked_ns)
			cm_violate(world, "rejected although process %u listens", i);
	}
	be_over(world, end);
}

static void on_disconnected(struct cm_world *world, struct cm_end *end)
{
	if (end->phase == CM_CLOSING) {
		end->timewait_ns = world->now_ns;
		be_over(world, end);
		return;
	}
	end->phase = CM_LEFT;
	plan_decision(world, end, hesitation(world));
}

static void on_timewait_exit(struct cm_world *world, struct cm_end *end)
{
	struct vb_cm_qp qp;

	vb_cm_connection_qp(end->connection, &qp);
	if (end->phase != CM_OVER && end->phase != CM_LEFT)
		cm_violate(world, "TIMEWAIT is over for an end in phase %d", (int)end->phase);
	if (end->was_exited)
		cm_violate(world, "TIMEWAIT is over twice");
	if (end->timewait_ns &&
	    world->now_ns - end->timewait_ns < vb_mad_timeout_ns(qp.ack_timeout))
		cm_violate(world, "TIMEWAIT is over too early");
	end->was_exited = true;
}

/* Which events may reach a program in this phase. */
static bool is_expected(const struct cm_end *end, enum vb_cm_event_kind kind)
{
	switch (kind) {
	case VB_CM_REQUEST:
	case VB_CM_SIDR_REQUEST:
		return false; /* these belong to new ends */
	case VB_CM_RESPONSE:
		return end->phase == CM_ASKING && !end->is_sidr;
	case VB_CM_SIDR_RESPONSE:
		return end->phase == CM_ASKING && end->is_sidr;
	case VB_CM_ESTABLISHED:
		return end->phase == CM_ANSWERED;
	case VB_CM_UNREACHABLE:
		return end->phase == CM_ASKING || end->phase == CM_ANSWERED;
	case VB_CM_REJECTED:
		return end->phase <= CM_UP && !end->is_sidr;
	case VB_CM_DISCONNECTED:
		return end->phase == CM_ANSWERED || end->phase == CM_UP || end->phase == CM_CLOSING;
	case VB_CM_TIMEWAIT_EXIT:
		return true;
	}
	return false;
}

void cm_program_on_event(struct cm_world *world, uint32_t process, const struct vb_cm_event *event)
{
	struct cm_end *end;

	if (event->kind == VB_CM_REQUEST || event->kind == VB_CM_SIDR_REQUEST) {
		on_request(world, process, event);
		return;
	}
	end = &world->ends[(uintptr_t)event->owner - 1];
	if (end->connection != event->connection || !is_expected(end, event->kind)) {
		cm_violate(world, "%s for an end in phase %d", vb_cm_event_describe(event->kind),
			   (int)end->phase);
		return;
	}
	cm_note(world, "end %u of process %u: %s", index_of(world, end), process,
		vb_cm_event_describe(event->kind));
	switch (event->kind) {
	case VB_CM_REQUEST:
	case VB_CM_SIDR_REQUEST:
		break;
	case VB_CM_RESPONSE:
		on_response(world, end, event);
		break;
	case VB_CM_SIDR_RESPONSE:
		on_sidr_response(world, end, event);
		break;
	case VB_CM_ESTABLISHED:
		on_established(world, end);
		break;
	case VB_CM_REJECTED:
		on_rejected(world, end, event->message.rej.reason);
		break;
	case VB_CM_UNREACHABLE:
		on_unreachable(world, end);
		break;
	case VB_CM_DISCONNECTED:
		on_disconnected(world, end);
		break;
	case VB_CM_TIMEWAIT_EXIT:
		on_timewait_exit(world, end);
		break;
	}
}

/* --- decisions -------------------------------------------------------------------------------- */

static void desert(struct cm_world *world, struct cm_end *end)
{
	end->is_deserted = !end->was_up;
	end->phase = CM_OVER;
	vb_cm_connection_destroy(end->connection, world->now_ns);
	end->connection = NULL;
}

static void reject(struct cm_world *world, struct cm_end *end)
{
	struct vb_cm_rejection rejection = { .reason = VB_MAD_CONSUMER_DEFINED };

	end->is_deserted = true;
	must(world, vb_cm_reject(end->connection, &rejection, world->now_ns), "rejecting");
	be_over(world, end);
}

static void accept_request(struct cm_world *world, struct cm_end *end)
{
	uint8_t data[4];
	struct vb_cm_reply reply = { .qpn = end->qpn,
				     .starting_psn = end->psn,
				     .private_data = { data, sizeof(data) } };

	store32(data, index_of(world, end));
	must(world, vb_cm_accept(end->connection, &reply, world->now_ns), "accepting");
	end->phase = CM_ANSWERED;
	if (vb_dice_chance(&world->prng, 1, 10))
		plan_decision(world, end, hesitation(world));
}

static void answer(struct cm_world *world, struct cm_end *end)
{
	uint8_t data[4];
	struct vb_cm_sidr sidr = { .qpn = end->qpn, .private_data = { data, sizeof(data) } };

	store32(data, index_of(world, end));
	if (vb_dice_chance(&world->prng, 1, 4))
		sidr.status = VB_MAD_SIDR_NO_QP;
	must(world, vb_cm_answer(end->connection, &sidr, world->now_ns), "answering");
	be_over(world, end);
}

static void decide_request(struct cm_world *world, struct cm_end *end)
{
	uint64_t dice = vb_prng_below(&world->prng, 20);

	if (dice == 0)
		desert(world, end);
	else if (end->is_sidr)
		answer(world, end);
	else if (dice < 3)
		reject(world, end);
	else
		accept_request(world, end);
}

static void decide_answer(struct cm_world *world, struct cm_end *end)
{
	uint64_t dice = vb_prng_below(&world->prng, 20);

	if (dice == 0) {
		desert(world, end);
	} else if (dice == 1) {
		reject(world, end);
	} else {
		must(world, vb_cm_establish(end->connection, NULL, world->now_ns), "establishing");
		be_up(world, end);
		if (vb_dice_chance(&world->prng, 1, 2))
			cm_plan(world, vb_prng_below(&world->prng, MS), CM_ITEM_DATA, end->peer_end,
				NULL);
	}
}

static void hang_up(struct cm_world *world, struct cm_end *end)
{
	/* The machine may have ended a stale connection itself; then the event is on its way. */
	if (vb_cm_disconnect(end->connection, NULL, world->now_ns) == VB_OK ||
	    vb_cm_connection_state(end->connection) == VB_CM_DREQ_SENT)
		end->phase = CM_CLOSING;
	else if (vb_cm_connection_state(end->connection) != VB_CM_TIMEWAIT)
		cm_violate(world, "disconnecting was refused in state %s",
			   vb_cm_state_describe(vb_cm_connection_state(end->connection)));
}

static void decide_left(struct cm_world *world, struct cm_end *end)
{
	if (vb_dice_chance(&world->prng, 1, 2)) {
		desert(world, end);
		return;
	}
	if (vb_cm_disconnect(end->connection, NULL, world->now_ns) == VB_OK)
		end->timewait_ns = world->now_ns;
	be_over(world, end);
}

void cm_program_decide(struct cm_world *world, uint32_t index, uint32_t turn)
{
	struct cm_end *end = &world->ends[index];

	if (end->turn != turn || !is_alive(world, end) || !end->connection)
		return;
	cm_note(world, "end %u of process %u decides in phase %d", index, end->process,
		(int)end->phase);
	switch (end->phase) {
	case CM_ASKED:
		decide_request(world, end);
		break;
	case CM_OFFERED:
		decide_answer(world, end);
		break;
	case CM_UP:
		if (!world->is_finishing && vb_dice_chance(&world->prng, 1, 2))
			desert(world, end);
		else
			hang_up(world, end);
		break;
	case CM_LEFT:
		decide_left(world, end);
		break;
	case CM_ASKING:
	case CM_ANSWERED:
	case CM_OVER:
		desert(world, end);
		break;
	case CM_CLOSING:
		break;
	}
}

void cm_program_on_data(struct cm_world *world, uint32_t index)
{
	struct cm_end *end = &world->ends[index];

	if (is_alive(world, end) && end->connection)
		vb_cm_on_communication(end->connection, world->now_ns);
}

void cm_program_finish(struct cm_world *world)
{
	for (uint32_t i = 0; i < world->end_count; i++)
		if (world->ends[i].phase == CM_UP && is_alive(world, &world->ends[i]))
			plan_decision(world, &world->ends[i], vb_prng_below(&world->prng, SECOND));
}

void cm_program_on_death(struct cm_world *world, uint32_t process, bool is_mourned)
{
	for (uint32_t i = 0; i < world->end_count; i++) {
		struct cm_end *end = &world->ends[i];

		if (end->process == process && end->life == world->processes[process].lives) {
			end->phase = CM_OVER;
			end->connection = NULL;
			end->is_mourned = is_mourned;
		}
	}
}

/* --- the model -------------------------------------------------------------------------------- */

/*
 * Why an end may believe in a connection whose other end is not up. Two generals cannot agree over
 * a network that loses everything; but with fewer losses than retries they must. Last messages are
 * sent only once.
 */
static bool is_excused(const struct cm_world *world, const struct cm_end *other)
{
	if (world->lost_count > RETRIES_MIN)
		return true;
	if (!is_alive(world, other))
		return world->lost_count > 0 || !other->is_mourned;
	return other->is_deserted && world->lost_count >= 2;
}

static void check_client(struct cm_world *world, const struct cm_end *client)
{
	const struct cm_end *server = &world->ends[client->peer_end];

	if (is_alive(world, server) && server->phase == CM_UP) {
		if (server->peer_qpn.v != client->qpn.v || client->peer_qpn.v != server->qpn.v)
			cm_violate(world, "both are up with different QPs");
		world->coverage->pairs++;
	} else if (!is_excused(world, server)) {
		cm_violate(world, "a client is up alone; its server's phase is %d",
			   (int)server->phase);
	}
}

static void check_server(struct cm_world *world, const struct cm_end *server)
{
	const struct cm_end *client = &world->ends[world->client_ends[server->attempt]];

	if (is_alive(world, client) && client->phase == CM_UP &&
	    client->peer_end == index_of(world, server))
		return;
	if (!is_excused(world, client))
		cm_violate(world, "a server is up alone; its client's phase is %d",
			   (int)client->phase);
}

void cm_program_check_rest(struct cm_world *world)
{
	for (uint32_t i = 0; i < world->end_count && !*world->violation; i++) {
		const struct cm_end *end = &world->ends[i];

		if (!is_alive(world, end) || end->phase == CM_OVER)
			continue;
		if (end->phase != CM_UP)
			cm_violate(world, "an end never learned more in phase %d", (int)end->phase);
		else if (end->is_server)
			check_server(world, end);
		else
			check_client(world, end);
	}
}

void cm_program_check_end(struct cm_world *world)
{
	for (uint32_t i = 0; i < world->end_count && !*world->violation; i++) {
		const struct cm_end *end = &world->ends[i];

		if (is_alive(world, end) && (end->phase != CM_OVER || end->connection))
			cm_violate(world, "an end never learned of its end in phase %d",
				   (int)end->phase);
	}
}
