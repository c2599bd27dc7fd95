/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that has the message it waited for may stop immediately, and the sender must still
 * learn that it arrived: the adapter may defer an answer until the program's next call, but not
 * lose it.
 */
#include "harness.h"
#include "support_verbs.h"

#include <stdlib.h>

enum { LENGTH = 64 };

static struct node nodes[2];
static char memory[2][LENGTH];

/* A's message has reached B's program, and no thread has called a verb since. */
static void deliver_message(void)
{
	struct ibv_mr *regions[2];
	struct ibv_sge out;
	struct ibv_wc wc;
	int count;

	open_nodes(nodes);
	connect_nodes(nodes);
	for (enum side side = A; side <= B; side++)
		regions[side] = register_memory(&nodes[side], memory[side], LENGTH);
	out = make_sge(regions[A], LENGTH);
	post_recv(&nodes[B], make_sge(regions[B], LENGTH));
	post_send(&nodes[A], make_request(IBV_WR_SEND, &out, NULL));
	do
		count = ibv_poll_cq(nodes[B].cq, 1, &wc);
	while (!count);
	EXPECT_EQ(count, 1);
	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
}

TEST(the_sender_hears_of_a_message_whose_receiver_destroys_its_qp)
{
	deliver_message();
	EXPECT_EQ(ibv_destroy_qp(nodes[B].qp), 0);
	EXPECT_EQ(await_status(nodes, A, false), IBV_WC_SUCCESS);
}

TEST(the_sender_hears_of_a_message_whose_receiver_puts_its_qp_into_error)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	deliver_message();
	EXPECT_EQ(ibv_modify_qp(nodes[B].qp, &attr, IBV_QP_STATE), 0);
	EXPECT_EQ(await_status(nodes, A, false), IBV_WC_SUCCESS);
}

/*
 * If the helper has the engine, a post only rings the doorbell. A control verb waits for the
 * engine, and leaves nothing unsent.
 */
static void await_departure(const struct node *node)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	EXPECT_EQ(ibv_query_qp(node->qp, &attr, IBV_QP_STATE, &init), 0);
}

/*
 * B's program polls, so B's helper leaves driving to it. Then a message reaches B's adapter, and
 * B's program ends its QP before it polls again. Hardware has acknowledged the message by then.
 */
static void end_before_looking(int (*end)(struct ibv_qp *qp))
{
	struct ibv_mr *regions[2];
	struct ibv_sge out;
	struct ibv_wc wc;

	open_nodes(nodes);
	for (enum side side = A; side <= B; side++)
		regions[side] = register_memory(&nodes[side], memory[side], LENGTH);
	out = make_sge(regions[A], LENGTH);
	for (int round = 0; round < 20; round++) {
		connect_nodes(nodes);
		post_recv(&nodes[B], make_sge(regions[B], LENGTH));
		for (int polls = 0; polls < 10000; polls++)
			EXPECT_EQ(ibv_poll_cq(nodes[B].empty_cq, 1, &wc), 0);
		post_send(&nodes[A], make_request(IBV_WR_SEND, &out, NULL));
		await_departure(&nodes[A]);
		EXPECT_EQ(end(nodes[B].qp), 0);
		EXPECT_EQ(await_status(nodes, A, false), IBV_WC_SUCCESS);
		while (ibv_poll_cq(nodes[B].cq, 1, &wc))
			;
	}
}

static int put_into_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static int destroy(struct ibv_qp *qp)
{
	nodes[B].qp = NULL;
	return ibv_destroy_qp(qp);
}

TEST(a_message_that_no_thread_has_looked_at_is_answered_before_its_qp_is_destroyed)
{
	end_before_looking(destroy);
}

TEST(a_message_that_no_thread_has_looked_at_is_answered_before_its_qp_enters_error)
{
	end_before_looking(put_into_error);
}

TEST(a_message_that_no_thread_has_looked_at_is_answered_before_its_qp_is_reset)
{
	end_before_looking(reset);
}

TEST(packets_that_no_thread_has_looked_at_are_answered_before_their_qp_is_destroyed)
{
	setenv("VERBATIM_PATH", "wire", 1);
	end_before_looking(destroy);
}
