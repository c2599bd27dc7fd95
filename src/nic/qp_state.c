/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The QP state table: which transitions there are, and which attributes each requires and permits.
 * Its form allows comparison with the table in the specification (IBA 11.2.5.2, table 96; for XRC
 * annex A14, table 9) and in ibv_modify_qp(3).
 */
#include "nic/qp_priv.h"
#include "nic/rc_priv.h"

#include "base/bytes.h"

#define PKEY VB_ATTR_PKEY_INDEX
#define PORT VB_ATTR_PORT
#define QKEY VB_ATTR_QKEY
#define ACCESS VB_ATTR_ACCESS
#define ADDRESS VB_ATTR_ADDRESS
#define MTU VB_ATTR_PATH_MTU
#define DEST VB_ATTR_DESTINATION
#define RQ_PSN VB_ATTR_RQ_PSN
#define SQ_PSN VB_ATTR_SQ_PSN
#define READS_IN VB_ATTR_READS_IN
#define READS_OUT VB_ATTR_READS_OUT
#define MIN_RNR VB_ATTR_MIN_RNR_TIMER
#define TIMEOUT VB_ATTR_TIMEOUT
#define RETRY VB_ATTR_RETRY_COUNT
#define RNR VB_ATTR_RNR_RETRY
#define ALT VB_ATTR_ALT_PATH
#define MIG VB_ATTR_MIGRATION
#define CUR VB_ATTR_CUR_STATE
#define NOTIFY VB_ATTR_SQD_NOTIFY

struct transition {
	uint8_t from;
	uint8_t to;
	uint32_t required;
	uint32_t optional;
};

#define ROW(from, to, required, optional)                          \
	{                                                          \
		VB_STATE_##from, VB_STATE_##to, required, optional \
	}

/* clang-format off */
static const struct transition rc_transitions[] = {
	ROW(RESET, INIT, PKEY | PORT | ACCESS,                                  0),
	ROW(INIT,  INIT, 0,                                                     PKEY | PORT | ACCESS),
	ROW(INIT,  RTR,  ADDRESS | MTU | DEST | RQ_PSN | READS_IN | MIN_RNR,    ALT | ACCESS | PKEY),
	ROW(RTR,   RTS,  TIMEOUT | RETRY | RNR | SQ_PSN | READS_OUT,            CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(RTS,   RTS,  0,                                                     CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(RTS,   SQD,  0,                                                     NOTIFY),
	ROW(SQD,   RTS,  0,                                                     CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(SQD,   SQD,  0,      PORT | ADDRESS | TIMEOUT | RETRY | RNR | READS_OUT | READS_IN | ALT | ACCESS |
				 PKEY | MIN_RNR | MIG),
};

static const struct transition xrc_send_transitions[] = {
	ROW(RESET, INIT, PKEY | PORT | ACCESS,                                  0),
	ROW(INIT,  INIT, 0,                                                     PKEY | PORT | ACCESS),
	ROW(INIT,  RTR,  ADDRESS | MTU | DEST | RQ_PSN,                         ALT | ACCESS | PKEY),
	ROW(RTR,   RTS,  TIMEOUT | RETRY | RNR | SQ_PSN | READS_OUT,            CUR | ALT | ACCESS | MIG),
	ROW(RTS,   RTS,  0,                                                     CUR | ALT | ACCESS | MIG),
	ROW(RTS,   SQD,  0,                                                     NOTIFY),
	ROW(SQD,   RTS,  0,                                                     CUR | ALT | ACCESS | MIG),
	ROW(SQD,   SQD,  0,      PORT | ADDRESS | TIMEOUT | RETRY | RNR | READS_OUT | ALT | ACCESS | PKEY | MIG),
};

static const struct transition xrc_recv_transitions[] = {
	ROW(RESET, INIT, PKEY | PORT | ACCESS,                                  0),
	ROW(INIT,  INIT, 0,                                                     PKEY | PORT | ACCESS),
	ROW(INIT,  RTR,  ADDRESS | MTU | DEST | RQ_PSN | READS_IN | MIN_RNR,    ALT | ACCESS | PKEY),
	ROW(RTR,   RTS,  TIMEOUT | SQ_PSN,                                      CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(RTS,   RTS,  0,                                                     CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(RTS,   SQD,  0,                                                     NOTIFY),
	ROW(SQD,   RTS,  0,                                                     CUR | ALT | ACCESS | MIN_RNR | MIG),
	ROW(SQD,   SQD,  0,      PORT | ADDRESS | TIMEOUT | READS_IN | ALT | ACCESS | PKEY | MIN_RNR | MIG),
};

static const struct transition uc_transitions[] = {
	ROW(RESET, INIT, PKEY | PORT | ACCESS,                                  0),
	ROW(INIT,  INIT, 0,                                                     PKEY | PORT | ACCESS),
	ROW(INIT,  RTR,  ADDRESS | MTU | DEST | RQ_PSN,                         ALT | ACCESS | PKEY),
	ROW(RTR,   RTS,  SQ_PSN,                                                CUR | ALT | ACCESS | MIG),
	ROW(RTS,   RTS,  0,                                                     CUR | ALT | ACCESS | MIG),
	ROW(RTS,   SQD,  0,                                                     NOTIFY),
	ROW(SQD,   RTS,  0,                                                     CUR | ALT | ACCESS | MIG),
	ROW(SQD,   SQD,  0,                                                     ADDRESS | ALT | ACCESS | PKEY | MIG),
	ROW(SQE,   RTS,  0,                                                     CUR | ACCESS),
};

static const struct transition ud_transitions[] = {
	ROW(RESET, INIT, PKEY | PORT | QKEY,                                    0),
	ROW(INIT,  INIT, 0,                                                     PKEY | PORT | QKEY),
	ROW(INIT,  RTR,  0,                                                     PKEY | QKEY),
	ROW(RTR,   RTS,  SQ_PSN,                                                CUR | QKEY),
	ROW(RTS,   RTS,  0,                                                     CUR | QKEY),
	ROW(RTS,   SQD,  0,                                                     NOTIFY),
	ROW(SQD,   RTS,  0,                                                     CUR | QKEY),
	ROW(SQD,   SQD,  0,                                                     PKEY | QKEY),
	ROW(SQE,   RTS,  0,                                                     CUR | QKEY),
};
/* clang-format on */

#define TABLE(rows)                                    \
	{                                              \
		rows, sizeof(rows) / sizeof((rows)[0]) \
	}

static const struct table {
	const struct transition *rows;
	size_t count;
} rc_table = TABLE(rc_transitions), xrc_send_table = TABLE(xrc_send_transitions),
  xrc_recv_table = TABLE(xrc_recv_transitions), uc_table = TABLE(uc_transitions),
  ud_table = TABLE(ud_transitions);

static const struct table *table_of(enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_RC:
		return &rc_table;
	case VB_QP_XRC_SEND:
		return &xrc_send_table;
	case VB_QP_XRC_RECV:
		return &xrc_recv_table;
	case VB_QP_UC:
		return &uc_table;
	case VB_QP_UD:
		break;
	}
	return &ud_table;
}

static struct vb_qp_refusal check_transition(const struct vb_qp *qp, enum vb_qp_state to,
					     uint32_t mask)
{
	const struct table *table = table_of((enum vb_qp_type)qp->type);
	enum vb_qp_state from = vb_qp_state_now(qp);
	uint32_t given = mask & ~(uint32_t)VB_ATTR_STATE;

	/* From any state, with no other attribute. */
	if (to == VB_STATE_RESET || to == VB_STATE_ERR) {
		given &= ~(uint32_t)VB_ATTR_CUR_STATE;
		return (struct vb_qp_refusal){ .err = given ? VB_EINVAL : VB_OK, .excess = given };
	}
	for (size_t i = 0; i < table->count; i++) {
		const struct transition *row = &table->rows[i];
		struct vb_qp_refusal refusal = {
			.missing = row->required & ~given,
			.excess = given & ~(row->required | row->optional),
		};

		if (row->from != from || row->to != to)
			continue;
		if (refusal.missing || refusal.excess)
			refusal.err = VB_EINVAL;
		return refusal;
	}
	return (struct vb_qp_refusal){ .err = VB_EINVAL };
}

static bool is_mtu(const struct vb_nic *nic, uint32_t mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1)) && mtu <= nic->config.port_mtu;
}

/*
 * One attribute with its maximum or, where the limit is not a number, whether the value is wrong.
 */
struct rule {
	uint32_t attribute;
	uint64_t value;
	uint64_t limit;
	bool is_wrong;
};

static struct vb_qp_refusal check_rules(const struct rule *rules, size_t count, uint32_t mask)
{
	for (size_t i = 0; i < count; i++)
		if (mask & rules[i].attribute && rules[i].is_wrong)
			return (struct vb_qp_refusal){
				.err = VB_EINVAL,
				.wrong = rules[i].attribute,
				.value = rules[i].value,
				.limit = rules[i].limit,
			};
	return (struct vb_qp_refusal){ .err = VB_OK };
}

#define AT_MOST(attribute, value, limit)                   \
	{                                                  \
		attribute, value, limit, (value) > (limit) \
	}

static struct vb_qp_refusal check_values(const struct vb_qp *qp, const struct vb_qp_attr *attr,
					 uint32_t mask)
{
	const struct vb_nic *nic = qp->nic;
	/* The rights of a region may be given unchanged. */
	const uint32_t rights = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE |
				VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC |
				VB_ACCESS_MW_BIND | VB_ACCESS_ZERO_BASED | VB_ACCESS_ON_DEMAND |
				VB_ACCESS_HUGETLB | VB_ACCESS_OPTIONAL;
	enum vb_qp_state now = vb_qp_state_now(qp);
	struct vb_flow flow;
	const struct rule rules[] = {
		{ CUR, attr->current_state, now, attr->current_state != now },
		{ PKEY, attr->pkey_index, 0, !vb_nic_pkey(nic, attr->pkey_index) },
		{ PORT, attr->port, 1, attr->port != 1 },
		{ ACCESS, attr->access, rights, attr->access & ~rights },
		{ ADDRESS, attr->address.source_index, VB_GID_COUNT - 1,
		  mask & ADDRESS && !vb_nic_fill_flow(nic, &attr->address, &flow) },
		{ MTU, attr->path_mtu, nic->config.port_mtu, !is_mtu(nic, attr->path_mtu) },
		AT_MOST(TIMEOUT, attr->timeout, 31),
		AT_MOST(RETRY, attr->retry_count, 7),
		AT_MOST(RNR, attr->rnr_retry, 7),
		AT_MOST(MIN_RNR, attr->min_rnr_timer, 31),
		AT_MOST(READS_OUT, attr->reads_out, nic->limits.reads),
		AT_MOST(READS_IN, attr->reads_in, nic->limits.reads),
		AT_MOST(DEST, attr->destination.v, VB_QPN_MASK),
	};

	if (mask & ALT || (mask & MIG && attr->migration)) /* path migration is not advertised */
		return (struct vb_qp_refusal){ .err = VB_EOPNOTSUPP, .wrong = mask & (ALT | MIG) };
	return check_rules(rules, sizeof(rules) / sizeof(rules[0]), mask);
}

struct vb_qp_refusal vb_qp_check_modify(const struct vb_qp *qp, const struct vb_qp_attr *attr,
					uint32_t mask)
{
	enum vb_qp_state to = mask & VB_ATTR_STATE ? attr->state : vb_qp_state_now(qp);
	struct vb_qp_refusal refusal = check_transition(qp, to, mask);

	if (mask & VB_ATTR_CAPACITY) /* resizing is not advertised */
		return (struct vb_qp_refusal){ .err = VB_EOPNOTSUPP, .wrong = VB_ATTR_CAPACITY };
	return refusal.err ? refusal : check_values(qp, attr, mask);
}

/* Takes over the given attributes. Nothing here can fail. */
static void apply(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	struct vb_qp_attr *own = &qp->attr;

	if (mask & PKEY)
		own->pkey_index = attr->pkey_index;
	if (mask & PORT)
		own->port = attr->port;
	if (mask & QKEY)
		own->qkey = attr->qkey;
	if (mask & ACCESS)
		own->access = attr->access;
	if (mask & NOTIFY)
		own->sqd_notify = attr->sqd_notify;
	if (mask & MTU) {
		own->path_mtu = attr->path_mtu;
		qp->mtu_shift = (uint8_t)__builtin_ctz(attr->path_mtu);
	}
	if (mask & DEST)
		qp->peer = own->destination = attr->destination;
	if (mask & ADDRESS) {
		own->address = attr->address;
		vb_nic_fill_flow(qp->nic, &attr->address, &qp->path.ip);
		qp->responder.headers = vb_headers_of(&qp->path.ip);
		qp->initiator.memo.right = 0; /* it holds for the old addresses */
	}
	if (mask & (ADDRESS | DEST))
		qp->path.ip.source_port =
			vb_nic_source_port(qp->nic, own->address.flow_label, qp->number, qp->peer);
	if (mask & RQ_PSN) {
		own->rq_psn.v = attr->rq_psn.v & VB_PSN_MASK;
		qp->responder.expected = own->rq_psn;
		qp->responder.ack_psn = vb_psn_add(own->rq_psn, VB_PSN_MASK);
	}
	if (mask & SQ_PSN) {
		own->sq_psn.v = attr->sq_psn.v & VB_PSN_MASK;
		qp->requester.next_psn = own->sq_psn;
		qp->requester.new_psn = own->sq_psn;
		qp->requester.unacked = own->sq_psn;
		qp->requester.next_ssn = 1;
	}
	if (mask & READS_OUT)
		own->reads_out = attr->reads_out;
	if (mask & READS_IN)
		own->reads_in = attr->reads_in;
	if (mask & MIN_RNR)
		own->min_rnr_timer = attr->min_rnr_timer;
	if (mask & TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & RETRY)
		qp->requester.retries_left = own->retry_count = attr->retry_count;
	if (mask & RNR)
		qp->requester.rnr_retries_left = own->rnr_retry = attr->rnr_retry;
	if (mask & (ADDRESS | DEST | MTU | TIMEOUT))
		vb_flight_enter(qp);
}

void vb_qp_fill_path(struct vb_qp *qp)
{
	qp->path.kind = VB_PATH_IP;
	vb_nic_fill_flow(qp->nic, &qp->attr.address, &qp->path.ip);
	qp->path.ip.source_port =
		vb_nic_source_port(qp->nic, qp->attr.address.flow_label, qp->number, qp->peer);
}

static void enter(struct vb_qp *qp, enum vb_qp_state to)
{
	switch (to) {
	case VB_STATE_RESET:
		vb_qp_reset(qp);
		qp->attr = (struct vb_qp_attr){ 0 };
		qp->path = (struct vb_path){ 0 };
		qp->peer.v = 0;
		vb_qp_publish_row(qp);
		break;
	case VB_STATE_ERR:
		vb_qp_enter_error(qp);
		break;
	case VB_STATE_SQD:
		if (vb_qp_state_now(qp) != VB_STATE_SQD)
			qp->requester.has_raised_drained = false;
		vb_qp_set_state(qp, to);
		vb_rc_report_drained(qp);
		break;
	case VB_STATE_RTS:
		vb_qp_set_state(qp, to);
		vb_qp_schedule(qp);
		break;
	case VB_STATE_INIT:
	case VB_STATE_RTR:
	case VB_STATE_SQE:
		vb_qp_set_state(qp, to);
		break;
	}
}

vb_err vb_qp_modify(struct vb_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	enum vb_qp_state to = mask & VB_ATTR_STATE ? attr->state : vb_qp_state_now(qp);
	vb_err err = vb_qp_check_modify(qp, attr, mask).err;

	if (!err && mask & READS_IN)
		err = vb_rc_resize_resources(qp, attr->reads_in);
	if (err)
		return err;
	if (to == VB_STATE_SQD && vb_qp_state_now(qp) != VB_STATE_SQD)
		qp->attr.sqd_notify = false; /* unless this transition itself asks for it */
	apply(qp, attr, mask);
	enter(qp, to);
	vb_nic_fail_overruns(qp->nic);
	return VB_OK;
}

void vb_qp_query(const struct vb_qp *qp, struct vb_qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->current_state = vb_qp_state_now(qp);
	attr->is_draining = attr->state == VB_STATE_SQD && !vb_rc_is_drained(qp);
	attr->rq_psn = qp->responder.expected;
	attr->sq_psn = qp->requester.new_psn;
}
