/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that were killed but still run: a thread in a system call continues it until the thread
 * gets a CPU and returns. The kernel shows them with a SIGKILL pending, whatever ended their
 * process: a signal, exit(), or exec() of another thread.
 */
#ifndef VB_HOST_SYS_DYING_H
#define VB_HOST_SYS_DYING_H

#include <sys/types.h>

enum vb_dying {
	VB_DYING_NONE,
	VB_DYING_SOME,
	VB_DYING_UNKNOWN, /* /proc does not show the process */
};

enum vb_dying vb_dying_threads(pid_t pid);

#endif
