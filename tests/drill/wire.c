/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process with verbs as the peer, which runs dummy.c on another host (or in another network).
 * Orders go to it over TCP, one connection per script; packets go over a UDP socket, as they do in
 * our own adapter. tests/drill/run makes the network, starts the other end, and puts its address
 * into the environment.
 *
 * IPv4 addresses are written as IPv6 ones everywhere, as in GIDs. The IPv4 ID of what is sent is 0,
 * because the socket is not connected and does not fragment; that of what is received is not
 * visible.
 */
#include "drill/peer.h"
#include "drill/support_order.h"
#include "drill/support_player.h"

#include "harness.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { FILLERS = 8 };

static struct vb_gid peer_address;
static int packets; /* the UDP socket */
static int orders; /* the TCP connection */
static char answer[ORDER_MAX];

/* Set by the runner. */
static const char *setting(const char *name)
{
	const char *value = getenv(name);

	if (!value)
		SKIP("%s is not set; tests/drill/run starts this program", name);
	return value;
}

const char *peer_kind(void)
{
	return setting("DRILL_KIND");
}

bool peer_time_is_ours(void)
{
	return false;
}

uint64_t peer_silence_ns(void)
{
	return strtoull(setting("DRILL_SILENCE_MS"), NULL, 10) * 1000000;
}

uint64_t peer_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void peer_wait(uint64_t ns)
{
	struct timespec time = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&time, NULL);
}

/* --- packets ---------------------------------------------------------------------------------- */

union control {
	struct cmsghdr header;
	uint8_t bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static struct sockaddr_in6 address_of(const struct vb_gid *gid, uint16_t port)
{
	struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	memcpy(&address.sin6_addr, gid, sizeof(*gid));
	return address;
}

static void open_packets(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(VB_ROCE_PORT) };
	int probe = IP_PMTUDISC_PROBE, probe6 = IPV6_PMTUDISC_PROBE, on = 1;

	packets = socket(AF_INET6, SOCK_DGRAM, 0);
	EXPECT(packets >= 0);
	setsockopt(packets, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe));
	setsockopt(packets, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe6, sizeof(probe6));
	setsockopt(packets, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	/* The kernel's Soft-RoCE sends no UDP checksum over IPv6. */
	setsockopt(packets, IPPROTO_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on));
	if (bind(packets, (struct sockaddr *)&any, sizeof(any)))
		FAIL("cannot have UDP port %d: %m", VB_ROCE_PORT);
}

void peer_send(const struct made_packet *packet)
{
	struct sockaddr_in6 to = address_of(&packet->flow.destination, VB_ROCE_PORT);
	struct iovec bytes = { (void *)(uintptr_t)packet->bytes, packet->length };
	struct in6_pktinfo from = { 0 };
	union control control = { .header = { .cmsg_len = CMSG_LEN(sizeof(from)),
					      .cmsg_level = IPPROTO_IPV6,
					      .cmsg_type = IPV6_PKTINFO } };
	struct msghdr message = {
		.msg_name = &to,
		.msg_namelen = sizeof(to),
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	memcpy(&from.ipi6_addr, &packet->flow.source, sizeof(from.ipi6_addr));
	memcpy(CMSG_DATA(&control.header), &from, sizeof(from));
	if (sendmsg(packets, &message, 0) != (ssize_t)packet->length)
		FAIL("a packet could not be sent: %m");
}

static bool is_stopped(const char *process, const char *thread)
{
	char path[64], line[256] = "", state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.10s/task/%.10s/stat", process, thread);
	file = fopen(path, "r");
	EXPECT(file && fgets(line, sizeof(line), file));
	fclose(file);
	return sscanf(strrchr(line, ')'), ") %c", &state) == 1 && state == 'T';
}

/* Threads stop one by one. */
static bool have_all_stopped(const char *process)
{
	char path[64];
	struct dirent *entry;
	bool all = true;
	DIR *threads;

	snprintf(path, sizeof(path), "/proc/%.10s/task", process);
	threads = opendir(path);
	EXPECT(threads);
	while (all && (entry = readdir(threads)))
		all = entry->d_name[0] == '.' || is_stopped(process, entry->d_name);
	closedir(threads);
	return all;
}

/* Set by the runner if the dummy is a process of this machine, whose adapter stops with it. */
static const char *dummy_process(void)
{
	return getenv("DRILL_PROCESS");
}

/*
 * The more packets our adapter finds, the more it takes in one batch. So fillers that are too short
 * to be packets go before those of the script; each is longer than the one before, or the kernel
 * might merge them into one.
 */
static void send_fillers(void)
{
	struct sockaddr_in6 to = address_of(&peer_address, VB_ROCE_PORT);
	const uint8_t bytes[FILLERS] = { 0 };

	for (size_t length = 1; length <= FILLERS; length++)
		EXPECT_EQ(sendto(packets, bytes, length, 0, (struct sockaddr *)&to, sizeof(to)),
			  length);
}

void peer_hold(void)
{
	if (!dummy_process())
		return;
	EXPECT_EQ(kill(atoi(dummy_process()), SIGSTOP), 0);
	while (!have_all_stopped(dummy_process()))
		peer_wait(1000000);
	send_fillers();
}

void peer_release(void)
{
	if (dummy_process())
		kill(atoi(dummy_process()), SIGCONT);
}

bool peer_receive(struct made_packet *made, bool *is_id_known, uint64_t ns)
{
	struct pollfd waiting = { .fd = packets, .events = POLLIN };
	struct sockaddr_in6 from;
	struct iovec bytes = { made->bytes, sizeof(made->bytes) };
	union control control;
	struct in6_pktinfo to;
	struct msghdr message = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &bytes,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t length;

	if (poll(&waiting, 1, (int)(ns / 1000000)) <= 0)
		return false;
	length = recvmsg(packets, &message, 0);
	EXPECT(length > 0 && message.msg_controllen);
	memcpy(&to, CMSG_DATA(&control.header), sizeof(to));
	made->flow = (struct vb_flow){ .source_port = ntohs(from.sin6_port) };
	memcpy(&made->flow.source, &from.sin6_addr, sizeof(made->flow.source));
	memcpy(&made->flow.destination, &to.ipi6_addr, sizeof(made->flow.destination));
	made->ip_id = 0;
	made->length = (uint32_t)length;
	*is_id_known = false;
	return true;
}

/* --- orders ----------------------------------------------------------------------------------- */

static void open_orders(const struct vb_gid *peer)
{
	uint16_t port = (uint16_t)strtoul(setting("DRILL_PORT"), NULL, 10);
	struct sockaddr_in6 to = address_of(peer, port);
	int on = 1;

	orders = socket(AF_INET6, SOCK_STREAM, 0);
	EXPECT(orders >= 0);
	setsockopt(orders, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(orders, (struct sockaddr *)&to, sizeof(to)))
		FAIL("the dummy does not answer: %m");
}

const char *peer_order(const char *order)
{
	size_t length = 0;

	if (dprintf(orders, "%s\n", order) < 0)
		FAIL("the dummy is gone: %m");
	do {
		ssize_t got = read(orders, answer + length, sizeof(answer) - length);

		if (got <= 0)
			FAIL("the dummy ended at \"%s\"", order);
		length += (size_t)got;
	} while (answer[length - 1] != '\n');
	answer[length - 1] = '\0';
	return answer;
}

static struct vb_gid gid_of(const char *text)
{
	char mapped[64];
	struct vb_gid gid;

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	EXPECT_EQ(inet_pton(AF_INET6, mapped, &gid), 1);
	return gid;
}

void peer_open(struct vb_gid *drill, struct vb_gid *peer)
{
	*drill = gid_of(setting("DRILL_OWN"));
	*peer = peer_address = gid_of(setting("DRILL_PEER"));
	atexit(peer_release); /* also if the script fails */
	open_packets();
	open_orders(peer);
}

__attribute__((constructor)) static void register_scripts(void)
{
	player_register_scripts();
}
