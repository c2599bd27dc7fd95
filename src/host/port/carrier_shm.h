/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared memory as a carrier: the links of host/local/local_peer.h, one for each local peer. The
 * engine knows how much room each link has (vb_nic_set_link_room()), so that frames of connected
 * QPs always find room.
 */
#ifndef VB_HOST_PORT_CARRIER_SHM_H
#define VB_HOST_PORT_CARRIER_SHM_H

#include "host/port/carrier.h"

struct vb_local_peers;

struct vb_carrier_shm {
	struct vb_carrier carrier;
	struct vb_local_peers *peers;
};

/* Borrows the peers. */
void vb_carrier_shm_init(struct vb_carrier_shm *shm, struct vb_local_peers *peers);

#endif
