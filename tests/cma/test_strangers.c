/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of this host sends packets and connection manager messages in the name of two
 * processes that are connected, by a shared-memory link or by the wire. The attacker has read
 * everything that the two sent when they connected: addresses, QPNs, PSNs, communication IDs,
 * GUIDs. Nothing that the attacker sends has any effect: no byte is wrong, no request fails, no end
 * is disconnected.
 */
#include "namespace.h"
#include "support_cma.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/mad.h"
#include "wire/opcode.h"
#include "wire/service.h"
#include "wire/syndrome.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	NOBODY = 65534,
	ROCE_PORT = 4791,
	ROUNDS = 200, /* before the attack, and after it */
	LENGTH = 64,
	BATCH = 64,
	FRAME = 2048,
	DETH = 8,
	PACKET_MAX = 512,
	PSNS_AHEAD = 8,
};

enum way { BY_SHM_LINK, BY_WIRE };

/* --- two programs ----------------------------------------------------------------------------- */

/* An end of the connection: one message out, one in. */
struct end {
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	uint8_t out[LENGTH];
	uint8_t in[LENGTH];
};

static void prepare(struct end *end)
{
	end->mr = rdma_reg_msgs(end->id, end, sizeof(*end));
	EXPECT(end->mr);
}

static void await_receive(struct end *end)
{
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(end->id->recv_cq, 1, &wc)))
		;
	EXPECT_EQ(count, 1);
	EXPECT_STR(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_SUCCESS));
	EXPECT_EQ(wc.byte_len, LENGTH);
}

static void await_send(struct end *end)
{
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(end->id->send_cq, 1, &wc)))
		;
	EXPECT_EQ(count, 1);
	EXPECT_STR(ibv_wc_status_str(wc.status), ibv_wc_status_str(IBV_WC_SUCCESS));
}

static void post_receive(struct end *end)
{
	EXPECT_EQ(rdma_post_recv(end->id, NULL, end->in, LENGTH, end->mr), 0);
}

static void send_out(struct end *end)
{
	EXPECT_EQ(rdma_post_send(end->id, NULL, end->out, LENGTH, end->mr, IBV_SEND_SIGNALED), 0);
	await_send(end);
}

static void expect_no_event(const struct end *end)
{
	struct pollfd fd = { .fd = end->channel->fd, .events = POLLIN };

	EXPECT_EQ(poll(&fd, 1, 0), 0);
	EXPECT_EQ(state_of(end->id), IBV_QPS_RTS);
}

/* Echoes everything that arrives, until it is killed. */
static void serve(int ready)
{
	static struct end end;
	struct rdma_cm_id *listener;

	end.channel = make_channel();
	listener = make_listener(end.channel, RDMA_PS_TCP);
	EXPECT(listener);
	EXPECT_EQ(write(ready, "", 1), 1);
	end.id = take_request(end.channel);
	make_qp(end.id);
	prepare(&end);
	post_receive(&end);
	EXPECT_EQ(rdma_accept(end.id, NULL), 0);
	EXPECT_EQ(pass_event(end.channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	for (;;) {
		await_receive(&end);
		memcpy(end.out, end.in, LENGTH);
		post_receive(&end);
		send_out(&end);
	}
}

static void ping(struct end *end, uint32_t number)
{
	for (uint32_t i = 0; i < LENGTH; i++)
		end->out[i] = (uint8_t)(number * 7 + i);
	memset(end->in, 0, LENGTH);
	post_receive(end);
	send_out(end);
	await_receive(end);
	EXPECT_MEM(end->in, end->out, LENGTH);
}

static bool has_order(int orders)
{
	struct pollfd fd = { .fd = orders, .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

static void obey(int orders)
{
	char byte;

	EXPECT_EQ(read(orders, &byte, 1), 1);
}

/*
 * Sends ROUNDS messages, pauses, sends messages without end, then sends some more. The test starts
 * each step.
 */
static void run_client(int ready, int orders)
{
	static struct end end;
	uint32_t number = 0;

	end.channel = make_channel();
	end.id = make_client(end.channel, RDMA_PS_TCP);
	prepare(&end);
	EXPECT_EQ(rdma_connect(end.id, NULL), 0);
	EXPECT_EQ(pass_event(end.channel, RDMA_CM_EVENT_ESTABLISHED), 0);
	while (number < ROUNDS)
		ping(&end, number++);
	EXPECT_EQ(write(ready, "", 1), 1);
	obey(orders);
	while (!has_order(orders))
		ping(&end, number++);
	for (uint32_t i = 0; i < ROUNDS; i++)
		ping(&end, number++);
	expect_no_event(&end);
	_exit(0);
}

/* --- what the attacker knows ------------------------------------------------------------------ */

struct knowledge {
	struct vb_gid address;
	vb_qpn qpn[2]; /* of client and server */
	uint32_t psn[2]; /* the PSN that each sends next */
	uint32_t id[2];
	uint64_t guid[2];
	uint64_t service;
};

enum { CLIENT, SERVER };

static int open_tap(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK, htons(ETH_P_IP));
	struct sockaddr_ll all = { .sll_family = AF_PACKET,
				   .sll_protocol = htons(ETH_P_IP),
				   .sll_ifindex = (int)if_nametoindex("lo") };

	EXPECT(fd >= 0);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&all, sizeof(all)), 0);
	return fd;
}

static void learn(struct knowledge *known, const struct vb_mad *mad)
{
	int side = mad->kind == VB_MAD_REQ ? CLIENT : SERVER;

	if (mad->kind != VB_MAD_REQ && mad->kind != VB_MAD_REP)
		return;
	known->id[side] = mad->local_id;
	known->qpn[side] = side == CLIENT ? mad->req.qpn : mad->rep.qpn;
	known->guid[side] = side == CLIENT ? mad->req.ca_guid : mad->rep.ca_guid;
	/* Each end announces the PSN with which the other begins. */
	known->psn[!side] = side == CLIENT ? mad->req.starting_psn.v : mad->rep.starting_psn.v;
	if (side == CLIENT)
		known->service = mad->req.service;
}

/* A message is one packet, so ROUNDS packets have gone each way. */
static struct knowledge learn_all(int tap)
{
	struct knowledge known = { .address = vb_gid_from_ipv4(INADDR_LOOPBACK) };
	uint8_t frame[FRAME];
	const uint8_t *mad_bytes = frame + VB_IPV4_SIZE + VB_UDP_SIZE + VB_BTH_SIZE + DETH;
	struct vb_mad mad;
	ssize_t length;

	while ((length = recv(tap, frame, sizeof(frame), 0)) > 0)
		if (length >= mad_bytes + VB_MAD_SIZE - frame &&
		    load16(frame + VB_IPV4_SIZE + 2) == ROCE_PORT &&
		    vb_bth_load(frame + VB_IPV4_SIZE + VB_UDP_SIZE).destination.v == 1 &&
		    vb_mad_parse(mad_bytes, VB_MAD_SIZE, &mad) == VB_MAD_PARSED)
			learn(&known, &mad);
	EXPECT(known.qpn[CLIENT].v && known.qpn[SERVER].v);
	known.psn[CLIENT] += ROUNDS;
	known.psn[SERVER] += ROUNDS;
	return known;
}

/* --- the attacker ----------------------------------------------------------------------------- */

struct attack {
	int fd;
	struct vb_flow flow;
	const struct knowledge *known;
	uint64_t dice;
	uint8_t bytes[BATCH][PACKET_MAX];
	struct iovec parts[BATCH];
	struct mmsghdr messages[BATCH];
};

static uint32_t roll(struct attack *attack, uint32_t bound)
{
	attack->dice = attack->dice * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(attack->dice >> 33) % bound;
}

static uint32_t finish(struct attack *attack, uint8_t *bytes, uint32_t length)
{
	uint32_t crc = vb_icrc_begin(&attack->flow, length + VB_ICRC_SIZE, 0, bytes);

	crc = vb_crc32(crc, bytes + VB_BTH_SIZE, length - VB_BTH_SIZE);
	vb_icrc_store(bytes + length, crc);
	return length + VB_ICRC_SIZE;
}

static void put_bth(uint8_t *bytes, uint8_t opcode, vb_qpn to, uint32_t psn)
{
	struct vb_bth bth = { .opcode = opcode,
			      .migrated = true,
			      .pkey = 0xffff,
			      .destination = to,
			      .ack_request = true,
			      .psn = { psn & VB_PSN_MASK } };

	vb_bth_store(bytes, &bth);
}

/* Returns the PSN that is due, or a slightly later one, or any. */
static uint32_t draw_psn(struct attack *attack, uint32_t due)
{
	return roll(attack, 2) ? due + roll(attack, PSNS_AHEAD) : roll(attack, 1u << 24);
}

static uint32_t make_packet(struct attack *attack, uint8_t *bytes)
{
	static const uint8_t ops[] = { VB_OP_SEND_ONLY, VB_OP_WRITE_ONLY, VB_OP_READ_REQUEST,
				       VB_OP_ACKNOWLEDGE };
	static const uint8_t syndromes[] = { VB_SYNDROME_ACK | 31, VB_SYNDROME_NAK,
					     VB_SYNDROME_NAK | VB_NAK_REMOTE_ACCESS };
	uint8_t op = ops[roll(attack, sizeof(ops))];
	int to = (int)roll(attack, 2);
	bool is_ack = op == VB_OP_ACKNOWLEDGE;
	/* An ACK has a PSN of its receiver's requests. */
	uint32_t psn = draw_psn(attack, attack->known->psn[is_ack ? to : !to] - is_ack);
	uint32_t length = VB_BTH_SIZE;

	put_bth(bytes, VB_OPCODE(VB_SERVICE_RC, op), attack->known->qpn[to], psn);
	if (is_ack) {
		store32(bytes + length, (uint32_t)syndromes[roll(attack, 3)] << 24);
		return finish(attack, bytes, length + 4);
	}
	if (op != VB_OP_SEND_ONLY) {
		for (uint32_t i = 0; i < 16; i += 4) /* address, rkey, length */
			store32(bytes + length + i, i < 12 ? roll(attack, UINT32_MAX) : LENGTH);
		length += 16;
	}
	if (op != VB_OP_READ_REQUEST) {
		memset(bytes + length, 0xee, LENGTH);
		length += LENGTH;
	}
	return finish(attack, bytes, length);
}

static void make_request(const struct attack *attack, struct vb_mad *mad, int from, uint32_t id)
{
	struct vb_service_ip ip = { .source_port = 4444,
				    .source = attack->known->address,
				    .destination = attack->known->address };

	*mad = (struct vb_mad){ .kind = VB_MAD_REQ, .local_id = id };
	mad->req = (struct vb_mad_req){
		.service = attack->known->service,
		.ca_guid = attack->known->guid[from],
		.qpn = attack->known->qpn[from],
		.transport = VB_MAD_TRANSPORT_RC,
		.pkey = 0xffff,
		.mtu = 3,
		.primary = { .local_gid = attack->known->address,
			     .remote_gid = attack->known->address },
	};
	vb_service_ip_store(mad->private_data, &ip);
}

/* Uses the IDs of the two ends, or others. */
static uint32_t make_message(struct attack *attack, uint8_t *bytes)
{
	int from = (int)roll(attack, 2);
	bool is_guess = roll(attack, 2);
	struct vb_mad mad = {
		.local_id = is_guess ? roll(attack, UINT32_MAX) : attack->known->id[from],
		.remote_id = is_guess ? roll(attack, UINT32_MAX) : attack->known->id[!from],
	};

	switch (roll(attack, 4)) {
	case 0:
		make_request(attack, &mad, from, roll(attack, UINT32_MAX));
		break;
	case 1:
		mad.kind = VB_MAD_DREQ;
		mad.dreq.remote_qpn = attack->known->qpn[!from];
		break;
	case 2:
		mad.kind = VB_MAD_REJ;
		mad.rej.reason = VB_MAD_NO_RESOURCES;
		break;
	case 3: /* which names only its sender */
		mad.kind = VB_MAD_REJ;
		mad.remote_id = 0;
		mad.rej.reason = VB_MAD_TIMEOUT;
		mad.rej.info_length = 8;
		store64(mad.rej.info, attack->known->guid[from]);
		break;
	}
	put_bth(bytes, VB_OPCODE(VB_SERVICE_UD, VB_OP_SEND_ONLY), VB_MAD_QPN, 1);
	store32(bytes + VB_BTH_SIZE, 0x80010000);
	store32(bytes + VB_BTH_SIZE + 4, 1);
	vb_mad_store(bytes + VB_BTH_SIZE + DETH, &mad);
	return finish(attack, bytes, VB_BTH_SIZE + DETH + VB_MAD_SIZE);
}

static void open_socket(struct attack *attack)
{
	union address from = address_of("127.0.0.1", 0), to = address_of("127.0.0.1", ROCE_PORT);
	socklen_t length = sizeof(from.ipv4);
	int probe = IP_PMTUDISC_PROBE; /* the IPv4 ID is 0 */

	attack->fd = socket(AF_INET, SOCK_DGRAM, 0);
	EXPECT(attack->fd >= 0);
	EXPECT_EQ(bind(attack->fd, &from.any, length), 0);
	EXPECT_EQ(getsockname(attack->fd, &from.any, &length), 0);
	EXPECT_EQ(setsockopt(attack->fd, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof(probe)), 0);
	EXPECT_EQ(connect(attack->fd, &to.any, sizeof(to.ipv4)), 0);
	attack->flow = (struct vb_flow){ .source = attack->known->address,
					 .destination = attack->known->address,
					 .source_port = ntohs(from.ipv4.sin_port) };
}

/* Pauses let the receivers read all of it. */
static void strike(struct attack *attack, uint32_t count)
{
	const struct timespec pause = { .tv_nsec = 1000 };

	for (uint32_t sent = 0; sent < count; sent += BATCH) {
		for (uint32_t i = 0; i < BATCH; i++) {
			uint8_t *bytes = attack->bytes[i];

			attack->parts[i] =
				(struct iovec){ bytes, roll(attack, 8)
							       ? make_packet(attack, bytes)
							       : make_message(attack, bytes) };
			attack->messages[i].msg_hdr =
				(struct msghdr){ .msg_iov = &attack->parts[i], .msg_iovlen = 1 };
		}
		EXPECT_EQ(sendmmsg(attack->fd, attack->messages, BATCH, 0), BATCH);
		nanosleep(&pause, NULL);
	}
}

/* Attacks as another user, in a process of its own. */
static void attack_as_nobody(const struct knowledge *known, uint32_t count, uint64_t seed)
{
	static struct attack attack;
	pid_t child = fork();
	int status;

	EXPECT(child >= 0);
	if (!child) {
		EXPECT_EQ(setgid(NOBODY), 0);
		EXPECT_EQ(setuid(NOBODY), 0);
		attack = (struct attack){ .known = known, .dice = seed };
		open_socket(&attack);
		strike(&attack, count);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
}

/* --- together --------------------------------------------------------------------------------- */

static void tell(int orders)
{
	EXPECT_EQ(write(orders, "", 1), 1);
}

static void expect_no_effect(enum way way)
{
	uint32_t count = test_is_thorough() ? 5000000 : 100000; /* at rest, and under full load */
	struct knowledge known;
	int ready[2], orders[2], status, tap;
	pid_t server, client;

	need_another_user();
	enter_network();
	setenv("VERBATIM_PATH", way == BY_WIRE ? "wire" : "auto", 1);
	EXPECT(!pipe(ready) && !pipe(orders));
	tap = open_tap();
	server = fork();
	EXPECT(server >= 0);
	if (!server)
		serve(ready[1]);
	obey(ready[0]);
	client = fork();
	EXPECT(client >= 0);
	if (!client)
		run_client(ready[1], orders[0]);
	obey(ready[0]);
	known = learn_all(tap);
	attack_as_nobody(&known, count, 1);
	tell(orders[1]);
	attack_as_nobody(&known, count, 2);
	tell(orders[1]);
	EXPECT_EQ(waitpid(client, &status, 0), client);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(waitpid(server, &status, WNOHANG),
		  0); /* the client would have ended with the first wrong message */
	kill(server, SIGKILL);
	EXPECT_EQ(waitpid(server, &status, 0), server);
}

TEST(another_user_has_no_effect_on_a_connection_by_shared_memory)
{
	expect_no_effect(BY_SHM_LINK);
}

TEST(another_user_has_no_effect_on_a_connection_by_the_wire)
{
	expect_no_effect(BY_WIRE);
}
