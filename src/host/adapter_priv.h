/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an open device. adapter.c makes and ends it, crank.c drives its engine, helper.c is the thread that does so
 * when nobody else does, follow.c keeps up with the interface.
 */
#ifndef VB_HOST_ADAPTER_PRIV_H
#define VB_HOST_ADAPTER_PRIV_H

#include "host/adapter.h"
#include "host/device.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

struct vb_member;
struct vb_pump;
struct vb_udp;

struct vb_adapter {
	pthread_mutex_t owner; /* who has it may call the engine, the pump and the link */
	struct vb_nic *nic;
	struct vb_member *member;
	struct vb_pump *pump;
	struct vb_udp *udp;
	struct vb_adapter_init init;
	struct vb_gid host_gid; /* that is no address and reaches this host only; or all zero */
	uint8_t *tables; /* key rows, QP rows, zero page, device memory: one mapping */
	size_t tables_length;
	uint64_t moves; /* how often driving moved something; the owner's */

	int wake_fd; /* of the helper */
	int watch_fd; /* tells of changes of interfaces; negative: nobody does */
	pthread_t helper;
	_Atomic bool is_closing;
	_Atomic uint64_t helper_wakes_ns; /* when the helper will look by itself; or HELPER_PAUSES */

	pthread_mutex_t device_lock;
	struct vb_device device; /* as the interface is now; the helper changes it */
	bool is_gone; /* the interface; the helper's */

	_Atomic uint64_t polled_ns; /* when somebody last looked for completions */
	_Atomic uint32_t polls_uncounted; /* so many more looks in vain do not count */
	_Atomic uint32_t idle_polls; /* in a row that moved nothing */
	_Atomic uint32_t waiter_count; /* threads in vb_adapter_wait(): they wait on the sockets */
};

/* While others poll the helper looks every millisecond: nobody needs to wake it for a deadline. */
#define HELPER_PAUSES 0u

static inline uint64_t vb_adapter_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- crank.c --- */

/*
 * As the owner: moves packets until nothing moves, but not for ever. Returns when to look again: the engine's next deadline,
 * or 0 if there was no end.
 */
uint64_t vb_adapter_drive(struct vb_adapter *adapter);

struct pollfd;
/* poll() until this time. Returns what that returns. */
int vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns);

/* --- helper.c --- */

VB_MUST_USE vb_err vb_adapter_start_helper(struct vb_adapter *adapter);
void vb_adapter_stop_helper(struct vb_adapter *adapter);

/* Makes the helper look at this time at the latest. */
void vb_adapter_wake_helper_before(struct vb_adapter *adapter, uint64_t deadline_ns);

/* Makes a helper that pauses look now. */
void vb_adapter_end_pause(struct vb_adapter *adapter);

/* --- follow.c --- */

/* As the helper: the watch has something to tell. */
void vb_adapter_follow(struct vb_adapter *adapter);

/* --- adapter.c --- */

/* As the owner. */
void vb_adapter_set_host_gid(struct vb_adapter *adapter, const struct vb_device *device);

#endif
