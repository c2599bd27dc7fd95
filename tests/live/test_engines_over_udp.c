/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines in two processes, joined by UDP links. Each sends, writes, reads and does atomics on
 * the other at the same time, and checks every byte. No packet may be refused for its ICRC.
 */
#include "support_link.h"
#include "support_engine_port.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum side { A, B };

enum {
	TABLE_ROWS = 256,
	LENGTH = 1 << 20,
	SOURCE = 0, /* own pattern, which the other side reads */
	TARGET = LENGTH, /* where the other side writes, and we read … */
	READ_TARGET = 2 * LENGTH, /* … here */
	INBOX = 3 * LENGTH,
	MESSAGE = 10001,
	WORD = INBOX + 64 * 1024, /* atomics of the other side */
	RESULT = WORD + 64, /* results of our own atomics */
	MEMORY = WORD + 4096,
	QPN_SHIFT = 23, /* the highest bit says which side owns a QPN */
	RIGHTS = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ |
		 VB_ACCESS_REMOTE_ATOMIC,
};

struct setup {
	const char *address[2];
	bool is_on_wire; /* otherwise on loopback, on one port */
	bool is_cut_on_wire;
	bool is_segmenting;
	enum vb_icrc_mode icrc_mode;
	uint32_t receive_buffer_length;
	uint32_t window_packets_max;
};

/* What the sides exchange before they talk. */
struct hello {
	uint32_t qpn;
	uint32_t rkey;
	uint64_t address;
};

struct node {
	enum side side;
	const struct setup *setup;
	int control; /* to the other side, outside the wire */
	struct vb_udp *udp;
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qp;
	struct hello peer;
	struct engine_port *port;
	uint8_t *memory;
	uint32_t receives_done;
	uint32_t sends_done;
	struct vb_key_row key_rows[TABLE_ROWS];
	struct vb_qp_row qp_rows[TABLE_ROWS];
};

static void tell(const struct node *node, const void *bytes, size_t length)
{
	EXPECT_EQ(write(node->control, bytes, length), length);
}

static void hear(const struct node *node, void *bytes, size_t length)
{
	EXPECT_EQ(read(node->control, bytes, length), length);
}

/* --- making a node ---------------------------------------------------------------------------- */

/* A opens its link first: the order decides which link a QPN leads to. */
static void open_node_link(struct node *node)
{
	const struct setup *setup = node->setup;
	struct vb_udp_config config = {
		.port = setup->is_on_wire ? VB_ROCE_PORT : 0,
		.source_count = 4,
		.receive_buffer_length = setup->receive_buffer_length,
		.is_segmenting = setup->is_segmenting,
	};
	uint16_t port;

	if (node->side == B)
		hear(node, &config.port, sizeof(config.port));
	node->udp = open_link(config);
	port = vb_udp_port(node->udp);
	tell(node, &port, sizeof(port));
	if (node->side == A) {
		hear(node, &port, sizeof(port));
		MUST(vb_udp_steer(node->udp, QPN_SHIFT, setup->is_on_wire ? 0 : 1, 0));
	}
}

static void create_engine(struct node *node)
{
	struct vb_nic_config config = {
		.key_rows = node->key_rows,
		.key_row_count = TABLE_ROWS,
		.qp_rows = node->qp_rows,
		.qp_row_count = TABLE_ROWS,
		.seed = 100 + node->side,
		.qpn_first = node->side == A ? 2 : 1u << QPN_SHIFT,
		.qpn_count = 1000,
		.source_port_count = vb_udp_source_count(node->udp),
		.framing.icrc_mode = node->setup->icrc_mode,
		.framing.batch_segments_max = vb_udp_segments_max(node->udp),
		.window_packets_max = node->setup->window_packets_max,
	};
	struct vb_udp_address address = address_of(node->setup->address[node->side]);
	struct vb_gid gid;

	for (uint32_t i = 0; i < config.source_port_count; i++)
		config.source_ports[i] = vb_udp_source_port(node->udp, i);
	memcpy(gid.raw, address.ip, sizeof(gid.raw));
	MUST(vb_nic_create(&config, &node->nic));
	MUST(vb_nic_set_gid(node->nic, 0, &gid));
}

static void create_objects(struct node *node)
{
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)node->memory,
		.length = MEMORY,
		.iova = (uintptr_t)node->memory,
		.access = RIGHTS,
	};
	struct vb_qp_init qp_init = {
		.type = VB_QP_RC,
		.send_depth = 16,
		.recv_depth = 16,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};

	MUST(vb_pd_create(node->nic, &node->pd));
	MUST(vb_cq_create(node->nic, 64, NULL, &node->cq));
	MUST(vb_mr_create(node->pd, &mr_init, &node->mr));
	qp_init.send_cq = qp_init.recv_cq = node->cq;
	MUST(vb_qp_create(node->pd, &qp_init, &node->qp));
}

static void exchange_hello(struct node *node)
{
	struct hello own = {
		.qpn = vb_qp_number(node->qp).v,
		.rkey = vb_mr_key(node->mr),
		.address = (uintptr_t)node->memory,
	};

	tell(node, &own, sizeof(own));
	hear(node, &node->peer, sizeof(node->peer));
}

static void connect_qp(struct node *node)
{
	struct vb_udp_address peer = address_of(node->setup->address[!node->side]);
	struct vb_qp_attr attr = {
		.state = VB_STATE_INIT,
		.port = 1,
		.access = RIGHTS,
		.path_mtu = 4096,
		.destination = { node->peer.qpn },
		.rq_psn = { 0xfffff0 },
		.sq_psn = { 0xfffff0 },
		.reads_in = 4,
		.reads_out = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_count = 7,
		.rnr_retry = 7,
	};

	memcpy(attr.address.destination.raw, peer.ip, sizeof(peer.ip));
	MUST(vb_qp_modify(node->qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS));
	attr.state = VB_STATE_RTR;
	MUST(vb_qp_modify(node->qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				  VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER));
	attr.state = VB_STATE_RTS;
	MUST(vb_qp_modify(node->qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				  VB_ATTR_RNR_RETRY | VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT));
}

static void post_receive(struct node *node)
{
	struct vb_sge sge = { (uintptr_t)node->memory + INBOX, MESSAGE, vb_mr_key(node->mr) };
	struct vb_recv_request request = { .sges = &sge, .sge_count = 1 };

	MUST(vb_qp_post_recv(node->qp, &request));
}

static struct node *make_node(enum side side, const struct setup *setup, int control)
{
	struct node *node = calloc(1, sizeof(*node));

	EXPECT(node);
	*node = (struct node){ .side = side, .setup = setup, .control = control };
	node->memory = aligned_alloc(4096, MEMORY);
	node->port = malloc(sizeof(*node->port));
	EXPECT(node->memory && node->port);
	memset(node->memory, 0, MEMORY);
	fill_pattern(node->memory + SOURCE, LENGTH, side);
	open_node_link(node);
	create_engine(node);
	create_objects(node);
	engine_port_init(node->port, node->nic, node->udp);
	exchange_hello(node);
	connect_qp(node);
	post_receive(node);
	post_receive(node);
	tell(node, "r", 1);
	hear(node, &(char){ 0 }, 1);
	return node;
}

static void destroy_node(struct node *node)
{
	MUST(vb_qp_destroy(node->qp));
	MUST(vb_mr_destroy(node->mr));
	MUST(vb_cq_destroy(node->cq));
	MUST(vb_pd_destroy(node->pd));
	MUST(vb_nic_destroy(node->nic));
	vb_udp_close(node->udp);
	free(node->port);
	free(node->memory);
	free(node);
}

/* --- time ------------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void drive(struct node *node)
{
	struct vb_completion done;

	if (!engine_port_turn(node->port, now_ns()))
		engine_port_wait(node->port, now_ns(), 1000000);
	while (vb_cq_poll(node->cq, &done, 1)) {
		EXPECT_STR(vb_status_describe(done.status), "SUCCESS");
		if (done.is_receive)
			node->receives_done++;
		else
			node->sends_done++;
	}
}

/* --- requests to each other ------------------------------------------------------------------- */

static void post(struct node *node, enum vb_wr_opcode opcode, uint32_t local, uint32_t length,
		 uint32_t remote)
{
	struct vb_sge sge = { (uintptr_t)node->memory + local, length, vb_mr_key(node->mr) };
	struct vb_send_request request = {
		.opcode = opcode,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = node->peer.address + remote,
		.rkey = node->peer.rkey,
		.compare_add = opcode == VB_WR_FETCH_ADD ? 5 : 1005,
		.swap = 77,
	};

	MUST(vb_qp_post_send(node->qp, &request));
	vb_qp_publish_and_ring(node->qp);
}

static void expect_peers_pattern(const struct node *node, uint32_t offset, uint32_t length)
{
	uint8_t *expected = malloc(LENGTH);

	EXPECT(expected);
	fill_pattern(expected, LENGTH, !node->side);
	EXPECT_MEM(node->memory + offset, expected, length);
	free(expected);
}

static void expect_word(const struct node *node, uint32_t offset, uint64_t value)
{
	uint64_t word;

	memcpy(&word, node->memory + offset, sizeof(word));
	EXPECT_EQ(word, value);
}

static void talk(struct node *node)
{
	uint64_t word = 1000;

	memcpy(node->memory + WORD, &word, sizeof(word));
	tell(node, "w", 1); /* the peer may begin */
	hear(node, &(char){ 0 }, 1);
	post(node, VB_WR_SEND, SOURCE, MESSAGE, 0);
	post(node, VB_WR_WRITE, SOURCE, LENGTH, TARGET);
	post(node, VB_WR_READ, READ_TARGET, LENGTH, SOURCE);
	post(node, VB_WR_FETCH_ADD, RESULT, 8, WORD);
	post(node, VB_WR_COMPARE_SWAP, RESULT + 8, 8, WORD);
	post(node, VB_WR_SEND, SOURCE, 0, 0);
	while (node->sends_done < 6 || node->receives_done < 2)
		drive(node);
	expect_peers_pattern(node, INBOX, MESSAGE);
	expect_peers_pattern(node, TARGET, LENGTH);
	expect_peers_pattern(node, READ_TARGET, LENGTH);
	expect_word(node, RESULT, 1000);
	expect_word(node, RESULT + 8, 1005);
	expect_word(node, WORD, 77);
}

/* Serves the other side until it is also done. */
static void finish(struct node *node)
{
	ssize_t length = -1;
	char byte;

	tell(node, "d", 1);
	while (length < 0) {
		drive(node);
		length = recv(node->control, &byte, 1, MSG_DONTWAIT);
	}
	EXPECT_EQ(length, 1); /* 0: the other side has failed */
}

static void expect_clean_wire(const struct node *node)
{
	const uint64_t *link = vb_udp_counters(node->udp);

	EXPECT_EQ(vb_nic_counters(node->nic)->drops[VB_DROP_ICRC], 0);
	EXPECT_EQ(vb_nic_counters(node->nic)->drops[VB_DROP_NO_QP], 0);
	EXPECT_EQ(vb_nic_counters(node->nic)->drops[VB_DROP_ADDRESS], 0);
	EXPECT_EQ(link[VB_UDP_TX_SPLIT], 0);
	EXPECT(!node->setup->is_segmenting ||
	       2 * link[VB_UDP_TX_MESSAGES] < link[VB_UDP_TX_DATAGRAMS]);
	EXPECT(node->setup->is_segmenting || link[VB_UDP_TX_MESSAGES] == link[VB_UDP_TX_DATAGRAMS]);
}

static void live(enum side side, const struct setup *setup, int control)
{
	struct node *node = make_node(side, setup, control);

	talk(node);
	finish(node);
	expect_clean_wire(node);
	destroy_node(node);
}

struct other {
	const struct setup *setup;
	int control[2];
};

static void live_as_b(void *argument)
{
	struct other *other = argument;

	close(other->control[A]); /* so that each side sees the end of the other */
	if (other->setup->is_on_wire)
		enter_end(END_B);
	if (other->setup->is_cut_on_wire)
		cut_segments_on_the_wire("vb");
	live(B, other->setup, other->control[B]);
}

static void engines_talk(struct setup setup)
{
	struct other other = { .setup = &setup };
	pid_t process;

	if (setup.is_on_wire)
		make_wire();
	if (setup.is_cut_on_wire)
		cut_segments_on_the_wire("va");
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other.control), 0);
	process = start_process(live_as_b, &other);
	close(other.control[B]);
	live(A, &setup, other.control[A]);
	join_process(process);
}

TEST(two_processes_on_one_port_talk_over_ipv4)
{
	engines_talk((struct setup){
		.address = { "127.0.0.1", "127.0.0.2" },
		.is_segmenting = true,
		.receive_buffer_length = 4 << 20,
	});
}

TEST(two_processes_on_one_port_talk_over_ipv6)
{
	engines_talk((struct setup){
		.address = { "::1", "::1" },
		.is_segmenting = true,
		.receive_buffer_length = 4 << 20,
	});
}

TEST(two_processes_talk_in_single_datagrams)
{
	engines_talk((struct setup){
		.address = { "127.0.0.1", "127.0.0.2" },
		.receive_buffer_length = 4 << 20,
	});
}

TEST(two_processes_talk_with_the_stock_receive_buffer)
{
	engines_talk((struct setup){
		.address = { "127.0.0.1", "127.0.0.2" },
		.is_segmenting = true,
		.receive_buffer_length = 212992 / 2,
		.window_packets_max = 16,
	});
}

TEST(two_networks_talk_over_ipv4)
{
	engines_talk((struct setup){
		.address = { "10.9.0.1", "10.9.0.2" },
		.is_on_wire = true,
		.is_segmenting = true,
		.receive_buffer_length = 4 << 20,
	});
}

TEST(two_networks_talk_over_ipv6)
{
	engines_talk((struct setup){
		.address = { "fd09::1", "fd09::2" },
		.is_on_wire = true,
		.is_segmenting = true,
		.receive_buffer_length = 4 << 20,
	});
}

/* The receiver does not know then which segment a packet was, so it must solve for the ID. */
TEST(two_networks_talk_when_the_wire_carries_single_packets)
{
	engines_talk((struct setup){
		.address = { "10.9.0.1", "10.9.0.2" },
		.is_on_wire = true,
		.is_cut_on_wire = true,
		.is_segmenting = true,
		.icrc_mode = VB_ICRC_SOLVED,
		.receive_buffer_length = 4 << 20,
	});
}
