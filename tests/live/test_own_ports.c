/* SPDX-License-Identifier: BSD-2-Clause */
/* Which packets from this host are taken: those from ports that sockets of this user have. */
#include "harness.h"
#include "kernel_refuses.h"
#include "namespace.h"

#include "host/registry/own_ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, INTERFACE = 1 };

#define LATER_NS 10000000000u /* when no answer is remembered any more */

static uint64_t now_ns = LATER_NS;

/* Opens a socket like the link's: IPv6 that also carries IPv4. */
static int open_socket(uint16_t *port)
{
	struct sockaddr_in6 name = { .sin6_family = AF_INET6, .sin6_port = htons(*port) };
	socklen_t length = sizeof(name);
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	EXPECT(fd >= 0);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	EXPECT_EQ(getsockname(fd, (struct sockaddr *)&name, &length), 0);
	*port = ntohs(name.sin6_port);
	return fd;
}

static struct vb_own_ports *begin(void)
{
	struct vb_own_ports *ports;
	uint16_t port = 0;

	namespace_enter();
	ip("link set lo up");
	open_socket(&port);
	EXPECT_EQ(vb_own_ports_create(port, &ports), VB_OK);
	vb_own_ports_add(ports, port);
	return ports;
}

/*
 * Starts a process of another user that has a socket on the port, or on any, until *line is closed.
 */
static uint16_t let_stranger_open(uint16_t port, int *line)
{
	int ends[2], back[2];
	pid_t child;
	char byte;

	EXPECT(!pipe(ends) && !pipe(back));
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		close(ends[1]);
		EXPECT_EQ(setuid(NOBODY), 0);
		open_socket(&port);
		EXPECT_EQ(write(back[1], &port, sizeof(port)), sizeof(port));
		_exit((int)read(ends[0], &byte, 1));
	}
	close(ends[0]);
	EXPECT_EQ(read(back[0], &port, sizeof(port)), sizeof(port));
	*line = ends[1];
	return port;
}

static bool is_stranger_at(struct vb_own_ports *ports, const char *address, uint16_t port)
{
	struct vb_gid gid = { .raw = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, address, gid.raw + 12) != 1)
		EXPECT_EQ(inet_pton(AF_INET6, address, gid.raw), 1);
	return vb_own_ports_is_stranger(ports, &gid, INTERFACE, port, now_ns);
}

static bool is_stranger(struct vb_own_ports *ports, uint16_t port)
{
	return is_stranger_at(ports, "127.0.0.1", port);
}

TEST(a_port_of_this_user_is_a_fellows)
{
	struct vb_own_ports *ports = begin();
	uint16_t port = 0;

	open_socket(&port);
	EXPECT(!is_stranger(ports, port));
	EXPECT(!is_stranger_at(ports, "::1", port));
	EXPECT(vb_own_ports_has(vb_own_ports_trusted(ports), port));
	vb_own_ports_destroy(ports);
}

TEST(a_port_of_another_user_is_a_strangers)
{
	struct vb_own_ports *ports;
	uint16_t port;
	int line;

	need_another_user();
	ports = begin();
	port = let_stranger_open(0, &line);
	EXPECT(is_stranger(ports, port));
	EXPECT(is_stranger(ports, port)); /* remembered */
	EXPECT(is_stranger_at(ports, "::1", port));
	EXPECT(is_stranger_at(ports, "127.1.2.3", port));
	ip("address add 10.1.2.3/24 dev lo");
	EXPECT(is_stranger_at(ports, "10.1.2.3", port));
	vb_own_ports_destroy(ports);
}

TEST(no_sender_on_another_host_is_a_stranger)
{
	struct vb_own_ports *ports;
	uint16_t port;
	int line;

	need_another_user();
	ports = begin();
	port = let_stranger_open(0, &line);
	EXPECT(!is_stranger_at(ports, "10.1.2.3", port));
	EXPECT(!is_stranger_at(ports, "2001:db8::1", port));
	EXPECT(!vb_own_ports_has(vb_own_ports_trusted(ports), port));
	EXPECT(is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}

/* Makes the kernel behave as if it had no sock_diag. */
static void forbid_sock_diag(void)
{
	if (!kernel_refuses_value(SYS_socket, NETLINK_SOCK_DIAG, EPROTONOSUPPORT))
		SKIP("no seccomp");
}

TEST(without_sock_diag_the_list_of_ports_tells)
{
	struct vb_own_ports *ports;
	uint16_t port, own = 0;
	int line;

	need_another_user();
	forbid_sock_diag();
	ports = begin();
	port = let_stranger_open(0, &line);
	open_socket(&own);
	EXPECT(is_stranger(ports, port));
	while (is_stranger(ports, own)) /* until the list is read again */
		;
	EXPECT(is_stranger(ports, port));
	EXPECT(!is_stranger_at(ports, "10.1.2.3", port));
	vb_own_ports_destroy(ports);
}

/*
 * A sender of raw packets has no port, and a sender that closes its socket immediately wants to
 * hide.
 */
TEST(a_port_that_nobody_has_is_a_strangers)
{
	struct vb_own_ports *ports = begin();
	uint16_t port = 0;

	close(open_socket(&port));
	EXPECT(is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}

TEST(the_last_words_of_a_fellow_are_heard)
{
	struct vb_own_ports *ports = begin();
	uint16_t port = 0;
	int fd = open_socket(&port);

	EXPECT(!is_stranger(ports, port));
	close(fd);
	now_ns += LATER_NS;
	EXPECT(!is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}

TEST(a_port_that_a_stranger_has_after_a_fellow_is_a_strangers)
{
	struct vb_own_ports *ports;
	uint16_t port = 0;
	int fd, line;

	need_another_user();
	ports = begin();
	fd = open_socket(&port);
	EXPECT(!is_stranger(ports, port));
	close(fd);
	EXPECT_EQ(let_stranger_open(port, &line), port);
	now_ns += LATER_NS;
	vb_own_ports_expire(ports, now_ns);
	EXPECT(!vb_own_ports_has(vb_own_ports_trusted(ports), port));
	EXPECT(is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}

TEST(a_port_that_a_fellow_has_after_a_stranger_is_a_fellows)
{
	struct vb_own_ports *ports;
	uint16_t port;
	int line;

	need_another_user();
	ports = begin();
	port = let_stranger_open(0, &line);
	EXPECT(is_stranger(ports, port));
	close(line);
	EXPECT(wait(NULL) > 0);
	open_socket(&port);
	now_ns += LATER_NS;
	EXPECT(!is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}

TEST(an_announced_port_needs_no_query_until_it_is_removed)
{
	struct vb_own_ports *ports = begin();
	uint16_t port = 0;

	close(open_socket(&port));
	EXPECT(is_stranger(ports, port));
	vb_own_ports_add(ports, port);
	EXPECT(!is_stranger(ports, port));
	now_ns += LATER_NS;
	vb_own_ports_expire(ports, now_ns);
	EXPECT(vb_own_ports_has(vb_own_ports_trusted(ports), port));
	vb_own_ports_remove(ports, port);
	EXPECT(is_stranger(ports, port));
	vb_own_ports_destroy(ports);
}
