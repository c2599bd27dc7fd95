/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user, one line each, `verbatim: warn: …`. They are written with a bare system
 * call from a buffer on the stack: no function that a program interposes, no allocation, no lock,
 * and errno is preserved. A place that repeats itself is rate-limited; a place is its format
 * string.
 */
#ifndef VB_HOST_SYS_LOG_H
#define VB_HOST_SYS_LOG_H

#include "base/err.h"

#include <stdbool.h>

enum vb_log_level {
	VB_LOG_ERROR, /* something that should work does not */
	VB_LOG_WARN, /* a program asked for the impossible; a peer misbehaves */
	VB_LOG_INFO, /* what was chosen and why */
	VB_LOG_DEBUG,
};

#define VB_LOG_LINE_MAX 512 /* longer lines are cut off */
/* Messages of one place in a second; the next one reports how many were left out. */
#define VB_LOG_BURST 10

/*
 * Messages less urgent than `level` are not written. Until this is called: errors only, to stderr.
 */
void vb_log_set_level(enum vb_log_level level);
bool vb_log_is_on(enum vb_log_level level);
/* Nothing is written any more: for a library inside programs that have nothing to do with us. */
void vb_log_mute(void);

/*
 * Lines are added to this file from now on; "" is stderr. The file is opened for each line, because
 * programs close descriptors that they do not know. A line that cannot be written there goes to
 * stderr.
 */
void vb_log_set_file(const char *path);

VB_COLD __attribute__((format(printf, 2, 3))) void vb_log(enum vb_log_level level,
							  const char *format, ...);

#endif
