/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The holders of sockets on the RoCE port. Processes of one user share it. If another user has it,
 * or the kernel's Soft-RoCE, or a program that does not share it, then our processes cannot have
 * it: they use another port among themselves, and reach only this host.
 */
#ifndef VB_HOST_REGISTRY_PORT_HOLDERS_H
#define VB_HOST_REGISTRY_PORT_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VB_PORT_HOLDERS_MAX 16

struct vb_port_holders {
	uid_t users[VB_PORT_HOLDERS_MAX]; /* other users, each once */
	uint32_t user_count;
	uint32_t own_count; /* sockets of this user … */
	bool is_unshared; /* … one of which does not share the port */
	/* the kernel's module is loaded: a socket of root may be its own */
	bool has_soft_roce;
};

/* Searches the network namespace of this thread. Takes a millisecond. */
void vb_port_holders_find(uint16_t port, struct vb_port_holders *holders_out);

bool vb_port_holders_are_in_the_way(const struct vb_port_holders *holders);

/* "held by uid 0 and uid 1001", "held by a program of this user that does not share it", "free". */
void vb_port_holders_describe(const struct vb_port_holders *holders, char *text, size_t size);

/*
 * The UDP ports of this host that a user's sockets have, as the kernel lists them. Zero it before
 * the first use; one thread at a time.
 */
struct vb_user_ports {
	uid_t user;
	uint64_t listed_ns;
	uint64_t listing_ns;
	uint8_t bits[65536 / 8];
};

/*
 * Whether a packet from that port of this host comes from a process of this user. A port that was
 * closed counts for another tenth of a second; a new one may be missed for a few milliseconds.
 */
bool vb_user_ports_has(struct vb_user_ports *ports, uid_t user, uint16_t port);

#endif
