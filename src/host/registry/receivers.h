/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving sockets of all port members that this process has been given, in one table for all
 * its adapters. The kernel steers packets by the place of a socket among those of its port, and
 * closing a socket moves another one. So every member holds all of them, and none moves while one
 * member lives, whichever process is killed.
 */
#ifndef VB_HOST_REGISTRY_RECEIVERS_H
#define VB_HOST_REGISTRY_RECEIVERS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_RECEIVERS_MAX 255 /* numbers of members */

/* A set of numbers. */
struct vb_receivers_set {
	uint8_t bits[(VB_RECEIVERS_MAX + 7) / 8];
};

bool vb_receivers_set_has(const struct vb_receivers_set *set, uint32_t number);
void vb_receivers_set_add(struct vb_receivers_set *set, uint32_t number);
void vb_receivers_set_remove(struct vb_receivers_set *set, uint32_t number);

/*
 * Between these two calls the table is kept for the caller. When the last caller closes it, all
 * sockets are closed.
 */
bool vb_receivers_open(void); /* true for the first caller */
void vb_receivers_close(void);

/*
 * Takes ownership of the descriptor. It is closed if the table already has a socket of that number,
 * or if it is not a receiving socket of the same port as the others: then the result is false.
 */
bool vb_receivers_add(uint32_t number, int fd);

/*
 * From now on all sockets, including those added later, report the traffic class and the hop limit
 * of what they receive.
 */
void vb_receivers_enable_ip_fields(void);

/* The socket of that number, valid until it is dropped; the table owns it. -1: none. */
int vb_receivers_fd(uint32_t number);

/*
 * vb_receivers_find_last() finds the last number, if the table also has sockets of all numbers
 * before it. vb_receivers_drop() closes a socket; between vb_receivers_lock() and
 * vb_receivers_unlock() it waits, so that the caller can use descriptors.
 */
bool vb_receivers_find_last(uint32_t *number_out);
/* False, and nothing is closed, if the sockets are out of order: then all are read. */
bool vb_receivers_drop(uint32_t number);
void vb_receivers_lock(void);
void vb_receivers_unlock(void);

struct vb_receivers_set vb_receivers_held(void);
uint32_t vb_receivers_count(void);

/*
 * The table is out of order if the number of a socket may not be its place. That is found by a
 * member, which tells the others. Then any socket may get any packet, also one whose member is
 * gone, and each member reads all of them. That lasts until the table is closed.
 */
void vb_receivers_declare_disorder(void);
bool vb_receivers_are_out_of_order(void);
/*
 * If they are: lets all sockets receive again. To be called now and then, because a member that
 * leaves may not have known.
 */
void vb_receivers_end_retirements(void);

/* False when the kernel knows of sockets on the same port that are not in the table. */
bool vb_receivers_are_complete(void);

/* Forgets sockets that the program has closed. */
void vb_receivers_drop_lost(void);

/* To be called in a forked child, which no longer has the sockets. */
void vb_receivers_forget(void);

/* The port of all sockets, or 0 when there are none. */
uint16_t vb_receivers_port(void);

#endif
