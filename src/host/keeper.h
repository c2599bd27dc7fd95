/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a thread of ours with a table of descriptors of its own. By POSIX a process loses its locks on a file when it closes any descriptor of that
 * file. For the kernel it is the table that holds locks: so files of the program are opened and closed only by the keeper, of whose table the program knows nothing.
 * It is started when it is first needed.
 */
#ifndef VB_HOST_KEEPER_H
#define VB_HOST_KEEPER_H

#include <stdint.h>

/*
 * Runs in the keeper. `fd` is a copy, in its table, of the descriptor that the caller gave, which is closed afterwards; or -1. What is left open there stays until
 * another call closes it. It must neither log nor use link/fd.h, which are about the program's descriptors.
 */
typedef void vb_keeper_task(void *argument, int fd);

/*
 * For any thread: returns when it is done. `keeper` is the one that must do it, as an earlier call has returned it, or 0 for any. Returns which keeper
 * has done it; 0: there is none, or it is another one by now.
 */
uint32_t vb_keeper_call(uint32_t keeper, vb_keeper_task *task, void *argument, int fd);

#endif
