/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC: NAKs. A sequence NAK sends the requester back to exactly that packet; all other NAKs end both
 * QPs.
 */
#include "support_pair.h"

TEST(rc_a_gap_is_naked_once_and_the_requester_goes_back_to_exactly_that_packet)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 1100);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_MIDDLE psn=2 len=256", "WRITE_MIDDLE psn=3 len=256",
		    "WRITE_LAST psn=4 len=76 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 2);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK sequence");
	deliver_nth(p, 3);
	deliver_nth(p, 4);
	expect_silence(p, B);
	expect_counter(p, B, OUT_OF_SEQUENCE, 3);
	deliver_nth(p, 5);
	lose(p);
	expect_counter(p, A, PACKET_SEQ_ERR, 1);
	expect_sent(p, A, "WRITE_MIDDLE psn=1 len=256", "WRITE_MIDDLE psn=2 len=256",
		    "WRITE_MIDDLE psn=3 len=256", "WRITE_LAST psn=4 len=76 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=4 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 1100);
}

TEST(rc_a_second_gap_after_the_first_was_filled_is_naked_again)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	inject(p, B, "WRITE_ONLY psn=0 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, B, "WRITE_ONLY psn=5 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
}

TEST(rc_a_sequence_nak_acknowledges_everything_before_its_psn)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	post_write(p, A, 3, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=2 msn=2 NAK sequence");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_sent(p, A, "WRITE_ONLY psn=2 len=10 ack");
}

TEST(rc_what_arrives_behind_a_gap_is_not_executed)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	inject(p, B, "SEND_ONLY psn=1 len=10 ack");
	inject(p, B, "WRITE_ONLY psn=2 len=10 ack");
	inject(p, B, "FETCH_ADD psn=3 add=1");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_no_completion(p, B);
	expect_untouched(p, B, TARGET, 16);
	expect_untouched(p, B, recv_at(1), 16);
}

TEST(rc_a_lost_first_packet_of_a_read_request_is_naked_by_what_follows)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 2000);
	post_write(p, A, 2, 10);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=2000", "WRITE_ONLY psn=2 len=10 ack");
	deliver_nth(p, 1);
	lose(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	deliver(p);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=2000", "WRITE_ONLY psn=2 len=10 ack");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=2000", "wr=2 SUCCESS WRITE");
}

TEST(rc_copies_of_a_sequence_nak_cause_one_repetition)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_silence(p, A);
	expect_counter(p, A, PACKET_SEQ_ERR, 1);
	expect_dropped(p, A, RESPONSE_WHILE_WAITING, 2);
	expect_no_completion(p, A);
}

TEST(rc_sequence_naks_without_progress_use_up_the_retries_as_timeouts_do)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	send_all(p, A);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	expect_no_completion(p, A);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	expect_silence(p, A);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
	expect_state(p, A, VB_STATE_ERR);
}

/* Each fatal NAK and its status; requests before it succeed, requests behind it are flushed. */
static void expect_fatal_nak(const char *nak, const char *status)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 10);
	post_write(p, A, 2, 10);
	post_write(p, A, 3, 10);
	send_all(p, A);
	lose(p);
	inject(p, A, nak);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", status, "wr=3 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_silence(p, A);
}

TEST(rc_nak_invalid_request_is_REM_INV_REQ_ERR)
{
	expect_fatal_nak("ACKNOWLEDGE psn=1 msn=1 NAK invalid request", "wr=2 REM_INV_REQ_ERR");
}

TEST(rc_nak_remote_access_is_REM_ACCESS_ERR)
{
	expect_fatal_nak("ACKNOWLEDGE psn=1 msn=1 NAK remote access", "wr=2 REM_ACCESS_ERR");
}

TEST(rc_nak_remote_operation_is_REM_OP_ERR)
{
	expect_fatal_nak("ACKNOWLEDGE psn=1 msn=1 NAK remote operation", "wr=2 REM_OP_ERR");
}

TEST(rc_nak_invalid_rd_is_REM_INV_RD_REQ_ERR)
{
	expect_fatal_nak("ACKNOWLEDGE psn=1 msn=1 NAK invalid RD", "wr=2 REM_INV_RD_REQ_ERR");
}

TEST(rc_the_fatal_nak_leaves_a_responder_that_is_in_error)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "WRITE_ONLY psn=0 len=8 rkey=0x1 ack");
	send_all(p, B);
	expect_state(p, B, VB_STATE_ERR);
	EXPECT_EQ(p->held_count, 1);
	EXPECT_STR(p->held[0].text, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	expect_silence(p, B);
}

TEST(rc_what_was_executed_before_a_fatal_nak_is_answered_before_it)
{
	struct pair *p = pair_connect_rc(1024);

	inject(p, B, "READ_REQUEST psn=0 dma=8");
	inject(p, B, "WRITE_ONLY psn=1 len=8 rkey=0x1 ack");
	expect_sent(p, B, "READ_RESPONSE_ONLY psn=0 len=8 msn=1",
		    "ACKNOWLEDGE psn=1 msn=1 NAK remote access");
}

TEST(rc_a_lost_fatal_nak_ends_in_RETRY_EXC_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey ^= 0x100;
	post(p, A, request);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_silence(p, B);
	expect_dropped(p, B, QP_STATE, 1);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	wait_until_completion(p, A);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
}

/* Packets that are not well-formed for their place in the message. */
static void expect_invalid(const char *first, const char *second, const char *nak)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, first);
	expect_silence(p, B);
	inject(p, B, second);
	expect_sent(p, B, nak);
	expect_state(p, B, VB_STATE_ERR);
}

static void expect_invalid_at_once(const char *packet)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	inject(p, B, packet);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request");
	expect_state(p, B, VB_STATE_ERR);
	expect_untouched(p, B, TARGET, 1024);
	expect_untouched(p, B, recv_at(1), 1024);
}

TEST(rc_send_first_shorter_than_the_mtu_is_an_invalid_request)
{
	expect_invalid_at_once("SEND_FIRST psn=0 len=252");
}

TEST(rc_send_first_longer_than_the_mtu_is_an_invalid_request)
{
	expect_invalid_at_once("SEND_FIRST psn=0 len=260");
}

TEST(rc_write_first_shorter_than_the_mtu_is_an_invalid_request)
{
	expect_invalid_at_once("WRITE_FIRST psn=0 len=128 dma=512");
}

TEST(rc_send_only_longer_than_the_mtu_is_an_invalid_request)
{
	expect_invalid_at_once("SEND_ONLY psn=0 len=257 ack");
}

TEST(rc_write_only_longer_than_the_mtu_is_an_invalid_request)
{
	expect_invalid_at_once("WRITE_ONLY psn=0 len=300 ack");
}

TEST(rc_send_middle_that_is_not_the_mtu_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "SEND_MIDDLE psn=1 len=255",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_write_middle_that_is_not_the_mtu_is_an_invalid_request)
{
	expect_invalid("WRITE_FIRST psn=0 len=256 dma=1000", "WRITE_MIDDLE psn=1 len=300",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_send_last_longer_than_the_mtu_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=300 ack",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_send_last_without_a_byte_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "SEND_LAST psn=1 len=0 ack",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_a_middle_without_a_first_is_an_invalid_request)
{
	expect_invalid_at_once("SEND_MIDDLE psn=0 len=256");
}

TEST(rc_a_last_without_a_first_is_an_invalid_request)
{
	expect_invalid_at_once("WRITE_LAST psn=0 len=100 ack");
}

TEST(rc_a_first_inside_a_message_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "SEND_FIRST psn=1 len=256",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_a_write_middle_inside_a_send_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_a_send_last_inside_a_write_is_an_invalid_request)
{
	expect_invalid("WRITE_FIRST psn=0 len=256 dma=300", "SEND_LAST psn=1 len=44 ack",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_a_read_inside_a_send_is_an_invalid_request)
{
	expect_invalid("SEND_FIRST psn=0 len=256", "READ_REQUEST psn=1 dma=8",
		       "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
}

TEST(rc_a_broken_message_with_a_receive_in_use_completes_that_receive)
{
	struct pair *p = pair_connect_rc(256);

	post_recv(p, B, 1, 4096);
	post_recv(p, B, 2, 4096);
	inject(p, B, "SEND_FIRST psn=0 len=256");
	inject(p, B, "SEND_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK invalid request");
	expect_completions(p, B, "wr=1 REM_INV_REQ_ERR", "wr=2 WR_FLUSH_ERR");
}
