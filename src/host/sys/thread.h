/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of ours in a process that is not ours. They take no signals. Their stacks are small and
 * lie in our own memory, whatever the limits of the process are: the program could register a stack
 * of the C library, and it would be converted while the thread uses it (docs/adr/0004).
 */
#ifndef VB_HOST_SYS_THREAD_H
#define VB_HOST_SYS_THREAD_H

#include <pthread.h>
#include <stdint.h>

struct vb_thread {
	pthread_t id;
	void *stack;
};

/*
 * Returns 0, or an errno of pthread_create(). The caller ends the thread by one of the other two,
 * or never.
 */
int vb_thread_start(struct vb_thread *thread, void *(*function)(void *argument), void *argument);
/* Waits for the end of the thread's function. */
void vb_thread_join(struct vb_thread *thread);
/* To be called in a forked child, which does not have the thread. */
void vb_thread_forget(struct vb_thread *thread);

/*
 * Lets another thread that wants the CPU of the calling one have it, and returns how often another
 * thread has taken it so far while the calling one could have run.
 */
uint64_t vb_thread_yield(void);

#endif
