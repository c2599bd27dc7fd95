/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching: which message goes to which buffer, and when the list and the program's count of
 * unexpected messages agree. tests/conversation/test_rendezvous.c has the messages without data.
 */
#include "support_tags.h"
#include "support_train.h"

#include "nic/tag_list_priv.h"

#include <string.h>

/* --- matching --- */

TEST(a_message_goes_to_the_buffer_of_its_tag_without_its_header)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	add_tag(p, 2, 0x22, 100);
	post_eager(p, 7, 0x22, 50);
	settle(p);
	expect_completions(p, A, "wr=7 SUCCESS SEND");
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=50 match tag=0x22 context=0xc0de valid");
	expect_copied(p, A, LOCAL + VB_TMH_SIZE, B, recv_at(2), 50);
	expect_untouched(p, B, recv_at(2) + 50, 50);
	expect_untouched(p, B, recv_at(1), 100);
}

TEST(a_matched_message_needs_no_receive)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_eager(p, 1, 0x11, 0);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=0 match tag=0x11 context=0xc0de valid");
	expect_counter(p, B, RNR_NAK_SENT, 0);
}

TEST(a_matched_message_of_many_packets_lies_in_one_piece)
{
	struct pair *p = pair_connect_tags(256);

	add_tag(p, 1, 0x11, 2000);
	post_eager(p, 1, 0x11, 1999);
	settle(p);
	expect_completions(p, B,
			   "wr=1 SUCCESS TM_RECV len=1999 match tag=0x11 context=0xc0de valid");
	expect_copied(p, A, LOCAL + VB_TMH_SIZE, B, recv_at(1), 1999);
	expect_untouched(p, B, recv_at(1) + 1999, 1);
}

TEST(a_buffer_of_several_pieces_is_filled_in_order)
{
	struct pair *p = pair_connect_tags(256);
	struct vb_sge sges[] = { sge_at(p, B, recv_at(3), 10), sge_at(p, B, recv_at(2), 300),
				 sge_at(p, B, recv_at(1), 0), sge_at(p, B, recv_at(0), 90) };
	struct vb_tag_request request = add_request(p, 1, 0x11, 0);
	uint32_t handle;

	request.sges = sges;
	request.sge_count = 4;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	post_eager(p, 1, 0x11, 400);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD",
			   "wr=1 SUCCESS TM_RECV len=400 match tag=0x11 context=0xc0de valid");
	expect_copied(p, A, LOCAL + VB_TMH_SIZE, B, recv_at(3), 10);
	expect_copied(p, A, LOCAL + VB_TMH_SIZE + 10, B, recv_at(2), 300);
	expect_copied(p, A, LOCAL + VB_TMH_SIZE + 310, B, recv_at(0), 90);
}

TEST(the_oldest_of_several_tags_that_match_is_taken_and_each_only_once)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	add_tag(p, 2, 0x11, 100);
	post_eager(p, 1, 0x11, 10);
	post_eager(p, 2, 0x11, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid",
			   "wr=2 SUCCESS TM_RECV len=20 match tag=0x11 context=0xc0de valid");
}

TEST(the_mask_says_which_bits_of_the_tag_count)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request masked = add_request(p, 1, 0x1100, 100);
	struct vb_tag_request any = add_request(p, 2, 0, 100);
	uint32_t handle;

	masked.mask = 0xff00;
	any.mask = 0;
	EXPECT_EQ(try_tag(p, masked, &handle), VB_OK);
	EXPECT_EQ(try_tag(p, any, &handle), VB_OK);
	post_eager(p, 1, 0x991234, 10);
	settle(p);
	post_eager(p, 2, 0x991122, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", "wr=2 SUCCESS TM_ADD",
			   "wr=2 SUCCESS TM_RECV len=10 match tag=0x991234 context=0xc0de valid",
			   "wr=1 SUCCESS TM_RECV len=20 match tag=0x991122 context=0xc0de valid");
}

TEST(a_tag_with_bits_outside_its_mask_matches_nothing)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request never = add_request(p, 1, 0x11, 100);
	uint32_t handle;

	never.mask = 0x10;
	EXPECT_EQ(try_tag(p, never, &handle), VB_OK);
	post_recv(p, B, 2, 100);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", "wr=2 SUCCESS TM_RECV len=26");
}

TEST(the_immediate_comes_with_the_match)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_send_request request = send_request(p, A, 1, VB_TMH_SIZE + 10);

	add_tag(p, 1, 0x11, 100);
	write_tmh(p, VB_TMH_EAGER, 0x11);
	request.opcode = VB_WR_SEND_IMM;
	request.imm = 0x2a;
	post(p, A, request);
	settle(p);
	expect_completions(
		p, B, "wr=1 SUCCESS TM_RECV len=10 imm=0x2a match tag=0x11 context=0xc0de valid");
}

TEST(a_duplicate_matches_nothing)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	add_tag(p, 2, 0x11, 100);
	post_eager(p, 1, 0x11, 10);
	send_all(p, A);
	deliver_nth(p, 0);
	deliver_nth(p, 0);
	lose(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid");
}

/* --- messages for the SRQ's receives --- */

TEST(an_unexpected_message_takes_a_receive_with_its_header)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_recv(p, B, 2, 100);
	post_eager(p, 1, 0x12, 50);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=66");
	EXPECT_MEM(p->node[B].memory + recv_at(2), p->node[A].memory + LOCAL, 66);
	expect_untouched(p, B, recv_at(1), 100);
}

TEST(an_unexpected_message_without_a_receive_waits_and_may_match_later)
{
	struct pair *p = pair_connect_tags(1024);

	post_eager(p, 1, 0x11, 50);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	add_tag(p, 1, 0x11, 100);
	wait_ns(p, 2 * MS);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=50 match tag=0x11 context=0xc0de valid");
	add_tag(p, 2, 0x11, 100); /* and was not counted */
}

TEST(messages_that_are_not_for_matching_take_receives_and_are_not_counted)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request any = add_request(p, 1, 0, 100);
	uint32_t handle;

	any.mask = 0;
	EXPECT_EQ(try_tag(p, any, &handle), VB_OK);
	for (uint64_t i = 2; i < 7; i++)
		post_recv(p, B, i, 100);
	write_tmh(p, VB_TMH_NO_TAG, 0x11);
	post_send(p, A, 1, 40);
	settle(p);
	write_tmh(p, VB_TMH_FIN, 0x11);
	post_send(p, A, 2, VB_TMH_SIZE);
	settle(p);
	write_tmh(p, VB_TMH_NO_TAG, 0x11);
	post_send(p, A, 3, 1); /* the opcode is enough */
	post_send(p, A, 4, 0); /* so is nothing */
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", "wr=2 SUCCESS TM_NO_TAG len=40",
			   "wr=3 SUCCESS TM_NO_TAG len=16", "wr=4 SUCCESS TM_NO_TAG len=1",
			   "wr=5 SUCCESS TM_NO_TAG len=0");
	add_tag(p, 7, 0x11, 100);
}

TEST(a_write_with_immediate_takes_a_receive)
{
	struct pair *p = pair_connect_tags(1024);

	post_recv(p, B, 2, 100);
	post_write_imm(p, A, 1, 8, 0x2a);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV_WRITE_IMM len=8 imm=0x2a");
}

/* A's adapter would let B read the data itself, but B must see the header first. */
TEST(a_message_that_comes_as_a_train_comes_again_in_packets)
{
	struct setup setup = train_setup(VB_QP_RC);
	struct pair *p;

	setup.has_srq = true;
	setup.tag_count = setup.tag_depth = TAGS;
	p = connect_for_trains_as(setup);
	add_tag(p, 1, 0x11, RECV_STEP);
	post_eager(p, 1, 0x11, 3000);
	expect_sent(p, A, "SEND_ONLY psn=0 len=0 ack packets=3 data=3016");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	deliver(p);
	settle(p);
	expect_completions(p, B,
			   "wr=1 SUCCESS TM_RECV len=3000 match tag=0x11 context=0xc0de valid");
	expect_copied(p, A, LOCAL + VB_TMH_SIZE, B, recv_at(1), 3000);
}

/* --- the count of unexpected messages --- */

/* One unexpected message, which the program has not reported. */
static struct pair *pair_out_of_sync(void)
{
	struct pair *p = pair_connect_tags(1024);

	for (uint64_t i = 4; i < 10; i++)
		post_recv(p, B, i, 100);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=4 SUCCESS TM_RECV len=26");
	return p;
}

TEST(a_tag_is_not_matched_before_the_counts_agree)
{
	struct pair *p = pair_out_of_sync();
	uint32_t handle;

	EXPECT_EQ(try_tag(p, add_request(p, 1, 0x11, 100), &handle), VB_OK);
	post_eager(p, 2, 0x11, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD sync", "wr=5 SUCCESS TM_RECV len=36");
	sync_tags(p, 2, 2);
	expect_completions(p, B, "wr=2 SUCCESS TM_SYNC");
	post_eager(p, 3, 0x11, 30);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=30 match tag=0x11 context=0xc0de valid");
}

TEST(a_tag_that_brings_the_right_count_is_matched_at_once)
{
	struct pair *p = pair_out_of_sync();
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	uint32_t handle;

	request.flags |= VB_TAG_HAS_COUNT;
	request.unexpected_count = 1;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	post_eager(p, 2, 0x11, 20);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD",
			   "wr=1 SUCCESS TM_RECV len=20 match tag=0x11 context=0xc0de valid");
}

TEST(a_count_that_is_behind_asks_for_another)
{
	struct pair *p = pair_out_of_sync();

	post_eager(p, 2, 0x11, 20);
	settle(p);
	expect_completions(p, B, "wr=5 SUCCESS TM_RECV len=36");
	sync_tags(p, 1, 1);
	sync_tags(p, 2, 2);
	expect_completions(p, B, "wr=1 SUCCESS TM_SYNC sync", "wr=2 SUCCESS TM_SYNC");
}

TEST(a_count_without_its_flag_is_ignored)
{
	struct pair *p = pair_out_of_sync();
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	uint32_t handle;

	request.unexpected_count = 1;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD sync");
}

TEST(tags_from_before_an_unexpected_message_are_still_matched)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_recv(p, B, 2, 100);
	post_eager(p, 1, 0x22, 10);
	post_send(p, A, 9, 0);
	settle(p);
	post_eager(p, 2, 0x11, 10);
	post_recv(p, B, 3, 100);
	settle(p);
	wait_ns(p, 2 * MS);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=26", "wr=3 SUCCESS TM_NO_TAG len=0",
			   "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid");
}

TEST(tags_that_waited_keep_their_order)
{
	struct pair *p = pair_out_of_sync();
	uint32_t handle;

	EXPECT_EQ(try_tag(p, add_request(p, 1, 0x11, 100), &handle), VB_OK);
	EXPECT_EQ(try_tag(p, add_request(p, 2, 0x11, 100), &handle), VB_OK);
	sync_tags(p, 9, 1);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD sync", "wr=2 SUCCESS TM_ADD sync",
			   "wr=9 SUCCESS TM_SYNC");
	add_tag(p, 3, 0x11, 100);
	for (uint64_t i = 1; i <= 3; i++)
		post_eager(p, i, 0x11, (uint32_t)i);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=1 match tag=0x11 context=0xc0de valid",
			   "wr=2 SUCCESS TM_RECV len=2 match tag=0x11 context=0xc0de valid",
			   "wr=3 SUCCESS TM_RECV len=3 match tag=0x11 context=0xc0de valid");
}

TEST(an_unexpected_message_that_is_lost_with_its_qp_is_not_counted)
{
	struct pair *p = pair_connect_tags(256);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	post_recv(p, B, 2, 1000);
	post_eager(p, 1, 0x11, 500);
	send_all(p, A);
	deliver_nth(p, 0);
	lose(p);
	modify_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=2 WR_FLUSH_ERR");
	add_tag(p, 1, 0x11, 100); /* the counts agree */
}

TEST(the_counts_wrap_as_those_of_hardware_do)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_list *list = p->node[B].srq->tags;

	list->unexpected = list->handled = UINT16_MAX;
	post_recv(p, B, 2, 100);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=26");
	sync_tags(p, 1, 0x10000);
	expect_completions(p, B, "wr=1 SUCCESS TM_SYNC");
}

TEST(a_program_that_never_reports_is_asked_to_before_the_counts_become_ambiguous)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_list *list = p->node[B].srq->tags;

	list->unexpected = 0x3ffe;
	post_recv(p, B, 2, 100);
	post_recv(p, B, 3, 100);
	post_eager(p, 1, 0x11, 10);
	post_eager(p, 2, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=26", "wr=3 SUCCESS TM_RECV len=26 sync");
}

/* --- operations --- */

TEST(a_deleted_tag_matches_nothing_and_makes_room)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t handle = add_tag(p, 1, 0x11, 100);

	post_recv(p, B, 4, 100);
	delete_tag(p, 9, handle);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=9 SUCCESS TM_DEL", "wr=4 SUCCESS TM_RECV len=26");
	sync_tags(p, 1, 1);
	expect_completions(p, B, "wr=1 SUCCESS TM_SYNC");
	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100);
}

TEST(deleting_a_tag_that_was_matched_is_TM_ERR)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t handle = add_tag(p, 1, 0x11, 100);

	post_eager(p, 1, 0x11, 10);
	settle(p);
	delete_tag(p, 9, handle);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid",
			   "wr=9 TM_ERR");
}

TEST(deleting_a_tag_whose_message_is_under_way_is_TM_ERR)
{
	struct pair *p = pair_connect_tags(256);
	uint32_t handle = add_tag(p, 1, 0x11, 1000);

	post_eager(p, 1, 0x11, 500);
	send_all(p, A);
	deliver_nth(p, 0);
	delete_tag(p, 9, handle);
	expect_completions(p, B, "wr=9 TM_ERR");
	deliver_nth(p, 1);
	deliver_nth(p, 2);
	lose(p);
	expect_completions(p, B,
			   "wr=1 SUCCESS TM_RECV len=500 match tag=0x11 context=0xc0de valid");
}

TEST(an_old_handle_does_not_delete_a_newer_tag)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t old = add_tag(p, 1, 0x11, 100);

	delete_tag(p, 9, old);
	expect_completions(p, B, "wr=9 SUCCESS TM_DEL");
	for (uint64_t i = 0; i < TAGS; i++)
		EXPECT(add_tag(p, i, i, 100) != old);
	delete_tag(p, 9, old);
	expect_completions(p, B, "wr=9 TM_ERR");
}

TEST(operations_that_are_not_signaled_complete_silently)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	struct vb_tag_request remove = { .opcode = VB_TAG_DELETE };
	uint32_t handle;

	request.flags = 0;
	EXPECT_EQ(try_tag(p, request, &remove.handle), VB_OK);
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	EXPECT_EQ(try_tag(p, remove, NULL), VB_OK);
	EXPECT_EQ(try_tag(p, remove, NULL), VB_OK); /* fails, silently as well */
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid");
}

TEST(operations_are_executed_before_a_message_that_comes_after_them)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	uint32_t handle;

	post_eager(p, 1, 0x11, 10);
	send_all(p, A);
	EXPECT_EQ(vb_srq_post_tag(p->node[B].srq, &request, &handle), VB_OK);
	deliver(p); /* B was not rung, nor has it sent anything */
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD",
			   "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid");
}

/* --- QPs and SRQs --- */

TEST(tags_serve_all_qps_of_the_srq)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	add_tag(p, 1, 0x11, 100);
	add_tag(p, 2, 0x22, 100);
	post_eager(p, 1, 0x22, 10);
	settle(p);
	p->node[A].qp = a;
	post_eager(p, 2, 0x11, 20);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=10 match tag=0x22 context=0xc0de valid",
			   "wr=1 SUCCESS TM_RECV len=20 match tag=0x11 context=0xc0de valid");
}

TEST(a_message_under_way_ends_with_its_qp_and_its_tag_is_used_up)
{
	struct pair *p = pair_connect_tags(256);

	add_tag(p, 1, 0x11, 1000);
	add_tag(p, 2, 0x22, 1000);
	post_eager(p, 1, 0x11, 500);
	send_all(p, A);
	deliver_nth(p, 0);
	lose(p);
	modify_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR");
	for (uint64_t i = 0; i + 1 < TAGS; i++)
		add_tag(p, i, i, 100);
}

TEST(a_reset_qp_gives_its_tag_back)
{
	struct pair *p = pair_connect_tags(256);

	add_tag(p, 1, 0x11, 1000);
	post_eager(p, 1, 0x11, 500);
	send_all(p, A);
	deliver_nth(p, 0);
	lose(p);
	modify_state(p, B, VB_STATE_RESET);
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR");
	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100);
}

TEST(completions_of_tags_outlive_the_qp)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_qp *b = p->node[B].qp;

	add_tag(p, 1, 0x11, 100);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	EXPECT_EQ(drop_qp(p, B, b), VB_OK);
	expect_completions(p, B, "wr=1 SUCCESS TM_RECV len=10 match tag=0x11 context=0xc0de valid");
}

TEST(a_cq_that_overruns_by_operations_ends_the_qps_of_the_srq)
{
	struct setup setup = tag_setup(1024);
	struct pair *p;
	uint32_t handle;

	setup.cq_depth = 1;
	p = pair_connect(&setup);
	EXPECT_EQ(try_tag(p, add_request(p, 1, 1, 10), &handle), VB_OK);
	EXPECT_EQ(try_tag(p, add_request(p, 2, 2, 10), &handle), VB_OK);
	expect_silence(p, B);
	expect_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD");
}

TEST(an_srq_with_tags_is_for_rc_only_and_needs_a_cq)
{
	struct pair *p = pair_connect_tags(1024);
	struct node *b = &p->node[B];
	struct vb_srq_init init = { .depth = 4, .cq = b->recv_cq, .tag_count = 4, .tag_depth = 4 };
	struct vb_qp_init qp_init = {
		.type = VB_QP_UD,
		.send_cq = b->send_cq,
		.recv_cq = b->recv_cq,
		.srq = b->srq,
	};
	struct vb_srq *srq;
	struct vb_qp *qp;

	EXPECT_EQ(vb_qp_create(b->pd, &qp_init, &qp), VB_EINVAL);
	qp_init.type = VB_QP_UC;
	EXPECT_EQ(vb_qp_create(b->pd, &qp_init, &qp), VB_EINVAL);
	init.cq = NULL;
	EXPECT_EQ(vb_srq_create(b->pd, &init, &srq), VB_EINVAL);
	init.cq = p->node[A].recv_cq;
	EXPECT_EQ(vb_srq_create(b->pd, &init, &srq), VB_EINVAL);
	init.cq = b->recv_cq;
	init.tag_depth = 0;
	EXPECT_EQ(vb_srq_create(b->pd, &init, &srq), VB_EINVAL);
	init.tag_depth = 4;
	init.tag_count = vb_nic_limits(b->nic).tags + 1;
	EXPECT_EQ(vb_srq_create(b->pd, &init, &srq), VB_EINVAL);
}
