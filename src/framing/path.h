/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a packet: the link that carries it, and its addresses there. What an address is
 * depends on the kind of path. Today's adapters have IP flows, on the wire and on shared-memory
 * links. InfiniBand links have LIDs. A stream has no addresses: it leads to one peer.
 */
#ifndef VB_FRAMING_PATH_H
#define VB_FRAMING_PATH_H

#include "wire/flow.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Links are numbered by the owner of the engine. Link 0 is the wire, which may lose and damage
 * packets. Each of the others leads to one peer, as shared memory or a stream does. It damages
 * no packet, so these have no ICRC, and loses packets only when it or its peer ends. Every link has
 * limited room (vb_nic_set_link_room()).
 */
#define VB_LINK_COUNT 256

enum vb_path_kind {
	VB_PATH_IP, /* the kind of a path that is all zero */
	VB_PATH_LID,
	VB_PATH_STREAM, /* of one QP; the link is its number */
};

/* The addresses, service level and virtual lane of a local route header. */
struct vb_lid_route {
	uint16_t source;
	uint16_t destination;
	uint8_t service_level;
	uint8_t virtual_lane;
};

struct vb_path {
	union {
		struct vb_flow ip;
		struct vb_lid_route lid;
	};
	uint16_t link;
	uint8_t kind; /* enum vb_path_kind */
};

/* Whether two packets take the same path. */
static inline bool vb_path_equal(const struct vb_path *a, const struct vb_path *b)
{
	if (a->kind != b->kind || a->link != b->link)
		return false;
	switch ((enum vb_path_kind)a->kind) {
	case VB_PATH_IP:
		return vb_flow_equal(&a->ip, &b->ip);
	case VB_PATH_LID:
		return !memcmp(&a->lid, &b->lid, sizeof(a->lid));
	case VB_PATH_STREAM:
		return true;
	}
	return false;
}

/*
 * Whether a packet that came by the one path can be from the peer to which the other leads: its
 * addresses are the other's, exchanged. The link is compared only where there is nothing else.
 */
static inline bool vb_path_is_from(const struct vb_path *received, const struct vb_path *sent)
{
	if (received->kind != sent->kind)
		return false;
	switch ((enum vb_path_kind)received->kind) {
	case VB_PATH_IP:
		return vb_gid_equal(&received->ip.source, &sent->ip.destination) &&
		       vb_gid_equal(&received->ip.destination, &sent->ip.source);
	case VB_PATH_LID:
		return received->lid.source == sent->lid.destination &&
		       received->lid.destination == sent->lid.source;
	case VB_PATH_STREAM:
		return received->link == sent->link;
	}
	return false;
}

#define VB_PATH_TEXT_MAX 64

/*
 * Where the path leads: "::ffff:10.0.0.1", "fe80::1", "LID 7, SL 3, VL 1" or "stream 2". A GID is
 * written as `verbatim devices` shows it.
 */
void vb_path_describe(const struct vb_path *path, char text[VB_PATH_TEXT_MAX]);

#endif
