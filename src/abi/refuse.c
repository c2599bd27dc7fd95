/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusals of the engine as log messages: the engine names the violated rule, and this file adds
 * the names and numbers that programs know.
 */
#include "abi/refuse_priv.h"

#include "abi/returns.h"
#include "host/sys/limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *vb_abi_device_name(const struct ibv_context *context)
{
	return context->device ? context->device->name : "?";
}

static vb_err err_of(int error)
{
	switch (error) {
	case ENOMEM:
		return VB_ENOMEM;
	case EMFILE:
		return VB_EMFILE;
	case EAGAIN:
		return VB_EAGAIN;
	case EFBIG:
		return VB_EFBIG;
	default:
		return VB_OK;
	}
}

void vb_abi_log_limit(int error)
{
	char limits[VB_LIMIT_TEXT_MAX];

	if (*vb_limit_describe(err_of(error), limits))
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.error = error), "%s%s",
			     strerrordesc_np(error), limits);
}

/* --- transitions --- */

static const char *attribute_name(uint32_t attribute)
{
	static const char *const names[] = {
		"STATE",
		"CUR_STATE",
		"EN_SQD_ASYNC_NOTIFY",
		"ACCESS_FLAGS",
		"PKEY_INDEX",
		"PORT",
		"QKEY",
		"AV",
		"PATH_MTU",
		"TIMEOUT",
		"RETRY_CNT",
		"RNR_RETRY",
		"RQ_PSN",
		"MAX_QP_RD_ATOMIC",
		"ALT_PATH",
		"MIN_RNR_TIMER",
		"SQ_PSN",
		"MAX_DEST_RD_ATOMIC",
		"PATH_MIG_STATE",
		"CAP",
		"DEST_QPN",
	};
	unsigned int bit = (unsigned int)__builtin_ctz(attribute);

	return bit < sizeof(names) / sizeof(names[0]) ? names[bit] : "?";
}

/* "IBV_QP_AV, IBV_QP_RQ_PSN" */
static const char *name_attributes(uint32_t mask, char *text, size_t size)
{
	size_t length = 0;

	for (; mask && length < size; mask &= mask - 1)
		length += (size_t)snprintf(text + length, size - length, "%sIBV_QP_%s",
					   length ? ", " : "", attribute_name(mask & -mask));
	return text;
}

static int refuse_value(const struct vb_abi_qp *qp, const struct vb_qp_refusal *refusal,
			const struct vb_qp_attr *attr)
{
	uint32_t attribute = refusal->wrong, qpn = qp->verbs.qp_num;

	switch (attribute) {
	case VB_ATTR_CUR_STATE:
		return vb_abi_refuse_qp(
			EINVAL, NULL, &qp->verbs,
			"ibv_modify_qp: QP 0x%06x: IBV_QP_CUR_STATE says %s but it is %s", qpn,
			vb_qp_state_describe(attr->current_state),
			vb_qp_state_describe((enum vb_qp_state)refusal->limit));
	case VB_ATTR_ACCESS:
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: IBV_QP_ACCESS_FLAGS 0x%" PRIx64
					" has more than 0x%" PRIx64,
					qpn, refusal->value, refusal->limit);
	case VB_ATTR_ADDRESS:
		return vb_abi_refuse_qp(
			EINVAL, NULL, &qp->verbs,
			"ibv_modify_qp: QP 0x%06x: IBV_QP_AV: there is no GID %" PRIu64
			", or the destination's is zero or of the other IP version",
			qpn, refusal->value);
	case VB_ATTR_PATH_MTU:
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: IBV_QP_PATH_MTU is %" PRIu64
					" bytes, the port's is %" PRIu64,
					qpn, refusal->value, refusal->limit);
	case VB_ATTR_PORT:
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: IBV_QP_PORT is %" PRIu64
					", there is only port 1",
					qpn, refusal->value);
	default:
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: IBV_QP_%s is %" PRIu64
					", at most %" PRIu64,
					qpn, attribute_name(attribute), refusal->value,
					refusal->limit);
	}
}

int vb_abi_refuse_modify(const struct vb_abi_qp *qp, const struct vb_qp_attr *attr, uint32_t mask)
{
	struct vb_qp_refusal refusal = vb_qp_check_modify(qp->qp, attr, mask);
	enum vb_qp_state from = vb_qp_state(qp->qp);
	enum vb_qp_state to = mask & VB_ATTR_STATE ? attr->state : from;
	const char *type = vb_qp_type_describe(vb_qp_type(qp->qp));
	uint32_t qpn = qp->verbs.qp_num;
	char names[256] = "";

	if (refusal.err == VB_EOPNOTSUPP)
		return vb_abi_refuse_qp(EOPNOTSUPP, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: the adapter does not do %s", qpn,
					name_attributes(refusal.wrong, names, sizeof(names)));
	if (refusal.missing)
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: %s from %s to %s misses %s", qpn,
					type, vb_qp_state_describe(from), vb_qp_state_describe(to),
					name_attributes(refusal.missing, names, sizeof(names)));
	if (refusal.excess)
		return vb_abi_refuse_qp(
			EINVAL, NULL, &qp->verbs,
			"ibv_modify_qp: QP 0x%06x: %s from %s to %s does not take %s", qpn, type,
			vb_qp_state_describe(from), vb_qp_state_describe(to),
			name_attributes(refusal.excess, names, sizeof(names)));
	if (refusal.wrong)
		return refuse_value(qp, &refusal, attr);
	if (refusal.err)
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_modify_qp: QP 0x%06x: %s cannot go from %s to %s", qpn,
					type, vb_qp_state_describe(from), vb_qp_state_describe(to));
	return 0;
}

/* --- work requests --- */

static uint64_t length_of(const struct vb_sge *sges, uint32_t count)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < count; i++)
		length += sges[i].length;
	return length;
}

/* The refusals common to both directions. */
static int refuse_post(const struct vb_log_about *about, const char *object, uint32_t number,
		       enum vb_post_refusal refusal, uint32_t sge_count, uint32_t sge_max)
{
	const char *verb = about->phase;
	struct vb_log_about invalid = *about;

	invalid.error = EINVAL;
	switch (refusal) {
	case VB_POST_SGE_COUNT:
		vb_log_about(VB_LOG_WARN, &invalid, "%s: %s 0x%06x: %d SGEs, at most %" PRIu32,
			     verb, object, number, (int)sge_count, sge_max);
		return EINVAL;
	case VB_POST_LENGTH:
		vb_log_about(VB_LOG_WARN, &invalid,
			     "%s: %s 0x%06x: the SGEs are longer than %u bytes together", verb,
			     object, number, VB_MESSAGE_LENGTH_MAX);
		return EINVAL;
	default:
		break;
	}
	if (about->error == ENOMEM)
		vb_log_about(VB_LOG_DEBUG, about, "%s: %s 0x%06x is full", verb, object, number);
	else
		vb_log_about(VB_LOG_WARN, about,
			     "%s: %s 0x%06x: inline data are not in readable memory", verb, object,
			     number);
	return about->error;
}

VB_COLD int vb_abi_refuse_send(const char *verb, const struct vb_abi_qp *qp,
			       const struct vb_send_request *request, vb_err err)
{
	enum vb_post_refusal refusal = vb_qp_check_send(qp->qp, request);
	const char *type = vb_qp_type_describe(vb_qp_type(qp->qp));
	uint32_t qpn = qp->verbs.qp_num;
	struct vb_qp_init capacity;

	vb_qp_query_init(qp->qp, &capacity);
	switch (refusal) {
	case VB_POST_OPCODE:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs,
					"%s: QP 0x%06x: there is no operation %d", verb, qpn,
					(int)request->opcode);
	case VB_POST_SERVICE:
		return vb_abi_refuse_qp(EOPNOTSUPP, verb, &qp->verbs,
					"%s: QP 0x%06x: %s does not have operation %d", verb, qpn,
					type, (int)request->opcode);
	case VB_POST_STATE:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs,
					"%s: QP 0x%06x: in state %s nothing can be sent", verb, qpn,
					vb_qp_state_describe(vb_qp_state(qp->qp)));
	case VB_POST_NO_INLINE:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs,
					"%s: QP 0x%06x: operation %d cannot have inline data", verb,
					qpn, (int)request->opcode);
	case VB_POST_INLINE_LENGTH:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs,
					"%s: QP 0x%06x: %" PRIu64
					" bytes of inline data, at most %" PRIu32,
					verb, qpn, length_of(request->sges, request->sge_count),
					capacity.inline_max);
	case VB_POST_ATOMIC_LENGTH:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs,
					"%s: QP 0x%06x: an atomic of %" PRIu64 " bytes, not 8",
					verb, qpn, length_of(request->sges, request->sge_count));
	case VB_POST_WINDOW_KEY:
		return vb_abi_refuse_qp(
			EINVAL, verb, &qp->verbs,
			"%s: QP 0x%06x: key 0x%08x is none that the window may get: only "
			"the low 8 bits may be new",
			verb, qpn, request->bind.rkey);
	case VB_POST_ADDRESS_HANDLE:
		return vb_abi_refuse_qp(EINVAL, verb, &qp->verbs, "%s: QP 0x%06x: %s", verb, qpn,
					request->ah ? "the address handle is of another PD"
						    : "a datagram needs an address handle");
	case VB_POST_OK:
	case VB_POST_NO_QUEUE:
	case VB_POST_SGE_COUNT:
	case VB_POST_LENGTH:
		break;
	}
	return refuse_post(VB_LOG_ABOUT(.phase = verb,
					.device = vb_abi_device_name(qp->verbs.context), .qpn = qpn,
					.error = vb_abi_errno(err)),
			   "QP", qpn, refusal, request->sge_count, capacity.send_sge_max);
}

VB_COLD int vb_abi_refuse_recv(const struct vb_abi_qp *qp, const struct vb_recv_request *request,
			       vb_err err)
{
	enum vb_post_refusal refusal = vb_qp_check_recv(qp->qp, request);
	uint32_t qpn = qp->verbs.qp_num;
	struct vb_qp_init capacity;

	vb_qp_query_init(qp->qp, &capacity);
	if (refusal == VB_POST_NO_QUEUE)
		return vb_abi_refuse_qp(EINVAL, NULL, &qp->verbs,
					"ibv_post_recv: QP 0x%06x: its receives come from an SRQ",
					qpn);
	if (refusal == VB_POST_STATE)
		return vb_abi_refuse_qp(
			EINVAL, NULL, &qp->verbs,
			"ibv_post_recv: QP 0x%06x: in state RESET nothing can be posted", qpn);
	return refuse_post(VB_LOG_ABOUT(.phase = "ibv_post_recv",
					.device = vb_abi_device_name(qp->verbs.context), .qpn = qpn,
					.error = vb_abi_errno(err)),
			   "QP", qpn, refusal, request->sge_count, capacity.recv_sge_max);
}

VB_COLD int vb_abi_refuse_srq_recv(const struct vb_abi_srq *srq,
				   const struct vb_recv_request *request, vb_err err)
{
	return refuse_post(VB_LOG_ABOUT(.phase = "ibv_post_srq_recv",
					.device = vb_abi_device_name(srq->verbs.context),
					.error = vb_abi_errno(err)),
			   "SRQ", vb_srq_number(srq->srq), vb_srq_check_recv(srq->srq, request),
			   request->sge_count, vb_srq_sge_max(srq->srq));
}

VB_COLD int vb_abi_refuse_tag(const struct vb_abi_srq *srq, const struct vb_tag_request *request,
			      vb_err err)
{
	struct vb_nic_limits limits =
		vb_nic_limits(vb_adapter_nic(vb_abi_context_of(srq->verbs.context)->adapter));
	uint32_t number = vb_srq_number(srq->srq);
	int error = vb_abi_errno(err);

	switch (vb_srq_check_tag(srq->srq, request)) {
	case VB_TAG_NO_LIST:
		return vb_abi_refuse(error, "ibv_post_srq_ops: SRQ 0x%06x: it has no tags", number);
	case VB_TAG_OPCODE:
		return vb_abi_refuse(error, "ibv_post_srq_ops: SRQ 0x%06x: no operation %d", number,
				     (int)request->opcode);
	case VB_TAG_FLAGS:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: flags 0x%x: bits outside 0x%x",
				     number, request->flags, VB_TAG_SIGNALED | VB_TAG_HAS_COUNT);
	case VB_TAG_SGE_COUNT:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: %" PRIu32
				     " SGEs, at most %" PRIu32,
				     number, request->sge_count, limits.tag_sge);
	case VB_TAG_LENGTH:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: %" PRIu64
				     " bytes in the SGEs, at most %u",
				     number, length_of(request->sges, request->sge_count),
				     VB_MESSAGE_LENGTH_MAX);
	case VB_TAG_HANDLE:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: no tag ever had handle 0x%x",
				     number, request->handle);
	case VB_TAG_OK: /* there is room by now */
	case VB_TAG_QUEUE_FULL:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: as many operations wait as "
				     "its max_ops permits",
				     number);
	case VB_TAG_LIST_FULL:
		return vb_abi_refuse(error,
				     "ibv_post_srq_ops: SRQ 0x%06x: all of its max_num_tags are "
				     "in use",
				     number);
	}
	return error;
}
