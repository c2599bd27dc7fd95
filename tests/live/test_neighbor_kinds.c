/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of QP takes the line to a peer on this host. The witness is the kernel: no UDP datagram leaves this network while
 * they talk.
 */
#include "support_ends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 20, MESSAGE = 3000, SOURCE = 32768, DATAGRAM = 1000, GRH = 40, QKEY = 7 };

static const unsigned all_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

/* That programs of this network have sent since it was made. */
static unsigned long datagrams_sent(void)
{
	FILE *file = fopen("/proc/self/net/snmp", "r");
	unsigned long in, no_ports, errors, out = 0;
	char line[512];

	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Udp: %lu %lu %lu %lu", &in, &no_ports, &errors, &out) == 4)
			break;
	fclose(file);
	return out;
}

static unsigned long datagrams6_sent(void)
{
	FILE *file = fopen("/proc/self/net/snmp6", "r");
	unsigned long out = 0;
	char line[512];

	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Udp6OutDatagrams %lu", &out) == 1)
			break;
	fclose(file);
	return out;
}

static unsigned long all_sent(void)
{
	return datagrams_sent() + datagrams6_sent();
}

/* --- connected --- */

static void to_state(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	EXPECT_EQ(ibv_modify_qp(qp, attr, IBV_QP_STATE | mask), 0);
}

static void connect_qp(struct end *end, struct ibv_qp *qp, enum ibv_qp_type type, uint32_t to)
{
	bool answers = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = all_rights,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = to,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	EXPECT_EQ(ibv_query_gid(end->context, 1, 1, &attr.ah_attr.grh.dgid), 0);
	to_state(qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to_state(qp, &attr, IBV_QPS_RTR,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	to_state(qp, &attr, IBV_QPS_RTS,
		 IBV_QP_SQ_PSN |
			 (asks ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
			       : 0) |
			 (asks || answers ? IBV_QP_TIMEOUT : 0));
}

/* Of the next message; those of requests are passed over. */
static void expect_receipt(struct end *end, uint32_t length)
{
	struct ibv_wc completion;

	do {
		while (ibv_poll_cq(end->cq, 1, &completion) == 0)
			;
		EXPECT_STR(ibv_wc_status_str(completion.status), "success");
	} while (completion.opcode != IBV_WC_RECV);
	EXPECT_EQ(completion.byte_len, length);
}

static void post_receive(struct end *end, struct ibv_srq *srq)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, SOURCE, end->mr->lkey };
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (srq)
		EXPECT_EQ(ibv_post_srq_recv(srq, &request, &bad), 0);
	else
		EXPECT_EQ(ibv_post_recv(end->qp, &request, &bad), 0);
}

static void use_type(struct end *end, enum ibv_qp_type type, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.srq = srq,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = type,
		.sq_sig_all = 1,
	};

	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	end->qp = ibv_create_qp(end->pd, &init);
	EXPECT(end->qp);
}

static struct ibv_srq *make_srq(struct end *end)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(end->pd, &init);

	EXPECT(srq);
	return srq;
}

/* Whoever answers, which is end 1, has a receive when the other begins. */
static void meet(struct end *end, enum ibv_qp_type type, struct board *board, uint32_t self,
		 struct ibv_srq *srq)
{
	board->places[self] = place_of(end);
	atomic_fetch_add(&board->ready_count, 1);
	while (atomic_load(&board->ready_count) < 2)
		usleep(200);
	end->peer = board->places[1 - self];
	connect_qp(end, end->qp, type, end->peer.qpn);
	if (self)
		post_receive(end, srq);
	atomic_fetch_add(&board->ready_count, 1);
	while (atomic_load(&board->ready_count) < 4)
		usleep(200);
}

static void echo(struct board *board, enum ibv_qp_type type, bool has_srq)
{
	struct end end = { 0 };
	struct ibv_srq *srq;

	open_end(&end, private_memory());
	srq = has_srq ? make_srq(&end) : NULL;
	use_type(&end, type, srq);
	meet(&end, type, board, 1, srq);
	for (;;) {
		expect_receipt(&end, MESSAGE);
		memcpy(end.memory + SOURCE, end.memory, MESSAGE);
		post_receive(&end, srq);
		post_at(&end, IBV_WR_SEND, SOURCE, MESSAGE);
	}
}

static void expect_line(enum ibv_qp_type type, bool has_srq)
{
	struct board *board = make_board();
	struct end end = { 0 };
	unsigned long before;
	pid_t child;

	begin();
	child = fork_end();
	if (!child)
		echo(board, type, has_srq);
	open_end(&end, private_memory());
	use_type(&end, type, NULL);
	meet(&end, type, board, 0, NULL);
	program_expect_in_log("takes the line");
	before = all_sent();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		post_receive(&end, NULL);
		memset(end.memory + SOURCE, (int)i + 1, MESSAGE);
		post_at(&end, IBV_WR_SEND, SOURCE, MESSAGE);
		expect_receipt(&end, MESSAGE);
		EXPECT_EQ(end.memory[0], i + 1);
		EXPECT_EQ(end.memory[MESSAGE - 1], i + 1);
	}
	EXPECT_EQ(all_sent(), before);
	end_target(child);
}

TEST(rc_takes_the_line)
{
	expect_line(IBV_QPT_RC, false);
}

TEST(uc_takes_the_line)
{
	expect_line(IBV_QPT_UC, false);
}

TEST(messages_to_a_shared_receive_queue_take_the_line)
{
	expect_line(IBV_QPT_RC, true);
}

/* --- XRC --- */

struct xrc {
	struct ibv_xrcd *domain;
	struct ibv_srq *srq;
	uint32_t srqn;
};

static void make_xrc_receiver(struct end *end, struct xrc *xrc)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex queue = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = end->pd,
		.cq = end->cq,
	};
	struct ibv_qp_init_attr_ex init = { .qp_type = IBV_QPT_XRC_RECV,
					    .comp_mask = IBV_QP_INIT_ATTR_XRCD };

	xrc->domain = ibv_open_xrcd(end->context, &domain);
	EXPECT(xrc->domain);
	queue.xrcd = init.xrcd = xrc->domain;
	xrc->srq = ibv_create_srq_ex(end->context, &queue);
	EXPECT(xrc->srq && !ibv_get_srq_num(xrc->srq, &xrc->srqn));
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	end->qp = ibv_create_qp_ex(end->context, &init);
	EXPECT(end->qp);
}

static void make_xrc_sender(struct end *end)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = end->cq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = IBV_QPT_XRC_SEND,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
	};

	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	end->qp = ibv_create_qp_ex(end->context, &init);
	EXPECT(end->qp);
}

static void send_to_srq(struct end *end, uint32_t srqn)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, MESSAGE, end->mr->lkey };
	struct ibv_send_wr request = { .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .qp_type.xrc.remote_srqn = srqn };
	struct ibv_send_wr *bad;

	EXPECT_EQ(ibv_post_send(end->qp, &request, &bad), 0);
	EXPECT_STR(poll_status(end), "success");
}

/* The number of the SRQ stands on the board in place of a key. */
TEST(xrc_takes_the_line)
{
	struct board *board = make_board();
	struct end end = { 0 };
	unsigned long before;
	pid_t child;

	begin();
	child = fork_end();
	if (!child) {
		struct xrc xrc;

		open_end(&end, private_memory());
		make_xrc_receiver(&end, &xrc);
		atomic_store(&board->step, xrc.srqn);
		meet(&end, IBV_QPT_XRC_RECV, board, 1, xrc.srq);
		for (;;) {
			expect_receipt(&end, MESSAGE);
			post_receive(&end, xrc.srq);
		}
	}
	open_end(&end, private_memory());
	make_xrc_sender(&end);
	meet(&end, IBV_QPT_XRC_SEND, board, 0, NULL);
	program_expect_in_log("takes the line");
	before = all_sent();
	for (uint32_t i = 0; i < ROUNDS; i++)
		send_to_srq(&end, atomic_load(&board->step));
	EXPECT_EQ(all_sent(), before);
	end_target(child);
}

/* --- datagrams --- */

static void make_datagram_qp(struct end *end)
{
	struct ibv_qp_attr attr = { .port_num = 1, .qkey = QKEY };

	use_type(end, IBV_QPT_UD, NULL);
	to_state(end->qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	to_state(end->qp, &attr, IBV_QPS_RTR, 0);
	to_state(end->qp, &attr, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/* Each receipt is a step. */
static void count_datagrams(struct board *board)
{
	struct end end = { 0 };

	open_end(&end, private_memory());
	make_datagram_qp(&end);
	for (uint32_t i = 0; i < 4; i++)
		post_receive(&end, NULL);
	board->places[1] = place_of(&end);
	reach_step(board, 1);
	for (uint32_t i = 2;; i++) {
		expect_receipt(&end, DATAGRAM + GRH);
		post_receive(&end, NULL);
		reach_step(board, i);
	}
}

static void send_datagram(struct end *end, struct ibv_ah *ah, uint32_t to)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, DATAGRAM, end->mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .wr.ud = { ah, to, QKEY }
	};
	struct ibv_send_wr *bad;

	EXPECT_EQ(ibv_post_send(end->qp, &request, &bad), 0);
	EXPECT_STR(poll_status(end), "success");
}

static struct ibv_ah *make_handle(struct end *end)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 };
	struct ibv_ah *ah;

	EXPECT_EQ(ibv_query_gid(end->context, 1, 1, &attr.grh.dgid), 0);
	ah = ibv_create_ah(end->pd, &attr);
	EXPECT(ah);
	return ah;
}

/* The first go by the wire, while the two meet. */
TEST(datagrams_take_the_line_once_both_have_met)
{
	struct board *board = make_board();
	struct end end = { 0 };
	uint32_t step = 1, by_line = 0;
	struct ibv_ah *ah;
	pid_t child;

	begin();
	child = fork_end();
	if (!child)
		count_datagrams(board);
	open_end(&end, private_memory());
	make_datagram_qp(&end);
	ah = make_handle(&end);
	await_step(board, 1);
	while (by_line < ROUNDS) {
		unsigned long before = all_sent();

		send_datagram(&end, ah, board->places[1].qpn);
		await_step(board, ++step);
		EXPECT(!by_line || all_sent() == before);
		by_line += all_sent() == before;
		usleep(1000);
	}
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_target(child);
}
