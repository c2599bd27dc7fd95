/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Direct access: an initiator executes its requests itself in the memory of a peer on the same
 * host. A QP or region is reached if the initiator accesses it in this way. What is particular to
 * UC and XRC: UC packets are not acknowledged, so a write is executed directly only if the peer has
 * read all earlier packets of the QP from the shared-memory link; otherwise it follows them as a
 * packet. XRC reaches the memory of the PD of the SRQ that a request names.
 */
#include "support_direct.h"

#include "nic/peer_memory.h"

/* --- UC --- */

TEST(uc_a_write_is_executed_by_its_initiator_and_nothing_is_sent)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_write(p, A, 1, 2000);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 2000);
	expect_untouched(p, B, TARGET + 2000, 16);
	expect_counter(p, A, DIRECT_PARTS, 1);
	EXPECT_EQ(direct_busy, 2); /* odd during the one access, and even again */
}

TEST(uc_a_write_of_length_0_is_executed)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_write(p, A, 1, 0);
	expect_executed(p, "wr=1 SUCCESS WRITE");
}

TEST(uc_psns_do_not_move_and_a_send_is_delivered_after_the_writes_before_it)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_recv(p, B, 1, 100);
	post_write(p, A, 1, 100);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "UC SEND_ONLY psn=0 len=10");
	expect_copied(p, A, LOCAL, B, TARGET, 100);
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS SEND");
	expect_counter(p, B, OUT_OF_SEQUENCE, 0);
}

TEST(uc_a_write_behind_packets_that_the_peer_has_not_read_follows_them_and_completes_at_once)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	post_write(p, A, 2, 20);
	write_shm_link();
	expect_sent(p, A, "UC SEND_ONLY psn=0 len=10", "UC WRITE_ONLY psn=1 len=20");
	expect_untouched(p, B, TARGET, 20);
	post_write(p, A, 3, 30);
	expect_sent(p, A, "UC WRITE_ONLY psn=2 len=30");
	expect_completions(p, A, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE");
	deliver(p);
	read_shm_link();
	post_write(p, A, 4, 40);
	expect_executed(p, "wr=4 SUCCESS WRITE");
	expect_counter(p, A, DIRECT_PARTS, 1);
	expect_copied(p, A, LOCAL, B, TARGET, 40);
}

TEST(uc_a_write_with_immediate_goes_out_and_those_behind_it_follow)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_recv(p, B, 1, 0);
	post_write(p, A, 1, 8);
	post_write_imm(p, A, 2, 8, 0x77);
	post_write(p, A, 3, 8);
	write_shm_link();
	expect_sent(p, A, "UC WRITE_ONLY_IMM psn=0 len=8 imm=0x77", "UC WRITE_ONLY psn=1 len=8");
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV_WRITE_IMM len=8 imm=0x77");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE", "wr=3 SUCCESS WRITE");
}

/* Other QPs also write to the link: their packets on it are not waited for. */
TEST(uc_packets_of_others_on_the_shm_link_do_not_matter)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_recv(p, B, 1, 100);
	post_send(p, A, 1, 10);
	write_shm_link();
	send_all(p, A);
	deliver(p);
	read_shm_link();
	write_shm_link();
	post_write(p, A, 2, 20);
	expect_executed(p, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE");
}

TEST(uc_what_was_lost_with_its_shm_link_is_not_waited_for)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post_send(p, A, 1, 10);
	write_shm_link();
	send_all(p, A);
	lose(p);
	renew_shm_link();
	post_write(p, A, 2, 20);
	expect_executed(p, "wr=1 SUCCESS SEND", "wr=2 SUCCESS WRITE");
	post_send(p, A, 3, 10);
	write_shm_link();
	send_all(p, A);
	post_write(p, A, 4, 20);
	expect_sent(p, A, "UC WRITE_ONLY psn=2 len=20");
}

/* As on the wire: the initiator never learns of the error. */
TEST(uc_a_write_with_a_wrong_key_is_dropped_by_the_target_and_succeeds_at_the_initiator)
{
	struct pair *p = connect_directly(VB_QP_UC);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey ^= 1; /* leads to the same row of the key table */
	post(p, A, request);
	post_write(p, A, 2, 20);
	write_shm_link();
	expect_sent(p, A, "UC WRITE_ONLY psn=0 len=10", "UC WRITE_ONLY psn=1 len=20");
	expect_untouched(p, B, TARGET, 20);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_dropped(p, B, REFUSED, 1);
	expect_copied(p, A, LOCAL, B, TARGET, 20);
	expect_state(p, A, VB_STATE_RTS);
	expect_state(p, B, VB_STATE_RTS);
}

TEST(uc_a_region_that_was_deregistered_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post(p, A, write_to_dropped_region(p));
	expect_sent(p, A, "UC WRITE_ONLY psn=0 len=10");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	EXPECT_EQ(node_of(p, B)->memory[TARGET], 0x55);
}

TEST(uc_a_qp_in_error_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_UC);

	modify_state(p, B, VB_STATE_ERR);
	post_write(p, A, 1, 10);
	expect_sent(p, A, "UC WRITE_ONLY psn=0 len=10");
	deliver(p);
	expect_untouched(p, B, TARGET, 10);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

/* The QP still receives, and still accepts its peer's requests. */
TEST(uc_a_qp_whose_send_queue_has_failed_is_reached)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post(p, B, with_wrong_lkey(p, send_request(p, B, 9, 10)));
	expect_silence(p, B);
	expect_state(p, B, VB_STATE_SQE);
	post_write(p, A, 1, 10);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 10);
}

TEST(uc_a_qp_in_rtr_gets_its_first_request_in_a_packet_and_its_event)
{
	struct pair *p = connect_directly_to_rtr(VB_QP_UC);

	post_write(p, A, 1, 10);
	expect_sent(p, A, "UC WRITE_ONLY psn=0 len=10");
	deliver(p);
	expect_events(p, B, "COMM_EST");
	post_write(p, A, 2, 20);
	expect_executed(p, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
	expect_no_event(p, B);
}

TEST(uc_a_wrong_lkey_fails_as_it_does_on_the_wire)
{
	struct pair *p = connect_directly(VB_QP_UC);

	post(p, A, with_wrong_lkey(p, write_request(p, A, 1, 10)));
	expect_executed(p, "wr=1 LOC_PROT_ERR");
	expect_state(p, A, VB_STATE_SQE);
}

/* Gives the request the data of two packets; the second has a wrong lkey. */
static struct vb_send_request with_wrong_second_lkey(struct pair *p, struct vb_send_request request)
{
	static struct vb_sge sges[2];

	sges[0] = sge_at(p, A, LOCAL, 1024);
	sges[1] = sge_at(p, A, LOCAL, 10);
	sges[1].lkey ^= 0x100;
	request.sges = sges;
	request.sge_count = 2;
	return request;
}

/* The peer has not yet read the beginning of a message that fails in the middle. */
TEST(uc_a_write_after_a_message_that_failed_half_sent_is_not_executed_before_it)
{
	struct pair *p = connect_directly(VB_QP_UC);
	struct vb_send_request request = with_wrong_second_lkey(p, write_request(p, A, 1, 1034));

	request.rkey ^= 1; /* the request goes out in packets */
	post(p, A, request);
	write_shm_link();
	expect_sent(p, A, "UC WRITE_FIRST psn=0 len=1024");
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	modify_state(p, A, VB_STATE_RTS);
	post_write(p, A, 2, 10);
	expect_sent(p, A, "UC WRITE_ONLY psn=1 len=10");
	expect_untouched(p, B, TARGET, 10);
}

/* What this call of vb_nic_transmit() has produced is not yet on the link. */
TEST(uc_a_message_that_fails_in_the_turn_that_began_it_is_not_overtaken)
{
	struct pair *p = connect_directly(VB_QP_UC);
	struct vb_slot slots[2];

	post(p, A, with_wrong_second_lkey(p, send_request(p, A, 1, 1034)));
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, 2), 1);
	write_shm_link();
	expect_completions(p, A, "wr=1 LOC_PROT_ERR");
	modify_state(p, A, VB_STATE_RTS);
	post_write(p, A, 2, 10);
	expect_sent(p, A, "UC WRITE_ONLY psn=1 len=10");
}

TEST(uc_a_local_operation_lets_the_write_behind_it_be_executed)
{
	struct pair *p = connect_directly(VB_QP_UC);
	struct vb_mw *mw = make_mw(p, A, VB_MW_TYPE_2);

	post(p, A, bind_request(p, A, 1, mw, LOCAL, 4096, VB_ACCESS_REMOTE_WRITE));
	post_write(p, A, 2, 10);
	expect_executed(p, "wr=1 SUCCESS BIND_MW", "wr=2 SUCCESS WRITE");
	expect_counter(p, A, DIRECT_PARTS, 1);
}

TEST(uc_a_long_write_is_done_in_parts_and_sqd_finishes_it)
{
	struct pair *p = connect_directly(VB_QP_UC);

	begin_long_write(p, write_request(p, A, 1, 0x40000));
	post_write(p, A, 2, 10);
	modify_state(p, A, VB_STATE_SQD);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 0x40000);
	modify_state(p, A, VB_STATE_RTS);
	expect_executed(p, "wr=2 SUCCESS WRITE");
}

TEST(uc_a_long_write_whose_shm_link_is_dropped_in_the_middle_goes_out_whole)
{
	struct pair *p = connect_directly_as(setup_of(VB_QP_UC, 4096));

	begin_long_write(p, write_request(p, A, 1, 0x20000 + 10));
	vb_nic_drop_link(node_of(p, A)->nic, SHM_LINK);
	set_bytes(p, B, TARGET, 0, 10);
	send_all(p, A);
	EXPECT_EQ(p->held_count, 0x20000 / 4096 + 1);
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 0x20000 + 10);
}

/* --- XRC --- */

TEST(xrc_writes_reads_and_atomics_are_executed_by_their_initiator)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);

	post_write(p, A, 1, 2000);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 2000);
	post_read(p, A, 2, 3000);
	expect_executed(p, "wr=2 SUCCESS READ len=3000");
	set_word(p, B, TARGET, 40);
	post_fetch_add(p, A, 3, 2);
	expect_executed(p, "wr=3 SUCCESS FETCH_ADD len=8");
	EXPECT_EQ(word_at(p, B, TARGET), 42);
	EXPECT_EQ(word_at(p, A, SINK), 40);
}

TEST(xrc_psns_do_not_move_and_a_send_is_delivered_after_the_writes_before_it)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);

	post_recv(p, B, 1, 100);
	post_write(p, A, 1, 100);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "XRC SEND_ONLY psn=0 len=10 ack");
	expect_copied(p, A, LOCAL, B, TARGET, 100);
	post_write(p, A, 3, 200); /* behind an unacknowledged request */
	expect_sent(p, A, "XRC WRITE_ONLY psn=1 len=200 ack");
	expect_untouched(p, B, TARGET + 100, 100);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=10");
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS SEND", "wr=3 SUCCESS WRITE");
}

TEST(xrc_a_wrong_key_is_refused_by_the_target_itself)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey ^= 1;
	post(p, A, request);
	expect_sent(p, A, "XRC WRITE_ONLY psn=0 len=10 ack");
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_untouched(p, B, TARGET, 10);
}

TEST(xrc_a_region_that_was_deregistered_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);

	post(p, A, write_to_dropped_region(p));
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_counter(p, A, DIRECT_PARTS, 1);
}

TEST(xrc_requests_of_length_0_need_their_srq)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct vb_send_request request = write_request(p, A, 1, 0);

	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	request.remote_srqn ^= 0x10000;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
}

/* Another SRQ of B, besides the one that requests name by default. */
static struct vb_srq *make_srq(struct pair *p, struct vb_pd *pd, struct vb_xrcd *xrcd)
{
	struct vb_srq_init init = {
		.depth = 4, .sge_max = 1, .xrcd = xrcd, .cq = node_of(p, B)->recv_cq
	};
	struct vb_srq *srq;

	EXPECT_EQ(vb_srq_create(pd, &init, &srq), VB_OK);
	return srq;
}

TEST(xrc_the_memory_is_that_of_the_srqs_pd)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct node *b = node_of(p, B);
	struct vb_srq *srq = make_srq(p, b->other_pd, b->xrcd);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 4096, RIGHTS_ALL);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.rkey = vb_mr_key(make_mr_in(p, B, b->other_pd, &init));
	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 10);
	request.remote_srqn = vb_srq_number(b->srq); /* its PD has no such key */
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_counter(p, A, DIRECT_PARTS, 1);
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
}

TEST(xrc_an_srq_that_is_gone_reaches_nothing)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct node *b = node_of(p, B);
	struct vb_srq *srq = make_srq(p, b->pd, b->xrcd);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	set_bytes(p, B, TARGET, 0x55, 10);
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	EXPECT_EQ(b->memory[TARGET], 0x55);
}

TEST(xrc_an_srq_of_another_domain_reaches_nothing)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct node *b = node_of(p, B);
	struct vb_send_request request = write_request(p, A, 1, 10);
	struct vb_xrcd *xrcd;
	struct vb_srq *srq;

	EXPECT_EQ(vb_xrcd_create(b->nic, &xrcd), VB_OK);
	srq = make_srq(p, b->pd, xrcd);
	request.remote_srqn = vb_srq_number(srq);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_untouched(p, B, TARGET, 10);
	EXPECT_EQ(vb_srq_destroy(srq), VB_OK);
	EXPECT_EQ(vb_xrcd_destroy(xrcd), VB_OK);
}

TEST(xrc_a_number_that_no_srq_has_reaches_nothing)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);
	struct vb_send_request request = write_request(p, A, 1, 10);

	request.remote_srqn = 0; /* a free row also has this number */
	post(p, A, request);
	request.remote_srqn = vb_srq_number(node_of(p, B)->srq) ^
			      0x10000; /* leads to the same row */
	post(p, A, request);
	expect_sent(p, A, "XRC WRITE_ONLY psn=0 len=10 ack", "XRC WRITE_ONLY psn=1 len=10 ack");
	expect_untouched(p, B, TARGET, 10);
}

TEST(xrc_a_target_that_publishes_its_tables_again_is_reached_by_them)
{
	struct pair *p = connect_directly(VB_QP_XRC_SEND);

	publish_again(p);
	post_write(p, A, 1, 10);
	expect_executed(p, "wr=1 SUCCESS WRITE");
}

TEST(xrc_a_qp_in_rtr_gets_its_first_request_in_a_packet_and_its_event)
{
	struct pair *p = connect_directly_to_rtr(VB_QP_XRC_SEND);

	post_write(p, A, 1, 10);
	expect_sent(p, A, "XRC WRITE_ONLY psn=0 len=10 ack");
	deliver(p);
	expect_events(p, B, "COMM_EST");
	settle(p);
	post_write(p, A, 2, 20);
	expect_executed(p, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS WRITE");
}

/* --- all services --- */

/* On the wire, the target would accept no packets of that service. */
TEST(a_qp_of_another_service_is_not_reached)
{
	struct pair *p = connect_directly(VB_QP_RC);
	vb_qpn qpn = vb_qp_number(node_of(p, B)->qp);
	const struct vb_peer_memory_tables *tables = &direct_peer_memory.tables;
	struct vb_qp_row *row =
		(struct vb_qp_row *)(uintptr_t)&tables->qp_rows[qpn.v & (tables->qp_row_count - 1)];

	EXPECT_EQ(row->service, VB_SERVICE_RC);
	row->service = VB_SERVICE_UC;
	post_write(p, A, 1, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=10 ack");
	expect_untouched(p, B, TARGET, 10);
}
