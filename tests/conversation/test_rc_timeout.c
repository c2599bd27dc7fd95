/* SPDX-License-Identifier: BSD-2-Clause */
/* RC: the local ACK timeout, the retries, and a peer that is dead. */
#include "support_pair.h"

static struct pair *pair_with_retries(uint8_t timeout, uint8_t retry_count)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.timeout = timeout;
	setup.retry_count = retry_count;
	return pair_connect(&setup);
}

TEST(rc_resends_a_lost_message_when_the_ack_timer_fires)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 1, 4096);
	post_send(p, A, 1, 1500);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_LAST psn=1 len=476 ack");
	lose(p);
	wait_ns(p, ACK_TIMEOUT_NS - 1);
	expect_silence(p, A);
	wait_until_work(p, A);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_LAST psn=1 len=476 ack");
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 1);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
}

TEST(rc_the_ack_timeout_is_4096_ns_times_2_to_the_t_and_at_most_four_times_that)
{
	struct pair *p = pair_with_retries(8, 2);
	uint64_t waited;

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	waited = wait_until_work(p, A);
	EXPECT(waited >= (4096ull << 8) && waited <= 4 * (4096ull << 8));
}

TEST(rc_the_wait_for_a_silent_peer_doubles_up_to_four_times_the_timeout)
{
	static const uint64_t times[] = { 1, 2, 4, 4, 4 };
	struct pair *p = pair_with_retries(14, 7);

	post_write(p, A, 1, 8);
	for (uint32_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		send_all(p, A);
		lose(p);
		EXPECT_EQ(wait_until_work(p, A), times[i] * ACK_TIMEOUT_NS);
	}
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	EXPECT_EQ(wait_until_work(p, A), ACK_TIMEOUT_NS);
}

TEST(rc_a_timeout_resends_only_what_is_not_acknowledged)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 700);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=0");
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_MIDDLE psn=1 len=256", "WRITE_LAST psn=2 len=188 ack");
}

TEST(rc_timeout_0_is_for_ever)
{
	struct pair *p = pair_with_retries(0, 7);

	post_write(p, A, 1, 8);
	send_all(p, A);
	lose(p);
	expect_rest(p, A);
}

static void expect_transmissions(uint8_t retry_count)
{
	struct pair *p = pair_with_retries(10, retry_count);

	post_write(p, A, 1, 8);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
	for (uint8_t i = 0; i < retry_count; i++) {
		lose(p);
		wait_until_work(p, A);
		expect_no_completion(p, A);
		expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
	}
	wait_until_completion(p, A);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
	expect_silence(p, A);
	expect_state(p, A, VB_STATE_ERR);
	expect_counter(p, A, RETRY_EXCEEDED_ERR, 1);
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, retry_count + 1u);
}

TEST(rc_retry_count_0_is_no_retry)
{
	expect_transmissions(0);
}

TEST(rc_retry_count_1_is_one_retry)
{
	expect_transmissions(1);
}

TEST(rc_retry_count_3_is_three_retries)
{
	expect_transmissions(3);
}

TEST(rc_retry_count_7_is_seven_retries_and_not_for_ever)
{
	expect_transmissions(7);
}

TEST(rc_a_dead_peer_ends_in_RETRY_EXC_ERR_and_flushes_the_rest_in_order)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, A, 9, 100);
	post_write(p, A, 1, 8);
	post_read(p, A, 2, 8);
	post_send_unsignaled(p, A, 3, 8);
	post_fetch_add(p, A, 4, 8);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	send_all(p, A);
	lose(p);
	wait_until_completion(p, A);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR", "wr=2 WR_FLUSH_ERR", "wr=3 WR_FLUSH_ERR",
			   "wr=4 WR_FLUSH_ERR", "wr=9 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_rest(p, A);
}

TEST(rc_progress_gives_the_retries_back)
{
	struct pair *p = pair_with_retries(10, 1);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	wait_until_work(p, A);
	send_all(p, A);
	lose(p);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	wait_until_work(p, A);
	expect_no_completion(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack");
}

TEST(rc_the_timer_stops_when_everything_is_acknowledged)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	EXPECT_EQ(vb_nic_deadline(p->node[A].nic), VB_NEVER);
	expect_rest(p, A);
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 0);
}

TEST(rc_progress_restarts_the_timer)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	wait_ns(p, ACK_TIMEOUT_NS / 2);
	inject(p, A, "ACKNOWLEDGE psn=0 msn=1");
	wait_ns(p, ACK_TIMEOUT_NS * 3 / 4);
	expect_silence(p, A);
	wait_until_work(p, A);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack");
}

TEST(rc_a_lost_read_request_is_repeated_whole)
{
	struct pair *p = pair_connect_rc(1024);

	post_read(p, A, 1, 2000);
	expect_sent(p, A, "READ_REQUEST psn=0 va=0x2080000 dma=2000");
	lose(p);
	wait_until_work(p, A);
	expect_sent(p, A, "READ_REQUEST psn=0 va=0x2080000 dma=2000");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=2000");
}

TEST(rc_an_ack_of_the_first_transmission_ends_the_repetition)
{
	struct pair *p = pair_connect_rc(1024);

	post_write(p, A, 1, 8);
	post_write(p, A, 2, 8);
	send_all(p, A);
	lose(p);
	wait_ns(p, 2 * ACK_TIMEOUT_NS);
	inject(p, A, "ACKNOWLEDGE psn=1 msn=2");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_silence(p, A);
}

TEST(rc_a_lost_last_packet_costs_one_timeout)
{
	struct pair *p = pair_connect_rc(256);

	post_write(p, A, 1, 600);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
	deliver_nth(p, 0);
	deliver_nth(p, 1);
	lose(p);
	expect_silence(p, B);
	wait_until_work(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_counter(p, A, LOCAL_ACK_TIMEOUT_ERR, 1);
	expect_copied(p, A, LOCAL, B, TARGET, 600);
}

TEST(rc_no_work_means_no_deadline)
{
	struct pair *p = pair_connect_rc(1024);

	expect_rest(p, A);
}

TEST(rc_each_qp_has_its_own_timer)
{
	struct pair *p = pair_with_retries(14, 2);
	struct vb_qp *quick = make_qp(p, A), *slow = p->node[A].qp;
	uint64_t waited;

	post_write(p, A, 1, 8);
	send_all(p, A);
	p->setup.timeout = 4;
	bring_up(p, A, quick, vb_qp_number(p->node[B].qp), VB_STATE_RTS);
	p->node[A].qp = quick;
	post_write(p, A, 2, 16);
	send_all(p, A);
	lose(p);
	waited = wait_until_work(p, A);
	EXPECT(waited >= (4096u << 4) && waited <= 4 * (4096u << 4));
	expect_sent(p, A, "WRITE_ONLY psn=0 len=16 ack");
	p->node[A].qp = slow;
}

/*
 * The retransmission has reached a local operation, which waits for its next turn, when the ACK
 * arrives after all.
 */
TEST(rc_a_late_ack_passes_a_local_operation_that_a_repetition_has_come_to)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.send_depth = 4;
	struct pair *p = pair_connect(&setup);
	struct vb_mw *mw = make_mw(p, A, VB_MW_TYPE_2);
	static struct vb_slot slot;

	post(p, A, bind_request(p, A, 1, mw, TARGET, 64, VB_ACCESS_REMOTE_READ));
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS BIND_MW");
	post_write(p, A, 2, 8);
	post(p, A, invalidate_request(3, vb_mw_key(mw)));
	send_all(p, A);
	p->now_ns += ACK_TIMEOUT_NS + 1;
	vb_nic_fire_timers(p->node[A].nic, p->now_ns);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, &slot, 1), 1);
	deliver(p);
	send_all(p, B);
	deliver(p);
	expect_completions(p, A, "wr=2 SUCCESS WRITE", "wr=3 SUCCESS LOCAL_INV");
	for (uint32_t i = 0; i < 4; i++)
		post_write(p, A, 10 + i, 8 + 8 * i);
	expect_sent(p, A, "WRITE_ONLY psn=1 len=8 ack", "WRITE_ONLY psn=2 len=16 ack",
		    "WRITE_ONLY psn=3 len=24 ack", "WRITE_ONLY psn=4 len=32 ack");
}
