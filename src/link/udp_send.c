/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends messages. Consecutive messages of one transmit socket go to the kernel in one call, which
 * stops at the first that the kernel refuses; what to do about that one is decided here. Two things
 * are not obvious. An ICMP error for an earlier message makes the kernel refuse the next one,
 * whatever its destination. And whether an interface can segment a message (GSO) shows only when
 * one is sent.
 */
#include "link/udp_priv.h"

#include "base/bytes.h"
#include "link/sys.h"

#include <netinet/udp.h>
#include <string.h>

/* --- headers ---------------------------------------------------------------------------------- */

static void append_control(struct msghdr *header, int level, int type, const void *value,
			   size_t length)
{
	struct cmsghdr *control = (void *)((uint8_t *)header->msg_control + header->msg_controllen);

	VB_CHECK(header->msg_controllen + CMSG_SPACE(length) <= VB_UDP_TX_CONTROL);
	control->cmsg_level = level;
	control->cmsg_type = type;
	control->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(control), value, length);
	header->msg_controllen += CMSG_SPACE(length);
}

uint32_t vb_udp_scope_of(const struct vb_udp *udp, const struct vb_udp_address *address)
{
	if (!vb_udp_address_has_scope(address))
		return 0;
	return address->scope ? address->scope : udp->ifindex;
}

/*
 * 0 means the sockets' default. Multicast of a host-only link uses the default, because there it is
 * 0 hops.
 */
static int hop_limit_of(const struct vb_udp *udp, const struct vb_udp_message *message)
{
	if (message->hop_limit == VB_UDP_HOP_LIMIT_DEFAULT ||
	    (udp->is_host_only && vb_udp_address_is_multicast(&message->destination)))
		return 0;
	return message->hop_limit;
}

/* Each control message costs time: those that match the sockets' defaults are left out. */
static void append_ipv4(const struct vb_udp *udp, struct msghdr *header,
			const struct vb_udp_message *message)
{
	struct in_pktinfo from = { .ipi_ifindex =
					   (int)vb_udp_scope_of(udp, &message->destination) };
	int traffic_class = message->traffic_class;
	int hop_limit = hop_limit_of(udp, message);

	if (vb_udp_address_is_ipv4(&message->source))
		memcpy(&from.ipi_spec_dst, message->source.ip + 12, sizeof(from.ipi_spec_dst));
	append_control(header, SOL_IP, IP_PKTINFO, &from, sizeof(from));
	if (traffic_class)
		append_control(header, SOL_IP, IP_TOS, &traffic_class, sizeof(traffic_class));
	if (hop_limit)
		append_control(header, SOL_IP, IP_TTL, &hop_limit, sizeof(hop_limit));
}

static void append_ipv6(const struct vb_udp *udp, struct msghdr *header,
			const struct vb_udp_message *message)
{
	struct in6_pktinfo from = { .ipi6_ifindex = vb_udp_scope_of(udp, &message->destination) };
	int traffic_class = message->traffic_class;
	int hop_limit = hop_limit_of(udp, message);

	memcpy(&from.ipi6_addr, message->source.ip, sizeof(from.ipi6_addr));
	append_control(header, SOL_IPV6, IPV6_PKTINFO, &from, sizeof(from));
	if (traffic_class)
		append_control(header, SOL_IPV6, IPV6_TCLASS, &traffic_class,
			       sizeof(traffic_class));
	if (hop_limit)
		append_control(header, SOL_IPV6, IPV6_HOPLIMIT, &hop_limit, sizeof(hop_limit));
}

/*
 * Fills in header `index` of the outbox; false if the sockets' family cannot express the
 * destination.
 */
static bool fill_addressed_header(struct vb_udp *udp, uint32_t index,
				  const struct vb_udp_message *message)
{
	struct vb_udp_outbox *box = &udp->outbox;
	struct msghdr *header = &box->headers[index].msg_hdr;
	struct vb_udp_address destination = message->destination;

	destination.scope = vb_udp_scope_of(udp, &destination);
	*header = (struct msghdr){
		.msg_name = &box->names[index],
		.msg_namelen = vb_udp_address_store(&destination, udp->destination_port,
						    udp->family, &box->names[index]),
		.msg_control = box->control[index],
	};
	if (vb_udp_address_is_ipv4(&destination))
		append_ipv4(udp, header, message);
	else
		append_ipv6(udp, header, message);
	return header->msg_namelen;
}

/* A msghdr has no const iovecs, but the kernel only reads them. */
static struct iovec *drop_const(const struct iovec *iovecs)
{
	return (struct iovec *)(uintptr_t)iovecs;
}

/* A connected socket knows its destination. */
static void fill_connected_header(struct vb_udp *udp, uint32_t index)
{
	udp->outbox.headers[index].msg_hdr =
		(struct msghdr){ .msg_control = udp->outbox.control[index] };
}

static bool fill_header(struct vb_udp *udp, uint32_t index, const struct vb_udp_message *message)
{
	struct msghdr *header = &udp->outbox.headers[index].msg_hdr;
	const struct vb_udp_connected_tx *connected_tx =
		&udp->sources[message->source_index].connected_tx;

	VB_CHECK(message->iovec_count <= VB_UDP_IOVECS_MAX);
	if (message->is_connected_tx && !vb_udp_connected_tx_can_take(connected_tx, message, index))
		return false;
	if (message->is_connected_tx)
		fill_connected_header(udp, index);
	else if (!fill_addressed_header(udp, index, message))
		return false;
	header->msg_iov = drop_const(message->iovecs);
	header->msg_iovlen = message->iovec_count;
	if (message->is_connected_tx
		    ? !vb_udp_gso_default_is_known(&connected_tx->gso_default, message)
		    : message->segment_length)
		append_control(header, SOL_UDP, UDP_SEGMENT, &message->segment_length,
			       sizeof(message->segment_length));
	return true;
}

/* Fills in the first messages that share one socket. Returns their number. */
static uint32_t fill_run(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count)
{
	uint32_t filled = 0;

	VB_CHECK(messages->source_index < udp->source_count);
	while (filled < count && messages[filled].source_index == messages->source_index &&
	       messages[filled].is_connected_tx == messages->is_connected_tx &&
	       fill_header(udp, filled, &messages[filled]))
		filled++;
	return filled;
}

/* --- to the kernel ---------------------------------------------------------------------------- */

/* Whether the same call may succeed later, mostly because there was no room. */
static bool is_retryable(int error)
{
	return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == EINTR;
}

/* Whether the message is one iovec without address and control data, so that send() will do. */
static bool is_bare(const struct msghdr *header)
{
	return !header->msg_namelen && !header->msg_controllen && header->msg_iovlen == 1;
}

/* Returns the number sent, at least 1, or a negative errno about the first. */
static int send_headers(const struct vb_udp_transmitter *transmitter, struct mmsghdr *headers,
			uint32_t count)
{
	int result;

	if (count > 1)
		return vb_sys_sendmmsg(transmitter->fd, headers, count, MSG_DONTWAIT);
	result = is_bare(&headers->msg_hdr)
			 ? vb_sys_send(transmitter->fd, headers->msg_hdr.msg_iov->iov_base,
				       headers->msg_hdr.msg_iov->iov_len, MSG_DONTWAIT)
			 : vb_sys_sendmsg(transmitter->fd, &headers->msg_hdr, MSG_DONTWAIT);
	if (result < 0)
		return result;
	headers->msg_len = (unsigned)result;
	return 1;
}

static int transmit_past_old_error(const struct vb_udp_transmitter *transmitter,
				   struct mmsghdr *headers, uint32_t count)
{
	int result = send_headers(transmitter, headers, count);

	/*
	 * The error may have belonged to an earlier message; asked again, the kernel reports on
	 * this one.
	 */
	if (result < 0 && result != -EFAULT && !is_retryable(-result))
		result = send_headers(transmitter, headers, count);
	return result;
}

static void count_sent(struct vb_udp *udp, uint32_t length, uint32_t segment_length)
{
	uint32_t segments = 1;

	if (segment_length && length > segment_length)
		segments = (length + segment_length - 1) / segment_length;
	udp->counters[VB_UDP_TX_DATAGRAMS] += segments;
	udp->counters[VB_UDP_TX_BYTES] += length;
}

VB_COLD static void count_drop(struct vb_udp *udp, int error)
{
	switch (error) {
	case EFAULT:
		udp->counters[VB_UDP_TX_DROP_MEMORY]++;
		break;
	case EMSGSIZE:
		udp->counters[VB_UDP_TX_DROP_TOO_LONG]++;
		break;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case ENODEV:
	case ENXIO:
	case ECONNREFUSED:
	case EAFNOSUPPORT:
		udp->counters[VB_UDP_TX_DROP_NO_ROUTE]++;
		break;
	case EPERM:
	case EACCES:
		udp->counters[VB_UDP_TX_DROP_FORBIDDEN]++;
		break;
	default:
		udp->counters[VB_UDP_TX_DROP_OTHER]++;
		break;
	}
}

/* --- a message as single datagrams ------------------------------------------------------------ */

struct segment_cursor {
	const struct iovec *iovecs; /* the first that is not used up … */
	uint32_t iovec_count;
	size_t offset; /* … and how much of it is used */
	struct iovec *piece; /* the next free iovec of the outbox */
};

/* Gathers the next segment's bytes as pieces; false when there are none left. */
static bool take_segment(struct segment_cursor *cursor, uint32_t segment_length,
			 struct msghdr *header)
{
	size_t left = segment_length;

	header->msg_iov = cursor->piece;
	/* Empty iovecs belong to what is before them: alone they would be a datagram. */
	while (cursor->iovec_count && (left || !cursor->iovecs->iov_len)) {
		size_t rest = cursor->iovecs->iov_len - cursor->offset;
		size_t length = rest < left ? rest : left;

		*cursor->piece++ = (struct iovec){
			.iov_base = (uint8_t *)cursor->iovecs->iov_base + cursor->offset,
			.iov_len = length,
		};
		left -= length;
		cursor->offset += length;
		if (cursor->offset == cursor->iovecs->iov_len) {
			cursor->offset = 0;
			cursor->iovecs++;
			cursor->iovec_count--;
		}
	}
	header->msg_iovlen = (size_t)(cursor->piece - header->msg_iov);
	return header->msg_iovlen;
}

/*
 * Returns the number of segments in the outbox; 0 if the sockets' family cannot express the
 * destination.
 */
static uint32_t fill_segments(struct vb_udp *udp, const struct vb_udp_message *message)
{
	struct segment_cursor cursor = { message->iovecs, message->iovec_count, 0,
					 udp->outbox.pieces };
	uint32_t count = 0;

	VB_CHECK(message->iovec_count <= VB_UDP_IOVECS_MAX);
	for (;;) {
		struct msghdr segment;

		if (!take_segment(&cursor, message->segment_length, &segment))
			return count;
		VB_CHECK(count < VB_UDP_SEGMENTS_MAX);
		if (!fill_addressed_header(udp, count, message))
			return 0;
		udp->outbox.headers[count].msg_hdr.msg_iov = segment.msg_iov;
		udp->outbox.headers[count].msg_hdr.msg_iovlen = segment.msg_iovlen;
		count++;
	}
}

/*
 * Returns 1, or 0 if there was no room for the first segment. A message that was begun is not kept
 * for later: segments that find no room are lost, as on any wire.
 */
VB_COLD static uint32_t send_split(struct vb_udp *udp, const struct vb_udp_message *message)
{
	struct vb_udp_transmitter *transmitter = &udp->sources[message->source_index].socket;
	struct mmsghdr *headers = udp->outbox.headers;
	uint32_t count = fill_segments(udp, message);
	uint32_t at = 0, sent_count = 0;

	if (!count)
		count_drop(udp, EAFNOSUPPORT);
	while (at < count) {
		int result = transmit_past_old_error(transmitter, headers + at, count - at);

		if (result < 0 && is_retryable(-result)) {
			udp->counters[VB_UDP_TX_STOPS]++;
			if (!at)
				return 0;
			udp->counters[VB_UDP_TX_DROP_NO_ROOM] += count - at;
			break;
		}
		if (result < 0) {
			count_drop(udp, -result);
			at++;
			continue;
		}
		for (int i = 0; i < result; i++)
			count_sent(udp, headers[at++].msg_len, 0);
		sent_count += (uint32_t)result;
	}
	udp->counters[VB_UDP_TX_MESSAGES] += sent_count > 0;
	udp->counters[VB_UDP_TX_SPLIT] += sent_count > 0;
	return 1;
}

/* --- messages --------------------------------------------------------------------------------- */

/*
 * Returns 1 if the message is done with, sent or dropped; 0 if the kernel has no room for it now.
 */
VB_COLD static uint32_t handle_refusal(struct vb_udp *udp, const struct vb_udp_message *message,
				       int error)
{
	uint64_t sent = udp->counters[VB_UDP_TX_DATAGRAMS];
	uint32_t taken;

	if (is_retryable(error)) {
		udp->counters[VB_UDP_TX_STOPS]++;
		return 0;
	}
	if (!message->segment_length || (error != EIO && error != EINVAL && error != EFAULT)) {
		count_drop(udp, error);
		return 1;
	}
	/*
	 * Either segmentation failed, or something is wrong with the message itself: single
	 * datagrams show which. If some of its memory is no longer mapped, they also limit the harm
	 * to the segments in that memory: the others may belong to other QPs.
	 */
	taken = send_split(udp, message);
	if (error != EFAULT && udp->counters[VB_UDP_TX_DATAGRAMS] != sent)
		udp->is_segmenting = false;
	return taken;
}

static void count_run(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		count_sent(udp, udp->outbox.headers[i].msg_len, messages[i].segment_length);
	udp->counters[VB_UDP_TX_MESSAGES] += count;
}

/* Sends the first messages that share one transmit socket. Returns how many are done with. */
static uint32_t send_run(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count)
{
	uint32_t filled = fill_run(udp, messages, count);
	struct vb_udp_source *source = &udp->sources[messages->source_index];
	int result;

	if (!filled)
		return handle_refusal(udp, messages, EAFNOSUPPORT);
	result = transmit_past_old_error(&source->socket, udp->outbox.headers, filled);
	if (result < 0)
		return handle_refusal(udp, messages, -result);
	count_run(udp, messages, (uint32_t)result);
	for (int i = 0; i < result; i++)
		vb_udp_connected_tx_notice(udp, &messages[i]);
	return (uint32_t)result;
}

/*
 * The same through the connected transmit socket. A message that it refuses is dropped, and not
 * sent by the other socket: its ICRC covers the IPv4 ID that it would have had. Only one without
 * room is left to the caller.
 */
static uint32_t send_connected_tx(struct vb_udp *udp, const struct vb_udp_message *messages,
				  uint32_t count)
{
	uint32_t filled = fill_run(udp, messages, count);
	struct vb_udp_source *source = &udp->sources[messages->source_index];
	int result;

	if (!filled) {
		udp->counters[VB_UDP_TX_DROP_NUMBER]++;
		/* otherwise the engine would continue with wrong IPv4 IDs */
		udp->has_connected_tx_changed = true;
		return 1;
	}
	result = send_headers(&source->connected_tx.socket, udp->outbox.headers, filled);
	if (result >= 0) {
		vb_udp_connected_tx_on_sent(udp, source, (uint32_t)result, filled);
		count_run(udp, messages, (uint32_t)result);
		for (int i = 0; i < result; i++)
			vb_udp_gso_default_notice(udp, &source->connected_tx.gso_default,
						  &messages[i]);
		return (uint32_t)result;
	}
	vb_udp_connected_tx_on_refused(udp, source, -result);
	if (is_retryable(-result)) {
		udp->counters[VB_UDP_TX_STOPS]++;
		return 0;
	}
	count_drop(udp, -result);
	return 1;
}

static bool is_destination_allowed(const struct vb_udp *udp, const struct vb_udp_message *message)
{
	struct vb_udp_address destination = message->destination;

	if (!memcmp(destination.ip, message->source.ip, sizeof(destination.ip)))
		return true;
	destination.scope = vb_udp_scope_of(udp, &destination);
	return vb_udp_address_is_multicast(&destination) || vb_udp_address_is_local(&destination);
}

static bool is_same_address(const struct vb_udp_address *a, const struct vb_udp_address *b)
{
	return !memcmp(a->ip, b->ip, sizeof(a->ip)) && a->scope == b->scope;
}

/*
 * The number of messages, from the first on, with a permitted destination. A destination equal to
 * the one before is not checked again.
 */
static uint32_t count_allowed(const struct vb_udp *udp, const struct vb_udp_message *messages,
			      uint32_t count)
{
	uint32_t passed = 0;

	if (!udp->is_host_only)
		return count;
	while (passed < count && ((passed && is_same_address(&messages[passed].destination,
							     &messages[passed - 1].destination)) ||
				  is_destination_allowed(udp, &messages[passed])))
		passed++;
	return passed;
}

uint32_t vb_udp_send(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count)
{
	uint32_t taken = 0;

	while (taken < count) {
		const struct vb_udp_message *next = &messages[taken];
		uint32_t passed = count_allowed(udp, next, min32(count - taken, VB_UDP_TX_BATCH));
		uint32_t done = 1;

		if (!passed)
			udp->counters[VB_UDP_TX_DROP_PORT_HELD]++;
		else if (next->is_connected_tx)
			done = send_connected_tx(udp, next, passed);
		else if (next->segment_length && !udp->is_segmenting)
			done = send_split(udp, next);
		else
			done = send_run(udp, next, passed);
		if (!done)
			break;
		taken += done;
	}
	if (udp->is_connected_tx_work_due)
		vb_udp_connected_tx_do_work(udp);
	return taken;
}
