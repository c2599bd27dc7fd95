/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handling of ICMP answers to what was sent, from the error queues of the transmit sockets. Two
 * of them matter: the host exists, but no process has the port; and there is no such host, as this
 * machine's own kernel reports when no host answers for the address. All others are counted and
 * left to the transport's time-outs.
 */
#include "link/udp_priv.h"

#include "link/sys.h"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

/*
 * The most that are taken from one socket in a call: a flood of answers must not hold up the
 * traffic.
 */
#define ERRORS_MAX 64
/* The most ready sockets that one call reports. */
#define READY_MAX 8

/* Loads one entry of an error queue; false if it contains no error. */
static bool load_error(struct msghdr *header, struct sock_extended_err *error)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if ((c->cmsg_level == SOL_IP && c->cmsg_type == IP_RECVERR) ||
		    (c->cmsg_level == SOL_IPV6 && c->cmsg_type == IPV6_RECVERR)) {
			memcpy(error, CMSG_DATA(c), sizeof(*error));
			return true;
		}
	}
	return false;
}

static bool is_unreachable(const struct sock_extended_err *error)
{
	if (error->ee_origin == SO_EE_ORIGIN_ICMP)
		return error->ee_type == ICMP_DEST_UNREACH &&
		       (error->ee_code == ICMP_PORT_UNREACH || error->ee_code == ICMP_HOST_UNREACH);
	return error->ee_origin == SO_EE_ORIGIN_ICMP6 && error->ee_type == ICMP6_DST_UNREACH &&
	       (error->ee_code == ICMP6_DST_UNREACH_NOPORT ||
		error->ee_code == ICMP6_DST_UNREACH_ADDR);
}

static uint32_t take_from(struct vb_udp *udp, const struct vb_udp_transmitter *transmitter,
			  struct vb_udp_address *destinations, uint32_t capacity)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < ERRORS_MAX && count < capacity; i++) {
		union vb_udp_name name;
		alignas(struct cmsghdr) uint8_t control[VB_UDP_RX_CONTROL];
		struct msghdr header = {
			.msg_name = &name,
			.msg_namelen = sizeof(name),
			.msg_control = control,
			.msg_controllen = sizeof(control),
		};
		struct sock_extended_err error;
		uint16_t port;

		if (vb_sys_recvmsg(transmitter->fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			break;
		if (!load_error(&header, &error) || error.ee_origin == SO_EE_ORIGIN_LOCAL)
			continue; /* such as a message that was too long: counted when sent */
		if (!header.msg_namelen || !is_unreachable(&error)) {
			udp->counters[VB_UDP_RX_OTHER_ERROR]++;
			continue;
		}
		udp->counters[VB_UDP_RX_UNREACHABLE]++;
		destinations[count++] = vb_udp_address_load(&name, &port);
	}
	return count;
}

/* The socket's pending error repeats the same; it would keep vb_udp_fd() readable. */
static void forget_pending(const struct vb_udp_transmitter *transmitter)
{
	int error;
	socklen_t length = sizeof(error);

	(void)vb_sys_getsockopt(transmitter->fd, SOL_SOCKET, SO_ERROR, &error, &length);
}

static uint32_t take_all_from(struct vb_udp *udp, const struct vb_udp_transmitter *transmitter,
			      struct vb_udp_address *destinations, uint32_t capacity)
{
	uint32_t count = take_from(udp, transmitter, destinations, capacity);

	forget_pending(transmitter);
	return count;
}

/*
 * Most often a datagram has woken the caller. One query of the set of all sockets saves two queries
 * of each of them, while that datagram waits. True if the answer may be incomplete.
 */
static bool may_have_errors(const struct vb_udp *udp)
{
	struct epoll_event ready[READY_MAX];
	int count = vb_sys_epoll_look(udp->poller, ready, READY_MAX);

	if (count < 0 || count == READY_MAX)
		return true;
	for (int i = 0; i < count; i++)
		if (ready[i].events & EPOLLERR)
			return true;
	return false;
}

uint32_t vb_udp_take_unreachable(struct vb_udp *udp, struct vb_udp_address *destinations,
				 uint32_t capacity)
{
	uint32_t count = 0;

	if (!may_have_errors(udp))
		return 0;
	for (uint32_t i = 0; i < udp->source_count && count < capacity; i++) {
		const struct vb_udp_source *source = &udp->sources[i];

		count +=
			take_all_from(udp, &source->socket, destinations + count, capacity - count);
		if (source->connected_tx.is_open)
			count += take_all_from(udp, &source->connected_tx.socket,
					       destinations + count, capacity - count);
	}
	return count;
}
