/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an adapter is doing, in words for a person: its QPs, the path of each and the reason for it,
 * and the traffic on each path. Other processes of the user ask for it by mail; the thread that
 * drives the adapter answers.
 */
#ifndef VB_HOST_STATE_H
#define VB_HOST_STATE_H

#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VB_STATE_TEXT_MAX 32768 /* longer text is truncated */

struct vb_mail_box;
struct vb_port_member;
struct vb_local_peers;

/* Answers the process that has asked. `peers` may be NULL. */
void vb_state_report(const struct vb_nic *nic, const struct vb_local_peers *peers,
		     struct vb_port_member *member);
/*
 * The reason for a QP's path: "shared memory, …" or "wire: …"; NULL for a QP that is not connected,
 * or a UD QP, which chooses a path for each packet.
 */
const char *vb_state_path(const struct vb_nic *nic, const struct vb_local_peers *peers,
			  const struct vb_qp *qp);

/* --- asking (state_ask.c) --------------------------------------------------------------------- */

struct vb_state_answer {
	uint32_t number; /* of the adapter */
	pid_t pid;
	char text[VB_STATE_TEXT_MAX + 1];
};

/*
 * Asks all adapters of this user in this network namespace. Returns a box to take answers from and
 * to close, or NULL.
 */
struct vb_mail_box *vb_state_ask(uint32_t *asked_count_out);
/* Takes the next answer; false if none arrives in `wait_ms` milliseconds. */
bool vb_state_take(struct vb_mail_box *box, uint32_t wait_ms, struct vb_state_answer *answer);
void vb_state_close(struct vb_mail_box *box);

#endif
