/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The observer's side of recordings: it asks adapters of its user for them, and takes those that
 * come. Programs that it starts find its name in the environment and come by themselves. It needs
 * no adapter. Both sides have proof that the other is of the same user (host/registry/mail.h).
 */
#ifndef VB_HOST_REGISTRY_RECORDING_QUERY_H
#define VB_HOST_REGISTRY_RECORDING_QUERY_H

#include "host/registry/recording.h"

#include <inttypes.h>
#include <sys/types.h>

/* In the environment of programs that an observer starts: its name and its wish. */
#define VB_RECORDING_VARIABLE "VERBATIM_TRACE"
#define VB_RECORDING_FORM "%31[a-z0-9-]:%" SCNu32 ":%" SCNu32 ":%" SCNu32
#define VB_RECORDING_TEXT_MAX 80

struct vb_mail_box;

struct vb_recording_answer {
	pid_t pid;
	uint32_t number; /* of the adapter */
	bool is_refused; /* then the reader is not open */
	struct vb_recording_reader reader;
};

/* A box for answers and offers; NULL: there is none. `variable` is for programs to be started. */
struct vb_mail_box *vb_recording_query_open(const struct vb_recording_wish *wish,
					    char variable[VB_RECORDING_TEXT_MAX]);
void vb_recording_query_close(struct vb_mail_box *box);
/* The processes of this user that have adapters, in no order; returns their number. */
uint32_t vb_recording_query_list(pid_t *pids, uint32_t capacity);
/* Asks the adapters of that process; returns how many there are. */
uint32_t vb_recording_query_ask(struct vb_mail_box *box, pid_t pid,
				const struct vb_recording_wish *wish);
/* Never waits. False: nothing has come. */
bool vb_recording_query_take(struct vb_mail_box *box, struct vb_recording_answer *answer);

#endif
