/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The service level of a receive's completion, which on RoCE says which headers the message came
 * with: for every service, over both IP versions, on the short and the long paths.
 */
#include "support_pair.h"

#include <string.h>

enum { BY_IPV4 = VB_HEADERS_UDP | VB_HEADERS_IPV4, BY_IPV6 = VB_HEADERS_UDP | VB_HEADERS_IPV6 };

static struct pair *connect_by(enum vb_qp_type type, bool is_ipv6)
{
	struct setup setup = setup_of(type, 256);

	setup.is_ipv6 = is_ipv6;
	return pair_connect(&setup);
}

static uint8_t service_level(struct vb_cq *cq)
{
	struct vb_completion completion;

	EXPECT_EQ(vb_cq_poll(cq, &completion, 1), 1);
	EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
	return completion.service_level;
}

/*
 * Returns the service level of the receive completion. A send completion has none, because it came
 * with no headers.
 */
static uint8_t send_message(struct pair *p, uint64_t wr_id, uint32_t length)
{
	bool is_datagram = p->setup.type == VB_QP_UD;

	post_recv(p, B, wr_id, 1000);
	if (is_datagram)
		post_datagram(p, A, wr_id, length);
	else
		post_send(p, A, wr_id, length);
	settle(p);
	EXPECT_EQ(service_level(p->node[A].send_cq), 0);
	return service_level(p->node[B].recv_cq);
}

/* The first message takes the long path, and those after it the short one, if there is one. */
static void expect_told(enum vb_qp_type type, bool is_ipv6, uint32_t length)
{
	struct pair *p = connect_by(type, is_ipv6);

	for (uint64_t wr_id = 1; wr_id <= 3; wr_id++)
		EXPECT_EQ(send_message(p, wr_id, length), is_ipv6 ? BY_IPV6 : BY_IPV4);
}

TEST(rc_over_ipv4_a_receipt_tells_so)
{
	expect_told(VB_QP_RC, false, 8);
}

TEST(rc_over_ipv6_a_receipt_tells_so)
{
	expect_told(VB_QP_RC, true, 8);
}

TEST(rc_a_receipt_of_several_packets_tells_it_as_well)
{
	expect_told(VB_QP_RC, true, 700);
}

TEST(uc_over_ipv4_a_receipt_tells_so)
{
	expect_told(VB_QP_UC, false, 8);
}

TEST(uc_over_ipv6_a_receipt_tells_so)
{
	expect_told(VB_QP_UC, true, 700);
}

TEST(xrc_over_ipv4_a_receipt_tells_so)
{
	expect_told(VB_QP_XRC_SEND, false, 8);
}

TEST(ud_over_ipv4_a_receipt_tells_so)
{
	expect_told(VB_QP_UD, false, 8);
}

TEST(ud_over_ipv6_a_receipt_tells_so)
{
	expect_told(VB_QP_UD, true, 8);
}

TEST(a_receipt_of_an_immediate_tells_it_as_well)
{
	struct pair *p = connect_by(VB_QP_RC, true);
	struct vb_send_request request = write_request(p, A, 2, 8);

	request.opcode = VB_WR_WRITE_IMM;
	post_recv(p, B, 1, 0);
	post(p, A, request);
	settle(p);
	EXPECT_EQ(service_level(p->node[B].recv_cq), BY_IPV6);
}

/* A shared-memory link leaves the flow where it lies, at any address. */
TEST(a_datagram_by_shared_memory_tells_it_as_well)
{
	struct pair *p = connect_by(VB_QP_UD, true);
	struct vb_slot slots[2];
	uint8_t bytes[256], flow[sizeof(struct vb_flow) + 1];
	struct vb_frame frame = { .late_flow = flow + 1, .path.link = 1 };

	post_recv(p, B, 1, 100);
	post_datagram(p, A, 1, 8);
	EXPECT_EQ(vb_nic_transmit(p->node[A].nic, p->now_ns, slots, 2), 1);
	EXPECT(vb_slot_gather(&slots[0], bytes));
	memcpy(flow + 1, &slots[0].path.ip, sizeof(slots[0].path.ip));
	frame.flow_mark = vb_flow_mark(&slots[0].path.ip);
	frame.head = (struct vb_bytes){ bytes, slots[0].length };
	vb_nic_receive(p->node[B].nic, p->now_ns, &frame, 1);
	EXPECT_EQ(service_level(p->node[B].recv_cq), BY_IPV6);
}
