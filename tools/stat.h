/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `verbatim stat`. */
#ifndef VB_TOOLS_STAT_H
#define VB_TOOLS_STAT_H

#include <stddef.h>
#include <sys/types.h>

#define STAT_WAIT_MS 1000
#define STAT_COMM_MAX 64

struct vb_text;

/* The name of a process; "?" if it cannot be found. */
void stat_comm(pid_t pid, char comm[STAT_COMM_MAX]);

/*
 * stat_json.c: writes one line of JSON about all processes, or the one with that pid. Returns the
 * exit status.
 */
int stat_print_json(pid_t pid);

/* stat_metrics.c: adds the totals of all devices. Returns 0 or an errno. */
int stat_add_metrics(struct vb_text *text);

/* stat_listen.c: serves them at ADDRESS:PORT. Returns the exit status, if it fails. */
int stat_listen(const char *address);

#endif
