/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes on one host, by shared-memory links and by peer memory access. The target is the
 * test's own process or a child, and may compute, sleep, be stopped or be killed; the guarantees to
 * it hold all the same.
 */
#include "support_ends.h"

#include <linux/capability.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- paths --- */

/* Sends a message each way, from both ends at the same time. */
static void exchange(struct end *end)
{
	enum { HALF = LENGTH / 2 };

	memset(end->memory, 0x5a, HALF);
	post_at(end, IBV_WR_SEND, 0, HALF);
	for (uint32_t i = 0; i < 2; i++)
		EXPECT_STR(poll_status(end), "success");
	for (uint32_t i = 0; i < HALF; i++)
		EXPECT_EQ(end->memory[HALF + i], 0x5a);
}

static void exchange_as_child(struct board *board)
{
	struct end end = { 0 };

	open_end(&end, private_memory());
	board->places[1] = place_of(&end);
	reach_step(board, 1);
	await_step(board, 2);
	connect_end(&end, board->places[0]);
	receive_at(&end, LENGTH / 2, LENGTH / 2);
	reach_step(board, 3);
	await_step(board, 4);
	exchange(&end);
	program_expect_in_log("path: shared memory");
	reach_step(board, 5);
	await_step(board, 6); /* the peer may have to acknowledge once more */
	exit(0);
}

/*
 * One end was stopped while the other asked for it, so the other uses the wire. When the first goes
 * on, they meet.
 */
TEST(ends_of_which_only_one_has_heard_of_the_other_in_time_hear_each_other)
{
	struct end end = { 0 };
	struct board *board;
	pid_t child;
	int status;

	begin();
	board = make_board();
	child = fork_end();
	if (!child)
		exchange_as_child(board);
	open_end(&end, private_memory());
	board->places[0] = place_of(&end);
	await_step(board, 1);
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
	connect_end(&end, board->places[1]);
	program_expect_in_log("path: wire: the peer has not answered");
	receive_at(&end, LENGTH / 2, LENGTH / 2);
	EXPECT_EQ(kill(child, SIGCONT), 0);
	reach_step(board, 2);
	await_step(board, 3);
	reach_step(board, 4);
	exchange(&end);
	await_step(board, 5);
	reach_step(board, 6);
	expect_child_success(child);
}

TEST(peers_on_one_host_take_shared_memory_and_need_no_packets_for_one_sided_requests)
{
	struct end end;
	pid_t child = begin_with_target(&end, IBV_QPT_RC, private_memory);

	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	memset(end.memory, 0, LENGTH);
	do_at(&end, IBV_WR_RDMA_READ, 0, LENGTH);
	for (uint32_t i = 0; i < LENGTH; i++)
		EXPECT_EQ(end.memory[i], 0x5a);
	program_expect_in_log("path: shared memory");
	end_target(child);
}

static uint8_t *memory_with_path_wire(void)
{
	setenv("VERBATIM_PATH", "wire", 1);
	return private_memory();
}

static uint8_t *memory_with_path_auto(void)
{
	setenv("VERBATIM_PATH", "auto", 1);
	return private_memory();
}

/* The end that would take a shared-memory link logs why it does not; the other end is not asked. */
static void expect_packets(const char *own_path, uint8_t *(*allocate)(void))
{
	struct end end;
	pid_t child;

	begin();
	setenv("VERBATIM_PATH", own_path, 1);
	child = meet_target(&end, IBV_QPT_RC, allocate);
	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	program_expect_in_log("path: wire: the peer wants packets");
	EXPECT(!strstr(program_read_log(), "path: shared memory"));
	end_target(child);
}

TEST(with_path_wire_all_goes_by_packets)
{
	expect_packets("wire", memory_with_path_auto);
}

TEST(with_path_wire_at_the_target_all_goes_by_packets)
{
	expect_packets("auto", memory_with_path_wire);
}

/* The kernel lets no process into one that is not dumpable, as Yama does with all processes. */
static uint8_t *memory_behind_a_wall(void)
{
	EXPECT_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
	return private_memory();
}

/* Drops the capability by which root may do it all the same. */
static void be_ordinary(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2];

	EXPECT_EQ(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	EXPECT_EQ(syscall(SYS_capset, &header, data), 0);
}

TEST(where_the_kernel_forbids_to_reach_memory_all_goes_by_shared_memory)
{
	struct end end;
	uint64_t word = 0;
	pid_t child;

	begin();
	be_ordinary();
	child = meet_target(&end, IBV_QPT_RC, memory_behind_a_wall);
	program_expect_in_log("path: shared memory, data by mappings only");
	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	memset(end.memory, 0, LENGTH);
	do_at(&end, IBV_WR_RDMA_READ, 0, LENGTH);
	EXPECT_EQ(end.memory[0], 0x5a);
	EXPECT_EQ(end.memory[LENGTH - 1], 0x5a);
	do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
	memcpy(&word, end.memory, sizeof(word));
	EXPECT_EQ(word, 0x5a5a5a5a5a5a5a5a);
	end_target(child);
}

/* --- atomics --- */

/* Both ends and the owner's CPU count in the same word, half of them before the mapping exists. */
TEST(atomics_by_shared_memory_by_mappings_and_by_the_cpu_add_up)
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

TEST(requests_to_a_target_that_was_killed_end_by_their_retries)
{
	struct end end;
	pid_t child = begin_with_target(&end, IBV_QPT_RC, private_memory);

	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	end_target(child);
	post_at(&end, IBV_WR_RDMA_WRITE, 0, 8);
	EXPECT_STR(poll_status(&end), "transport retry counter exceeded");
}

/* More than a shared-memory link holds is on its way when the target dies. */
TEST(messages_to_a_target_that_was_killed_with_a_full_shm_link_end_by_their_retries)
{
	struct end end;
	pid_t child = begin_with_target(&end, IBV_QPT_RC, private_memory);

	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	for (uint32_t i = 0; i < 32; i++)
		post_at(&end, IBV_WR_SEND, 0, LENGTH);
	end_target(child);
	EXPECT_STR(poll_status(&end), "transport retry counter exceeded");
	for (uint32_t i = 1; i < 32; i++)
		EXPECT_STR(poll_status(&end), "Work Request Flushed Error");
}

TEST(a_process_that_comes_after_a_killed_one_has_shm_links_of_its_own)
{
	begin();
	for (uint32_t i = 0; i < 5; i++) {
		struct end end;
		pid_t child = meet_target(&end, IBV_QPT_RC, private_memory);

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

/* Posts all in one list, so that they leave together. */
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
	struct end end;
	pid_t target = begin_with_target(&end, IBV_QPT_RC, private_memory);
	pid_t child;

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
