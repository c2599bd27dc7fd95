/* SPDX-License-Identifier: BSD-2-Clause */
/* Making and destroying the pair of adapters and the objects on them, and bringing QPs up. */
#include "support_pair.h"

#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 1 << 15, DEVICE_MEMORY_LENGTH = 0x4000, PAGE = 4096 };

static struct pair *pair;

#define MUST(call) EXPECT_EQ(call, VB_OK)

struct setup setup_of(enum vb_qp_type type, uint32_t mtu)
{
	return (struct setup){
		.type = type,
		.mtu = mtu,
		.send_depth = 16,
		.recv_depth = 16,
		.sge_max = 4,
		.inline_max = 64,
		.cq_depth = 64,
		.has_srq = type == VB_QP_XRC_SEND,
		.timeout = 14,
		.retry_count = 2,
		.rnr_retry = 2,
		.min_rnr_timer = 12, /* 0.64 ms */
		.reads_out = 4,
		.reads_in = 4,
		.qp_access = RIGHTS_REMOTE,
		.mr_access = RIGHTS_ALL,
		.psn = { 0, 5000 },
		.state = { VB_STATE_RTS, VB_STATE_RTS },
		.icrc_mode = VB_ICRC_STRICT,
	};
}

static uint8_t pattern_byte(enum side side, uint32_t offset)
{
	uint32_t v = (offset + 1 + (uint32_t)side * 0x1234567u) * 0x9e3779b1u;

	return (uint8_t)(v >> 24);
}

void pair_expect_copied(const char *file, int line, struct pair *p, enum side from_side,
			uint32_t from, enum side to_side, uint32_t to, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (p->node[to_side].memory[to + i] != pattern_byte(from_side, from + i))
			test_fail(file, line, "byte %u of %u at %c's 0x%x is not that of %c's 0x%x",
				  i, length, "AB"[to_side], to, "AB"[from_side], from);
}

static void node_init_memory(struct node *node, enum side side)
{
	node->memory = aligned_alloc(PAGE, MEMORY_LENGTH);
	node->zero_page = calloc(1, PAGE);
	node->device_memory = aligned_alloc(PAGE, DEVICE_MEMORY_LENGTH);
	node->key_rows = calloc(TABLE_ROWS, sizeof(*node->key_rows));
	node->qp_rows = calloc(TABLE_ROWS, sizeof(*node->qp_rows));
	EXPECT(node->memory && node->zero_page && node->device_memory && node->key_rows &&
	       node->qp_rows);
	memset(node->device_memory, 0, DEVICE_MEMORY_LENGTH);
	for (uint32_t i = 0; i < MEMORY_LENGTH; i++)
		node->memory[i] = pattern_byte(side, i);
	node->iova = side == A ? IOVA_A : IOVA_B;
}

static struct vb_gid gid_of(enum side side, bool is_ipv6)
{
	struct vb_gid gid = { { 0xfe, 0x80, [15] = (uint8_t)(side + 1) } };

	return is_ipv6 ? gid : vb_gid_from_ipv4(0x0a000001u + side);
}

static void node_create(struct pair *p, enum side side)
{
	struct node *node = &p->node[side];
	struct vb_nic_config config = { 0 };
	struct vb_mr_init mr_init;

	node_init_memory(node, side);
	config.key_rows = node->key_rows;
	config.key_row_count = TABLE_ROWS;
	config.qp_rows = node->qp_rows;
	config.qp_row_count = TABLE_ROWS;
	config.seed = 7000 + side;
	config.qpn_first = side == A ? 0x100 : 0x800000;
	config.framing.icrc_mode = p->setup.icrc_mode;
	config.window_packets_max = p->setup.window_packets_max;
	config.window_bytes_max = p->setup.window_bytes_max;
	config.framing.batch_segments_max = p->setup.batch_segments_max;
	config.framing.batch_qpn_mask = p->setup.batch_qpn_mask;
	config.flight_bytes_max = p->setup.flight_bytes_max;
	config.train_length_min = p->setup.train_length_min;
	config.train_length_max = p->setup.train_length_max;
	config.train_sample_bytes = p->setup.train_sample_bytes;
	config.source_port_count = p->setup.has_one_source_port;
	config.source_ports[0] = 0xc000;
	config.zero_page = (uintptr_t)node->zero_page;
	config.device_memory = (uintptr_t)node->device_memory;
	config.device_memory_length = DEVICE_MEMORY_LENGTH;
	MUST(vb_nic_create(&config, &node->nic));

	node->gid = gid_of(side, p->setup.is_ipv6);
	MUST(vb_nic_set_gid(node->nic, 0, &node->gid));
	MUST(vb_nic_set_pkey(node->nic, 0, VB_PKEY_DEFAULT));
	MUST(vb_pd_create(node->nic, &node->pd));
	MUST(vb_pd_create(node->nic, &node->other_pd));
	MUST(vb_cq_create(node->nic, p->setup.cq_depth, NULL, &node->send_cq));
	MUST(vb_cq_create(node->nic, p->setup.cq_depth, NULL, &node->recv_cq));
	mr_init = mr_init_at(p, side, 0,
			     p->setup.mr_length ? (uint32_t)p->setup.mr_length : MEMORY_LENGTH,
			     p->setup.mr_access);
	MUST(vb_mr_create(node->pd, &mr_init, &node->mr));
}

static void node_create_srq(struct pair *p, enum side side)
{
	struct node *node = &p->node[side];
	struct vb_srq_init init = {
		.depth = p->setup.recv_depth,
		.sge_max = p->setup.sge_max,
		.limit = p->setup.srq_limit,
	};

	if (p->setup.type == VB_QP_XRC_SEND) {
		MUST(vb_xrcd_create(node->nic, &node->xrcd));
		init.xrcd = node->xrcd;
		init.cq = node->recv_cq;
	}
	if (p->setup.tag_count) {
		init.cq = node->recv_cq;
		init.tag_count = p->setup.tag_count;
		init.tag_depth = p->setup.tag_depth;
	}
	MUST(vb_srq_create(node->pd, &init, &node->srq));
}

static void remember(void *const *list, void *object)
{
	void **slots = (void **)(uintptr_t)list;

	for (uint32_t i = 0; i < OBJECTS_MAX; i++) {
		if (!slots[i]) {
			slots[i] = object;
			return;
		}
	}
	FAIL("more than %d objects", OBJECTS_MAX);
}

static void forget(void *const *list, const void *object)
{
	void **slots = (void **)(uintptr_t)list;

	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		if (slots[i] == object)
			slots[i] = NULL;
}

#define REMEMBER(list, object) remember((void *const *)(list), object)
#define FORGET(list, object) forget((void *const *)(list), object)

struct vb_qp *make_qp(struct pair *p, enum side side)
{
	struct node *node = &p->node[side];
	enum vb_qp_type type = p->setup.type == VB_QP_XRC_SEND && side == B ? VB_QP_XRC_RECV
									    : p->setup.type;
	struct vb_qp_init init = {
		.type = type,
		.send_cq = type == VB_QP_XRC_RECV ? NULL : node->send_cq,
		.recv_cq = type == VB_QP_XRC_RECV || type == VB_QP_XRC_SEND ? NULL : node->recv_cq,
		.srq = type == VB_QP_XRC_RECV ? NULL : node->srq,
		.xrcd = type == VB_QP_XRC_RECV ? node->xrcd : NULL,
		.send_depth = type == VB_QP_XRC_RECV ? 0 : p->setup.send_depth,
		.recv_depth = node->srq || type == VB_QP_XRC_SEND ? 0 : p->setup.recv_depth,
		.send_sge_max = p->setup.sge_max,
		.recv_sge_max = p->setup.sge_max,
		.inline_max = p->setup.inline_max,
		.signal_all = p->setup.signal_all,
	};
	struct vb_qp *qp;

	MUST(vb_qp_create(node->pd, &init, &qp));
	REMEMBER(node->qps, qp);
	return qp;
}

struct vb_mr *make_mr_in(struct pair *p, enum side side, struct vb_pd *pd,
			 const struct vb_mr_init *init)
{
	struct vb_mr *mr;

	MUST(vb_mr_create(pd, init, &mr));
	REMEMBER(p->node[side].mrs, mr);
	return mr;
}

struct vb_mr *make_mr(struct pair *p, enum side side, const struct vb_mr_init *init)
{
	return make_mr_in(p, side, p->node[side].pd, init);
}

struct vb_mr_init mr_init_at(struct pair *p, enum side side, uint32_t offset, uint32_t length,
			     uint32_t access)
{
	return (struct vb_mr_init){
		.address = (uintptr_t)p->node[side].memory + offset,
		.length = length,
		.iova = p->node[side].iova + offset,
		.access = access,
	};
}

struct vb_mw *make_mw(struct pair *p, enum side side, enum vb_mw_type type)
{
	struct vb_mw *mw;

	MUST(vb_mw_create(p->node[side].pd, type, &mw));
	REMEMBER(p->node[side].mws, mw);
	return mw;
}

struct vb_ah *make_ah(struct pair *p, enum side side, const struct vb_gid *destination)
{
	struct vb_address address = { .destination = *destination };
	struct vb_ah *ah;

	MUST(vb_ah_create(p->node[side].pd, &address, &ah));
	REMEMBER(p->node[side].ahs, ah);
	return ah;
}

vb_err drop_qp(struct pair *p, enum side side, struct vb_qp *qp)
{
	vb_err err = vb_qp_destroy(qp);

	if (!err)
		FORGET(p->node[side].qps, qp);
	return err;
}

vb_err drop_mr(struct pair *p, enum side side, struct vb_mr *mr)
{
	vb_err err = vb_mr_destroy(mr);

	if (!err)
		FORGET(p->node[side].mrs, mr);
	return err;
}

vb_err drop_mw(struct pair *p, enum side side, struct vb_mw *mw)
{
	vb_err err = vb_mw_destroy(mw);

	if (!err)
		FORGET(p->node[side].mws, mw);
	return err;
}

static void node_destroy(struct node *node)
{
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		if (node->qps[i])
			MUST(vb_qp_destroy(node->qps[i]));
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		if (node->ahs[i])
			MUST(vb_ah_destroy(node->ahs[i]));
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		if (node->mws[i])
			MUST(vb_mw_destroy(node->mws[i]));
	for (uint32_t i = 0; i < OBJECTS_MAX; i++)
		if (node->mrs[i])
			MUST(vb_mr_destroy(node->mrs[i]));
	MUST(vb_mr_destroy(node->mr));
	if (node->srq)
		MUST(vb_srq_destroy(node->srq));
	if (node->xrcd)
		MUST(vb_xrcd_destroy(node->xrcd));
	MUST(vb_cq_destroy(node->send_cq));
	MUST(vb_cq_destroy(node->recv_cq));
	MUST(vb_pd_destroy(node->pd));
	MUST(vb_pd_destroy(node->other_pd));
	MUST(vb_nic_destroy(node->nic));
	free(node->memory);
	free(node->zero_page);
	free(node->device_memory);
	free(node->key_rows);
	free(node->qp_rows);
}

/*
 * Runs at the exit of a test that passed: everything can be destroyed, in whatever state the test
 * left it.
 */
static void pair_end(void)
{
	node_destroy(&pair->node[A]);
	node_destroy(&pair->node[B]);
	free(pair);
}

struct vb_qp_attr attr_towards(struct pair *p, enum side side, enum vb_qp_state state,
			       uint32_t *mask)
{
	const struct setup *setup = &p->setup;
	enum vb_qp_type type = vb_qp_type(p->node[side].qp);
	bool is_connected = type != VB_QP_UD;
	bool is_reliable = is_connected && type != VB_QP_UC;
	bool has_responder = is_reliable && type != VB_QP_XRC_SEND;
	bool has_requester = is_reliable && type != VB_QP_XRC_RECV;
	struct vb_qp_attr attr = {
		.state = state,
		.port = 1,
		.access = setup->qp_access,
		.qkey = QKEY,
		.address = { .destination = p->node[!side].gid },
		.path_mtu = setup->mtu,
		.timeout = setup->timeout,
		.retry_count = setup->retry_count,
		.rnr_retry = setup->rnr_retry,
		.min_rnr_timer = setup->min_rnr_timer,
		.reads_out = setup->reads_out,
		.reads_in = setup->reads_in,
		.rq_psn = { setup->psn[!side] },
		.sq_psn = { setup->psn[side] },
		.destination = vb_qp_number(p->node[!side].qp),
	};

	*mask = VB_ATTR_STATE;
	if (state == VB_STATE_INIT)
		*mask |= VB_ATTR_PKEY_INDEX | VB_ATTR_PORT |
			 (is_connected ? VB_ATTR_ACCESS : VB_ATTR_QKEY);
	if (state == VB_STATE_RTR && is_connected)
		*mask |= VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN;
	if (state == VB_STATE_RTR && has_responder)
		*mask |= VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER;
	if (state == VB_STATE_RTS)
		*mask |= VB_ATTR_SQ_PSN;
	if (state == VB_STATE_RTS && is_reliable)
		*mask |= VB_ATTR_TIMEOUT;
	if (state == VB_STATE_RTS && has_requester)
		*mask |= VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT;
	return attr;
}

void bring_up(struct pair *p, enum side side, struct vb_qp *qp, vb_qpn peer, enum vb_qp_state state)
{
	for (enum vb_qp_state step = VB_STATE_INIT; step <= state; step++) {
		uint32_t mask;
		struct vb_qp_attr attr = attr_towards(p, side, step, &mask);

		attr.destination = peer;
		MUST(vb_qp_modify(qp, &attr, mask));
	}
}

void modify_state(struct pair *p, enum side side, enum vb_qp_state state)
{
	struct vb_qp_attr attr = { .state = state };

	MUST(vb_qp_modify(p->node[side].qp, &attr, VB_ATTR_STATE));
}

void expect_state(struct pair *p, enum side side, enum vb_qp_state state)
{
	EXPECT_STR(vb_qp_state_describe(vb_qp_state(p->node[side].qp)),
		   vb_qp_state_describe(state));
}

struct pair *pair_connect(const struct setup *setup)
{
	struct pair *p = calloc(1, sizeof(*p));

	EXPECT(p && !pair);
	pair = p;
	p->setup = *setup;
	p->now_ns = 1000 * MS;
	node_create(p, A);
	node_create(p, B);
	if (setup->has_srq)
		node_create_srq(p, B);
	p->node[A].qp = make_qp(p, A);
	p->node[B].qp = make_qp(p, B);
	bring_up(p, A, p->node[A].qp, vb_qp_number(p->node[B].qp), setup->state[A]);
	bring_up(p, B, p->node[B].qp, vb_qp_number(p->node[A].qp), setup->state[B]);
	atexit(pair_end);
	return p;
}

static struct pair *connect_type(enum vb_qp_type type, uint32_t mtu)
{
	struct setup setup = setup_of(type, mtu);

	return pair_connect(&setup);
}

struct pair *pair_connect_rc(uint32_t mtu)
{
	return connect_type(VB_QP_RC, mtu);
}

struct pair *pair_connect_uc(uint32_t mtu)
{
	return connect_type(VB_QP_UC, mtu);
}

struct pair *pair_connect_ud(uint32_t mtu)
{
	return connect_type(VB_QP_UD, mtu);
}

struct pair *pair_connect_xrc(uint32_t mtu)
{
	return connect_type(VB_QP_XRC_SEND, mtu);
}
