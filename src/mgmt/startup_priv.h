/* SPDX-License-Identifier: BSD-2-Clause */
/* What the two roles of the set-up have in common: changes of state, output, refusals. */
#ifndef VB_MGMT_STARTUP_PRIV_H
#define VB_MGMT_STARTUP_PRIV_H

#include "base/timer.h"
#include "mgmt/startup.h"
#include "wire/rdmap.h"

void vb_startup_send_frame(struct vb_startup *startup, const struct vb_mpa_frame *frame);
/* A Terminate instead of the first FPDU. */
void vb_startup_send_terminate(struct vb_startup *startup, struct vb_rdmap_error error);

void vb_startup_note_event(struct vb_startup *startup, enum vb_cm_event_kind kind);

/* The socket is closed at once. */
void vb_startup_close(struct vb_startup *startup, enum vb_startup_reason reason);
/* The socket is closed when the output is out and the peer has closed, or a second later. */
void vb_startup_finish(struct vb_startup *startup, enum vb_startup_reason reason, uint64_t now_ns);

/* The stream belongs to the QP from now on. */
void vb_startup_enter_up(struct vb_startup *startup);

/* What the roles do. */
void vb_startup_on_reply(struct vb_startup *startup, uint64_t now_ns);
void vb_startup_on_bad_reply(struct vb_startup *startup, uint64_t now_ns);
void vb_startup_on_lost_reply(struct vb_startup *startup, uint64_t now_ns);
void vb_startup_on_request(struct vb_startup *startup, uint64_t now_ns);
void vb_startup_on_reply_sent(struct vb_startup *startup, uint64_t now_ns);

/* It must fit the frame. */
void vb_startup_set_private(struct vb_mpa_frame *frame, const void *data, uint32_t length);

#endif
