/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that has the message it waited for may stop immediately, and the sender must still
 * learn that it arrived: the adapter may defer an answer until the program's next call, but not
 * lose it.
 */
#include "harness.h"
#include "support_verbs.h"

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
