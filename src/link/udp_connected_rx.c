/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connected receive socket: it lies beside the receiver, and is connected to the busiest
 * sender. The kernel finds it without a route lookup or the steering program, and need not report
 * the source of each message: that saves a tenth to a fifth of the latency. But it takes all that
 * this sender sends to the port, for any process. So it exists only if the link has the port to
 * itself. While it is opened, for the time of two system calls, it also takes what other senders
 * send: messages that are read until it is first empty may be from any sender.
 */
#include "link/udp_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <string.h>

#define STREAK_MIN 256 /* messages in a row from one sender */
#define TAKEOVER_STREAK_MIN 16384 /* the same, to take the socket over from another sender */
#define FAILURE_PAUSE 100000 /* messages, after a failure */
#define BEHIND_MAX 16384u /* messages: more than a receiver holds */
/* messages, or looks that found none, between looks at the other sockets */
#define OTHERS_EVERY 8u

static bool is_same(const struct vb_udp_datagram *a, const struct vb_udp_datagram *b)
{
	return a->source_port == b->source_port && a->source.scope == b->source.scope &&
	       a->destination.scope == b->destination.scope &&
	       !memcmp(a->source.ip, b->source.ip, sizeof(a->source.ip)) &&
	       !memcmp(a->destination.ip, b->destination.ip, sizeof(a->destination.ip));
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int connect_to_sender(struct vb_udp *udp, int fd, const struct vb_udp_datagram *datagram)
{
	int family = vb_udp_receiver_family(fd);
	union vb_udp_name name;
	socklen_t length =
		vb_udp_address_store(&datagram->source, datagram->source_port, family, &name);
	int result = vb_sys_connect(fd, &name, length);

	if (result >= 0 && vb_udp_receiver_has_ip_fields(udp->receiver))
		result = vb_udp_socket_enable_ip_fields(fd, family);
	if (result >= 0)
		result = vb_udp_watch(udp, fd, EPOLLIN);
	return result;
}

VB_COLD static bool open_connected_rx(struct vb_udp *udp, const struct vb_udp_datagram *datagram)
{
	int fd = vb_udp_socket_open_connected_rx(&datagram->destination, udp->port,
						 udp->receive_buffer_length);

	if (fd < 0)
		return false;
	if (connect_to_sender(udp, fd, datagram) < 0) {
		vb_fd_close(fd);
		return false;
	}
	udp->connected_rx.fd = fd;
	udp->connected_rx.is_open = true;
	udp->connected_rx.is_leaving = false;
	udp->connected_rx.behind = BEHIND_MAX;
	udp->connected_rx.is_mixed = true;
	udp->connected_rx.overflow_count = 0;
	udp->counters[VB_UDP_RX_CONNECTED]++;
	return true;
}

VB_COLD void vb_udp_connected_rx_close(struct vb_udp *udp)
{
	if (udp->connected_rx.is_open)
		vb_fd_close(udp->connected_rx.fd);
	udp->connected_rx.is_open = false;
	udp->connected_rx.streak = 0;
}

/*
 * Its content is read first. What arrives between the last look and its end is lost, as on any
 * cable.
 */
static void leave(struct vb_udp *udp)
{
	udp->connected_rx.is_leaving = true;
}

void vb_udp_allow_connected_rx(struct vb_udp *udp, bool is_allowed)
{
	udp->connected_rx.is_allowed = is_allowed;
	if (!is_allowed && udp->connected_rx.is_open)
		leave(udp);
}

void vb_udp_enable_ip_fields(struct vb_udp *udp)
{
	if (udp->connected_rx.is_open &&
	    vb_udp_socket_enable_ip_fields(udp->connected_rx.fd,
					   vb_udp_receiver_family(udp->connected_rx.fd)) < 0)
		leave(udp);
}

void vb_udp_connected_rx_notice(struct vb_udp *udp, const struct vb_udp_datagram *datagram)
{
	struct vb_udp_connected_rx *connected_rx = &udp->connected_rx;

	if (!is_same(&connected_rx->last, datagram)) {
		connected_rx->last = *datagram;
		connected_rx->streak = connected_rx->streak < 0 ? connected_rx->streak : 0;
	}
	if (++connected_rx->streak < (connected_rx->is_open ? TAKEOVER_STREAK_MIN : STREAK_MIN) ||
	    !connected_rx->is_allowed || vb_udp_address_is_multicast(&datagram->destination))
		return;
	connected_rx->streak = 0;
	if (connected_rx->is_open) {
		leave(udp); /* another sender is busier */
		return;
	}
	connected_rx->sender = (struct vb_udp_datagram){
		.source = datagram->source,
		.destination = datagram->destination,
		.source_port = datagram->source_port,
	};
	if (!open_connected_rx(udp, datagram))
		connected_rx->streak = -FAILURE_PAUSE;
}

/* --- receiving -------------------------------------------------------------------------------- */

void vb_udp_read_others_next(struct vb_udp *udp)
{
	udp->connected_rx.taken = OTHERS_EVERY;
}

bool vb_udp_connected_rx_is_turn_of_others(const struct vb_udp *udp)
{
	const struct vb_udp_connected_rx *connected_rx = &udp->connected_rx;

	return !connected_rx->is_open || connected_rx->behind ||
	       connected_rx->taken >= OTHERS_EVERY;
}

void vb_udp_connected_rx_on_others(struct vb_udp *udp, uint32_t message_count)
{
	struct vb_udp_connected_rx *connected_rx = &udp->connected_rx;

	connected_rx->taken = 0;
	connected_rx->behind = message_count && connected_rx->behind > message_count
				       ? connected_rx->behind - message_count
				       : 0;
}

void vb_udp_connected_rx_on_look(struct vb_udp *udp, uint32_t message_count)
{
	struct vb_udp_connected_rx *connected_rx = &udp->connected_rx;

	connected_rx->taken += message_count ? message_count : 1;
	if (message_count)
		/* no other sender is busier */
		connected_rx->streak = connected_rx->streak < 0 ? connected_rx->streak : 0;
	else
		connected_rx->is_mixed = false;
	if (!message_count && connected_rx->is_leaving)
		vb_udp_connected_rx_close(udp);
}
