/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared-memory links: rings as counts of packets that are on the agenda; vb_dma_peer_*() on the
 * memory of simulated machines.
 */
#include "sim/shm_link.h"

#include "base/dma.h"
#include "base/err.h"
#include "sim/dice.h"
#include "sim/world.h"

#define DEAD_PEER_ROOM 64u /* packets: those sent to a dead machine vanish */
#define SLOW_NS 3000000u
#define REOPENING_NS 1000000u
#define FETCHES_REFUSED 10u /* one in this many */

static struct vb_shm_link *shm_link_of(struct vb_world *world, uint32_t from, uint32_t to)
{
	return &world->shm_links.shm_links[from][to];
}

static void init_shm_link(struct vb_world *world, uint32_t from, uint32_t to)
{
	struct vb_shm_link *shm_link = shm_link_of(world, from, to);

	shm_link->is_open = true;
	world->shm_links.peer_memories[from][to] = (struct vb_peer_memory){
		.world = world,
		.target = &world->shm_links.targets[to],
		.shm_link = shm_link,
	};
}

void vb_shm_links_init(struct vb_world *world)
{
	struct vb_shm_links *shm_links = &world->shm_links;

	shm_links->depth = world->options.shm_link_depth;
	vb_prng_init(&shm_links->prng, world->options.seed ^ 0x11e5);
	for (uint32_t from = 0; from < VB_FABRIC_NODES_MAX; from++)
		for (uint32_t to = 0; to < VB_FABRIC_NODES_MAX; to++)
			init_shm_link(world, from, to);
}

void vb_shm_links_publish(struct vb_world *world, struct vb_node *node)
{
	struct vb_row_mirror mirror = {
		.key_rows = calloc(VB_NODE_KEY_ROWS, sizeof(*mirror.key_rows)),
		.qp_rows = calloc(VB_NODE_QP_ROWS, sizeof(*mirror.qp_rows)),
		.srq_rows = calloc(VB_SRQ_ROWS, sizeof(*mirror.srq_rows)),
	};

	VB_CHECK(mirror.key_rows && mirror.qp_rows && mirror.srq_rows);
	vb_nic_publish(node->nic, &mirror);
	vb_node_free_mirror(node);
	node->mirror = mirror;
	world->shm_links.targets[node->index] = (struct vb_target){
		.tables = { mirror.key_rows, mirror.qp_rows, mirror.srq_rows, VB_NODE_KEY_ROWS,
			    VB_NODE_QP_ROWS, ++world->shm_links.epoch },
		.is_open = true,
		.has_pages = vb_dice_chance(&world->shm_links.prng, 2, 3),
	};
}

void vb_shm_links_withdraw(struct vb_world *world, const struct vb_node *node)
{
	world->shm_links.targets[node->index].is_open = false;
}

/*
 * Most QPs meet their local peers, if there are any; sometimes only one of two learns of the other
 * in time.
 */
void vb_shm_links_choose(struct vb_world *world, uint32_t channel, struct vb_node *node,
			 struct vb_qp *qp, struct vb_node *peer)
{
	uint64_t lot = (world->options.seed + channel) % 8;
	bool is_met = lot % 4 && (lot != 5 || node->index < peer->index) &&
		      shm_link_of(world, node->index, peer->index)->is_open;

	if (!world->shm_links.depth)
		return;
	if (!is_met) {
		vb_qp_expect_link(qp, peer->index + 1);
		return;
	}
	vb_qp_set_link(qp, peer->index + 1,
		       &world->shm_links.peer_memories[node->index][peer->index]);
	vb_shm_links_report_room(world, node);
}

/* --- packets --- */

static uint32_t waiting_count(const struct vb_shm_link *shm_link)
{
	return (uint32_t)(shm_link->sent_count - shm_link->gone_count);
}

static uint32_t room_of(struct vb_world *world, uint32_t from, uint32_t to)
{
	const struct vb_shm_link *shm_link = shm_link_of(world, from, to);

	if (!shm_link->is_open || world->nodes[to]->is_dead)
		return DEAD_PEER_ROOM;
	return world->shm_links.depth - waiting_count(shm_link);
}

void vb_shm_links_report_room(struct vb_world *world, struct vb_node *node)
{
	if (!world->shm_links.depth || node->is_dead)
		return;
	for (uint32_t to = 0; to < world->options.node_count; to++)
		vb_nic_set_link_room(node->nic, to + 1, room_of(world, node->index, to));
	if (vb_nic_has_qps_without_room(node->nic))
		world->coverage.flaws[VB_FLAW_SHM_LINK_FULL]++;
}

/* A reader usually looks soon. A reader that computes may take long, if that may cost retries. */
static uint64_t draw_delay(struct vb_world *world)
{
	struct vb_prng *prng = &world->shm_links.prng;

	if (world->is_hostile && vb_dice_chance(prng, 1, 200))
		return vb_prng_below(prng, SLOW_NS);
	return vb_dice_chance(prng, 1, 2) ? 0 : vb_prng_below(prng, 3000);
}

static uint32_t *uc_count_of(struct vb_shm_link *shm_link, vb_qpn to)
{
	return &shm_link->uc_counts[to.v & (VB_NODE_QP_ROWS - 1)];
}

static void count_uc(struct vb_shm_link *shm_link, const struct vb_fabric_packet *packet,
		     uint32_t change)
{
	struct vb_bth bth = vb_bth_load(packet->bytes);

	if (vb_opcode_service(bth.opcode) == VB_SERVICE_UC)
		*uc_count_of(shm_link, bth.destination) += change;
}

/* The time at which the reader will have it. */
static uint64_t draw_time(struct vb_world *world, const struct vb_shm_link *shm_link)
{
	uint64_t time_ns = world->now_ns + draw_delay(world);

	return time_ns < shm_link->last_ns ? shm_link->last_ns : time_ns;
}

static void put(struct vb_world *world, const struct vb_node *from, uint32_t to,
		const struct vb_slot *slot, uint64_t time_ns)
{
	struct vb_shm_link *shm_link = shm_link_of(world, from->index, to);
	struct vb_fabric_packet *packet = vb_fabric_gather(&world->fabric, from->index, slot);

	if (!packet)
		return;
	packet->to = to;
	packet->shm_link = (uint16_t)(from->index + 1);
	packet->piggyback_ack = slot->piggyback_ack;
	packet->train = slot->train;
	if (slot->train.packet_count)
		memcpy(packet->references, slot->references, sizeof(packet->references));
	packet->ring = shm_link->ring;
	shm_link->sent_count++;
	count_uc(shm_link, packet, 1);
	shm_link->last_ns = time_ns;
	vb_world_note(world, from->index, VB_ACTION_PUTS_ON_SHM_LINK, to,
		      slot->train.packet_count ? slot->train.byte_count : packet->length);
	vb_agenda_add(&world->agenda, time_ns, VB_ITEM_PACKET, to, packet);
}

static bool is_open(struct vb_world *world, uint32_t from, uint32_t to)
{
	return shm_link_of(world, from, to)->is_open && !world->nodes[to]->is_dead;
}

void vb_shm_links_send(struct vb_world *world, struct vb_node *from, const struct vb_slot *slot)
{
	uint32_t to = slot->path.link - 1u;
	struct vb_shm_link *shm_link = shm_link_of(world, from->index, to);
	uint64_t time_ns = draw_time(world, shm_link);

	if (!is_open(world, from->index, to))
		return;
	if (waiting_count(shm_link) == world->shm_links.depth)
		vb_model_report(
			&world->model, VB_MODEL_NONE,
			"no more packets are put on a shared-memory link than it has room for",
			world->shm_links.depth, waiting_count(shm_link) + 1);
	put(world, from, to, slot, time_ns);
}

/*
 * A slow reader empties its shared-memory links before it looks at the fabric: copies that would
 * arrive later than the fabric's are not sent.
 */
void vb_shm_links_send_copies(struct vb_world *world, struct vb_node *from,
			      const struct vb_slot *slot)
{
	uint64_t fabric_ns = world->now_ns + world->fabric.latency_ns;

	for (uint32_t to = 0; to < world->options.node_count; to++) {
		struct vb_shm_link *shm_link = shm_link_of(world, from->index, to);
		uint64_t time_ns = draw_time(world, shm_link);

		if (is_open(world, from->index, to) && time_ns < fabric_ns &&
		    waiting_count(shm_link) < world->shm_links.depth)
			put(world, from, to, slot, time_ns);
	}
}

bool vb_shm_links_take(struct vb_world *world, const struct vb_fabric_packet *packet)
{
	struct vb_shm_link *shm_link = shm_link_of(world, packet->from, packet->to);
	struct vb_node *from = world->nodes[packet->from];
	bool had_waiting;

	if (packet->ring != shm_link->ring)
		return false;
	shm_link->gone_count++;
	count_uc(shm_link, packet, UINT32_MAX); /* decrements */
	if (from->is_dead)
		return true;
	had_waiting = vb_nic_has_qps_without_room(from->nic);
	vb_shm_links_report_room(world, from);
	if (had_waiting)
		vb_world_plan_drive(world, from->index, 0);
	return true;
}

/* --- ends that go and come --- */

static void restart_shm_link(struct vb_world *world, uint32_t from, uint32_t to)
{
	struct vb_shm_link *shm_link = shm_link_of(world, from, to);

	*shm_link = (struct vb_shm_link){
		.ring = shm_link->ring + 1,
		.sent_count = shm_link->sent_count,
		.gone_count = shm_link->sent_count,
	};
}

void vb_shm_links_break(struct vb_world *world, uint32_t node)
{
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		restart_shm_link(world, node, i);
		restart_shm_link(world, i, node);
	}
	vb_shm_links_withdraw(world, world->nodes[node]);
	vb_agenda_add(&world->agenda,
		      world->now_ns + vb_prng_below(&world->shm_links.prng, REOPENING_NS),
		      VB_ITEM_SHM_LINKS_OPEN, node, NULL);
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		vb_shm_links_report_room(world, world->nodes[i]);
		vb_world_plan_drive(world, i, 0);
	}
}

void vb_shm_links_open_again(struct vb_world *world, uint32_t node)
{
	vb_world_note(world, node, VB_ACTION_MEETS_LOCAL_PEERS, 0, 0);
	world->shm_links.targets[node].is_open = !world->nodes[node]->is_dead;
	for (uint32_t i = 0; i < world->options.node_count; i++) {
		shm_link_of(world, node, i)->is_open = true;
		shm_link_of(world, i, node)->is_open = true;
	}
	for (uint32_t i = 0; i < world->options.node_count; i++)
		vb_shm_links_report_room(world, world->nodes[i]);
}

/* --- peer memory access --- */

uint64_t vb_dma_peer_shm_link_end(const struct vb_peer_memory *peer_memory)
{
	return peer_memory->shm_link->sent_count;
}

bool vb_dma_peer_has_read(const struct vb_peer_memory *peer_memory, uint64_t shm_link_end)
{
	return peer_memory->shm_link->gone_count >= shm_link_end;
}

bool vb_dma_peer_is_on_wire(const struct vb_peer_memory *peer_memory,
			    const struct vb_peer_memory_initiator *initiator)
{
	return peer_memory->target->is_open &&
	       vb_peer_memory_is_on_wire(&peer_memory->target->tables, initiator);
}

/* Finds the address of the part. */
static bool resolve(const struct vb_peer_memory *peer_memory,
		    const struct vb_peer_memory_request *request, uint64_t *address_out)
{
	const struct vb_key_row *row;

	if (!peer_memory->target->is_open)
		return false;
	row = vb_peer_memory_check(&peer_memory->target->tables, request);
	if (!row)
		return false;
	*address_out = row->address + (request->address - row->iova) + request->offset;
	return true;
}

static bool copy(uint64_t to, uint64_t from, uint32_t length)
{
	uint8_t *bytes = malloc(length);
	bool is_done;

	VB_CHECK(bytes);
	is_done = vb_dma_read(bytes, from, length) && vb_dma_write(to, bytes, length);
	free(bytes);
	return is_done;
}

/* On UC nothing else would notice: the packets could just as well be lost. */
static void check_order(const struct vb_peer_memory *peer_memory,
			const struct vb_peer_memory_request *request)
{
	uint32_t count = *uc_count_of(peer_memory->shm_link, request->initiator->target);

	if (request->initiator->service == VB_SERVICE_UC && count)
		vb_model_report(&peer_memory->world->model, VB_MODEL_NONE,
				"no request overtakes those on the shared-memory link before it", 0,
				count);
}

static void note_executed(const struct vb_peer_memory *peer_memory,
			  const struct vb_peer_memory_request *request)
{
	uint64_t *flaws = peer_memory->world->coverage.flaws;

	switch ((enum vb_service)request->initiator->service) {
	case VB_SERVICE_RC:
		flaws[VB_FLAW_DIRECT_RC]++;
		break;
	case VB_SERVICE_UC:
		flaws[VB_FLAW_DIRECT_UC]++;
		break;
	case VB_SERVICE_XRC:
		flaws[VB_FLAW_DIRECT_XRC]++;
		break;
	case VB_SERVICE_RD:
	case VB_SERVICE_UD:
	case VB_SERVICE_CNP:
		break;
	}
}

static bool write_part(const struct vb_peer_memory *peer_memory,
		       const struct vb_peer_memory_request *request)
{
	uint64_t at;

	if (!resolve(peer_memory, request, &at))
		return false;
	check_order(peer_memory, request);
	if (request->bytes)
		return vb_dma_write(at, request->bytes, request->part_length);
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy(at, request->spans[i].address, request->spans[i].length))
			return false;
		at += request->spans[i].length;
	}
	return true;
}

void vb_dma_peer_expect_write(const struct vb_peer_memory_initiator *initiator, uint64_t address)
{
	(void)initiator, (void)address;
}

uint32_t vb_dma_peer_write(struct vb_peer_memory *peer_memory,
			   const struct vb_peer_memory_request *requests, uint32_t count)
{
	uint32_t done = 0;

	while (done < count && write_part(peer_memory, &requests[done]))
		note_executed(peer_memory, &requests[done++]);
	return done;
}

bool vb_dma_peer_read(struct vb_peer_memory *peer_memory,
		      const struct vb_peer_memory_request *request)
{
	uint64_t at;

	if (!resolve(peer_memory, request, &at))
		return false;
	for (uint32_t i = 0; i < request->span_count; i++) {
		if (!copy(request->spans[i].address, at, request->spans[i].length))
			return false;
		at += request->spans[i].length;
	}
	return true;
}

bool vb_dma_peer_atomic(struct vb_peer_memory *peer_memory,
			const struct vb_peer_memory_request *request,
			const struct vb_peer_memory_atomic *atomic, uint64_t *old_out)
{
	uint64_t at;

	if (!peer_memory->target->has_pages || request->address & 7 ||
	    !resolve(peer_memory, request, &at) || at & 7)
		return false;
	return atomic->is_compare
		       ? vb_dma_compare_swap(at, atomic->compare, atomic->swap_or_add, old_out)
		       : vb_dma_fetch_add(at, atomic->swap_or_add, old_out);
}

/* A place in the spans of a fetch. */
struct fetch_place {
	uint32_t index;
	uint32_t offset;
};

/* Copies one reference to the spans from `*at` on, and advances it. */
static bool fetch_reference(const struct vb_peer_memory_fetch *fetch, uint64_t from,
			    uint32_t length, struct fetch_place *at)
{
	while (length) {
		const struct vb_span *span = &fetch->spans[at->index];
		uint32_t left = span->length - at->offset;
		uint32_t piece = length < left ? length : left;

		if (!copy(span->address + at->offset, from, piece))
			return false;
		from += piece;
		length -= piece;
		at->offset += piece;
		if (at->offset == span->length)
			*at = (struct fetch_place){ at->index + 1, 0 };
	}
	return true;
}

static bool fetch_all(const struct vb_peer_memory *peer_memory,
		      const struct vb_peer_memory_fetch *fetch)
{
	const struct vb_peer_memory_tables *tables = &peer_memory->target->tables;
	struct vb_peer_memory_offer offer;
	struct fetch_place at = { 0, 0 };

	if (!peer_memory->target->is_open ||
	    !vb_peer_memory_open_offer(tables, fetch->initiator, &offer))
		return false;
	for (uint32_t i = 0; i < fetch->reference_count; i++) {
		const struct vb_reference *reference = &fetch->references[i];
		struct vb_key_row row;

		if (!vb_peer_memory_find_offered(tables, &offer, reference, &row) ||
		    !fetch_reference(fetch, row.address + (reference->address - row.iova),
				     reference->length, &at))
			return false;
	}
	return vb_peer_memory_is_offer_kept(&offer);
}

/* Some fetches fail for reasons that only a real machine has, such as missing permission. */
bool vb_dma_peer_fetch(struct vb_peer_memory *peer_memory, const struct vb_peer_memory_fetch *fetch)
{
	struct vb_world *world = peer_memory->world;
	bool is_done = fetch_all(peer_memory, fetch) &&
		       !vb_dice_chance(&world->shm_links.prng, 1, FETCHES_REFUSED);

	world->coverage.flaws[is_done ? VB_FLAW_TRAIN_FETCHED : VB_FLAW_TRAIN_REFUSED]++;
	return is_done;
}
