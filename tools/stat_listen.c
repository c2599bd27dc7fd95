/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim stat --listen`: a server for Prometheus. It answers one request after the other, and no
 * client keeps it for more than a few seconds. Any program that reaches the address may read the
 * totals.
 */
#include "stat.h"

#include "host/sys/clock.h"
#include "host/sys/text.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_MAX 4096u
#define PATIENCE_NS (3 * VB_SECOND_NS) /* for a whole request, and for its answer */

/* Waits until the socket is ready; false when the time is over. */
static bool await(int fd, short events, uint64_t end_ns)
{
	struct pollfd ready = { .fd = fd, .events = events };
	uint64_t now_ns = vb_clock_now();

	return now_ns < end_ns && poll(&ready, 1, (int)((end_ns - now_ns) / 1000000 + 1)) > 0;
}

/* Reads the head of a request; false if none comes. */
static bool read_request(int fd, char request[REQUEST_MAX])
{
	uint64_t end_ns = vb_clock_now() + PATIENCE_NS;
	size_t length = 0;

	while (length + 1 < REQUEST_MAX && await(fd, POLLIN, end_ns)) {
		ssize_t count = recv(fd, request + length, REQUEST_MAX - 1 - length, MSG_DONTWAIT);

		if (count <= 0)
			return false;
		length += (size_t)count;
		request[length] = 0;
		if (strstr(request, "\r\n\r\n"))
			return true;
	}
	return false;
}

static void write_all(int fd, const char *bytes, size_t length)
{
	uint64_t end_ns = vb_clock_now() + PATIENCE_NS;

	while (length && await(fd, POLLOUT, end_ns)) {
		ssize_t count = send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (count <= 0)
			return;
		bytes += count;
		length -= (size_t)count;
	}
}

static bool is_for(const char *request, const char *path)
{
	size_t length = strlen(path);

	return !strncmp(request, "GET ", 4) && !strncmp(request + 4, path, length) &&
	       (request[4 + length] == ' ' || request[4 + length] == '?');
}

static void answer(int fd, const char *request)
{
	const char *status = "200 OK";
	struct vb_text head = { 0 }, body = { 0 };

	if (!is_for(request, "/metrics"))
		status = "404 Not Found";
	else if (stat_add_metrics(&body))
		status = "503 Service Unavailable";
	if (*status != '2') {
		vb_text_fini(&body);
		vb_text_add(&body, "%s\n", status);
	}
	vb_text_add(&head,
		    "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4\r\n"
		    "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		    status, body.length);
	if (!head.is_incomplete && !body.is_incomplete) {
		write_all(fd, head.bytes, head.length);
		write_all(fd, body.bytes, body.length);
	}
	vb_text_fini(&head);
	vb_text_fini(&body);
}

static void serve(int listener)
{
	char request[REQUEST_MAX];
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		(void)poll(NULL, 0, 100); /* such as no descriptors: that may pass */
		return;
	}
	if (read_request(fd, request))
		answer(fd, request);
	close(fd);
}

static int bind_to(const struct addrinfo *address)
{
	int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(fd, address->ai_addr, address->ai_addrlen) || listen(fd, 16)) {
		int error = errno;

		close(fd);
		return -error;
	}
	return fd;
}

/* getaddrinfo() takes larger numbers, and uses their low bits. */
static bool is_port(const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && number && number <= UINT16_MAX;
}

/* "127.0.0.1:9100" or "[::1]:9100". Returns the listener, or a negative errno. */
static int open_listener(const char *text)
{
	struct addrinfo wish = { .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE };
	const char *colon = strrchr(text, ':');
	struct addrinfo *address;
	char host[64];
	int fd;

	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(host) ||
	    !is_port(colon + 1))
		return -EINVAL;
	snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	if (host[0] == '[' && colon[-1] == ']') {
		memmove(host, host + 1, strlen(host));
		host[strlen(host) - 1] = 0;
	} else if (strchr(host, ':')) {
		return -EINVAL;
	}
	if (getaddrinfo(host, colon + 1, &wish, &address))
		return -EINVAL;
	fd = bind_to(address);
	freeaddrinfo(address);
	return fd;
}

int stat_listen(const char *address)
{
	int listener = open_listener(address);

	if (listener == -EINVAL) {
		fprintf(stderr,
			"verbatim stat: '%s' is no address and port, such as 127.0.0.1:9477 or [::1]:9477\n",
			address);
		return 2;
	}
	if (listener < 0) {
		fprintf(stderr, "verbatim stat: cannot listen on %s: %s\n", address,
			strerror(-listener));
		return 3;
	}
	for (;;)
		serve(listener);
}
