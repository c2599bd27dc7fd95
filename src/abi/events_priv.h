/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledging events. Each object that events name counts its acknowledgements under its public
 * mutex; destroying it waits until as many are there as were reported.
 */
#ifndef VB_ABI_EVENTS_PRIV_H
#define VB_ABI_EVENTS_PRIV_H

#include <pthread.h>
#include <stdint.h>

/* The three fields of an object that belong together. */
struct vb_abi_acks {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *count;
};

void vb_abi_acks_add(struct vb_abi_acks acks, uint32_t count);
void vb_abi_acks_wait(struct vb_abi_acks acks, uint32_t reported);

#endif
