/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer on the same host: requests that the initiator itself executes in the target's memory,
 * based on the tables that the target publishes, and shared-memory links without room. Whatever the
 * tables do not plainly permit goes out in packets, and the target reports what is wrong.
 */
#include "support_direct.h"

#include "nic/peer_memory.h"

#include <string.h>

TEST(a_write_is_executed_by_its_initiator_and_nothing_is_sent)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post_write(p, A, 1, 2000);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_no_completion(p, B);
	expect_copied(p, A, LOCAL, B, TARGET, 2000);
	expect_untouched(p, B, TARGET - 16, 16);
	expect_untouched(p, B, TARGET + 2000, 16);
	expect_counter(p, A, DIRECT_PARTS, 1);
	EXPECT_EQ(direct_busy, 2);
}

TEST(a_read_is_executed_by_its_initiator)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post_read(p, A, 1, 3000);
	expect_executed(p, "wr=1 SUCCESS READ len=3000");
	expect_copied(p, B, TARGET, A, SINK, 3000);
}

TEST(inline_data_and_several_buffers_are_written_in_order)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = write_request(p, A, 1, 48);
	struct vb_sge sges[3] = { sge_at(p, A, LOCAL, 100), sge_at(p, A, LOCAL + 100, 1),
				  sge_at(p, A, LOCAL + 101, 899) };

	struct vb_sge plain = { .address = (uintptr_t)node_of(p, A)->memory + LOCAL, .length = 48 };

	request.flags |= VB_SEND_INLINE; /* a pointer instead of a key */
	request.sges = &plain;
	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 48);
	request = write_request(p, A, 2, 1000);
	request.sges = sges;
	request.sge_count = 3;
	request.remote_address += 0x100;
	post(p, A, request);
	expect_executed(p, "wr=2 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET + 0x100, 1000);
}

TEST(atomics_are_executed_by_their_initiator_where_it_has_the_page)
{
	struct pair *p = connect_directly(VB_QP_RC);

	set_word(p, B, TARGET, 40);
	post_fetch_add(p, A, 1, 2);
	expect_executed(p, "wr=1 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 42);
	EXPECT_EQ(word_at(p, A, SINK), 40);
	post_compare_swap(p, A, 2, 42, 7);
	expect_executed(p, "wr=2 SUCCESS COMPARE_SWAP len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 7);
	EXPECT_EQ(word_at(p, A, SINK), 42);
}

/* No memory is checked, but the QP is. */
TEST(requests_of_length_0_are_executed_without_a_key)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request write = write_request(p, A, 1, 0);
	struct vb_send_request read = read_request(p, A, 2, 0);
	struct vb_send_request empty = write_request(p, A, 3, 0);

	write.rkey = read.rkey = empty.rkey = 0;
	empty.sge_count = 0;
	empty.flags |= VB_SEND_INLINE;
	direct_peer_memory.method = VB_PEER_MEMORY_MAPPED;
	post(p, A, write);
	post(p, A, read);
	post(p, A, empty);
	expect_executed(p, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=0", "wr=3 SUCCESS WRITE");
	modify_state(p, B, VB_STATE_ERR);
	post(p, A, write);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=0 ack");
}

TEST(psn_and_msn_do_not_move)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post_write(p, A, 1, 100);
	expect_silence(p, A);
	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS SEND");
}

TEST(behind_a_send_that_is_not_acknowledged_a_write_goes_out_in_a_packet)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_write(p, A, 2, 20);
	expect_sent(p, A, "SEND_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=20 ack");
	expect_untouched(p, B, TARGET, 20);
	deliver(p);
	post_write(p, A, 3, 30); /* behind a WRITE: waits until nothing is outstanding */
	expect_silence(p, A);
	expect_untouched(p, B, TARGET + 20, 10);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=2");
	deliver(p);
	expect_silence(p, A);
	post_write(p, A, 4, 40);
	expect_silence(p, A);
	expect_counter(p, A, DIRECT_PARTS, 2);
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE",
			   "wr=4 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 40);
}

/*
 * A window is reached by packets only: a program that keeps writing to one must not wait for each
 * of them.
 */
TEST(where_requests_are_refused_those_behind_them_do_not_wait)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = write_to_window(p, 1, 10);

	for (uint32_t i = 0; i < 3; i++)
		post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=10 ack",
		    "WRITE_ONLY psn=2 len=10 ack");
}

TEST(a_wrong_key_is_refused_by_the_target_itself)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey ^= 1; /* of the same row */
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_untouched(p, B, TARGET, 10);
}

TEST(a_write_beyond_the_region_touches_nothing)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.mr_length = TARGET + 1000;
	struct pair *p = connect_directly_as(setup);
	struct vb_send_request request = write_request(p, A, 1, 1001);

	post(p, A, request);
	EXPECT(pair_has_packet(p, A));
	expect_untouched(p, B, TARGET, 1001);
	expect_counter(p, A, DIRECT_PARTS, 0);
}

TEST(what_the_qp_does_not_allow_goes_out_in_packets)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.qp_access = VB_ACCESS_REMOTE_READ;
	struct pair *p = connect_directly_as(setup);

	post_read(p, A, 1, 10);
	expect_executed(p, "wr=1 SUCCESS READ len=10");
	post_write(p, A, 2, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	expect_untouched(p, B, TARGET, 10);
}

TEST(a_target_without_resources_for_reads_refuses_them_itself)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.reads_in = 0;
	struct pair *p = connect_directly_as(setup);

	post_read(p, A, 1, 10);
	expect_sent(p, A, "READ_REQUEST psn=0");
}

TEST(a_qp_in_rtr_gets_its_first_request_in_a_packet_and_its_event)
{
	struct pair *p = connect_directly_to_rtr(VB_QP_RC);

	post_write(p, A, 1, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_events(p, B, "COMM_EST");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	post_write(p, A, 2, 20); /* from now on the QP is connected */
	expect_executed(p, "wr=2 SUCCESS WRITE");
}

TEST(a_region_that_was_deregistered_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post(p, A, write_to_dropped_region(p));
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	EXPECT_EQ(node_of(p, B)->memory[TARGET], 0x55);
}

TEST(a_qp_in_error_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_RC);

	modify_state(p, B, VB_STATE_ERR);
	post_write(p, A, 1, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	expect_untouched(p, B, TARGET, 10);
}

TEST(a_window_is_reached_by_packets_only)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post(p, A, write_to_window(p, 1, 10));
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(short_writes_that_were_posted_together_are_executed_together_and_in_order)
{
	struct pair *p = connect_directly(VB_QP_RC);
	uint32_t before = direct_busy;

	for (uint32_t i = 0; i < 10; i++) { /* each overlaps a part of the one before */
		struct vb_send_request request = write_request(p, A, i, 100);

		request.remote_address += i * 50;
		post(p, A, request);
	}
	expect_silence(p, A);
	EXPECT_EQ(direct_busy, before + 2);
	expect_counter(p, A, DIRECT_PARTS, 10);
	expect_completions(p, A, "wr=0 SUCCESS WRITE", "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE",
			   "wr=3 SUCCESS WRITE", "wr=4 SUCCESS WRITE", "wr=5 SUCCESS WRITE",
			   "wr=6 SUCCESS WRITE", "wr=7 SUCCESS WRITE", "wr=8 SUCCESS WRITE",
			   "wr=9 SUCCESS WRITE");
	for (uint32_t i = 0; i < 9; i++)
		expect_copied(p, A, LOCAL, B, TARGET + i * 50, 50);
	expect_copied(p, A, LOCAL, B, TARGET + 450, 100);
}

TEST(requests_behind_a_refused_request_are_not_executed_before_it)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request wrong = write_request(p, A, 2, 10);

	wrong.rkey ^= 0x100;
	post_write(p, A, 1, 10);
	post(p, A, wrong);
	post_write(p, A, 3, 200);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack", "WRITE_ONLY psn=1 len=200 ack");
	expect_copied(p, A, LOCAL, B, TARGET, 10);
	expect_untouched(p, B, TARGET + 10, 190);
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 REM_ACCESS_ERR", "wr=3 WR_FLUSH_ERR");
	expect_untouched(p, B, TARGET + 10, 190);
}

TEST(a_long_write_is_done_in_parts_and_completes_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	uint32_t turns = 0;

	post_write(p, A, 1, 0x40000);
	while (vb_nic_has_work(node_of(p, A)->nic)) {
		struct vb_slot slot;

		expect_no_completion(p, A);
		EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, &slot, 1), 0);
		turns++;
	}
	EXPECT(turns > 1);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 0x40000);
}

/* The target closes the region between two parts: all of the request is sent again, and refused. */
TEST(a_long_write_whose_region_goes_away_in_the_middle_ends_in_an_error)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_mr *mr;

	begin_long_write(p, write_to_region(p, 1, 0x40000, &mr));
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
}

TEST(a_write_in_parts_that_is_flushed_leaves_nothing_behind_for_the_next)
{
	struct pair *p = connect_directly(VB_QP_RC);

	begin_long_write(p, write_request(p, A, 1, 0x40000));
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR");
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, node_of(p, A)->qp, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	vb_qp_set_link(node_of(p, A)->qp, SHM_LINK, &direct_peer_memory);
	set_bytes(p, B, TARGET, 0, 100);
	post_write(p, A, 2, 100);
	expect_executed(p, "wr=2 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 100);
}

TEST(sqd_finishes_a_long_write_that_is_begun_and_then_raises_its_event)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_qp_attr attr = { .state = VB_STATE_SQD, .sqd_notify = true };

	begin_long_write(p, write_request(p, A, 1, 0x40000));
	post_write(p, A, 2, 10);
	EXPECT_EQ(vb_qp_modify(node_of(p, A)->qp, &attr, VB_ATTR_STATE | VB_ATTR_SQD_NOTIFY),
		  VB_OK);
	expect_no_event(p, A);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_events(p, A, "SQ_DRAINED");
	expect_copied(p, A, LOCAL, B, TARGET, 0x40000);
}

TEST(local_memory_that_is_not_there_ends_as_it_does_on_the_wire)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post(p, A, with_wrong_lkey(p, write_request(p, A, 1, 10)));
	expect_executed(p, "wr=1 LOC_PROT_ERR");
}

TEST(the_rows_may_hold_anything)
{
	struct pair *p = connect_directly(VB_QP_RC);

	memset((void *)(uintptr_t)direct_peer_memory.tables.key_rows, 0xff,
	       direct_peer_memory.tables.key_row_count * sizeof(struct vb_key_row));
	memset((void *)(uintptr_t)direct_peer_memory.tables.qp_rows, 0xff,
	       direct_peer_memory.tables.qp_row_count * sizeof(struct vb_qp_row));
	post_write(p, A, 1, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
}

TEST(a_target_that_publishes_its_tables_again_is_reached_by_them)
{
	struct pair *p = connect_directly(VB_QP_RC);

	vb_nic_publish(node_of(p, B)->nic, NULL);
	modify_state(p, B, VB_STATE_SQD);
	modify_state(p, B, VB_STATE_RTS);
	publish_again(p);
	post_write(p, A, 1, 10);
	expect_executed(p, "wr=1 SUCCESS WRITE");
}

/* --- shared-memory links --- */

TEST(a_shm_link_without_room_holds_its_qps_until_it_has_some)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_nic *nic = node_of(p, A)->nic;

	vb_nic_set_link_room(nic, SHM_LINK, 2);
	post_recv(p, B, 1, 3000);
	post_send(p, A, 1, 3000);
	expect_sent(p, A, "SEND_FIRST psn=0 len=1024", "SEND_MIDDLE psn=1 len=1024");
	EXPECT(vb_nic_has_qps_without_room(nic) && !vb_nic_has_work(nic));
	vb_nic_set_link_room(nic, SHM_LINK + 1, ROOM);
	EXPECT(vb_nic_has_qps_without_room(nic));
	vb_nic_set_link_room(nic, SHM_LINK, 1);
	expect_sent(p, A, "SEND_LAST psn=2 len=952 ack");
	deliver(p);
	settle(p);
	vb_nic_set_link_room(nic, SHM_LINK, 1);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, "wr=1 SUCCESS RECV len=3000");
}

TEST(a_qp_that_waits_for_room_can_be_reset_and_destroyed)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_qp *qp = make_qp(p, A);

	bring_up(p, A, qp, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	vb_qp_set_link(qp, SHM_LINK, NULL);
	expect_silence(p, A);
	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, 0);
	post_send(p, A, 1, 10);
	expect_silence(p, A);
	EXPECT(vb_nic_has_qps_without_room(node_of(p, A)->nic));
	modify_state(p, A, VB_STATE_RESET);
	EXPECT(!vb_nic_has_qps_without_room(node_of(p, A)->nic));
	EXPECT_EQ(drop_qp(p, A, qp), VB_OK);
}

TEST(packets_on_a_shm_link_have_no_icrc_and_join_no_batch)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.batch_segments_max = 8;
	struct pair *p = connect_directly_as(setup);
	struct vb_slot slots[4];

	post_recv(p, B, 1, 3000);
	post_send(p, A, 1, 2048);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, 4), 2);
	for (uint32_t i = 0; i < 2; i++) {
		EXPECT_EQ(slots[i].path.link, SHM_LINK);
		EXPECT(!slots[i].continues && !slots[i].ip_id);
	}
}
