/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that sends mutated RoCEv2 packets. It listens to what leaves an interface, keeps the
 * latest packets, and sends mutations of them out of the same interface, among them some that are
 * nothing but noise. Many have a right ICRC, and some are true copies. Now and then the program
 * continues where the sender stopped, with requests that are right except for what they aim at.
 * Pauses let the receiver read all of it.
 *
 *     flood <interface> <count> <seed> <source address or "own">
 */
#include "base/bytes.h"
#include "base/crc.h"
#include "base/prng.h"
#include "wire/flow.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#define FRAME_MAX 2048u
#define SAMPLES 256u
#define SAMPLES_WAIT_S 60
#define BATCH 64u
#define FORGED 4u /* in a batch */
#define PAUSE_NS 1000000l
#define IP ETH_HLEN
#define UDP (IP + VB_IPV4_SIZE)
#define BTH (UDP + VB_UDP_SIZE)
#define BTH_SIZE 12u
#define ICRC_SIZE 4u
#define RETH_SIZE 16u
#define PATH_MTU 1024u
#define PAYLOAD_MAX 1472u /* of a datagram on Ethernet */

struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t length; /* of the UDP payload, which begins at BTH */
};

struct flood {
	int fd;
	struct vb_prng prng;
	bool is_own; /* the source address stays */
	uint32_t source;
	struct frame samples[SAMPLES];
	uint32_t sample_count; /* taken in all; the latest are kept */
	struct frame batch[BATCH];
};

static uint32_t below(struct flood *flood, uint32_t bound)
{
	return (uint32_t)vb_prng_below(&flood->prng, bound);
}

static _Noreturn void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* --- samples ---------------------------------------------------------------------------------- */

static int open_interface(const char *name)
{
	int fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL)), one = 1;
	struct sockaddr_ll address = { .sll_family = AF_PACKET,
				       .sll_protocol = htons(ETH_P_ALL),
				       .sll_ifindex = (int)if_nametoindex(name) };

	if (fd < 0 || !address.sll_ifindex ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)))
		give_up(name);
	/* The program must not get its own packets back as samples. */
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)))
		give_up("PACKET_QDISC_BYPASS");
	return fd;
}

static bool is_sample(const uint8_t *bytes, uint32_t length, const struct sockaddr_ll *from)
{
	return from->sll_pkttype == PACKET_OUTGOING && length >= BTH + BTH_SIZE + ICRC_SIZE &&
	       load16(bytes + 12) == ETHERTYPE_IP && bytes[IP] == 0x45 &&
	       bytes[IP + 9] == IPPROTO_UDP && load16(bytes + UDP + 2) == VB_ROCE_PORT;
}

/* Takes the samples that are there, up to a bound. */
static void take_samples(struct flood *flood)
{
	for (uint32_t i = 0; i < SAMPLES; i++) {
		struct frame *sample = &flood->samples[flood->sample_count % SAMPLES];
		struct sockaddr_ll from;
		socklen_t from_length = sizeof(from);
		ssize_t length = recvfrom(flood->fd, sample->bytes, FRAME_MAX, MSG_DONTWAIT,
					  (struct sockaddr *)&from, &from_length);

		if (length < 0)
			return;
		if (!is_sample(sample->bytes, (uint32_t)length, &from))
			continue;
		sample->length = (uint32_t)length - BTH;
		flood->sample_count++;
	}
}

/* The flood of the other end may arrive all the while: it is no sample. */
static void await_samples(struct flood *flood)
{
	struct pollfd ready = { .fd = flood->fd, .events = POLLIN };
	time_t end = time(NULL) + SAMPLES_WAIT_S;

	while (time(NULL) < end && flood->sample_count < SAMPLES) {
		poll(&ready, 1, 100);
		take_samples(flood);
	}
	if (flood->sample_count < SAMPLES) {
		fprintf(stderr, "there is no traffic to learn from\n");
		exit(1);
	}
}

/* --- mutations -------------------------------------------------------------------------------- */

static void mutate_opcode(struct flood *flood, struct frame *frame)
{
	frame->bytes[BTH] = (uint8_t)below(flood, 256);
}

/* Solicited event, migration, pad count, version. */
static void mutate_flags(struct flood *flood, struct frame *frame)
{
	frame->bytes[BTH + 1] ^= (uint8_t)(1u << below(flood, 8));
}

static void mutate_pkey(struct flood *flood, struct frame *frame)
{
	store16(frame->bytes + BTH + 2, (uint16_t)below(flood, 65536));
}

static uint32_t near_or_far(struct flood *flood, uint32_t value)
{
	switch (below(flood, 4)) {
	case 0:
		return below(flood, 1u << 24);
	case 1:
		return (value ^ 1u << below(flood, 24)) & 0xffffff;
	case 2:
		return (value + 1 + below(flood, 8)) & 0xffffff; /* about to be expected */
	default:
		return (value + below(flood, 256) - 128) & 0xffffff;
	}
}

static void mutate_qpn(struct flood *flood, struct frame *frame)
{
	store24(frame->bytes + BTH + 5, near_or_far(flood, load24(frame->bytes + BTH + 5)));
}

static void mutate_psn(struct flood *flood, struct frame *frame)
{
	store24(frame->bytes + BTH + 9, near_or_far(flood, load24(frame->bytes + BTH + 9)));
}

/* Addresses, keys, lengths, syndromes: everything behind the BTH. */
static void mutate_headers(struct flood *flood, struct frame *frame)
{
	uint32_t end = min32(frame->length, BTH_SIZE + 28);

	if (end > BTH_SIZE)
		frame->bytes[BTH + BTH_SIZE + below(flood, end - BTH_SIZE)] =
			(uint8_t)below(flood, 256);
}

static void mutate_length(struct flood *flood, struct frame *frame)
{
	uint32_t length = below(flood, 4) ? frame->length + below(flood, 17) - 8
					  : below(flood, PAYLOAD_MAX + 1);

	frame->length = min32(length, PAYLOAD_MAX);
}

static void mutate_bits(struct flood *flood, struct frame *frame)
{
	for (uint32_t i = below(flood, 8) + 1; i && frame->length; i--)
		frame->bytes[BTH + below(flood, frame->length)] ^= (uint8_t)(1u << below(flood, 8));
}

static void mutate_everything(struct flood *flood, struct frame *frame)
{
	frame->length = below(flood, 4) ? below(flood, 64) : below(flood, PAYLOAD_MAX + 1);
	for (uint32_t i = 0; i < frame->length; i++)
		frame->bytes[BTH + i] = (uint8_t)below(flood, 256);
}

static void (*const mutations[])(struct flood *, struct frame *) = {
	mutate_opcode,	mutate_flags,  mutate_pkey, mutate_qpn,	       mutate_psn,
	mutate_headers, mutate_length, mutate_bits, mutate_everything,
};

#define MUTATION_COUNT (sizeof(mutations) / sizeof(mutations[0]))

/* --- forgeries -------------------------------------------------------------------------------- */

static const struct frame *latest(const struct flood *flood, uint32_t age)
{
	return &flood->samples[(flood->sample_count - 1 - age) % SAMPLES];
}

static uint32_t traits_of(const struct frame *frame)
{
	return vb_opcode_traits(frame->bytes[BTH]);
}

/* Returns the latest request, if it ended a message: a new request may follow it. */
static const struct frame *find_last_request(const struct flood *flood)
{
	for (uint32_t age = 0; age < SAMPLES; age++)
		if (!(traits_of(latest(flood, age)) & VB_IS_RESPONSE))
			return traits_of(latest(flood, age)) & VB_IS_LAST ? latest(flood, age)
									  : NULL;
	return NULL;
}

/*
 * Returns a request that names memory, READs included: memory that a READ names may be read and not
 * written.
 */
static const struct frame *find_target(struct flood *flood)
{
	uint32_t first = below(flood, SAMPLES);

	for (uint32_t i = 0; i < SAMPLES; i++)
		if (traits_of(latest(flood, (first + i) % SAMPLES)) & VB_HAS_RETH)
			return latest(flood, (first + i) % SAMPLES);
	return NULL;
}

static uint32_t psn_behind(const struct frame *request)
{
	uint32_t length = load32(request->bytes + BTH + BTH_SIZE + 12);
	uint32_t responses = (length + PATH_MTU - 1) / PATH_MTU;

	return load24(request->bytes + BTH + 9) +
	       (traits_of(request) & VB_IS_READ ? max32(responses, 1) : 1);
}

/* Makes a WRITE to what a request named, or to an address near it. */
static void forge_write(struct flood *flood, struct frame *frame, const struct frame *target,
			uint32_t psn)
{
	uint32_t length = 4 * below(flood, PATH_MTU / 4 + 1);
	uint8_t *bth = frame->bytes + BTH, *reth = bth + BTH_SIZE;

	bth[0] = VB_OPCODE(VB_SERVICE_RC, VB_OP_WRITE_ONLY);
	bth[1] &= 0xcf; /* no pad */
	bth[8] |= 0x80; /* asks for an ACK */
	store24(bth + 9, psn & 0xffffff);
	memcpy(reth, target->bytes + BTH + BTH_SIZE, RETH_SIZE);
	if (below(flood, 2))
		store64(reth, load64(reth) + below(flood, 1u << 20) - (1u << 19));
	store32(reth + 12, length);
	memset(reth + RETH_SIZE, (int)below(flood, 256), length);
	frame->length = BTH_SIZE + RETH_SIZE + length + ICRC_SIZE;
}

/* --- sending ---------------------------------------------------------------------------------- */

static struct vb_flow flow_of(const struct frame *frame)
{
	return (struct vb_flow){
		.source = vb_gid_from_ipv4(load32(frame->bytes + IP + 12)),
		.destination = vb_gid_from_ipv4(load32(frame->bytes + IP + 16)),
		.source_port = load16(frame->bytes + UDP),
		.hop_limit = 64,
	};
}

/*
 * The lower headers are right, whatever is above: the kernel would drop all else before any process
 * sees it.
 */
static void finish(struct flood *flood, struct frame *frame, bool is_icrc_right)
{
	uint16_t ip_id = below(flood, 2) ? 0 : (uint16_t)below(flood, 65536);
	uint32_t crc_end = frame->length - ICRC_SIZE;
	struct vb_flow flow;
	uint32_t crc;

	if (!flood->is_own)
		store32(frame->bytes + IP + 12, flood->source);
	flow = flow_of(frame);
	vb_flow_store_ip_udp(frame->bytes + IP, &flow, frame->length, ip_id);
	if (!is_icrc_right || frame->length < BTH_SIZE + ICRC_SIZE)
		return;
	crc = vb_icrc_begin(&flow, frame->length, ip_id, frame->bytes + BTH);
	crc = vb_crc32(crc, frame->bytes + BTH + BTH_SIZE, crc_end - BTH_SIZE);
	vb_icrc_store(frame->bytes + BTH + crc_end, crc);
}

/* Every second mutation is of one of the latest packets: near what the receiver expects next. */
static void make_mutation(struct flood *flood, struct frame *frame)
{
	*frame = *latest(flood, below(flood, 2) ? below(flood, 8) : below(flood, SAMPLES));
	for (uint32_t i = below(flood, 4); i; i--)
		mutations[below(flood, MUTATION_COUNT)](flood, frame);
	finish(flood, frame, below(flood, 4) != 0);
}

static void make_batch(struct flood *flood, uint32_t count)
{
	const struct frame *last = find_last_request(flood), *target = find_target(flood);
	uint32_t forged = last && target && below(flood, 4) == 0 ? min32(count, FORGED) : 0;

	for (uint32_t i = 0; i < forged; i++) {
		flood->batch[i] = *last;
		forge_write(flood, &flood->batch[i], target, psn_behind(last) + i);
		finish(flood, &flood->batch[i], true);
	}
	for (uint32_t i = forged; i < count; i++)
		make_mutation(flood, &flood->batch[i]);
}

static void send_batch(struct flood *flood, uint32_t count)
{
	struct mmsghdr headers[BATCH] = { 0 };
	struct iovec iovecs[BATCH];
	int done = 0;

	make_batch(flood, count);
	for (uint32_t i = 0; i < count; i++) {
		iovecs[i] = (struct iovec){ flood->batch[i].bytes, BTH + flood->batch[i].length };
		headers[i].msg_hdr = (struct msghdr){ .msg_iov = &iovecs[i], .msg_iovlen = 1 };
	}
	while (done < (int)count) {
		int sent = sendmmsg(flood->fd, headers + done, count - (uint32_t)done, 0);

		if (sent < 0)
			give_up("sendmmsg");
		done += sent;
	}
}

int main(int argc, char **argv)
{
	static struct flood flood;
	const struct timespec pause = { 0, PAUSE_NS };
	uint32_t left;

	if (argc != 5) {
		fprintf(stderr, "usage: flood <interface> <count> <seed> <source or own>\n");
		return 2;
	}
	left = (uint32_t)atoi(argv[2]);
	vb_prng_init(&flood.prng, (uint64_t)atoll(argv[3]));
	flood.source = ntohl(inet_addr(argv[4]));
	flood.is_own = flood.source == INADDR_NONE;
	flood.fd = open_interface(argv[1]);
	await_samples(&flood);
	while (left) {
		uint32_t count = min32(left, BATCH);

		nanosleep(&pause, NULL);
		take_samples(&flood);
		send_batch(&flood, count);
		left -= count;
	}
	printf("sent %s packets on %s\n", argv[2], argv[1]);
	return 0;
}
