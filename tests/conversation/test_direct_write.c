/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A short WRITE that is executed while it is being posted. Its results are those of the same
 * request when it is posted. Where anything prevents the direct write, it does nothing, and the
 * request has to be posted and ends as any posted request does.
 */
#include "support_direct.h"

#include "nic/peer_memory.h"

/* A newly connected QP has work to do, which is done here. */
static struct pair *connect_idle_as(struct setup setup)
{
	struct pair *p = connect_directly_as(setup);

	expect_silence(p, A);
	return p;
}

static struct pair *connect_idle(void)
{
	return connect_idle_as(setup_of(VB_QP_RC, 1024));
}

static bool write_at_once(struct pair *p, struct vb_send_request request)
{
	struct vb_qp *qp = node_of(p, A)->qp;

	if (!vb_qp_may_write_now(qp, &request))
		return false;
	vb_qp_expect_write(qp, &request);
	if (!vb_qp_write_now(qp, &request))
		return false;
	vb_qp_conclude_write(qp, &request, p->now_ns);
	return true;
}

static void expect_written(struct pair *p, uint64_t wr_id, uint32_t length)
{
	EXPECT(write_at_once(p, write_request(p, A, wr_id, length)));
}

/* The request is neither executed nor tried: no access is announced to the target. */
static void expect_refused(struct pair *p, struct vb_send_request request)
{
	uint64_t parts = vb_nic_counters(node_of(p, A)->nic)->counts[VB_COUNTER_DIRECT_PARTS];
	uint32_t busy = direct_busy;

	EXPECT(!write_at_once(p, request));
	EXPECT_EQ(direct_busy, busy);
	expect_counter(p, A, DIRECT_PARTS, parts);
}

static struct pair *connect_with_depth(uint32_t depth)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.send_depth = depth;
	return connect_idle_as(setup);
}

/* --- what a direct write does --- */

TEST(a_write_is_executed_and_complete_when_it_has_been_posted)
{
	struct pair *p = connect_idle();
	uint32_t before = direct_busy;

	expect_written(p, 1, 2000);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_no_completion(p, B);
	expect_copied(p, A, LOCAL, B, TARGET, 2000);
	expect_untouched(p, B, TARGET - 16, 16);
	expect_untouched(p, B, TARGET + 2000, 16);
	expect_counter(p, A, DIRECT_PARTS, 1);
	EXPECT_EQ(direct_busy, before + 2);
	expect_silence(p, A);
	expect_rest(p, A);
}

TEST(psn_and_msn_do_not_move_with_it)
{
	struct pair *p = connect_idle();

	expect_written(p, 1, 100);
	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS SEND");
}

TEST(the_completion_of_a_direct_write_has_the_time_of_its_post)
{
	struct pair *p = connect_idle();
	struct vb_completion completion;

	wait_ns(p, 5 * MS);
	expect_written(p, 1, 8);
	EXPECT_EQ(vb_cq_poll(node_of(p, A)->send_cq, &completion, 1), 1);
	EXPECT_EQ(completion.timestamp_ns, p->now_ns);
}

TEST(inline_data_are_written_without_a_key)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 48);
	struct vb_sge plain = { .address = (uintptr_t)node_of(p, A)->memory + LOCAL, .length = 48 };

	request.flags |= VB_SEND_INLINE;
	request.sges = &plain;
	EXPECT(write_at_once(p, request));
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 48);
}

TEST(direct_writes_and_posted_requests_share_one_queue)
{
	struct pair *p = connect_with_depth(4);

	for (uint32_t i = 0; i < 40; i++) { /* around the ring of the send queue more than once */
		struct vb_send_request request = write_request(p, A, i, 8);

		request.remote_address += i * 8;
		if (i % 3)
			EXPECT(write_at_once(p, request));
		else
			post(p, A, request);
		expect_silence(p, A);
		EXPECT_EQ(vb_cq_waiting(node_of(p, A)->send_cq), 1);
		EXPECT_EQ(vb_cq_poll(node_of(p, A)->send_cq, &(struct vb_completion){ 0 }, 1), 1);
		expect_copied(p, A, LOCAL, B, TARGET + i * 8, 8);
	}
	expect_counter(p, A, DIRECT_PARTS, 40);
}

TEST(a_request_posted_behind_a_direct_write_takes_the_next_slot)
{
	struct pair *p = connect_idle();

	post_recv(p, B, 1, 100);
	expect_written(p, 1, 8);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	modify_state(p, A, VB_STATE_ERR); /* only the posted request is flushed, and only once */
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 WR_FLUSH_ERR");
}

/* --- signaled or not --- */

TEST(a_direct_write_without_a_signal_keeps_its_slot_until_there_is_a_completion)
{
	struct pair *p = connect_with_depth(3);
	struct vb_send_request silent = write_request(p, A, 1, 8);

	silent.flags = 0;
	EXPECT(write_at_once(p, silent));
	EXPECT(write_at_once(p, silent));
	expect_no_completion(p, A);
	expect_written(p, 2, 8);
	expect_refused(p, silent); /* all slots are taken until the completion is polled */
	EXPECT_EQ(try_post(p, A, silent), VB_ENOMEM);
	expect_completions(p, A, "wr=2 SUCCESS WRITE");
	for (uint32_t i = 0; i < 3; i++)
		EXPECT(write_at_once(p, silent));
	expect_refused(p, silent);
	expect_no_completion(p, A);
}

TEST(a_qp_that_signals_all_signals_it)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.signal_all = true;
	struct pair *p = connect_idle_as(setup);
	struct vb_send_request request = write_request(p, A, 1, 8);

	request.flags = 0;
	EXPECT(write_at_once(p, request));
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(the_completion_of_a_direct_write_raises_the_event_of_an_armed_cq)
{
	struct pair *p = connect_idle();

	vb_cq_arm(node_of(p, A)->send_cq, false);
	expect_written(p, 1, 8);
	expect_events(p, A, "COMPLETION");
	vb_cq_arm(node_of(p, A)->send_cq, true); /* the completion is not solicited */
	expect_written(p, 2, 8);
	expect_no_event(p, A);
}

TEST(a_cq_that_runs_over_by_it_ends_its_qps)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.cq_depth = 2;
	struct pair *p = connect_idle_as(setup);

	expect_written(p, 1, 8);
	expect_written(p, 2, 8);
	expect_no_event(p, A);
	expect_written(p, 3, 8);
	expect_state(p, A, VB_STATE_ERR);
	expect_events(p, A, "CQ_ERR", "QP_FATAL");
	expect_refused(p, write_request(p, A, 4, 8));
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

/* --- requests that are not suitable --- */

TEST(only_a_write_with_one_buffer_is_worth_a_try)
{
	struct pair *p = connect_idle();
	const struct vb_qp *qp = node_of(p, A)->qp;
	struct vb_send_request request = write_request(p, A, 1, 8);
	struct vb_send_request read = read_request(p, A, 1, 8);
	struct vb_send_request send = send_request(p, A, 1, 8);
	struct vb_send_request add = fetch_add_request(p, A, 1, 1);

	EXPECT(vb_qp_may_write_now(qp, &request));
	EXPECT(!vb_qp_may_write_now(qp, &read));
	EXPECT(!vb_qp_may_write_now(qp, &send));
	EXPECT(!vb_qp_may_write_now(qp, &add));
	request.sge_count = 2;
	EXPECT(!vb_qp_may_write_now(qp, &request));
	request.sge_count = 0;
	EXPECT(!vb_qp_may_write_now(qp, &request));
	request.sge_count = 1;
	request.opcode = VB_WR_WRITE_IMM;
	EXPECT(!vb_qp_may_write_now(qp, &request));
}

TEST(a_write_that_is_not_short_takes_its_turns)
{
	struct pair *p = connect_idle();

	expect_written(p, 1, 4096);
	expect_refused(p, write_request(p, A, 2, 4097));
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 4096);
}

TEST(a_write_of_length_0_is_to_be_posted)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 0);

	request.rkey = 0;
	expect_refused(p, request);
	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
}

TEST(more_inline_data_than_the_qp_takes_are_refused_by_the_post)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.inline_max = 64;
	struct pair *p = connect_idle_as(setup);
	struct vb_send_request request = write_request(p, A, 1, 65);
	struct vb_sge plain = { .address = (uintptr_t)node_of(p, A)->memory + LOCAL, .length = 65 };

	request.flags |= VB_SEND_INLINE;
	request.sges = &plain;
	expect_refused(p, request);
	EXPECT_EQ(try_post(p, A, request), VB_EINVAL);
	plain.length = 64;
	EXPECT(write_at_once(p, request));
}

TEST(a_queue_without_buffers_takes_none)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.sge_max = 0;
	struct pair *p = connect_idle_as(setup);

	expect_refused(p, write_request(p, A, 1, 8));
	EXPECT_EQ(try_post(p, A, write_request(p, A, 1, 8)), VB_EINVAL);
}

TEST(uc_takes_the_long_way)
{
	struct pair *p = connect_idle_as(setup_of(VB_QP_UC, 1024));

	expect_refused(p, write_request(p, A, 1, 8));
}

TEST(xrc_takes_the_long_way)
{
	struct pair *p = connect_idle_as(setup_of(VB_QP_XRC_SEND, 1024));

	expect_refused(p, write_request(p, A, 1, 8));
}

TEST(a_qp_on_the_wire_has_nothing_to_reach)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 8);

	vb_nic_drop_link(node_of(p, A)->nic, SHM_LINK);
	EXPECT(!vb_qp_may_write_now(node_of(p, A)->qp, &request));
	/* A caller that asked just before the link was dropped learns of it now. */
	EXPECT(!vb_qp_write_now(node_of(p, A)->qp, &request));
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=8 ack");
}

/* --- requests before it --- */

TEST(behind_a_send_that_is_not_acknowledged_a_write_is_to_be_posted)
{
	struct pair *p = connect_idle();

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	expect_refused(p, write_request(p, A, 2, 8));
	settle(p);
	expect_written(p, 3, 8);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=3 SUCCESS WRITE");
}

TEST(behind_a_read_that_is_not_answered_a_write_is_to_be_posted_with_a_fence_or_without)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 2, 8);

	direct_peer_memory.method = VB_PEER_MEMORY_MAPPED;
	post_read(p, A, 1, 8);
	expect_sent(p, A, "READ_REQUEST psn=0");
	direct_peer_memory.method = VB_PEER_MEMORY_OWN;
	expect_refused(p, request);
	request.flags |= VB_SEND_FENCE;
	expect_refused(p, request);
}

TEST(behind_a_request_that_the_engine_has_not_seen_a_write_is_to_be_posted)
{
	struct pair *p = connect_idle();
	struct vb_qp *qp = node_of(p, A)->qp;
	struct vb_send_request first = write_request(p, A, 1, 8);

	EXPECT_EQ(vb_qp_post_send(qp, &first), VB_OK);
	expect_refused(p, write_request(p, A, 2, 8));
	EXPECT(vb_qp_publish_sends(qp)); /* the engine has still not been notified */
	expect_refused(p, write_request(p, A, 2, 8));
	vb_qp_ring_doorbell(qp);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_written(p, 2, 8);
}

TEST(behind_a_message_that_waits_for_a_receive_a_write_is_to_be_posted)
{
	struct pair *p = connect_idle();

	post_send(p, A, 1, 10);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 RNR_NAK 0.64 ms");
	deliver(p);
	expect_silence(p, A);
	expect_refused(p, write_request(p, A, 2, 8));
}

/* --- the QP's state --- */

TEST(a_queue_that_is_drained_starts_nothing)
{
	struct pair *p = connect_idle();

	modify_state(p, A, VB_STATE_SQD);
	expect_refused(p, write_request(p, A, 1, 8));
	expect_untouched(p, B, TARGET, 8);
	modify_state(p, A, VB_STATE_RTS);
	expect_silence(p, A);
	expect_written(p, 2, 8);
}

TEST(a_qp_in_error_flushes_it)
{
	struct pair *p = connect_idle();

	modify_state(p, A, VB_STATE_ERR);
	expect_refused(p, write_request(p, A, 1, 8));
	post_write(p, A, 1, 8);
	expect_executed(p, "wr=1 WR_FLUSH_ERR");
	expect_untouched(p, B, TARGET, 8);
}

TEST(before_rts_nothing_can_be_posted)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.state[A] = VB_STATE_RTR;
	struct pair *p = connect_idle_as(setup);

	expect_refused(p, write_request(p, A, 1, 8));
	EXPECT_EQ(try_post(p, A, write_request(p, A, 1, 8)), VB_EINVAL);
}

TEST(a_qp_that_was_reset_and_connected_anew_writes_at_once_again)
{
	struct pair *p = connect_idle();

	expect_written(p, 1, 8);
	modify_state(p, A, VB_STATE_RESET);
	expect_refused(p, write_request(p, A, 2, 8));
	bring_up(p, A, node_of(p, A)->qp, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	vb_qp_set_link(node_of(p, A)->qp, SHM_LINK, &direct_peer_memory);
	expect_silence(p, A);
	expect_written(p, 3, 8);
	expect_completions(p, A, "wr=3 SUCCESS WRITE");
}

/* --- other work --- */

TEST(when_another_qp_has_rung_a_write_waits_for_its_turn)
{
	struct pair *p = connect_idle();
	struct vb_qp *other = make_qp(p, A);

	bring_up(p, A, other, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	expect_silence(p, A);
	vb_qp_ring_doorbell(other);
	expect_refused(p, write_request(p, A, 1, 8));
	expect_silence(p, A);
	expect_written(p, 1, 8);
}

TEST(when_an_answer_is_owed_a_write_waits_for_its_turn)
{
	struct pair *p = connect_idle();

	post_write(p, B, 1, 8);
	expect_sent(p, B, "WRITE_ONLY psn=5000 len=8 ack");
	deliver(p);
	expect_refused(p, write_request(p, A, 1, 8));
	expect_sent(p, A, "ACKNOWLEDGE psn=5000 msn=1");
	expect_written(p, 1, 8);
}

/*
 * A window is reached by packets only: a program that keeps writing to one must not try each time.
 */
TEST(where_requests_are_refused_those_behind_them_are_not_tried)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_to_window(p, 1, 10);

	EXPECT(!write_at_once(p, request));
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	settle(p);
	expect_refused(p, request);
	expect_refused(p, write_request(p, A, 2, 8));
	post_write(p, A, 2, 8); /* which is executed directly */
	expect_executed(p, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_written(p, 3, 8);
}

/* --- wrong keys end as in posted requests --- */

TEST(local_memory_that_is_not_there_is_an_error_of_the_request)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 10);
	struct vb_sge sge = sge_at(p, A, LOCAL, 10);

	sge.lkey ^= 0x100;
	request.sges = &sge;
	expect_refused(p, request);
	post(p, A, request);
	expect_executed(p, "wr=1 LOC_PROT_ERR");
	expect_untouched(p, B, TARGET, 10);
}

TEST(local_memory_of_another_pd_is_an_error_of_the_request)
{
	struct pair *p = connect_idle();
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, RIGHTS_ALL);
	struct vb_send_request request = write_request(p, A, 1, 10);
	struct vb_sge sge = sge_at(p, A, LOCAL, 10);

	sge.lkey = vb_mr_key(make_mr_in(p, A, node_of(p, A)->other_pd, &init));
	request.sges = &sge;
	expect_refused(p, request);
	post(p, A, request);
	expect_executed(p, "wr=1 LOC_PROT_ERR");
}

TEST(local_memory_may_be_read_only)
{
	struct pair *p = connect_idle();
	struct vb_mr_init init = mr_init_at(p, A, LOCAL, 4096, 0);
	struct vb_send_request request = write_request(p, A, 1, 10);
	struct vb_sge sge = sge_at(p, A, LOCAL, 10);

	sge.lkey = vb_mr_key(make_mr(p, A, &init));
	request.sges = &sge;
	EXPECT(write_at_once(p, request));
	expect_copied(p, A, LOCAL, B, TARGET, 10);
}

TEST(a_region_of_nothing_is_not_memory)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 10);
	struct vb_sge sge = sge_at(p, A, LOCAL, 10);
	struct vb_mr *mr;

	EXPECT_EQ(vb_mr_create_null(node_of(p, A)->pd, &mr), VB_OK);
	sge.lkey = vb_mr_key(mr);
	request.sges = &sge;
	expect_refused(p, request);
	post(p, A, request);
	send_all(p, A);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	EXPECT_EQ(word_at(p, B, TARGET), 0);
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
}

TEST(a_wrong_remote_key_is_refused_by_the_target_itself)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey ^= 1; /* of the same row */
	EXPECT(!write_at_once(p, request));
	expect_no_completion(p, A);
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_untouched(p, B, TARGET, 10);
}

TEST(memory_that_cannot_be_reached_is_written_by_packets)
{
	struct pair *p = connect_idle();

	direct_peer_memory.method = VB_PEER_MEMORY_MAPPED; /* but nothing is mapped */
	EXPECT(!write_at_once(p, write_request(p, A, 1, 10)));
	expect_counter(p, A, DIRECT_PARTS, 0);
	expect_no_completion(p, A);
	post_write(p, A, 1, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
}

/* --- the hint before it --- */

/* The peer may have unmapped the memory since then, and a program may give any address. */
TEST(expecting_a_write_touches_no_memory)
{
	struct pair *p = connect_idle();
	struct vb_peer_memory_initiator initiator = { .shift = 1 };
	struct vb_send_request request = write_request(p, A, 1, 8);

	for (uint32_t bit = 0; bit < 64; bit++)
		vb_dma_peer_expect_write(&initiator, 1ull << bit);
	vb_dma_peer_expect_write(&initiator, UINT64_MAX); /* address 0 */
	vb_qp_expect_write(node_of(p, A)->qp, &request);
	EXPECT(write_at_once(p, request));
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	request.remote_address = UINT64_MAX;
	EXPECT(!write_at_once(p, request));
	expect_no_completion(p, A);
}
