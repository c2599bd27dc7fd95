/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire as a carrier: RoCE packets in UDP datagrams. A process shares the port with the other
 * port members of its user: packets for them that the kernel gave to us are handed over, and those
 * that they hand to us are received here. Packets of other users of this host are dropped.
 */
#ifndef VB_HOST_PORT_CARRIER_UDP_H
#define VB_HOST_PORT_CARRIER_UDP_H

#include "base/err.h"
#include "host/port/carrier.h"

struct vb_carrier_udp;
struct vb_nic;
struct vb_port_member;
struct vb_udp;

/*
 * Borrows all arguments. The engine is told which IPv4 IDs the sockets will use, because the ICRC
 * covers them. The caller owns the carrier.
 */
VB_MUST_USE vb_err vb_carrier_udp_create(struct vb_nic *nic, struct vb_udp *udp,
					 struct vb_port_member *member,
					 struct vb_carrier_udp **wire_out);
void vb_carrier_udp_destroy(struct vb_carrier_udp *wire);

struct vb_carrier *vb_carrier_udp_base(struct vb_carrier_udp *wire);

#endif
