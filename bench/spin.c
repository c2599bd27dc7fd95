/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How late data becomes visible to a program that only reads its memory. The target calls no verb
 * once it is connected: it spins on a word into which the initiator writes the time, now and then,
 * and compares that with its own clock. Both ends run on one machine. Between two writes the
 * target's adapter has time to fall asleep. The target prints the median in microseconds.
 *
 *	spin <device>                 as the target
 *	spin <device> <address>       as the initiator
 */
#include "support_net.h"
#include "support_report.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PORT 18600
#define GID_INDEX 1 /* the interface's IPv4 address */
#define WRITES 300u
#define PAUSE_US 3000
#define LAST UINT64_MAX

static _Atomic uint64_t word; /* registered; at the initiator, what is written */

struct end {
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey;
	uint32_t qpn;
};

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	for (struct ibv_device **d = devices; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	fprintf(stderr, "spin: there is no device %s\n", name);
	exit(1);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = 16,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	BENCH_CHECK(qp);
	return qp;
}

static void connect_qp(struct ibv_qp *qp, const struct end *other)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};

	BENCH_CHECK(!ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qpn,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = other->gid,
				      .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};
	BENCH_CHECK(!ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7
	};
	BENCH_CHECK(!ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC));
}

static void target(void)
{
	static double late_us[WRITES];
	uint32_t count = 0;
	uint64_t before = 0;

	for (;;) {
		uint64_t written_ns = atomic_load_explicit(&word, memory_order_acquire);

		if (written_ns == before)
			continue;
		if (written_ns == LAST)
			break;
		BENCH_CHECK(count < WRITES);
		late_us[count++] = (double)(clock_now_ns() - written_ns) / 1e3;
		before = written_ns;
	}
	printf("%.3f\n", median(late_us, count));
}

static void write_word(struct ibv_qp *qp, struct ibv_mr *mr, const struct end *other,
		       uint64_t value)
{
	struct ibv_sge sge = { (uintptr_t)&word, sizeof(word), mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { other->address, other->rkey },
	};
	struct ibv_send_wr *bad;
	struct ibv_wc completion;
	int count;

	atomic_store(&word, value);
	BENCH_CHECK(!ibv_post_send(qp, &request, &bad));
	do {
		count = ibv_poll_cq(qp->send_cq, 1, &completion);
	} while (!count);
	BENCH_CHECK(count == 1 && completion.status == IBV_WC_SUCCESS);
}

static void initiate(struct ibv_qp *qp, struct ibv_mr *mr, const struct end *other)
{
	for (uint32_t i = 0; i < WRITES; i++) {
		usleep(PAUSE_US);
		write_word(qp, mr, other, clock_now_ns());
	}
	write_word(qp, mr, other, LAST);
}

int main(int argc, char **argv)
{
	const char *server = argc > 2 ? argv[2] : NULL;
	struct ibv_context *context = argc > 1 ? open_device(argv[1]) : NULL;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct end own;
	struct end other;
	int meeting;

	BENCH_CHECK(context);
	pd = ibv_alloc_pd(context);
	mr = ibv_reg_mr(pd, &word, sizeof(word), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	BENCH_CHECK(mr);
	qp = make_qp(pd, ibv_create_cq(context, 16, NULL, NULL, 0));
	own = (struct end){ .address = (uintptr_t)&word, .rkey = mr->rkey, .qpn = qp->qp_num };
	BENCH_CHECK(!ibv_query_gid(context, 1, GID_INDEX, &own.gid));
	meeting = net_meet(server, PORT);
	net_swap(meeting, &own, &other, sizeof(own));
	connect_qp(qp, &other);
	net_swap(meeting, &own, &other, sizeof(own)); /* both are ready */
	if (server)
		initiate(qp, mr, &other);
	else
		target();
	return 0;
}
