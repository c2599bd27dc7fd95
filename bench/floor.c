/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor of bandwidth: what our framing costs on this machine without an adapter. Packets of a
 * BTH, a payload and a right ICRC go out in segmented sends. The other end takes them coalesced,
 * checks each ICRC and copies each payload to its place. The message is 1 MB, the same again and
 * again, as in ib_write_bw. Instead of a transport there is a count of received bytes, sent back
 * for each receive; a loss ends the run. Prints Gb/s.
 *
 *	floor <payload>                       as the server
 *	floor <payload> <own> <address>       as the client, from its own address
 */
#include "support_net.h"
#include "support_report.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/icrc.h"
#include "wire/packet.h"

#include <arpa/inet.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdalign.h>
#include <string.h>
#include <sys/socket.h>

#define MESSAGE (1u << 20)
#define BATCH_LENGTH_MAX 65000u
#define SEGMENTS_MAX 64u
#define RECEIVES 8u
#define RECEIVE_LENGTH 65536u
/* Bytes on their way: the kernel counts about as much again for its buffers. */
#define WINDOW (512u << 10)
#define RECEIVE_BUFFER (4 << 20)
#define RUN_NS 1500000000ull
#define SILENCE_NS 3000000000ull
#define IDLE_MAX 64u
#define OVERHEAD (VB_BTH_SIZE + 4u)

static uint8_t message[MESSAGE];
static uint32_t payload;
static uint32_t segment_length;

/* The sender may be waiting for this CPU. */
static void idle(uint32_t times)
{
	if (times > IDLE_MAX)
		sched_yield();
}

/* --- the client --- */

struct batch {
	struct iovec parts[3 * SEGMENTS_MAX];
	uint8_t bth[SEGMENTS_MAX][VB_BTH_SIZE];
	uint8_t icrc[SEGMENTS_MAX][4];
	alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(uint16_t))];
	uint32_t segments;
};

static void fill_batch(struct batch *batch, const struct vb_flow *flow, uint64_t offset)
{
	for (uint32_t i = 0; i < batch->segments; i++) {
		uint8_t *bytes = message + (offset + (uint64_t)i * payload) % MESSAGE;
		struct iovec *parts = &batch->parts[3 * i];
		uint32_t crc;

		memcpy(batch->bth[i] + 8, &(uint32_t){ (uint32_t)(offset / payload) + i }, 4);
		crc = vb_icrc_begin(flow, segment_length, (uint16_t)i, batch->bth[i]);
		vb_icrc_store(batch->icrc[i], vb_crc32(crc, bytes, payload));
		parts[0] = (struct iovec){ batch->bth[i], VB_BTH_SIZE };
		parts[1] = (struct iovec){ bytes, payload };
		parts[2] = (struct iovec){ batch->icrc[i], 4 };
	}
}

static void send_batch(int fd, struct sockaddr_in *to, struct batch *batch)
{
	struct msghdr header = {
		.msg_name = to,
		.msg_namelen = sizeof(*to),
		.msg_iov = batch->parts,
		.msg_iovlen = 3u * batch->segments,
		.msg_control = batch->control,
		.msg_controllen = sizeof(batch->control),
	};
	struct cmsghdr *control = CMSG_FIRSTHDR(&header);

	*control = (struct cmsghdr){ .cmsg_level = SOL_UDP,
				     .cmsg_type = UDP_SEGMENT,
				     .cmsg_len = CMSG_LEN(sizeof(uint16_t)) };
	memcpy(CMSG_DATA(control), &(uint16_t){ (uint16_t)segment_length }, sizeof(uint16_t));
	if (sendmsg(fd, &header, 0) < 0)
		net_fail("sendmsg");
}

/* Takes the counts that came back, until this many bytes may be on their way. */
static uint64_t await_room(int fd, uint64_t sent, uint64_t came, uint64_t window)
{
	uint64_t begin_ns = clock_now_ns();

	for (uint32_t i = 0;; i++) {
		uint64_t count;

		idle(i);
		while (recv(fd, &count, sizeof(count), MSG_DONTWAIT) == sizeof(count))
			came = count;
		if (sent - came <= window)
			return came;
		if (clock_now_ns() - begin_ns > SILENCE_NS) {
			fprintf(stderr, "floor: packets were lost: %llu of %llu bytes came\n",
				(unsigned long long)came, (unsigned long long)sent);
			exit(1);
		}
	}
}

static void run_client(const char *own, const char *server)
{
	struct sockaddr_in from = net_address(own, 0);
	struct sockaddr_in to = net_address(server, VB_ROCE_PORT);
	struct vb_flow flow = {
		.source = vb_gid_from_ipv4(ntohl(from.sin_addr.s_addr)),
		.destination = vb_gid_from_ipv4(ntohl(to.sin_addr.s_addr)),
	};
	static struct batch batch;
	int fd = net_open_udp(0);
	socklen_t length = sizeof(from);
	uint64_t sent = 0;
	uint64_t came = 0;
	uint64_t begin_ns;
	uint64_t end_ns;

	net_set(fd, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);
	getsockname(fd, (struct sockaddr *)&from, &length);
	flow.source_port = ntohs(from.sin_port);
	batch.segments = min32(BATCH_LENGTH_MAX / segment_length, SEGMENTS_MAX);
	begin_ns = clock_now_ns();
	do {
		fill_batch(&batch, &flow, sent);
		send_batch(fd, &to, &batch);
		sent += (uint64_t)batch.segments * payload;
		came = await_room(fd, sent, came, WINDOW);
		end_ns = clock_now_ns();
	} while (end_ns - begin_ns < RUN_NS);
	await_room(fd, sent, came, 0);
	printf("%.3f\n", (double)sent * 8 / (double)(clock_now_ns() - begin_ns));
}

/* --- the server --- */

struct inbox {
	struct mmsghdr headers[RECEIVES];
	struct iovec parts[RECEIVES];
	struct sockaddr_in names[RECEIVES];
	alignas(struct cmsghdr) uint8_t control[RECEIVES][128];
	uint8_t bytes[RECEIVES][RECEIVE_LENGTH + 192];
};

static int receive(int fd, struct inbox *box)
{
	for (uint32_t i = 0; i < RECEIVES; i++) {
		box->parts[i] = (struct iovec){ box->bytes[i], RECEIVE_LENGTH };
		box->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &box->names[i],
			.msg_namelen = sizeof(box->names[i]),
			.msg_iov = &box->parts[i],
			.msg_iovlen = 1,
			.msg_control = box->control[i],
			.msg_controllen = sizeof(box->control[i]),
		};
	}
	return recvmmsg(fd, box->headers, RECEIVES, MSG_DONTWAIT, NULL);
}

/* Checks and places all packets of one coalesced receive. Returns the bytes of payload. */
static uint64_t place(const struct vb_flow *flow, const uint8_t *bytes, uint32_t length)
{
	uint64_t placed = 0;

	for (uint16_t i = 0; length; i++) {
		uint32_t crc = vb_icrc_begin(flow, segment_length, i, bytes);
		uint32_t index;

		BENCH_CHECK(length >= segment_length);
		crc = vb_crc32(crc, bytes + VB_BTH_SIZE, payload);
		BENCH_CHECK(vb_icrc_load(bytes + VB_BTH_SIZE + payload) == crc);
		memcpy(&index, bytes + 8, sizeof(index));
		memcpy(message + (uint64_t)index * payload % MESSAGE, bytes + VB_BTH_SIZE, payload);
		placed += payload;
		bytes += segment_length;
		length -= segment_length;
	}
	return placed;
}

static struct vb_flow flow_of(struct msghdr *header)
{
	const struct sockaddr_in *from = header->msg_name;
	struct vb_flow flow = {
		.source = vb_gid_from_ipv4(ntohl(from->sin_addr.s_addr)),
		.source_port = ntohs(from->sin_port),
	};
	struct in_pktinfo info;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		if (c->cmsg_level != SOL_IP || c->cmsg_type != IP_PKTINFO)
			continue;
		memcpy(&info, CMSG_DATA(c), sizeof(info));
		flow.destination = vb_gid_from_ipv4(ntohl(info.ipi_addr.s_addr));
	}
	return flow;
}

static void run_server(void)
{
	static struct inbox box;
	int fd = net_open_udp(VB_ROCE_PORT);
	uint64_t came = 0;
	uint32_t empty = 0;

	net_set(fd, SOL_UDP, UDP_GRO, 1);
	net_set(fd, SOL_IP, IP_PKTINFO, 1);
	net_set(fd, SOL_SOCKET, SO_RCVBUF, RECEIVE_BUFFER);
	for (;;) {
		int count = receive(fd, &box);

		empty = count > 0 ? 0 : empty + 1;
		idle(empty);
		for (int i = 0; i < count; i++) {
			struct vb_flow flow = flow_of(&box.headers[i].msg_hdr);

			came += place(&flow, box.bytes[i], box.headers[i].msg_len);
		}
		if (count > 0 &&
		    sendto(fd, &came, sizeof(came), 0, (const struct sockaddr *)&box.names[0],
			   sizeof(box.names[0])) < 0)
			net_fail("sendto");
	}
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: %s <payload> [<own address> <server>]\n", argv[0]);
		return 2;
	}
	payload = (uint32_t)atoi(argv[1]);
	segment_length = payload + OVERHEAD;
	BENCH_CHECK(payload && MESSAGE % payload == 0 && segment_length <= BATCH_LENGTH_MAX);
	if (argc == 4)
		run_client(argv[2], argv[3]);
	else
		run_server();
	return 0;
}
