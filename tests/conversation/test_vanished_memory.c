/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory that the program has unmapped: vb_dma_* fail, which ends in a completion error,
 * on both sides where there are two. This program has its own vb_dma_*, which fail in a range that
 * a test names.
 */
#include "support_pair.h"

#include "base/crc.h"
#include "base/dma.h"
#include "nic/peer_memory.h"

#include <string.h>

static vb_dma_addr gone_at;
static uint64_t gone_length;

static bool is_gone(vb_dma_addr address, size_t length)
{
	return length && address < gone_at + gone_length && gone_at < address + length;
}

static void *pointer(vb_dma_addr address)
{
	return (void *)(uintptr_t)address;
}

bool vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	if (is_gone(from, length))
		return false;
	memcpy(to, pointer(from), length);
	return true;
}

bool vb_dma_write(vb_dma_addr to, const void *from, size_t length)
{
	if (is_gone(to, length))
		return false;
	memcpy(pointer(to), from, length);
	return true;
}

bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length)
{
	if (is_gone(from, length))
		return false;
	*crc = vb_crc32(*crc, pointer(from), length);
	return true;
}

bool vb_dma_compare_swap(vb_dma_addr at, uint64_t compare, uint64_t swap, uint64_t *old)
{
	if (is_gone(at, 8))
		return false;
	memcpy(old, pointer(at), 8);
	if (*old == compare)
		memcpy(pointer(at), &swap, 8);
	return true;
}

bool vb_dma_fetch_add(vb_dma_addr at, uint64_t add, uint64_t *old)
{
	uint64_t sum;

	if (is_gone(at, 8))
		return false;
	memcpy(old, pointer(at), 8);
	sum = *old + add;
	memcpy(pointer(at), &sum, 8);
	return true;
}

bool vb_dma_atomic_store(vb_dma_addr at, const uint8_t bytes[8])
{
	if (is_gone(at, 8))
		return false;
	memcpy(pointer(at), bytes, 8);
	return true;
}

static void unmap(struct pair *p, enum side side, uint32_t offset, uint32_t length)
{
	gone_at = (uintptr_t)p->node[side].memory + offset;
	gone_length = length;
}

/* The responder refuses the request, because its own memory failed. */
static void expect_remote_failure(struct pair *p, struct vb_send_request request)
{
	unmap(p, B, TARGET, 0x1000);
	post_recv(p, B, 8, 16);
	post(p, A, request);
	post_write(p, A, 2, 8);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote operation");
	expect_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=8 WR_FLUSH_ERR");
	expect_events(p, B, "QP_FATAL");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR", "wr=2 WR_FLUSH_ERR");
	expect_untouched(p, B, TARGET, 0x1000);
}

TEST(write_to_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, write_request(p, A, 1, 100));
}

TEST(read_from_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, read_request(p, A, 1, 100));
}

TEST(a_long_read_from_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, read_request(p, A, 1, 1000));
}

TEST(fetch_add_on_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, fetch_add_request(p, A, 1, 5));
}

TEST(compare_swap_on_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, compare_swap_request(p, A, 1, 5, 6));
}

TEST(atomic_write_to_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	expect_remote_failure(p, atomic_write_request(p, A, 1));
}

TEST(a_read_whose_second_packet_is_gone_is_answered_up_to_there)
{
	struct pair *p = pair_connect_rc(1024);

	unmap(p, B, TARGET + 1024, 1);
	post_read(p, A, 1, 2048);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "READ_RESPONSE_FIRST psn=0 len=1024 msn=1",
		    "ACKNOWLEDGE psn=1 msn=0 NAK remote operation");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
}

TEST(a_receive_buffer_that_is_gone_is_LOC_PROT_ERR_and_REM_OP_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	unmap(p, B, recv_at(1), 1);
	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 100);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote operation");
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
}

static void expect_local_failure(struct pair *p, struct vb_send_request request)
{
	post_write(p, A, 1, 8);
	request.wr_id = 2;
	post(p, A, request);
	post_write(p, A, 3, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 LOC_PROT_ERR", "wr=3 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

TEST(a_short_send_from_memory_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 1000);
	unmap(p, A, LOCAL + 50, 1);
	expect_local_failure(p, send_request(p, A, 2, 100));
}

TEST(a_long_send_from_memory_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 1000);
	unmap(p, A, LOCAL + 900, 1);
	expect_local_failure(p, send_request(p, A, 2, 1000));
}

TEST(a_read_into_memory_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	unmap(p, A, SINK, 1);
	expect_local_failure(p, read_request(p, A, 2, 1000));
}

TEST(an_atomic_result_for_memory_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);

	unmap(p, A, SINK, 1);
	expect_local_failure(p, fetch_add_request(p, A, 2, 1));
}

TEST(memory_that_goes_between_two_packets_ends_the_message)
{
	struct pair *p = pair_connect_rc(1024);

	unmap(p, A, LOCAL + 1024, 1);
	post_write(p, A, 1, 2048);
	send_all(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
}

TEST(inline_data_that_cannot_be_read_are_EFAULT_and_nothing_is_posted)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = { (uintptr_t)p->node[A].memory + LOCAL, 8, 0 };
	struct vb_send_request request = write_request(p, A, 1, 0);

	request.sges = &sge;
	request.flags |= VB_SEND_INLINE;
	unmap(p, A, LOCAL, 8);
	EXPECT_EQ(try_post(p, A, request), VB_EFAULT);
	expect_rest(p, A);
}

TEST(uc_write_to_memory_that_is_gone_is_dropped)
{
	struct pair *p = pair_connect_uc(1024);

	unmap(p, B, TARGET, 1);
	inject(p, B, "UC WRITE_ONLY psn=0 len=8");
	expect_silence(p, B);
	expect_dropped(p, B, REFUSED, 1);
	expect_untouched(p, B, TARGET, 8);
	inject(p, B, "UC WRITE_ONLY psn=1 len=8 va=0x2080100");
	expect_injected(p, B, TARGET + 0x100, 8);
}

TEST(uc_send_from_memory_that_is_gone_is_LOC_PROT_ERR_and_SQE)
{
	struct pair *p = pair_connect_uc(1024);

	unmap(p, A, LOCAL, 1);
	post_send(p, A, 1, 1000);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_SQE);
}

TEST(ud_receive_buffer_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_ud(1024);

	unmap(p, B, recv_at(1), 1);
	post_recv(p, B, 1, 100);
	post_datagram(p, A, 1, 8);
	settle(p);
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
}

TEST(a_key_is_checked_before_memory_is_touched)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 8);

	unmap(p, B, TARGET, 8);
	request.rkey ^= 0x100;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
}

/* --- shared-memory links, whose packets have no ICRC --- */

static struct pair *connect_by_shm_link(void)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct pair *p = pair_connect(&setup);

	for (enum side side = A; side <= B; side++) {
		vb_qp_set_link(node_of(p, side)->qp, 1, NULL);
		vb_nic_set_link_room(node_of(p, side)->nic, 1, 10);
	}
	return p;
}

TEST(sending_by_shared_memory_from_memory_that_is_gone_is_LOC_PROT_ERR)
{
	struct pair *p = connect_by_shm_link();

	unmap(p, A, LOCAL, 0x2000);
	post_send(p, A, 1, 1000);
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
}

TEST(a_long_read_by_shared_memory_from_memory_that_is_gone_is_REM_OP_ERR)
{
	struct pair *p = connect_by_shm_link();

	expect_remote_failure(p, read_request(p, A, 1, 1000));
}
