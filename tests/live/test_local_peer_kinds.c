/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every kind of QP uses the shared-memory link to a local peer. The kernel is the witness: no UDP
 * datagram leaves this network while the two talk.
 */
#include "support_ends.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BY_IPV6 = 8 | 1, BY_IPV4 = 8 | 2 }; /* a completion's service level */
enum { ROUNDS = 20, MESSAGE = 3000, SOURCE = 32768, DATAGRAM = 1000, GRH = 40, QKEY = 7 };

static uint8_t headers = BY_IPV4; /* that each receive completion must report */

/* Datagrams that programs of this network have sent since it was made. */
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

/* Waits for the receive completion of the next message; skips completions of requests. */
static void expect_receipt(struct end *end, uint32_t length)
{
	struct ibv_wc completion;

	do {
		while (ibv_poll_cq(end->cq, 1, &completion) == 0)
			;
		EXPECT_STR(ibv_wc_status_str(completion.status), "success");
	} while (completion.opcode != IBV_WC_RECV);
	EXPECT_EQ(completion.byte_len, length);
	EXPECT_EQ(completion.sl, headers);
}

static void post_receive(struct end *end)
{
	receive_at(end, 0, SOURCE);
}

static void use_srq(struct end *end)
{
	struct ibv_srq_init_attr queue = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 8, .max_send_sge = 1 },
		.qp_type = end->type,
		.sq_sig_all = 1,
	};

	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	init.srq = end->srq = ibv_create_srq(end->pd, &queue);
	EXPECT(end->srq);
	end->qp = ibv_create_qp(end->pd, &init);
	EXPECT(end->qp);
}

/* The end that answers, end 1, has a receive when the other begins. */
static void meet(struct end *end, struct board *board, uint32_t self)
{
	board->places[self] = place_of(end);
	atomic_fetch_add(&board->ready_count, 1);
	while (atomic_load(&board->ready_count) < 2)
		usleep(200);
	connect_end(end, board->places[1 - self]);
	if (self)
		post_receive(end);
	atomic_fetch_add(&board->ready_count, 1);
	while (atomic_load(&board->ready_count) < 4)
		usleep(200);
}

static void echo(struct board *board, enum ibv_qp_type type, bool has_srq)
{
	struct end end = { .type = type };

	open_end(&end, private_memory());
	if (has_srq)
		use_srq(&end);
	meet(&end, board, 1);
	for (;;) {
		expect_receipt(&end, MESSAGE);
		memcpy(end.memory + SOURCE, end.memory, MESSAGE);
		post_receive(&end);
		post_at(&end, IBV_WR_SEND, SOURCE, MESSAGE);
	}
}

static void expect_shm_link(enum ibv_qp_type type, bool has_srq)
{
	struct board *board = make_board();
	struct end end = { .type = type };
	unsigned long before;
	pid_t child;

	begin();
	child = fork_end();
	if (!child)
		echo(board, type, has_srq);
	open_end(&end, private_memory());
	meet(&end, board, 0);
	program_expect_in_log("path: shared memory");
	before = all_sent();
	for (uint32_t i = 0; i < ROUNDS; i++) {
		post_receive(&end);
		memset(end.memory + SOURCE, (int)i + 1, MESSAGE);
		post_at(&end, IBV_WR_SEND, SOURCE, MESSAGE);
		expect_receipt(&end, MESSAGE);
		EXPECT_EQ(end.memory[0], i + 1);
		EXPECT_EQ(end.memory[MESSAGE - 1], i + 1);
	}
	EXPECT_EQ(all_sent(), before);
	end_target(child);
}

TEST(rc_takes_shared_memory)
{
	expect_shm_link(IBV_QPT_RC, false);
}

TEST(uc_takes_shared_memory)
{
	expect_shm_link(IBV_QPT_UC, false);
}

TEST(messages_to_a_shared_receive_queue_take_shared_memory)
{
	expect_shm_link(IBV_QPT_RC, true);
}

/* --- XRC --- */

TEST(xrc_takes_shared_memory)
{
	struct board *board = make_board();
	struct end end = { 0 };
	unsigned long before;
	pid_t child;

	begin();
	child = fork_end();
	if (!child) {
		end.type = IBV_QPT_XRC_RECV;
		open_end(&end, private_memory());
		meet(&end, board, 1);
		for (;;) {
			expect_receipt(&end, MESSAGE);
			post_receive(&end);
		}
	}
	end.type = IBV_QPT_XRC_SEND;
	open_end(&end, private_memory());
	meet(&end, board, 0);
	program_expect_in_log("path: shared memory");
	before = all_sent();
	for (uint32_t i = 0; i < ROUNDS; i++)
		do_at(&end, IBV_WR_SEND, 0, MESSAGE);
	EXPECT_EQ(all_sent(), before);
	end_target(child);
}

/* --- datagrams --- */

static void to_state(struct ibv_qp *qp, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	EXPECT_EQ(ibv_modify_qp(qp, attr, IBV_QP_STATE | mask), 0);
}

static void open_datagrams(struct end *end)
{
	struct ibv_qp_attr attr = { .port_num = 1, .qkey = QKEY };

	end->type = IBV_QPT_UD;
	open_end(end, private_memory());
	to_state(end->qp, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	to_state(end->qp, &attr, IBV_QPS_RTR, 0);
	to_state(end->qp, &attr, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

/* Each receive completion is a step. */
static void count_datagrams(struct board *board)
{
	struct end end = { 0 };

	open_datagrams(&end);
	for (uint32_t i = 0; i < 4; i++)
		post_receive(&end);
	board->places[1] = place_of(&end);
	reach_step(board, 1);
	for (uint32_t i = 2;; i++) {
		expect_receipt(&end, DATAGRAM + GRH);
		post_receive(&end);
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

static struct ibv_ah *make_handle(struct end *end, uint8_t gid_index)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = gid_index };
	struct ibv_ah *ah;

	EXPECT_EQ(ibv_query_gid(end->context, 1, gid_index, &attr.grh.dgid), 0);
	ah = ibv_create_ah(end->pd, &attr);
	EXPECT(ah);
	return ah;
}

/* The first datagrams go by the wire, while the two meet. */
static void expect_datagrams_by_shm_link(uint8_t gid_index)
{
	struct board *board = make_board();
	struct end end = { 0 };
	uint32_t step = 1, by_shm_link = 0;
	struct ibv_ah *ah;
	pid_t child;

	begin();
	child = fork_end();
	if (!child)
		count_datagrams(board);
	open_datagrams(&end);
	ah = make_handle(&end, gid_index);
	await_step(board, 1);
	while (by_shm_link < ROUNDS) {
		unsigned long before = all_sent();

		send_datagram(&end, ah, board->places[1].qpn);
		await_step(board, ++step);
		EXPECT(!by_shm_link || all_sent() == before);
		by_shm_link += all_sent() == before;
		usleep(1000);
	}
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	end_target(child);
}

TEST(datagrams_take_shared_memory_once_both_have_met)
{
	expect_datagrams_by_shm_link(1);
}

TEST(datagrams_over_ipv6_take_shared_memory_once_both_have_met)
{
	headers = BY_IPV6;
	expect_datagrams_by_shm_link(0);
}
