/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-sided requests between two processes of one host, which the initiator executes itself: by RC,
 * UC and XRC. The target may be stopped meanwhile. What the target closes is closed immediately,
 * and a message guarantees that the writes before it are in place.
 */
#include "support_ends.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 50, SPINNERS = 4 };

/* --- a target that is stopped --- */

static void stop(pid_t child)
{
	EXPECT_EQ(kill(child, SIGSTOP), 0);
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
}

/* A byte of the target's memory, as the kernel sees it. */
static uint8_t byte_of(const struct end *end, pid_t child, uint32_t offset)
{
	uint8_t byte = 0;
	struct iovec here = { &byte, 1 };
	struct iovec there = { (void *)(uintptr_t)(end->peer.address + offset), 1 };

	EXPECT_EQ(process_vm_readv(child, &here, 1, &there, 1, 0), 1);
	return byte;
}

static void expect_writes_while_stopped(enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	struct end end;
	pid_t child = begin_with_target(&end, type, allocate);

	stop(child);
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		memset(end.memory, (int)i, LENGTH);
		do_at(&end, IBV_WR_RDMA_WRITE, i * 64, 64 + i);
		EXPECT_EQ(byte_of(&end, child, i * 64), i);
		EXPECT_EQ(byte_of(&end, child, i * 64 + 63 + i), i);
	}
	do_at(&end, IBV_WR_RDMA_WRITE, 0, LENGTH);
	EXPECT_EQ(byte_of(&end, child, LENGTH - 1), ROUNDS);
	end_target(child);
}

TEST(rc_writes_to_a_target_that_is_stopped)
{
	expect_writes_while_stopped(IBV_QPT_RC, private_memory);
}

TEST(uc_writes_to_a_target_that_is_stopped)
{
	expect_writes_while_stopped(IBV_QPT_UC, private_memory);
}

TEST(uc_writes_to_shared_memory_of_a_target_that_is_stopped)
{
	expect_writes_while_stopped(IBV_QPT_UC, shared_memory);
}

TEST(xrc_writes_to_a_target_that_is_stopped)
{
	expect_writes_while_stopped(IBV_QPT_XRC_SEND, private_memory);
}

static void expect_reads_while_stopped(enum ibv_qp_type type)
{
	struct end end;
	pid_t child = begin_with_target(&end, type, private_memory);

	stop(child);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		memset(end.memory, (int)i, LENGTH);
		do_at(&end, IBV_WR_RDMA_WRITE, i * 64, 64 + i);
		memset(end.memory, 0xff, LENGTH);
		do_at(&end, IBV_WR_RDMA_READ, i * 64, 64 + i);
		EXPECT_EQ(end.memory[i * 64], i);
		EXPECT_EQ(end.memory[i * 64 + 63 + i], i);
	}
	end_target(child);
}

TEST(rc_reads_from_a_target_that_is_stopped)
{
	expect_reads_while_stopped(IBV_QPT_RC);
}

TEST(xrc_reads_from_a_target_that_is_stopped)
{
	expect_reads_while_stopped(IBV_QPT_XRC_SEND);
}

static void expect_atomics_while_stopped(enum ibv_qp_type type)
{
	struct end end;
	pid_t child = begin_with_target(&end, type, shared_memory);
	uint64_t word = 0;

	do_at(&end, IBV_WR_RDMA_WRITE, 8, 8); /* asks for the mapping */
	for (uint32_t i = 0; i < 100; i++) { /* until the mapping exists they go by packets */
		do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
		usleep(1000);
	}
	stop(child);
	for (uint32_t i = 100; i < 200; i++) {
		do_at(&end, IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 8);
		memcpy(&word, end.memory, sizeof(word));
		EXPECT_EQ(word, i);
	}
	end_target(child);
}

TEST(rc_atomics_on_shared_memory_of_a_target_that_is_stopped)
{
	expect_atomics_while_stopped(IBV_QPT_RC);
}

TEST(xrc_atomics_on_shared_memory_of_a_target_that_is_stopped)
{
	expect_atomics_while_stopped(IBV_QPT_XRC_SEND);
}

/*
 * A message that the target has not read keeps its place: the write behind it is sent and complete,
 * but not executed.
 */
TEST(uc_a_write_behind_a_message_to_a_target_that_is_stopped_follows_it)
{
	struct end end;
	pid_t child = begin_with_target(&end, IBV_QPT_UC, private_memory);

	stop(child);
	memset(end.memory, 0x5a, LENGTH);
	do_at(&end, IBV_WR_SEND, 0, 8); /* for which the target has no receive */
	do_at(&end, IBV_WR_RDMA_WRITE, 0, 100);
	EXPECT_EQ(byte_of(&end, child, 0), 0);
	EXPECT_EQ(kill(child, SIGCONT), 0);
	while (byte_of(&end, child, 99) != 0x5a)
		usleep(1000);
	end_target(child);
}

/* --- order --- */

/* A request for a part of the memory. */
struct part {
	enum ibv_wr_opcode opcode;
	uint32_t offset;
	uint32_t length;
};

/*
 * Starts a child that posts two requests in each round and waits for them. Before each round it
 * fills its memory with the round's number.
 */
static pid_t start_rounds(struct board *board, enum ibv_qp_type type, struct part first,
			  struct part second)
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { .type = type };

	meet_as_child(&end, board, private_memory());
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		await_step(board, 2 + i);
		memset(end.memory, (int)i, LENGTH);
		post_at(&end, first.opcode, first.offset, first.length);
		post_at(&end, second.opcode, second.offset, second.length);
		EXPECT_STR(poll_status(&end), "success");
		EXPECT_STR(poll_status(&end), "success");
	}
	for (;;)
		pause();
}

/*
 * The message says what was written before it, by a separate request that the initiator executes
 * itself.
 */
static void expect_written_before(struct end *end, uint32_t round)
{
	EXPECT_STR(poll_status(end), "success");
	for (uint32_t i = 8; i < LENGTH; i += 512)
		EXPECT_EQ(end->memory[i], round);
	EXPECT_EQ(end->memory[LENGTH - 1], round);
}

static void expect_order(enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	struct board *board = make_board();
	struct end end = { .type = peer_type(type) };
	pid_t child;

	begin();
	child = start_rounds(board, type, (struct part){ IBV_WR_RDMA_WRITE, 8, LENGTH - 8 },
			     (struct part){ IBV_WR_SEND, 0, 8 });
	meet_as_parent(&end, board, allocate());
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		receive_at(&end, 0, 8);
		reach_step(board, 2 + i);
		expect_written_before(&end, i);
	}
	end_target(child);
	close_end(&end);
}

TEST(rc_a_message_is_delivered_after_the_writes_before_it)
{
	expect_order(IBV_QPT_RC, private_memory);
}

TEST(rc_a_message_is_delivered_after_the_writes_to_a_shared_mapping_before_it)
{
	expect_order(IBV_QPT_RC, shared_memory);
}

TEST(uc_a_message_is_delivered_after_the_writes_before_it)
{
	expect_order(IBV_QPT_UC, private_memory);
}

TEST(uc_a_message_is_delivered_after_the_writes_to_a_shared_mapping_before_it)
{
	expect_order(IBV_QPT_UC, shared_memory);
}

TEST(xrc_a_message_is_delivered_after_the_writes_before_it)
{
	expect_order(IBV_QPT_XRC_SEND, private_memory);
}

/*
 * A word is a message's content, and the next request writes it: what was received is never newer
 * than what is in memory.
 */
TEST(uc_a_write_is_never_seen_before_the_message_before_it)
{
	struct board *board = make_board();
	struct end end = { .type = IBV_QPT_UC };
	const volatile uint8_t *written;
	pid_t child;

	begin();
	child = start_rounds(board, IBV_QPT_UC, (struct part){ IBV_WR_SEND, 0, 8 },
			     (struct part){ IBV_WR_RDMA_WRITE, 32, 8 });
	meet_as_parent(&end, board, shared_memory());
	written = end.memory + 32;
	for (uint32_t i = 1; i <= ROUNDS; i++) {
		receive_at(&end, 0, 8);
		reach_step(board, 2 + i);
		while (*written != i)
			EXPECT(ibv_poll_cq(end.cq, 0, NULL) == 0);
		EXPECT_EQ(end.memory[0], i);
		EXPECT_STR(poll_status(&end), "success");
	}
	end_target(child);
}

/* --- protection --- */

static void expect_unchanged(const uint8_t *memory)
{
	static uint8_t copy[LENGTH];

	memcpy(copy, memory, LENGTH);
	for (uint32_t i = 0; i < 5; i++) {
		usleep(1000);
		EXPECT_MEM(memory, copy, LENGTH);
	}
}

static void destroy_srq(struct end *end)
{
	EXPECT_EQ(ibv_destroy_srq(end->srq), 0);
	end->srq = NULL;
}

/* UC is not notified of a refusal. */
static void end_writer(pid_t child, enum ibv_qp_type type)
{
	if (type == IBV_QPT_UC)
		end_target(child);
	else
		expect_child_success(child);
}

static void expect_no_access_after(enum ibv_qp_type type, void (*close)(struct end *),
				   uint8_t *(*allocate)(void))
{
	begin();
	for (uint32_t i = 0; i < 10; i++) {
		struct board *board = make_board();
		struct end end = { .type = peer_type(type) };
		pid_t child = start_writer(board, type);

		meet_as_parent(&end, board, allocate());
		await_step(board, 6 + i);
		close(&end);
		expect_unchanged(end.memory);
		end_writer(child, type);
		close_end(&end);
	}
}

TEST(rc_no_access_happens_after_a_region_is_deregistered)
{
	expect_no_access_after(IBV_QPT_RC, deregister, private_memory);
}

TEST(rc_no_access_happens_after_a_region_of_shared_memory_is_deregistered)
{
	expect_no_access_after(IBV_QPT_RC, deregister, shared_memory);
}

TEST(rc_no_access_happens_after_a_qp_was_reset)
{
	expect_no_access_after(IBV_QPT_RC, reset, private_memory);
}

TEST(uc_no_access_happens_after_a_region_is_deregistered)
{
	expect_no_access_after(IBV_QPT_UC, deregister, private_memory);
}

TEST(uc_no_access_happens_after_a_qp_was_reset)
{
	expect_no_access_after(IBV_QPT_UC, reset, shared_memory);
}

TEST(xrc_no_access_happens_after_a_region_is_deregistered)
{
	expect_no_access_after(IBV_QPT_XRC_SEND, deregister, private_memory);
}

TEST(xrc_no_access_happens_after_the_shared_receive_queue_is_destroyed)
{
	expect_no_access_after(IBV_QPT_XRC_SEND, destroy_srq, private_memory);
}

static const char *write_with_wrong_key(enum ibv_qp_type type)
{
	struct end end;
	pid_t child = begin_with_target(&end, type, private_memory);
	const char *status;

	memset(end.memory, 0x5a, LENGTH);
	end.peer.rkey ^= 1;
	post_at(&end, IBV_WR_RDMA_WRITE, 0, 100);
	status = poll_status(&end);
	end.peer.rkey ^= 1;
	post_at(&end, IBV_WR_RDMA_WRITE, 200, 100); /* which comes after the other, or is flushed */
	(void)poll_status(&end);
	for (uint32_t i = 0; type == IBV_QPT_UC && byte_of(&end, child, 299) != 0x5a; i++)
		usleep(1000);
	EXPECT_EQ(byte_of(&end, child, 0), 0);
	end_target(child);
	return status;
}

TEST(rc_a_wrong_key_is_an_error_at_the_initiator)
{
	EXPECT_STR(write_with_wrong_key(IBV_QPT_RC), "remote access error");
}

TEST(uc_a_wrong_key_is_dropped_by_the_target)
{
	EXPECT_STR(write_with_wrong_key(IBV_QPT_UC), "success");
}

TEST(xrc_a_wrong_key_is_an_error_at_the_initiator)
{
	EXPECT_STR(write_with_wrong_key(IBV_QPT_XRC_SEND), "remote access error");
}

/* All threads of the child run only when no other thread wants the CPU. */
static void starve(pid_t child)
{
	struct sched_param parameter = { 0 };
	char path[64];
	struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)child);
	folder = opendir(path);
	EXPECT(folder);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			(void)sched_setscheduler(atoi(entry->d_name), SCHED_IDLE, &parameter);
	closedir(folder);
}

/* Starts children that take all the time of each CPU. */
static void start_spinners(pid_t *spinners, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		spinners[i] = fork_end();
		while (!spinners[i])
			;
	}
}

/*
 * A process that is killed in a copy still ends that copy once it gets a CPU. No other process goes
 * on before that.
 */
static void kill_writers(uint32_t kills, bool is_starved)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND };

	begin();
	for (uint32_t i = 0; i < kills; i++) {
		struct board *board = make_board();
		struct end end = { .type = peer_type(types[i % 3]) };
		pid_t child = start_writer(board, types[i % 3]);

		meet_as_parent(&end, board, private_memory());
		await_step(board, 4 + i % 5);
		if (is_starved)
			starve(child);
		usleep(i * 7 % 100);
		EXPECT_EQ(kill(child, SIGKILL), 0);
		deregister(&end);
		expect_unchanged(end.memory);
		end_target(child);
		close_end(&end);
		munmap(end.memory, LENGTH);
	}
}

TEST(a_writer_that_is_killed_in_the_middle_of_its_work_keeps_nobody_from_deregistering)
{
	kill_writers(test_is_thorough() ? 500 : 30, false);
}

TEST(a_writer_that_is_killed_and_gets_no_cpu_to_end_is_waited_for)
{
	pid_t spinners[SPINNERS];

	start_spinners(spinners, SPINNERS);
	kill_writers(10, true);
	for (uint32_t i = 0; i < SPINNERS; i++)
		end_target(spinners[i]);
}
