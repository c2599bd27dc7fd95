/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The clockwork: the next event, and its effect on a machine. A machine's turn is always the same:
 * let timers fire or take in a packet, transmit, take events, poll.
 */
#include "sim/world.h"

#include "base/err.h"
#include "sim/dice.h"
#include "sim/workload.h"

#define SLOTS 64
#define FRAMES_MAX 8
#define STEPS_HERE_MAX 200000u

const char *vb_world_violation(const struct vb_world *world)
{
	return world->model.violation;
}

void vb_world_note(struct vb_world *world, uint32_t node, enum vb_trace_action action, uint64_t a,
		   uint64_t b)
{
	const uint64_t values[5] = { action, a, b };

	vb_trace_note(&world->trace, world->now_ns, VB_TRACE_ACTION, node, values);
}

/* --- making --- */

static struct vb_node *make_node(struct vb_world *world, uint32_t index, uint32_t generation)
{
	const struct vb_world_options *options = &world->options;
	struct vb_node_options node = {
		.index = index,
		.generation = generation,
		.seed = options->seed * 1000003 + index * 16 + generation,
		.memory_length = options->memory_length,
		.icrc_mode = options->icrc_mode,
		.batch_segments_max = options->batch_segments_max,
		.window_packets_max = options->window_packets_max,
		.window_bytes_max = options->window_bytes_max,
		.flight_bytes_max = options->flight_bytes_max,
		.train_length_min = options->train_length_min,
		.train_length_max = options->train_length_max,
		.train_sample_bytes = options->train_sample_bytes,
		.has_strange_iovas = options->has_strange_iovas,
	};

	return vb_node_create(&node);
}

static void make_counters(struct vb_world *world, struct vb_node *node)
{
	const struct vb_node_region *region = &node->regions[VB_REGION_FULL];

	for (uint32_t i = 0; i < VB_WORLD_COUNTERS; i++) {
		uint64_t address = vb_arena_allocate(node->arena, region->address,
						     region->address + region->length, 8, 8);

		world->counters[node->index][i] =
			vb_model_add_counter(&world->model, node->arena, address, i);
	}
	world->swap_seen[node->index] =
		world->model.counters[world->counters[node->index][1]].initial;
}

static void add_node(struct vb_world *world, uint32_t index, uint32_t generation)
{
	world->nodes[index] = make_node(world, index, generation);
	if (world->shm_links.depth)
		vb_shm_links_publish(world, world->nodes[index]);
	make_counters(world, world->nodes[index]);
}

struct vb_world *vb_world_create_bare(const struct vb_world_options *options)
{
	struct vb_world *world = calloc(1, sizeof(*world));

	VB_CHECK(world);
	world->options = *options;
	world->slots = calloc(SLOTS, sizeof(*world->slots));
	VB_CHECK(world->slots);
	vb_prng_init(&world->prng, options->seed);
	vb_trace_init(&world->trace);
	vb_model_init(&world->model);
	world->fabric = (struct vb_fabric){
		.agenda = &world->agenda,
		.trace = &world->trace,
		.agenda_kind = VB_ITEM_PACKET,
		.node_count = options->node_count,
		.latency_ns = options->latency_ns,
		.picoseconds_per_byte = options->picoseconds_per_byte,
	};
	vb_fault_init(&world->fabric.faults);
	vb_shm_links_init(world);
	vb_prng_init(&world->fabric.prng, options->seed ^ 0xfab1c);
	for (uint32_t i = 0; i < options->node_count; i++) {
		add_node(world, i, 0);
		memcpy(world->fabric.gids[i], world->nodes[i]->gids, sizeof(world->nodes[i]->gids));
	}
	return world;
}

struct vb_world *vb_world_create(uint64_t seed)
{
	struct vb_world_options options = vb_workload_draw(seed);
	struct vb_world *world = vb_world_create_bare(&options);

	world->has_workload = true;
	vb_workload_begin(world);
	return world;
}

void vb_world_destroy(struct vb_world *world)
{
	struct vb_agenda_item item;

	while (vb_agenda_take(&world->agenda, &item))
		free(item.object);
	vb_agenda_fini(&world->agenda);
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		if (world->nodes[i]->nic)
			vb_node_stop(world->nodes[i]);
		vb_node_destroy(world->nodes[i]);
	}
	for (uint32_t i = 0; i < world->retired_count; i++)
		vb_node_destroy(world->retired[i]);
	for (uint32_t i = 0; i < world->channel_count; i++)
		free(world->channels[i]);
	vb_model_fini(&world->model);
	vb_trace_fini(&world->trace);
	free(world->slots);
	free(world);
}

/* --- a machine's turn --- */

void vb_world_plan_drive(struct vb_world *world, uint32_t node, uint64_t delay_ns)
{
	vb_agenda_add(&world->agenda, world->now_ns + delay_ns, VB_ITEM_PUMP, node, NULL);
}

static void send(struct vb_world *world, struct vb_node *node, const struct vb_slot *slot)
{
	if (slot->path.link)
		vb_shm_links_send(world, node, slot);
	else
		vb_fabric_send(&world->fabric, world->now_ns, node->index, slot);
}

/* Sends copies as a real machine does, after what the engine has put on shared-memory links. */
static void send_copies(struct vb_world *world, struct vb_node *node, const struct vb_slot *slot)
{
	if (!slot->path.link && vb_gid_is_multicast(&slot->path.ip.destination))
		vb_shm_links_send_copies(world, node, slot);
}

static void transmit(struct vb_world *world, struct vb_node *node)
{
	bool is_steady = world->options.is_steady;
	uint32_t count;

	do {
		uint32_t capacity = is_steady ? SLOTS
					      : (uint32_t)vb_dice_between(&world->prng, 1, SLOTS);

		count = vb_nic_transmit(node->nic, world->now_ns, world->slots, capacity);
		if (count > capacity)
			vb_model_report(&world->model, VB_MODEL_NONE,
					"transmit fills no more slots than it was given", capacity,
					count);
		for (uint32_t i = 0; i < count; i++)
			send(world, node, &world->slots[i]);
		for (uint32_t i = 0; world->shm_links.depth && i < count; i++)
			send_copies(world, node, &world->slots[i]);
		vb_shm_links_report_room(world, node);
		if (count && !is_steady && vb_dice_chance(&world->prng, 1, 20)) {
			vb_world_plan_drive(world, node->index,
					    vb_prng_below(&world->prng, 3000)); /* a full link */
			return;
		}
	} while (count && !vb_model_is_violated(&world->model));
	if (vb_nic_has_moved_enough(node->nic)) /* directly: there is more */
		vb_world_plan_drive(world, node->index, 100);
}

void vb_world_drive(struct vb_world *world, struct vb_node *node)
{
	if (node->is_dead)
		return;
	transmit(world, node);
	vb_world_take_events(world, node);
	for (uint32_t i = 0; i < node->cq_count; i++) {
		if (node->cqs[i]->mode != VB_CQ_POLLED)
			continue;
		if (world->options.is_steady)
			vb_world_poll(world, node, i, UINT32_MAX);
		else if (vb_dice_chance(&world->prng, 1, 3))
			vb_world_poll(world, node, i,
				      (uint32_t)vb_dice_between(&world->prng, 1, 16));
	}
}

/* Takes in a packet, and those that arrive with it, in one call. */
static void on_packet(struct vb_world *world, struct vb_fabric_packet *packet)
{
	struct vb_node *node = world->nodes[packet->to];
	struct vb_fabric_packet *packets[FRAMES_MAX] = { packet };
	struct vb_bytes parts[FRAMES_MAX][VB_FABRIC_PARTS_MAX];
	struct vb_frame frames[FRAMES_MAX];
	struct vb_agenda_item item;
	uint32_t count = 1, frame_count = 0;

	while (count < FRAMES_MAX &&
	       vb_agenda_next_is(&world->agenda, world->now_ns, VB_ITEM_PACKET, packet->to) &&
	       vb_agenda_take(&world->agenda, &item))
		packets[count++] = item.object;
	for (uint32_t i = 0; i < count; i++) {
		if (packets[i]->shm_link && !vb_shm_links_take(world, packets[i]))
			continue;
		frames[frame_count] = vb_fabric_frame(&world->fabric, packets[i], parts[i]);
		if (node->icrc_mode == VB_ICRC_SOLVED)
			frames[frame_count].ip_id = 0; /* a socket does not report it */
		frame_count++;
	}
	if (!node->is_dead) {
		vb_nic_receive(node->nic, world->now_ns, frames, frame_count);
		vb_world_drive(world, node);
	}
	for (uint32_t i = 0; i < count; i++)
		free(packets[i]);
}

/* --- death --- */

static void report_deaths(struct vb_world *world, struct vb_node *node)
{
	for (uint32_t i = 0; i < node->qp_count; i++) {
		if (node->qps[i])
			vb_model_on_death(&world->model, node->qps[i]->model);
	}
}

static void collect_counters(struct vb_world *world, const struct vb_node *node)
{
	const struct vb_counters *counters = vb_nic_counters(node->nic);

	for (uint32_t i = 0; i < VB_COUNTER_COUNT; i++)
		world->coverage.counts[i] += counters->counts[i];
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		world->coverage.drops[i] += counters->drops[i];
}

static void stop_node(struct vb_world *world, struct vb_node *node)
{
	collect_counters(world, node);
	vb_shm_links_withdraw(world, node);
	if (!vb_node_stop(node))
		vb_model_report(&world->model, VB_MODEL_NONE,
				"objects without users can be destroyed", 1, 0);
}

static void on_death(struct vb_world *world)
{
	struct vb_node *node = world->nodes[world->fabric.faults.death_node];

	vb_world_note(world, node->index, VB_ACTION_DIES, 0, 0);
	world->coverage.flaws[VB_FLAW_DIED]++;
	node->is_dead = true;
	world->fabric.is_dead[node->index] = true;
	vb_shm_links_withdraw(world, node);
	report_deaths(world, node);
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		vb_shm_links_report_room(world, world->nodes[i]);
		/* it waited for room at the dead machine */
		if (!world->nodes[i]->is_dead)
			vb_world_plan_drive(world, i, 0);
	}
}

/*
 * A program closed its adapter's descriptors, or a child has taken it over: the machine gets new
 * shared-memory links and publishes its rows again.
 */
static void on_break(struct vb_world *world, uint32_t index)
{
	if (world->nodes[index]->is_dead)
		return;
	vb_world_note(world, index, VB_ACTION_LOSES_SHM_LINKS, 0, 0);
	world->coverage.flaws[VB_FLAW_SHM_LINK_BROKEN]++;
	vb_shm_links_publish(world, world->nodes[index]);
	vb_shm_links_break(world, index);
}

static void on_restart(struct vb_world *world)
{
	uint32_t index = world->fabric.faults.restart_node;
	struct vb_node *node = world->nodes[index];

	vb_world_note(world, index, VB_ACTION_RESTARTS, 0, 0);
	world->coverage.flaws[VB_FLAW_RESTARTED]++;
	report_deaths(world, node);
	node->arena->is_retired = true;
	stop_node(world, node);
	world->retired[world->retired_count++] = node;
	add_node(world, index, node->generation + 1);
	if (world->shm_links.depth)
		vb_shm_links_break(world, index);
}

static void on_hostile(struct vb_world *world)
{
	world->is_hostile = true;
	for (uint32_t i = 0; i < world->model.qp_count; i++)
		vb_model_expect(&world->model, i, VB_CAUSE_HOSTILE);
}

void vb_world_check_memory(struct vb_world *world)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		uint64_t wrong;

		if (!vb_arena_check(world->nodes[i]->arena, &wrong))
			vb_model_report(
				&world->model, VB_MODEL_NONE,
				"memory that no operation may write never changes, but this address did",
				0, wrong);
	}
}

/* --- time --- */

static void on_item(struct vb_world *world, const struct vb_agenda_item *item)
{
	switch ((enum vb_world_item)item->kind) {
	case VB_ITEM_PACKET:
		on_packet(world, item->object);
		break;
	case VB_ITEM_PUMP:
		vb_world_drive(world, world->nodes[item->index]);
		break;
	case VB_ITEM_TICK:
		vb_workload_on_tick(world, item->index);
		break;
	case VB_ITEM_DEATH:
		on_death(world);
		break;
	case VB_ITEM_RESTART:
		on_restart(world);
		break;
	case VB_ITEM_BREAK:
		on_break(world, item->index);
		break;
	case VB_ITEM_SHM_LINKS_OPEN:
		vb_shm_links_open_again(world, item->index);
		break;
	case VB_ITEM_HOSTILE:
		on_hostile(world);
		break;
	case VB_ITEM_EPOCH:
		vb_workload_on_epoch(world, item->index);
		break;
	case VB_ITEM_CHECK:
		vb_world_check_memory(world);
		break;
	}
}

static struct vb_node *next_deadline(const struct vb_world *world, uint64_t *time_ns)
{
	struct vb_node *first = NULL;

	*time_ns = VB_NEVER;
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		struct vb_node *node = world->nodes[i];
		uint64_t deadline_ns = node->is_dead || !node->nic ? VB_NEVER
								   : vb_nic_deadline(node->nic);

		if (deadline_ns < *time_ns) {
			*time_ns = deadline_ns;
			first = node;
		}
	}
	return first;
}

static bool advance(struct vb_world *world, uint64_t time_ns)
{
	world->steps++;
	world->steps_here = time_ns > world->now_ns ? 0 : world->steps_here + 1;
	if (time_ns > world->now_ns)
		world->now_ns = time_ns;
	if (world->now_ns > VB_WORLD_NS_MAX || world->steps > VB_WORLD_STEPS_MAX ||
	    world->steps_here > STEPS_HERE_MAX ||
	    world->model.request_count > VB_WORLD_REQUESTS_MAX)
		vb_model_report(
			&world->model, VB_MODEL_NONE,
			"after the faults end the world comes to rest, but this one goes on", 0,
			world->steps);
	return !vb_model_is_violated(&world->model);
}

bool vb_world_step(struct vb_world *world)
{
	uint64_t timer_ns, item_ns = vb_agenda_time(&world->agenda);
	struct vb_node *node = next_deadline(world, &timer_ns);
	struct vb_agenda_item item;

	if (vb_model_is_violated(&world->model) || (timer_ns == VB_NEVER && item_ns == UINT64_MAX))
		return false;
	if (timer_ns <= item_ns) {
		if (!advance(world, timer_ns))
			return false;
		vb_nic_fire_timers(node->nic, world->now_ns);
		vb_world_drive(world, node);
	} else {
		vb_agenda_take(&world->agenda, &item);
		if (!advance(world, item.time_ns)) {
			free(item.object);
			return false;
		}
		on_item(world, &item);
	}
	return !vb_model_is_violated(&world->model);
}

/* A program that sleeps until its CQ wakes it would sleep forever. */
static void check_sleepers(struct vb_world *world)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		struct vb_node *node = world->nodes[i];

		for (uint32_t j = 0; !node->is_dead && j < node->cq_count; j++) {
			const struct vb_node_cq *cq = node->cqs[j];

			if (cq->mode == VB_CQ_AWAITED && cq->is_armed && !cq->has_overrun &&
			    vb_cq_waiting(cq->cq))
				vb_model_report(
					&world->model, VB_MODEL_NONE,
					"no wake-up is lost, but an armed CQ holds completions and raised no event",
					0, vb_cq_waiting(cq->cq));
		}
	}
}

/* Fewer receives are left than the limit, and no event was raised. */
static void check_limits(struct vb_world *world)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		struct vb_node *node = world->nodes[i];

		for (uint32_t j = 0; !node->is_dead && j < node->srq_count; j++) {
			const struct vb_node_srq *srq = node->srqs[j];

			if (srq->limit && srq->is_limit_certain && !srq->resets &&
			    world->model.srqs[srq->model].outstanding < srq->limit)
				vb_model_report(
					&world->model, VB_MODEL_NONE,
					"an SRQ reports when fewer receives are left than its limit",
					srq->limit, world->model.srqs[srq->model].outstanding);
		}
	}
}

void vb_world_run(struct vb_world *world)
{
	while (vb_world_step(world))
		continue;
	if (vb_model_is_violated(&world->model))
		return;
	check_sleepers(world);
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		if (!world->nodes[i]->is_dead)
			vb_world_poll_all(world, world->nodes[i]);
	}
	vb_model_check_rest(&world->model);
	check_limits(world);
	vb_world_check_memory(world);
}

static void end_qps(struct vb_world *world, struct vb_node *node)
{
	for (uint32_t i = 0; i < node->qp_count; i++) {
		struct vb_qp_attr attr = { .state = VB_STATE_ERR };

		if (!node->qps[i])
			continue;
		vb_model_expect(&world->model, node->qps[i]->model, VB_CAUSE_EXPLICIT);
		VB_CHECK(vb_qp_modify(node->qps[i]->qp, &attr, VB_ATTR_STATE) == VB_OK);
	}
}

static void drain(struct vb_world *world)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		struct vb_node *node = world->nodes[i];

		if (node->is_dead)
			continue;
		vb_world_drive(world, node);
		vb_world_poll_all(world, node);
		vb_world_drive(world, node);
		vb_world_poll_all(world, node);
	}
}

/* The receives of a QP with an SRQ do not show that the QP is done: an event must report it. */
static void check_last_wqe(struct vb_world *world)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		struct vb_node *node = world->nodes[i];

		for (uint32_t j = 0; !node->is_dead && j < node->qp_count; j++) {
			const struct vb_node_qp *qp = node->qps[j];

			if (qp && world->model.qps[qp->model].srq != VB_MODEL_NONE &&
			    !qp->saw_last_wqe)
				vb_model_report(&world->model, VB_MODEL_NONE,
						"a QP with an SRQ raises LAST_WQE_REACHED in ERR",
						1, qp->number.v);
		}
	}
}

void vb_world_finish(struct vb_world *world)
{
	if (vb_model_is_violated(&world->model))
		return;
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		if (!world->nodes[i]->is_dead)
			end_qps(world, world->nodes[i]);
	}
	drain(world);
	while (vb_world_step(world))
		continue;
	drain(world);
	vb_model_check_end(&world->model);
	check_last_wqe(world);
	vb_world_check_memory(world);
	for (uint32_t i = 0; i < world->options.node_count; i++)
		stop_node(world, world->nodes[i]);
	vb_world_check_memory(world);
	world->coverage.worlds++;
	world->coverage.moods[world->fabric.faults.mood]++;
	for (uint32_t i = 0; i < VB_FATE_COUNT; i++)
		world->coverage.fates[i] += world->fabric.fates[i];
}
