/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of ours in a process that is not ours: they take no signals, and their stacks are small, whatever the limits of the process say. */
#ifndef VB_HOST_THREAD_H
#define VB_HOST_THREAD_H

#include <pthread.h>

/* 0, or the errno of pthread_create(). The caller joins or detaches it. */
int vb_thread_start(pthread_t *thread, void *(*function)(void *argument), void *argument);

#endif
