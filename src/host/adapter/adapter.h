/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open device: an engine, its link, and the threads that drive it. The thread that polls or
 * posts drives the engine itself. A helper thread takes over when no other thread does, so that
 * one-sided operations continue while the program computes, sleeps or spins on its memory.
 */
#ifndef VB_HOST_ADAPTER_ADAPTER_H
#define VB_HOST_ADAPTER_ADAPTER_H

#include "base/err.h"
#include "nic/nic.h"
#include "nic/request.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_adapter;
struct vb_config;
struct vb_device;
struct vb_qp;
struct vb_qp1;
struct vb_recorder;
struct vb_udp;

struct vb_adapter_init {
	const struct vb_device *device; /* borrowed for the call */
	const struct vb_config *config; /* borrowed until the adapter is closed */
	/*
	 * Called for each event by the thread that drives, as the engine's owner: it must not call
	 * back into the adapter.
	 */
	void (*on_event)(void *owner, const struct vb_event *event);
	/*
	 * Called by the helper thread when the interface has changed; `what` is of enum
	 * vb_device_change. May be NULL.
	 */
	void (*on_change)(void *owner, uint32_t what);
	void *owner;
};

VB_MUST_USE vb_err vb_adapter_open(const struct vb_adapter_init *init,
				   struct vb_adapter **adapter_out);

/* All objects of the engine must be gone. Ends the helper thread. */
void vb_adapter_close(struct vb_adapter *adapter);

/*
 * Every verb asks this first. False in a forked child as long as the parent still has the adapter:
 * the child can then only close it. If the parent is gone, the child takes the adapter over. Right
 * after the fork this may take a second.
 */
bool vb_adapter_ensure_usable(struct vb_adapter *adapter);

/* Of observers that trace, for those who post and poll. It is of the adapter. */
struct vb_recorder *vb_adapter_recorder(struct vb_adapter *adapter);
struct vb_nic *vb_adapter_nic(const struct vb_adapter *adapter);
struct vb_udp *vb_adapter_link(const struct vb_adapter *adapter);
struct vb_qp1 *vb_adapter_qp1(const struct vb_adapter *adapter);
uint64_t vb_adapter_device_memory(const struct vb_adapter *adapter); /* bytes on the adapter */

/*
 * Not for the owner. The device with everything that the kernel has reported about its interface:
 * the addresses are those of this moment.
 */
void vb_adapter_device(struct vb_adapter *adapter, struct vb_device *device_out);
/*
 * The same; in addition the port is active if the link is up at this moment. The kernel announces
 * that late, so while the port is not active, the kernel is asked.
 */
void vb_adapter_device_with_link_state(struct vb_adapter *adapter, struct vb_device *device_out);

/*
 * The program wants to see the traffic class and hop limit of packets: they are 0 before this call.
 */
void vb_adapter_enable_ip_fields(struct vb_adapter *adapter);

/*
 * Between these two calls the caller owns the engine. Needed for everything but nic/rings.h. Not
 * recursive.
 */
void vb_adapter_enter(struct vb_adapter *adapter);
/* The same, for a call that ends a QP: processes and answers first what has arrived. */
void vb_adapter_enter_to_end(struct vb_adapter *adapter);
void vb_adapter_leave(struct vb_adapter *adapter);

/*
 * vb_adapter_prepare_path(): before a QP is connected to that peer, not as the owner. Meets the
 * process that has the peer's QP, if it is a process of this host. Takes a tenth of a second at
 * most.
 *
 * vb_adapter_choose_path(): after that, as the owner. The QP takes a shared-memory link to that
 * process, if there is one.
 */
void vb_adapter_prepare_path(struct vb_adapter *adapter, const struct vb_gid *gid, vb_qpn qpn);
void vb_adapter_choose_path(struct vb_adapter *adapter, struct vb_qp *qp);

/*
 * vb_adapter_share(): as the owner, before a range is registered. Returns the number of the shared
 * mapping that the range lies in, or of the one that some of it was converted to, for the row of
 * its region; or 0. A range without remote access is not converted: peers only read the data of
 * long SENDs from it, and can do so in another way.
 *
 * vb_adapter_unshare(): when no row has that number any more.
 */
uint32_t vb_adapter_share(struct vb_adapter *adapter, uint64_t address, uint64_t length,
			  bool is_remote);
void vb_adapter_unshare(struct vb_adapter *adapter, uint32_t segment);

/*
 * As the owner, when a region or QP was closed to its peers: returns when none of them is still
 * acting on it. One of them may be stopped, so other threads may own the adapter in the meantime.
 */
void vb_adapter_await_local_peers(struct vb_adapter *adapter);

/* The program looked for completions and found some. */
void vb_adapter_on_poll(struct vb_adapter *adapter);

/*
 * The program found no completion in `cq` (or NULL): drives the engine a little, unless another
 * thread already does so.
 */
void vb_adapter_poll(struct vb_adapter *adapter, const struct vb_cq *cq);

/*
 * Something was posted. vb_adapter_kick_qp() does the same for requests that are in the send queue
 * of a QP but that the engine was not notified of.
 */
void vb_adapter_kick(struct vb_adapter *adapter);
void vb_adapter_kick_qp(struct vb_adapter *adapter, struct vb_qp *qp);

/*
 * A request is about to be posted by the thread that holds the lock of the QP's send queue. True:
 * the request is already executed and need not be posted (see vb_qp_write_now() in
 * nic/nic.h).
 */
bool vb_adapter_write_now(struct vb_adapter *adapter, struct vb_qp *qp,
			  const struct vb_send_request *request);

/* Something was posted that a peer waits for: it is sent without waiting for further packets. */
void vb_adapter_kick_now(struct vb_adapter *adapter);

/*
 * The program has armed a CQ and will wait for its event by itself, in poll() or the like: from now
 * on the helper thread waits on the sockets.
 */
void vb_adapter_expect_sleep(struct vb_adapter *adapter);

/*
 * Waits until `fd` is readable, driving the engine meanwhile. Returns 0, or the errno of a signal
 * that came first.
 */
VB_MUST_USE int vb_adapter_wait(struct vb_adapter *adapter, int fd);

#endif
