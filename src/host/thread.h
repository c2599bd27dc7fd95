/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads of ours in a process that is not ours. They take no signals, and their stacks are small and lie in memory of ours, whatever the limits of the process
 * say: a stack of the C library's could be registered by the program and converted under the thread's feet (docs/adr/0004).
 */
#ifndef VB_HOST_THREAD_H
#define VB_HOST_THREAD_H

#include <pthread.h>

struct vb_thread {
	pthread_t id;
	void *stack;
};

/* 0, or an errno of pthread_create(). The caller ends it by one of the other two, or never. */
int vb_thread_start(struct vb_thread *thread, void *(*function)(void *argument), void *argument);
/* Waits for the end of its function. */
void vb_thread_join(struct vb_thread *thread);
/* In a forked child, which does not have the thread. */
void vb_thread_forget(struct vb_thread *thread);

#endif
