/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Making and stopping a simulated machine. Its memory is split into areas, one for each region.
 * QPNs of different machines and generations never coincide, so that a QPN alone identifies its QP.
 */
#include "sim/node.h"

#include "base/err.h"
#include "sim/dice.h"

#include <string.h>

#define MARGIN 4096u /* memory in front of each region that no region covers */
#define ALL_RIGHTS                                                                \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_MW_BIND)

static void make_gids(struct vb_node *node)
{
	node->gids[0] = vb_gid_from_ipv4(0x0a000001 + node->index);
	node->gids[1] = (struct vb_gid){ .raw = { 0xfd, 0, [15] = (uint8_t)(node->index + 1) } };
}

static void create_adapter(struct vb_node *node, const struct vb_node_options *options,
			   const struct vb_node_region *device)
{
	struct vb_nic_config config = {
		.key_row_count = VB_NODE_KEY_ROWS,
		.qp_row_count = VB_NODE_QP_ROWS,
		.seed = options->seed,
		.qpn_first = 0x100 + (options->index + 1) * 0x100000 +
			     options->generation * 0x10000,
		.qpn_count = 0x8000,
		.framing.icrc_mode = options->icrc_mode,
		.framing.batch_segments_max = options->batch_segments_max,
		.window_packets_max = options->window_packets_max,
		.window_bytes_max = options->window_bytes_max,
		.flight_bytes_max = options->flight_bytes_max,
		.train_length_min = options->train_length_min,
		.train_length_max = options->train_length_max,
		.train_sample_bytes = options->train_sample_bytes,
		.zero_page = node->arena->base,
		.device_memory = device->address,
		.device_memory_length = device->length,
	};
	static const uint8_t zeros[4096];

	node->key_rows = calloc(VB_NODE_KEY_ROWS, sizeof(*node->key_rows));
	node->qp_rows = calloc(VB_NODE_QP_ROWS, sizeof(*node->qp_rows));
	VB_CHECK(node->key_rows && node->qp_rows);
	config.key_rows = node->key_rows;
	config.qp_rows = node->qp_rows;
	vb_arena_store(node->arena, node->arena->base, zeros, sizeof(zeros));
	VB_CHECK(vb_nic_create(&config, &node->nic) == VB_OK);
	VB_CHECK(vb_nic_set_gid(node->nic, 0, &node->gids[0]) == VB_OK);
	VB_CHECK(vb_nic_set_gid(node->nic, 1, &node->gids[1]) == VB_OK);
	VB_CHECK(vb_pd_create(node->nic, &node->pds[0]) == VB_OK);
	VB_CHECK(vb_pd_create(node->nic, &node->pds[1]) == VB_OK);
	VB_CHECK(vb_xrcd_create(node->nic, &node->xrcd) == VB_OK);
}

/* Divides the memory: most of it goes to the region that everything uses. */
static void lay_out(struct vb_node *node, uint32_t memory_length)
{
	uint64_t at = node->arena->base + 4096;
	uint32_t small = memory_length / 32 / 64 * 64;
	uint32_t rest = memory_length - 4096 - (VB_REGION_COUNT - 1) * (small + MARGIN) - MARGIN;

	for (uint32_t i = 0; i < VB_REGION_COUNT; i++) {
		struct vb_node_region *region = &node->regions[i];

		region->address = at + MARGIN;
		region->length = i == VB_REGION_FULL ? rest / 64 * 64 : small;
		region->iova = region->address;
		at = region->address + region->length;
	}
	VB_CHECK(vb_arena_holds(node->arena, node->arena->base, at - node->arena->base));
}

static void register_region(struct vb_node *node, uint32_t index, uint32_t pd, uint32_t access,
			    uint64_t iova)
{
	struct vb_node_region *region = &node->regions[index];
	struct vb_mr_init init = {
		.address = region->address, .length = region->length, .iova = iova, .access = access
	};

	region->iova = access & VB_ACCESS_ZERO_BASED ? 0 : iova;
	region->access = access;
	VB_CHECK(vb_mr_create(node->pds[pd], &init, &region->mr) == VB_OK);
	region->key = vb_mr_key(region->mr);
}

static void register_device(struct vb_node *node)
{
	struct vb_node_region *region = &node->regions[VB_REGION_DEVICE];
	struct vb_mr_init init = { .length = region->length,
				   .access = ALL_RIGHTS | VB_ACCESS_ZERO_BASED };

	VB_CHECK(vb_dm_create(node->nic, region->length, 3, &node->dm) == VB_OK);
	VB_CHECK(vb_mr_create_on_dm(node->pds[0], node->dm, &init, &region->mr) == VB_OK);
	region->access = init.access;
	region->iova = 0;
	region->key = vb_mr_key(region->mr);
	vb_arena_accept(node->arena, region->address,
			region->length); /* the adapter may have cleared it */
}

static void register_regions(struct vb_node *node, const struct vb_node_options *options)
{
	uint64_t shift = options->has_strange_iovas ? 0x7000000000000000u : 0;

	register_region(node, VB_REGION_FULL, 0, ALL_RIGHTS,
			node->regions[VB_REGION_FULL].address + shift);
	register_region(node, VB_REGION_LOCAL, 0, VB_ACCESS_LOCAL_WRITE,
			node->regions[VB_REGION_LOCAL].address);
	register_region(node, VB_REGION_READABLE, 0, VB_ACCESS_REMOTE_READ,
			node->regions[VB_REGION_READABLE].address + shift);
	register_region(node, VB_REGION_OTHER_PD, 1,
			ALL_RIGHTS | (shift ? VB_ACCESS_ZERO_BASED : 0),
			node->regions[VB_REGION_OTHER_PD].address);
	register_device(node);
	for (uint32_t i = 0; i < VB_NODE_LOOSE_MAX; i++)
		vb_node_register_loose(node, i, ALL_RIGHTS);
}

bool vb_node_register_loose(struct vb_node *node, uint32_t which, uint32_t access)
{
	struct vb_node_region *region = &node->regions[VB_REGION_LOOSE + which];

	if (region->mr)
		return false;
	register_region(node, VB_REGION_LOOSE + which, 0, access, region->address);
	return true;
}

struct vb_node *vb_node_create(const struct vb_node_options *options)
{
	struct vb_node *node = calloc(1, sizeof(*node));
	uint64_t base = (uint64_t)(options->index + 1) << 40 | (uint64_t)options->generation << 36;

	VB_CHECK(node);
	node->index = options->index;
	node->generation = options->generation;
	node->icrc_mode = options->icrc_mode;
	make_gids(node);
	node->arena = vb_arena_create(base, options->memory_length, options->seed ^ 0x5eed);
	lay_out(node, options->memory_length);
	create_adapter(node, options, &node->regions[VB_REGION_DEVICE]);
	register_regions(node, options);
	return node;
}

static bool stop_queues(struct vb_node *node)
{
	bool is_ok = true;

	for (uint32_t i = 0; i < node->qp_count; i++) {
		if (node->qps[i])
			is_ok &= vb_node_remove_qp(node, i);
	}
	for (uint32_t i = 0; i < node->srq_count; i++) {
		is_ok &= vb_srq_destroy(node->srqs[i]->srq) == VB_OK;
		free(node->srqs[i]);
	}
	for (uint32_t i = 0; i < node->cq_count; i++) {
		is_ok &= vb_cq_destroy(node->cqs[i]->cq) == VB_OK;
		free(node->cqs[i]);
	}
	node->qp_count = node->srq_count = node->cq_count = 0;
	return is_ok;
}

bool vb_node_stop(struct vb_node *node)
{
	bool is_ok = stop_queues(node);

	for (uint32_t i = 0; i < node->handle_count; i++)
		is_ok &= vb_ah_destroy(node->handles[i]) == VB_OK;
	for (uint32_t i = 0; i < node->window_count; i++)
		is_ok &= vb_mw_destroy(node->windows[i]) == VB_OK;
	for (uint32_t i = 0; i < VB_REGION_COUNT; i++) {
		if (node->regions[i].mr)
			is_ok &= vb_mr_destroy(node->regions[i].mr) == VB_OK;
	}
	is_ok &= vb_dm_destroy(node->dm) == VB_OK;
	is_ok &= vb_xrcd_destroy(node->xrcd) == VB_OK;
	is_ok &= vb_pd_destroy(node->pds[0]) == VB_OK;
	is_ok &= vb_pd_destroy(node->pds[1]) == VB_OK;
	is_ok &= vb_nic_destroy(node->nic) == VB_OK;
	node->nic = NULL;
	return is_ok;
}

void vb_node_free_mirror(struct vb_node *node)
{
	free(node->mirror.key_rows);
	free(node->mirror.qp_rows);
	free(node->mirror.srq_rows);
}

void vb_node_destroy(struct vb_node *node)
{
	free(node->key_rows);
	free(node->qp_rows);
	vb_node_free_mirror(node);
	vb_arena_destroy(node->arena);
	free(node);
}

uint32_t vb_node_add_cq(struct vb_node *node, uint32_t depth)
{
	struct vb_node_cq *cq;

	if (node->cq_count == VB_NODE_CQS_MAX)
		return VB_NODE_NONE;
	cq = calloc(1, sizeof(*cq));
	VB_CHECK(cq);
	VB_CHECK(vb_cq_create(node->nic, depth, cq, &cq->cq) == VB_OK);
	cq->depth = depth;
	node->cqs[node->cq_count] = cq;
	return node->cq_count++;
}

uint32_t vb_node_add_qp(struct vb_node *node, uint32_t pd, struct vb_qp_init *init)
{
	struct vb_node_qp *qp;

	if (node->qp_count == VB_NODE_QPS_MAX)
		return VB_NODE_NONE;
	qp = calloc(1, sizeof(*qp));
	VB_CHECK(qp);
	init->owner_context = qp;
	VB_CHECK(vb_qp_create(node->pds[pd], init, &qp->qp) == VB_OK);
	qp->number = vb_qp_number(qp->qp);
	qp->send_cq = qp->recv_cq = VB_NODE_NONE;
	node->qps[node->qp_count] = qp;
	return node->qp_count++;
}

uint32_t vb_node_add_srq(struct vb_node *node, const struct vb_srq_init *init)
{
	struct vb_node_srq *srq;

	if (node->srq_count == VB_NODE_SRQS_MAX)
		return VB_NODE_NONE;
	srq = calloc(1, sizeof(*srq));
	VB_CHECK(srq);
	VB_CHECK(vb_srq_create(node->pds[0], init, &srq->srq) == VB_OK);
	srq->number = vb_srq_number(srq->srq);
	srq->depth = init->depth;
	srq->sge_max = init->sge_max;
	srq->limit = init->limit;
	srq->is_xrc = init->xrcd;
	srq->cq = VB_NODE_NONE;
	node->srqs[node->srq_count] = srq;
	return node->srq_count++;
}

bool vb_node_remove_qp(struct vb_node *node, uint32_t index)
{
	struct vb_node_qp *qp = node->qps[index];
	bool is_ok = true;

	for (uint32_t i = 0; i < 2 * VB_NODE_GROUPS; i++) {
		struct vb_gid group = vb_node_group(i / 2, i % 2);

		if (qp->groups >> i & 1)
			is_ok &= vb_qp_detach(qp->qp, &group) == VB_OK;
	}
	is_ok &= vb_qp_destroy(qp->qp) == VB_OK;
	free(node->qps[index]);
	node->qps[index] = NULL;
	return is_ok;
}

struct vb_node_qp *vb_node_find_qp(struct vb_node *node, uint32_t qpn)
{
	for (uint32_t i = 0; i < node->qp_count; i++) {
		if (node->qps[i] && node->qps[i]->number.v == qpn)
			return node->qps[i];
	}
	return NULL;
}

uint32_t vb_node_add_window(struct vb_node *node, enum vb_mw_type type)
{
	if (node->window_count == VB_NODE_WINDOWS_MAX)
		return VB_NODE_NONE;
	VB_CHECK(vb_mw_create(node->pds[0], type, &node->windows[node->window_count]) == VB_OK);
	return node->window_count++;
}

uint32_t vb_node_add_handle(struct vb_node *node, const struct vb_address *address)
{
	if (node->handle_count == VB_NODE_HANDLES_MAX)
		return VB_NODE_NONE;
	VB_CHECK(vb_ah_create(node->pds[0], address, &node->handles[node->handle_count]) == VB_OK);
	return node->handle_count++;
}

struct vb_gid vb_node_group(uint32_t group, bool is_ipv6)
{
	if (is_ipv6)
		return (struct vb_gid){ .raw = { 0xff, 0x0e, [15] = (uint8_t)(group + 1) } };
	return vb_gid_from_ipv4(0xe8000001 + group);
}

bool vb_node_attach(struct vb_node *node, uint32_t qp, uint32_t group, bool is_ipv6)
{
	struct vb_gid gid = vb_node_group(group, is_ipv6);

	if (vb_qp_attach(node->qps[qp]->qp, &gid) != VB_OK)
		return false;
	node->qps[qp]->groups |= 1u << (group * 2 + is_ipv6);
	return true;
}
