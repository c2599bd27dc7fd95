/* SPDX-License-Identifier: BSD-2-Clause */
/* The headers of tag matching lie where programs expect them, by <infiniband/tm_types.h>. */
#include "harness.h"
#include "wire/tag_header.h"

#include <endian.h>
#include <infiniband/tm_types.h>
#include <string.h>

TEST(the_tag_matching_header_is_the_one_of_programs)
{
	const struct vb_tmh tmh = { VB_TMH_EAGER, 0x12345678, 0x1122334455667788 };
	struct ibv_tmh theirs = {
		.opcode = IBV_TMH_EAGER,
		.app_ctx = htobe32(0x12345678),
		.tag = htobe64(0x1122334455667788),
	};
	uint8_t bytes[VB_TMH_SIZE];
	struct vb_tmh loaded;

	memset(bytes, 0xa5, sizeof(bytes));
	vb_tmh_store(bytes, &tmh);
	EXPECT_EQ(sizeof(theirs), VB_TMH_SIZE);
	EXPECT_MEM(bytes, &theirs, VB_TMH_SIZE);
	memset(theirs.reserved, 0xff, sizeof(theirs.reserved)); /* ignored */
	loaded = vb_tmh_load((const uint8_t *)&theirs);
	EXPECT_EQ(loaded.opcode, tmh.opcode);
	EXPECT_EQ(loaded.app_context, tmh.app_context);
	EXPECT_EQ(loaded.tag, tmh.tag);
}

TEST(the_rendezvous_header_is_the_one_of_programs)
{
	const struct vb_rvh rvh = { 0x1122334455667788, 0x12345678, 0x9abcdef0 };
	const struct ibv_rvh theirs = {
		.va = htobe64(0x1122334455667788),
		.rkey = htobe32(0x12345678),
		.len = htobe32(0x9abcdef0),
	};
	uint8_t bytes[VB_RVH_SIZE];
	struct vb_rvh loaded;

	vb_rvh_store(bytes, &rvh);
	EXPECT_EQ(sizeof(theirs), VB_RVH_SIZE);
	EXPECT_MEM(bytes, &theirs, VB_RVH_SIZE);
	loaded = vb_rvh_load(bytes);
	EXPECT_EQ(loaded.address, rvh.address);
	EXPECT_EQ(loaded.rkey, rvh.rkey);
	EXPECT_EQ(loaded.length, rvh.length);
}

TEST(the_opcodes_are_those_of_programs)
{
	EXPECT_EQ(VB_TMH_NO_TAG, IBV_TMH_NO_TAG);
	EXPECT_EQ(VB_TMH_RENDEZVOUS, IBV_TMH_RNDV);
	EXPECT_EQ(VB_TMH_FIN, IBV_TMH_FIN);
	EXPECT_EQ(VB_TMH_EAGER, IBV_TMH_EAGER);
}
