/* SPDX-License-Identifier: BSD-2-Clause */
/* How the two adapters are made, QPs connected, and packets moved between them. */
#include "support_rig.h"

#include "support_report.h"

#include <string.h>
#include <sys/mman.h>

#define MUST(call) BENCH_CHECK((call) == VB_OK)

enum { KEY_ROWS = 1024, PARTS_MAX = VB_SGE_MAX + 1, SGE_MAX = 2, INLINE_MAX = 32, READS = 16 };

static const uint32_t remote_rights = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ;

/*
 * The timeout is a second: a machine that is busy elsewhere for a moment must not cause
 * repetitions.
 */
enum { TIMEOUT_CODE = 18, RETRIES = 7, RNR_TIMER_CODE = 12 };

static void *map(uint64_t length)
{
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	BENCH_CHECK(memory != MAP_FAILED);
	return memory;
}

static void create_node(struct rig *rig, enum side side)
{
	const struct rig_setup *setup = &rig->setup;
	struct rig_node *node = &rig->node[side];
	struct vb_nic_config config = {
		.key_row_count = KEY_ROWS,
		.qp_row_count = setup->qp_row_count,
		.seed = 1 + side,
		.framing.icrc_mode = VB_ICRC_STRICT,
	};
	struct vb_mr_init mr_init = {
		.length = setup->memory_length,
		.access = VB_ACCESS_LOCAL_WRITE | remote_rights,
	};

	config.key_rows = node->key_rows = map(KEY_ROWS * sizeof(*node->key_rows));
	config.qp_rows = node->qp_rows = map(setup->qp_row_count * sizeof(*node->qp_rows));
	MUST(vb_nic_create(&config, &node->nic));
	node->gid = vb_gid_from_ipv4(0x0a000001u + side);
	MUST(vb_nic_set_gid(node->nic, 0, &node->gid));
	MUST(vb_pd_create(node->nic, &node->pd));
	MUST(vb_cq_create(node->nic, setup->cq_depth, NULL, &node->send_cq));
	MUST(vb_cq_create(node->nic, setup->cq_depth, NULL, &node->recv_cq));
	node->memory = map(setup->memory_length);
	mr_init.address = mr_init.iova = (uintptr_t)node->memory;
	MUST(vb_mr_create(node->pd, &mr_init, &node->mr));
}

static void destroy_node(struct rig *rig, enum side side)
{
	struct rig_node *node = &rig->node[side];

	MUST(vb_mr_destroy(node->mr));
	MUST(vb_cq_destroy(node->recv_cq));
	MUST(vb_cq_destroy(node->send_cq));
	MUST(vb_pd_destroy(node->pd));
	MUST(vb_nic_destroy(node->nic));
	munmap(node->memory, rig->setup.memory_length);
	munmap(node->qp_rows, rig->setup.qp_row_count * sizeof(*node->qp_rows));
	munmap(node->key_rows, KEY_ROWS * sizeof(*node->key_rows));
}

struct rig *rig_create(const struct rig_setup *setup)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	BENCH_CHECK(rig);
	rig->setup = *setup;
	if (!rig->setup.batch)
		rig->setup.batch = RIG_ROUND;
	rig->slots = calloc(rig->setup.batch, sizeof(*rig->slots));
	rig->frames = calloc(rig->setup.batch, sizeof(*rig->frames));
	rig->parts = calloc((size_t)rig->setup.batch * PARTS_MAX, sizeof(*rig->parts));
	BENCH_CHECK(rig->slots && rig->frames && rig->parts);
	create_node(rig, A);
	create_node(rig, B);
	return rig;
}

void rig_destroy(struct rig *rig)
{
	destroy_node(rig, A);
	destroy_node(rig, B);
	free(rig->parts);
	free(rig->frames);
	free(rig->slots);
	free(rig);
}

struct vb_qp *rig_create_qp(struct rig *rig, enum side side)
{
	struct rig_node *node = &rig->node[side];
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = node->send_cq,
		.recv_cq = node->recv_cq,
		.send_depth = rig->setup.send_depth,
		.recv_depth = rig->setup.recv_depth,
		.send_sge_max = SGE_MAX,
		.recv_sge_max = SGE_MAX,
		.inline_max = INLINE_MAX,
	};
	struct vb_qp *qp;

	MUST(vb_qp_create(node->pd, &init, &qp));
	return qp;
}

void rig_bring_up(struct rig *rig, enum side side, struct vb_qp *qp, vb_qpn peer)
{
	struct vb_qp_attr attr = {
		.port = 1,
		.access = remote_rights,
		.address = { .destination = rig->node[!side].gid },
		.path_mtu = rig->setup.mtu,
		.timeout = TIMEOUT_CODE,
		.retry_count = RETRIES,
		.rnr_retry = RETRIES,
		.min_rnr_timer = RNR_TIMER_CODE,
		.reads_in = READS,
		.reads_out = READS,
		.destination = peer,
	};

	attr.state = VB_STATE_INIT;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS));
	attr.state = VB_STATE_RTR;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				  VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER));
	attr.state = VB_STATE_RTS;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				  VB_ATTR_RNR_RETRY | VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT));
}

struct rig_link rig_connect(struct rig *rig)
{
	struct rig_link link = { { rig_create_qp(rig, A), rig_create_qp(rig, B) } };

	rig_bring_up(rig, A, link.qp[A], vb_qp_number(link.qp[B]));
	rig_bring_up(rig, B, link.qp[B], vb_qp_number(link.qp[A]));
	return link;
}

void rig_disconnect(struct rig_link *link)
{
	MUST(vb_qp_destroy(link->qp[A]));
	MUST(vb_qp_destroy(link->qp[B]));
}

/* Makes a slot the frame that arrives: the same bytes, not copied. */
static void make_frame(const struct vb_slot *slot, struct vb_frame *frame, struct vb_bytes *parts)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < slot->span_count; i++)
		parts[count++] =
			(struct vb_bytes){ (const uint8_t *)(uintptr_t)slot->spans[i].address,
					   slot->spans[i].length };
	if (slot->tail_length)
		parts[count++] = (struct vb_bytes){ slot->tail, slot->tail_length };
	*frame = (struct vb_frame){
		.path.ip = slot->path.ip,
		.ip_id = slot->ip_id,
		.head = { slot->head, slot->head_length },
		.rest = parts,
		.rest_count = count,
	};
}

static uint32_t hand_over(struct rig *rig, uint64_t now_ns, enum side from)
{
	struct vb_nic *sender = rig->node[from].nic;
	uint32_t count = vb_nic_transmit(sender, now_ns, rig->slots, rig->setup.batch);

	for (uint32_t i = 0; i < count; i++)
		make_frame(&rig->slots[i], &rig->frames[i], &rig->parts[(size_t)i * PARTS_MAX]);
	vb_nic_receive(rig->node[!from].nic, now_ns, rig->frames, count);
	return count;
}

static void carry(struct rig *rig, uint64_t now_ns, enum side from)
{
	uint32_t count = 0;
	uint32_t more;

	do {
		more = hand_over(rig, now_ns, from);
		count += more;
	} while (more == rig->setup.batch && count < RIG_ROUND);
}

void rig_drive(struct rig *rig)
{
	uint64_t now_ns = clock_now_ns();

	carry(rig, now_ns, A);
	carry(rig, now_ns, B);
	vb_nic_fire_timers(rig->node[A].nic, now_ns);
	vb_nic_fire_timers(rig->node[B].nic, now_ns);
}

void rig_check_clean(const struct rig *rig)
{
	for (enum side side = A; side <= B; side++) {
		const struct vb_counters *counters = vb_nic_counters(rig->node[side].nic);

		for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
			BENCH_CHECK(!counters->drops[i]);
		BENCH_CHECK(!counters->counts[VB_COUNTER_DUPLICATE_REQUEST]);
		BENCH_CHECK(!counters->counts[VB_COUNTER_RNR_NAK_SENT]);
		BENCH_CHECK(!counters->counts[VB_COUNTER_OUT_OF_SEQUENCE]);
	}
}
