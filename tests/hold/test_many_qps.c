/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand RC QPs between two processes, with checked traffic on all of them at the same time:
 * WRITEs that a SEND announces, then READs. The receive buffer of the second test is that of a
 * stock kernel, which holds a small part of what that many QPs could send.
 */
#include "support_rig.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	QPS = 1000,
	LENGTH = 16384,
	DEPTH = 8,
	ROUNDS = 4,
	TIMEOUT = 16,
	POLLS = 64,
};

enum kind { WRITE, SEND, RECEIVE, READ };

/* The board, which both processes share. */
struct board {
	_Atomic uint32_t arrivals; /* at barriers, all together */
	uint32_t qpns[2][QPS];
	uint64_t addresses[2];
	uint32_t rkeys[2];
};

/* All of this is registered. The data of a round is in one of two places, by its parity. */
struct memory {
	uint8_t outgoing[2][QPS][LENGTH];
	uint8_t incoming[2][QPS][LENGTH];
};

struct side {
	struct board *board;
	uint32_t self, peer;
	struct rig rig;
	struct memory *memory;
	struct ibv_mr *mr;
	struct ibv_qp *qps[QPS];
	uint32_t sent[QPS]; /* rounds begun, */
	uint32_t confirmed[QPS]; /* completed, */
	uint32_t received[QPS]; /* and got from the peer */
	uint32_t done; /* QPs that are finished, or READs */
};

static void fill(uint8_t *bytes, uint32_t side, uint32_t qp, uint32_t round)
{
	uint32_t word = side * 0x9e3779b9u ^ qp * 0x85ebca6bu ^ round * 0xc2b2ae35u;

	for (uint32_t i = 0; i < LENGTH / 4; i++, word = word * 1664525u + 1013904223u)
		memcpy(bytes + 4 * i, &word, 4);
}

static void expect_filled(const uint8_t *bytes, uint32_t side, uint32_t qp, uint32_t round)
{
	static uint8_t expected[LENGTH];

	fill(expected, side, qp, round);
	EXPECT_MEM(bytes, expected, LENGTH);
}

static void meet(struct side *side, uint32_t count)
{
	atomic_fetch_add(&side->board->arrivals, 1);
	while (atomic_load(&side->board->arrivals) < 2 * count)
		usleep(1000);
}

static uint64_t wr_id(enum kind kind, uint32_t qp)
{
	return (uint64_t)kind << 32 | qp;
}

static void post_receive(struct side *side, uint32_t qp)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id(RECEIVE, qp) };
	struct ibv_recv_wr *bad;

	EXPECT_EQ(ibv_post_recv(side->qps[qp], &wr, &bad), 0);
}

static void post_transfer(struct side *side, uint32_t qp, enum kind kind, uint8_t *local,
			  size_t remote)
{
	struct ibv_sge sge = { (uintptr_t)local, LENGTH, side->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = wr_id(kind, qp),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = kind == READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.wr.rdma = { side->board->addresses[side->peer] + remote,
			     side->board->rkeys[side->peer] },
	};
	struct ibv_send_wr *bad;

	EXPECT_EQ(ibv_post_send(side->qps[qp], &wr, &bad), 0);
}

static void post_round(struct side *side, uint32_t qp)
{
	struct ibv_send_wr wr = { .wr_id = wr_id(SEND, qp), .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;
	uint32_t round = side->sent[qp]++;
	uint8_t *local = side->memory->outgoing[round % 2][qp];

	fill(local, side->self, qp, round);
	post_transfer(side, qp, WRITE, local,
		      (size_t)(side->memory->incoming[round % 2][qp] - (uint8_t *)side->memory));
	EXPECT_EQ(ibv_post_send(side->qps[qp], &wr, &bad), 0);
}

/*
 * The peer begins a round when it has received our last one, so its place for the next one is free.
 */
static void go_on(struct side *side, uint32_t qp)
{
	if (side->confirmed[qp] != side->sent[qp] || side->received[qp] < side->sent[qp])
		return;
	if (side->sent[qp] < ROUNDS)
		post_round(side, qp);
	else
		side->done++;
}

static void on_completion(struct side *side, const struct ibv_wc *wc)
{
	uint32_t qp = (uint32_t)wc->wr_id;
	uint32_t round;

	if (wc->status != IBV_WC_SUCCESS)
		FAIL("QP %u: %s", qp, ibv_wc_status_str(wc->status));
	switch ((enum kind)(wc->wr_id >> 32)) {
	case WRITE:
		break;
	case SEND:
		side->confirmed[qp]++;
		go_on(side, qp);
		break;
	case RECEIVE:
		round = side->received[qp]++;
		expect_filled(side->memory->incoming[round % 2][qp], side->peer, qp, round);
		post_receive(side, qp);
		go_on(side, qp);
		break;
	case READ:
		expect_filled(side->memory->incoming[0][qp], side->peer, qp, ROUNDS - 1);
		side->done++;
		break;
	}
}

static void poll_until_done(struct side *side)
{
	struct ibv_wc wcs[POLLS];

	while (side->done < QPS) {
		int count = ibv_poll_cq(side->rig.cq, POLLS, wcs);

		for (int i = 0; i < count; i++)
			on_completion(side, &wcs[i]);
	}
	side->done = 0;
}

static void set_up(struct side *side)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ;

	rig_open(&side->rig, QPS * 2 * DEPTH);
	side->memory = mmap(NULL, sizeof(struct memory), PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(side->memory != MAP_FAILED);
	side->mr = ibv_reg_mr(side->rig.pd, side->memory, sizeof(struct memory), access);
	EXPECT(side->mr != NULL);
	side->board->addresses[side->self] = (uintptr_t)side->memory;
	side->board->rkeys[side->self] = side->mr->rkey;
	for (uint32_t i = 0; i < QPS; i++) {
		side->qps[i] = rig_make_qp(&side->rig, DEPTH);
		side->board->qpns[side->self][i] = side->qps[i]->qp_num;
	}
	meet(side, 1);
	for (uint32_t i = 0; i < QPS; i++) {
		rig_connect(&side->rig, side->qps[i], side->board->qpns[side->peer][i], TIMEOUT);
		post_receive(side, i);
		post_receive(side, i);
	}
	meet(side, 2);
}

static void tear_down(struct side *side)
{
	for (uint32_t i = 0; i < QPS; i++)
		EXPECT_EQ(ibv_destroy_qp(side->qps[i]), 0);
	EXPECT_EQ(ibv_dereg_mr(side->mr), 0);
	munmap(side->memory, sizeof(struct memory));
	rig_close(&side->rig);
}

static void be_side(struct board *board, uint32_t self)
{
	static struct side side;
	uint32_t last = (ROUNDS - 1) % 2;

	side.board = board;
	side.self = self;
	side.peer = !self;
	set_up(&side);
	for (uint32_t i = 0; i < QPS; i++)
		post_round(&side, i);
	poll_until_done(&side);
	meet(&side, 3);
	for (uint32_t i = 0; i < QPS; i++)
		post_transfer(&side, i, READ, side.memory->incoming[0][i],
			      (size_t)(side.memory->outgoing[last][i] - (uint8_t *)side.memory));
	poll_until_done(&side);
	meet(&side, 4);
	tear_down(&side);
}

static void run_both(void)
{
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pids[2];

	EXPECT(board != MAP_FAILED);
	for (uint32_t i = 0; i < 2; i++) {
		pids[i] = fork();
		EXPECT(pids[i] >= 0);
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_side(board, i);
			exit(0);
		}
	}
	for (uint32_t i = 0; i < 2; i++) {
		int status;
		pid_t ended = wait(&status); /* the other one may wait for it forever */

		if (!WIFEXITED(status) || WEXITSTATUS(status))
			FAIL("process %u ended with %x", ended == pids[1], status);
	}
}

TEST(a_thousand_qps_between_two_processes_all_have_traffic)
{
	enter_own_world();
	run_both();
	expect_nothing_left();
}

TEST(a_thousand_qps_get_along_with_the_receive_buffer_of_a_stock_kernel)
{
	enter_own_world();
	setenv("VERBATIM_RECEIVE_BUFFER", "212992", 1);
	run_both();
	expect_nothing_left();
}
