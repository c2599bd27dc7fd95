/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that were killed and have not noticed yet: one in the middle of a system call goes on with it until it gets a CPU and returns. The kernel shows them as
 * having a SIGKILL pending, however the end of their process came about: by a signal, exit(), or exec() of another thread.
 */
#ifndef VB_HOST_DYING_H
#define VB_HOST_DYING_H

#include <sys/types.h>

enum vb_dying {
	VB_DYING_NONE,
	VB_DYING_SOME,
	VB_DYING_UNKNOWN, /* /proc does not show the process */
};

enum vb_dying vb_dying_threads(pid_t pid);

#endif
