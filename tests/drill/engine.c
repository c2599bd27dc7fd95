/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine itself as the peer, in the memory of this process. Its time passes only when a script
 * waits, and then from deadline to deadline, so every script plays in an instant and always in the
 * same way.
 */
#include "drill/actor.h"
#include "drill/peer.h"
#include "drill/support_player.h"

#include "harness.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <stdlib.h>

enum { TABLE_ROWS = 1 << 10, PAGE = 4096, SENT_MAX = 64, HELD_MAX = 8 };

#define SILENCE_NS 1000000000ull
#define ACCESS_ALL                                                                \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC)
#define MUST(call) EXPECT_EQ(call, VB_OK)

static struct vb_gid drill_gid;
static struct vb_key_row key_rows[TABLE_ROWS];
static struct vb_qp_row qp_rows[TABLE_ROWS];
static _Alignas(PAGE) uint8_t zero_page[PAGE];
static struct vb_nic *nic;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_mr *mr;
static struct vb_qp *qp;
static struct vb_ah *ah; /* to the drill */
static uint64_t now_ns = 1000000000;
static struct made_packet sent[SENT_MAX]; /* sent by the engine, not yet taken by the script */
static uint32_t sent_first, sent_end;
static struct made_packet held[HELD_MAX]; /* sent by the drill, not yet received by the engine */
static uint32_t held_count;
static bool is_held;

const char *peer_kind(void)
{
	return "ours";
}

uint64_t peer_now_ns(void)
{
	return now_ns;
}

bool peer_time_is_ours(void)
{
	return true;
}

uint64_t peer_silence_ns(void)
{
	return SILENCE_NS;
}

/* The wire */

static void keep_sent(const struct vb_slot *slot)
{
	struct made_packet *packet = &sent[sent_end++ % SENT_MAX];

	EXPECT(sent_end - sent_first <= SENT_MAX);
	packet->flow = slot->path.ip;
	packet->ip_id = slot->ip_id;
	packet->length = slot->length;
	EXPECT(vb_slot_gather(slot, packet->bytes));
}

/* Takes everything that the engine has to send now. */
static void drive(void)
{
	static struct vb_slot slot;

	do {
		while (vb_nic_transmit(nic, now_ns, &slot, 1))
			keep_sent(&slot);
	} while (vb_nic_has_work(nic));
}

static void receive(const struct made_packet *made, uint32_t count)
{
	struct vb_frame frames[HELD_MAX];

	for (uint32_t i = 0; i < count; i++)
		frames[i] = (struct vb_frame){
			.path.ip = made[i].flow,
			.ip_id = made[i].ip_id,
			.head = { made[i].bytes, made[i].length },
		};
	vb_nic_receive(nic, now_ns, frames, count);
	drive();
}

void peer_send(const struct made_packet *packet)
{
	if (!is_held) {
		receive(packet, 1);
		return;
	}
	EXPECT(held_count < HELD_MAX);
	held[held_count++] = *packet;
}

void peer_hold(void)
{
	is_held = true;
}

void peer_release(void)
{
	is_held = false;
	receive(held, held_count);
	held_count = 0;
}

/* Moves to the next deadline, or to the end of the time; false if the end was reached. */
static bool pass_time(uint64_t end_ns)
{
	uint64_t deadline_ns = vb_nic_deadline(nic);
	bool is_over = deadline_ns > end_ns;

	now_ns = is_over ? end_ns : deadline_ns > now_ns ? deadline_ns : now_ns;
	vb_nic_fire_timers(nic, now_ns);
	drive();
	return !is_over;
}

bool peer_receive(struct made_packet *made, bool *is_id_known, uint64_t ns)
{
	uint64_t end_ns = now_ns + ns;

	while (sent_first == sent_end && pass_time(end_ns))
		;
	if (sent_first == sent_end)
		return false;
	*made = sent[sent_first++ % SENT_MAX];
	*is_id_known = true;
	return true;
}

void peer_wait(uint64_t ns)
{
	uint64_t end_ns = now_ns + ns;

	while (pass_time(end_ns))
		;
}

/* Orders */

void actor_create(enum ibv_qp_type service, uint32_t *qpn, uint32_t *rkey)
{
	struct vb_address address = { .destination = drill_gid };
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)region,
		.length = REGION_LENGTH,
		.iova = (uintptr_t)region,
		.access = ACCESS_ALL,
	};
	struct vb_qp_init qp_init = {
		.type = (enum vb_qp_type)service,
		.send_depth = QUEUE_DEPTH,
		.recv_depth = QUEUE_DEPTH,
		.send_sge_max = 1,
		.recv_sge_max = 1,
	};

	MUST(vb_pd_create(nic, &pd));
	MUST(vb_cq_create(nic, 4 * QUEUE_DEPTH, NULL, &cq));
	MUST(vb_mr_create(pd, &mr_init, &mr));
	MUST(vb_ah_create(pd, &address, &ah));
	qp_init.send_cq = qp_init.recv_cq = cq;
	MUST(vb_qp_create(pd, &qp_init, &qp));
	*qpn = vb_qp_number(qp).v;
	*rkey = vb_mr_key(mr);
}

void actor_destroy(void)
{
	MUST(vb_qp_destroy(qp));
	MUST(vb_ah_destroy(ah));
	MUST(vb_mr_destroy(mr));
	MUST(vb_cq_destroy(cq));
	MUST(vb_pd_destroy(pd));
}

bool actor_modify(enum ibv_qp_state state, const struct order_attr *wanted, int mask)
{
	struct vb_qp_attr attr = {
		.state = (enum vb_qp_state)state,
		.port = 1,
		.access = wanted->access,
		.qkey = wanted->qkey,
		.address = { .destination = drill_gid },
		.path_mtu = wanted->mtu,
		.timeout = wanted->timeout,
		.retry_count = wanted->retry,
		.rnr_retry = wanted->rnr_retry,
		.min_rnr_timer = wanted->min_rnr,
		.reads_out = wanted->reads_out,
		.reads_in = wanted->reads_in,
		.rq_psn = { wanted->rq_psn },
		.sq_psn = { wanted->sq_psn },
		.destination = { DRILL_QPN },
	};

	return !vb_qp_modify(qp, &attr, (uint32_t)mask);
}

enum ibv_qp_state actor_state(void)
{
	return (enum ibv_qp_state)vb_qp_state(qp);
}

static struct vb_sge buffer_of(const struct order_post *post)
{
	return (struct vb_sge){
		.address = (uintptr_t)region + post->offset,
		.length = post->length,
		.lkey = vb_mr_key(mr),
	};
}

bool actor_post_recv(const struct order_post *post)
{
	struct vb_sge sge = buffer_of(post);
	struct vb_recv_request request = {
		.wr_id = post->number,
		.sges = &sge,
		.sge_count = 1,
	};

	return !vb_qp_post_recv(qp, &request);
}

bool actor_post_send(const struct order_post *post)
{
	struct vb_sge sge = buffer_of(post);
	struct vb_send_request request = {
		.wr_id = post->number,
		.opcode = (enum vb_wr_opcode)post->opcode,
		.flags = VB_SEND_SIGNALED | (post->is_fenced ? VB_SEND_FENCE : 0),
		.sges = &sge,
		.sge_count = 1,
		.imm = post->imm,
		.remote_address = DRILL_ADDRESS,
		.rkey = DRILL_RKEY,
		.compare_add = post->compare_add,
		.swap = post->swap,
		.ah = ah,
		.remote_qpn = DRILL_QPN,
		.remote_qkey = post->qkey,
	};
	vb_err err = vb_qp_post_send(qp, &request);

	if (!err)
		vb_qp_publish_and_ring(qp);
	return !err;
}

bool actor_poll(struct ibv_wc *done)
{
	struct vb_completion completion;

	if (!vb_cq_poll(cq, &completion, 1))
		return false;
	*done = (struct ibv_wc){
		.wr_id = completion.wr_id,
		.status = (enum ibv_wc_status)completion.status,
		.opcode = (enum ibv_wc_opcode)completion.opcode,
		.byte_len = completion.byte_length,
		.imm_data = completion.imm,
		.src_qp = completion.source_qpn,
		.wc_flags = completion.flags,
	};
	return true;
}

const char *peer_order(const char *order)
{
	const char *said = obey(order);

	drive();
	return said;
}

/* Beginning and end */

static void peer_close(void)
{
	obey_no_more();
	MUST(vb_nic_destroy(nic));
}

void peer_open(struct vb_gid *drill, struct vb_gid *peer)
{
	struct vb_nic_config config = {
		.key_rows = key_rows,
		.key_row_count = TABLE_ROWS,
		.qp_rows = qp_rows,
		.qp_row_count = TABLE_ROWS,
		.seed = 1,
		.qpn_first = 0x100,
		.zero_page = (uintptr_t)zero_page,
		.framing.icrc_mode = VB_ICRC_STRICT,
	};

	*drill = drill_gid = vb_gid_from_ipv4(0x0a4d0001);
	*peer = vb_gid_from_ipv4(0x0a4d0002);
	MUST(vb_nic_create(&config, &nic));
	MUST(vb_nic_set_gid(nic, 0, peer));
	MUST(vb_nic_set_pkey(nic, 0, VB_PKEY_DEFAULT));
	atexit(peer_close);
}

__attribute__((constructor)) static void register_scripts(void)
{
	player_register_scripts();
}
