/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: COMPARE_SWAP, FETCH_ADD and the atomic write, executed exactly once. */
#include "support_pair.h"

TEST(rc_fetch_add_adds_and_returns_what_was_there)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 100);
	post_fetch_add(p, A, 1, 5);
	expect_sent(p, A, "FETCH_ADD psn=0 va=0x2080000 add=0x5");
	deliver(p);
	EXPECT_EQ(word_at(p, B, TARGET), 105);
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x64");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, A, SINK), 100);
	expect_no_completion(p, B);
}

TEST(rc_fetch_add_wraps_around_at_64_bits)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, UINT64_MAX);
	post_fetch_add(p, A, 1, 2);
	settle(p);
	EXPECT_EQ(word_at(p, B, TARGET), 1);
	EXPECT_EQ(word_at(p, A, SINK), UINT64_MAX);
}

TEST(rc_compare_swap_swaps_when_equal)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 0x1122334455667788);
	post_compare_swap(p, A, 1, 0x1122334455667788, 0x99);
	expect_sent(p, A, "COMPARE_SWAP psn=0 swap=0x99 compare=0x1122334455667788");
	deliver(p);
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x1122334455667788");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS COMPARE_SWAP len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 0x99);
	EXPECT_EQ(word_at(p, A, SINK), 0x1122334455667788);
}

TEST(rc_compare_swap_only_reads_when_different)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 7);
	post_compare_swap(p, A, 1, 8, 0x99);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS COMPARE_SWAP len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 7);
	EXPECT_EQ(word_at(p, A, SINK), 7);
}

TEST(rc_a_repeated_atomic_is_answered_from_the_saved_result_and_not_executed_again)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 100);
	post_fetch_add(p, A, 1, 5);
	expect_sent(p, A, "FETCH_ADD psn=0 add=0x5");
	deliver(p);
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x64");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "FETCH_ADD psn=0 add=0x5");
	deliver(p);
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x64");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 105);
	EXPECT_EQ(word_at(p, A, SINK), 100);
	expect_counter(p, B, DUPLICATE_REQUEST, 1);
}

TEST(rc_a_repeated_compare_swap_reports_the_first_result_even_if_the_word_changed_since)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 1);
	inject(p, B, "COMPARE_SWAP psn=0 swap=2 compare=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x1");
	set_word(p, B, TARGET, 1);
	inject(p, B, "COMPARE_SWAP psn=0 swap=2 compare=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x1");
	EXPECT_EQ(word_at(p, B, TARGET), 1);
}

TEST(rc_as_many_atomics_are_remembered_as_the_responder_allows_to_be_out)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 2;
	struct pair *p = pair_connect(&setup);

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0",
		    "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	inject(p, B, "FETCH_ADD psn=0 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	EXPECT_EQ(word_at(p, B, TARGET), 2);
}

TEST(rc_a_repeated_atomic_whose_result_is_not_kept_any_more_is_dropped)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 1;
	struct pair *p = pair_connect(&setup);

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	inject(p, B, "FETCH_ADD psn=0 add=1");
	expect_silence(p, B);
	EXPECT_EQ(word_at(p, B, TARGET), 2);
	expect_dropped(p, B, OLD_DUPLICATE, 1);
}

TEST(rc_an_atomic_that_is_not_aligned_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.remote_address += 4;
	post(p, A, request);
	expect_sent(p, A, "FETCH_ADD psn=0 va=0x2080004 add=0x5");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_events(p, B, "QP_REQ_ERR");
	expect_untouched(p, B, TARGET, 16);
}

TEST(rc_an_atomic_with_a_sink_that_is_not_8_bytes_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = sge_at(p, A, SINK, 4);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.sges = &sge;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
}

TEST(rc_atomics_acknowledge_what_was_before_them)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_fetch_add(p, A, 2, 1);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack", "FETCH_ADD psn=1 add=0x1");
	lose(p);
	inject(p, A, "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x77");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, A, SINK), 0x77);
}

TEST(rc_a_missing_atomic_response_is_an_implied_nak)
{
	struct pair *p = pair_connect_rc(1024);

	set_word(p, B, TARGET, 0);
	post_fetch_add(p, A, 1, 1);
	post_fetch_add(p, A, 2, 1);
	expect_sent(p, A, "FETCH_ADD psn=0 add=0x1", "FETCH_ADD psn=1 add=0x1");
	deliver(p);
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0",
		    "ATOMIC_ACKNOWLEDGE psn=1 msn=2 orig=0x1");
	deliver_nth(p, 1);
	lose(p);
	expect_sent(p, A, "FETCH_ADD psn=0 add=0x1", "FETCH_ADD psn=1 add=0x1");
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS FETCH_ADD len=8", "wr=2 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 2);
	EXPECT_EQ(word_at(p, A, SINK), 1);
}

TEST(rc_an_atomic_result_that_cannot_be_stored_is_LOC_PROT_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = { IOVA_A + SINK, 8, 0x999 };
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.sges = &sge;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, A, SINK, 8);
}

TEST(rc_atomic_write_stores_8_bytes_and_is_answered_by_an_empty_read_response)
{
	struct pair *p = pair_connect_rc(1024);

	post(p, A, atomic_write_request(p, A, 1));
	expect_sent(p, A, "ATOMIC_WRITE psn=0 len=8 va=0x2080000 dma=8");
	deliver(p);
	expect_copied(p, A, LOCAL, B, TARGET, 8);
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS ATOMIC_WRITE");
}

TEST(rc_a_repeated_atomic_write_does_not_undo_a_later_write)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "ATOMIC_WRITE psn=0 len=8 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1");
	set_word(p, B, TARGET, 55);
	inject(p, B, "ATOMIC_WRITE psn=0 len=8 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1");
	EXPECT_EQ(word_at(p, B, TARGET), 55);
}

/* The length of a packet that is only repeated is not checked. */
TEST(rc_a_repeated_atomic_write_of_any_length_is_answered_once)
{
	struct pair *p = pair_connect_rc(256);

	inject(p, B, "ATOMIC_WRITE psn=0 len=8 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1");
	inject(p, B, "ATOMIC_WRITE psn=0 len=2048 dma=8");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=0 msn=1");
}

TEST(rc_an_atomic_write_that_is_not_aligned_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "ATOMIC_WRITE psn=0 len=8 va=0x2080004 dma=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_untouched(p, B, TARGET, 16);
}

TEST(rc_an_atomic_write_packet_of_another_length_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "ATOMIC_WRITE psn=0 len=16 dma=16");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_untouched(p, B, TARGET, 16);
}

TEST(rc_an_atomic_write_of_another_length_is_refused_when_posted)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_sge sge = sge_at(p, A, LOCAL, 16);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.sges = &sge;
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
}

TEST(rc_an_atomic_on_a_region_whose_memory_is_not_aligned_is_an_invalid_request)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET + 4, 0x100, RIGHTS_ALL);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	init.iova = 0x10000;
	request.rkey = vb_mr_key(make_mr(p, B, &init));
	request.remote_address = 0x10000;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_untouched(p, B, TARGET, 0x10);
}

TEST(rc_an_atomic_on_a_zero_based_region_works)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x100, RIGHTS_ALL | VB_ACCESS_ZERO_BASED);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	set_word(p, B, TARGET + 8, 1);
	request.rkey = vb_mr_key(make_mr(p, B, &init));
	request.remote_address = 8;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET + 8), 6);
}

TEST(rc_more_atomics_than_max_dest_rd_atomic_are_an_invalid_request_and_not_executed)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 1;
	struct pair *p = pair_connect(&setup);

	set_word(p, B, TARGET, 0);
	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "FETCH_ADD psn=1 add=1");
	expect_sent(p, B, "ATOMIC_ACKNOWLEDGE psn=0 msn=1 orig=0x0",
		    "ACKNOWLEDGE psn=1 msn=1 NAK invalid request");
	EXPECT_EQ(word_at(p, B, TARGET), 1);
}

TEST(rc_atomic_requests_are_counted)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "FETCH_ADD psn=0 add=1");
	inject(p, B, "COMPARE_SWAP psn=1 swap=1 compare=2");
	inject(p, B, "ATOMIC_WRITE psn=2 len=8 dma=8");
	expect_counter(p, B, RX_ATOMIC_REQUESTS, 3);
}

TEST(rc_an_atomic_write_may_be_inline_on_a_qp_without_inline_data)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct vb_send_request request;
	struct vb_sge sge;
	struct pair *p;
	uint64_t value = 0x1122334455667788;

	setup.inline_max = 0;
	p = pair_connect(&setup);
	request = atomic_write_request(p, A, 1);
	sge = (struct vb_sge){ (uint64_t)(uintptr_t)&value, 8, 0 };
	request.sges = &sge;
	request.sge_count = 1;
	request.flags |= VB_SEND_INLINE;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS ATOMIC_WRITE");
	EXPECT_EQ(word_at(p, B, TARGET), value);
}
