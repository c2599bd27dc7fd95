/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions, their keys and address spaces, re-registration, the null region and device memory. */
#include "support_pair.h"

#include <stdlib.h>
#include <string.h>

static void expect_write(struct pair *p, uint32_t key, uint64_t address, uint32_t length,
			 const char *completion)
{
	struct vb_send_request request = write_request(p, A, 1, length);

	request.rkey = key;
	request.remote_address = address;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, completion);
}

#define SUCCESS "wr=1 SUCCESS WRITE"
#define REFUSED "wr=1 REM_ACCESS_ERR"

TEST(one_key_is_lkey_and_rkey)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	uint32_t key = vb_mr_key(make_mr(p, B, &init));
	struct vb_sge sge = { IOVA_B + TARGET + 0x800, 16, key };

	EXPECT_EQ(try_post_recv_sges(p, B, 5, &sge, 1), VB_OK);
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
	post_send(p, A, 2, 16);
	settle(p);
	expect_completions(p, B, "wr=5 SUCCESS RECV len=16");
	expect_copied(p, A, LOCAL, B, TARGET + 0x800, 16);
}

TEST(a_zero_based_region_is_addressed_from_0)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init =
		mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL | VB_ACCESS_ZERO_BASED);
	uint32_t key = vb_mr_key(make_mr(p, B, &init));

	expect_write(p, key, 0x10, 8, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET + 0x10, 8);
	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
}

TEST(a_region_has_the_addresses_that_its_iova_says)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);

	init.iova = 0xdead0000beef;
	expect_write(p, vb_mr_key(make_mr(p, B, &init)), 0xdead0000beef + 0xff8, 8, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET + 0xff8, 8);
}

TEST(a_region_may_reach_to_the_end_of_its_address_space)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);

	init.iova = UINT64_MAX - 0x1000;
	expect_write(p, vb_mr_key(make_mr(p, B, &init)), UINT64_MAX - 8, 8, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET + 0xff8, 8);
}

TEST(an_access_that_wraps_around_a_region_at_the_end_of_the_address_space_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);

	init.iova = UINT64_MAX - 0x1000;
	expect_write(p, vb_mr_key(make_mr(p, B, &init)), UINT64_MAX - 4, 8, REFUSED);
	expect_untouched(p, B, TARGET, 0x1000);
}

TEST(a_region_of_length_0_opens_nothing)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0, RIGHTS_ALL);

	expect_write(p, vb_mr_key(make_mr(p, B, &init)), IOVA_B + TARGET, 1, REFUSED);
}

TEST(an_implicit_on_demand_region_opens_all_memory)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = { .length = UINT64_MAX,
				   .access = RIGHTS_ALL | VB_ACCESS_ON_DEMAND };
	uint32_t key = vb_mr_key(make_mr(p, B, &init));

	expect_write(p, key, (uintptr_t)p->node[B].memory + TARGET, 8, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET, 8);
}

static vb_err create_with(struct pair *p, uint32_t access)
{
	struct vb_mr_init init = mr_init_at(p, A, 0, 8, access);
	struct vb_mr *mr;
	vb_err err = vb_mr_create(p->node[A].pd, &init, &mr);

	if (!err)
		EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
	return err;
}

TEST(remote_write_and_remote_atomic_need_local_write)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(create_with(p, VB_ACCESS_REMOTE_WRITE), VB_EINVAL);
	EXPECT_EQ(create_with(p, VB_ACCESS_REMOTE_ATOMIC), VB_EINVAL);
	EXPECT_EQ(create_with(p, VB_ACCESS_REMOTE_READ), VB_OK);
	EXPECT_EQ(create_with(p, VB_ACCESS_REMOTE_WRITE | VB_ACCESS_LOCAL_WRITE), VB_OK);
}

TEST(rights_that_do_not_exist_are_EINVAL_and_hints_are_accepted)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(create_with(p, 1 << 15), VB_EINVAL);
	EXPECT_EQ(create_with(p, VB_ACCESS_OPTIONAL), VB_OK);
}

TEST(a_region_whose_range_wraps_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = { .address = UINT64_MAX - 5, .length = 10 };
	struct vb_mr *mr;

	EXPECT_EQ(vb_mr_create(p->node[A].pd, &init, &mr), VB_EINVAL);
	init = (struct vb_mr_init){ .address = 0x1000, .iova = UINT64_MAX - 5, .length = 10 };
	EXPECT_EQ(vb_mr_create(p->node[A].pd, &init, &mr), VB_EINVAL);
}

TEST(rereg_of_the_access_keeps_the_key_and_changes_the_rights)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, VB_ACCESS_REMOTE_READ);
	struct vb_mr *mr = make_mr(p, B, &init);
	uint32_t key = vb_mr_key(mr);
	struct vb_mr_init more = { .access = RIGHTS_ALL };

	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_ACCESS, NULL, &more), VB_OK);
	EXPECT_EQ(vb_mr_key(mr), key);
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
}

TEST(rereg_of_the_translation_moves_the_region)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_mr_init moved = mr_init_at(p, B, TARGET + 0x2000, 0x10, 0);

	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_TRANSLATION, NULL, &moved), VB_OK);
	expect_write(p, vb_mr_key(mr), IOVA_B + TARGET + 0x2000, 16, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET + 0x2000, 16);
	expect_write(p, vb_mr_key(mr), IOVA_B + TARGET, 8, REFUSED);
}

TEST(rereg_of_the_pd_takes_the_region_away_from_the_old_one)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);

	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_PD, p->node[B].other_pd, &init), VB_OK);
	EXPECT_EQ(vb_pd_destroy(p->node[B].other_pd), VB_EBUSY);
	expect_write(p, vb_mr_key(mr), IOVA_B + TARGET, 8, REFUSED);
}

TEST(a_failed_rereg_changes_nothing)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_mr_init bad = { .access = VB_ACCESS_REMOTE_WRITE };

	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_ACCESS | VB_REREG_TRANSLATION, NULL, &bad),
		  VB_EINVAL);
	EXPECT_EQ(vb_mr_reregister(mr, 0, NULL, &bad), VB_EINVAL);
	EXPECT_EQ(vb_mr_reregister(mr, 0x100, NULL, &bad), VB_EINVAL);
	expect_write(p, vb_mr_key(mr), IOVA_B + TARGET, 8, SUCCESS);
}

TEST(a_null_region_reads_as_0_and_swallows_writes)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr *mr;

	EXPECT_EQ(vb_mr_create_null(p->node[A].pd, &mr), VB_OK);
	struct vb_sge null = { 0x123456, 100, vb_mr_key(mr) };
	struct vb_send_request write = write_request(p, A, 1, 0), read = read_request(p, A, 2, 0);

	write.sges = read.sges = &null;
	set_bytes(p, B, TARGET, 0xff, 200);
	post(p, A, write);
	post(p, A, read);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS READ len=100");
	EXPECT_EQ(word_at(p, B, TARGET + 92), 0);
	EXPECT_EQ(p->node[B].memory[TARGET + 100], 0xff);
	EXPECT_EQ(p->node[A].zero_page[0], 0);
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
}

TEST(a_null_region_is_no_rkey)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr *mr;

	EXPECT_EQ(vb_mr_create_null(p->node[B].pd, &mr), VB_OK);
	expect_write(p, vb_mr_key(mr), 0, 8, REFUSED);
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
}

TEST(device_memory_is_copied_in_and_out)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_dm *dm;
	char text[8];

	EXPECT_EQ(vb_dm_create(p->node[A].nic, 0x100, 6, &dm), VB_OK);
	EXPECT_EQ(vb_dm_copy_in(dm, 8, "device!", 8), VB_OK);
	EXPECT_EQ(vb_dm_copy_out(dm, 8, text, 8), VB_OK);
	EXPECT_STR(text, "device!");
	EXPECT_EQ(vb_dm_copy_in(dm, 0xfc, text, 8), VB_EINVAL);
	EXPECT_EQ(vb_dm_copy_in(dm, 1, text, 4), VB_EINVAL);
	EXPECT_EQ(vb_dm_copy_out(dm, 0, text, 3), VB_EINVAL);
	EXPECT_EQ(vb_dm_copy_out(dm, UINT64_MAX - 3, text, 8), VB_EINVAL);
	EXPECT_EQ(vb_dm_destroy(dm), VB_OK);
}

TEST(device_memory_runs_out_and_comes_back)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_dm *first, *second, *third;

	EXPECT_EQ(vb_dm_create(p->node[A].nic, 0x3000, 0, &first), VB_OK);
	EXPECT_EQ(vb_dm_create(p->node[A].nic, 0x1000, 0, &second), VB_OK);
	EXPECT_EQ(vb_dm_create(p->node[A].nic, 8, 0, &third), VB_ENOMEM);
	EXPECT_EQ(vb_dm_destroy(first), VB_OK);
	EXPECT_EQ(vb_dm_create(p->node[A].nic, 0x3000, 0, &third), VB_OK);
	EXPECT_EQ(vb_dm_destroy(third), VB_OK);
	EXPECT_EQ(vb_dm_destroy(second), VB_OK);
}

TEST(a_region_on_device_memory_is_addressed_from_0)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = { .address = 0x40,
				   .length = 0x80,
				   .access = RIGHTS_ALL | VB_ACCESS_ZERO_BASED };
	uint8_t bytes[16];
	struct vb_mr *mr;
	struct vb_dm *dm;

	EXPECT_EQ(vb_dm_create(p->node[B].nic, 0x100, 0, &dm), VB_OK);
	EXPECT_EQ(vb_mr_create_on_dm(p->node[B].pd, dm, &init, &mr), VB_OK);
	EXPECT_EQ(vb_dm_destroy(dm), VB_EBUSY);
	expect_write(p, vb_mr_key(mr), 8, 16, SUCCESS);
	EXPECT_EQ(vb_dm_copy_out(dm, 0x48, bytes, 16), VB_OK);
	EXPECT_MEM(bytes, p->node[A].memory + LOCAL, 16);
	expect_write(p, vb_mr_key(mr), 0x79, 8, REFUSED);
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
	EXPECT_EQ(vb_dm_destroy(dm), VB_OK);
}

TEST(a_region_on_device_memory_must_be_zero_based_and_within_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = { .address = 0, .length = 0x80, .access = RIGHTS_ALL };
	struct vb_mr *mr;
	struct vb_dm *dm;

	EXPECT_EQ(vb_dm_create(p->node[B].nic, 0x100, 0, &dm), VB_OK);
	EXPECT_EQ(vb_mr_create_on_dm(p->node[B].pd, dm, &init, &mr), VB_EINVAL);
	init.access |= VB_ACCESS_ZERO_BASED;
	init.address = 0x81;
	EXPECT_EQ(vb_mr_create_on_dm(p->node[B].pd, dm, &init, &mr), VB_EINVAL);
	EXPECT_EQ(vb_dm_destroy(dm), VB_OK);
}

/* Keys and numbers are not reused soon, and show no pattern. */

enum { CYCLES = 10000, LOOK_BACK = 2000 };

static void expect_not_among_the_last(const uint32_t *seen, uint32_t count, uint32_t value)
{
	uint32_t first = count > LOOK_BACK ? count - LOOK_BACK : 0;

	for (uint32_t i = first; i < count; i++)
		if (seen[i] == value)
			FAIL("0x%x comes again after %u others", value, count - i);
}

TEST(keys_are_not_reused_soon)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, 0, 8, 0);
	static uint32_t seen[CYCLES];

	for (uint32_t i = 0; i < CYCLES; i++) {
		struct vb_mr *mr;

		EXPECT_EQ(vb_mr_create(p->node[A].pd, &init, &mr), VB_OK);
		seen[i] = vb_mr_key(mr);
		EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
		EXPECT(seen[i] != 0);
		expect_not_among_the_last(seen, i, seen[i]);
	}
}

TEST(window_keys_are_not_reused_soon)
{
	struct pair *p = pair_connect_rc(1024);
	static uint32_t seen[CYCLES];

	for (uint32_t i = 0; i < CYCLES; i++) {
		struct vb_mw *mw;

		EXPECT_EQ(vb_mw_create(p->node[A].pd, VB_MW_TYPE_2, &mw), VB_OK);
		seen[i] = vb_mw_key(mw);
		EXPECT_EQ(vb_mw_destroy(mw), VB_OK);
		expect_not_among_the_last(seen, i, seen[i]);
	}
}

TEST(qpns_are_not_reused_soon)
{
	struct pair *p = pair_connect_rc(1024);
	static uint32_t seen[CYCLES];

	for (uint32_t i = 0; i < CYCLES; i++) {
		struct vb_qp *qp = make_qp(p, A);

		seen[i] = vb_qp_number(qp).v;
		EXPECT_EQ(drop_qp(p, A, qp), VB_OK);
		EXPECT(seen[i] > 1 && seen[i] < 0xffffff);
		expect_not_among_the_last(seen, i, seen[i]);
	}
}

/* With 4096 fair bits the number of ones is within 300 of 2048, except one time in 10^20. */
TEST(every_bit_of_the_keys_looks_random)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, A, 0, 8, 0);
	uint32_t ones[32] = { 0 };

	for (uint32_t i = 0; i < 4096; i++) {
		struct vb_mr *mr;

		EXPECT_EQ(vb_mr_create(p->node[A].pd, &init, &mr), VB_OK);
		for (uint32_t bit = 0; bit < 32; bit++)
			ones[bit] += vb_mr_key(mr) >> bit & 1;
		EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
	}
	for (uint32_t bit = 0; bit < 32; bit++)
		EXPECT(ones[bit] > 2048 - 300 && ones[bit] < 2048 + 300);
}

TEST(another_seed_gives_other_keys)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT(key_of(p, A) != key_of(p, B));
}

/* Objects that still have children cannot be destroyed. */

TEST(a_pd_in_use_cannot_be_destroyed)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_pd_destroy(p->node[A].pd), VB_EBUSY);
}

TEST(an_adapter_with_objects_cannot_be_destroyed)
{
	struct pair *p = pair_connect_rc(1024);

	EXPECT_EQ(vb_nic_destroy(p->node[A].nic), VB_EBUSY);
	post_write(p, A, 1, 8);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(rereg_of_a_region_with_windows_is_EBUSY)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_mr_init init = mr_init_at(p, B, 0, 8, RIGHTS_ALL);

	post(p, B, bind_request(p, B, 50, mw, TARGET, 8, VB_ACCESS_REMOTE_READ));
	settle(p);
	EXPECT_EQ(vb_mr_reregister(p->node[B].mr, VB_REREG_ACCESS, NULL, &init), VB_EBUSY);
}

TEST(rereg_of_a_null_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, 0, 8, RIGHTS_ALL);
	struct vb_mr *mr;

	EXPECT_EQ(vb_mr_create_null(p->node[B].pd, &mr), VB_OK);
	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_ACCESS, NULL, &init), VB_EOPNOTSUPP);
	EXPECT_EQ(vb_mr_destroy(mr), VB_OK);
}

TEST(rereg_into_a_pd_of_another_adapter_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, 0, 8, RIGHTS_ALL);

	EXPECT_EQ(vb_mr_reregister(p->node[B].mr, VB_REREG_PD, p->node[A].pd, &init), VB_EINVAL);
}

TEST(rereg_of_a_zero_based_region_keeps_it_zero_based)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init =
		mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL | VB_ACCESS_ZERO_BASED);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_mr_init moved = mr_init_at(p, B, TARGET + 0x2000, 0x10, 0);

	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_TRANSLATION, NULL, &moved), VB_OK);
	expect_write(p, vb_mr_key(mr), 0, 16, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET + 0x2000, 16);
}

TEST(device_memory_of_no_length_or_a_wild_alignment_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_dm *dm;

	EXPECT_EQ(vb_dm_create(p->node[A].nic, 0, 0, &dm), VB_EINVAL);
	EXPECT_EQ(vb_dm_create(p->node[A].nic, 8, 63, &dm), VB_EINVAL);
	EXPECT_EQ(vb_dm_create(p->node[A].nic, UINT64_MAX, 0, &dm), VB_ENOMEM);
}

TEST(a_read_only_program_memory_region_serves_reads_but_not_atomics)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, VB_ACCESS_REMOTE_READ);
	struct vb_send_request read = read_request(p, A, 1, 8);
	struct vb_send_request atomic = fetch_add_request(p, A, 2, 8);

	read.rkey = atomic.rkey = vb_mr_key(make_mr(p, B, &init));
	post(p, A, read);
	post(p, A, atomic);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=8", "wr=2 REM_ACCESS_ERR");
	expect_untouched(p, B, TARGET, 8);
}
