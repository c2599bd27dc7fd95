/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC, taking responses: ACKs, NAKs, READ responses and atomic results. Every response acknowledges
 * all PSNs before its own (IBA 9.7.5.1.2). A READ or atomic among them that has had no response is
 * a gap, which counts as a NAK.
 */
#include "nic/payload_priv.h"
#include "base/probe.h"
#include "nic/quiet_priv.h"
#include "nic/rc_priv.h"
#include "nic/train_priv.h"

#include "base/bytes.h"
#include "wire/syndrome.h"

VB_COLD void vb_rc_fail(struct vb_qp *qp, enum vb_status status)
{
	struct vb_requester *requester = &qp->requester;

	/*
	 * A local peer may be reading the request's data: it must see that the data no longer
	 * counts before the program learns that it may change it.
	 */
	vb_qp_withdraw_row(qp);
	if (requester->done_index != vb_queue_published(&qp->sq))
		vb_qp_complete_send(qp, requester->done_index++, status);
	vb_qp_enter_error(qp);
}

/* Completes the oldest request. */
static void complete_oldest(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;

	/*
	 * After going back, responses may arrive before the repetition is sent: then it was not
	 * counted again yet.
	 */
	if (vb_wqe_needs_response(wqe) &&
	    (int32_t)(requester->send_index - requester->done_index) > 0)
		requester->reads_out--;
	if (requester->is_timed)
		vb_train_on_acknowledged(qp, wqe);
	vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_SUCCESS);
}

/*
 * Everything before `upto` has arrived at the peer. Completes the requests that this acknowledges.
 * True if a response that should have come earlier is missing.
 */
static bool acknowledge(struct vb_qp *qp, vb_psn upto)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t end = vb_queue_published(&qp->sq);

	while (requester->done_index != end) {
		const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, requester->done_index);
		uint32_t left;

		if (wqe->progress == VB_WQE_EXECUTED) {
			complete_oldest(qp, wqe);
			continue;
		}
		if (wqe->progress == VB_WQE_NOT_STARTED || vb_psn_equal(upto, requester->unacked))
			return false;
		if (vb_wqe_needs_response(wqe))
			return true;
		left = vb_psn_distance(vb_psn_add(wqe->first_psn, wqe->packet_count),
				       requester->unacked);
		if (vb_psn_distance(upto, requester->unacked) < left) {
			requester->unacked = upto;
			return false;
		}
		requester->unacked = vb_psn_add(requester->unacked, left);
		complete_oldest(qp, wqe);
	}
	return false;
}

/*
 * Follows acknowledge() when it made progress: handles timers, and packets that no longer need
 * repetition.
 */
static void on_progress(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	vb_rc_timers_on_progress(qp);
	/* Local operations have no PSN: a repetition may have reached one that is now complete. */
	if (vb_psn_distance(requester->next_psn, requester->unacked) >
		    vb_psn_distance(requester->new_psn, requester->unacked) ||
	    (int32_t)(requester->done_index - requester->send_index) > 0)
		vb_rc_seek(qp, requester->unacked);
	vb_rc_on_acknowledged(qp);
	vb_rc_conclude_failure(qp);
	vb_rc_report_drained(qp);
	if (vb_rc_has_request(qp))
		vb_qp_schedule(qp);
}

/*
 * The packet at the oldest unacknowledged PSN was lost, according to a NAK or a gap in the
 * responses.
 */
static void go_back(struct vb_qp *qp, enum vb_counter counter)
{
	struct vb_requester *requester = &qp->requester;

	/*
	 * Responses already on their way and copies of a NAK all report the same loss: go back only
	 * once for it.
	 */
	if (requester->has_recovered && vb_psn_equal(requester->recovered, requester->unacked)) {
		vb_nic_drop(qp->nic, VB_DROP_RESPONSE_WHILE_WAITING);
		return;
	}
	requester->has_recovered = true;
	requester->recovered = requester->unacked;
	if (counter == VB_COUNTER_PACKET_SEQ_ERR && vb_train_on_nak(qp)) {
		vb_rc_repeat(qp, requester->unacked);
		return;
	}
	vb_nic_count(qp->nic, counter);
	vb_rc_retry(qp, requester->unacked);
}

/* Acknowledges everything before `upto`; false if there is a gap, which has then been handled. */
static bool acknowledge_before(struct vb_qp *qp, vb_psn upto)
{
	struct vb_requester *requester = &qp->requester;
	vb_psn before = requester->unacked;
	bool gap = acknowledge(qp, upto);

	if (!vb_psn_equal(before, requester->unacked))
		on_progress(qp);
	if (vb_qp_state_now(qp) == VB_STATE_ERR)
		return false;
	if (gap)
		go_back(qp, VB_COUNTER_IMPLIED_NAK_SEQ_ERR);
	return !gap;
}

static void take_credits(struct vb_qp *qp, const struct vb_aeth *aeth)
{
	struct vb_requester *requester = &qp->requester;
	uint8_t code = vb_syndrome_code(aeth->syndrome);
	uint32_t limit;

	if (code == VB_CREDIT_CODE_INVALID) {
		requester->has_credits = false;
		vb_rc_timers_on_credits(qp);
		return;
	}
	limit = (aeth->msn + vb_credit_count(code)) & 0xffffff;
	/* A late ACK that others overtook does not reduce the credits. */
	if (!requester->has_credits || (int32_t)((limit - requester->credit_limit) << 8) > 0) {
		requester->credit_limit = limit;
		vb_rc_timers_on_credits(qp);
	}
	requester->has_credits = true;
	if (vb_rc_has_request(qp))
		vb_qp_schedule(qp);
}

static enum vb_status status_of_nak(struct vb_qp *qp, uint8_t nak)
{
	switch ((enum vb_nak)nak) {
	case VB_NAK_INVALID_REQUEST:
		vb_nic_count(qp->nic, VB_COUNTER_REQ_REMOTE_INVALID_REQUEST);
		return VB_STATUS_REM_INV_REQ_ERR;
	case VB_NAK_REMOTE_ACCESS:
		vb_nic_count(qp->nic, VB_COUNTER_REQ_REMOTE_ACCESS_ERRORS);
		return VB_STATUS_REM_ACCESS_ERR;
	case VB_NAK_REMOTE_OPERATION:
		vb_nic_count(qp->nic, VB_COUNTER_REQ_REMOTE_OP_ERRORS);
		return VB_STATUS_REM_OP_ERR;
	case VB_NAK_INVALID_RD:
		return VB_STATUS_REM_INV_RD_REQ_ERR;
	case VB_NAK_SEQUENCE:
		break;
	}
	vb_nic_count(qp->nic, VB_COUNTER_BAD_RESP_ERR);
	return VB_STATUS_BAD_RESP_ERR;
}

static void on_nak(struct vb_qp *qp, const struct vb_packet *packet)
{
	uint8_t nak = vb_syndrome_code(packet->aeth.syndrome);

	if (!acknowledge_before(qp, packet->bth.psn))
		return;
	if (nak != VB_NAK_SEQUENCE) {
		vb_rc_fail(qp, status_of_nak(qp, nak));
		return;
	}
	go_back(qp, VB_COUNTER_PACKET_SEQ_ERR);
}

static void on_rnr_nak(struct vb_qp *qp, const struct vb_packet *packet)
{
	struct vb_requester *requester = &qp->requester;

	if (requester->waits_for_receiver) {
		vb_nic_drop(qp->nic, VB_DROP_NOT_OUR_RESPONSE); /* a copy of that RNR NAK */
		return;
	}
	if (!acknowledge_before(qp, packet->bth.psn))
		return;
	vb_nic_count(qp->nic, VB_COUNTER_RNR_NAK_RETRY_ERR);
	if (!requester->rnr_retries_left) {
		vb_nic_count(qp->nic, VB_COUNTER_RNR_RETRY_EXCEEDED_ERR);
		vb_rc_fail(qp, VB_STATUS_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->attr.rnr_retry != 7) /* 7: without limit */
		requester->rnr_retries_left--;
	qp->repeat_count++;
	VB_PROBE3(retry, qp->number.v, packet->bth.psn.v, requester->rnr_retries_left);
	vb_rc_seek(qp, packet->bth.psn);
	vb_rc_timers_on_rnr_nak(qp, vb_syndrome_code(packet->aeth.syndrome));
}

static void on_acknowledge(struct vb_qp *qp, const struct vb_packet *packet)
{
	switch (vb_syndrome_kind(packet->aeth.syndrome)) {
	case VB_SYNDROME_ACK:
		if (acknowledge_before(qp, vb_psn_add(packet->bth.psn, 1)))
			take_credits(qp, &packet->aeth);
		break;
	case VB_SYNDROME_RNR_NAK:
		on_rnr_nak(qp, packet);
		break;
	case VB_SYNDROME_NAK:
		on_nak(qp, packet);
		break;
	case VB_SYNDROME_RESERVED:
		vb_nic_drop(qp->nic, VB_DROP_INVALID);
		break;
	}
}

/* One more packet of the oldest request's response is in place. */
static void advance_response(struct vb_qp *qp, const struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;
	vb_psn end = vb_psn_add(wqe->first_psn, wqe->packet_count);

	requester->unacked = vb_psn_add(requester->unacked, 1);
	if (!vb_psn_equal(requester->unacked, end)) {
		if (requester->read_psns_out)
			requester->read_psns_out--;
	} else {
		complete_oldest(qp, wqe);
		acknowledge(qp, requester->unacked); /* local operations behind it */
	}
	on_progress(qp);
}

static void fail_response(struct vb_qp *qp, enum vb_verdict verdict)
{
	if (verdict == VB_INVALID_REQUEST) {
		vb_nic_count(qp->nic, VB_COUNTER_BAD_RESP_ERR);
		vb_rc_fail(qp, VB_STATUS_BAD_RESP_ERR);
		return;
	}
	vb_rc_fail(qp, VB_STATUS_LOC_PROT_ERR);
}

static enum vb_verdict take_read_response(struct vb_qp *qp, const struct vb_wqe *wqe,
					  const struct vb_frame *frame,
					  const struct vb_packet *packet)
{
	uint32_t index = vb_psn_distance(packet->bth.psn, wqe->first_psn);
	uint32_t offset = index << qp->mtu_shift;
	bool is_last = index + 1 == wqe->packet_count;
	struct vb_payload payload = vb_payload_of(frame, packet);
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_cursor cursor;

	if (!(packet->traits & VB_IS_LAST) == is_last)
		return VB_INVALID_REQUEST;
	if (packet->payload_length != min32(wqe->length - offset, qp->attr.path_mtu))
		return VB_INVALID_REQUEST;
	cursor = vb_cursor_at(&sgl, offset);
	return vb_scatter(qp->nic, &sgl, &cursor, &payload, packet->payload_length);
}

static enum vb_verdict take_atomic_result(struct vb_qp *qp, const struct vb_wqe *wqe,
					  const struct vb_packet *packet)
{
	/* Lands in the CPU's byte order, as a program expects. */
	uint64_t result = packet->atomic_result;
	struct vb_payload payload = { .piece = { (const uint8_t *)&result, sizeof(result) } };
	struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);
	struct vb_cursor cursor = { 0, 0 };

	return vb_scatter(qp->nic, &sgl, &cursor, &payload, sizeof(result));
}

static void on_result(struct vb_qp *qp, const struct vb_frame *frame,
		      const struct vb_packet *packet)
{
	struct vb_requester *requester = &qp->requester;
	bool is_read_response = packet->traits & VB_IS_READ_RESPONSE;
	enum vb_verdict verdict = VB_PASS;
	const struct vb_wqe *wqe;

	if (!acknowledge_before(qp, packet->bth.psn))
		return;
	wqe = vb_queue_wqe(&qp->sq, requester->done_index);
	switch (vb_traits_response(wqe->traits)) {
	case VB_RESPONSE_NONE:
		vb_nic_drop(qp->nic, VB_DROP_NOT_OUR_RESPONSE);
		return;
	case VB_RESPONSE_EMPTY:
		if (!is_read_response || packet->payload_length || !(packet->traits & VB_IS_LAST))
			verdict = VB_INVALID_REQUEST;
		break;
	case VB_RESPONSE_DATA:
		verdict = is_read_response ? take_read_response(qp, wqe, frame, packet)
					   : VB_INVALID_REQUEST;
		break;
	case VB_RESPONSE_VALUE:
		verdict = is_read_response ? VB_INVALID_REQUEST
					   : take_atomic_result(qp, wqe, packet);
		break;
	}
	if (verdict != VB_PASS) {
		fail_response(qp, verdict);
		return;
	}
	if (packet->traits & VB_HAS_AETH)
		take_credits(qp, &packet->aeth);
	advance_response(qp, wqe);
}

void vb_rc_on_response(struct vb_qp *qp, const struct vb_frame *frame,
		       const struct vb_packet *packet)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t ahead = vb_psn_distance(packet->bth.psn, requester->unacked);
	uint32_t sent = vb_psn_distance(requester->new_psn, requester->unacked);
	enum vb_qp_state state = vb_qp_state_now(qp);

	if (state != VB_STATE_RTS && state != VB_STATE_SQD) {
		vb_nic_drop(qp->nic, VB_DROP_QP_STATE);
		return;
	}
	if (ahead >= sent) {
		/*
		 * Older than everything in flight. A repeated ACK may bring new credits, but
		 * nothing else.
		 */
		if (vb_psn_diff(packet->bth.psn, requester->unacked) < 0 &&
		    vb_opcode_op(packet->bth.opcode) == VB_OP_ACKNOWLEDGE &&
		    vb_syndrome_kind(packet->aeth.syndrome) == VB_SYNDROME_ACK)
			take_credits(qp, &packet->aeth);
		else
			vb_nic_drop(qp->nic, VB_DROP_NOT_OUR_RESPONSE);
		return;
	}
	if (vb_opcode_op(packet->bth.opcode) == VB_OP_ACKNOWLEDGE)
		on_acknowledge(qp, packet);
	else
		on_result(qp, frame, packet);
}

/*
 * One request short of quiet: the QP has sent that one, and the next one, if any, was never begun,
 * not even before going back.
 */
static bool has_one_request_out(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;

	return requester->send_index - requester->done_index == 1 && vb_qp_is_undisturbed(qp) &&
	       (requester->send_index == vb_queue_published(&qp->sq) ||
		vb_queue_wqe(&qp->sq, requester->send_index)->progress == VB_WQE_NOT_STARTED);
}

bool vb_rc_is_expected_ack(const struct vb_qp *qp, vb_psn psn, const struct vb_aeth *aeth)
{
	const struct vb_requester *requester = &qp->requester;
	const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, requester->done_index);

	return has_one_request_out(qp) && wqe->progress == VB_WQE_STARTED &&
	       !vb_wqe_needs_response(wqe) &&
	       vb_psn_equal(vb_psn_add(psn, 1), requester->new_psn) &&
	       !vb_psn_equal(requester->unacked, requester->new_psn) &&
	       vb_syndrome_kind(aeth->syndrome) == VB_SYNDROME_ACK;
}

void vb_rc_take_expected_ack(struct vb_qp *qp, const struct vb_aeth *aeth)
{
	struct vb_requester *requester = &qp->requester;

	requester->unacked = requester->new_psn;
	if (requester->is_timed)
		vb_train_on_acknowledged(qp, vb_queue_wqe(&qp->sq, requester->done_index));
	vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_SUCCESS);
	vb_rc_timers_on_progress(qp);
	vb_rc_on_acknowledged(qp);
	take_credits(qp, aeth);
	if (vb_rc_has_request(qp))
		vb_qp_schedule(qp);
}
