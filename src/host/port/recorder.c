/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The life of a recording. The owner of the engine begins and ends it. Threads that post or poll
 * announce themselves before they look for it, so the owner sees whether one may still be writing,
 * and then frees the memory another time.
 */
#include "host/port/recorder_priv.h"

#include "base/heap.h"

static void free_retired(struct vb_recorder *recorder)
{
	struct vb_recorder_session *session = recorder->retired;

	if (!session || atomic_load(&recorder->writers))
		return;
	vb_recording_close(&session->recording);
	vb_heap_free(session);
	recorder->retired = NULL;
}

bool vb_recorder_begin(struct vb_recorder *recorder, const struct vb_nic *nic,
		       const struct vb_recording_wish *wish, const char *device, uint32_t number)
{
	struct vb_recorder_session *session;

	free_retired(recorder);
	if (vb_recorder_is_on(recorder) || recorder->retired)
		return false;
	session = vb_heap_alloc(1, sizeof(*session));
	if (!session)
		return false;
	if (!vb_recording_open(&session->recording, device, number)) {
		vb_heap_free(session);
		return false;
	}
	session->wish = *wish;
	session->nic = nic;
	session->tap = (struct vb_tap){ session, vb_recorder_on_sent, vb_recorder_on_received,
					vb_recorder_on_executed };
	atomic_store(&recorder->current, session);
	return true;
}

const struct vb_tap *vb_recorder_tap(const struct vb_recorder *recorder)
{
	return &atomic_load(&recorder->current)->tap;
}

int vb_recorder_fd(const struct vb_recorder *recorder)
{
	return atomic_load(&recorder->current)->recording.fd;
}

/* Any other value of the observer's word is a sign of life. */
static bool is_silent(struct vb_recorder_session *session, uint64_t now_ns)
{
	uint32_t beat =
		atomic_load_explicit(&session->recording.memory->beat, memory_order_relaxed);

	if (beat != session->beat || !session->beat_ns) {
		session->beat = beat;
		session->beat_ns = now_ns;
	}
	return now_ns > session->beat_ns && now_ns - session->beat_ns > VB_RECORDER_LEASE_NS;
}

bool vb_recorder_is_over(struct vb_recorder *recorder, uint64_t now_ns)
{
	struct vb_recorder_session *session = atomic_load(&recorder->current);

	free_retired(recorder);
	return session &&
	       (atomic_load_explicit(&session->recording.memory->is_closed, memory_order_relaxed) ||
		is_silent(session, now_ns));
}

void vb_recorder_end(struct vb_recorder *recorder, bool is_ours)
{
	struct vb_recorder_session *session = atomic_exchange(&recorder->current, NULL);

	if (!session)
		return;
	if (is_ours)
		atomic_store(&session->recording.memory->is_ended, 1);
	recorder->retired = session;
	free_retired(recorder);
}
