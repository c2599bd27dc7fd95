/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The engine itself as the peer, in this process's memory. Its time passes only when a script waits, and then from deadline
 * to deadline, so every script plays in an instant and always in the same way.
 */
#include "drill/peer.h"
#include "drill/support_order.h"
#include "drill/support_player.h"

#include "harness.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_ROWS = 1 << 10, PAGE = 4096, SENT_MAX = 64 };

#define SILENCE_NS 1000000000ull
#define ACCESS_ALL                                                                \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC)
#define MUST(call) EXPECT_EQ(call, VB_OK)

static struct vb_gid own_gid, drill_gid;
static struct vb_key_row key_rows[TABLE_ROWS];
static struct vb_qp_row qp_rows[TABLE_ROWS];
static _Alignas(PAGE) uint8_t zero_page[PAGE];
static _Alignas(PAGE) uint8_t region[REGION_LENGTH];
static struct vb_nic *nic;
static struct vb_pd *pd;
static struct vb_cq *cq;
static struct vb_mr *mr;
static struct vb_qp *qp;
static uint64_t now_ns = 1000000000;
static struct made_packet sent[SENT_MAX]; /* by the engine, not taken by the script yet */
static uint32_t sent_first, sent_end;
static char answer[ORDER_MAX];

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
	packet->flow = slot->flow;
	packet->ip_id = slot->ip_id;
	packet->length = slot->length;
	EXPECT(vb_slot_gather(slot, packet->bytes));
}

/* Whatever it has to send now. */
static void drive(void)
{
	static struct vb_slot slot;

	do {
		while (vb_nic_transmit(nic, now_ns, &slot, 1))
			keep_sent(&slot);
	} while (vb_nic_has_work(nic));
}

void peer_send(const struct made_packet *packet)
{
	struct vb_frame frame = {
		.flow = packet->flow,
		.ip_id = packet->ip_id,
		.head = { packet->bytes, packet->length },
	};

	vb_nic_receive(nic, now_ns, &frame, 1);
	drive();
}

/* To the next deadline, or to the end of the time; false if that was reached. */
static bool pass_time(uint64_t end_ns)
{
	uint64_t deadline_ns = vb_nic_deadline(nic);
	bool is_over = deadline_ns > end_ns;

	now_ns = is_over ? end_ns : deadline_ns > now_ns ? deadline_ns : now_ns;
	vb_nic_expire(nic, now_ns);
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

static void connect_qp(const char *order)
{
	static const uint32_t masks[] = {
		[VB_STATE_INIT] = VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS,
		[VB_STATE_RTR] = VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				 VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER,
		[VB_STATE_RTS] = VB_ATTR_SQ_PSN | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				 VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT,
	};
	struct order_attr wanted = order_attr(order);
	struct vb_qp_attr attr = {
		.port = 1,
		.access = wanted.access,
		.address = { .destination = drill_gid },
		.path_mtu = wanted.mtu,
		.timeout = wanted.timeout,
		.retry_count = wanted.retry,
		.rnr_retry = wanted.rnr_retry,
		.min_rnr_timer = wanted.min_rnr,
		.reads_out = wanted.reads_out,
		.reads_in = wanted.reads_in,
		.rq_psn = { wanted.rq_psn },
		.sq_psn = { wanted.sq_psn },
		.destination = { DRILL_QPN },
	};

	for (attr.state = VB_STATE_INIT; attr.state <= VB_STATE_RTS; attr.state++)
		MUST(vb_qp_modify(qp, &attr, VB_ATTR_STATE | masks[attr.state]));
}

static void reset_qp(void)
{
	struct vb_qp_attr attr = { .state = VB_STATE_RESET };

	MUST(vb_qp_modify(qp, &attr, VB_ATTR_STATE));
}

static vb_err post_recv(const struct order_post *post, const struct vb_sge *sge)
{
	struct vb_recv_request request = {
		.wr_id = post->number,
		.sges = sge,
		.sge_count = 1,
	};

	return vb_qp_post_recv(qp, &request);
}

static vb_err post_send(const struct order_post *post, const struct vb_sge *sge)
{
	static const enum vb_wr_opcode opcodes[] = {
		[ORDER_SEND] = VB_WR_SEND,
		[ORDER_SEND_IMM] = VB_WR_SEND_IMM,
		[ORDER_WRITE] = VB_WR_WRITE,
		[ORDER_WRITE_IMM] = VB_WR_WRITE_IMM,
		[ORDER_READ] = VB_WR_READ,
		[ORDER_FETCH_ADD] = VB_WR_FETCH_ADD,
		[ORDER_COMPARE_SWAP] = VB_WR_COMPARE_SWAP,
	};
	struct vb_send_request request = {
		.wr_id = post->number,
		.opcode = opcodes[post->operation],
		.flags = VB_SEND_SIGNALED | (post->is_fenced ? VB_SEND_FENCE : 0),
		.sges = sge,
		.sge_count = 1,
		.imm = post->imm,
		.remote_address = DRILL_ADDRESS,
		.rkey = DRILL_RKEY,
		.compare_add = post->compare_add,
		.swap = post->swap,
	};
	vb_err err = vb_qp_post_send(qp, &request);

	if (!err)
		vb_qp_ring_send(qp);
	return err;
}

static const char *post(const char *order)
{
	struct order_post wanted = order_post(order);
	struct vb_sge sge = {
		.address = (uintptr_t)region + wanted.offset,
		.length = wanted.length,
		.lkey = vb_mr_key(mr),
	};
	vb_err err;

	if (wanted.operation == ORDER_UNKNOWN)
		return "no: what is to be posted?";
	err = wanted.operation == ORDER_RECV ? post_recv(&wanted, &sge) : post_send(&wanted, &sge);
	return err ? "no: posting was refused" : "done";
}

static const char *poll_one(void)
{
	struct vb_completion done;
	int used;

	if (!vb_cq_poll(cq, &done, 1))
		return "none";
	used = snprintf(answer, sizeof(answer), "wr=%" PRIu64 " %s", done.wr_id,
			vb_status_describe(done.status));
	if (done.status != VB_STATUS_SUCCESS)
		return answer;
	used += snprintf(answer + used, sizeof(answer) - (size_t)used, " %s",
			 vb_completion_opcode_describe(done.opcode));
	if (!done.is_receive)
		return answer;
	used += snprintf(answer + used, sizeof(answer) - (size_t)used, " len=%u", done.byte_length);
	if (done.flags & VB_COMPLETION_HAS_IMM)
		snprintf(answer + used, sizeof(answer) - (size_t)used, " imm=0x%x", done.imm);
	return answer;
}

static const char *store_word(const char *order)
{
	uint64_t word = order_value(order, "word", 0);

	memcpy(region + order_value(order, "offset", 0) % (REGION_LENGTH - 7), &word, sizeof(word));
	return "done";
}

static const char *load_bytes(const char *order)
{
	uint32_t offset = (uint32_t)order_value(order, "offset", 0) % (REGION_LENGTH - LOAD_MAX);
	uint32_t length = (uint32_t)order_value(order, "len", 0) % (LOAD_MAX + 1);

	order_answer_bytes(answer, region + offset, length);
	return answer;
}

static const char *obey(const char *order)
{
	if (order_begins(order, "post"))
		return post(order);
	if (order_begins(order, "poll"))
		return poll_one();
	if (order_begins(order, "state"))
		return vb_qp_state_describe(vb_qp_state(qp));
	if (order_begins(order, "store"))
		return store_word(order);
	if (order_begins(order, "load"))
		return load_bytes(order);
	if (order_begins(order, "reset"))
		reset_qp();
	else if (order_begins(order, "connect"))
		connect_qp(order);
	else
		return "no: there is no such order";
	return "done";
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
	MUST(vb_qp_destroy(qp));
	MUST(vb_mr_destroy(mr));
	MUST(vb_cq_destroy(cq));
	MUST(vb_pd_destroy(pd));
	MUST(vb_nic_destroy(nic));
}

static void create_nic(void)
{
	struct vb_nic_config config = {
		.key_rows = key_rows,
		.key_row_count = TABLE_ROWS,
		.qp_rows = qp_rows,
		.qp_row_count = TABLE_ROWS,
		.seed = 1,
		.qpn_first = 0x100,
		.zero_page = (uintptr_t)zero_page,
		.icrc_mode = VB_ICRC_STRICT,
	};

	MUST(vb_nic_create(&config, &nic));
	MUST(vb_nic_set_gid(nic, 0, &own_gid));
	MUST(vb_nic_set_pkey(nic, 0, VB_PKEY_DEFAULT));
}

static void create_objects(void)
{
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)region,
		.length = REGION_LENGTH,
		.iova = (uintptr_t)region,
		.access = ACCESS_ALL,
	};
	struct vb_qp_init qp_init = {
		.type = VB_QP_RC,
		.send_depth = QUEUE_DEPTH,
		.recv_depth = QUEUE_DEPTH,
		.send_sge_max = 1,
		.recv_sge_max = 1,
	};

	MUST(vb_pd_create(nic, &pd));
	MUST(vb_cq_create(nic, 4 * QUEUE_DEPTH, NULL, &cq));
	MUST(vb_mr_create(pd, &mr_init, &mr));
	qp_init.send_cq = qp_init.recv_cq = cq;
	MUST(vb_qp_create(pd, &qp_init, &qp));
}

void peer_open(const char *order, struct packet_usual *usual)
{
	own_gid = vb_gid_from_ipv4(0x0a4d0002);
	drill_gid = vb_gid_from_ipv4(0x0a4d0001);
	pattern_fill(region);
	create_nic();
	create_objects();
	connect_qp(order);
	atexit(peer_close);
	*usual = (struct packet_usual){
		.source = drill_gid,
		.destination = own_gid,
		.source_port = DRILL_SOURCE_PORT,
		.qpn = vb_qp_number(qp),
		.address = (uintptr_t)region,
		.rkey = vb_mr_key(mr),
	};
}

__attribute__((constructor)) static void register_scripts(void)
{
	player_register_scripts();
}
