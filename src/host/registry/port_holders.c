/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The holders of a port, from the kernel's lists of UDP sockets, which name the user of each. The
 * lists do not show whether a socket shares its port. An attempt to bind shows that, on an address
 * that no process uses: on any other, a packet might come to us meanwhile.
 */
#include "host/registry/port_holders.h"

#include "host/sys/clock.h"
#include "link/fd.h"
#include "link/sys.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define CHUNK 4096u
#define PORTS_LAST_NS 100000000u
#define PORTS_APART_NS 1000000u /* for ports that are not in the list */
/* times what the last listing took: a process that sends from many ports must not keep us busy */
#define PORTS_FACTOR 50u
#define UNUSED_ADDRESS 0x7f2f5b01u /* 127.47.91.1 */

static void add_user(struct vb_port_holders *holders, uid_t user)
{
	for (uint32_t i = 0; i < holders->user_count; i++)
		if (holders->users[i] == user)
			return;
	if (holders->user_count < VB_PORT_HOLDERS_MAX)
		holders->users[holders->user_count++] = user;
}

/* --- the list --- */

/* "number: address:port address:port state queues timer retransmits uid …" */
static void read_line(const char *line, void (*tell)(void *owner, uint16_t port, uid_t user),
		      void *owner)
{
	unsigned port, user;

	if (sscanf(line, "%*u: %*[0-9A-Fa-f]:%x %*s %*s %*s %*s %*s %u", &port, &user) == 2)
		tell(owner, (uint16_t)port, user);
}

/*
 * Consumes the complete lines of the text; returns the length of the rest, which is moved to the
 * beginning.
 */
static size_t read_lines(char *text, size_t length,
			 void (*tell)(void *owner, uint16_t port, uid_t user), void *owner)
{
	char *line = text;
	char *end;

	while ((end = memchr(line, '\n', (size_t)(text + length - line)))) {
		*end = 0;
		read_line(line, tell, owner);
		line = end + 1;
	}
	length = (size_t)(text + length - line);
	memmove(text, line, length);
	return length;
}

static void read_list(const char *path, void (*tell)(void *owner, uint16_t port, uid_t user),
		      void *owner)
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
		length = read_lines(text, length + (size_t)got, tell, owner);
	}
	vb_fd_close(fd);
}

static void read_lists(void (*tell)(void *owner, uint16_t port, uid_t user), void *owner)
{
	read_list("/proc/thread-self/net/udp", tell, owner);
	read_list("/proc/thread-self/net/udp6", tell, owner);
}

/* --- the holders of a port --- */

struct search {
	uint16_t port;
	struct vb_port_holders *holders;
};

static void note_holder(void *owner, uint16_t port, uid_t user)
{
	struct search *search = owner;

	if (port != search->port)
		return;
	if (user == geteuid())
		search->holders->own_count++;
	else
		add_user(search->holders, user);
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
	/* Loopback may be down. */
	(void)vb_sys_setsockopt(fd, SOL_IP, IP_FREEBIND, &yes, sizeof(yes));
	result = vb_sys_bind(fd, &name, sizeof(name));
	vb_fd_close(fd);
	return result != -EADDRINUSE;
}

void vb_port_holders_find(uint16_t port, struct vb_port_holders *holders_out)
{
	struct search search = { port, holders_out };

	*holders_out = (struct vb_port_holders){ 0 };
	read_lists(note_holder, &search);
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

/* --- the ports of a user --- */

static void note_port(void *owner, uint16_t port, uid_t user)
{
	struct vb_user_ports *ports = owner;

	if (user == ports->user)
		ports->bits[port / 8] |= (uint8_t)(1u << port % 8);
}

static bool has_port(const struct vb_user_ports *ports, uint16_t port)
{
	return ports->bits[port / 8] >> port % 8 & 1;
}

bool vb_user_ports_has(struct vb_user_ports *ports, uid_t user, uint16_t port)
{
	uint64_t begin_ns = vb_clock_now();
	uint64_t age_ns = begin_ns - ports->listed_ns;
	bool is_old = age_ns >= (has_port(ports, port) ? PORTS_LAST_NS : PORTS_APART_NS) &&
		      age_ns >= ports->listing_ns * PORTS_FACTOR;

	if (is_old || !ports->listed_ns) {
		memset(ports, 0, sizeof(*ports));
		ports->user = user;
		read_lists(note_port, ports);
		ports->listed_ns = vb_clock_now();
		ports->listing_ns = ports->listed_ns - begin_ns;
	}
	return has_port(ports, port);
}
