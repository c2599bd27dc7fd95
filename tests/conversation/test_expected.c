/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The short paths for the packet that a QP expects, and for sending when no other work is pending:
 * they check everything that the long paths check.
 */
#include "support_pair.h"

/* A SEND has arrived before: the very first packet takes the long path. */
static struct pair *connect_and_send(void)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 7, 100);
	post_send(p, A, 8, 8);
	settle(p);
	expect_completions(p, A, "wr=8 SUCCESS SEND");
	expect_completions(p, B, "wr=7 SUCCESS RECV len=8");
	return p;
}

TEST(an_expected_send_needs_the_right_to_write)
{
	struct pair *p = connect_and_send();
	struct vb_mr_init init = mr_init_at(p, B, RECV, RECV_STEP, 0);
	struct vb_sge sge = sge_at(p, B, RECV, 100);

	sge.lkey = vb_mr_key(make_mr(p, B, &init));
	EXPECT(try_post_recv_sges(p, B, 1, &sge, 1) == VB_OK);
	post_send(p, A, 2, 8);
	settle(p);
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, B, RECV, 8);
}

TEST(an_expected_send_with_a_wrong_icrc_is_dropped)
{
	struct pair *p = connect_and_send();

	post_recv(p, B, 1, 100);
	inject(p, B, "SEND_ONLY psn=1 len=8 ack bad-icrc");
	expect_dropped(p, B, ICRC, 1);
	expect_no_completion(p, B);
}

TEST(an_expected_send_behind_a_nak_lets_the_next_gap_be_naked)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 100);
	post_recv(p, B, 2, 100);
	inject(p, B, "SEND_ONLY psn=1 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK sequence");
	inject(p, B, "SEND_ONLY psn=0 len=8 ack");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	inject(p, B, "SEND_ONLY psn=2 len=8 ack");
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=1 NAK sequence");
}

TEST(a_short_send_waits_where_others_have_enough_on_its_way)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct vb_send_request request;
	struct vb_qp *other;
	struct pair *p;

	setup.flight_bytes_max = 1;
	p = pair_connect(&setup);
	other = make_qp(p, A);
	bring_up(p, A, other, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	post_send(p, A, 1, 8);
	expect_sent(p, A, "SEND_ONLY psn=0 len=8 ack");
	request = send_request(p, A, 2, 8);
	EXPECT(vb_qp_post_send(other, &request) == VB_OK);
	vb_qp_publish_and_ring(other);
	expect_silence(p, A);
}
