/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor of latency: 8 bytes go back and forth in UDP datagrams, and both ends ask the kernel
 * without pause. Prints the median of half a round trip, in microseconds.
 *
 *	pingpong                as the server
 *	pingpong <address>      as the client
 */
#include "support_net.h"
#include "support_report.h"

#include <sys/socket.h>

#define PORT 4791
#define WARMUP 1000u
#define ROUNDS 20000u
#define LENGTH 8
#define SILENCE_NS 2000000000ull

static void await(int fd, struct sockaddr_in *from)
{
	uint8_t bytes[LENGTH];
	uint64_t begin_ns = 0;

	for (uint32_t i = 1;; i++) {
		socklen_t length = sizeof(*from);

		if (recvfrom(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)from,
			     &length) == LENGTH)
			return;
		if (i % 65536)
			continue;
		if (!begin_ns)
			begin_ns = clock_now_ns();
		else if (clock_now_ns() - begin_ns > SILENCE_NS)
			exit(0); /* the other end is done, or never existed */
	}
}

static void answer(int fd, const struct sockaddr_in *to)
{
	static const uint8_t bytes[LENGTH];

	if (sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)to, sizeof(*to)) != LENGTH)
		net_fail("sendto");
}

static void serve(int fd)
{
	for (;;) {
		struct sockaddr_in client;

		await(fd, &client);
		answer(fd, &client);
	}
}

static void ask(int fd, const char *server)
{
	static double half_us[ROUNDS];
	struct sockaddr_in address = net_address(server, PORT);

	for (uint32_t i = 0; i < WARMUP + ROUNDS; i++) {
		uint64_t begin_ns = clock_now_ns();
		struct sockaddr_in from;

		answer(fd, &address);
		await(fd, &from);
		if (i >= WARMUP)
			half_us[i - WARMUP] = (double)(clock_now_ns() - begin_ns) / 2e3;
	}
	printf("%.3f\n", median(half_us, ROUNDS));
}

int main(int argc, char **argv)
{
	if (argc > 1)
		ask(net_open_udp(0), argv[1]);
	else
		serve(net_open_udp(PORT));
	return 0;
}
