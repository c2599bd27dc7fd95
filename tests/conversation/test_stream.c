/* SPDX-License-Identifier: BSD-2-Clause */
/* QPs whose packets take a stream: a link of their own, without addresses. */
#include "support_pair.h"

#include "nic/inspect.h"
#include "nic/peer_memory.h"
#include "nic/rings.h"

enum { STREAM = 3, OTHER_STREAM = 4, ROOM = 16 };

static struct pair *connect_by_stream(void)
{
	struct pair *p = pair_connect_rc(1024);

	for (enum side side = A; side <= B; side++) {
		vb_qp_set_stream(node_of(p, side)->qp, STREAM);
		vb_nic_set_link_room(node_of(p, side)->nic, STREAM, ROOM);
	}
	return p;
}

static void take_from(struct pair *p, enum side side, struct vb_slot *slot)
{
	EXPECT_EQ(vb_nic_transmit(node_of(p, side)->nic, p->now_ns, slot, 1), 1);
}

/* Brings the bytes of a slot, and nothing of its path. */
static void bring(struct pair *p, enum side to, const struct vb_slot *slot, struct vb_path path)
{
	uint8_t bytes[2048];
	struct vb_frame frame = {
		.path = path,
		.piggyback_ack = slot->piggyback_ack,
		.head = { bytes, slot->length },
	};

	EXPECT(slot->length <= sizeof(bytes));
	EXPECT(vb_slot_gather(slot, bytes));
	vb_nic_receive(node_of(p, to)->nic, p->now_ns, &frame, 1);
}

static struct vb_path stream(uint16_t link)
{
	return (struct vb_path){ .kind = VB_PATH_STREAM, .link = link };
}

static struct vb_path path_of(struct pair *p, enum side side)
{
	struct vb_qp_view view;

	vb_qp_inspect(node_of(p, side)->qp, p->now_ns, &view);
	return view.path;
}

TEST(packets_on_a_stream_need_no_addresses)
{
	struct pair *p = connect_by_stream();
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	EXPECT_EQ(slot.path.kind, VB_PATH_STREAM);
	EXPECT_EQ(slot.path.link, STREAM);
	bring(p, B, &slot, stream(STREAM));
	expect_completions(p, B, "wr=1 SUCCESS RECV len=8");
	take_from(p, B, &slot);
	bring(p, A, &slot, stream(STREAM));
	expect_completions(p, A, "wr=2 SUCCESS SEND");
}

/* What a stranger sends that knows everything that the peer knows. */
TEST(a_QP_on_a_stream_takes_nothing_from_elsewhere)
{
	struct pair *p = connect_by_stream();
	struct vb_path on_wire = { .ip = { .source = node_of(p, A)->gid,
					   .destination = node_of(p, B)->gid } };
	struct vb_path on_link = on_wire;
	struct vb_slot slot;

	on_link.link = STREAM;
	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, stream(OTHER_STREAM));
	bring(p, B, &slot, on_link);
	expect_dropped(p, B, ADDRESS, 2);
	bring(p, B, &slot, on_wire); /* without an ICRC */
	expect_dropped(p, B, ICRC, 1);
	expect_no_completion(p, B);
}

TEST(a_QP_of_the_wire_takes_nothing_from_a_stream)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_slot slot;

	post_recv(p, B, 1, 100);
	post_send(p, A, 2, 8);
	take_from(p, A, &slot);
	bring(p, B, &slot, stream(STREAM));
	expect_dropped(p, B, ADDRESS, 1);
	expect_no_completion(p, B);
}

TEST(a_QP_that_leaves_its_stream_has_its_addresses_again)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_path before = path_of(p, A);
	struct vb_path after;

	vb_qp_set_stream(node_of(p, A)->qp, STREAM);
	after = path_of(p, A);
	EXPECT(!vb_path_equal(&after, &before));
	vb_nic_drop_link(node_of(p, A)->nic, STREAM);
	after = path_of(p, A);
	EXPECT(vb_path_equal(&after, &before));
	post_send(p, A, 1, 8);
	expect_sent(p, A, "SEND_ONLY psn=0 len=8 ack");
}

TEST(a_QP_that_is_reset_has_no_path)
{
	static const struct vb_path none;
	struct pair *p = connect_by_stream();
	struct vb_path path;

	modify_state(p, A, VB_STATE_RESET);
	path = path_of(p, A);
	EXPECT(vb_path_equal(&path, &none));
}
