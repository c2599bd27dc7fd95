/* SPDX-License-Identifier: BSD-2-Clause */
/* Two adapters and a connection; see support_verbs.h. */
#include "support_verbs.h"

#include "harness.h"

#include <string.h>

enum { GID_INDEX = 1, DEPTH = 16 };

static struct ibv_context *open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	EXPECT(list && list[0]);
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
	return context;
}

void open_node(struct node *node)
{
	*node = (struct node){ .context = open_device() };
	node->pd = ibv_alloc_pd(node->context);
	node->cq = ibv_create_cq(node->context, 4 * DEPTH, NULL, NULL, 0);
	node->empty_cq = ibv_create_cq(node->context, 1, NULL, NULL, 0);
	EXPECT(node->pd && node->cq && node->empty_cq);
	EXPECT_EQ(ibv_query_gid(node->context, 1, GID_INDEX, &node->gid), 0);
}

void open_nodes(struct node nodes[2])
{
	open_node(&nodes[A]);
	open_node(&nodes[B]);
}

void create_qp(struct node *node)
{
	struct ibv_qp_init_attr init = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = DEPTH,
			 .max_recv_wr = DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};

	if (node->qp)
		EXPECT_EQ(ibv_destroy_qp(node->qp), 0);
	node->qp = ibv_create_qp(node->pd, &init);
	EXPECT(node->qp);
	EXPECT_EQ(ibv_modify_qp(node->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
}

void connect_qp(struct node *node, uint32_t peer_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer_qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = node->gid, /* both are on this device */
				      .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};

	EXPECT_EQ(ibv_modify_qp(node->qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	EXPECT_EQ(ibv_modify_qp(node->qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		  0);
}

void connect_nodes(struct node nodes[2])
{
	create_qp(&nodes[A]);
	create_qp(&nodes[B]);
	connect_qp(&nodes[A], nodes[B].qp->qp_num);
	connect_qp(&nodes[B], nodes[A].qp->qp_num);
}

struct ibv_mr *register_memory(const struct node *node, void *memory, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(node->pd, memory, length,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);

	EXPECT(mr);
	return mr;
}

struct ibv_sge make_sge(const struct ibv_mr *mr, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)mr->addr, length, mr->lkey };
}

struct ibv_send_wr make_request(enum ibv_wr_opcode opcode, struct ibv_sge *local,
				const struct ibv_mr *target)
{
	struct ibv_send_wr request = { .opcode = opcode, .sg_list = local, .num_sge = 1 };

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		request.wr.atomic.remote_addr = (uintptr_t)target->addr;
		request.wr.atomic.rkey = target->rkey;
		request.wr.atomic.compare_add = 1;
	} else if (opcode != IBV_WR_SEND) {
		request.wr.rdma.remote_addr = (uintptr_t)target->addr;
		request.wr.rdma.rkey = target->rkey;
	}
	return request;
}

void post_send(const struct node *node, struct ibv_send_wr request)
{
	struct ibv_send_wr *bad;

	EXPECT_EQ(ibv_post_send(node->qp, &request, &bad), 0);
}

void post_recv(const struct node *node, struct ibv_sge sge)
{
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 }, *bad;

	EXPECT_EQ(ibv_post_recv(node->qp, &request, &bad), 0);
}

enum ibv_wc_status await_status(struct node nodes[2], enum side side, bool drives_both)
{
	struct ibv_wc wc;
	int count;

	do {
		if (drives_both)
			EXPECT_EQ(ibv_poll_cq(nodes[!side].empty_cq, 1, &wc), 0);
		count = ibv_poll_cq(nodes[side].cq, 1, &wc);
	} while (!count);
	EXPECT_EQ(count, 1);
	return wc.status;
}
