/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The query of all adapters of this user for what they are doing, which host/port/state.h puts
 * into words. It needs no adapter.
 */
#ifndef VB_HOST_REGISTRY_STATE_QUERY_H
#define VB_HOST_REGISTRY_STATE_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VB_STATE_TEXT_MAX 32768 /* longer text is truncated */

#define VB_STATE_HELD "  held: " /* how lines begin that say why a QP was held, and how long */

struct vb_mail_box;

struct vb_state_answer {
	uint32_t number; /* of the adapter */
	pid_t pid;
	char text[VB_STATE_TEXT_MAX + 1];
};

/* A report: JSON (host/port/report.h), or a struct vb_meter_report. */
struct vb_state_report_answer {
	uint32_t number; /* of the adapter */
	pid_t pid;
	const char *text; /* not terminated; the caller ends it with vb_state_end_report() */
	size_t length;
};

/* What is asked for. */
enum vb_state_form { VB_STATE_TEXT, VB_STATE_REPORT, VB_STATE_METER };

/*
 * Asks all adapters of this user in this network namespace. Returns a box to take answers from and
 * to close, or NULL.
 */
struct vb_mail_box *vb_state_ask(enum vb_state_form form, uint32_t *asked_count_out);
/* Takes the next answer; false if none arrives in `wait_ms` milliseconds. */
bool vb_state_take(struct vb_mail_box *box, uint32_t wait_ms, struct vb_state_answer *answer);
bool vb_state_take_report(struct vb_mail_box *box, uint32_t wait_ms,
			  struct vb_state_report_answer *answer);
void vb_state_end_report(const struct vb_state_report_answer *answer);
void vb_state_close(struct vb_mail_box *box);

#endif
