/* SPDX-License-Identifier: BSD-2-Clause */
/* The ring of async events. */
#include "host/port/async_log.h"

#include "host/sys/clock.h"

#define KEPT_NS (60 * VB_SECOND_NS)

void vb_async_log_init(struct vb_async_log *log)
{
	pthread_mutex_init(&log->lock, NULL);
	log->count = 0;
}

void vb_async_log_add(struct vb_async_log *log, const char *name, uint32_t qpn)
{
	struct vb_async_entry entry = { vb_clock_now(), name, qpn };

	pthread_mutex_lock(&log->lock);
	log->entries[log->count++ % VB_ASYNC_LOG_LENGTH] = entry;
	pthread_mutex_unlock(&log->lock);
}

bool vb_async_log_next(struct vb_async_log *log, uint64_t now_ns, uint32_t *place,
		       struct vb_async_entry *entry_out)
{
	bool is_found = false;

	pthread_mutex_lock(&log->lock);
	if (log->count > VB_ASYNC_LOG_LENGTH && *place < log->count - VB_ASYNC_LOG_LENGTH)
		*place = log->count - VB_ASYNC_LOG_LENGTH;
	while (!is_found && *place < log->count) {
		*entry_out = log->entries[(*place)++ % VB_ASYNC_LOG_LENGTH];
		is_found = entry_out->time_ns + KEPT_NS >= now_ns;
	}
	pthread_mutex_unlock(&log->lock);
	return is_found;
}
