/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port carries packets between an engine and its link: slots become messages, datagrams become
 * frames. Packets for other processes of this user go by shared-memory links
 * (host/local/local_peer.h), or are handed over to them; packets from them are accepted. Packets
 * for QP 1 go to host/qp1/qp1.h, whichever process gets them.
 */
#ifndef VB_HOST_PORT_PORT_H
#define VB_HOST_PORT_PORT_H

#include "base/err.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_PORT_FDS_MAX 4

struct vb_port_member;
struct vb_local_peers;
struct vb_nic;
struct vb_own_ports;
struct vb_fault_point;
struct vb_port;
struct vb_qp;
struct vb_qp1;
struct vb_tap;
struct vb_udp;

struct vb_gid;

/*
 * Borrows all arguments for its lifetime. `peers` may be NULL. `host_gid`, or NULL, is a GID
 * that is no address of the interface: packets to it are handed to their owner on this host and
 * never see the wire.
 */
VB_MUST_USE vb_err vb_port_create(struct vb_nic *nic, struct vb_udp *udp,
				  struct vb_port_member *member, struct vb_local_peers *peers,
				  struct vb_qp1 *qp1, const struct vb_gid *host_gid,
				  struct vb_port **port_out);
void vb_port_destroy(struct vb_port *port);

/*
 * The filter for packets from this host, for callers that know ports of our user. To be used as the
 * engine's owner. It lives as long as the port.
 */
struct vb_own_ports *vb_port_own_ports(struct vb_port *port);

/*
 * To be called as the engine's owner: one round of receiving, timers and sending. True if any
 * packet moved.
 */
bool vb_port_turn(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner: receives what may have come, for a caller that will look
 * again soon. True if any packet moved. What is to be sent waits for vb_port_send().
 */
bool vb_port_glance(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner: sends what was just posted to this QP, if it is a short
 * message by a shared-memory link and the only work to do.
 */
bool vb_port_send_now(struct vb_port *port, struct vb_qp *qp, uint64_t now_ns);

/*
 * To be called as the engine's owner: only sends, after something was posted. True if any packet
 * went out.
 */
bool vb_port_send(struct vb_port *port, uint64_t now_ns);

/*
 * To be called as the engine's owner, after waiting on vb_port_fds(): takes errors off the sockets,
 * which would otherwise wake us again and again. QP 1 is notified of peers that answer "port
 * unreachable"; QPs notice by time-out.
 */
void vb_port_on_wake(struct vb_port *port, const struct pollfd fds[VB_PORT_FDS_MAX],
		     uint64_t now_ns);

/*
 * To be called as the engine's owner: when the engine, or QP 1, must be driven even without an
 * event.
 */
uint64_t vb_port_deadline(const struct vb_port *port);

/*
 * To be called as the engine's owner. Both are borrowed; NULL: none. With a fault point the engine
 * builds no batches any more, because each packet of a batch counts on those before it.
 */
void vb_port_set_tap(struct vb_port *port, const struct vb_tap *tap);
void vb_port_set_fault_point(struct vb_port *port, const struct vb_fault_point *fault_point);
/* To be called after the engine was made to execute requests other than by the port. */
void vb_port_report_executed(struct vb_port *port);

/* The descriptors to wait on for packets; returns their number. */
uint32_t vb_port_fds(const struct vb_port *port, struct pollfd fds[VB_PORT_FDS_MAX]);

#endif
