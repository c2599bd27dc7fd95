/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends: making, meeting, posting. */
#include "support_ends.h"

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

struct ibv_qp *create_qp(struct end *end, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	EXPECT(qp);
	return qp;
}

void open_end(struct end *end, uint8_t *memory)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	EXPECT(list && list[0]);
	end->memory = memory;
	end->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	EXPECT(end->context);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 200, NULL, NULL, 0);
	end->mr = ibv_reg_mr(end->pd, memory, LENGTH, (int)all_rights);
	EXPECT(end->pd && end->cq && end->mr);
	end->qp = create_qp(end, IBV_QPT_RC);
}

void connect_end(struct end *end, struct place peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = all_rights,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer.qpn,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 10,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	end->peer = peer;
	EXPECT_EQ(ibv_query_gid(end->context, 1, 1, &attr.ah_attr.grh.dgid), 0);
	EXPECT_EQ(ibv_modify_qp(end->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(end->qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  0);
	attr.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(ibv_modify_qp(end->qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		  0);
}

void close_end(struct end *end)
{
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
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
	return (struct place){ end->qp->qp_num, end->mr->rkey, (uintptr_t)end->memory };
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

pid_t start_target(struct board *board, uint8_t *(*allocate)(void))
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, allocate());
	for (;;)
		pause();
}

void end_target(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}
