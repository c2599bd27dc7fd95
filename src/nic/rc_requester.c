/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC, sending requests. Three PSNs give the position: unacked <= next_psn <= new_psn. Going back to
 * repeat moves next_psn; everything between it and new_psn has been sent before and is built again
 * from the requests.
 */
#include "nic/ack_policy_priv.h"
#include "nic/direct_priv.h"
#include "nic/payload_priv.h"
#include "nic/quiet_priv.h"
#include "nic/train_priv.h"
#include "nic/unreliable_priv.h"

#include "base/bytes.h"

/* At most half of the PSN space may be in flight, or an old PSN could be taken for a new one. */
#define PSN_WINDOW (1u << 23)

/* Why the next packet does not go out now. */
enum hold {
	NOT_HELD,
	HELD_BY_STATE,
	HELD_BY_RNR, /* waits before it tries again */
	HELD_BY_FAILURE, /* cannot be sent; ends after the requests before it */
	HELD_EMPTY, /* nothing is posted */
	HELD_BY_DRAIN, /* SQD starts nothing new */
	HELD_BY_FENCE, /* IBA 10.8.3.3 */
	HELD_BY_READS, /* the peer takes no more READs and atomics at the same time */
	HELD_BY_WINDOW, /* enough is in flight */
	HELD_BY_FLIGHT, /* enough is in flight from all QPs together */
	HELD_BY_CREDITS, /* the peer has no receive for it, as far as we know */
};

/* The reasons that an observer is told. For the others the program itself is the reason. */
static enum vb_hold observed(enum hold hold)
{
	switch (hold) {
	case HELD_BY_RNR:
		return VB_HOLD_RNR;
	case HELD_EMPTY:
		return VB_HOLD_EMPTY;
	case HELD_BY_FENCE:
		return VB_HOLD_FENCE;
	case HELD_BY_READS:
		return VB_HOLD_READS;
	case HELD_BY_WINDOW:
	case HELD_BY_FLIGHT:
		return VB_HOLD_WINDOW;
	case HELD_BY_CREDITS:
		return VB_HOLD_CREDITS;
	case NOT_HELD:
	case HELD_BY_STATE:
	case HELD_BY_FAILURE:
	case HELD_BY_DRAIN:
		break;
	}
	return VB_HOLD_NONE;
}

static bool is_at_start(const struct vb_requester *requester, const struct vb_wqe *wqe)
{
	return wqe->progress == VB_WQE_NOT_STARTED ||
	       vb_psn_equal(requester->next_psn, wqe->first_psn);
}

static bool is_all_acknowledged(const struct vb_requester *requester)
{
	return vb_psn_equal(requester->unacked, requester->new_psn);
}

/*
 * Without credits a message waits until everything before it is acknowledged, and a while longer,
 * because the peer announces new receives. Then its first packet goes out as a probe. The answer is
 * an RNR NAK, or an ACK, which means that the message has its receive and the rest may follow.
 */
static bool waits_for_credits(const struct vb_requester *requester, const struct vb_wqe *wqe)
{
	if (is_at_start(requester, wqe))
		return vb_rc_is_beyond_credits(requester, wqe) &&
		       (!vb_psn_equal(requester->next_psn, requester->unacked) ||
			(is_all_acknowledged(requester) && !requester->may_probe));
	return requester->is_probing && vb_psn_diff(requester->unacked, wqe->first_psn) <= 0;
}

/* The position of a PSN in all the payload that the QP ever sent. */
static uint32_t byte_at(const struct vb_qp *qp, const struct vb_wqe *wqe, vb_psn psn)
{
	uint64_t offset = (uint64_t)vb_psn_distance(psn, wqe->first_psn) << qp->mtu_shift;

	if (vb_wqe_needs_response(wqe))
		return wqe->first_byte;
	return wqe->first_byte + (uint32_t)(offset < wqe->length ? offset : wqe->length);
}

static uint32_t bytes_in_flight(const struct vb_qp *qp, const struct vb_wqe *next)
{
	const struct vb_requester *requester = &qp->requester;
	const struct vb_wqe *oldest = vb_queue_wqe(&qp->sq, requester->done_index);
	uint32_t end = next->progress == VB_WQE_STARTED ? byte_at(qp, next, requester->next_psn)
							: requester->end_byte;

	return end - byte_at(qp, oldest, requester->unacked);
}

/*
 * The window is one of bytes, but counted in full packets. If packets were not full, more of them
 * may be in flight. This does not hold after a timeout, which may mean that the peer cannot take
 * that many packets.
 */
static bool is_window_full(const struct vb_qp *qp, const struct vb_wqe *next)
{
	uint32_t packets = vb_rc_packets_in_flight(&qp->requester);

	if (packets < vb_rc_window(qp))
		return false;
	return packets >= qp->nic->config.window_packets_max || qp->requester.window_reduction ||
	       bytes_in_flight(qp, next) >= qp->nic->config.window_bytes_max;
}

static enum hold why_new_is_held(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_requester *requester = &qp->requester;
	uint32_t psns_out = vb_psn_distance(requester->new_psn, requester->unacked);
	uint32_t psns = (uint32_t)((uint64_t)wqe->length >> qp->mtu_shift) + 1;

	if (vb_qp_state_now(qp) == VB_STATE_SQD && !vb_qp_has_begun(qp, wqe))
		return HELD_BY_DRAIN;
	if (wqe->flags & VB_SEND_FENCE && requester->reads_out)
		return HELD_BY_FENCE;
	if (requester->reads_out && requester->reads_out >= qp->attr.reads_out &&
	    vb_wqe_needs_response(wqe))
		return HELD_BY_READS;
	if (psns_out && psns_out + psns > PSN_WINDOW)
		return HELD_BY_WINDOW;
	return NOT_HELD;
}

static enum hold why_held(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;
	enum vb_qp_state state = vb_qp_state_now(qp);
	const struct vb_wqe *wqe;

	if (state != VB_STATE_RTS && state != VB_STATE_SQD)
		return HELD_BY_STATE;
	if (requester->waits_for_receiver)
		return HELD_BY_RNR;
	if (requester->has_failed)
		return HELD_BY_FAILURE;
	if (requester->send_index == vb_queue_published(&qp->sq))
		return HELD_EMPTY;
	wqe = vb_queue_wqe(&qp->sq, requester->send_index);
	if (wqe->progress == VB_WQE_NOT_STARTED) {
		enum hold hold = why_new_is_held(qp, wqe);

		if (hold != NOT_HELD)
			return hold;
	}
	if (vb_wqe_is_local(wqe))
		return NOT_HELD;
	/* Repeated READs count against the peer's limit like new ones. */
	if (requester->reads_out && requester->reads_out >= qp->attr.reads_out &&
	    vb_wqe_needs_response(wqe))
		return HELD_BY_READS;
	if (is_window_full(qp, wqe))
		return HELD_BY_WINDOW;
	if (waits_for_credits(requester, wqe))
		return HELD_BY_CREDITS;
	if (vb_flight_is_full(qp))
		return HELD_BY_FLIGHT;
	return NOT_HELD;
}

/*
 * The request at send_index cannot be sent. Those before it may still succeed, so its completion
 * waits.
 */
VB_COLD static void fail_current(struct vb_qp *qp, enum vb_status status)
{
	qp->requester.has_failed = true;
	qp->requester.failure = (uint8_t)status;
	vb_rc_conclude_failure(qp);
}

void vb_rc_conclude_failure(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	/* An ACK that let this request go first must leave before the QP ends. */
	if (requester->has_failed && requester->done_index == requester->send_index &&
	    !vb_ack_is_all_owed(qp))
		vb_rc_fail(qp, (enum vb_status)requester->failure);
}

static void execute_local(struct vb_qp *qp, struct vb_wqe *wqe)
{
	struct vb_requester *requester = &qp->requester;
	enum vb_status status;

	if (wqe->progress == VB_WQE_NOT_STARTED) {
		status = vb_request_execute_local(qp, wqe);
		if (status != VB_STATUS_SUCCESS) {
			fail_current(qp, status);
			return;
		}
		wqe->progress = VB_WQE_EXECUTED;
	}
	if (requester->done_index == requester->send_index)
		vb_qp_complete_send(qp, requester->done_index++, VB_STATUS_SUCCESS);
	requester->send_index++;
	requester->cursor = (struct vb_cursor){ 0, 0 };
	vb_rc_report_drained(qp);
}

/* The buffers for a response must be valid before the peer does anything. */
static enum vb_status check_sink(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	const struct vb_sge *sges = vb_wqe_sges(wqe);

	if (!qp->attr.reads_out)
		return VB_STATUS_LOC_QP_OP_ERR;
	if (!vb_traits_have_sink(wqe->traits))
		return VB_STATUS_SUCCESS;
	for (uint32_t i = 0; i < wqe->sge_count; i++) {
		struct vb_memory memory;
		struct vb_memory_request request = {
			.key = sges[i].lkey,
			.pd = qp->pd_number,
			.rights = VB_ACCESS_LOCAL_WRITE,
			.address = sges[i].address,
			.length = sges[i].length,
		};

		if (sges[i].length && vb_memory_resolve(qp->nic, &request, &memory) != VB_PASS)
			return VB_STATUS_LOC_PROT_ERR;
	}
	return VB_STATUS_SUCCESS;
}

/* The packets of a READ's response that have not arrived yet. */
static uint32_t psns_to_come(const struct vb_requester *requester, const struct vb_wqe *wqe)
{
	uint32_t come = vb_psn_distance(requester->unacked, wqe->first_psn);

	return come < wqe->packet_count ? wqe->packet_count - come : wqe->packet_count;
}

/* The first packet of the message goes out, or goes out again. */
static void begin_message(struct vb_requester *requester, bool is_beyond_credits)
{
	requester->is_probing = is_beyond_credits;
	requester->may_probe = false;
}

/* A packet or a train was sent, which asked for an ACK or did not: moves on to the next one. */
static void advance(struct vb_qp *qp, const struct vb_wqe *wqe, uint32_t packet_count,
		    bool has_asked, const struct vb_cursor *cursor)
{
	struct vb_requester *requester = &qp->requester;
	vb_psn end = vb_psn_add(wqe->first_psn, wqe->packet_count);

	requester->packets_since_ack_request = has_asked ? 0
							 : requester->packets_since_ack_request + 1;
	requester->cursor = *cursor;
	if (vb_wqe_needs_response(wqe)) {
		requester->reads_out++;
		requester->read_psns_out += psns_to_come(requester, wqe) - 1;
		requester->next_psn = end; /* the responses take the PSNs in between */
	} else {
		requester->next_psn = vb_psn_add(requester->next_psn, packet_count);
	}
	/* Compared by distance from unacked: a READ may take half of the PSN space. */
	if (vb_psn_distance(requester->next_psn, requester->unacked) >
	    vb_psn_distance(requester->new_psn, requester->unacked))
		requester->new_psn = requester->next_psn;
	if (vb_psn_equal(requester->next_psn, end)) {
		requester->send_index++;
		requester->cursor = (struct vb_cursor){ 0, 0 };
		if (requester->hold == VB_HOLD_NONE &&
		    requester->send_index == vb_queue_published(&qp->sq))
			vb_qp_change_hold(qp, VB_HOLD_EMPTY);
	}
	vb_flight_update(qp, vb_rc_packets_in_flight(requester));
	vb_rc_timers_on_packet_sent(qp);
}

static bool emit_packet(struct vb_qp *qp, struct vb_wqe *wqe, struct vb_slot *slot)
{
	struct vb_requester *requester = &qp->requester;
	struct vb_cursor cursor = requester->cursor;
	bool needs_response = vb_wqe_needs_response(wqe);
	bool ask = vb_ack_is_wanted(qp, wqe);
	enum vb_verdict verdict;

	if (needs_response && vb_psn_equal(requester->next_psn, wqe->first_psn)) {
		enum vb_status status = check_sink(qp, wqe);

		if (status != VB_STATUS_SUCCESS) {
			fail_current(qp, status);
			return false;
		}
	}
	if (is_at_start(requester, wqe))
		begin_message(requester, vb_rc_is_beyond_credits(requester, wqe));
	verdict = vb_request_build(qp, wqe, ask, &cursor, slot);
	if (verdict != VB_PASS) {
		fail_current(qp, VB_STATUS_LOC_PROT_ERR);
		return false;
	}
	advance(qp, wqe, 1, ask, &cursor);
	return true;
}

/*
 * Sends the next packets of a long SEND as a train, if the local peer may be able to read the data
 * itself. A message without credits begins with a packet, which asks for them. The train may exceed
 * the window: it takes no more room at the peer than a packet.
 */
static bool emit_train(struct vb_qp *qp, const struct vb_wqe *wqe, struct vb_slot *slot)
{
	struct vb_requester *requester = &qp->requester;
	struct vb_cursor cursor = requester->cursor;
	uint32_t packet_count = vb_train_choose(qp, wqe);

	if (!packet_count ||
	    (is_at_start(requester, wqe) && vb_rc_is_beyond_credits(requester, wqe)) ||
	    !vb_request_build_train(qp, wqe, packet_count, &cursor, slot))
		return false;
	if (is_at_start(requester, wqe))
		begin_message(requester, false);
	advance(qp, wqe, packet_count, true, &cursor);
	vb_train_on_sent(qp, slot);
	return true;
}

/*
 * Nothing of a quiet QP is out, so that no fence, READ limit or window holds a SEND. What is left
 * of why_held() is asked here.
 */
static bool is_short_send(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->opcode == VB_WR_SEND && wqe->progress == VB_WQE_NOT_STARTED &&
	       wqe->length <= VB_COPY_MAX && wqe->length <= qp->attr.path_mtu &&
	       !vb_rc_is_beyond_credits(&qp->requester, wqe) && !vb_flight_is_full(qp);
}

bool vb_rc_emit_quiet_send(struct vb_qp *qp, struct vb_slot *slot)
{
	const struct vb_cursor begin = { 0, 0 };
	struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, qp->requester.send_index);

	if (!is_short_send(qp, wqe) || !vb_request_build_short(qp, wqe, slot))
		return false;
	vb_request_start(qp, wqe);
	begin_message(&qp->requester, false);
	advance(qp, wqe, 1, true, &begin); /* the only packet of a message asks for an ACK */
	return true;
}

bool vb_rc_emit_request(struct vb_qp *qp, struct vb_slot *slot)
{
	enum hold hold;

	if (qp->type == VB_QP_RC && vb_qp_can_start(qp) &&
	    qp->requester.send_index != vb_queue_published(&qp->sq) &&
	    vb_rc_emit_quiet_send(qp, slot))
		return true;
	while ((hold = why_held(qp)) == NOT_HELD) {
		struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, qp->requester.send_index);

		if (vb_wqe_is_local(wqe)) {
			execute_local(qp, wqe);
			continue;
		}
		if (wqe->progress == VB_WQE_NOT_STARTED && qp->peer_memory &&
		    !vb_wqe_needs_receive(wqe)) {
			enum vb_direct direct = vb_qp_execute_directly(qp, wqe);

			if (direct == VB_DIRECT_DONE)
				continue;
			if (direct != VB_DIRECT_REFUSED) {
				vb_qp_note_hold(qp, VB_HOLD_NONE);
				vb_flight_end_turn(qp);
				return false;
			}
		}
		if (qp->requester.hold > VB_HOLD_EMPTY)
			vb_qp_change_hold(qp, VB_HOLD_NONE);
		if (wqe->progress == VB_WQE_NOT_STARTED)
			vb_request_start(qp, wqe);
		if (wqe->length >= qp->nic->config.train_length_min && emit_train(qp, wqe, slot))
			return true;
		if (emit_packet(qp, wqe, slot))
			return true;
	}
	vb_qp_note_hold(qp, observed(hold));
	if (hold == HELD_BY_CREDITS && is_all_acknowledged(&qp->requester))
		vb_rc_timers_on_no_credits(qp);
	if (hold == HELD_BY_FLIGHT)
		vb_flight_wait(qp);
	else
		vb_flight_end_turn(qp);
	return false;
}

void vb_rc_on_acknowledged(struct vb_qp *qp)
{
	vb_flight_update(qp, vb_rc_packets_in_flight(&qp->requester));
}

void vb_rc_seek(struct vb_qp *qp, vb_psn psn)
{
	struct vb_requester *requester = &qp->requester;
	uint32_t end = vb_queue_published(&qp->sq);
	uint32_t index;

	if (requester->is_timed)
		vb_train_on_repeat(qp);
	requester->next_psn = psn;
	requester->has_failed = false; /* found again when its turn comes */
	requester->is_probing = false;
	requester->packets_since_ack_request = 0;
	requester->reads_out = 0;
	requester->read_psns_out = 0;
	requester->cursor = (struct vb_cursor){ 0, 0 };
	for (index = requester->done_index; index != end; index++) {
		const struct vb_wqe *wqe = vb_queue_wqe(&qp->sq, index);
		uint32_t packet;

		if (wqe->progress == VB_WQE_NOT_STARTED)
			break;
		if (wqe->progress == VB_WQE_EXECUTED)
			continue;
		packet = vb_psn_distance(psn, wqe->first_psn);
		if (packet < wqe->packet_count) {
			if (!(wqe->flags & VB_SEND_INLINE)) {
				struct vb_sgl sgl = vb_wqe_sgl(qp, wqe);

				requester->cursor =
					vb_cursor_at(&sgl, (uint64_t)packet << qp->mtu_shift);
			}
			break;
		}
		if (vb_wqe_needs_response(wqe)) {
			requester->reads_out++;
			requester->read_psns_out += psns_to_come(requester, wqe) - 1;
		}
	}
	requester->send_index = index;
	vb_flight_update(qp, vb_rc_packets_in_flight(requester));
	vb_qp_schedule(qp);
}

bool vb_rc_is_drained(const struct vb_qp *qp)
{
	const struct vb_requester *requester = &qp->requester;

	if (requester->done_index != requester->send_index)
		return false;
	return requester->send_index == vb_queue_published(&qp->sq) ||
	       !vb_qp_has_begun(qp, vb_queue_wqe(&qp->sq, requester->send_index));
}

void vb_rc_report_drained(struct vb_qp *qp)
{
	struct vb_requester *requester = &qp->requester;

	if (vb_qp_state_now(qp) != VB_STATE_SQD || requester->has_raised_drained ||
	    !vb_rc_is_drained(qp))
		return;
	requester->has_raised_drained = true;
	if (qp->attr.sqd_notify)
		vb_event_raise(qp->nic, &qp->source, VB_EVENT_SQ_DRAINED);
}
