/* SPDX-License-Identifier: BSD-2-Clause */
/* Making tags and the messages for them. */
#include "support_tags.h"

struct setup tag_setup(uint32_t mtu)
{
	struct setup setup = setup_of(VB_QP_RC, mtu);

	setup.has_srq = true;
	setup.tag_count = TAGS;
	setup.tag_depth = TAG_DEPTH;
	return setup;
}

struct pair *pair_connect_tags(uint32_t mtu)
{
	struct setup setup = tag_setup(mtu);

	return pair_connect(&setup);
}

struct vb_tag_request add_request(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length)
{
	struct vb_sge *sge = &p->sges[p->sge_next++ % 64];

	*sge = sge_at(p, B, recv_at(wr_id), length);
	return (struct vb_tag_request){
		.wr_id = wr_id,
		.opcode = VB_TAG_ADD,
		.flags = VB_TAG_SIGNALED,
		.recv_wr_id = wr_id,
		.sges = sge,
		.sge_count = 1,
		.tag = tag,
		.mask = UINT64_MAX,
	};
}

vb_err try_tag(struct pair *p, struct vb_tag_request request, uint32_t *handle_out)
{
	vb_err err = vb_srq_post_tag(p->node[B].srq, &request, handle_out);

	vb_srq_ring_doorbell(p->node[B].srq);
	return err;
}

uint32_t add_tag(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length)
{
	struct vb_completion completion;
	uint32_t handle;

	EXPECT_EQ(try_tag(p, add_request(p, wr_id, tag, length), &handle), VB_OK);
	expect_silence(p, B);
	EXPECT_EQ(vb_cq_poll(p->node[B].recv_cq, &completion, 1), 1);
	EXPECT_EQ(completion.wr_id, wr_id);
	EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
	EXPECT_EQ(completion.opcode, VB_COMPLETION_TM_ADD);
	EXPECT_EQ(completion.flags, 0);
	return handle;
}

void delete_tag(struct pair *p, uint64_t wr_id, uint32_t handle)
{
	struct vb_tag_request request = {
		.wr_id = wr_id,
		.opcode = VB_TAG_DELETE,
		.flags = VB_TAG_SIGNALED,
		.handle = handle,
	};

	EXPECT_EQ(try_tag(p, request, NULL), VB_OK);
	expect_silence(p, B);
}

void sync_tags(struct pair *p, uint64_t wr_id, uint32_t count)
{
	struct vb_tag_request request = {
		.wr_id = wr_id,
		.opcode = VB_TAG_SYNC,
		.flags = VB_TAG_SIGNALED | VB_TAG_HAS_COUNT,
		.unexpected_count = count,
	};

	EXPECT_EQ(try_tag(p, request, NULL), VB_OK);
	expect_silence(p, B);
}

void write_tmh(struct pair *p, enum vb_tmh_opcode opcode, uint64_t tag)
{
	const struct vb_tmh tmh = { (uint8_t)opcode, CONTEXT, tag };

	vb_tmh_store(p->node[A].memory + LOCAL, &tmh);
}

void write_rvh(struct pair *p, uint32_t rkey, uint32_t length)
{
	const struct vb_rvh rvh = { p->node[A].iova + TARGET, rkey, length };

	vb_rvh_store(p->node[A].memory + LOCAL + VB_TMH_SIZE, &rvh);
}

void post_eager(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length)
{
	write_tmh(p, VB_TMH_EAGER, tag);
	post_send(p, A, wr_id, VB_TMH_SIZE + length);
}

void post_rendezvous(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length)
{
	write_tmh(p, VB_TMH_RENDEZVOUS, tag);
	write_rvh(p, key_of(p, A), length);
	post_send(p, A, wr_id, VB_TMH_SIZE + VB_RVH_SIZE);
}
