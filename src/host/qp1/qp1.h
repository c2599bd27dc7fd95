/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of an adapter, where management datagrams (MADs) arrive and leave. Any port member of the
 * host may get a MAD. A MAD for a communication ID goes to the member with the number in the ID's
 * upper bits, and a request for a service to the process that holds the service's name. A MAD that
 * belongs to no process is refused, even by a process that makes no connections itself. All names
 * are those of abstract sockets (host/registry/mail.h), which vanish with their process. Like an
 * engine, QP 1 is driven by its owner, pulls and never waits.
 */
#ifndef VB_HOST_QP1_QP1_H
#define VB_HOST_QP1_QP1_H

#include "base/err.h"
#include "framing/frame.h"
#include "host/qp1/qp1_user.h"
#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_qp1;
struct vb_qp1_name;

/* `number` is the adapter's number among the port members. Borrows the engine for its lifetime. */
VB_MUST_USE vb_err vb_qp1_create(struct vb_nic *nic, uint32_t number, struct vb_qp1 **qp1_out);
void vb_qp1_destroy(struct vb_qp1 *qp1);

/*
 * Creates the descriptors: without them, QP 1 takes nothing from other processes. VB_ENOMEM: none
 * are available.
 */
VB_MUST_USE vb_err vb_qp1_plug_in(struct vb_qp1 *qp1);
void vb_qp1_unplug(struct vb_qp1 *qp1);
bool vb_qp1_is_intact(const struct vb_qp1 *qp1);
/* Forgets connections of its mail whose descriptors the program has closed. */
void vb_qp1_drop_lost_connections(struct vb_qp1 *qp1);

/* To be called in a forked child, where QP 1 has no user. */
void vb_qp1_inherit(struct vb_qp1 *qp1);

/* --- driving ---------------------------------------------------------------------------------- */

/* Takes a frame for QP 1 (vb_nic_is_for_qp1()). */
void vb_qp1_receive(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_frame *frame);

/* Takes what other processes have sent, when the descriptor is readable or the caller polls. */
int vb_qp1_fd(const struct vb_qp1 *qp1);
void vb_qp1_receive_mail(struct vb_qp1 *qp1, uint64_t now_ns);

/*
 * Whether the MADs of the host must be steered to this member before anything more is sent. Either
 * another member has left or died since the last call, and perhaps it got them; or it is time to
 * make sure that a running member gets them.
 */
bool vb_qp1_take_steering_claim(struct vb_qp1 *qp1);

/*
 * vb_qp1_on_unreachable(): no process has the RoCE port at that address, or there is no such host.
 * vb_qp1_is_waiting(): whether that matters now.
 */
void vb_qp1_on_unreachable(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_gid *address);
bool vb_qp1_is_waiting(const struct vb_qp1 *qp1);

/* Notifies the user. */
void vb_qp1_on_removal(struct vb_qp1 *qp1, const struct ibv_device *device);

/* Does what is due, and dispatches. Harmless before the deadline. */
void vb_qp1_expire(struct vb_qp1 *qp1, uint64_t now_ns);
/*
 * Fills slots with MADs to send; returns their number. Sends only a few at a time, because MADs
 * have no flow control.
 */
uint32_t vb_qp1_transmit(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t capacity);
/*
 * Requests that wait for a process to listen again are refused at the next dispatch, because this
 * process leaves.
 */
void vb_qp1_release_held(struct vb_qp1 *qp1);
/* When vb_qp1_expire() or vb_qp1_transmit() has something to do; 0: now. */
uint64_t vb_qp1_deadline(const struct vb_qp1 *qp1);

/* --- its user --------------------------------------------------------------------------------- */

/* See host/qp1/qp1_user.h. VB_EBUSY: the process already has a user. */
VB_MUST_USE vb_err vb_qp1_attach(struct vb_qp1 *qp1, const struct vb_qp1_user *user,
				 struct vb_qp1_config *place_out);
/* MADs that the user still has are lost: the caller must drive QP 1 first. */
void vb_qp1_detach(struct vb_qp1 *qp1);
bool vb_qp1_has_user(const struct vb_qp1 *qp1);

/* The user has MADs, or another deadline. The first call means that it is ready. */
void vb_qp1_kick(struct vb_qp1 *qp1);

/*
 * The process ends and has not detached: notifies the peers of its connections. The caller drives
 * QP 1 while it is sending.
 */
void vb_qp1_begin_own_farewells(struct vb_qp1 *qp1, uint64_t now_ns);
/* Whether MADs, or last messages, wait to be sent. */
bool vb_qp1_is_sending(const struct vb_qp1 *qp1);

/* VB_EBUSY: another process, or this one, has that name. `address` all zero: any. */
VB_MUST_USE vb_err vb_qp1_listen(struct vb_qp1 *qp1, uint64_t service, const struct vb_gid *address,
				 uint32_t families, struct vb_qp1_name **name_out);
void vb_qp1_unlisten(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_name *name);

#endif
