/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bound on what all QPs together have outstanding to one receiver. A's own QP talks to B's; A's
 * other QPs send to QPNs that do not exist, so their packets stay outstanding.
 */
#include "support_pair.h"

#include "nic/flight_priv.h"

enum { MTU = 256, PACKETS = 3, SLOTS = 16 };

static struct vb_slot slots[SLOTS];

static struct pair *pair_with_bound(void)
{
	struct setup setup = setup_of(VB_QP_RC, MTU);

	setup.flight_bytes_max = PACKETS * (MTU + VB_FLIGHT_PACKET_OVERHEAD);
	setup.batch_qpn_mask = 0xff0000;
	return pair_connect(&setup);
}

/* QPNs of the same receiver as B's QP, and one of another. */
static uint32_t near(struct pair *p, uint32_t index)
{
	return (vb_qp_number(p->node[B].qp).v & 0xff0000) + index;
}

static uint32_t far(struct pair *p)
{
	return near(p, 0) ^ 0x550000;
}

static struct vb_qp *qp_to(struct pair *p, uint32_t qpn)
{
	struct vb_qp *qp = make_qp(p, A);

	bring_up(p, A, qp, (vb_qpn){ qpn }, VB_STATE_RTS);
	return qp;
}

static void post_from(struct pair *p, struct vb_qp *qp, uint32_t packet_count)
{
	struct vb_qp *own = p->node[A].qp;

	p->node[A].qp = qp;
	post_write(p, A, 1, packet_count * MTU);
	p->node[A].qp = own;
}

static void fail(struct vb_qp *qp)
{
	struct vb_qp_attr attr = { .state = VB_STATE_ERR };

	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_STATE), VB_OK);
}

/* Returns how many packets A sends now. */
static uint32_t transmit(struct pair *p)
{
	return vb_nic_transmit(p->node[A].nic, p->now_ns, slots, SLOTS);
}

static struct vb_bth bth_of(uint32_t slot)
{
	return vb_bth_load(slots[slot].head);
}

/* B receives what A sent in the last call, and A receives B's answer. */
static void exchange(struct pair *p, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint8_t bytes[SLOTS * MTU];
		struct vb_frame frame = { .path.ip = slots[i].path.ip,
					  .ip_id = slots[i].ip_id,
					  .head = { bytes, slots[i].length } };

		EXPECT(vb_slot_gather(&slots[i], bytes));
		vb_nic_receive(p->node[B].nic, p->now_ns, &frame, 1);
	}
	send_all(p, B);
	deliver(p);
}

TEST(all_qps_together_have_no_more_on_their_way_to_a_receiver_than_its_bound)
{
	struct pair *p = pair_with_bound();

	post_from(p, qp_to(p, near(p, 0)), 2);
	post_from(p, qp_to(p, near(p, 1)), 2);
	EXPECT_EQ(transmit(p), PACKETS);
	EXPECT_EQ(transmit(p), 0);
}

TEST(another_receiver_has_a_bound_of_its_own)
{
	struct pair *p = pair_with_bound();

	post_from(p, qp_to(p, near(p, 0)), 2 * PACKETS);
	post_from(p, qp_to(p, far(p)), 2 * PACKETS);
	EXPECT_EQ(transmit(p), 2 * PACKETS);
}

TEST(the_packet_that_fills_the_bound_asks_for_an_ack)
{
	struct pair *p = pair_with_bound();

	post_from(p, qp_to(p, near(p, 0)), 2 * PACKETS);
	EXPECT_EQ(transmit(p), PACKETS);
	EXPECT(!bth_of(0).ack_request && !bth_of(1).ack_request);
	EXPECT(bth_of(2).ack_request);
}

TEST(an_ack_gives_the_first_in_line_its_turn)
{
	struct pair *p = pair_with_bound();

	post_write(p, A, 1, 2 * PACKETS * MTU);
	post_from(p, qp_to(p, near(p, 0)), 1);
	post_from(p, qp_to(p, near(p, 1)), 1);
	EXPECT_EQ(transmit(p), PACKETS);
	exchange(p, PACKETS);
	EXPECT_EQ(transmit(p), PACKETS); /* this QP was also the first to find the bound reached */
	exchange(p, PACKETS);
	EXPECT_EQ(transmit(p), 2);
	EXPECT_EQ(bth_of(0).destination.v, near(p, 0));
	EXPECT_EQ(bth_of(1).destination.v, near(p, 1));
}

TEST(a_newcomer_does_not_push_in_front_of_the_line)
{
	struct pair *p = pair_with_bound();
	struct vb_qp *newcomer = qp_to(p, near(p, 1));

	post_write(p, A, 1, PACKETS * MTU);
	post_from(p, qp_to(p, near(p, 0)), PACKETS);
	EXPECT_EQ(transmit(p), PACKETS);
	exchange(p, PACKETS);
	post_from(p, newcomer, 1);
	EXPECT_EQ(transmit(p), PACKETS);
	for (uint32_t i = 0; i < PACKETS; i++)
		EXPECT_EQ(bth_of(i).destination.v, near(p, 0));
}

TEST(a_qp_that_fails_gives_its_room_and_its_turn_back)
{
	struct pair *p = pair_with_bound();
	struct vb_qp *first = qp_to(p, near(p, 0)), *second = qp_to(p, near(p, 1));

	post_from(p, first, PACKETS);
	post_from(p, second, 1);
	post_from(p, qp_to(p, near(p, 2)), 1);
	EXPECT_EQ(transmit(p), PACKETS);
	fail(first); /* now it is the turn of the second QP */
	fail(second);
	EXPECT_EQ(transmit(p), 1);
	EXPECT_EQ(bth_of(0).destination.v, near(p, 2));
}

TEST(what_is_sent_again_after_a_timeout_counts_once)
{
	struct pair *p = pair_with_bound();

	post_from(p, qp_to(p, near(p, 0)), PACKETS);
	EXPECT_EQ(transmit(p), PACKETS);
	p->now_ns = vb_nic_deadline(p->node[A].nic);
	vb_nic_fire_timers(p->node[A].nic, p->now_ns);
	EXPECT_EQ(transmit(p), PACKETS);
	EXPECT_EQ(transmit(p), 0);
}

/* Packets of such a QP may be lost, and no timeout would ever show it. */
TEST(rc_a_qp_that_waits_for_ever_is_no_part_of_the_bound)
{
	struct pair *p = pair_with_bound();
	struct vb_qp_attr attr = { .timeout = 0 };
	struct vb_qp *patient = qp_to(p, near(p, 1));

	attr.state = VB_STATE_SQD;
	EXPECT_EQ(vb_qp_modify(patient, &attr, VB_ATTR_STATE), VB_OK);
	EXPECT_EQ(vb_qp_modify(patient, &attr, VB_ATTR_TIMEOUT | VB_ATTR_STATE), VB_OK);
	attr.state = VB_STATE_RTS;
	EXPECT_EQ(vb_qp_modify(patient, &attr, VB_ATTR_STATE), VB_OK);
	post_from(p, patient, PACKETS);
	EXPECT_EQ(transmit(p), PACKETS);
	post_write(p, A, 2, MTU);
	EXPECT_EQ(transmit(p), 1);
}
