/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving of datagrams. The kernel may have coalesced datagrams of one flow; they are split
 * again here, across calls if the caller has little room. The number of messages requested from the
 * kernel follows the number it had: in a ping-pong, asking for one more than there is costs as much
 * as half a receive.
 */
#include "link/udp_priv.h"

#include "base/bytes.h"
#include "base/heap.h"
#include "link/sys.h"

#include <netinet/udp.h>

#define DATAGRAM_LENGTH_MAX 65535u

/* Not a power of two, or the beginnings of all buffers would share the same few cache lines. */
static uint32_t stride_of(uint32_t length)
{
	return (length + 4095) / 4096 * 4096 + 192;
}

vb_err vb_udp_inbox_init(struct vb_udp_inbox *inbox, uint32_t datagram_length_max)
{
	uint32_t length = datagram_length_max ? min32(datagram_length_max, DATAGRAM_LENGTH_MAX)
					      : DATAGRAM_LENGTH_MAX;
	uint32_t stride = stride_of(length);

	inbox->bytes = vb_heap_alloc(1, (size_t)stride * VB_UDP_RX_BATCH);
	if (!inbox->bytes)
		return VB_ENOMEM;
	for (uint32_t i = 0; i < VB_UDP_RX_BATCH; i++)
		inbox->iovecs[i] = (struct iovec){ inbox->bytes + (size_t)i * stride, length };
	inbox->batch_length = 1;
	return VB_OK;
}

void vb_udp_inbox_fini(struct vb_udp_inbox *inbox)
{
	vb_heap_free(inbox->bytes);
}

/* The sender to a connected receive socket is known. */
static int ask_kernel(struct vb_udp *udp, int fd, socklen_t name_length)
{
	struct vb_udp_inbox *box = &udp->inbox;
	int result;

	for (uint32_t i = 0; i < box->batch_length; i++)
		box->headers[i].msg_hdr = (struct msghdr){
			.msg_name = name_length ? &box->names[i] : NULL,
			.msg_namelen = name_length,
			.msg_iov = &box->iovecs[i],
			.msg_iovlen = 1,
			.msg_control = box->control[i],
			.msg_controllen = sizeof(box->control[i]),
		};
	if (box->batch_length > 1)
		return vb_sys_recvmmsg(fd, box->headers, box->batch_length, MSG_DONTWAIT);
	result = vb_sys_recvmsg(fd, &box->headers[0].msg_hdr, MSG_DONTWAIT);
	if (result < 0)
		return result;
	box->headers[0].msg_len = (unsigned)result;
	return 1;
}

static uint32_t ask_others(struct vb_udp *udp)
{
	uint32_t count = 0;

	for (uint32_t i = vb_udp_socket_count(udp); i && !count; i--) {
		int result =
			ask_kernel(udp, vb_udp_choose_next_socket(udp), sizeof(union vb_udp_name));

		count = result < 0 ? 0 : (uint32_t)result;
	}
	vb_udp_connected_rx_on_others(udp, count);
	return count;
}

static uint32_t ask_flow(struct vb_udp *udp)
{
	int result = ask_kernel(udp, udp->connected_rx.fd,
				udp->connected_rx.is_mixed ? sizeof(union vb_udp_name) : 0);
	uint32_t count = result < 0 ? 0 : (uint32_t)result;

	vb_udp_connected_rx_on_look(udp, count);
	return count;
}

/* Getting all that was requested, after nothing, may be chance, as in a ping-pong. */
static uint32_t adapt_batch_length(struct vb_udp_inbox *box, uint32_t count)
{
	uint32_t wish = count == box->batch_length && !box->was_empty ? 2 * count : max32(count, 1);

	box->was_empty = !count;
	return min32(wish, VB_UDP_RX_BATCH);
}

static void refill(struct vb_udp *udp)
{
	struct vb_udp_inbox *box = &udp->inbox;
	uint32_t count = 0;

	if (vb_udp_connected_rx_is_turn_of_others(udp))
		count = ask_others(udp);
	box->is_by_connected_rx = !count && udp->connected_rx.is_open;
	box->is_named = !box->is_by_connected_rx || udp->connected_rx.is_mixed;
	if (box->is_by_connected_rx)
		count = ask_flow(udp);
	box->batch_length = adapt_batch_length(box, count);
	box->count = count;
	box->next = 0;
	udp->counters[VB_UDP_RX_MESSAGES] += count;
}

static void load_overflow(struct vb_udp *udp, uint32_t count)
{
	uint32_t *before = udp->inbox.is_by_connected_rx ? &udp->connected_rx.overflow_count
							 : &udp->inbox.overflow_count;

	if (udp->more_count)
		return; /* this may be the count of another socket */
	udp->counters[VB_UDP_RX_DROP_OVERFLOW] += count - *before;
	*before = count;
}

static int load_int(const struct cmsghdr *control)
{
	int value;

	memcpy(&value, CMSG_DATA(control), sizeof(value));
	return value;
}

static void load_socket_level(struct vb_udp *udp, const struct cmsghdr *control)
{
	if (control->cmsg_type == SO_RXQ_OVFL)
		load_overflow(udp, (uint32_t)load_int(control));
}

static void load_ipv4_level(struct vb_udp_datagram *datagram, const struct cmsghdr *control)
{
	struct in_pktinfo info;

	switch (control->cmsg_type) {
	case IP_PKTINFO:
		memcpy(&info, CMSG_DATA(control), sizeof(info));
		datagram->destination =
			vb_udp_address_from_ipv4(info.ipi_addr, (uint32_t)info.ipi_ifindex);
		break;
	case IP_TOS:
		datagram->traffic_class = CMSG_DATA(control)[0]; /* a byte here */
		break;
	case IP_TTL:
		datagram->hop_limit = (uint8_t)load_int(control);
		break;
	default:
		break;
	}
}

static void load_ipv6_level(struct vb_udp_datagram *datagram, const struct cmsghdr *control)
{
	struct in6_pktinfo info;

	switch (control->cmsg_type) {
	case IPV6_PKTINFO:
		memcpy(&info, CMSG_DATA(control), sizeof(info));
		memcpy(datagram->destination.ip, &info.ipi6_addr, sizeof(info.ipi6_addr));
		datagram->destination.scope = info.ipi6_ifindex;
		break;
	case IPV6_TCLASS:
		datagram->traffic_class = (uint8_t)load_int(control);
		break;
	case IPV6_HOPLIMIT:
		datagram->hop_limit = (uint8_t)load_int(control);
		break;
	default:
		break;
	}
}

static void load_control(struct vb_udp *udp, struct msghdr *header)
{
	struct vb_udp_inbox *box = &udp->inbox;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level == SOL_SOCKET)
			load_socket_level(udp, c);
		else if (c->cmsg_level == SOL_IP)
			load_ipv4_level(&box->datagram, c);
		else if (c->cmsg_level == SOL_IPV6)
			load_ipv6_level(&box->datagram, c);
		else if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			box->segment_length = (uint32_t)load_int(c);
	}
}

static void begin_datagram(struct vb_udp *udp)
{
	struct vb_udp_inbox *box = &udp->inbox;

	box->datagram = box->is_by_connected_rx ? udp->connected_rx.sender
						: (struct vb_udp_datagram){ 0 };
	box->datagram.data = box->iovecs[box->next].iov_base;
	if (box->is_named)
		box->datagram.source =
			vb_udp_address_load(&box->names[box->next], &box->datagram.source_port);
}

/* Examines the next message; false if it must be dropped. */
static bool begin_message(struct vb_udp *udp)
{
	struct vb_udp_inbox *box = &udp->inbox;
	struct mmsghdr *message = &box->headers[box->next];

	begin_datagram(udp);
	box->offset = 0;
	box->segment_index = box->datagram.segment_index;
	box->length_left = message->msg_len;
	box->segment_length = 0;
	load_control(udp, &message->msg_hdr);
	if (box->segment_length == 0 || box->segment_length > box->length_left)
		box->segment_length = box->length_left;
	if (message->msg_hdr.msg_flags & MSG_TRUNC) {
		udp->counters[VB_UDP_RX_DROP_TRUNCATED]++;
		return false;
	}
	if (message->msg_hdr.msg_flags & MSG_CTRUNC ||
	    vb_udp_address_is_zero(&box->datagram.destination)) {
		udp->counters[VB_UDP_RX_DROP_UNADDRESSED]++;
		return false;
	}
	if (!box->is_by_connected_rx)
		vb_udp_connected_rx_notice(udp, &box->datagram);
	return true;
}

/* Takes the next datagram of a message that was begun; it may be empty if it is the only one. */
static void take_datagram(struct vb_udp *udp, struct vb_udp_datagram *out)
{
	struct vb_udp_inbox *box = &udp->inbox;
	uint32_t length = min32(box->segment_length, box->length_left);

	*out = box->datagram;
	out->data += box->offset;
	out->length = length;
	out->segment_index = box->segment_index++;
	box->offset += length;
	box->length_left -= length;
	if (!box->length_left) {
		box->is_begun = false;
		box->next++;
	}
	udp->counters[VB_UDP_RX_DATAGRAMS]++;
	udp->counters[VB_UDP_RX_BYTES] += length;
}

uint32_t vb_udp_receive(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t capacity)
{
	struct vb_udp_inbox *box = &udp->inbox;
	uint32_t count = 0;

	if (box->next == box->count)
		refill(udp);
	while (count < capacity && box->next < box->count) {
		if (!box->is_begun && !begin_message(udp)) {
			box->next++;
			continue;
		}
		box->is_begun = true;
		take_datagram(udp, &out[count++]);
	}
	return count;
}
