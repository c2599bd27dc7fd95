/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receiving sockets, independent of any link. All sockets on one port form a SO_REUSEPORT group,
 * in which each has a place, and closing one changes the places of others. So a socket need not be
 * closed when its link ends: another process can take it over. That process first discards what is
 * queued in it.
 */
#include "link/udp_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <stdio.h>
#include <string.h>

#define CLEAR_MAX 65536u /* datagrams; a flood must not keep us here forever */
#define CHUNK 4096u /* bytes of /proc/net/udp that are read at a time */
#define COUNT_TRIES 8u /* after these, the last count has to do */

/* Falls back to IPv4: some machines have no IPv6, and in containers it often does not work. */
vb_err vb_udp_receiver_open(const struct vb_udp_config *config, int *fd_out)
{
	int family = config->is_ipv4_only ? AF_INET : AF_INET6;
	int fd = vb_udp_socket_open_receiver(family, config);

	if (fd < 0 && fd != -EADDRINUSE && family == AF_INET6)
		fd = vb_udp_socket_open_receiver(AF_INET, config);
	if (fd < 0)
		return vb_udp_err_of(fd);
	*fd_out = fd;
	return VB_OK;
}

vb_err vb_udp_receiver_enable_ip_fields(int fd)
{
	int result = vb_udp_socket_enable_ip_fields(fd, vb_udp_receiver_family(fd));

	return result < 0 ? vb_udp_err_of(result) : VB_OK;
}

void vb_udp_receiver_close(int fd)
{
	vb_fd_close(fd);
}

static int get_option(int fd, int level, int option)
{
	int value = -1;
	socklen_t length = sizeof(value);

	return vb_sys_getsockopt(fd, level, option, &value, &length) < 0 ? -1 : value;
}

static int get_socket_option(int fd, int option)
{
	return get_option(fd, SOL_SOCKET, option);
}

int vb_udp_receiver_family(int fd)
{
	return get_socket_option(fd, SO_DOMAIN);
}

bool vb_udp_receiver_has_ip_fields(int fd)
{
	return get_option(fd, SOL_IP, IP_RECVTOS) == 1;
}

uint16_t vb_udp_receiver_port(int fd)
{
	union vb_udp_name name = { 0 };
	socklen_t length = sizeof(name);
	struct vb_udp_address address;
	uint16_t port;
	int family = get_socket_option(fd, SO_DOMAIN);

	if ((family != AF_INET && family != AF_INET6) ||
	    get_socket_option(fd, SO_TYPE) != SOCK_DGRAM ||
	    get_socket_option(fd, SO_PROTOCOL) != IPPROTO_UDP ||
	    get_socket_option(fd, SO_REUSEPORT) != 1)
		return 0;
	if (vb_sys_getsockname(fd, &name, &length) < 0)
		return 0;
	address = vb_udp_address_load(&name, &port);
	if (vb_udp_address_is_ipv4(&address))
		memset(address.ip + 10, 0, 2); /* so that 0.0.0.0 compares equal to :: */
	return vb_udp_address_is_zero(&address) ? port : 0;
}

static void discard_queued(int fd)
{
	uint8_t byte;
	struct iovec iovec = { &byte, 1 };
	struct msghdr message = { .msg_iov = &iovec, .msg_iovlen = 1 };

	for (uint32_t i = 0; i < CLEAR_MAX; i++)
		if (vb_sys_recvmsg(fd, &message, MSG_DONTWAIT) < 0)
			return;
}

void vb_udp_receiver_retire(int fd)
{
	(void)vb_udp_socket_refuse_input(fd);
	discard_queued(fd);
}

void vb_udp_receiver_end_retirement(int fd)
{
	int unused = 0;

	(void)vb_sys_setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

void vb_udp_receiver_adopt(int fd, uint32_t receive_buffer_length)
{
	vb_udp_receiver_end_retirement(fd);
	vb_udp_socket_set_receive_buffer(fd, receive_buffer_length);
	discard_queued(fd);
}

uint32_t vb_udp_receiver_overflow_count(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t length = sizeof(info);

	(void)vb_sys_getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &length);
	return info[SK_MEMINFO_DROPS];
}

/* --- counting the sockets of a port ----------------------------------------------------------- */

/*
 * Counts how often the text occurs in the file. Reads piece by piece: the list of a busy machine is
 * long.
 */
static uint32_t count_in_file(const char *path, const char *text)
{
	size_t length = strlen(text);
	char bytes[CHUNK];
	size_t kept = 0;
	uint32_t count = 0;
	int fd = vb_fd_own(
		vb_sys_result(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)));

	if (fd < 0)
		return 0;
	for (;;) {
		long got = syscall(SYS_read, fd, bytes + kept, sizeof(bytes) - kept);
		size_t held;
		const char *at = bytes;

		if (got <= 0)
			break;
		held = kept + (size_t)got;
		while ((at = memmem(at, (size_t)(bytes + held - at), text, length))) {
			count++;
			at += length;
		}
		/*
		 * A text may lie across two pieces. A text that was counted is longer than what is
		 * kept.
		 */
		kept = held < length - 1 ? held : length - 1;
		memmove(bytes, bytes + held - kept, kept);
	}
	vb_fd_close(fd);
	return count;
}

/* A line of the list begins with "<slot>: <local address>:<port> ", the latter in hexadecimal. */
static uint32_t count_listed(int family, uint16_t port)
{
	char text[64];

	snprintf(text, sizeof(text), ": %0*d:%04X ", family == AF_INET ? 8 : 32, 0, port);
	return count_in_file(family == AF_INET ? "/proc/thread-self/net/udp"
					       : "/proc/thread-self/net/udp6",
			     text);
}

uint32_t vb_udp_count_receivers(uint16_t port)
{
	uint32_t count = 0;

	/*
	 * The list is read in pieces, between which sockets come and go. So we count until two
	 * counts in a row agree, but at most COUNT_TRIES times.
	 */
	for (uint32_t i = 0; i < COUNT_TRIES; i++) {
		uint32_t before = count;

		count = count_listed(AF_INET, port) + count_listed(AF_INET6, port);
		if (i && count == before)
			break;
	}
	return count;
}
