/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process with two-sided and one-sided requests in both directions is killed at any moment, again
 * and again, while its peer lives on with one adapter. Requests of the peer end by their retries,
 * its memory has no byte that was written without permission, and nothing is left of the killed
 * processes: no descriptors, no mappings, no threads.
 */
#include "support_ends.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OPEN = LENGTH / 2, /* of the memory: the rest is never written */
	PART = 3000,
	UNTOUCHED = 0xe5,
	WARM_UP = 5, /* kills after which nothing more is kept */
};

/* --- the process that is killed --- */

static void post_something(struct end *end, uint32_t i)
{
	static const enum ibv_wr_opcode opcodes[] = { IBV_WR_RDMA_WRITE, IBV_WR_SEND,
						      IBV_WR_RDMA_READ,
						      IBV_WR_ATOMIC_FETCH_AND_ADD };
	enum ibv_wr_opcode opcode = opcodes[i % 4];
	uint32_t length = opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 1 + i * 37 % PART;

	post_at(end, opcode, i * 64 % (OPEN - PART), length);
}

static bool has_room(struct end *end, uint32_t *under_way)
{
	struct ibv_wc completions[16];
	int count = ibv_poll_cq(end->cq, 16, completions);

	for (int k = 0; k < count; k++) {
		if (completions[k].status != IBV_WC_SUCCESS)
			return false;
		*under_way -= completions[k].opcode != IBV_WC_RECV;
		if (completions[k].opcode == IBV_WC_RECV)
			receive_at(end, OPEN - PART, PART);
	}
	return true;
}

/* Both ends do the same: they keep requests and receives under way until the QP is in error. */
static void work_on(struct end *end, uint32_t seed)
{
	uint32_t under_way = 0;

	for (uint32_t i = 0; i < 16; i++)
		receive_at(end, OPEN - PART, PART);
	for (uint32_t i = seed; has_room(end, &under_way); i++) {
		if (under_way == 16)
			continue;
		post_something(end, i);
		under_way++;
	}
}

static pid_t start_victim(struct board *board, uint32_t round)
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, round & 1 ? shared_memory() : private_memory());
	reach_step(board, 3);
	work_on(&end, round);
	for (;;)
		pause();
}

/* --- the process that lives on --- */

static uint32_t count_entries(const char *path)
{
	DIR *directory = opendir(path);
	uint32_t count = 0;

	EXPECT(directory);
	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

static uint32_t count_mappings(void)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint32_t count = 0;
	char line[512];

	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "memfd:") != NULL;
	fclose(file);
	return count;
}

struct holdings {
	uint32_t descriptors, mappings, threads;
};

static struct holdings holdings_now(void)
{
	return (struct holdings){ count_entries("/proc/self/fd"), count_mappings(),
				  count_entries("/proc/self/task") };
}

/* What is left of the last process is released a little later. */
static void expect_no_more_than(struct holdings before, struct end *end)
{
	struct holdings now = holdings_now();

	for (uint32_t i = 0;
	     i < 5000 && (now.descriptors > before.descriptors || now.mappings > before.mappings ||
			  now.threads > before.threads);
	     i++) {
		EXPECT_EQ(ibv_poll_cq(end->cq, 0, NULL), 0);
		usleep(1000);
		now = holdings_now();
	}
	if (now.descriptors > before.descriptors || now.mappings > before.mappings ||
	    now.threads > before.threads)
		FAIL("%u descriptors, %u mappings, %u threads, and there were %u, %u and %u",
		     now.descriptors, now.mappings, now.threads, before.descriptors,
		     before.mappings, before.threads);
}

static void expect_untouched(const struct end *end)
{
	for (uint32_t i = OPEN; i < LENGTH; i++)
		EXPECT_EQ(end->memory[i], UNTOUCHED);
}

static void fill(struct end *end)
{
	memset(end->memory, UNTOUCHED, LENGTH);
}

static void empty(struct end *end)
{
	struct ibv_wc completions[16];

	while (ibv_poll_cq(end->cq, 16, completions) > 0)
		;
}

/* Each process has a board of its own, made before its first fork. */
static void outlive_one(struct end *end, uint32_t round)
{
	struct board *board = make_board();
	pid_t child = start_victim(board, round);

	end->qp = create_qp(end, IBV_QPT_RC);
	introduce_parent(end, board);
	await_step(board, 3);
	if (!fork_end()) { /* the child kills, since we are busy */
		usleep(round * 613 % 20000);
		kill(child, SIGKILL);
		_exit(0);
	}
	work_on(end, round);
	EXPECT(waitpid(child, NULL, 0) == child && wait(NULL) > 0);
	empty(end);
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	munmap(board, sizeof(*board));
	expect_untouched(end);
}

TEST(a_process_that_is_killed_at_any_moment_leaves_nothing_behind)
{
	uint32_t kills = test_is_thorough() ? 500 : 40;
	struct holdings before = { 0 };
	struct end end = { 0 };

	begin();
	open_end(&end, private_memory());
	fill(&end);
	EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
	for (uint32_t i = 0; i < kills; i++) {
		outlive_one(&end, i);
		if (i == WARM_UP) {
			usleep(100000);
			before = holdings_now();
		}
	}
	program_expect_in_log("path: shared memory");
	expect_no_more_than(before, &end);
	end.qp = create_qp(&end, IBV_QPT_RC);
	close_end(&end);
}
