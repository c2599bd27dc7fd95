/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching, what is refused: operations that are wrong, and messages whose headers are not what
 * they promise. A peer that sends those loses its own connection and harms no other.
 */
#include "support_tags.h"

#include <string.h>

/* --- operations --- */

TEST(a_full_list_is_ENOMEM)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t handle;

	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100);
	EXPECT_EQ(try_tag(p, add_request(p, 9, 9, 10), &handle), VB_ENOMEM);
	EXPECT_EQ(vb_srq_check_tag(p->node[B].srq,
				   &(struct vb_tag_request){ .opcode = VB_TAG_ADD }),
		  VB_TAG_LIST_FULL);
	expect_no_completion(p, B);
	post_eager(p, 1, 2, 10);
	settle(p);
	expect_completions(p, B, "wr=2 SUCCESS TM_RECV len=10 match tag=0x2 context=0xc0de valid");
	add_tag(p, 2, 9, 100); /* a message made room */
}

TEST(a_full_queue_of_operations_is_ENOMEM)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request sync = { .opcode = VB_TAG_SYNC };

	for (uint32_t i = 0; i < TAG_DEPTH; i++)
		EXPECT_EQ(try_tag(p, sync, NULL), VB_OK);
	EXPECT_EQ(try_tag(p, sync, NULL), VB_ENOMEM);
	expect_silence(p, B); /* they are executed now */
	EXPECT_EQ(try_tag(p, sync, NULL), VB_OK);
}

TEST(an_srq_without_tags_takes_no_operations)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct pair *p;
	uint32_t handle;

	setup.has_srq = true;
	p = pair_connect(&setup);
	EXPECT_EQ(try_tag(p, add_request(p, 1, 1, 10), &handle), VB_EINVAL);
	expect_silence(p, B);
	expect_no_completion(p, B);
}

TEST(operations_that_can_never_be_valid_are_EINVAL)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request request = { .opcode = (enum vb_tag_opcode)3 };
	struct vb_sge sges[5] = { { 0 } };
	uint32_t handle = add_tag(p, 1, 0x11, 100);

	EXPECT_EQ(try_tag(p, request, NULL), VB_EINVAL);
	request = (struct vb_tag_request){ .opcode = VB_TAG_SYNC, .flags = 4 };
	EXPECT_EQ(try_tag(p, request, NULL), VB_EINVAL);
	request = add_request(p, 1, 1, 10);
	request.sges = sges;
	request.sge_count = 5;
	EXPECT_EQ(try_tag(p, request, &handle), VB_EINVAL);
	request.sge_count = 2;
	sges[0].length = 0x80000000;
	sges[1].length = 1;
	EXPECT_EQ(try_tag(p, request, &handle), VB_EINVAL);
	sges[1].length = 0;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
}

TEST(a_handle_that_no_tag_ever_had_is_EINVAL)
{
	struct pair *p = pair_connect_tags(1024);
	uint32_t handle = add_tag(p, 1, 0x11, 100);
	const uint32_t wrong[] = {
		0, 1, handle + 1, handle + 0x10000, handle & 0xffff, handle | 0xffff, UINT32_MAX
	};

	for (uint32_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct vb_tag_request request = { .opcode = VB_TAG_DELETE, .handle = wrong[i] };

		EXPECT_EQ(try_tag(p, request, NULL), VB_EINVAL);
	}
	delete_tag(p, 9, handle);
	expect_completions(p, B, "wr=9 SUCCESS TM_DEL");
}

/* --- messages --- */

/* A's message, of that length from LOCAL, is refused; the list is as before. */
static void expect_refused(struct pair *p, uint32_t length)
{
	struct vb_tag_request any = add_request(p, 1, 0, 1000);
	uint32_t handle;

	any.mask = 0;
	EXPECT_EQ(try_tag(p, any, &handle), VB_OK);
	post_recv(p, B, 2, 1000);
	post_send(p, A, 1, length);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD");
	expect_untouched(p, B, recv_at(1), 1000);
	expect_untouched(p, B, recv_at(2), 1000);
	expect_state(p, B, VB_STATE_ERR);
	delete_tag(p, 9, handle);
	expect_completions(p, B, "wr=9 SUCCESS TM_DEL");
}

TEST(an_eager_message_shorter_than_its_header_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, VB_TMH_EAGER, 0);
	expect_refused(p, VB_TMH_SIZE - 1);
}

TEST(an_eager_message_of_one_byte_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, VB_TMH_EAGER, 0);
	expect_refused(p, 1);
}

TEST(a_rendezvous_shorter_than_its_headers_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, VB_TMH_RENDEZVOUS, 0);
	expect_refused(p, VB_TMH_SIZE + VB_RVH_SIZE - 1);
}

TEST(a_rendezvous_longer_than_permitted_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, VB_TMH_RENDEZVOUS, 0);
	write_rvh(p, key_of(p, A), 10);
	expect_refused(p, vb_nic_limits(p->node[B].nic).rendezvous_length + 1);
}

TEST(a_rendezvous_of_several_packets_is_refused)
{
	struct pair *p = pair_connect_tags(256);

	write_tmh(p, VB_TMH_RENDEZVOUS, 0);
	write_rvh(p, key_of(p, A), 10);
	expect_refused(p, 300);
}

TEST(an_unknown_opcode_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, (enum vb_tmh_opcode)4, 0);
	expect_refused(p, 100);
}

TEST(the_highest_opcode_is_refused)
{
	struct pair *p = pair_connect_tags(1024);

	write_tmh(p, (enum vb_tmh_opcode)255, 0);
	expect_refused(p, 100);
}

TEST(an_eager_message_longer_than_the_buffer_ends_its_qp_and_uses_the_tag_up)
{
	struct pair *p = pair_connect_tags(1024);

	add_tag(p, 1, 0x11, 100);
	post_eager(p, 1, 0x11, 101);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR");
	expect_untouched(p, B, recv_at(1), 101);
	for (uint64_t i = 0; i < TAGS; i++)
		add_tag(p, i, i, 100);
}

TEST(a_message_that_becomes_too_long_does_not_write_beyond_the_buffer)
{
	struct pair *p = pair_connect_tags(256);

	add_tag(p, 1, 0x11, 300);
	post_eager(p, 1, 0x11, 600);
	settle(p);
	expect_completions(p, A, "wr=1 REM_INV_REQ_ERR");
	expect_completions(p, B, "wr=1 LOC_LEN_ERR");
	expect_untouched(p, B, recv_at(1) + 300, 300);
}

TEST(a_tag_whose_key_is_wrong_ends_the_qp_of_its_message)
{
	struct pair *p = pair_connect_tags(1024);
	struct vb_tag_request request = add_request(p, 1, 0x11, 100);
	struct vb_sge sge = *request.sges;
	uint32_t handle;

	sge.lkey ^= 0x100;
	request.sges = &sge;
	EXPECT_EQ(try_tag(p, request, &handle), VB_OK);
	post_eager(p, 1, 0x11, 10);
	settle(p);
	expect_completions(p, A, "wr=1 REM_OP_ERR");
	expect_completions(p, B, "wr=1 SUCCESS TM_ADD", "wr=1 LOC_PROT_ERR");
}
