/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long SENDs between two processes of one host. The receiver reads the data in the sender's memory:
 * by a mapping that it also has, or by the sender's pid. Where it can do neither, the data comes in
 * packets. The sender may be killed at any moment, and no message arrives that it did not send.
 */
#include "support_ends.h"

#include "abi/objects_priv.h"
#include "host/adapter/adapter.h"
#include "kernel_refuses.h"
#include "nic/nic.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 40, SHORTEST = 16 << 10, KILLS = 20 };

static uint64_t count_of(const struct end *end, enum vb_counter counter)
{
	struct vb_adapter *adapter = vb_abi_context_of(end->context)->adapter;

	return vb_nic_counters(vb_adapter_nic(adapter))->counts[counter];
}

static uint32_t length_of(uint32_t round)
{
	return SHORTEST + round * 1237 % (LENGTH - SHORTEST + 1);
}

static uint8_t byte_of(uint32_t round, uint32_t offset)
{
	return (uint8_t)(offset * 7 + (offset >> 8) + round);
}

/* --- data --- */

static pid_t start_sender(struct board *board, enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { .type = type };

	meet_as_child(&end, board, allocate());
	for (uint32_t i = 0; i < ROUNDS; i++) {
		for (uint32_t k = 0; k < LENGTH; k++)
			end.memory[k] = byte_of(i, k);
		await_step(board, 3 + i);
		do_at(&end, IBV_WR_SEND, 0, length_of(i));
	}
	await_step(board, 3 + ROUNDS);
	close_end(&end);
	_exit(0);
}

static void receive_round(struct end *end, struct board *board, uint32_t round)
{
	struct ibv_wc completion;
	int count;

	memset(end->memory, 0, LENGTH);
	receive_at(end, 0, LENGTH);
	reach_step(board, 3 + round);
	while ((count = ibv_poll_cq(end->cq, 1, &completion)) == 0)
		;
	EXPECT_EQ(count, 1);
	EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
	EXPECT_EQ(completion.byte_len, length_of(round));
	for (uint32_t k = 0; k < LENGTH; k++)
		EXPECT_EQ(end->memory[k], k < length_of(round) ? byte_of(round, k) : 0);
}

/* Returns how many trains the receiver took. */
static uint64_t exchange(enum ibv_qp_type type, uint8_t *(*allocate)(void))
{
	struct board *board = make_board();
	struct end end = { .type = peer_type(type) };
	pid_t child = start_sender(board, type, allocate);
	uint64_t trains;

	meet_as_parent(&end, board, private_memory());
	for (uint32_t i = 0; i < ROUNDS; i++)
		receive_round(&end, board, i);
	trains = count_of(&end, VB_COUNTER_RX_TRAINS);
	reach_step(board, 3 + ROUNDS);
	expect_child_success(child);
	close_end(&end);
	return trains;
}

TEST(data_is_read_from_private_memory)
{
	begin();
	EXPECT(exchange(IBV_QPT_RC, private_memory) > ROUNDS / 2);
}

TEST(data_is_read_from_shared_memory)
{
	begin();
	EXPECT(exchange(IBV_QPT_RC, shared_memory) > ROUNDS / 2);
}

TEST(data_of_xrc_is_read_too)
{
	begin();
	EXPECT(exchange(IBV_QPT_XRC_SEND, shared_memory) > ROUNDS / 2);
}

/* --- without permission --- */

static void forbid_reading(void)
{
	begin();
	if (!kernel_refuses(SYS_process_vm_readv, EPERM))
		SKIP("the kernel has no seccomp");
}

/* One message in many tries whether its data can be read. */
TEST(where_nothing_can_be_read_the_data_comes_in_packets)
{
	uint64_t trains;

	forbid_reading();
	trains = exchange(IBV_QPT_RC, private_memory);
	EXPECT(trains >= 1 && trains <= 3);
}

/* The first train asks for the mapping. */
TEST(shared_memory_is_read_by_its_mapping_alone)
{
	forbid_reading();
	EXPECT(exchange(IBV_QPT_RC, shared_memory) > ROUNDS / 4);
}

/* --- a sender that is killed --- */

/* Each message consists of one byte. */
static pid_t start_victim(struct board *board, uint8_t *(*allocate)(void))
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, allocate());
	reach_step(board, 3);
	for (uint32_t i = 0;; i++) {
		memset(end.memory, (int)i, LENGTH);
		do_at(&end, IBV_WR_SEND, 0, length_of(i));
	}
}

/* Until nothing has come for a while. */
static uint32_t receive_all(struct end *end)
{
	struct ibv_wc completion;
	uint32_t messages = 0;
	uint32_t looks = 0;

	receive_at(end, 0, LENGTH);
	while (looks < 100) {
		if (ibv_poll_cq(end->cq, 1, &completion) == 0) {
			usleep(1000);
			looks++;
			continue;
		}
		EXPECT_EQ(completion.status, IBV_WC_SUCCESS);
		for (uint32_t k = 1; k < completion.byte_len; k++)
			EXPECT_EQ(end->memory[k], end->memory[0]);
		messages++;
		looks = 0;
		receive_at(end, 0, LENGTH);
	}
	return messages;
}

static uint32_t outlive_one(struct end *end, uint32_t round)
{
	struct board *board = make_board();
	pid_t child = start_victim(board, round & 1 ? shared_memory : private_memory);
	uint32_t messages;

	end->qp = create_qp(end, IBV_QPT_RC);
	introduce_parent(end, board);
	await_step(board, 3);
	if (!fork_end()) { /* the child kills, since we are busy */
		usleep(round * 613 % 20000);
		kill(child, SIGKILL);
		_exit(0);
	}
	messages = receive_all(end);
	EXPECT(waitpid(child, NULL, 0) == child && wait(NULL) > 0);
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	return messages;
}

TEST(a_sender_that_is_killed_leaves_no_half_message)
{
	struct end end = { 0 };
	uint32_t messages = 0;

	begin();
	open_end(&end, private_memory());
	EXPECT_EQ(ibv_destroy_qp(end.qp), 0);
	for (uint32_t i = 0; i < KILLS; i++)
		messages += outlive_one(&end, i);
	EXPECT(messages > 0);
	EXPECT(count_of(&end, VB_COUNTER_RX_TRAINS) > 0);
	end.qp = create_qp(&end, IBV_QPT_RC);
	close_end(&end);
}
