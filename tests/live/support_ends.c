/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends: how they are opened, how they meet and how they post. */
#include "support_ends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static const unsigned all_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

struct board *make_board(void)
{
	void *board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(board != MAP_FAILED);
	return board;
}

void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	program_enter_namespace();
	program_keep_log("debug");
}

uint8_t *private_memory(void)
{
	uint8_t *memory =
		mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

uint8_t *shared_memory(void)
{
	int fd = memfd_create("test", 0);
	uint8_t *memory;

	EXPECT(fd >= 0 && !ftruncate(fd, LENGTH));
	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(memory != MAP_FAILED);
	return memory;
}

enum ibv_qp_type peer_type(enum ibv_qp_type type)
{
	return type == IBV_QPT_XRC_SEND ? IBV_QPT_XRC_RECV : type;
}

static bool is_asking(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
}

static bool is_answering(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
}

struct ibv_qp *create_qp(struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
		.sq_sig_all = 1,
		.comp_mask = type == IBV_QPT_XRC_RECV ? IBV_QP_INIT_ATTR_XRCD : IBV_QP_INIT_ATTR_PD,
		.pd = end->pd,
		.xrcd = end->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(end->context, &init);

	EXPECT(qp);
	return qp;
}

static void open_xrc(struct end *end)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex queue = {
		.attr = { .max_wr = 64, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = end->pd,
		.cq = end->cq,
	};

	end->xrcd = ibv_open_xrcd(end->context, &domain);
	EXPECT(end->xrcd);
	queue.xrcd = end->xrcd;
	end->srq = ibv_create_srq_ex(end->context, &queue);
	EXPECT(end->srq);
}

void open_end(struct end *end, uint8_t *memory)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	EXPECT(list && list[0]);
	if (!end->type)
		end->type = IBV_QPT_RC;
	end->memory = memory;
	end->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	EXPECT(end->context);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 200, NULL, NULL, 0);
	end->mr = ibv_reg_mr(end->pd, memory, LENGTH, (int)all_rights);
	EXPECT(end->pd && end->cq && end->mr);
	if (end->type == IBV_QPT_XRC_RECV)
		open_xrc(end);
	end->qp = create_qp(end, end->type);
}

static void to_state(struct end *end, struct ibv_qp_attr *attr, enum ibv_qp_state state, int mask)
{
	attr->qp_state = state;
	EXPECT_EQ(ibv_modify_qp(end->qp, attr, IBV_QP_STATE | mask), 0);
}

void connect_end(struct end *end, struct place peer)
{
	bool asks = is_asking(end->type), answers = is_answering(end->type);
	struct ibv_qp_attr attr = {
		.port_num = 1,
		.qp_access_flags = all_rights,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 12,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	end->peer = peer;
	EXPECT_EQ(ibv_query_gid(end->context, 1, 1, &attr.ah_attr.grh.dgid), 0);
	to_state(end, &attr, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	to_state(end, &attr, IBV_QPS_RTR,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 (answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	to_state(end, &attr, IBV_QPS_RTS,
		 IBV_QP_SQ_PSN | (asks || answers ? IBV_QP_TIMEOUT : 0) |
			 (asks ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC
			       : 0));
}

void close_end(struct end *end)
{
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	if (end->srq)
		EXPECT_EQ(ibv_destroy_srq(end->srq), 0);
	if (end->xrcd)
		EXPECT_EQ(ibv_close_xrcd(end->xrcd), 0);
	EXPECT_EQ(ibv_destroy_cq(end->cq), 0);
	if (end->mr)
		EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(end->pd), 0);
	EXPECT_EQ(ibv_close_device(end->context), 0);
}

void reach_step(struct board *board, uint32_t step)
{
	atomic_store(&board->step, step);
}

void await_step(struct board *board, uint32_t step)
{
	while (atomic_load(&board->step) < step)
		usleep(200);
}

static void await_both(struct board *board)
{
	atomic_fetch_add(&board->ready_count, 1);
	while (atomic_load(&board->ready_count) < 2)
		usleep(200);
}

struct place place_of(const struct end *end)
{
	struct place place = { end->qp->qp_num, end->mr->rkey, (uintptr_t)end->memory, 0 };

	if (end->srq)
		EXPECT_EQ(ibv_get_srq_num(end->srq, &place.srqn), 0);
	return place;
}

void introduce_child(struct end *end, struct board *board)
{
	board->places[1] = place_of(end);
	reach_step(board, 1);
	await_step(board, 2);
	connect_end(end, board->places[0]);
	await_both(board);
}

void introduce_parent(struct end *end, struct board *board)
{
	board->places[0] = place_of(end);
	await_step(board, 1);
	reach_step(board, 2);
	connect_end(end, board->places[1]);
	await_both(board);
}

void meet_as_child(struct end *end, struct board *board, uint8_t *memory)
{
	open_end(end, memory);
	introduce_child(end, board);
}

void meet_as_parent(struct end *end, struct board *board, uint8_t *memory)
{
	open_end(end, memory);
	introduce_parent(end, board);
}

void post_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)end->memory + offset, length, end->mr->lkey };
	struct ibv_send_wr request = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };
	struct ibv_send_wr *bad;

	request.qp_type.xrc.remote_srqn = end->peer.srqn;
	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request.wr.atomic.remote_addr = end->peer.address + offset;
		request.wr.atomic.rkey = end->peer.rkey;
		request.wr.atomic.compare_add = 1;
	} else {
		request.wr.rdma.remote_addr = end->peer.address + offset;
		request.wr.rdma.rkey = end->peer.rkey;
	}
	EXPECT_EQ(ibv_post_send(end->qp, &request, &bad), 0);
}

void receive_at(struct end *end, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)end->memory + offset, length, end->mr->lkey };
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (end->srq)
		EXPECT_EQ(ibv_post_srq_recv(end->srq, &request, &bad), 0);
	else
		EXPECT_EQ(ibv_post_recv(end->qp, &request, &bad), 0);
}

const char *poll_status(struct end *end)
{
	struct ibv_wc completion;
	int count;

	while ((count = ibv_poll_cq(end->cq, 1, &completion)) == 0)
		;
	EXPECT_EQ(count, 1);
	return ibv_wc_status_str(completion.status);
}

void do_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length)
{
	post_at(end, opcode, offset, length);
	EXPECT_STR(poll_status(end), "success");
}

void expect_child_success(pid_t child)
{
	int status;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

pid_t fork_end(void)
{
	pid_t child = fork();

	EXPECT(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

pid_t start_target(struct board *board, enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { .type = peer_type(type) };

	meet_as_child(&end, board, allocate());
	for (;;)
		pause();
}

pid_t meet_target(struct end *end, enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	struct board *board = make_board();
	pid_t child = start_target(board, type, allocate);

	*end = (struct end){ .type = type };
	meet_as_parent(end, board, private_memory());
	return child;
}

pid_t begin_with_target(struct end *end, enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	begin();
	return meet_target(end, type, allocate);
}

pid_t start_writer(struct board *board, enum ibv_qp_type type)
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { .type = type };

	meet_as_child(&end, board, private_memory());
	for (uint32_t i = 1;; i++) {
		memset(end.memory, (int)i, LENGTH);
		post_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
		if (strcmp(poll_status(&end), "success") != 0)
			_exit(0);
		reach_step(board, 3 + i);
	}
}

void end_target(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

void deregister(struct end *end)
{
	EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
	end->mr = NULL;
}

void reset(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	EXPECT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}
