/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening the device of a test, making and connecting QPs. */
#include "support_device.h"

#include "harness.h"
#include "namespace.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static int log_fd = -1;

void enter_own_network(void)
{
	struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int fd;

	namespace_unshare(CLONE_NEWNET);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &request))
		SKIP("may not set up the loopback interface: %s", strerror(errno));
	close(fd);
}

/* The library opens its log file again for each line. */
void keep_log(void)
{
	char path[64];

	log_fd = memfd_create("log", MFD_CLOEXEC);
	EXPECT(log_fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", log_fd);
	setenv("VERBATIM_LOG", "warn", 1);
	setenv("VERBATIM_LOG_FILE", path, 1);
}

const char *take_log(void)
{
	static char text[1 << 16];
	ssize_t length = pread(log_fd, text, sizeof(text) - 1, 0);

	EXPECT(length >= 0);
	text[length] = 0;
	EXPECT_EQ(ftruncate(log_fd, 0), 0);
	return text;
}

struct ibv_context *open_device(void)
{
	struct ibv_device **list;
	struct ibv_context *context;
	int count;

	enter_own_network();
	keep_log();
	setenv("VERBATIM_DEVICES", "lo", 1);
	list = ibv_get_device_list(&count);
	EXPECT(list && count == 1);
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
	return context;
}

struct ibv_ah_attr loopback_address(void)
{
	return (struct ibv_ah_attr){
		.grh = {
			.dgid = { .raw = { [10] = 0xff, [11] = 0xff, 127, 0, 0, 1 } },
			.sgid_index = GID_INDEX,
			.hop_limit = 64,
		},
		.is_global = 1,
		.port_num = 1,
	};
}

static uint64_t all_operations(enum ibv_qp_type type)
{
	const uint64_t sends = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t writes = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
	const uint64_t reliable = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;

	switch (type) {
	case IBV_QPT_RC:
		return sends | writes | reliable | IBV_QP_EX_WITH_ATOMIC_WRITE;
	case IBV_QPT_XRC_SEND:
		return sends | writes | reliable;
	case IBV_QPT_UC:
		return sends | writes;
	default:
		return sends;
	}
}

struct ibv_qp *make_qp_as(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY, .qp_access_flags = ALL_ACCESS
	};
	struct ibv_qp *qp = ibv_create_qp_ex(context, attr);
	int last = attr->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;

	EXPECT(qp);
	EXPECT_EQ(ibv_modify_qp(qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | last),
		  0);
	return qp;
}

struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 8, 8, 2, 2, 64 },
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = all_operations(type),
	};

	return make_qp_as(pd->context, &attr);
}

static void enter_rtr(struct ibv_qp *qp, uint32_t remote_qpn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = remote_qpn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = loopback_address(),
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), 0);
}

static void enter_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .max_rd_atomic = 4,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7 };
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC || qp->qp_type == IBV_QPT_XRC_SEND)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	if (qp->qp_type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_TIMEOUT;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, mask), 0);
}

void connect_to(struct ibv_qp *qp, uint32_t remote_qpn)
{
	enter_rtr(qp, remote_qpn);
	enter_rts(qp);
}

void connect_pair(struct ibv_qp *a, struct ibv_qp *b)
{
	connect_to(a, b->qp_num);
	connect_to(b, a->qp_num);
}

void set_ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR };

	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	enter_rts(qp);
}

struct ibv_mr *register_all(struct ibv_pd *pd, void *memory, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, memory, length, ALL_ACCESS | IBV_ACCESS_MW_BIND);

	EXPECT(mr);
	return mr;
}

void post_send(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + offset, length, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
	};
	struct ibv_send_wr *bad;

	EXPECT_EQ(ibv_post_send(qp, &wr, &bad), 0);
}

void post_receive(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr + offset, length, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	EXPECT_EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

struct ibv_wc wait_completion(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int count;

	while (!(count = ibv_poll_cq(cq, 1, &wc)))
		;
	EXPECT_EQ(count, 1);
	return wc;
}

void expect_success(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc = wait_completion(cq);

	EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
	EXPECT_EQ(wc.wr_id, wr_id);
}
