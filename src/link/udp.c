/* SPDX-License-Identifier: BSD-2-Clause */
/* The opening and closing of a UDP link, and its properties. */
#include "link/udp_priv.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"

vb_err vb_udp_err_of(int result)
{
	switch (-result) {
	case EADDRINUSE:
	case EACCES: /* a port that needs privilege */
		return VB_EBUSY;
	case ENOMEM:
	case ENOBUFS:
	case ENOSPC: /* epoll's limit on watches */
		return VB_ENOMEM;
	case EMFILE:
	case ENFILE:
		return VB_EMFILE;
	case EAFNOSUPPORT:
	case ENOPROTOOPT:
		return VB_EOPNOTSUPP;
	default:
		return VB_EINVAL;
	}
}

int vb_udp_watch(const struct vb_udp *udp, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return vb_sys_epoll_ctl(udp->poller, EPOLL_CTL_ADD, fd, &event);
}

static vb_err watch(const struct vb_udp *udp, int fd, uint32_t events)
{
	int result = vb_udp_watch(udp, fd, events);

	return result < 0 ? vb_udp_err_of(result) : VB_OK;
}

static vb_err open_own_receiver(struct vb_udp *udp, const struct vb_udp_config *config)
{
	vb_err err = vb_udp_receiver_open(config, &udp->receiver);

	if (err)
		return err;
	err = vb_udp_receiver_enable_ip_fields(udp->receiver);
	if (err)
		vb_udp_receiver_close(udp->receiver);
	return err;
}

static vb_err open_receiver(struct vb_udp *udp, const struct vb_udp_config *config)
{
	vb_err err = VB_OK;

	udp->is_receiver_lent = config->receiver;
	if (config->receiver)
		udp->receiver = *config->receiver;
	else
		err = open_own_receiver(udp, config);
	if (err)
		return err;
	udp->family = vb_udp_receiver_family(udp->receiver);
	udp->inbox.overflow_count = vb_udp_receiver_overflow_count(udp->receiver);
	return VB_OK;
}

static void close_receiver(struct vb_udp *udp)
{
	if (!udp->is_receiver_lent)
		vb_udp_receiver_close(udp->receiver);
}

static vb_err open_sources(struct vb_udp *udp, const struct vb_udp_config *config)
{
	uint32_t count = config->source_count ? config->source_count : 1;

	for (; udp->source_count < count; udp->source_count++) {
		struct vb_udp_source *source = &udp->sources[udp->source_count];
		vb_err err;

		source->socket.fd = vb_udp_socket_open_transmitter(
			udp->family, config->source_ports[udp->source_count], config->is_host_only);
		if (source->socket.fd < 0)
			return vb_udp_err_of(source->socket.fd);
		source->port = vb_udp_socket_port(source->socket.fd);
		err = watch(udp, source->socket.fd, 0);
		if (err) {
			vb_fd_close(source->socket.fd);
			return err;
		}
	}
	return VB_OK;
}

static void close_sources(struct vb_udp *udp)
{
	while (udp->source_count) {
		struct vb_udp_source *source = &udp->sources[--udp->source_count];

		vb_udp_connected_tx_close(udp, source);
		vb_fd_close(source->socket.fd);
	}
}

vb_err vb_udp_open(const struct vb_udp_config *config, struct vb_udp **udp_out)
{
	struct vb_udp *udp;
	vb_err err;

	if (config->source_count > VB_UDP_SOURCES_MAX)
		return VB_EINVAL;
	udp = vb_heap_alloc(1, sizeof(*udp));
	if (!udp)
		return VB_ENOMEM;
	udp->counters = config->counters ? config->counters : udp->own_counters;
	err = vb_udp_inbox_init(&udp->inbox, config->datagram_length_max);
	if (err)
		goto free_udp;
	udp->poller = vb_fd_own(vb_sys_epoll_create(EPOLL_CLOEXEC));
	if (udp->poller < 0) {
		err = vb_udp_err_of(udp->poller);
		goto fini_inbox;
	}
	err = open_receiver(udp, config);
	if (err)
		goto close_poller;
	err = watch(udp, udp->receiver, EPOLLIN);
	if (err)
		goto close_receiver;
	err = open_sources(udp, config);
	if (err)
		goto close_sources;
	udp->ifindex = config->ifindex;
	udp->receive_buffer_length = config->receive_buffer_length;
	udp->is_segmenting = config->is_segmenting;
	udp->is_host_only = config->is_host_only;
	udp->is_connected_tx_wanted = config->is_connected_tx_wanted;
	udp->port = vb_udp_socket_port(udp->receiver);
	udp->destination_port = config->destination_port ? config->destination_port : udp->port;
	*udp_out = udp;
	return VB_OK;
close_sources:
	close_sources(udp);
close_receiver:
	close_receiver(udp);
close_poller:
	vb_fd_close(udp->poller);
fini_inbox:
	vb_udp_inbox_fini(&udp->inbox);
free_udp:
	vb_heap_free(udp);
	return err;
}

void vb_udp_close(struct vb_udp *udp)
{
	vb_udp_leave_all(udp);
	vb_udp_connected_rx_close(udp);
	close_sources(udp);
	close_receiver(udp);
	vb_fd_close(udp->poller);
	vb_udp_inbox_fini(&udp->inbox);
	vb_heap_free(udp);
}

bool vb_udp_is_intact(const struct vb_udp *udp)
{
	bool is_intact = vb_fd_is_ours(udp->poller) && vb_fd_is_ours(udp->receiver) &&
			 (!udp->connected_rx.is_open || vb_fd_is_ours(udp->connected_rx.fd));

	for (uint32_t i = 0; i < udp->source_count; i++) {
		const struct vb_udp_source *source = &udp->sources[i];

		is_intact &= vb_fd_is_ours(source->socket.fd) &&
			     (!source->connected_tx.is_open ||
			      vb_fd_is_ours(source->connected_tx.socket.fd));
	}
	return is_intact;
}

uint16_t vb_udp_port(const struct vb_udp *udp)
{
	return udp->port;
}

uint32_t vb_udp_source_count(const struct vb_udp *udp)
{
	return udp->source_count;
}

uint16_t vb_udp_source_port(const struct vb_udp *udp, uint32_t source_index)
{
	VB_CHECK(source_index < udp->source_count);
	return udp->sources[source_index].port;
}

uint32_t vb_udp_receive_buffer_length(const struct vb_udp *udp)
{
	int value = 0;
	socklen_t length = sizeof(value);

	(void)vb_sys_getsockopt(udp->receiver, SOL_SOCKET, SO_RCVBUF, &value, &length);
	return (uint32_t)value;
}

uint32_t vb_udp_segments_max(const struct vb_udp *udp)
{
	return udp->is_segmenting ? VB_UDP_SEGMENTS_MAX : 1;
}

int vb_udp_fd(const struct vb_udp *udp)
{
	return udp->poller;
}

const uint64_t *vb_udp_counters(const struct vb_udp *udp)
{
	return udp->counters;
}

const char *vb_udp_counter_name(enum vb_udp_counter counter)
{
	static const char *const names[VB_UDP_COUNTER_COUNT] = {
#define X(symbol, name) [VB_UDP_##symbol] = name,
		VB_UDP_COUNTERS(X)
#undef X
	};

	return counter < VB_UDP_COUNTER_COUNT ? names[counter] : "?";
}
