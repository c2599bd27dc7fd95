/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the kernel's lists of UDP sockets, which name the user of each. They do not say whether a socket shares its port; that
 * an attempt shows, on an address that nobody uses: on any other, a packet might come to us meanwhile.
 */
#include "host/port_holders.h"

#include "link/fd.h"
#include "link/sys.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define CHUNK 4096u
#define UNUSED_ADDRESS 0x7f2f5b01u /* 127.47.91.1 */

static void add_user(struct vb_port_holders *holders, uid_t user)
{
	for (uint32_t i = 0; i < holders->user_count; i++)
		if (holders->users[i] == user)
			return;
	if (holders->user_count < VB_PORT_HOLDERS_MAX)
		holders->users[holders->user_count++] = user;
}

/* "number: address:port address:port state queues timer retransmits uid …" */
static void read_line(struct vb_port_holders *holders, const char *line, uint16_t port_wanted)
{
	unsigned port, user;

	if (sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u", &port, &user) != 2 ||
	    port != port_wanted)
		return;
	if (user == geteuid())
		holders->own_count++;
	else
		add_user(holders, user);
}

/* Takes the whole lines out of the text; returns how much of it is left, moved to its beginning. */
static size_t read_lines(struct vb_port_holders *holders, char *text, size_t length, uint16_t port)
{
	char *line = text;
	char *end;

	while ((end = memchr(line, '\n', (size_t)(text + length - line)))) {
		*end = 0;
		read_line(holders, line, port);
		line = end + 1;
	}
	length = (size_t)(text + length - line);
	memmove(text, line, length);
	return length;
}

static void read_list(struct vb_port_holders *holders, const char *path, uint16_t port)
{
	int fd = vb_fd_own(
		vb_sys_result(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0)));
	char text[CHUNK];
	size_t length = 0;

	if (fd < 0)
		return;
	while (length < sizeof(text)) {
		long got = syscall(SYS_read, fd, text + length, sizeof(text) - length);

		if (got <= 0)
			break;
		length = read_lines(holders, text, length + (size_t)got, port);
	}
	vb_fd_close(fd);
}

static bool can_be_shared(uint16_t port)
{
	int fd = vb_fd_own(vb_sys_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
	struct sockaddr_in name = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(UNUSED_ADDRESS) };
	int yes = 1;
	int result;

	if (fd < 0)
		return true;
	(void)vb_sys_setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
	(void)vb_sys_setsockopt(fd, SOL_IP, IP_FREEBIND, &yes,
				sizeof(yes)); /* loopback may be down */
	result = vb_sys_bind(fd, &name, sizeof(name));
	vb_fd_close(fd);
	return result != -EADDRINUSE;
}

void vb_port_holders_find(uint16_t port, struct vb_port_holders *holders_out)
{
	*holders_out = (struct vb_port_holders){ 0 };
	read_list(holders_out, "/proc/thread-self/net/udp", port);
	read_list(holders_out, "/proc/thread-self/net/udp6", port);
	holders_out->is_unshared = !holders_out->user_count && !can_be_shared(port);
	holders_out->has_soft_roce =
		!syscall(SYS_faccessat, AT_FDCWD, "/sys/module/rdma_rxe", F_OK);
}

bool vb_port_holders_are_in_the_way(const struct vb_port_holders *holders)
{
	return holders->user_count || holders->is_unshared;
}

void vb_port_holders_describe(const struct vb_port_holders *holders, char *text, size_t size)
{
	int length = snprintf(text, size, "%s",
			      holders->is_unshared
				      ? "held by a program of this user that does not share it"
				      : "free");

	for (uint32_t i = 0; i < holders->user_count; i++) {
		uid_t user = holders->users[i];
		bool may_be_kernel = user == 0 && holders->has_soft_roce;

		if (i == 0)
			length = 0;
		if ((size_t)length < size)
			length += snprintf(text + length, size - (size_t)length, "%s uid %u%s",
					   i ? " and" : "held by", user,
					   may_be_kernel ? " or the kernel's Soft-RoCE" : "");
	}
}
