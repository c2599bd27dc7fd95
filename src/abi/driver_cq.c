/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: both ways of polling, arming, resizing. */
#include "abi/observe_priv.h"
#include "abi/refuse_priv.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

static void fill_wc(struct ibv_wc *wc, const struct vb_completion *completion)
{
	*wc = (struct ibv_wc){
		.wr_id = completion->wr_id,
		.status = (enum ibv_wc_status)completion->status,
		.opcode = (enum ibv_wc_opcode)completion->opcode,
		.vendor_err = completion->vendor_error,
		.byte_len = completion->byte_length,
		.qp_num = completion->qpn,
		.src_qp = completion->source_qpn,
		.wc_flags = completion->flags,
		.pkey_index = completion->pkey_index,
		.sl = completion->service_level,
	};
	if (completion->flags & VB_COMPLETION_HAS_INV)
		wc->invalidated_rkey = completion->imm;
	else
		wc->imm_data = htobe32(completion->imm);
}

/*
 * True if completions wait, or arrive after driving the engine once. A poll without result takes no
 * lock of the CQ.
 */
static bool drive_if_empty(const struct vb_abi_cq *cq, struct vb_adapter *adapter)
{
	if (vb_cq_waiting(cq->cq)) {
		vb_adapter_on_poll(adapter);
		return true;
	}
	vb_adapter_poll(adapter, cq->cq);
	return vb_cq_waiting(cq->cq);
}

int vb_abi_cq_poll(struct ibv_cq *cq, int capacity, struct ibv_wc *wc_out)
{
	struct vb_abi_cq *own = vb_abi_cq_of(cq);
	struct vb_adapter *adapter = vb_abi_context_of(cq->context)->adapter;
	const struct vb_completion *completion;
	int done = 0;

	if (!vb_adapter_ensure_usable(adapter))
		return -EIO;
	if (capacity <= 0 || !drive_if_empty(own, adapter))
		return 0;
	vb_lock_take(&own->lock);
	while (done < capacity && (completion = vb_cq_peek(own->cq))) {
		fill_wc(&wc_out[done++], completion);
		vb_abi_note_poll(adapter, completion);
		vb_cq_take(own->cq);
	}
	vb_lock_give(&own->lock);
	return done;
}

int vb_abi_cq_arm(struct ibv_cq *cq, int solicited_only)
{
	struct vb_abi_cq *own = vb_abi_cq_of(cq);
	struct vb_adapter *adapter = vb_abi_context_of(cq->context)->adapter;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	vb_cq_arm(own->cq, solicited_only);
	if (own->channel && vb_cq_has_unannounced(own->cq)) {
		vb_adapter_enter(adapter);
		vb_cq_raise_unannounced(own->cq);
		vb_adapter_leave(adapter);
	}
	/* If the program waits by poll() or the like, only the helper thread drives meanwhile. */
	if (own->channel &&
	    !atomic_load_explicit(&own->channel->is_waited_on, memory_order_relaxed))
		vb_adapter_expect_sleep(adapter);
	return 0;
}

/* --- the extended poll: start takes the lock, end releases it --- */

static struct vb_abi_cq *extended(struct ibv_cq_ex *cq)
{
	return VB_CONTAINER(cq, struct vb_abi_cq, verbs);
}

static int next(struct vb_abi_cq *cq, uint32_t count)
{
	if (!count)
		return ENOENT;
	vb_abi_note_poll(vb_abi_context_of(cq->verbs.context)->adapter, &cq->current);
	cq->verbs.wr_id = cq->current.wr_id;
	cq->verbs.status = (enum ibv_wc_status)cq->current.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	struct vb_adapter *adapter = vb_abi_context_of(cq->context)->adapter;
	struct vb_abi_cq *own = extended(cq);
	int err;

	if (attr->comp_mask)
		return vb_abi_refuse(EINVAL,
				     "ibv_start_poll: CQ %" PRIu32
				     ": comp_mask 0x%x: no bit is supported",
				     cq->handle, attr->comp_mask);
	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	if (!drive_if_empty(own, adapter))
		return ENOENT;
	vb_lock_take(&own->lock);
	err = next(own, vb_cq_poll(own->cq, &own->current, 1));
	/* without a completion the program does not call end_poll */
	if (err)
		vb_lock_give(&own->lock);
	return err;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	struct vb_abi_cq *own = extended(cq);

	return next(own, vb_cq_poll(own->cq, &own->current, 1));
}

static void end_poll(struct ibv_cq_ex *cq)
{
	vb_lock_give(&extended(cq)->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
	return (enum ibv_wc_opcode)extended(cq)->current.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.vendor_error;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.byte_length;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
	const struct vb_completion *completion = &extended(cq)->current;

	/* The field is shared with the invalidated key, which is in the CPU's byte order. */
	return completion->flags & VB_COMPLETION_HAS_INV ? completion->imm
							 : htobe32(completion->imm);
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.qpn;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.source_qpn;
}

static unsigned int read_wc_flags(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0; /* Ethernet has none */
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.service_level;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	(void)cq;
	return 0;
}

static uint64_t read_timestamp(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.timestamp_ns;
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
	const struct vb_completion *completion = &extended(cq)->current;
	bool has_tag = completion->flags & VB_COMPLETION_TM_MATCH;

	info->tag = has_tag ? completion->tag : 0;
	info->priv = has_tag ? completion->tag_context : 0;
}

static uint64_t nanoseconds(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The engine uses the monotonic clock: adds the current difference between the two clocks. */
static uint64_t read_wallclock(struct ibv_cq_ex *cq)
{
	return extended(cq)->current.timestamp_ns + nanoseconds(CLOCK_REALTIME) -
	       nanoseconds(CLOCK_MONOTONIC);
}

static void set_readers(struct ibv_cq_ex *cq, uint64_t flags)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_wc_flags = read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		cq->read_byte_len = read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		cq->read_imm_data = read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		cq->read_qp_num = read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		cq->read_src_qp = read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		cq->read_slid = read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		cq->read_sl = read_sl;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		cq->read_dlid_path_bits = read_dlid_path_bits;
	if (flags & IBV_WC_EX_WITH_TM_INFO)
		cq->read_tm_info = read_tm_info;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		cq->read_completion_ts = read_timestamp;
	if (flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		cq->read_completion_wallclock_ns = read_wallclock;
}

/* All other flags are for raw packets. */
#define FLAGS_KNOWN                                                              \
	((uint64_t)IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
	 IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_TM_INFO)

static uint32_t depth_max(struct ibv_context *context)
{
	return vb_nic_limits(vb_adapter_nic(vb_abi_context_of(context)->adapter)).cq_depth;
}

int vb_abi_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		     struct ibv_cq_ex **cq_out)
{
	struct vb_abi_opened *opened = vb_abi_context_of(context)->opened;
	struct vb_adapter *adapter = opened->adapter;
	struct vb_abi_cq *cq;
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	if (attr->wc_flags & ~FLAGS_KNOWN)
		return vb_abi_refuse(EOPNOTSUPP,
				     "ibv_create_cq_ex: wc_flags 0x%" PRIx64
				     ": bits outside 0x%" PRIx64,
				     attr->wc_flags, FLAGS_KNOWN);
	cq = vb_abi_allocate(attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain
									: NULL,
			     sizeof(*cq), offsetof(struct vb_abi_cq, memory), VB_ABI_CQ);
	if (!cq)
		return ENOMEM;
	cq->verbs.context = context; /* event delivery reads it */
	vb_adapter_enter(adapter);
	err = vb_cq_create(vb_adapter_nic(adapter), attr->cqe, cq, &cq->cq);
	if (!err && !attr->channel)
		vb_cq_stop_events(cq->cq);
	cq->verbs.handle = ++opened->handle_next;
	vb_adapter_leave(adapter);
	if (err) {
		vb_abi_release(cq, offsetof(struct vb_abi_cq, memory));
		return vb_abi_refuse(vb_abi_errno(err),
				     "ibv_create_cq: %s: %" PRIu32 " entries, at most %" PRIu32,
				     opened->device.name, attr->cqe, depth_max(context));
	}
	vb_lock_init(&cq->lock);
	vb_list_init(&cq->waiting);
	cq->channel = attr->channel ? VB_CONTAINER(attr->channel, struct vb_abi_channel, verbs)
				    : NULL;
	cq->verbs.cqe = (int)attr->cqe;
	set_readers(&cq->verbs, attr->wc_flags);
	*cq_out = &cq->verbs;
	return 0;
}

int vb_abi_cq_resize(struct ibv_cq *cq, int cqe)
{
	struct vb_abi_cq *own = vb_abi_cq_of(cq);
	struct vb_adapter *adapter = vb_abi_context_of(cq->context)->adapter;
	uint32_t waiting;
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	vb_adapter_enter(adapter);
	vb_lock_take(&own->lock);
	waiting = vb_cq_waiting(own->cq);
	err = vb_cq_resize(own->cq, cqe < 0 ? 0 : (uint32_t)cqe);
	if (!err)
		cq->cqe = cqe;
	vb_lock_give(&own->lock);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(vb_abi_errno(err),
				     "ibv_resize_cq: CQ %" PRIu32
				     ": %d entries, at least 1 and the %" PRIu32
				     " that wait, at most %" PRIu32,
				     cq->handle, cqe, waiting, depth_max(cq->context));
	return 0;
}

int vb_abi_cq_modify(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct vb_adapter *adapter = vb_abi_context_of(cq->context)->adapter;
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return vb_abi_refuse(EINVAL,
				     "ibv_modify_cq: CQ %" PRIu32 ": attr_mask 0x%x, needs 0x%x",
				     cq->handle, attr->attr_mask, IBV_CQ_ATTR_MODERATE);
	vb_adapter_enter(adapter);
	err = vb_cq_moderate(vb_abi_cq_of(cq)->cq, attr->moderate.cq_count,
			     attr->moderate.cq_period);
	vb_adapter_leave(adapter);
	return vb_abi_errno(err);
}

int vb_abi_cq_destroy(struct ibv_cq *cq, struct vb_abi_reported *reported_out)
{
	struct vb_abi_cq *own = vb_abi_cq_of(cq);
	struct vb_abi_context *context = vb_abi_context_of(cq->context);
	vb_err err;

	if (!vb_adapter_ensure_usable(context->adapter))
		return EIO;
	vb_adapter_enter(context->adapter);
	err = vb_cq_destroy(own->cq);
	if (!err) {
		vb_abi_forget_events(context, own);
		vb_abi_forget_completions(own);
	}
	vb_adapter_leave(context->adapter);
	if (err)
		return vb_abi_refuse(EBUSY, "ibv_destroy_cq: CQ %" PRIu32 " still has QPs or SRQs",
				     cq->handle);
	*reported_out = (struct vb_abi_reported){ own->events_taken, own->async_taken };
	return 0;
}

void vb_abi_cq_free(struct ibv_cq *cq)
{
	struct vb_abi_cq *own = vb_abi_cq_of(cq);

	vb_abi_release(own, offsetof(struct vb_abi_cq, memory));
}
