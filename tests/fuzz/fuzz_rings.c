/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All calls by which a program can affect an adapter: objects of every kind made and destroyed in
 * any order, QPs moved anywhere with any attributes, requests posted, rung and aborted, CQs polled,
 * armed and resized; what is sent comes back to the same adapter or is lost.
 *
 * A small model keeps count. Each request that was rung completes exactly once, those of a queue in
 * order, on the right CQ; posting returns VB_ENOMEM exactly when the queue is full; an object with
 * children returns VB_EBUSY and no other object does; a failed modify changes nothing; in the end
 * nothing is left.
 */
#include "fuzz.h"
#include "support_rings.h"

/* --- posting ---------------------------------------------------------------------------------- */

static uint32_t input_key(struct input *input)
{
	uint32_t choice = input_8(input);

	if (choice & 0x80 && model.mws[choice % MW_MAX].mw)
		return vb_mw_key(model.mws[choice % MW_MAX].mw);
	return model.mrs[choice % MR_MAX].mr ? vb_mr_key(model.mrs[choice % MR_MAX].mr) : choice;
}

static struct vb_sge input_sge(struct input *input)
{
	uint32_t style = input_8(input);

	return (struct vb_sge){
		.address = style & 1 ? 0x1000 : 0,
		.length = (style >> 1) * 4,
		.lkey = input_key(input),
	};
}

/* The queue took the request, or returned the reason. Only a full queue returns VB_ENOMEM. */
static void check_posted(struct queue *queue, uint32_t freed, vb_err err, struct request *request)
{
	bool is_full = queue->staged - freed >= queue->depth;

	REQUIRE(err != VB_ENOMEM || is_full);
	if (err) {
		request->state = DONE;
		return;
	}
	REQUIRE(!is_full);
	request->sequence = queue->staged;
	queue->ids[queue->staged++] = (uint16_t)(request - model.requests);
}

static void fill_bind(struct input *input, struct vb_send_request *send)
{
	struct mw *mw = PICK(input, model.mws, mw);
	struct mr *mr = PICK(input, model.mrs, mr);
	uint32_t style = input_8(input);

	if (!mw)
		return;
	send->bind = (struct vb_bind){
		.mw = mw->mw,
		.mr = mr ? mr->mr : NULL,
		.rkey = vb_mw_key(mw->mw) ^ (style & 3),
		.address = style & 4 ? 0x1000 : 0,
		.length = style & 8 ? 0 : style,
		.access = style & (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ),
	};
}

static void post_send(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);
	struct ah *ah = PICK(input, model.ahs, ah);
	uint32_t flags = input_8(input);
	struct request *request = &model.requests[model.request_count];
	struct vb_sge sges[3] = { input_sge(input), input_sge(input) };
	struct vb_send_request send = {
		.wr_id = model.request_count,
		.opcode = (enum vb_wr_opcode)(input_8(input) & 0xf),
		.flags = flags & 0xf,
		.sges = sges,
		.sge_count = flags >> 4 & 3,
		.ah = ah ? ah->ah : NULL,
		.remote_address = 0x1000,
		.compare_add = 1,
		.remote_qpn = VB_QPN_MULTICAST.v,
		.remote_qkey = flags >> 6,
	};
	vb_err err;

	if (!qp || model.request_count == REQUESTS_MAX)
		return;
	send.rkey = send.imm = input_key(input);
	if (model.srqs[0].srq)
		send.remote_srqn = vb_srq_number(model.srqs[0].srq);
	if (flags & 0x40 && model.qps[0].qp)
		send.remote_qpn = vb_qp_number(model.qps[0].qp).v;
	if (send.flags & VB_SEND_INLINE)
		sges[0].address = sges[1].address = (uintptr_t)model.area;
	if (flags & 0x80)
		sges[0].length = 8; /* for atomics */
	*request = (struct request){ .qp = qp };
	if (send.opcode == VB_WR_BIND_MW)
		fill_bind(input, &send);
	err = vb_qp_post_send(qp->qp, &send);
	request->is_signaled = send.flags & VB_SEND_SIGNALED;
	if (!err) {
		struct vb_qp_init capacity = { 0 };

		vb_qp_query_init(qp->qp, &capacity);
		request->is_signaled |= capacity.signal_all;
	}
	check_posted(&qp->send, qp->send.done, err, request);
	model.request_count++;
}

static void ring_or_abort(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);

	if (!qp)
		return;
	if (input_8(input) == 0xff) {
		vb_qp_discard_staged(qp->qp);
		model_forget_from(&qp->send, qp->send.posted);
		return;
	}
	vb_qp_publish_and_ring(qp->qp);
	for (; qp->send.posted != qp->send.staged; qp->send.posted++)
		model.requests[qp->send.ids[qp->send.posted]].state = POSTED;
}

static void post_recv(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);
	struct vb_sge sges[3] = { input_sge(input), input_sge(input) };
	struct vb_recv_request recv = {
		.wr_id = model.request_count,
		.sges = sges,
		.sge_count = input_below(input, 4),
	};
	struct request *request = &model.requests[model.request_count];
	vb_err err;

	if (!qp || model.request_count == REQUESTS_MAX)
		return;
	*request = (struct request){ .qp = qp, .is_receive = true, .is_signaled = true };
	err = vb_qp_post_recv(qp->qp, &recv);
	check_posted(&qp->recv, qp->recv.done, err, request);
	if (!err) {
		request->state = POSTED;
		qp->recv.posted = qp->recv.staged;
	}
	model.request_count++;
}

static void post_srq(struct input *input)
{
	struct srq *srq = PICK(input, model.srqs, srq);
	struct vb_sge sges[3] = { input_sge(input), input_sge(input) };
	struct vb_recv_request recv = {
		.wr_id = model.request_count,
		.sges = sges,
		.sge_count = input_below(input, 4),
	};
	struct request *request = &model.requests[model.request_count];
	vb_err err;

	if (!srq || model.request_count == REQUESTS_MAX)
		return;
	*request = (struct request){ .srq = srq, .is_receive = true, .is_signaled = true };
	err = vb_srq_post_recv(srq->srq, &recv);
	/* A slot is free when a QP has taken it, which is not visible before the completion. */
	REQUIRE(err != VB_ENOMEM || srq->open_count >= vb_srq_depth(srq->srq));
	request->state = err ? DONE : POSTED;
	srq->open_count += !err;
	model.request_count++;
}

/* --- QPs -------------------------------------------------------------------------------------- */

static void modify(struct qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	enum vb_qp_state old = vb_qp_state(qp->qp);
	enum vb_qp_state to = mask & VB_ATTR_STATE ? attr->state : old;
	vb_err err = vb_qp_modify(qp->qp, attr, mask);

	/* A CQ that overruns with the flush may have failed the QP since. */
	REQUIRE(vb_qp_state(qp->qp) == (err ? old : to) || vb_qp_state(qp->qp) == VB_STATE_ERR);
	if (mask == VB_ATTR_STATE && (to == VB_STATE_RESET || to == VB_STATE_ERR))
		REQUIRE(err == VB_OK);
	if (!err && to == VB_STATE_RESET)
		model_forget_queues(qp);
}

static void modify_somehow(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);
	uint32_t mask = input_32(input);
	struct vb_qp_attr attr = {
		.state = (enum vb_qp_state)(mask >> 26 & 7),
		.current_state = (enum vb_qp_state)(mask >> 28 & 7),
		.sqd_notify = mask >> 31,
		.port = 1,
		.address = { .destination = model.gid },
		.path_mtu = 256,
	};

	attr.access = input_8(input);
	attr.pkey_index = input_8(input) & 1;
	attr.reads_in = input_8(input) & 7;
	attr.reads_out = input_8(input) & 7;
	attr.timeout = input_8(input);
	attr.retry_count = input_8(input);
	if (qp)
		modify(qp, &attr, mask);
}

static uint32_t mask_of(enum vb_qp_type type, enum vb_qp_state to)
{
	uint32_t responder = VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER;
	uint32_t requester = VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT;
	bool is_rc = type == VB_QP_RC;

	switch (to) {
	case VB_STATE_INIT:
		return VB_ATTR_PKEY_INDEX | VB_ATTR_PORT |
		       (type == VB_QP_UD ? VB_ATTR_QKEY : VB_ATTR_ACCESS);
	case VB_STATE_RTR:
		if (type == VB_QP_UD)
			return 0;
		return VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN |
		       (is_rc || type == VB_QP_XRC_RECV ? responder : 0);
	case VB_STATE_RTS:
		return VB_ATTR_SQ_PSN | (is_rc || type == VB_QP_XRC_SEND ? requester : 0) |
		       (type == VB_QP_UD || type == VB_QP_UC ? 0 : VB_ATTR_TIMEOUT);
	case VB_STATE_RESET:
	case VB_STATE_SQD:
	case VB_STATE_SQE:
	case VB_STATE_ERR:
		break;
	}
	return 0;
}

/* From RESET to a state in the proper order, towards another QP or itself. */
static void bring_up(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);
	struct qp *peer = PICK(input, model.qps, qp);
	uint32_t style = input_8(input);
	struct vb_qp_attr attr = {
		.port = 1,
		.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC,
		.address = { .destination = model.gid },
		.path_mtu = 256,
		.timeout = style & 3,
		.retry_count = style >> 2 & 1,
		.rnr_retry = style >> 3 & 1,
		.min_rnr_timer = 1,
		.reads_out = style >> 4 & 3,
		.reads_in = style >> 5 & 3,
	};

	if (!qp || !peer)
		return;
	attr.destination = vb_qp_number(peer->qp);
	for (uint32_t state = VB_STATE_RESET; state <= VB_STATE_RTS; state++) {
		attr.state = (enum vb_qp_state)state;
		modify(qp, &attr, VB_ATTR_STATE | mask_of(qp->type, attr.state));
	}
}

static void join_or_leave(struct input *input)
{
	struct qp *qp = PICK(input, model.qps, qp);
	struct vb_gid group = GROUP;
	vb_err err;

	if (!qp)
		return;
	err = qp->is_in_group ? vb_qp_detach(qp->qp, &group) : vb_qp_attach(qp->qp, &group);
	REQUIRE(err == (qp->type == VB_QP_UD ? VB_OK : VB_EINVAL));
	if (!err)
		qp->is_in_group = !qp->is_in_group;
}

/* --- the others ------------------------------------------------------------------------------- */

static void change_cq(struct input *input)
{
	struct cq *cq = PICK(input, model.cqs, cq);
	uint32_t depth;
	vb_err err;

	if (!cq)
		return;
	switch (input_below(input, 5)) {
	case 0:
		depth = input_8(input);
		err = vb_cq_resize(cq->cq, depth);
		REQUIRE(err == (depth && depth <= CQ_DEPTH_MAX && depth >= vb_cq_waiting(cq->cq)
					? VB_OK
					: VB_EINVAL));
		REQUIRE(err || vb_cq_depth(cq->cq) == depth);
		break;
	case 1:
		cq->arm_count++;
		vb_cq_arm(cq->cq, input_bool(input));
		break;
	case 2:
		depth = input_8(input);
		MUST(vb_cq_moderate(cq->cq, depth & 3, (uint16_t)(depth >> 4)));
		break;
	default:
		model_poll_cq(cq, 1 + input_below(input, 8));
		break;
	}
}

static void change_srq(struct input *input)
{
	struct srq *srq = PICK(input, model.srqs, srq);
	uint32_t value = input_8(input);
	vb_err err;

	if (!srq)
		return;
	if (value & 1) {
		err = vb_srq_set_limit(srq->srq, value >> 4);
		REQUIRE(err == (value >> 4 <= vb_srq_depth(srq->srq) ? VB_OK : VB_EINVAL));
		return;
	}
	err = vb_srq_resize(srq->srq, value >> 4);
	REQUIRE(err == VB_OK || err == VB_EINVAL);
	REQUIRE(err || vb_srq_depth(srq->srq) == value >> 4);
}

static void change_memory(struct input *input)
{
	struct mr *mr = PICK(input, model.mrs, mr);
	struct pd *pd = PICK(input, model.pds, pd);
	struct dm *dm = PICK(input, model.dms, dm);
	struct vb_mr_init init = model_draw_region(input);
	uint32_t flags = input_8(input);
	uint8_t word[8] = { 0 };

	if (dm) {
		uint32_t offset = flags;
		bool fits = !(offset & 3) && offset + sizeof(word) <= dm->length;

		REQUIRE((vb_dm_copy_in(dm->dm, offset, word, sizeof(word)) == VB_OK) == fits);
		REQUIRE((vb_dm_copy_out(dm->dm, offset, word, sizeof(word)) == VB_OK) == fits);
	}
	if (!mr || !pd)
		return;
	if (vb_mr_reregister(mr->mr, flags, pd->pd, &init) == VB_OK && flags & VB_REREG_PD) {
		mr->pd->user_count--;
		pd->user_count++;
		mr->pd = pd;
	}
}

/* Packets come back immediately, except those that the mask loses. */
static void run(uint32_t rounds, uint32_t lost)
{
	static struct vb_slot slot;
	static uint8_t bytes[FRAME_MAX];

	for (uint32_t i = 0; i < rounds; i++) {
		struct vb_frame frame = { .head = { bytes, 0 } };

		if (!vb_nic_transmit(model.nic, model.now_ns, &slot, 1))
			return;
		REQUIRE(slot.length <= FRAME_MAX);
		REQUIRE(vb_slot_gather(&slot, bytes));
		frame.path.ip = slot.path.ip;
		frame.ip_id = slot.ip_id;
		frame.head.length = slot.length;
		if (!(lost >> (i & 7) & 1))
			vb_nic_receive(model.nic, model.now_ns, &frame, 1);
	}
}

static void wait(uint32_t style)
{
	uint64_t deadline = vb_nic_deadline(model.nic);

	model.now_ns += style;
	if (style & 1 && deadline != VB_NEVER && deadline > model.now_ns)
		model.now_ns = deadline;
	vb_nic_fire_timers(model.nic, model.now_ns);
}

static void step(struct input *input)
{
	uint32_t lost;

	switch (input_below(input, 16)) {
	case 0:
	case 1:
	case 2:
		model_toggle(input);
		break;
	case 3:
	case 4:
		post_send(input);
		break;
	case 5:
		ring_or_abort(input);
		break;
	case 6:
		post_recv(input);
		break;
	case 7:
		post_srq(input);
		break;
	case 8:
		modify_somehow(input);
		break;
	case 9:
		bring_up(input);
		break;
	case 10:
		join_or_leave(input);
		break;
	case 11:
		change_cq(input);
		break;
	case 12:
		change_srq(input);
		break;
	case 13:
		change_memory(input);
		break;
	case 14:
		lost = input_8(input);
		run(1 + input_below(input, 64), lost);
		break;
	case 15:
		wait(input_8(input));
		break;
	}
	model_take_events();
}

/* --- the end ---------------------------------------------------------------------------------- */

static bool has_lost(const struct cq *cq)
{
	return cq && vb_cq_has_overrun(cq->cq);
}

/* Every QP fails; then all requests that were rung are complete, unless their CQ overran. */
static void flush_all(void)
{
	struct vb_qp_attr attr = { .state = VB_STATE_ERR };

	for (uint32_t i = 0; i < QP_MAX; i++) {
		if (!model.qps[i].qp)
			continue;
		model_poll_all(); /* so that the flushes find room */
		modify(&model.qps[i], &attr, VB_ATTR_STATE);
	}
	REQUIRE(vb_nic_transmit(model.nic, model.now_ns, NULL, 0) == 0);
	model_poll_all();
	for (uint32_t i = 0; i < model.request_count; i++) {
		const struct request *request = &model.requests[i];
		const struct qp *qp = request->qp;

		if (request->state != POSTED || !qp || !request->is_signaled)
			continue;
		REQUIRE(has_lost(request->is_receive ? qp->recv_cq : qp->send_cq));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	model_create();
	while (input_has_more(&input))
		step(&input);
	flush_all();
	model_destroy();
	return 0;
}
