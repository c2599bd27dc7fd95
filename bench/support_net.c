/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets for programs that measure. Any refusal ends the program. */
#include "support_net.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEET_TRIES 200
#define MEET_PAUSE_US 10000

void net_fail(const char *what)
{
	perror(what);
	exit(1);
}

struct sockaddr_in net_address(const char *text, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (text && inet_pton(AF_INET, text, &address.sin_addr) != 1) {
		fprintf(stderr, "'%s' is no IPv4 address\n", text);
		exit(2);
	}
	return address;
}

void net_set(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		net_fail("setsockopt");
}

int net_open_udp(uint16_t port)
{
	struct sockaddr_in own = net_address(NULL, port);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&own, sizeof(own)))
		net_fail("UDP socket");
	return fd;
}

static int meet_client(uint16_t port)
{
	struct sockaddr_in own = net_address(NULL, port);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	int fd;

	net_set(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(listener, (const struct sockaddr *)&own, sizeof(own)) || listen(listener, 1))
		net_fail("TCP socket");
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		net_fail("accept");
	close(listener);
	return fd;
}

/* The server may have been started a moment ago. */
static int meet_server(const char *server, uint16_t port)
{
	struct sockaddr_in address = net_address(server, port);

	for (int i = 0; i < MEET_TRIES; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (!connect(fd, (const struct sockaddr *)&address, sizeof(address)))
			return fd;
		close(fd);
		usleep(MEET_PAUSE_US);
	}
	net_fail(server);
}

int net_meet(const char *server, uint16_t port)
{
	return server ? meet_server(server, port) : meet_client(port);
}

void net_swap(int fd, const void *own, void *other, uint32_t length)
{
	if (send(fd, own, length, MSG_NOSIGNAL) != (ssize_t)length ||
	    recv(fd, other, length, MSG_WAITALL) != (ssize_t)length)
		net_fail("the other end");
}
