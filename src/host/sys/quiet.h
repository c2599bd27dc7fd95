/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protection for system calls of ours that would end the program by a signal if they fail: SIGPIPE
 * if a reader is gone, SIGXFSZ if a file would exceed RLIMIT_FSIZE. Between the two calls this
 * thread gets neither signal.
 */
#ifndef VB_HOST_SYS_QUIET_H
#define VB_HOST_SYS_QUIET_H

#include <signal.h>
#include <stddef.h>

struct vb_quiet {
	sigset_t before; /* the thread's mask */
	sigset_t pending;
};

void vb_quiet_begin(struct vb_quiet *quiet);
/*
 * `error` is the errno that our call failed with, or 0. A signal that was pending before, or that
 * another process sent, stays.
 */
void vb_quiet_end(const struct vb_quiet *quiet, int error);

/* ftruncate() without the signal: 0, or a negative errno. */
int vb_quiet_ftruncate(int fd, size_t length);

#endif
