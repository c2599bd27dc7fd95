/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a thread of ours with its own table of descriptors. By POSIX a process loses its
 * locks on a file when it closes any descriptor of that file. In the kernel, the table holds the
 * locks. So only the keeper opens and closes files of the program: the program knows nothing of the
 * keeper's table. The keeper is started when it is first needed.
 */
#ifndef VB_HOST_LOCAL_KEEPER_H
#define VB_HOST_LOCAL_KEEPER_H

#include <stdint.h>

/*
 * Runs in the keeper. `fd` is a copy, in the keeper's table, of the descriptor that the caller
 * gave, and is closed afterwards; or -1. What the task leaves open there stays until another call
 * closes it. The task must neither log nor use link/fd.h, which are about the program's
 * descriptors.
 */
typedef void vb_keeper_task(void *argument, int fd);

/*
 * For any thread. Returns when the task is done. `keeper` is the one that must do it, as an earlier
 * call has returned it, or 0 for any. Returns which keeper has done it; 0: there is none, or it has
 * been replaced by another one.
 */
uint32_t vb_keeper_call(uint32_t keeper, vb_keeper_task *task, void *argument, int fd);

#endif
