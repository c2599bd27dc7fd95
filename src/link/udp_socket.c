/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets and their options. An IPv6 socket that is not restricted to IPv6 also carries IPv4, and
 * takes the options of both levels. Transmit sockets are not connected: a connected one numbers its
 * packets, and the ICRC covers the number (udp_connected_tx.c).
 */
#include "link/udp_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <netinet/udp.h>
#include <string.h>

#define SOCKET_TYPE (SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC)

struct option {
	int family; /* of the sockets that have the option; 0: all */
	int level;
	int name;
	int value;
	bool is_optional; /* older kernels do without */
};

// clang-format off
static const struct option receiver_options[] = {
	{ 0,        SOL_SOCKET, SO_REUSEPORT,          1, false },
	{ AF_INET6, SOL_IPV6,   IPV6_V6ONLY,           0, false },
	/* also reports the address of IPv4 packets */
	{ AF_INET6, SOL_IPV6,   IPV6_RECVPKTINFO,      1, false },
	{ AF_INET,  SOL_IP,     IP_PKTINFO,            1, false },
	/* the kernel's Soft-RoCE sends without */
	{ AF_INET6, SOL_UDP,    UDP_NO_CHECK6_RX,      1, true },
	{ 0,        SOL_UDP,    UDP_GRO,               1, true },
	/* only groups that this socket is in */
	{ 0,        SOL_IP,     IP_MULTICAST_ALL,      0, true },
	{ AF_INET6, SOL_IPV6,   IPV6_MULTICAST_ALL,    0, true },
	{ 0,        SOL_SOCKET, SO_RXQ_OVFL,           1, true },
};

/* What only some callers need: the two cost a fifth of a microsecond per message. */
static const struct option class_options[] = {
	{ AF_INET6, SOL_IPV6,   IPV6_RECVTCLASS,       1, false },
	{ AF_INET6, SOL_IPV6,   IPV6_RECVHOPLIMIT,     1, false },
	{ 0,        SOL_IP,     IP_RECVTOS,            1, false },
	{ 0,        SOL_IP,     IP_RECVTTL,            1, false },
};

static const struct option sender_options[] = {
	{ AF_INET6, SOL_IPV6,   IPV6_V6ONLY,           0, false },
	/* DF and ID 0 */
	{ 0,        SOL_IP,     IP_MTU_DISCOVER,       IP_PMTUDISC_PROBE, false },
	{ AF_INET6, SOL_IPV6,   IPV6_MTU_DISCOVER,     IPV6_PMTUDISC_PROBE, false },
	{ AF_INET6, SOL_IPV6,   IPV6_DONTFRAG,         1, false },
	{ 0,        SOL_IP,     IP_TTL,                VB_UDP_HOP_LIMIT_DEFAULT, false },
	{ 0,        SOL_IP,     IP_MULTICAST_TTL,      VB_UDP_HOP_LIMIT_DEFAULT, false },
	{ AF_INET6, SOL_IPV6,   IPV6_UNICAST_HOPS,     VB_UDP_HOP_LIMIT_DEFAULT, false },
	{ AF_INET6, SOL_IPV6,   IPV6_MULTICAST_HOPS,   VB_UDP_HOP_LIMIT_DEFAULT, false },
	{ 0,        SOL_IP,     IP_RECVERR,            1, false },
	{ AF_INET6, SOL_IPV6,   IPV6_RECVERR,          1, false },
};
// clang-format on

static int set_options(int fd, int family, const struct option *options, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct option *option = &options[i];
		int result;

		if (option->family && option->family != family)
			continue;
		result = vb_sys_setsockopt(fd, option->level, option->name, &option->value,
					   sizeof(option->value));
		if (result < 0 && !option->is_optional)
			return result;
	}
	return 0;
}

static int bind_to_port(int fd, int family, uint16_t port)
{
	struct vb_udp_address any = { 0 };
	union vb_udp_name name;
	socklen_t length;

	if (family == AF_INET)
		any = vb_udp_address_from_ipv4((struct in_addr){ INADDR_ANY }, 0);
	length = vb_udp_address_store(&any, port, family, &name);
	return vb_sys_bind(fd, &name, length);
}

/*
 * Finds a port that no process has. Left to the kernel, a socket that shares its port may get the
 * port of another program of this user that also does so.
 */
static uint16_t free_port(int family)
{
	int fd = vb_fd_own(vb_sys_socket(family, SOCKET_TYPE, IPPROTO_UDP));
	uint16_t port = 0;

	if (fd < 0)
		return 0;
	if (bind_to_port(fd, family, 0) >= 0)
		port = vb_udp_socket_port(fd);
	vb_fd_close(fd);
	return port;
}

/* Exceeds the system's limit if permitted; otherwise goes as far as the limit. */
void vb_udp_socket_set_receive_buffer(int fd, uint32_t length)
{
	int value = (int)length;

	if (value && vb_sys_setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof(value)) < 0)
		(void)vb_sys_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value));
}

int vb_udp_socket_open_receiver(int family, const struct vb_udp_config *config)
{
	int fd = vb_fd_own(vb_sys_socket(family, SOCKET_TYPE, IPPROTO_UDP));
	int result;

	if (fd < 0)
		return fd;
	result = set_options(fd, family, receiver_options,
			     sizeof(receiver_options) / sizeof(receiver_options[0]));
	if (result < 0)
		goto close_fd;
	vb_udp_socket_set_receive_buffer(fd, config->receive_buffer_length);
	result = bind_to_port(fd, family, config->port ? config->port : free_port(family));
	if (result < 0)
		goto close_fd;
	return fd;
close_fd:
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_report_class(int fd, int family)
{
	return set_options(fd, family, class_options,
			   sizeof(class_options) / sizeof(class_options[0]));
}

int vb_udp_socket_refuse_input(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &nothing };

	return vb_sys_setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/*
 * Opens a receiver for one address. An IPv4 address gets an IPv4 socket, which takes the address as
 * it is.
 */
static int open_at(const struct vb_udp_address *address, uint16_t port,
		   uint32_t receive_buffer_length, const struct option *more, size_t more_count)
{
	int family = vb_udp_address_is_ipv4(address) ? AF_INET : AF_INET6;
	int fd = vb_fd_own(vb_sys_socket(family, SOCKET_TYPE, IPPROTO_UDP));
	union vb_udp_name name;
	int result;

	if (fd < 0)
		return fd;
	result = set_options(fd, family, receiver_options,
			     sizeof(receiver_options) / sizeof(receiver_options[0]));
	if (result >= 0)
		result = set_options(fd, family, more, more_count);
	if (result < 0)
		goto close_fd;
	vb_udp_socket_set_receive_buffer(fd, receive_buffer_length);
	result = vb_sys_bind(fd, &name, vb_udp_address_store(address, port, family, &name));
	if (result < 0)
		goto close_fd;
	return fd;
close_fd:
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_open_group(const struct vb_udp_address *group, uint16_t port,
			     uint32_t receive_buffer_length)
{
	/* The link counts the overflow of one socket only. */
	static const struct option uncounted = { 0, SOL_SOCKET, SO_RXQ_OVFL, 0, true };
	int fd = open_at(group, port, receive_buffer_length, &uncounted, 1);
	int result;

	if (fd < 0)
		return fd;
	result = vb_udp_socket_report_class(fd, vb_udp_receiver_family(fd));
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_open_connected_rx(const struct vb_udp_address *address, uint16_t port,
				    uint32_t receive_buffer_length)
{
	static const struct option silent[] = {
		{ AF_INET6, SOL_IPV6, IPV6_RECVPKTINFO, 0, false },
		{ AF_INET, SOL_IP, IP_PKTINFO, 0, false },
	};

	return open_at(address, port, receive_buffer_length, silent,
		       sizeof(silent) / sizeof(silent[0]));
}

/* The kernel still gives a copy to members on this host. */
static int keep_multicast_here(int fd, int family)
{
	static const struct option options[] = {
		{ 0, SOL_IP, IP_MULTICAST_TTL, 0, false },
		{ AF_INET6, SOL_IPV6, IPV6_MULTICAST_HOPS, 0, false },
	};

	return set_options(fd, family, options, sizeof(options) / sizeof(options[0]));
}

/* Opens a socket for sending only, not yet bound to a port. */
static int open_transmitter(int family, bool is_host_only)
{
	int fd = vb_fd_own(vb_sys_socket(family, SOCKET_TYPE, IPPROTO_UDP));
	int result;

	if (fd < 0)
		return fd;
	result = set_options(fd, family, sender_options,
			     sizeof(sender_options) / sizeof(sender_options[0]));
	if (result >= 0 && is_host_only)
		result = keep_multicast_here(fd, family);
	if (result >= 0)
		result = vb_udp_socket_refuse_input(fd);
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_open_sender(int family, uint16_t port, bool is_host_only)
{
	int fd = open_transmitter(family, is_host_only);
	int result;

	if (fd < 0)
		return fd;
	result = bind_to_port(fd, family, port);
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

/* Sets what other sockets are passed with each message. */
static int set_route(int fd, int family, const struct vb_udp_route *route)
{
	int hop_limit = route->hop_limit ? route->hop_limit : VB_UDP_HOP_LIMIT_DEFAULT;
	const struct option options[] = {
		{ AF_INET, SOL_IP, IP_TOS, route->traffic_class, false },
		{ AF_INET, SOL_IP, IP_TTL, hop_limit, false },
		{ AF_INET6, SOL_IPV6, IPV6_TCLASS, route->traffic_class, false },
		{ AF_INET6, SOL_IPV6, IPV6_UNICAST_HOPS, hop_limit, false },
		{ 0, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE, true },
	};

	return set_options(fd, family, options, sizeof(options) / sizeof(options[0]));
}

static int share_port(int fd, int is_shared)
{
	return vb_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &is_shared, sizeof(is_shared));
}

/* Both sockets let others share their port, but only while the second takes it. */
static int bind_beside(int sender, int fd, const union vb_udp_name *name, socklen_t length)
{
	int result = share_port(sender, 1);

	if (result >= 0)
		result = share_port(fd, 1);
	if (result >= 0)
		result = vb_sys_bind(fd, name, length);
	(void)share_port(fd, 0);
	(void)share_port(sender, 0);
	return result;
}

int vb_udp_socket_open_connected_tx(int sender, int family, const struct vb_udp_route *route,
				    uint32_t scope)
{
	struct vb_udp_address from = { .scope = scope };
	union vb_udp_name name;
	int fd = open_transmitter(family, false);
	int result;

	if (fd < 0)
		return fd;
	memcpy(from.ip, route->source.ip, sizeof(from.ip));
	result = set_route(fd, family, route);
	if (result >= 0)
		result = bind_beside(sender, fd, &name,
				     vb_udp_address_store(&from, vb_udp_socket_port(sender), family,
							  &name));
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

uint16_t vb_udp_socket_port(int fd)
{
	union vb_udp_name name = { 0 };
	socklen_t length = sizeof(name);
	uint16_t port;

	(void)vb_sys_getsockname(fd, &name, &length);
	(void)vb_udp_address_load(&name, &port);
	return port;
}
