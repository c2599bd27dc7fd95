/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages and memory: what arrives is what was sent, whole, in place and in order, and nothing
 * else changes. Reliable messages arrive one after the other; unreliable ones are identified by
 * their contents.
 */
#include "sim/model.h"

#include "base/bytes.h"
#include "sim/model_priv.h"
#include "sim/pattern.h"
#include "wire/flow.h"
#include "wire/header.h"

void vb_delivery_give_back(struct vb_model *model, struct vb_model_request *request, bool release)
{
	(void)model;
	for (uint32_t i = 0; i < request->piece_count; i++) {
		const struct vb_model_piece *piece = &request->pieces[i];

		if (request->opens_local) {
			vb_arena_accept(request->arena, piece->address, piece->length);
			vb_arena_close(request->arena, piece->address, piece->length);
		}
		if (release && piece->is_block && piece->length)
			vb_arena_release(request->arena, piece->address);
	}
	request->opens_local = false;
}

/* True if the pieces, from byte `skip` on, hold `length` bytes of the pattern. */
static bool pieces_hold(const struct vb_model_request *request, uint32_t skip, uint64_t key,
			uint32_t length, uint64_t *wrong)
{
	uint64_t offset = 0;

	for (uint32_t i = 0; i < request->piece_count && offset < length; i++) {
		uint64_t address = request->pieces[i].address;
		uint32_t here = request->pieces[i].length;
		uint32_t jump = min32(skip, here);

		skip -= jump;
		here = min32(here - jump, (uint32_t)(length - offset));
		if (!vb_pattern_equal(vb_arena_bytes(request->arena, address + jump), key, offset,
				      here, wrong)) {
			*wrong += offset;
			return false;
		}
		offset += here;
	}
	*wrong = offset;
	return offset == length;
}

/* True if the pieces from byte `skip` on are unchanged. */
static bool pieces_untouched(const struct vb_model_request *request, uint32_t skip, uint64_t *wrong)
{
	for (uint32_t i = 0; i < request->piece_count; i++) {
		uint32_t jump = min32(skip, request->pieces[i].length);

		skip -= jump;
		if (!vb_arena_is_untouched(request->arena, request->pieces[i].address + jump,
					   request->pieces[i].length - jump, wrong))
			return false;
	}
	return true;
}

static void copy_from_pieces(const struct vb_model_request *request, uint8_t *to, uint32_t length)
{
	for (uint32_t i = 0; i < request->piece_count && length; i++) {
		uint32_t here = min32(request->pieces[i].length, length);

		memcpy(to, vb_arena_bytes(request->arena, request->pieces[i].address), here);
		to += here;
		length -= here;
	}
}

static bool remote_holds(const struct vb_model_request *request, uint64_t key, uint64_t *wrong)
{
	return vb_pattern_equal(vb_arena_bytes(request->remote, request->remote_address), key, 0,
				request->length, wrong);
}

static void finish_write(struct vb_model *model, uint32_t index)
{
	struct vb_model_request *request = &model->requests[index];
	struct vb_model_series *series =
		request->series == VB_MODEL_NONE ? NULL : &model->series[request->series];
	uint64_t wrong;

	if (series && (--series->pending || series->is_broken)) {
		vb_arena_close(request->remote, request->remote_address, request->length);
		if (series->is_broken)
			vb_arena_open(request->remote, request->remote_address, request->length);
		return;
	}
	if (!remote_holds(request, request->key, &wrong)) {
		vb_model_report(
			model, index,
			"a WRITE that completed is in place, but a byte is wrong at this offset", 0,
			wrong);
		return;
	}
	vb_arena_accept(request->remote, request->remote_address, request->length);
	vb_arena_close(request->remote, request->remote_address, request->length);
	if (request->owns_remote && request->length)
		vb_arena_release(request->remote, request->remote_address);
	request->opens_remote = false;
}

static void check_read(struct vb_model *model, uint32_t index)
{
	struct vb_model_request *request = &model->requests[index];
	uint64_t wrong;

	if (!pieces_hold(request, 0, request->key, request->length, &wrong))
		vb_model_report(
			model, index,
			"a READ returns what the remote memory holds, but a byte is wrong at this offset",
			0, wrong);
	else if (!pieces_untouched(request, request->length, &wrong))
		vb_model_report(
			model, index,
			"a READ changes only as many bytes as it asked for, but this address changed",
			0, wrong);
	if (request->owns_remote && request->length)
		vb_arena_release(request->remote, request->remote_address);
}

static void on_success(struct vb_model *model, uint32_t index)
{
	struct vb_model_request *request = &model->requests[index];

	switch (request->opcode) {
	case VB_WR_READ:
		check_read(model, index);
		break;
	case VB_WR_WRITE:
	case VB_WR_WRITE_IMM:
	case VB_WR_ATOMIC_WRITE:
		/* An unreliable write may arrive later or never: it is checked at the end. */
		if (request->opens_remote && !request->remote->is_retired &&
		    vb_model_is_reliable(&model->qps[request->qp]))
			finish_write(model, index);
		break;
	case VB_WR_COMPARE_SWAP:
	case VB_WR_FETCH_ADD:
		copy_from_pieces(request, (uint8_t *)&request->old, 8);
		request->is_old_known = request->piece_count > 0;
		break;
	case VB_WR_SEND:
	case VB_WR_SEND_IMM:
	case VB_WR_SEND_INV:
	case VB_WR_LOCAL_INV:
	case VB_WR_BIND_MW:
		break;
	}
}

void vb_delivery_on_send_done(struct vb_model *model, uint32_t index, bool is_success)
{
	struct vb_model_request *request = &model->requests[index];

	if (is_success)
		on_success(model, index);
	else if (request->series != VB_MODEL_NONE)
		model->series[request->series].is_broken = true;
	vb_delivery_give_back(model, request, true);
}

void vb_delivery_on_receive_failed(struct vb_model *model, uint32_t index)
{
	vb_delivery_give_back(model, &model->requests[index], true);
}

uint32_t vb_delivery_next_message(const struct vb_model *model, uint32_t receiver)
{
	uint32_t peer = model->qps[receiver].peer;

	return peer == VB_MODEL_NONE ? VB_MODEL_NONE : model->qps[peer].next_message;
}

static uint32_t header_length(const struct vb_model_qp *qp)
{
	return qp->type == VB_QP_UD ? VB_GRH_SIZE : 0;
}

/* The reason why this receive cannot be the arrival of that message; NULL if it can. */
static const char *find_fault(const struct vb_model *model, const struct vb_model_request *message,
			      const struct vb_model_request *receive,
			      const struct vb_model_completion *completion, uint64_t *expected,
			      uint64_t *found)
{
	const struct vb_model_qp *receiver = &model->qps[completion->qp];
	bool is_write = message->opcode == VB_WR_WRITE_IMM;
	bool may_have_remains = false;
	uint32_t skip = header_length(receiver);
	uint8_t opcode = is_write ? VB_COMPLETION_RECV_WRITE_IMM : VB_COMPLETION_RECV;
	uint8_t extra = (uint8_t)((message->has_imm ? VB_COMPLETION_HAS_IMM : 0) |
				  (message->has_inv ? VB_COMPLETION_HAS_INV : 0));

	*expected = message->length + skip;
	*found = completion->byte_length;
	if (*expected != *found)
		return "a receive's byte_len is the length of the message";
	*expected = opcode;
	*found = completion->opcode;
	if (*expected != *found)
		return "a receive's opcode tells a SEND from a WRITE with immediate";
	*expected = extra;
	*found = completion->flags & (VB_COMPLETION_HAS_IMM | VB_COMPLETION_HAS_INV);
	if (*expected != *found)
		return "a receive's flags tell whether there is an immediate or an invalidated key";
	*expected = message->imm;
	*found = completion->imm;
	if (extra && *expected != *found)
		return "a receive's immediate is the sender's";
	*expected = message->srq;
	*found = receive->srq;
	if (message->srq != VB_MODEL_NONE && *expected != *found)
		return "an XRC message goes to the SRQ that it names";
	*expected = 0;
	if (receiver->type == VB_QP_UC &&
	    (receiver->is_lossy || model->qps[receiver->peer].cause & VB_CAUSE_OWN))
		may_have_remains = true;
	if (is_write) {
		if (message->opens_remote && message->series == VB_MODEL_NONE &&
		    !remote_holds(message, message->key, found))
			return "a WRITE with immediate is in place before its receive completes";
		return may_have_remains || pieces_untouched(receive, 0, found)
			       ? NULL
			       : "a WRITE with immediate leaves the receive's buffer alone, but this address changed";
	}
	if (!pieces_hold(receive, skip, message->key, message->length, found))
		return "a message arrives whole, but a byte is wrong at this offset";
	return may_have_remains || pieces_untouched(receive, skip + message->length, found)
		       ? NULL
		       : "a message changes only its length of the receive's buffer, but this address changed";
}

static void deliver_reliable(struct vb_model *model, uint32_t index,
			     const struct vb_model_completion *completion)
{
	uint32_t message = vb_delivery_next_message(model, completion->qp);
	struct vb_model_qp *sender;
	uint64_t expected, found;
	const char *fault;

	if (message == VB_MODEL_NONE) {
		vb_model_report(model, index,
				"a message arrives once, but more came than were sent", 0, 1);
		return;
	}
	sender = &model->qps[model->qps[completion->qp].peer];
	sender->next_message = model->requests[message].next_message;
	model->requests[message].delivered++;
	model->last_message = message;
	fault = find_fault(model, &model->requests[message], &model->requests[index], completion,
			   &expected, &found);
	if (fault)
		vb_model_report(model, message, fault, expected, found);
}

static bool is_for(const struct vb_model_request *message, uint32_t receiver,
		   const struct vb_model_qp *qp)
{
	if (qp->type == VB_QP_UC)
		return true;
	return message->target == receiver || message->group & qp->groups;
}

static bool can_arrive(const struct vb_model_request *message, uint32_t receiver)
{
	uint32_t count = (message->arrived_once >> receiver % 64 & 1) +
			 (message->arrived_twice >> receiver % 64 & 1);

	return count < message->deliveries_max;
}

static void note_arrival(struct vb_model_request *message, uint32_t receiver)
{
	uint64_t bit = (uint64_t)1 << receiver % 64;

	if (message->arrived_once & bit)
		message->arrived_twice |= bit;
	message->arrived_once |= bit;
	message->delivered++;
}

static void deliver_unreliable(struct vb_model *model, uint32_t index, uint32_t sender,
			       const struct vb_model_completion *completion)
{
	struct vb_model_qp *from = &model->qps[sender];
	const struct vb_model_qp *to = &model->qps[completion->qp];
	bool is_ordered = to->type == VB_QP_UC && !to->is_unordered;
	uint32_t i = is_ordered ? from->next_message : from->first_message;
	uint64_t expected = 0, found = 0;

	for (; i != VB_MODEL_NONE; i = model->requests[i].next_message) {
		struct vb_model_request *message = &model->requests[i];

		if (!is_for(message, completion->qp, to) || !can_arrive(message, completion->qp))
			continue;
		if (find_fault(model, message, &model->requests[index], completion, &expected,
			       &found))
			continue;
		note_arrival(message, completion->qp);
		from->next_message = message->next_message;
		return;
	}
	vb_model_report(
		model, index,
		"an unreliable message arrives whole, unchanged, not more often than the fabric sent it, and in order; "
		"no message that was sent fits this one",
		expected, found);
}

static bool is_ipv4_header_right(const uint8_t *p, const struct vb_gid *from,
				 const struct vb_gid *to, uint32_t udp_length)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < VB_IPV4_SIZE; i += 2)
		sum += load16(p + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	if (p[0] != 0x45 || p[9] != 17 || sum != 0xffff ||
	    load16(p + 2) != VB_IPV4_SIZE + udp_length)
		return false;
	return memcmp(p + 12, from->raw + 12, 4) == 0 &&
	       (memcmp(p + 16, to->raw + 12, 4) == 0 || p[16] >> 4 == 0xe);
}

static bool is_ipv6_header_right(const uint8_t *p, const struct vb_gid *from,
				 const struct vb_gid *to, uint32_t udp_length)
{
	return p[0] >> 4 == 6 && load16(p + 4) == udp_length && memcmp(p + 8, from, 16) == 0 &&
	       (memcmp(p + 24, to, 16) == 0 || p[24] == 0xff);
}

static void check_grh(struct vb_model *model, uint32_t index,
		      const struct vb_model_completion *completion)
{
	const struct vb_model_qp *from = &model->qps[completion->source_qp];
	const struct vb_model_qp *to = &model->qps[completion->qp];
	uint8_t grh[VB_GRH_SIZE] = { 0 };
	uint32_t imm = completion->flags & VB_COMPLETION_HAS_IMM ? VB_IMM_SIZE : 0;
	uint32_t data = (completion->byte_length - VB_GRH_SIZE + 3) / 4 * 4;
	uint32_t udp = VB_UDP_SIZE + VB_BTH_SIZE + VB_DETH_SIZE + imm + data + VB_ICRC_SIZE;

	copy_from_pieces(&model->requests[index], grh, VB_GRH_SIZE);
	if (!(completion->flags & VB_COMPLETION_HAS_GRH))
		vb_model_report(model, index, "a UD receive says that it has a GRH", 1, 0);
	else if (!is_ipv4_header_right(grh + 20, &from->gids[0], &to->gids[0], udp) &&
		 !is_ipv6_header_right(grh, &from->gids[1], &to->gids[1], udp))
		vb_model_report(model, index,
				"a UD receive begins with a valid GRH with the right addresses",
				load32(from->gids[0].raw + 12), load32(grh + 32));
}

void vb_delivery_on_receive(struct vb_model *model, uint32_t index,
			    const struct vb_model_completion *completion)
{
	const struct vb_model_qp *receiver = &model->qps[completion->qp];

	model->last_message = VB_MODEL_NONE;
	if (vb_model_is_reliable(receiver)) {
		deliver_reliable(model, index, completion);
	} else if (receiver->type == VB_QP_UC) {
		deliver_unreliable(model, index, receiver->peer, completion);
	} else if (completion->source_qp == VB_MODEL_NONE) {
		vb_model_report(model, index, "a UD receive names the QP that sent it", 1, 0);
	} else {
		deliver_unreliable(model, index, completion->source_qp, completion);
		check_grh(model, index, completion);
	}
	vb_delivery_give_back(model, &model->requests[index], true);
}

/* Checks that an acknowledged reliable message has arrived. */
static void check_acknowledged(struct vb_model *model, const struct vb_model_qp *qp)
{
	const struct vb_model_qp *peer;

	if (!vb_model_is_reliable(qp) || qp->is_removed || qp->peer == VB_MODEL_NONE)
		return;
	peer = &model->qps[qp->peer];
	if (peer->is_removed || peer->is_waived || peer->cause & VB_CAUSE_OVERRUN ||
	    qp->cause & VB_CAUSE_OVERRUN)
		return;
	for (uint32_t i = qp->first_message; i != VB_MODEL_NONE;
	     i = model->requests[i].next_message) {
		const struct vb_model_request *message = &model->requests[i];

		if (message->outcome == VB_OUTCOME_DONE && message->status == VB_STATUS_SUCCESS &&
		    !message->delivered)
			vb_model_report(
				model, i,
				"a message that was acknowledged arrives, but this one never did",
				1, 0);
	}
}

/* Checks that every byte of an unreliable write is the old or the new one. */
static void check_unreliable_write(struct vb_model *model, uint32_t index)
{
	const struct vb_model_request *request = &model->requests[index];
	const struct vb_arena *arena = request->remote;
	uint64_t at = request->remote_address - arena->base;

	for (uint32_t i = 0; i < request->length; i++) {
		uint64_t wrong;

		if (arena->bytes[at + i] != arena->shadow[at + i] &&
		    !vb_pattern_equal(arena->bytes + at + i, request->key, i, 1, &wrong)) {
			vb_model_report(
				model, index,
				"an unreliable WRITE puts its own data in place or none, not so at this address",
				request->remote_address, request->remote_address + i);
			return;
		}
	}
}

void vb_delivery_check_end(struct vb_model *model)
{
	for (uint32_t i = 0; i < model->qp_count; i++)
		check_acknowledged(model, &model->qps[i]);
	for (uint32_t i = 0; i < model->request_count; i++) {
		const struct vb_model_request *request = &model->requests[i];

		if (!request->is_receive && request->opens_remote && !request->remote->is_retired &&
		    request->series == VB_MODEL_NONE && request->outcome == VB_OUTCOME_DONE &&
		    request->status == VB_STATUS_SUCCESS &&
		    model->qps[request->qp].type == VB_QP_UC)
			check_unreliable_write(model, i);
	}
}
