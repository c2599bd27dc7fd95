/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets and their options. An IPv6 socket that is not restricted to IPv6 also carries IPv4, and
 * takes the options of both levels. Transmit sockets are usually not connected: the kernel gives
 * the packets of a connected socket IPv4 IDs other than 0, and the ICRC covers the ID. The
 * exception is in udp_connected_tx.c.
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
	int family; /* only sockets of this family get the option; 0: all do */
	int level;
	int name;
	int value;
	bool is_optional; /* older kernels do not have it: a failure is ignored */
};

// clang-format off
static const struct option receiver_options[] = {
	{ 0,        SOL_SOCKET, SO_REUSEPORT,          1, false },
	{ AF_INET6, SOL_IPV6,   IPV6_V6ONLY,           0, false },
	/* also reports the address of IPv4 packets */
	{ AF_INET6, SOL_IPV6,   IPV6_RECVPKTINFO,      1, false },
	{ AF_INET,  SOL_IP,     IP_PKTINFO,            1, false },
	/* the kernel's Soft-RoCE sends IPv6 without a UDP checksum */
	{ AF_INET6, SOL_UDP,    UDP_NO_CHECK6_RX,      1, true },
	{ 0,        SOL_UDP,    UDP_GRO,               1, true },
	/* only groups that this socket is in */
	{ 0,        SOL_IP,     IP_MULTICAST_ALL,      0, true },
	{ AF_INET6, SOL_IPV6,   IPV6_MULTICAST_ALL,    0, true },
	{ 0,        SOL_SOCKET, SO_RXQ_OVFL,           1, true },
};

/*
 * Traffic class and hop limit, which only some callers need: reporting them costs 0.2 microseconds
 * per message.
 */
static const struct option ip_field_options[] = {
	{ AF_INET6, SOL_IPV6,   IPV6_RECVTCLASS,       1, false },
	{ AF_INET6, SOL_IPV6,   IPV6_RECVHOPLIMIT,     1, false },
	{ 0,        SOL_IP,     IP_RECVTOS,            1, false },
	{ 0,        SOL_IP,     IP_RECVTTL,            1, false },
};

static const struct option transmitter_options[] = {
	{ AF_INET6, SOL_IPV6,   IPV6_V6ONLY,           0, false },
	/* sets DF, and so the IPv4 ID is 0 */
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
 * Finds a port that no process uses. If the kernel chose the port of a SO_REUSEPORT socket, it
 * might choose one that another program of this user already shares.
 */
static uint16_t find_free_port(int family)
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
	result = bind_to_port(fd, family, config->port ? config->port : find_free_port(family));
	if (result < 0)
		goto close_fd;
	return fd;
close_fd:
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_enable_ip_fields(int fd, int family)
{
	return set_options(fd, family, ip_field_options,
			   sizeof(ip_field_options) / sizeof(ip_field_options[0]));
}

int vb_udp_socket_refuse_input(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { .len = 1, .filter = &nothing };

	return vb_sys_setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/*
 * Opens a receiver for one address. An IPv4 address gets an IPv4 socket, so that it need not be
 * mapped to IPv6.
 */
static int open_receiver_at(const struct vb_udp_address *address, uint16_t port,
			    uint32_t receive_buffer_length, const struct option *more,
			    size_t more_count)
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

int vb_udp_socket_open_multicast_receiver(const struct vb_udp_address *group, uint16_t port,
					  uint32_t receive_buffer_length)
{
	/* The link counts the overflow of one socket only. */
	static const struct option uncounted = { 0, SOL_SOCKET, SO_RXQ_OVFL, 0, true };
	int fd = open_receiver_at(group, port, receive_buffer_length, &uncounted, 1);
	int result;

	if (fd < 0)
		return fd;
	result = vb_udp_socket_enable_ip_fields(fd, vb_udp_receiver_family(fd));
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_open_connected_rx(const struct vb_udp_address *address, uint16_t port,
				    uint32_t receive_buffer_length)
{
	static const struct option without_addresses[] = {
		{ AF_INET6, SOL_IPV6, IPV6_RECVPKTINFO, 0, false },
		{ AF_INET, SOL_IP, IP_PKTINFO, 0, false },
	};

	return open_receiver_at(address, port, receive_buffer_length, without_addresses,
				sizeof(without_addresses) / sizeof(without_addresses[0]));
}

/*
 * With a hop limit of 0, multicast does not leave this host. The kernel still delivers it to the
 * group's members here.
 */
static int keep_multicast_here(int fd, int family)
{
	static const struct option options[] = {
		{ 0, SOL_IP, IP_MULTICAST_TTL, 0, false },
		{ AF_INET6, SOL_IPV6, IPV6_MULTICAST_HOPS, 0, false },
	};

	return set_options(fd, family, options, sizeof(options) / sizeof(options[0]));
}

/* Opens a transmit socket that is not yet bound to a port. */
static int open_unbound_transmitter(int family, bool is_host_only)
{
	int fd = vb_fd_own(vb_sys_socket(family, SOCKET_TYPE, IPPROTO_UDP));
	int result;

	if (fd < 0)
		return fd;
	result = set_options(fd, family, transmitter_options,
			     sizeof(transmitter_options) / sizeof(transmitter_options[0]));
	if (result >= 0 && is_host_only)
		result = keep_multicast_here(fd, family);
	if (result >= 0)
		result = vb_udp_socket_refuse_input(fd);
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

int vb_udp_socket_open_transmitter(int family, uint16_t port, bool is_host_only)
{
	int fd = open_unbound_transmitter(family, is_host_only);
	int result;

	if (fd < 0)
		return fd;
	result = bind_to_port(fd, family, port);
	if (result >= 0)
		return fd;
	vb_fd_close(fd);
	return result;
}

/* Sets on the socket what unconnected sockets are told in the control data of each message. */
static int set_route(int fd, int family, const struct vb_udp_route *route)
{
	int hop_limit = route->hop_limit ? route->hop_limit : VB_UDP_HOP_LIMIT_DEFAULT;
	const struct option options[] = {
		{ AF_INET, SOL_IP, IP_TOS, route->traffic_class, false },
		{ AF_INET, SOL_IP, IP_TTL, hop_limit, false },
		{ AF_INET6, SOL_IPV6, IPV6_TCLASS, route->traffic_class, false },
		{ AF_INET6, SOL_IPV6, IPV6_UNICAST_HOPS, hop_limit, false },
		/* so that the kernel returns the headers that it wrote: udp_connected_tx.c */
		{ 0, SOL_SOCKET, SO_TIMESTAMPING, SOF_TIMESTAMPING_SOFTWARE, true },
	};

	return set_options(fd, family, options, sizeof(options) / sizeof(options[0]));
}

static int set_port_sharing(int fd, int is_on)
{
	return vb_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &is_on, sizeof(is_on));
}

/*
 * Binds fd to the port of the transmit socket. Both allow sharing (SO_REUSEPORT) only during the
 * bind, so that no other socket joins them later.
 */
static int bind_beside(int transmitter_fd, int fd, const union vb_udp_name *name, socklen_t length)
{
	int result = set_port_sharing(transmitter_fd, 1);

	if (result >= 0)
		result = set_port_sharing(fd, 1);
	if (result >= 0)
		result = vb_sys_bind(fd, name, length);
	(void)set_port_sharing(fd, 0);
	(void)set_port_sharing(transmitter_fd, 0);
	return result;
}

int vb_udp_socket_open_connected_tx(int transmitter_fd, int family,
				    const struct vb_udp_route *route, uint32_t scope)
{
	struct vb_udp_address from = { .scope = scope };
	union vb_udp_name name;
	int fd = open_unbound_transmitter(family, false);
	int result;

	if (fd < 0)
		return fd;
	memcpy(from.ip, route->source.ip, sizeof(from.ip));
	result = set_route(fd, family, route);
	if (result >= 0)
		result = bind_beside(transmitter_fd, fd, &name,
				     vb_udp_address_store(&from, vb_udp_socket_port(transmitter_fd),
							  family, &name));
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
