/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared-memory links: the ACKs that are piggybacked on their packets, and what takes no turn of
 * the engine.
 */
#include "support_direct.h"

#include "nic/peer_memory.h"
#include "nic/rings.h"

/* A, whose QP has the link, owes an ACK for B's request 3, and has posted a SEND. */
static struct pair *owe_and_post(void)
{
	struct pair *p = connect_directly(VB_QP_RC);

	post_recv(p, A, 1, 100);
	post_recv(p, B, 2, 100);
	post_send(p, B, 3, 8);
	expect_sent(p, B, "SEND_ONLY psn=5000 len=8 ack");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS RECV len=8");
	post_send(p, A, 4, 8);
	return p;
}

static void take_slot(struct pair *p, struct vb_slot *slot)
{
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slot, 4), 1);
	EXPECT_EQ(slot->path.link, SHM_LINK);
	EXPECT(slot->piggyback_ack.is_there);
}

static void bring(struct pair *p, enum side to, const struct vb_slot *slot, uint16_t shm_link)
{
	uint8_t bytes[2048];
	struct vb_frame frame = {
		.path.ip = slot->path.ip,
		.flow_mark = vb_flow_mark(&slot->path.ip),
		.path.link = shm_link,
		.piggyback_ack = slot->piggyback_ack,
		.head = { bytes, slot->length },
	};

	EXPECT(slot->length <= sizeof(bytes));
	EXPECT(vb_slot_gather(slot, bytes));
	vb_nic_receive(node_of(p, to)->nic, p->now_ns, &frame, 1);
}

static void receive(struct pair *p, const struct vb_slot *slot)
{
	bring(p, B, slot, SHM_LINK);
}

TEST(an_ack_rides_on_a_request_of_a_shm_link)
{
	struct pair *p = owe_and_post();
	struct vb_slot slots[4];

	take_slot(p, slots);
	EXPECT_EQ(slots[0].piggyback_ack.psn.v, 5000);
	EXPECT_EQ(slots[0].piggyback_ack.aeth.msn, 1);
	EXPECT_EQ(vb_syndrome_kind(slots[0].piggyback_ack.aeth.syndrome), VB_SYNDROME_ACK);
	expect_silence(p, A);
}

TEST(what_rides_is_taken_before_what_it_rides_on)
{
	struct pair *p = owe_and_post();
	struct vb_slot slots[4];

	take_slot(p, slots);
	receive(p, &slots[0]);
	expect_completions(p, B, "wr=3 SUCCESS SEND", "wr=2 SUCCESS RECV len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
}

TEST(a_nak_may_ride_too)
{
	struct pair *p = owe_and_post();
	struct vb_slot slots[4];

	take_slot(p, slots);
	slots[0].piggyback_ack.aeth.syndrome = VB_SYNDROME_NAK | VB_NAK_REMOTE_ACCESS;
	receive(p, &slots[0]);
	expect_state(p, B, VB_STATE_ERR);
	expect_completions(p, B, "wr=3 REM_ACCESS_ERR", "wr=2 WR_FLUSH_ERR");
}

TEST(what_rides_acknowledges_nothing_that_was_not_sent)
{
	struct pair *p = owe_and_post();
	struct vb_slot slots[4];

	take_slot(p, slots);
	slots[0].piggyback_ack.psn.v = 5005;
	receive(p, &slots[0]);
	expect_dropped(p, B, NOT_OUR_RESPONSE, 1);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=8");
}

TEST(what_rides_on_a_packet_from_elsewhere_is_refused_with_it)
{
	struct pair *p = owe_and_post();
	struct vb_slot slots[4];

	take_slot(p, slots);
	slots[0].path.ip.source.raw[15] ^= 1;
	receive(p, &slots[0]);
	expect_dropped(p, B, ADDRESS, 2);
	expect_no_completion(p, B);
}

TEST(on_the_wire_an_ack_is_a_packet)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_slot slots[4];

	post_recv(p, A, 1, 100);
	post_send(p, B, 3, 8);
	expect_sent(p, B, "SEND_ONLY psn=5000 len=8 ack");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS RECV len=8");
	post_send(p, A, 4, 8);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, 4), 2);
	EXPECT(!slots[0].piggyback_ack.is_there && !slots[1].piggyback_ack.is_there);
}

/* Without a doorbell, as an owner thread posts that can drive the port itself. */
static void post_quietly(struct pair *p, uint64_t wr_id, uint32_t length)
{
	struct vb_send_request request = send_request(p, A, wr_id, length);

	EXPECT(vb_qp_post_send(node_of(p, A)->qp, &request) == VB_OK);
	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
}

static bool send_at_once(struct pair *p, struct vb_slot *slot)
{
	struct vb_slot slots[2];
	uint32_t count;

	(void)vb_qp_start_now(node_of(p, A)->qp, p->now_ns, slots, &count);
	EXPECT(count <= 1); /* ACKs are piggybacked */
	if (count)
		*slot = slots[0];
	return count;
}

static bool execute_at_once(struct pair *p)
{
	struct vb_slot slots[2];
	uint32_t count;
	bool is_all = vb_qp_start_now(node_of(p, A)->qp, p->now_ns, slots, &count);

	EXPECT_EQ(count, 0);
	return is_all;
}

TEST(a_short_send_goes_at_once_and_is_then_out)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 2, 100);
	post_quietly(p, 4, 8);
	EXPECT(send_at_once(p, &slot));
	EXPECT_EQ(slot.path.link, SHM_LINK);
	EXPECT_EQ(vb_nic_link_room(node_of(p, A)->nic, SHM_LINK), ROOM - 1);
	expect_counter(p, A, TX_PACKETS, 1);
	EXPECT(!send_at_once(p, &slot));
	expect_silence(p, A);
	receive(p, &slot);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=4 SUCCESS SEND");
}

TEST(a_send_that_went_at_once_comes_again_without_an_answer)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	post_quietly(p, 4, 8);
	EXPECT(send_at_once(p, &slot));
	wait_ns(p, ACK_TIMEOUT_NS);
	expect_sent(p, A, "SEND_ONLY psn=0 len=8 ack");
}

TEST(what_is_long_goes_by_turns)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	post_quietly(p, 4, 2000);
	EXPECT(!send_at_once(p, &slot));
}

TEST(without_room_nothing_goes_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, 0);
	post_quietly(p, 4, 8);
	EXPECT(!send_at_once(p, &slot));
}

TEST(behind_another_request_nothing_goes_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	post_quietly(p, 4, 8);
	EXPECT(send_at_once(p, &slot));
	post_quietly(p, 5, 8);
	EXPECT(!send_at_once(p, &slot));
	vb_qp_ring_doorbell(node_of(p, A)->qp);
	expect_sent(p, A, "SEND_ONLY psn=1 len=8 ack");
}

TEST(with_a_wrong_key_nothing_goes_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = with_wrong_lkey(p, send_request(p, A, 4, 8));
	struct vb_slot slot;

	EXPECT(vb_qp_post_send(node_of(p, A)->qp, &request) == VB_OK);
	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
	EXPECT(!send_at_once(p, &slot));
	vb_qp_ring_doorbell(node_of(p, A)->qp);
	expect_silence(p, A);
	expect_completions(p, A, "wr=4 LOC_PROT_ERR");
}

static struct vb_qp *other_qp(struct pair *p)
{
	struct vb_qp *qp = make_qp(p, A);

	bring_up(p, A, qp, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	return qp;
}

TEST(while_others_have_work_nothing_goes_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = send_request(p, A, 9, 8);
	struct vb_qp *other = other_qp(p);
	struct vb_slot slot;

	EXPECT(vb_qp_post_send(other, &request) == VB_OK);
	vb_qp_publish_and_ring(other);
	post_quietly(p, 4, 8);
	EXPECT(!send_at_once(p, &slot));
}

TEST(a_short_write_is_executed_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = write_request(p, A, 4, 8);

	expect_silence(p, A); /* the QP has been notified of its link */
	EXPECT(vb_qp_post_send(node_of(p, A)->qp, &request) == VB_OK);
	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
	EXPECT(execute_at_once(p));
	expect_completions(p, A, "wr=4 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, TARGET, 8);
}

TEST(a_write_behind_a_send_is_not_executed_at_once)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_send_request request = write_request(p, A, 5, 8);
	struct vb_slot slot;

	post_quietly(p, 4, 8);
	EXPECT(send_at_once(p, &slot));
	EXPECT(vb_qp_post_send(node_of(p, A)->qp, &request) == VB_OK);
	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
	EXPECT(!execute_at_once(p));
	expect_untouched(p, B, TARGET, 8);
}

/* --- over the wire and over a link ------------------------------------------------------------ */

/* B's QP also has a link, to A. */
static struct pair *connect_by_shm_link(enum vb_qp_type type)
{
	struct pair *p = connect_directly(type);

	vb_qp_set_link(node_of(p, B)->qp, SHM_LINK, &direct_peer_memory);
	vb_nic_set_link_room(node_of(p, B)->nic, SHM_LINK, ROOM);
	return p;
}

static void take_from(struct pair *p, enum side side, struct vb_slot *slot)
{
	EXPECT_EQ(vb_nic_transmit(node_of(p, side)->nic, p->now_ns, slot, 1), 1);
	EXPECT_EQ(slot->path.link, SHM_LINK);
}

/* What a stranger sends that knows everything that the peer knows. */
static void expect_only_by_shm_link(struct pair *p, enum side to, const struct vb_slot *slot)
{
	bring(p, to, slot, 0);
	expect_dropped(p, to, WAY, 1);
	bring(p, to, slot, SHM_LINK + 1);
	expect_dropped(p, to, WAY, 2);
	expect_silence(p, to);
	expect_no_completion(p, to);
	bring(p, to, slot, SHM_LINK);
	expect_dropped(p, to, WAY, 2);
}

TEST(a_QP_with_a_shm_link_takes_no_SEND_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	expect_only_by_shm_link(p, B, &slot);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
}

/* The first SEND takes the long path and establishes the QP. The next one takes the short path. */
TEST(an_established_QP_with_a_shm_link_takes_no_SEND_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_recv(p, B, 3, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, SHM_LINK);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	take_from(p, B, &slot);
	bring(p, A, &slot, SHM_LINK);
	post_send(p, A, 4, 8);
	take_from(p, A, &slot);
	expect_only_by_shm_link(p, B, &slot);
	expect_completions(p, B, "wr=3 SUCCESS RECV len=8");
}

/*
 * B sends its request again, and comes to a local operation behind it, which waits for its next
 * turn. Then the ACK arrives after all, on a request of A.
 */
TEST(what_rides_passes_a_local_operation_that_a_repetition_has_come_to)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_nic *nic = node_of(p, B)->nic;
	struct vb_slot slot, repeated, slots[4];

	post(p, B, bind_request(p, B, 1, mw, TARGET, 64, VB_ACCESS_REMOTE_READ));
	EXPECT_EQ(vb_nic_transmit(nic, p->now_ns, &slot, 1), 0);
	expect_completions(p, B, "wr=1 SUCCESS BIND_MW");
	post_recv(p, A, 2, 100);
	post_recv(p, B, 3, 100);
	post_send(p, B, 4, 8);
	post(p, B, invalidate_request(5, vb_mw_key(mw)));
	take_from(p, B, &slot);
	EXPECT_EQ(vb_nic_transmit(nic, p->now_ns, &repeated, 1), 0);
	p->now_ns = vb_nic_deadline(nic) + 1;
	vb_nic_fire_timers(nic, p->now_ns);
	take_from(p, B, &repeated);
	bring(p, A, &slot, SHM_LINK);
	expect_completions(p, A, "wr=2 SUCCESS RECV len=8");
	post_send(p, A, 6, 8);
	take_slot(p, slots);
	bring(p, B, slots, SHM_LINK);
	expect_completions(p, B, "wr=4 SUCCESS SEND", "wr=5 SUCCESS LOCAL_INV",
			   "wr=3 SUCCESS RECV len=8");
}

/* The peer has chosen the link, and announced it, before anything was sent. */
TEST(the_first_packet_of_a_peer_that_has_chosen_a_shm_link_comes_by_shared_memory)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, A, 1, 100);
	post_send(p, B, 2, 8);
	take_from(p, B, &slot);
	expect_only_by_shm_link(p, A, &slot);
	expect_completions(p, A, "wr=1 SUCCESS RECV len=8");
}

TEST(a_QP_with_a_shm_link_takes_no_part_of_a_SEND_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 2000);
	post_send(p, A, 2, 2000);
	take_from(p, A, &slot);
	expect_only_by_shm_link(p, B, &slot);
	take_from(p, A, &slot);
	bring(p, B, &slot, 0);
	expect_no_completion(p, B);
	bring(p, B, &slot, SHM_LINK);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=2000");
}

TEST(a_QP_with_a_shm_link_takes_no_ACK_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, SHM_LINK);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	take_from(p, B, &slot);
	expect_only_by_shm_link(p, A, &slot);
	expect_completions(p, A, "wr=2 SUCCESS SEND");
}

TEST(a_QP_with_a_shm_link_takes_no_NAK_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, SHM_LINK);
	take_from(p, B, &slot);
	slot.head[VB_BTH_SIZE] = VB_SYNDROME_NAK | VB_NAK_REMOTE_ACCESS;
	bring(p, A, &slot, 0);
	expect_dropped(p, A, WAY, 1);
	expect_no_completion(p, A);
	expect_state(p, A, VB_STATE_RTS);
}

TEST(a_QP_with_a_shm_link_answers_no_gap_that_comes_by_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_RC);
	struct vb_slot slot;

	post_send(p, A, 2, 8);
	post_send(p, A, 3, 8);
	take_from(p, A, &slot);
	take_from(p, A, &slot);
	bring(p, B, &slot, 0);
	expect_dropped(p, B, WAY, 1);
	expect_counter(p, B, OUT_OF_SEQUENCE, 0);
	expect_silence(p, B);
}

TEST(a_QP_of_UC_with_a_shm_link_takes_nothing_from_the_wire)
{
	struct pair *p = connect_by_shm_link(VB_QP_UC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	expect_only_by_shm_link(p, B, &slot);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
}

TEST(a_QP_of_the_wire_takes_nothing_from_shared_memory)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	vb_qp_expect_link(node_of(p, B)->qp, 0); /* the peer is on another host */
	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, SHM_LINK);
	expect_dropped(p, B, WAY, 1);
	expect_silence(p, B);
	expect_no_completion(p, B);
	bring(p, B, &slot, 0);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
}

/* B did not learn of A in time, and A learned of B a moment later. */
TEST(ends_that_chose_different_ways_hear_each_other)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, SHM_LINK + 1);
	expect_dropped(p, B, WAY, 1);
	bring(p, B, &slot, SHM_LINK);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=2 SUCCESS SEND");
}

TEST(a_QP_with_a_shm_link_takes_nothing_from_the_wire_once_its_peer_was_reset)
{
	struct pair *p = connect_directly(VB_QP_RC);
	struct vb_slot slots[2];

	post_recv(p, A, 1, 100);
	post_send(p, B, 2, 8);
	EXPECT_EQ(vb_nic_transmit(node_of(p, B)->nic, p->now_ns, slots, 2), 1);
	modify_state(p, B, VB_STATE_RESET);
	bring(p, A, &slots[0], 0);
	expect_dropped(p, A, WAY, 1);
	expect_no_completion(p, A);
}
