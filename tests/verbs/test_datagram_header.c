/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a datagram's receive begins with: the IP header of the datagram, with the sender's traffic
 * class and hop limit. Sockets report these only for programs that have UD QPs.
 */
#include "harness.h"
#include "support_verbs.h"

/* An IPv4 header fills the second half of the room for a GRH. */
enum { GRH = 40, IPV4 = 20, TOS = IPV4 + 1, TTL = IPV4 + 8, LENGTH = 64, QKEY = 0x1234 };

static struct node nodes[2];
static unsigned char memory[2][LENGTH];

static void make_datagram_qp(struct node *node)
{
	struct ibv_qp_init_attr init = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.qp_type = IBV_QPT_UD,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY };

	node->qp = ibv_create_qp(node->pd, &init);
	EXPECT(node->qp);
	EXPECT_EQ(ibv_modify_qp(node->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		  0);
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(node->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(ibv_modify_qp(node->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

TEST(a_datagram_shows_the_traffic_class_and_hop_limit_it_was_sent_with)
{
	struct ibv_ah_attr path = { .is_global = 1, .port_num = 1 };
	struct ibv_mr *regions[2];
	struct ibv_send_wr request;
	struct ibv_sge out;

	open_nodes(nodes);
	for (enum side side = A; side <= B; side++) {
		make_datagram_qp(&nodes[side]);
		regions[side] = register_memory(&nodes[side], memory[side], LENGTH);
	}
	path.grh = (struct ibv_global_route){
		.dgid = nodes[B].gid, .sgid_index = 1, .traffic_class = 0x2a, .hop_limit = 9
	};
	out = make_sge(regions[A], LENGTH - GRH);
	request = make_request(IBV_WR_SEND, &out, NULL);
	request.wr.ud.ah = ibv_create_ah(nodes[A].pd, &path);
	EXPECT(request.wr.ud.ah);
	request.wr.ud.remote_qpn = nodes[B].qp->qp_num;
	request.wr.ud.remote_qkey = QKEY;
	post_recv(&nodes[B], make_sge(regions[B], LENGTH));
	post_send(&nodes[A], request);
	EXPECT_EQ(await_status(nodes, B, true), IBV_WC_SUCCESS);
	EXPECT_EQ(memory[B][TOS], 0x2a);
	EXPECT_EQ(memory[B][TTL], 9);
}
