/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on one host, by lines and by reaching into each other's memory. The target is the test's own process or a child, and may compute,
 * sleep, be stopped or be killed; what it was promised holds all the same.
 */
#include "support_verbs.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 1 << 16, ROUNDS = 50 };

static const unsigned all_rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

/* What the two tell each other before and while they work. */
struct board {
	_Atomic uint32_t step;
	_Atomic uint32_t ready_count; /* ends that are connected */
	struct place places[2];
};

/* One end, which may have more memory than the small program of support_verbs.h. */
struct end {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *memory; /* LENGTH bytes */
	struct place peer;
};

static struct board *make_board(void)
{
	void *board = mmap(NULL, sizeof(struct board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(board != MAP_FAILED);
	return board;
}

static void begin(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	program_enter_namespace();
	program_keep_log("debug");
}

static uint8_t *private_memory(void)
{
	uint8_t *memory =
		mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

static uint8_t *shared_memory(void)
{
	int fd = memfd_create("test", 0);
	uint8_t *memory;

	EXPECT(fd >= 0 && !ftruncate(fd, LENGTH));
	memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(memory != MAP_FAILED);
	return memory;
}

static void open_end(struct end *end, uint8_t *memory)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	EXPECT(list && list[0]);
	end->memory = memory;
	end->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	EXPECT(end->context);
	end->pd = ibv_alloc_pd(end->context);
	end->cq = ibv_create_cq(end->context, 200, NULL, NULL, 0);
	end->mr = ibv_reg_mr(end->pd, memory, LENGTH, (int)all_rights);
	EXPECT(end->pd && end->cq && end->mr);
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(end->pd, &init);
	EXPECT(end->qp);
}

static void connect_end(struct end *end, struct place peer)
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

static void close_end(struct end *end)
{
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	EXPECT_EQ(ibv_destroy_cq(end->cq), 0);
	if (end->mr)
		EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(end->pd), 0);
	EXPECT_EQ(ibv_close_device(end->context), 0);
}

static void reach_step(struct board *board, uint32_t step)
{
	atomic_store(&board->step, step);
}

static void await_step(struct board *board, uint32_t step)
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

/* The child is end 1 and says so with step 1; the parent with step 2. What tests do begins with step 3. */
static void meet_as_child(struct end *end, struct board *board, uint8_t *memory)
{
	open_end(end, memory);
	board->places[1] = (struct place){ end->qp->qp_num, end->mr->rkey, (uintptr_t)memory };
	reach_step(board, 1);
	await_step(board, 2);
	connect_end(end, board->places[0]);
	await_both(board);
}

static void meet_as_parent(struct end *end, struct board *board, uint8_t *memory)
{
	open_end(end, memory);
	board->places[0] = (struct place){ end->qp->qp_num, end->mr->rkey, (uintptr_t)memory };
	await_step(board, 1);
	reach_step(board, 2);
	connect_end(end, board->places[1]);
	await_both(board);
}

static void post_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length)
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

static const char *poll_status(struct end *end)
{
	struct ibv_wc completion;
	int count;

	while ((count = ibv_poll_cq(end->cq, 1, &completion)) == 0)
		;
	EXPECT_EQ(count, 1);
	return ibv_wc_status_str(completion.status);
}

static void do_at(struct end *end, enum ibv_wr_opcode opcode, uint32_t offset, uint32_t length)
{
	post_at(end, opcode, offset, length);
	EXPECT_STR(poll_status(end), "success");
}

static void expect_child_success(pid_t child)
{
	int status;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child that only lends its memory until it is killed. */
static pid_t start_target(struct board *board, uint8_t *(*allocate)(void))
{
	pid_t child = fork();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, allocate());
	for (;;)
		pause();
}

static void end_target(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* --- ways --- */

TEST(peers_on_one_host_take_a_line_and_need_no_packets_for_one_sided_requests)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	child = start_target(board, private_memory);
	meet_as_parent(&end, board, private_memory());
	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	memset(end.memory, 0, LENGTH);
	do_at(&end, IBV_WR_RDMA_READ, 0, LENGTH);
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(end.memory[i], 0x5a);
	program_expect_in_log("takes the line");
	end_target(child);
}

TEST(with_path_wire_at_either_end_all_goes_by_packets)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	setenv("VERBATIM_PATH", "wire", 1);
	child = start_target(board, private_memory);
	setenv("VERBATIM_PATH", "auto", 1);
	meet_as_parent(&end, board, private_memory());
	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	program_expect_in_log("takes the wire: it has made no offer");
	EXPECT(!strstr(program_read_log(), "takes the line"));
	end_target(child);
}

TEST(a_target_that_is_stopped_is_written_and_read)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	child = start_target(board, private_memory);
	meet_as_parent(&end, board, private_memory());
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		memset(end.memory, (int)i, LENGTH);
		do_at(&end, IBV_WR_RDMA_WRITE, i * 64, 64 + i);
		memset(end.memory, 0xff, LENGTH);
		do_at(&end, IBV_WR_RDMA_READ, i * 64, 64 + i);
		EXPECT_EQ(end.memory[i * 64], i);
		EXPECT_EQ(end.memory[i * 64 + 63 + i], i);
	}
	EXPECT_EQ(kill(child, SIGCONT), 0);
	end_target(child);
}

TEST(shared_memory_of_a_stopped_target_takes_atomics_too)
{
	struct board *board = make_board();
	struct end end = { 0 };
	uint64_t word = 0;
	pid_t child;

	begin();
	child = start_target(board, shared_memory);
	meet_as_parent(&end, board, private_memory());
	do_at(&end, IBV_WR_RDMA_WRITE, 8, 8); /* asks for the mapping */
	for (uint32_t i = 0; i < 100; i++) { /* until it is there they go by packets */
		do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
		usleep(1000);
	}
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	for (uint32_t i = 0; i < ROUNDS; i++)
		do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	memcpy(&word, end.memory, sizeof(word));
	EXPECT_EQ(word, 100 + ROUNDS - 1);
	EXPECT_EQ(kill(child, SIGCONT), 0);
	end_target(child);
}

/* --- atomics --- */

/* Both ends and the owner's CPU count in the same word, half of them before the mapping is there. */
TEST(atomics_by_lines_by_mappings_and_by_the_cpu_add_up)
{
	struct board *board = make_board();
	struct end end = { 0 };
	_Atomic uint64_t *word;
	pid_t child;

	begin();
	child = fork();
	if (!child) {
		meet_as_child(&end, board, private_memory());
		for (uint32_t i = 0; i < 2000; i++)
			do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
		_exit(0);
	}
	meet_as_parent(&end, board, shared_memory());
	word = (void *)end.memory;
	for (uint32_t i = 0; i < 2000; i++) {
		atomic_fetch_add(word, 1);
		EXPECT_EQ(ibv_poll_cq(end.cq, 0, NULL), 0);
	}
	expect_child_success(child);
	EXPECT_EQ(atomic_load(word), 4000);
}

/* --- protection --- */

/* A child that writes as fast as it can, until it is refused or killed. */
static pid_t start_writer(struct board *board)
{
	pid_t child = fork();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, private_memory());
	for (uint32_t i = 1;; i++) {
		memset(end.memory, (int)i, LENGTH);
		post_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
		if (strcmp(poll_status(&end), "success") != 0)
			_exit(0);
		reach_step(board, 3 + i);
	}
}

static void expect_unchanged(const uint8_t *memory)
{
	static uint8_t copy[LENGTH];

	memcpy(copy, memory, LENGTH);
	for (uint32_t i = 0; i < 5; i++) {
		usleep(1000);
		EXPECT_MEM(memory, copy, LENGTH);
	}
}

static void deregister(struct end *end)
{
	EXPECT_EQ(ibv_dereg_mr(end->mr), 0);
	end->mr = NULL;
}

static void reset(struct end *end)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	EXPECT_EQ(ibv_modify_qp(end->qp, &attr, IBV_QP_STATE), 0);
}

static void expect_no_access_after(void (*close)(struct end *), uint8_t *(*allocate)(void))
{
	begin();
	for (uint32_t i = 0; i < 10; i++) {
		struct board *board = make_board();
		struct end end = { 0 };
		pid_t child = start_writer(board);

		meet_as_parent(&end, board, allocate());
		await_step(board, 6 + i);
		close(&end);
		expect_unchanged(end.memory);
		expect_child_success(child);
		close_end(&end);
	}
}

TEST(no_access_happens_after_a_region_is_deregistered)
{
	expect_no_access_after(deregister, private_memory);
}

TEST(no_access_happens_after_a_region_of_shared_memory_is_deregistered)
{
	expect_no_access_after(deregister, shared_memory);
}

TEST(no_access_happens_after_a_qp_was_reset)
{
	expect_no_access_after(reset, private_memory);
}

TEST(memory_that_the_target_has_unmapped_is_an_error_at_the_initiator)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	child = fork();
	if (!child) {
		uint8_t *memory = private_memory();

		meet_as_child(&end, board, memory);
		EXPECT_EQ(munmap(memory, LENGTH), 0);
		reach_step(board, 4);
		for (;;)
			pause();
	}
	meet_as_parent(&end, board, private_memory());
	await_step(board, 4);
	post_at(&end, IBV_WR_RDMA_WRITE, 0, 100);
	EXPECT_STR(poll_status(&end), "remote operation error");
	end_target(child);
}

/* --- death --- */

TEST(a_writer_that_is_killed_in_the_middle_of_its_work_keeps_nobody_from_deregistering)
{
	uint32_t kills = test_is_thorough() ? 500 : 30;

	begin();
	for (uint32_t i = 0; i < kills; i++) {
		struct board *board = make_board();
		struct end end = { 0 };
		pid_t child = start_writer(board);

		meet_as_parent(&end, board, private_memory());
		await_step(board, 4 + i % 5);
		usleep(i * 7 % 100);
		EXPECT_EQ(kill(child, SIGKILL), 0);
		deregister(&end);
		expect_unchanged(end.memory);
		end_target(child);
		close_end(&end);
		munmap(end.memory, LENGTH);
	}
}

TEST(requests_to_a_target_that_was_killed_end_by_their_retries)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	child = start_target(board, private_memory);
	meet_as_parent(&end, board, private_memory());
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	end_target(child);
	post_at(&end, IBV_WR_RDMA_WRITE, 0, 8);
	EXPECT_STR(poll_status(&end), "transport retry counter exceeded");
}

/* More than a line holds is on its way when the target dies. */
TEST(messages_to_a_target_that_was_killed_with_a_full_line_end_by_their_retries)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	child = start_target(board, private_memory);
	meet_as_parent(&end, board, private_memory());
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	for (uint32_t i = 0; i < 32; i++)
		post_at(&end, IBV_WR_SEND, 0, LENGTH);
	end_target(child);
	EXPECT_STR(poll_status(&end), "transport retry counter exceeded");
	for (uint32_t i = 1; i < 32; i++)
		EXPECT_STR(poll_status(&end), "Work Request Flushed Error");
}

TEST(who_comes_after_one_that_was_killed_has_lines_of_its_own)
{
	begin();
	for (uint32_t i = 0; i < 5; i++) {
		struct board *board = make_board();
		struct end end = { 0 };
		pid_t child = start_target(board, private_memory);

		meet_as_parent(&end, board, private_memory());
		do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
		do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
		end_target(child);
		close_end(&end);
	}
}

/* --- datagrams --- */

enum { DATAGRAMS = 40, DATAGRAM = 512, GRH = 40 };

static struct ibv_qp *make_datagram_qp(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = { .max_send_wr = 64,
			 .max_recv_wr = 64,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7 };
	struct ibv_qp *qp = ibv_create_qp(end->pd, &init);

	EXPECT(qp);
	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
		  0);
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

/* All in one list, so that they leave together. */
static void post_datagrams(struct end *end, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t to)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, DATAGRAM, end->mr->lkey };
	struct ibv_send_wr requests[DATAGRAMS] = { { 0 } };
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < DATAGRAMS; i++)
		requests[i] = (struct ibv_send_wr){
			.next = i + 1 < DATAGRAMS ? &requests[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = i,
			.wr.ud = { .ah = ah, .remote_qpn = to, .remote_qkey = 7 },
		};
	EXPECT_EQ(ibv_post_send(qp, requests, &bad), 0);
}

static void expect_datagrams(struct end *end)
{
	for (uint32_t i = 0; i < DATAGRAMS; i++) {
		struct ibv_wc completion;

		while (ibv_poll_cq(end->cq, 1, &completion) == 0)
			;
		EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
		EXPECT_EQ(completion.byte_len, DATAGRAM + GRH);
		EXPECT_EQ(completion.imm_data, i);
	}
}

static void expect_all_arrive(uint8_t source_index, const union ibv_gid *to, bool is_group)
{
	struct end end = { 0 };
	struct ibv_qp *sender, *receiver;
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *to, .sgid_index = source_index, .hop_limit = 1 },
	};
	struct ibv_ah *ah;

	open_end(&end, private_memory());
	sender = make_datagram_qp(&end);
	receiver = make_datagram_qp(&end);
	if (is_group)
		EXPECT_EQ(ibv_attach_mcast(receiver, to, 0), 0);
	for (uint32_t i = 0; i < DATAGRAMS; i++) {
		struct ibv_sge sge = { (uintptr_t)end.memory + 1024 * (i + 1), 1024, end.mr->lkey };
		struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;

		EXPECT_EQ(ibv_post_recv(receiver, &request, &bad), 0);
	}
	ah = ibv_create_ah(end.pd, &attr);
	EXPECT(ah);
	post_datagrams(&end, sender, ah, is_group ? 0xffffff : receiver->qp_num);
	expect_datagrams(&end);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
}

TEST(datagrams_that_leave_together_all_arrive_in_order)
{
	union ibv_gid own = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 } };

	begin();
	expect_all_arrive(1, &own, false);
}

TEST(datagrams_to_a_group_of_this_host_that_leave_together_all_arrive_in_order)
{
	union ibv_gid group = { .raw = { 0xff, 0x05, [15] = 0x47 } };

	begin();
	expect_all_arrive(0, &group, true);
}

/* --- fork --- */

TEST(a_forked_child_that_closes_what_it_inherited_takes_nothing_from_its_parent)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t target, child;

	begin();
	target = start_target(board, private_memory);
	meet_as_parent(&end, board, private_memory());
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	child = fork();
	if (!child) {
		(void)ibv_close_device(end.context);
		_exit(0);
	}
	expect_child_success(child);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	do_at(&end, IBV_WR_RDMA_READ, 0, LENGTH);
	do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	end_target(target);
}
