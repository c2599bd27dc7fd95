/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The path of a packet: the link that carries it, and its addresses there. The addresses are a
 * member of their own, so that another kind (a LID with SL and VL) can stand beside them here.
 */
#ifndef VB_FRAMING_PATH_H
#define VB_FRAMING_PATH_H

#include "wire/flow.h"

#include <stdint.h>

/*
 * Links are numbered by the owner of the engine. Link 0 is the wire, which may lose and damage
 * packets. Each of the others leads to one peer, as shared memory or a stream does. It neither
 * loses nor damages packets, so these have no ICRC. Every link has limited room
 * (vb_nic_set_link_room()).
 */
#define VB_LINK_COUNT 256

struct vb_path {
	struct vb_flow ip;
	uint16_t link;
};

#endif
