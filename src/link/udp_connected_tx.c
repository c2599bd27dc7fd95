/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connected transmit socket: it lies beside a transmit socket, with the same port,
 * for the one destination that most messages go to. The kernel keeps the route of a connected
 * socket, which saves a twelfth of the latency. But the kernel also numbers its IPv4 packets,
 * starting at a random number, and the ICRC covers the number. So we must know it. The kernel shows
 * the headers of what was sent to a program that asks for a time stamp, and a datagram to ourselves
 * is as good as any. If the kernel does not, or counts in another way, there is no such socket. Any
 * failure closes it: the transmit socket can do all that it does.
 */
#include "link/udp_priv.h"

#include "base/bytes.h"
#include "link/fd.h"
#include "link/sys.h"

#include <linux/net_tstamp.h>
#include <netinet/udp.h>
#include <string.h>

#define STREAK_MIN 128 /* messages in a row to one destination */
#define FAILURE_PAUSE 100000 /* messages, after a failure */
#define CHECKED_AFTER 10000u /* messages: check whether the number is still right */
#define QUESTIONS 2 /* needed to learn a number; they are numbered as well */
#define ERRORS_MAX 64
#define IPV4_VERSION_AND_LENGTH 0x45

/* --- numbers ---------------------------------------------------------------------------------- */

static const uint8_t question[] = "verbatim asks for the IPv4 ID of this";

/* Sends a datagram that ends on this host: no thread reads transmit sockets. */
static int send_question(int fd, const union vb_udp_name *self, socklen_t self_length)
{
	uint32_t when = SOF_TIMESTAMPING_TX_SCHED;
	struct iovec iovec = { (void *)(uintptr_t)question, sizeof(question) };
	alignas(struct cmsghdr) uint8_t bytes[CMSG_SPACE(sizeof(when))] = { 0 };
	struct msghdr header = {
		.msg_name = (void *)(uintptr_t)self,
		.msg_namelen = self_length,
		.msg_iov = &iovec,
		.msg_iovlen = 1,
		.msg_control = bytes,
		.msg_controllen = sizeof(bytes),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	control->cmsg_level = SOL_SOCKET;
	control->cmsg_type = SO_TIMESTAMPING;
	control->cmsg_len = CMSG_LEN(sizeof(when));
	memcpy(CMSG_DATA(control), &when, sizeof(when));
	return vb_sys_sendmsg(fd, &header, MSG_DONTWAIT);
}

/*
 * The whole packet comes back, preceded by a link header of some length. -ENOMSG: an unknown
 * format.
 */
static int id_in(const uint8_t *packet, int length)
{
	const uint8_t *ip;

	if (length < (int)(VB_UDP_IPV4_HEADERS + sizeof(question)))
		return -ENOMSG;
	ip = packet + length - sizeof(question) - VB_UDP_IPV4_HEADERS;
	if (ip[0] != IPV4_VERSION_AND_LENGTH || ip[9] != IPPROTO_UDP ||
	    memcmp(packet + length - sizeof(question), question, sizeof(question)) != 0)
		return -ENOMSG;
	return load16(ip + 4);
}

/* Errors of earlier messages may lie in front: they are lost with it, and time-outs reveal them. */
static int take_answer(int fd)
{
	for (uint32_t i = 0; i < ERRORS_MAX; i++) {
		uint8_t packet[256];
		struct iovec iovec = { packet, sizeof(packet) };
		struct msghdr header = { .msg_iov = &iovec, .msg_iovlen = 1 };
		int length = vb_sys_recvmsg(fd, &header, MSG_ERRQUEUE | MSG_DONTWAIT);
		int id;

		if (length < 0)
			break;
		id = id_in(packet, length);
		if (id >= 0)
			return id;
	}
	return -ENOMSG;
}

/* The number that the kernel gave last; a negative errno if it does not report it. */
static int ask_number(int fd)
{
	union vb_udp_name self = { 0 };
	socklen_t length = sizeof(self);
	int result = vb_sys_getsockname(fd, &self, &length);

	if (result >= 0)
		result = send_question(fd, &self, length);
	return result < 0 ? result : take_answer(fd);
}

/*
 * Returns a negative errno if the number is unknown, or the kernel does not number by ones. EAGAIN:
 * there is no room for questions now.
 */
static int learn_number(struct vb_udp_connected_tx *connected_tx)
{
	int first = ask_number(connected_tx->socket.fd);
	int second;

	if (first < 0)
		return first;
	connected_tx->next_ip_id = (uint16_t)(first + 1);
	second = ask_number(connected_tx->socket.fd);
	if (second < 0)
		return second;
	if (second != connected_tx->next_ip_id)
		return -EPROTO;
	connected_tx->next_ip_id = (uint16_t)(second + 1);
	return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static bool is_route_of(const struct vb_udp_route *route, const struct vb_udp_message *message)
{
	return !memcmp(route->destination.ip, message->destination.ip,
		       sizeof(route->destination.ip)) &&
	       !memcmp(route->source.ip, message->source.ip, sizeof(route->source.ip)) &&
	       route->destination.scope == message->destination.scope &&
	       route->traffic_class == message->traffic_class &&
	       route->hop_limit == message->hop_limit;
}

VB_COLD void vb_udp_connected_tx_close(struct vb_udp *udp, struct vb_udp_source *source)
{
	if (!source->connected_tx.is_open)
		return;
	vb_fd_close(source->connected_tx.socket.fd);
	source->connected_tx.is_open = false;
	udp->has_connected_tx_changed = true;
}

static int connect_to(const struct vb_udp *udp, const struct vb_udp_route *route,
		      int transmitter_fd)
{
	int family = vb_udp_address_is_ipv4(&route->destination) ? AF_INET : AF_INET6;
	struct vb_udp_address destination = route->destination;
	union vb_udp_name name;
	socklen_t length;
	int fd = vb_udp_socket_open_connected_tx(transmitter_fd, family, route,
						 vb_udp_scope_of(udp, &route->source));
	int result;

	if (fd < 0)
		return fd;
	destination.scope = vb_udp_scope_of(udp, &destination);
	length = vb_udp_address_store(&destination, udp->destination_port, family, &name);
	result = vb_sys_connect(fd, &name, length);
	if (result >= 0)
		result = vb_udp_watch(udp, fd, 0);
	if (result < 0)
		vb_fd_close(fd);
	return result < 0 ? result : fd;
}

VB_COLD static bool open_connected_tx(struct vb_udp *udp, struct vb_udp_source *source)
{
	struct vb_udp_connected_tx *connected_tx = &source->connected_tx;

	vb_udp_connected_tx_close(udp, source);
	*connected_tx = (struct vb_udp_connected_tx){
		.route = source->last_route,
		.socket.fd = connect_to(udp, &source->last_route, source->socket.fd),
	};
	if (connected_tx->socket.fd < 0)
		return false;
	if (vb_udp_address_is_ipv4(&connected_tx->route.destination) &&
	    learn_number(connected_tx) < 0) {
		vb_fd_close(connected_tx->socket.fd);
		return false;
	}
	connected_tx->is_open = true;
	udp->has_connected_tx_changed = true;
	udp->counters[VB_UDP_TX_CONNECTED]++;
	return true;
}

static bool is_worth_connecting(const struct vb_udp *udp, const struct vb_udp_source *source)
{
	return source->streak >= STREAK_MIN && udp->is_connected_tx_wanted && !udp->is_host_only &&
	       !vb_udp_address_is_multicast(&source->last_route.destination) &&
	       !vb_udp_address_is_zero(&source->last_route.source);
}

void vb_udp_connected_tx_notice(struct vb_udp *udp, const struct vb_udp_message *message)
{
	struct vb_udp_source *source = &udp->sources[message->source_index];

	if (!is_route_of(&source->last_route, message)) {
		source->last_route = (struct vb_udp_route){
			.destination = message->destination,
			.source = message->source,
			.traffic_class = message->traffic_class,
			.hop_limit = message->hop_limit,
		};
		source->streak = source->streak < 0 ? source->streak : 0;
	}
	source->streak++;
	if (is_worth_connecting(udp, source))
		udp->is_connected_tx_work_due = true;
}

/* --- sending ---------------------------------------------------------------------------------- */

bool vb_udp_connected_tx_can_take(const struct vb_udp_connected_tx *connected_tx,
				  const struct vb_udp_message *message, uint32_t ahead)
{
	return connected_tx->is_open &&
	       message->ip_id == (uint16_t)(connected_tx->next_ip_id + ahead);
}

/* The number that the kernel reports replaces ours. */
VB_COLD static void recheck_number(struct vb_udp *udp, struct vb_udp_source *source)
{
	struct vb_udp_connected_tx *connected_tx = &source->connected_tx;
	uint16_t expected = connected_tx->next_ip_id;
	int result;

	connected_tx->sent_since_check = 0;
	udp->has_connected_tx_changed = true;
	if (!vb_udp_address_is_ipv4(&connected_tx->route.destination))
		return;
	result = learn_number(connected_tx);
	if (result == -EAGAIN)
		/* check again with the next message */
		connected_tx->sent_since_check = CHECKED_AFTER;
	else if (result < 0)
		vb_udp_connected_tx_close(udp, source);
	else if (connected_tx->next_ip_id != (uint16_t)(expected + QUESTIONS))
		udp->counters[VB_UDP_TX_LOST_COUNT]++;
}

void vb_udp_connected_tx_on_sent(struct vb_udp *udp, struct vb_udp_source *source, uint32_t sent,
				 uint32_t tried)
{
	struct vb_udp_connected_tx *connected_tx = &source->connected_tx;

	source->streak = source->streak < 0 ? source->streak : 0;
	connected_tx->next_ip_id = (uint16_t)(connected_tx->next_ip_id + sent);
	connected_tx->sent_since_check += sent;
	if (sent < tried)
		recheck_number(udp, source);
	else if (connected_tx->sent_since_check >= CHECKED_AFTER)
		udp->is_connected_tx_work_due = true;
}

VB_COLD void vb_udp_connected_tx_do_work(struct vb_udp *udp)
{
	udp->is_connected_tx_work_due = false;
	for (uint32_t i = 0; i < udp->source_count; i++) {
		struct vb_udp_source *source = &udp->sources[i];

		if (source->connected_tx.is_open &&
		    source->connected_tx.sent_since_check >= CHECKED_AFTER)
			recheck_number(udp, source);
		if (source->connected_tx.is_open)
			vb_udp_gso_default_set(udp, source->connected_tx.socket.fd,
					       &source->connected_tx.gso_default);
		if (is_worth_connecting(udp, source))
			source->streak = open_connected_tx(udp, source) ? 0 : -FAILURE_PAUSE;
	}
}

VB_COLD void vb_udp_connected_tx_on_refused(struct vb_udp *udp, struct vb_udp_source *source,
					    int error)
{
	/*
	 * The kernel looks for room first, so the number has not moved. But the caller that gave us
	 * the messages assumes that it has.
	 */
	if (error == EAGAIN)
		udp->has_connected_tx_changed = true;
	else
		vb_udp_connected_tx_close(udp, source);
}

/* --- for the computation of ICRCs ------------------------------------------------------------- */

bool vb_udp_take_connected_tx_change(struct vb_udp *udp)
{
	bool has_changed = udp->has_connected_tx_changed;

	udp->has_connected_tx_changed = false;
	return has_changed;
}

const struct vb_udp_route *vb_udp_connected_tx(const struct vb_udp *udp, uint32_t source_index,
					       uint16_t *next_ip_id)
{
	const struct vb_udp_connected_tx *connected_tx = &udp->sources[source_index].connected_tx;

	VB_CHECK(source_index < udp->source_count);
	*next_ip_id = connected_tx->next_ip_id;
	return connected_tx->is_open ? &connected_tx->route : NULL;
}
