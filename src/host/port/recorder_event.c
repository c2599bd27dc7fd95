/* SPDX-License-Identifier: BSD-2-Clause */
/* What threads of the program do with the adapter's queues, as records. */
#include "host/port/recorder_priv.h"

#include "base/err.h"
#include "host/sys/clock.h"
#include "nic/request.h"

/* The recording, which stays as long as the caller is announced; NULL: there is none any more. */
static struct vb_recording *enter(struct vb_recorder *recorder, vb_qpn qpn)
{
	struct vb_recorder_session *session;

	atomic_fetch_add(&recorder->writers, 1);
	session = atomic_load(&recorder->current);
	if (!session || !session->wish.has_events ||
	    (session->wish.qpn && session->wish.qpn != qpn.v))
		return NULL;
	return &session->recording;
}

static void leave(struct vb_recorder *recorder)
{
	atomic_fetch_sub(&recorder->writers, 1);
}

/* `recording` may be NULL. NULL: there is no room. */
static struct vb_record *begin(struct vb_recording *recording, enum vb_record_kind kind, vb_qpn qpn,
			       uint64_t wr_id, uint32_t length)
{
	struct vb_record *record = recording ? vb_recording_reserve(recording, length, 0) : NULL;

	if (!record)
		return NULL;
	record->kind = kind;
	record->time_ns = vb_clock_now();
	record->wr_id = wr_id;
	record->qpn = qpn.v;
	return record;
}

VB_COLD void vb_recorder_on_post(struct vb_recorder *recorder, vb_qpn qpn, uint64_t wr_id,
				 uint32_t opcode, uint32_t length)
{
	struct vb_record_post *post;
	struct vb_record *record =
		begin(enter(recorder, qpn), VB_RECORD_POST, qpn, wr_id, sizeof(*post));

	if (record) {
		post = vb_record_body(record);
		*post = (struct vb_record_post){ opcode, length };
		vb_recording_commit(record);
	}
	leave(recorder);
}

VB_COLD void vb_recorder_on_doorbell(struct vb_recorder *recorder, vb_qpn qpn)
{
	struct vb_record *record = begin(enter(recorder, qpn), VB_RECORD_DOORBELL, qpn, 0, 0);

	if (record)
		vb_recording_commit(record);
	leave(recorder);
}

VB_COLD void vb_recorder_on_poll(struct vb_recorder *recorder,
				 const struct vb_completion *completion)
{
	struct vb_record_poll *poll;
	vb_qpn qpn = { completion->qpn };
	struct vb_record *record =
		begin(enter(recorder, qpn), VB_RECORD_POLL, qpn, completion->wr_id, sizeof(*poll));

	if (record) {
		poll = vb_record_body(record);
		*poll = (struct vb_record_poll){
			.completed_ns = completion->timestamp_ns,
			.length = completion->byte_length,
			.status = completion->status,
			.opcode = completion->opcode,
			.is_receive = completion->is_receive,
		};
		vb_recording_commit(record);
	}
	leave(recorder);
}
