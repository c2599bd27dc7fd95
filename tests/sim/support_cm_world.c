/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts, processes, the network between them, and time. See support_cm_world.h. */
#include "support_cm_world.h"

#include "sim/dice.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ull
#define SECOND 1000000000ull
#define FAULT_NS (60 * SECOND)
#define STEPS_MAX 300000
#define MADS_MAX 20000 /* of a world: there are no storms */
#define PREFIX_BITS 8
#define LATENCY_NS (50 * 1000)
#define DELAY_MAX_NS (20 * MS) /* less than any retry interval */

struct packet {
	struct vb_flow flow;
	uint8_t bytes[VB_MAD_SIZE];
};

void cm_violate(struct cm_world *world, const char *format, ...)
{
	va_list args;

	if (*world->violation)
		return;
	va_start(args, format);
	vsnprintf(world->violation, sizeof(world->violation), format, args);
	va_end(args);
}

void cm_note(struct cm_world *world, const char *format, ...)
{
	va_list args;

	if (!world->trace)
		return;
	fprintf(world->trace, "%12.6f  ", (double)world->now_ns / 1e9);
	va_start(args, format);
	vfprintf(world->trace, format, args);
	va_end(args);
	fputc('\n', world->trace);
}

static void note_mad(struct cm_world *world, const char *fate, const uint8_t *bytes)
{
	struct vb_mad mad;
	char text[160];

	if (!world->trace || vb_mad_parse(bytes, VB_MAD_SIZE, &mad) != VB_MAD_PARSED)
		return;
	vb_mad_describe(&mad, text, sizeof(text));
	cm_note(world, "%s %s", fate, text);
}

void cm_plan(struct cm_world *world, uint64_t delay_ns, enum cm_item kind, uint32_t index,
	     void *object)
{
	vb_agenda_add(&world->agenda, world->now_ns + delay_ns, kind, index, object);
}

struct vb_gid cm_address(uint32_t host)
{
	return vb_gid_from_ipv4(0x0a000001 + host);
}

static void mix(struct cm_world *world, uint64_t value)
{
	world->hash = (world->hash ^ value) * 0x100000001b3;
}

/* --- the network ------------------------------------------------------------------------------ */

static uint64_t latency(struct cm_world *world)
{
	uint64_t ns = LATENCY_NS + vb_prng_below(&world->prng, LATENCY_NS);

	if (world->now_ns < world->fault_end_ns &&
	    vb_dice_chance(&world->prng, world->delay, 1000)) {
		world->coverage->delayed++;
		ns += vb_prng_below(&world->prng, DELAY_MAX_NS);
	}
	return ns;
}

static void put_on_wire(struct cm_world *world, const struct vb_cm_mad *mad, uint32_t host)
{
	struct packet *packet = calloc(1, sizeof(*packet));

	packet->flow = mad->flow;
	memcpy(packet->bytes, mad->bytes, VB_MAD_SIZE);
	cm_plan(world, latency(world), CM_ITEM_PACKET, host, packet);
}

static bool is_lost(struct cm_world *world)
{
	if (world->now_ns >= world->fault_end_ns || !world->loss_budget ||
	    !vb_dice_chance(&world->prng, world->loss, 1000))
		return false;
	world->loss_budget--;
	world->lost_count++;
	world->coverage->lost++;
	return true;
}

static void send_mad(struct cm_world *world, const struct vb_cm_mad *mad)
{
	uint32_t host = 0;

	for (uint32_t i = 0; i < VB_MAD_SIZE; i++)
		mix(world, mad->bytes[i]);
	world->coverage->sent[mad->bytes[17] - VB_MAD_REQ]++;
	if (++world->mad_count > MADS_MAX)
		cm_violate(world, "a storm of %u messages", world->mad_count);
	while (host < world->host_count) {
		struct vb_gid address = cm_address(host);

		if (vb_gid_equal(&address, &mad->flow.destination))
			break;
		host++;
	}
	if (host == world->host_count) {
		cm_violate(world, "a message to an address that nobody has");
		return;
	}
	if (is_lost(world)) {
		note_mad(world, "LOST", mad->bytes);
		return;
	}
	note_mad(world, "sent", mad->bytes);
	put_on_wire(world, mad, host);
	if (world->now_ns < world->fault_end_ns &&
	    vb_dice_chance(&world->prng, world->doubling, 1000)) {
		world->coverage->doubled++;
		put_on_wire(world, mad, host);
	}
}

/* Takes all messages and events of the machine. */
static void drive(struct cm_world *world, uint32_t index)
{
	struct cm_process *process = &world->processes[index];
	struct vb_cm_event event;
	struct vb_cm_mad mad;
	uint64_t deadline_ns;

	if (!process->cm)
		return;
	while (vb_cm_take_event(process->cm, &event)) {
		world->coverage->events[event.kind]++;
		mix(world, event.kind);
		cm_program_on_event(world, index, &event);
	}
	while (vb_cm_take_mad(process->cm, &mad))
		send_mad(world, &mad);
	deadline_ns = vb_cm_deadline(process->cm);
	if (deadline_ns < process->wake_ns) {
		process->wake_ns = deadline_ns;
		vb_agenda_add(&world->agenda, deadline_ns, CM_ITEM_WAKE, index, NULL);
	}
}

static void drive_all(struct cm_world *world)
{
	for (uint32_t i = 0; i < world->process_count; i++)
		drive(world, i);
}

static enum vb_cm_verdict hand_to(struct cm_world *world, uint32_t process,
				  const struct packet *packet)
{
	struct vb_cm_addressee addressee;

	if (!world->processes[process].cm)
		return VB_CM_NOT_MINE;
	return vb_cm_receive(world->processes[process].cm, &packet->flow, VB_MAD_QPN, packet->bytes,
			     VB_MAD_SIZE, world->now_ns, &addressee);
}

/* A packet comes to some process of the host. A process that does not own it asks the others. */
static void arrive(struct cm_world *world, uint32_t host, struct packet *packet)
{
	uint32_t per_host = world->process_count / world->host_count;
	uint32_t first = (uint32_t)vb_prng_below(&world->prng, per_host);
	struct vb_cm *living = NULL;

	note_mad(world, "came", packet->bytes);
	for (uint32_t i = 0; i < per_host; i++) {
		uint32_t process = host + (first + i) % per_host * world->host_count;
		enum vb_cm_verdict verdict = hand_to(world, process, packet);

		if (verdict == VB_CM_MALFORMED)
			cm_violate(world, "a malformed message");
		if (verdict != VB_CM_NOT_MINE)
			goto done;
		if (world->processes[process].cm)
			living = world->processes[process].cm;
	}
	if (living) {
		world->coverage->nobodys++;
		vb_cm_refuse(living, &packet->flow, VB_MAD_QPN, packet->bytes, VB_MAD_SIZE);
	}
done:
	free(packet);
}

/* --- processes -------------------------------------------------------------------------------- */

static void give_birth(struct cm_world *world, uint32_t index)
{
	struct cm_process *process = &world->processes[index];
	struct vb_cm_config config = {
		.seed = world->seed * 1000 + index * 10 + process->lives,
		.ca_guid = 0x1000 + process->host,
		.id_prefix = index + 1,
		.id_prefix_bits = PREFIX_BITS,
		.ack_delay = 15,
		.connection_max = CM_CONNECTIONS_MAX,
		.listener_max = CM_PORTS,
		.rows = process->rows,
	};

	if (process->cm)
		return;
	memset(process->rows, 0, sizeof(process->rows));
	process->lives++;
	cm_note(world, "process %u is born", index);
	/* the same again in the next life: stale connections */
	process->next_qpn = (index + 1) << 16;
	process->wake_ns = UINT64_MAX;
	if (vb_cm_create(&config, &process->cm) != VB_OK)
		abort();
	cm_program_listen(world, index);
}

/* A process of the same host notifies the peers; false if there is none. */
static bool say_farewells(struct cm_world *world, uint32_t dead)
{
	for (uint32_t i = 0; i < world->process_count; i++) {
		struct cm_process *process = &world->processes[i];

		if (!process->cm || process->host != world->processes[dead].host)
			continue;
		for (uint32_t row = 0; row < CM_CONNECTIONS_MAX; row++) {
			world->coverage->farewells += world->processes[dead].rows[row].state !=
						      VB_CM_IDLE;
			vb_cm_send_farewell(process->cm, &world->processes[dead].rows[row]);
		}
		return true;
	}
	return false;
}

static void kill_process(struct cm_world *world, uint32_t index)
{
	struct cm_process *process = &world->processes[index];

	if (!process->cm)
		return;
	world->death_count++;
	cm_note(world, "process %u dies", index);
	vb_cm_destroy(process->cm);
	process->cm = NULL;
	memset(process->listeners, 0, sizeof(process->listeners));
	cm_program_on_death(world, index, say_farewells(world, index));
}

static void wake(struct cm_world *world, uint32_t index)
{
	struct cm_process *process = &world->processes[index];

	if (!process->cm || world->now_ns < process->wake_ns)
		return;
	process->wake_ns = UINT64_MAX;
	vb_cm_fire_timers(process->cm, world->now_ns);
	if (vb_cm_deadline(process->cm) <= world->now_ns)
		cm_violate(world, "a deadline that does not pass");
}

/* --- a life ----------------------------------------------------------------------------------- */

static void happen(struct cm_world *world, const struct vb_agenda_item *item)
{
	switch ((enum cm_item)item->kind) {
	case CM_ITEM_PACKET:
		arrive(world, item->index, item->object);
		break;
	case CM_ITEM_WAKE:
		wake(world, item->index);
		break;
	case CM_ITEM_CONNECT:
		cm_program_connect(world, item->index);
		break;
	case CM_ITEM_DECIDE:
		cm_program_decide(world, item->index, (uint32_t)(uintptr_t)item->object);
		break;
	case CM_ITEM_DATA:
		cm_program_on_data(world, item->index);
		break;
	case CM_ITEM_DEATH:
		kill_process(world, item->index);
		break;
	case CM_ITEM_BIRTH:
		give_birth(world, item->index);
		break;
	case CM_ITEM_RELISTEN:
		cm_program_relisten(world, item->index);
		break;
	}
}

static void run_until_rest(struct cm_world *world)
{
	struct vb_agenda_item item;
	uint32_t steps = 0;

	drive_all(world);
	while (!*world->violation && vb_agenda_take(&world->agenda, &item)) {
		world->now_ns = item.time_ns;
		mix(world, item.time_ns);
		happen(world, &item);
		drive_all(world);
		if (++steps > STEPS_MAX)
			cm_violate(world, "no rest after %u steps", steps);
	}
}

static void draw_faults(struct cm_world *world)
{
	struct vb_prng *prng = &world->prng;
	uint64_t death_ns;

	world->mood = (enum cm_mood)vb_prng_below(prng, 4);
	if (world->mood == CM_CALM)
		return;
	world->fault_end_ns = FAULT_NS;
	world->doubling = (uint32_t)vb_prng_below(prng, 200);
	world->delay = (uint32_t)vb_prng_below(prng, 300);
	world->loss = 20 + (uint32_t)vb_prng_below(prng, 300);
	world->loss_budget = world->mood == CM_MILD ? (uint32_t)vb_prng_below(prng, 4) : 10000;
	if (world->mood != CM_DEADLY)
		return;
	/* from now on every last message arrives */
	if (vb_dice_chance(prng, 1, 2))
		world->loss_budget = 0;
	for (uint32_t i = 0; i < world->process_count; i++) {
		if (!vb_dice_chance(prng, 1, 3))
			continue;
		death_ns = vb_prng_below(prng, 20 * SECOND);
		cm_plan(world, death_ns, CM_ITEM_DEATH, i, NULL);
		if (vb_dice_chance(prng, 1, 2))
			cm_plan(world, death_ns + vb_prng_below(prng, 5 * SECOND), CM_ITEM_BIRTH, i,
				NULL);
	}
}

static void populate(struct cm_world *world)
{
	struct vb_prng *prng = &world->prng;
	uint32_t per_host = 1 + (uint32_t)vb_prng_below(prng, CM_PROCESSES_MAX);

	world->host_count = 1 + (uint32_t)vb_prng_below(prng, CM_HOSTS_MAX);
	world->process_count = world->host_count * per_host;
	for (uint32_t i = 0; i < world->process_count; i++) {
		world->processes[i].host = i % world->host_count;
		give_birth(world, i);
		if (vb_dice_chance(prng, 1, 4))
			cm_plan(world, vb_prng_below(prng, 20 * SECOND), CM_ITEM_RELISTEN, i, NULL);
	}
	world->attempt_count = 1 + (uint32_t)vb_prng_below(prng, CM_ATTEMPTS_MAX);
	for (uint32_t i = 0; i < world->attempt_count; i++)
		cm_plan(world, vb_prng_below(prng, 30 * SECOND), CM_ITEM_CONNECT, i, NULL);
}

/* Each machine has freed everything: it has room for as many connections as at first. */
static void check_empty(struct cm_world *world, struct cm_process *process)
{
	struct vb_cm_connection *connection;

	if (vb_cm_deadline(process->cm) != UINT64_MAX)
		cm_violate(world, "a deadline without connections");
	for (uint32_t i = 0; i < CM_CONNECTIONS_MAX; i++) {
		if (process->rows[i].state != VB_CM_IDLE)
			cm_violate(world, "a row of a connection that is over");
		if (vb_cm_connection_create(process->cm, NULL, &connection) != VB_OK)
			cm_violate(world, "only %u of %u connections are free at the end", i,
				   CM_CONNECTIONS_MAX);
	}
}

static void bury(struct cm_world *world)
{
	struct vb_agenda_item item;

	for (uint32_t i = 0; i < world->process_count; i++)
		if (world->processes[i].cm)
			vb_cm_destroy(world->processes[i].cm);
	while (vb_agenda_take(&world->agenda, &item))
		if (item.kind == CM_ITEM_PACKET)
			free(item.object);
	vb_agenda_fini(&world->agenda);
}

bool cm_world_run(struct cm_world *world, uint64_t seed, struct cm_coverage *coverage, FILE *trace)
{
	memset(world, 0, sizeof(*world));
	world->seed = seed;
	world->coverage = coverage;
	world->trace = trace;
	world->hash = 0xcbf29ce484222325;
	vb_prng_init(&world->prng, seed);
	populate(world);
	draw_faults(world);
	run_until_rest(world);
	/* Programs that wait for longer than the faults last start late. */
	if (world->now_ns < world->fault_end_ns)
		world->now_ns = world->fault_end_ns;
	cm_program_check_rest(world);
	world->is_finishing = true;
	cm_program_finish(world);
	run_until_rest(world);
	cm_program_check_end(world);
	for (uint32_t i = 0; i < world->process_count && !*world->violation; i++)
		if (world->processes[i].cm)
			check_empty(world, &world->processes[i]);
	bury(world);
	return !*world->violation;
}
