/* SPDX-License-Identifier: BSD-2-Clause */
/* The transport headers: each field lies where the specification places it, and nowhere else. */
#include "base/prng.h"
#include "harness.h"
#include "wire/header.h"

#include <string.h>

static void expect_bth(struct vb_bth bth, const uint8_t expected[VB_BTH_SIZE])
{
	uint8_t bytes[VB_BTH_SIZE];

	memset(bytes, 0xa5, sizeof(bytes));
	vb_bth_store(bytes, &bth);
	EXPECT_MEM(bytes, expected, VB_BTH_SIZE);
}

TEST(each_bth_field_has_its_own_bits)
{
	expect_bth((struct vb_bth){ .opcode = 0xff }, (uint8_t[12]){ [0] = 0xff });
	expect_bth((struct vb_bth){ .solicited = true }, (uint8_t[12]){ [1] = 0x80 });
	expect_bth((struct vb_bth){ .migrated = true }, (uint8_t[12]){ [1] = 0x40 });
	expect_bth((struct vb_bth){ .pad = 3 }, (uint8_t[12]){ [1] = 0x30 });
	expect_bth((struct vb_bth){ .version = 15 }, (uint8_t[12]){ [1] = 0x0f });
	expect_bth((struct vb_bth){ .pkey = 0x1234 }, (uint8_t[12]){ [2] = 0x12, [3] = 0x34 });
	expect_bth((struct vb_bth){ .fecn = true }, (uint8_t[12]){ [4] = 0x80 });
	expect_bth((struct vb_bth){ .becn = true }, (uint8_t[12]){ [4] = 0x40 });
	expect_bth((struct vb_bth){ .destination = { 0x123456 } },
		   (uint8_t[12]){ [5] = 0x12, [6] = 0x34, [7] = 0x56 });
	expect_bth((struct vb_bth){ .ack_request = true }, (uint8_t[12]){ [8] = 0x80 });
	expect_bth((struct vb_bth){ .psn = { 0xabcdef } },
		   (uint8_t[12]){ [9] = 0xab, [10] = 0xcd, [11] = 0xef });
}

TEST(numbers_too_large_for_their_field_do_not_spill_into_the_next)
{
	expect_bth((struct vb_bth){ .destination = { 0xffffffff }, .psn = { 0xffffffff } },
		   (uint8_t[12]){ [5] = 0xff, 0xff, 0xff, 0x00, 0xff, 0xff, 0xff });
	expect_bth((struct vb_bth){ .pad = 0xfc, .version = 0xf0 }, (uint8_t[12]){ 0 });
}

static void fill(struct vb_prng *prng, uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)vb_prng_next(prng);
}

TEST(what_is_loaded_is_stored_again_but_for_the_reserved_bits)
{
	struct vb_prng prng;
	uint8_t in[VB_ATOMICETH_SIZE];
	uint8_t out[VB_ATOMICETH_SIZE];

	vb_prng_init(&prng, 1);
	for (int round = 0; round < 10000; round++) {
		struct vb_bth bth;
		struct vb_deth deth;
		struct vb_reth reth;
		struct vb_atomiceth atomic;
		struct vb_aeth aeth;

		fill(&prng, in, sizeof(in));
		aeth = vb_aeth_load(in);
		vb_aeth_store(out, &aeth);
		EXPECT_MEM(in, out, VB_AETH_SIZE);
		reth = vb_reth_load(in);
		vb_reth_store(out, &reth);
		EXPECT_MEM(in, out, VB_RETH_SIZE);
		atomic = vb_atomiceth_load(in);
		vb_atomiceth_store(out, &atomic);
		EXPECT_MEM(in, out, VB_ATOMICETH_SIZE);
		deth = vb_deth_load(in);
		vb_deth_store(out, &deth);
		in[4] &= 0xc0; /* reserved in the DETH; in the BTH this is FECN and BECN */
		bth = vb_bth_load(in);
		vb_bth_store(out + 12, &bth);
		EXPECT_EQ(out[4], 0);
		in[8] &= 0x80;
		EXPECT_MEM(in, out + 12, VB_BTH_SIZE);
		out[4] = in[4];
		EXPECT_MEM(in, out, VB_DETH_SIZE);
	}
}

TEST(extension_headers_lie_as_the_specification_draws_them)
{
	static const uint8_t bytes[] = { 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99,
					 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff, 0x10, 0x21, 0x32, 0x43,
					 0x54, 0x65, 0x76, 0x87, 0x98, 0xa9, 0xba, 0xcb };
	struct vb_reth reth = vb_reth_load(bytes);
	struct vb_atomiceth atomic = vb_atomiceth_load(bytes);
	struct vb_deth deth = vb_deth_load(bytes);
	struct vb_aeth aeth = vb_aeth_load(bytes + 4);

	EXPECT_EQ(reth.address, 0x0011223344556677);
	EXPECT_EQ(reth.rkey, 0x8899aabb);
	EXPECT_EQ(reth.length, 0xccddeeff);
	EXPECT_EQ(atomic.address, 0x0011223344556677);
	EXPECT_EQ(atomic.rkey, 0x8899aabb);
	EXPECT_EQ(atomic.swap_or_add, 0xccddeeff10213243);
	EXPECT_EQ(atomic.compare, 0x5465768798a9bacb);
	EXPECT_EQ(deth.qkey, 0x00112233);
	EXPECT_EQ(deth.source.v, 0x556677);
	EXPECT_EQ(aeth.syndrome, 0x44);
	EXPECT_EQ(aeth.msn, 0x556677);
}

TEST(psns_wrap_at_24_bits)
{
	vb_psn last = { 0xffffff };
	vb_psn zero = { 0 };
	vb_psn half = { 0x800000 };

	EXPECT_EQ(vb_psn_add(last, 1).v, 0);
	EXPECT_EQ(vb_psn_add(last, 0xffffffff).v, 0xfffffe);
	EXPECT_EQ(vb_psn_diff(zero, last), 1);
	EXPECT_EQ(vb_psn_diff(last, zero), -1);
	EXPECT_EQ(vb_psn_diff(half, zero), -0x800000);
	EXPECT_EQ(vb_psn_diff(zero, (vb_psn){ 0x800001 }), 0x7fffff);
	EXPECT_EQ(vb_psn_distance(zero, last), 1);
	EXPECT_EQ(vb_psn_distance(last, zero), 0xffffff);
	EXPECT(vb_psn_equal(vb_psn_add(half, 0x800000), zero));
}
