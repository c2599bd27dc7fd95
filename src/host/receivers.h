/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving sockets of all members of the port, as far as this process has been given them: one table, whatever the
 * number of its adapters. The kernel steers packets by the place of a socket among those of its port, and a socket that is
 * closed moves another one. So every member holds all of them, and none moves for as long as one member lives,
 * whoever is killed.
 */
#ifndef VB_HOST_RECEIVERS_H
#define VB_HOST_RECEIVERS_H

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

/* Between these two the table is kept for the caller. When the last one closes it, all sockets are closed. */
bool vb_receivers_open(void); /* true for the first caller */
void vb_receivers_close(void);

/*
 * Takes the descriptor over. It is closed if there is a socket of that number already, or if it is not a receiving socket
 * of the same port as the others: false then.
 */
bool vb_receivers_add(uint32_t number, int fd);

/* From now on all of them, also those to come, tell the traffic class and the hop limit of what they receive. */
void vb_receivers_tell_class(void);

/* The socket of that number, the table's own, until it is dropped; -1: none. */
int vb_receivers_fd(uint32_t number);

/*
 * The last number, if the table has sockets of all numbers before it, too. Dropping closes one: between the other two that waits, so that
 * descriptors may be used.
 */
bool vb_receivers_find_last(uint32_t *number_out);
void vb_receivers_drop(uint32_t number);
void vb_receivers_keep(void);
void vb_receivers_keep_no_more(void);

struct vb_receivers_set vb_receivers_held(void);
uint32_t vb_receivers_count(void);

/* False when the kernel knows of sockets on the same port that are not in the table. */
bool vb_receivers_are_complete(void);

/* Forgets sockets that the program has closed. */
void vb_receivers_drop_lost(void);

/* In a forked child, which has no sockets any more. */
void vb_receivers_forget(void);

/* That all have, or 0 when there are none. */
uint16_t vb_receivers_port(void);

#endif
