/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 of an adapter: where management datagrams (MADs) arrive and leave. Any member of the host may get a MAD: one for a
 * communication ID goes to the member whose number is in its upper bits, a request for a service to the process that holds the
 * service's name, and what is nobody's is refused, also where the process itself makes no connections. All names are those of abstract
 * sockets (host/mail.h), which vanish with their process. Like an engine it is driven by its owner, pulls and never waits.
 */
#ifndef VB_HOST_QP1_H
#define VB_HOST_QP1_H

#include "base/err.h"
#include "host/gsi.h"
#include "nic/frame.h"
#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_qp1;
struct vb_qp1_name;

/* `number` is that of the adapter among the members. Borrows the engine for its life. */
VB_MUST_USE vb_err vb_qp1_create(struct vb_nic *nic, uint32_t number, struct vb_qp1 **qp1_out);
void vb_qp1_destroy(struct vb_qp1 *qp1);

/* Its descriptors: without them it takes nothing from other processes. VB_ENOMEM: there are none to be had. */
VB_MUST_USE vb_err vb_qp1_plug_in(struct vb_qp1 *qp1);
void vb_qp1_unplug(struct vb_qp1 *qp1);
bool vb_qp1_is_intact(const struct vb_qp1 *qp1);

/* In a forked child, which has no user of it. */
void vb_qp1_inherit(struct vb_qp1 *qp1);

/* --- driving ------------------------------------------------------------------------------------ */

/* A frame for QP 1 (vb_nic_is_mad()). */
void vb_qp1_receive(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_frame *frame);

/* Takes in what other processes have sent, when the descriptor is readable or somebody looks. */
int vb_qp1_fd(const struct vb_qp1 *qp1);
void vb_qp1_look(struct vb_qp1 *qp1, uint64_t now_ns);

/*
 * The MADs of the host are to be steered to this member, before anything more is sent: another one has left or died since the last call, and
 * perhaps it got them; or it is time to make sure that somebody gets them who runs.
 */
bool vb_qp1_is_heir(struct vb_qp1 *qp1);

/* Nobody has the RoCE port at that address, or there is no such host. Whether it matters now: */
void vb_qp1_on_unreachable(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_gid *address);
bool vb_qp1_is_waiting(const struct vb_qp1 *qp1);

/* For the user. */
void vb_qp1_on_removal(struct vb_qp1 *qp1, const struct ibv_device *device);

/* What is due, and dispatching. Harmless before the deadline. */
void vb_qp1_expire(struct vb_qp1 *qp1, uint64_t now_ns);
/* Fills slots with MADs to send; returns how many. Not too many at a time, for they have no flow control. */
uint32_t vb_qp1_transmit(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t capacity);
/* Requests that wait for somebody to listen again are refused at the next dispatch: the process leaves. */
void vb_qp1_hold_no_more(struct vb_qp1 *qp1);
/* When vb_qp1_expire() or vb_qp1_transmit() has something to do; 0: now. */
uint64_t vb_qp1_deadline(const struct vb_qp1 *qp1);

/* --- its user ----------------------------------------------------------------------------------- */

/* See host/gsi.h. VB_EBUSY: the process has one. */
VB_MUST_USE vb_err vb_qp1_attach(struct vb_qp1 *qp1, const struct vb_gsi_user *user,
				 struct vb_gsi_place *place_out);
/* MADs that it still has are lost: the caller drives before. */
void vb_qp1_detach(struct vb_qp1 *qp1);
bool vb_qp1_has_user(const struct vb_qp1 *qp1);

/* The user has MADs, or another deadline. The first time: it is ready. */
void vb_qp1_kick(struct vb_qp1 *qp1);

/* The process ends and has not detached: tells the peers of its connections, driven for as long as it is sending. */
void vb_qp1_part(struct vb_qp1 *qp1, uint64_t now_ns);
/* Whether there are MADs, or last words, that wait to be sent. */
bool vb_qp1_is_sending(const struct vb_qp1 *qp1);

/* VB_EBUSY: another process, or this one, has that name. `address` all zero: any. */
VB_MUST_USE vb_err vb_qp1_listen(struct vb_qp1 *qp1, uint64_t service, const struct vb_gid *address,
				 uint32_t families, struct vb_qp1_name **name_out);
void vb_qp1_unlisten(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_name *name);

#endif
