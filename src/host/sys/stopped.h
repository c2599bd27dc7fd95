/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check whether a process is stopped, by a signal or a debugger: no thread should wait for it.
 * False if that is unknown.
 */
#ifndef VB_HOST_SYS_STOPPED_H
#define VB_HOST_SYS_STOPPED_H

#include <stdbool.h>
#include <sys/types.h>

bool vb_process_is_stopped(pid_t pid);

#endif
