/* SPDX-License-Identifier: BSD-2-Clause */
/* UD: multicast groups. */
#include "support_pair.h"

#define GROUP 0xe0010203u /* 224.1.2.3 */

/* A posts a datagram to the group; the wire carries it to B. */
static void post_to_group(struct pair *p, uint64_t wr_id, uint32_t group)
{
	struct vb_gid gid = vb_gid_from_ipv4(group);
	struct vb_send_request request = datagram_request(p, A, wr_id, 8);

	request.ah = make_ah(p, A, &gid);
	request.remote_qpn = VB_QPN_MULTICAST.v;
	post(p, A, request);
}

static struct vb_qp *make_member(struct pair *p, const struct vb_gid *group)
{
	struct vb_qp *qp = make_qp(p, B);

	bring_up(p, B, qp, (vb_qpn){ 0 }, VB_STATE_RTR);
	EXPECT_EQ(vb_qp_attach(qp, group), VB_OK);
	return qp;
}

static void post_recv_to(struct pair *p, struct vb_qp *qp, uint64_t wr_id)
{
	struct vb_sge sge = sge_at(p, B, recv_at(wr_id), 140);
	struct vb_recv_request request = { .wr_id = wr_id, .sges = &sge, .sge_count = 1 };

	EXPECT_EQ(vb_qp_post_recv(qp, &request), VB_OK);
}

TEST(multicast_reaches_every_member)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *first = make_member(p, &group);
	struct vb_qp *second = make_member(p, &group);

	post_recv(p, B, 1, 140);
	post_recv_to(p, first, 2);
	post_recv_to(p, second, 3);
	post_to_group(p, 1, GROUP);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=48 grh", "wr=3 SUCCESS RECV len=48 grh");
	expect_copied(p, A, LOCAL, B, recv_at(2) + 40, 8);
	expect_copied(p, A, LOCAL, B, recv_at(3) + 40, 8);
	EXPECT_EQ(vb_qp_detach(first, &group), VB_OK);
	EXPECT_EQ(vb_qp_detach(second, &group), VB_OK);
}

TEST(multicast_to_a_group_without_members_is_dropped)
{
	struct pair *p = pair_connect_ud(1024);

	post_recv(p, B, 1, 140);
	post_to_group(p, 1, GROUP);
	settle(p);
	expect_no_completion(p, B);
	expect_dropped(p, B, NO_MEMBER, 1);
}

TEST(multicast_reaches_only_the_group_that_it_names)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	post_recv_to(p, member, 2);
	post_to_group(p, 1, GROUP + 1);
	settle(p);
	expect_no_completion(p, B);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

TEST(multicast_ends_with_the_detachment)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	post_recv_to(p, member, 2);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
	post_to_group(p, 1, GROUP);
	settle(p);
	expect_no_completion(p, B);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_EINVAL);
}

TEST(multicast_a_member_without_a_receive_does_not_keep_it_from_the_others)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *first = make_member(p, &group);
	struct vb_qp *second = make_member(p, &group);

	post_recv_to(p, second, 3);
	post_to_group(p, 1, GROUP);
	settle(p);
	expect_completions(p, B, "wr=3 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(first, &group), VB_OK);
	EXPECT_EQ(vb_qp_detach(second, &group), VB_OK);
}

TEST(multicast_checks_the_qkey_of_each_member)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *first = make_member(p, &group);
	struct vb_qp *second = make_member(p, &group);
	struct vb_qp_attr attr = { .state = VB_STATE_RTS, .qkey = 0x555 };

	EXPECT_EQ(vb_qp_modify(first, &attr, VB_ATTR_STATE | VB_ATTR_SQ_PSN | VB_ATTR_QKEY), VB_OK);
	post_recv_to(p, first, 2);
	post_recv_to(p, second, 3);
	post_to_group(p, 1, GROUP);
	settle(p);
	expect_completions(p, B, "wr=3 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(first, &group), VB_OK);
	EXPECT_EQ(vb_qp_detach(second, &group), VB_OK);
}

TEST(a_qp_that_is_attached_cannot_be_destroyed)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	EXPECT_EQ(drop_qp(p, B, member), VB_EBUSY);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
	EXPECT_EQ(drop_qp(p, B, member), VB_OK);
}

TEST(a_qp_may_be_in_several_groups)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_gid other = vb_gid_from_ipv4(GROUP + 1);
	struct vb_qp *member = make_member(p, &group);

	EXPECT_EQ(vb_qp_attach(member, &other), VB_OK);
	post_recv_to(p, member, 2);
	post_recv_to(p, member, 3);
	post_to_group(p, 1, GROUP);
	post_to_group(p, 2, GROUP + 1);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=48 grh", "wr=3 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
	EXPECT_EQ(vb_qp_detach(member, &other), VB_OK);
}

TEST(a_gid_that_is_no_multicast_one_cannot_be_attached)
{
	struct pair *p = pair_connect_ud(1024);

	EXPECT_EQ(vb_qp_attach(p->node[B].qp, &p->node[A].gid), VB_EINVAL);
}

TEST(only_ud_qps_can_be_attached)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);

	EXPECT_EQ(vb_qp_attach(p->node[B].qp, &group), VB_EINVAL);
}

TEST(a_group_may_have_many_members_and_a_second_attachment_changes_nothing)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *members[9];

	for (uint64_t i = 0; i < 9; i++) {
		members[i] = make_member(p, &group);
		EXPECT_EQ(vb_qp_attach(members[i], &group), VB_OK);
		post_recv_to(p, members[i], i);
	}
	post_to_group(p, 1, GROUP);
	settle(p);
	EXPECT_EQ(vb_cq_waiting(p->node[B].recv_cq), 9);
	for (int i = 0; i < 9; i++)
		EXPECT_EQ(vb_qp_detach(members[i], &group), VB_OK);
}

TEST(multicast_over_ipv6_works)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);
	setup.is_ipv6 = true;
	struct pair *p = pair_connect(&setup);
	struct vb_gid group = { { 0xff, 0x0e, [15] = 7 } };
	struct vb_qp *member = make_member(p, &group);
	struct vb_send_request request = datagram_request(p, A, 1, 8);

	request.ah = make_ah(p, A, &group);
	request.remote_qpn = VB_QPN_MULTICAST.v;
	post_recv_to(p, member, 2);
	post(p, A, request);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

/* --- over a link and over the wire ------------------------------------------------------------ */

static struct pair *connect_without_icrc(void)
{
	struct setup setup = setup_of(VB_QP_UD, 1024);

	setup.icrc_mode = VB_ICRC_OFF; /* tests change packets */
	return pair_connect(&setup);
}

static void bring(struct pair *p, const struct held *held, bool is_by_shm_link)
{
	struct vb_frame frame = {
		.ip_id = held->ip_id,
		.path.link = is_by_shm_link ? 1 : 0,
		.head = { held->bytes, held->length },
	};

	if (is_by_shm_link)
		frame.late_flow = (const uint8_t *)&held->flow;
	else
		frame.path.ip = held->flow;
	vb_nic_receive(p->node[B].nic, p->now_ns, &frame, 1);
}

static void bring_by_shm_link(struct pair *p, const struct held *held)
{
	bring(p, held, true);
}

static void bring_by_wire(struct pair *p, const struct held *held)
{
	bring(p, held, false);
}

/* Makes the packet look like the sender's next one. */
static void set_psn(struct held *held, uint32_t psn)
{
	struct vb_bth bth = vb_bth_load(held->bytes);

	bth.psn.v = psn;
	vb_bth_store(held->bytes, &bth);
}

TEST(multicast_that_came_by_shared_memory_is_not_taken_from_the_wire_again)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	for (uint64_t i = 0; i < 6; i++)
		post_recv_to(p, member, i);
	for (uint64_t i = 0; i < 3; i++)
		post_to_group(p, i, GROUP);
	send_all(p, A);
	bring_by_shm_link(p, &p->held[0]);
	bring_by_shm_link(p, &p->held[2]);
	expect_completions(p, B, "wr=0 SUCCESS RECV len=48 grh", "wr=1 SUCCESS RECV len=48 grh");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=48 grh"); /* the packet in the middle */
	expect_dropped(p, B, COPY, 2);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

TEST(multicast_that_the_wire_itself_doubles_comes_as_often_as_without_shared_memory)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	post_recv_to(p, member, 1);
	post_recv_to(p, member, 2);
	post_to_group(p, 1, GROUP);
	send_all(p, A);
	bring_by_shm_link(p, &p->held[0]);
	bring_by_wire(p, &p->held[0]);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
	bring_by_wire(p, &p->held[0]);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

/*
 * The next process may get the numbers of one that is gone, and another host may have any numbers.
 */
TEST(multicast_of_other_senders_with_the_same_qpn_and_psn_is_not_mistaken_for_it)
{
	struct pair *p = connect_without_icrc();
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);

	for (uint64_t i = 1; i <= 3; i++)
		post_recv_to(p, member, i);
	post_to_group(p, 1, GROUP);
	send_all(p, A);
	bring_by_shm_link(p, &p->held[0]);
	p->held[0].flow.source_port ^= 1;
	bring_by_wire(p, &p->held[0]);
	p->held[0].flow.source_port ^= 1;
	p->held[0].flow.source.raw[15] ^= 1;
	bring_by_wire(p, &p->held[0]);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh", "wr=2 SUCCESS RECV len=48 grh",
			   "wr=3 SUCCESS RECV len=48 grh");
	expect_dropped(p, B, COPY, 0);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

/* A reader that was delayed finds a full ring, and then the same datagrams in its socket. */
TEST(multicast_by_shared_memory_is_remembered_for_thousands_of_datagrams)
{
	enum { COUNT = 16384 };
	struct pair *p = connect_without_icrc();
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member = make_member(p, &group);
	struct held *held = &p->held[0];

	post_to_group(p, 1, GROUP);
	send_all(p, A);
	for (uint32_t i = 0; i < COUNT; i++) {
		set_psn(held, (0xfffff0 + i) & 0xffffff);
		bring_by_shm_link(p, held);
	}
	expect_dropped(p, B, NO_RECEIVE, COUNT);
	for (uint32_t i = 0; i < COUNT; i++) {
		set_psn(held, (0xfffff0 + i) & 0xffffff);
		bring_by_wire(p, held);
	}
	expect_dropped(p, B, COPY, COUNT);
	expect_dropped(p, B, NO_RECEIVE, COUNT);
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}

TEST(multicast_by_shared_memory_from_before_a_qp_was_attached_is_taken_from_the_wire)
{
	struct pair *p = pair_connect_ud(1024);
	struct vb_gid group = vb_gid_from_ipv4(GROUP);
	struct vb_qp *member;

	post_to_group(p, 1, GROUP);
	send_all(p, A);
	bring_by_shm_link(p, &p->held[0]);
	expect_dropped(p, B, NO_MEMBER, 1);
	member = make_member(p, &group);
	post_recv_to(p, member, 1);
	deliver(p);
	expect_completions(p, B, "wr=1 SUCCESS RECV len=48 grh");
	EXPECT_EQ(vb_qp_detach(member, &group), VB_OK);
}
