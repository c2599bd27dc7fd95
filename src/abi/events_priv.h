/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Acknowledgement of events. Each object that events name counts its acknowledgements under its
 * public mutex; its destruction waits until the count equals the number of reported events.
 */
#ifndef VB_ABI_EVENTS_PRIV_H
#define VB_ABI_EVENTS_PRIV_H

#include <pthread.h>
#include <stdint.h>

/* The three fields of an object that count its acknowledgements. */
struct vb_abi_acks {
	pthread_mutex_t *mutex;
	pthread_cond_t *cond;
	uint32_t *count;
};

void vb_abi_acks_add(struct vb_abi_acks acks, uint32_t count);
void vb_abi_acks_wait(struct vb_abi_acks acks, uint32_t reported);

#endif
