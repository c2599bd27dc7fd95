/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user, one line each: `verbatim: warn: …`, followed by what the message is about
 * as key=value, or an object of JSON. They are written with a bare system call from a buffer on the
 * stack: no function that a program interposes, no allocation, no lock, and errno is preserved. A
 * place that repeats itself is rate-limited; a place is its format string.
 */
#ifndef VB_HOST_SYS_LOG_H
#define VB_HOST_SYS_LOG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum vb_log_level {
	VB_LOG_ERROR, /* something that should work does not */
	VB_LOG_WARN, /* a program asked for the impossible; a peer misbehaves */
	VB_LOG_INFO, /* what was chosen and why */
	VB_LOG_DEBUG,
};

enum vb_log_format {
	VB_LOG_TEXT, /* the message, then key=value */
	VB_LOG_JSON,
};

/*
 * What a message is about, besides this process, which every line names. Parts that are 0 or NULL
 * are left out.
 */
struct vb_log_about {
	/*
	 * What was being done: the verb, or a word. If NULL, it is the first word of the format,
	 * provided that a colon follows and that no argument is in it: "ibv_modify_qp: …".
	 */
	const char *phase;
	const char *device;
	uint32_t qpn;
	int error; /* an errno */
};

#define VB_LOG_MESSAGE_MAX 512 /* longer messages are cut off */
/* Messages of one place in a second; the next one reports how many were left out. */
#define VB_LOG_BURST 10

/*
 * Messages less urgent than `level` are not written. Until this is called: errors only, to stderr.
 */
void vb_log_set_level(enum vb_log_level level);
/* Until this is called: VB_LOG_TEXT. */
void vb_log_set_format(enum vb_log_format format);
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
VB_COLD __attribute__((format(printf, 3, 4))) void vb_log_about(enum vb_log_level level,
								const struct vb_log_about *about,
								const char *format, ...);

/* The parts of a message's subject, in the order of struct vb_log_about: VB_LOG_ABOUT(.qpn = 1). */
#define VB_LOG_ABOUT(...) (&(const struct vb_log_about){ __VA_ARGS__ })

#endif
