/* SPDX-License-Identifier: BSD-2-Clause */
/* Which QP may send to a receiver that has enough in flight. */
#include "nic/flight_priv.h"

#include "nic/qp_priv.h"

#include "base/bytes.h"

#define HASH_FACTOR 0x9e3779b97f4a7c15ull
#define HASH_SHIFT 54 /* leaves the bits of an index */

_Static_assert(VB_FLIGHT_COUNT == 1u << (64 - HASH_SHIFT), "every hash has its entry");

void vb_flight_init(struct vb_flight *flight)
{
	vb_list_init(&flight->waiting);
}

static struct vb_flight *find(struct vb_nic *nic, const struct vb_gid *gid, vb_qpn qpn)
{
	uint64_t hash = load64(gid->raw) * HASH_FACTOR;

	hash = (hash ^ load64(gid->raw + 8)) * HASH_FACTOR;
	hash = (hash ^ (qpn.v & nic->config.framing.batch_qpn_mask)) * HASH_FACTOR;
	return &nic->flights[hash >> HASH_SHIFT];
}

/* How many full packets of its MTU the QP may have in flight. */
static uint32_t window_of(const struct vb_qp *qp)
{
	const struct vb_nic_config *config = &qp->nic->config;

	if (!config->window_bytes_max)
		return config->window_packets_max;
	return min32(config->window_packets_max,
		     max32(config->window_bytes_max >> qp->mtu_shift, 1));
}

void vb_flight_enter(struct vb_qp *qp)
{
	vb_flight_leave(qp);
	qp->window_packets_max = window_of(qp);
	/*
	 * Without a timeout the QP never learns that its packets were lost, and they would count as
	 * in flight for ever.
	 */
	if (!qp->nic->config.flight_bytes_max || !vb_qp_is_reliable(qp) || !qp->attr.timeout)
		return;
	qp->flight = find(qp->nic, &qp->path.ip.destination, qp->peer);
	qp->packet_bytes = (1u << qp->mtu_shift) + VB_FLIGHT_PACKET_OVERHEAD;
}

void vb_flight_wake(const struct vb_nic *nic, struct vb_flight *flight)
{
	if (flight->turn || flight->bytes >= nic->config.flight_bytes_max ||
	    !vb_list_is_linked(&flight->waiting))
		return;
	flight->turn = VB_CONTAINER(flight->waiting.next, struct vb_qp, waiting);
	vb_qp_schedule(flight->turn);
}

/* Leaves the queue, and frees the turn if the QP had it. */
static void leave_queue(struct vb_qp *qp)
{
	vb_list_remove(&qp->waiting);
	if (qp->flight->turn == qp)
		qp->flight->turn = NULL;
}

void vb_flight_leave(struct vb_qp *qp)
{
	if (!qp->flight)
		return;
	leave_queue(qp);
	qp->flight->bytes -= qp->flight_bytes;
	qp->flight_bytes = 0;
	vb_flight_wake(qp->nic, qp->flight);
	qp->flight = NULL;
}

void vb_flight_wait(struct vb_qp *qp)
{
	struct vb_flight *flight = qp->flight;

	/* A QP that has used its turn goes to the end of the queue. */
	if (flight->turn == qp)
		leave_queue(qp);
	if (!vb_list_is_linked(&qp->waiting))
		vb_list_append(&flight->waiting, &qp->waiting);
	vb_flight_wake(qp->nic, flight);
}

void vb_flight_end_turn(struct vb_qp *qp)
{
	if (!qp->flight || !vb_list_is_linked(&qp->flight->waiting))
		return;
	leave_queue(qp);
	vb_flight_wake(qp->nic, qp->flight);
}
