/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The async events of an adapter in the last minute, for `verbatim stat`. The adapter's helper and
 * the thread that drives the engine add to it.
 */
#ifndef VB_HOST_PORT_ASYNC_LOG_H
#define VB_HOST_PORT_ASYNC_LOG_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_ASYNC_LOG_LENGTH 64u /* a power of two; older ones are overwritten */

struct vb_async_entry {
	uint64_t time_ns; /* as in vb_clock_now() */
	const char *name; /* such as "COMM_EST"; a constant */
	uint32_t qpn; /* 0: it concerns no QP */
};

struct vb_async_log {
	pthread_mutex_t lock;
	uint32_t count; /* of all events ever */
	struct vb_async_entry entries[VB_ASYNC_LOG_LENGTH];
};

/* Also for a forked child, which begins with an empty log. */
void vb_async_log_init(struct vb_async_log *log);
void vb_async_log_add(struct vb_async_log *log, const char *name, uint32_t qpn);
/* One event of the last minute, the oldest first: *place is 0 at first. False at the end. */
bool vb_async_log_next(struct vb_async_log *log, uint64_t now_ns, uint32_t *place,
		       struct vb_async_entry *entry_out);

#endif
