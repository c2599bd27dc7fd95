/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an adapter is doing, in words for a person: its QPs, which way each takes and why, and what has gone which way. Other
 * processes of the user ask for it by mail; whoever drives the adapter answers.
 */
#ifndef VB_HOST_STATE_H
#define VB_HOST_STATE_H

#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VB_STATE_TEXT_MAX 32768 /* more is cut off */

struct vb_mail_box;
struct vb_member;
struct vb_neighbors;

/* Answers whoever has asked. `neighbors` may be NULL. */
void vb_state_tell(const struct vb_nic *nic, const struct vb_neighbors *neighbors,
		   struct vb_member *member);
/* Why a QP takes the way it does: "line, …" or "wire: …"; NULL for one that is not connected, or a UD QP, which chooses for each packet. */
const char *vb_state_path(const struct vb_nic *nic, const struct vb_neighbors *neighbors,
			  const struct vb_qp *qp);

/* --- asking (state_ask.c) --------------------------------------------------------------------- */

struct vb_state_answer {
	uint32_t number; /* of the adapter */
	pid_t pid;
	char text[VB_STATE_TEXT_MAX + 1];
};

/* Asks all adapters of this user in this network namespace. A box to take answers from and to close, or NULL. */
struct vb_mail_box *vb_state_ask(uint32_t *asked_count_out);
/* The next answer; false if there is none in so many milliseconds. */
bool vb_state_take(struct vb_mail_box *box, uint32_t wait_ms, struct vb_state_answer *answer);
void vb_state_close(struct vb_mail_box *box);

#endif
