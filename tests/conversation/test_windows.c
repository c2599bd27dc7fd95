/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: binding, the two types, and their invalidation from either side. */
#include "support_pair.h"

#include <stdio.h>

enum { WINDOW_LENGTH = 0x1000 };

/* B binds a window of type 2 (or 1) over the first bytes of its TARGET and returns its key. */
static uint32_t bind(struct pair *p, struct vb_mw *mw, uint32_t access)
{
	struct vb_send_request request = bind_request(p, B, 50, mw, TARGET, WINDOW_LENGTH, access);

	post(p, B, request);
	settle(p);
	expect_completions(p, B, "wr=50 SUCCESS BIND_MW");
	EXPECT_EQ(vb_mw_key(mw), request.bind.rkey);
	return vb_mw_key(mw);
}

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

TEST(window_opens_its_part_of_the_region)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);

	expect_write(p, key, IOVA_B + TARGET, WINDOW_LENGTH, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET, WINDOW_LENGTH);
}

TEST(window_ends_where_it_ends)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);

	expect_write(p, key, IOVA_B + TARGET + 1, WINDOW_LENGTH, REFUSED);
	expect_untouched(p, B, TARGET, WINDOW_LENGTH + 1);
}

TEST(window_begins_where_it_begins)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);

	expect_write(p, key, IOVA_B + TARGET - 1, 8, REFUSED);
}

TEST(window_gives_only_its_own_rights)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_READ);

	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
	expect_untouched(p, B, TARGET, 8);
}

TEST(window_may_give_a_right_that_its_region_does_not_give_to_all)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init =
		mr_init_at(p, B, TARGET, 0x1000, VB_ACCESS_LOCAL_WRITE | VB_ACCESS_MW_BIND);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_send_request request =
		bind_request(p, B, 50, mw, TARGET, WINDOW_LENGTH, VB_ACCESS_REMOTE_WRITE);

	request.bind.mr = mr;
	post(p, B, request);
	settle(p);
	expect_completions(p, B, "wr=50 SUCCESS BIND_MW");
	expect_write(p, vb_mw_key(mw), IOVA_B + TARGET, 8, SUCCESS);
}

TEST(window_zero_based_is_addressed_from_0)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key =
		bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE | VB_ACCESS_ZERO_BASED);

	expect_write(p, key, 0, 8, SUCCESS);
	expect_copied(p, A, LOCAL, B, TARGET, 8);
}

TEST(window_that_is_not_bound_opens_nothing)
{
	struct pair *p = pair_connect_rc(1024);

	expect_write(p, vb_mw_key(make_mw(p, B, VB_MW_TYPE_1)), IOVA_B + TARGET, 8, REFUSED);
}

TEST(window_old_key_is_dead_after_binding_with_a_new_one)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	uint32_t old = vb_mw_key(mw);

	EXPECT(bind(p, mw, VB_ACCESS_REMOTE_WRITE) != old);
	expect_write(p, old, IOVA_B + TARGET, 8, REFUSED);
}

/* Refused binds: MW_BIND_ERR, and the QP is in ERR as after any local error. */
static void expect_bind_error(struct pair *p, struct vb_send_request request)
{
	post(p, B, request);
	post_write(p, B, 51, 8);
	settle(p);
	expect_completions(p, B, "wr=50 MW_BIND_ERR", "wr=51 WR_FLUSH_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(bind_to_a_region_without_MW_BIND_is_refused)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	setup.mr_access = RIGHTS_ALL & ~VB_ACCESS_MW_BIND;
	struct pair *p = pair_connect(&setup);

	expect_bind_error(p, bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET, 8,
					  VB_ACCESS_REMOTE_READ));
}

TEST(bind_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);

	expect_bind_error(p, bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), MEMORY_LENGTH - 8,
					  9, VB_ACCESS_REMOTE_READ));
}

TEST(bind_of_a_range_that_wraps_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET,
						      8, VB_ACCESS_REMOTE_READ);

	request.bind.length = UINT64_MAX;
	expect_bind_error(p, request);
}

TEST(bind_to_a_region_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, RIGHTS_ALL);
	struct vb_send_request request = bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET,
						      8, VB_ACCESS_REMOTE_READ);

	request.bind.mr = make_mr_in(p, B, p->node[B].other_pd, &init);
	expect_bind_error(p, request);
}

TEST(bind_with_remote_write_to_a_region_without_local_write_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mr_init init =
		mr_init_at(p, B, TARGET, 0x1000, VB_ACCESS_MW_BIND | VB_ACCESS_REMOTE_READ);
	struct vb_send_request request = bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET,
						      8, VB_ACCESS_REMOTE_WRITE);

	request.bind.mr = make_mr(p, B, &init);
	expect_bind_error(p, request);
}

TEST(bind_with_a_key_of_which_more_than_the_low_8_bits_are_new_is_EINVAL)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET,
						      8, VB_ACCESS_REMOTE_READ);

	request.bind.rkey ^= 0x100;
	EXPECT_EQ(try_post(p, B, request), VB_EINVAL);
}

TEST(type_1_window_may_be_bound_again_and_unbound)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_1);
	uint32_t first = bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	uint32_t second = bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request unbind = bind_request(p, B, 52, mw, 0, 0, 0);

	EXPECT(first != second);
	expect_write(p, second, IOVA_B + TARGET, 8, SUCCESS);
	unbind.bind.mr = NULL;
	post(p, B, unbind);
	settle(p);
	expect_completions(p, B, "wr=52 SUCCESS BIND_MW");
	expect_write(p, second, IOVA_B + TARGET, 8, REFUSED);
}

TEST(type_1_window_works_for_every_qp_of_its_pd)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_1), VB_ACCESS_REMOTE_WRITE);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	p->node[A].qp = a;
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
}

TEST(type_2_window_works_only_for_the_qp_that_bound_it)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B);

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	p->node[A].qp = a;
	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
}

TEST(type_2_window_must_be_invalidated_before_it_is_bound_again)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);

	(void)bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	expect_bind_error(p, bind_request(p, B, 50, mw, TARGET, 8, VB_ACCESS_REMOTE_READ));
}

TEST(local_invalidate_closes_the_window_and_it_may_be_bound_again)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	uint32_t key = bind(p, mw, VB_ACCESS_REMOTE_WRITE);

	post(p, B, invalidate_request(60, key));
	settle(p);
	expect_completions(p, B, "wr=60 SUCCESS LOCAL_INV");
	key = bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
}

TEST(an_access_after_local_invalidate_is_REM_ACCESS_ERR)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);

	post(p, B, invalidate_request(60, key));
	settle(p);
	expect_completions(p, B, "wr=60 SUCCESS LOCAL_INV");
	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
	expect_untouched(p, B, TARGET, 8);
}

TEST(local_invalidate_of_a_key_that_is_no_window_fails)
{
	struct pair *p = pair_connect_rc(1024);

	post(p, B, invalidate_request(60, key_of(p, B)));
	settle(p);
	expect_completions(p, B, "wr=60 MW_BIND_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

static struct vb_send_request send_inv(struct pair *p, uint32_t key)
{
	struct vb_send_request request = send_request(p, A, 1, 10);

	request.opcode = VB_WR_SEND_INV;
	request.imm = key;
	return request;
}

TEST(send_inv_closes_the_window_and_the_completion_says_so)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);
	char packet[80], completion[80];

	snprintf(packet, sizeof(packet), "SEND_ONLY_INV psn=0 len=10 inv=0x%x ack", key);
	snprintf(completion, sizeof(completion), "wr=4 SUCCESS RECV len=10 inv=0x%x", key);
	post_recv(p, B, 4, 100);
	post(p, A, send_inv(p, key));
	expect_sent(p, A, packet);
	deliver(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_completions(p, B, completion);
	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
}

TEST(send_inv_of_a_key_that_cannot_be_invalidated_ends_both_qps)
{
	struct pair *p = pair_connect_rc(1024);

	post_recv(p, B, 4, 100);
	post(p, A, send_inv(p, key_of(p, B)));
	settle(p);
	expect_state(p, A, VB_STATE_ERR);
	expect_state(p, B, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
}

TEST(send_inv_of_another_qps_window_is_refused_and_leaves_it_open)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_REMOTE_WRITE);
	struct vb_qp *a = make_qp(p, A), *b = make_qp(p, B), *first = p->node[A].qp;
	struct vb_sge sge = sge_at(p, B, recv_at(4), 100);
	struct vb_recv_request receive = { .wr_id = 4, .sges = &sge, .sge_count = 1 };

	bring_up(p, A, a, vb_qp_number(b), VB_STATE_RTS);
	bring_up(p, B, b, vb_qp_number(a), VB_STATE_RTS);
	EXPECT_EQ(vb_qp_post_recv(b, &receive), VB_OK);
	p->node[A].qp = a;
	post(p, A, send_inv(p, key));
	settle(p);
	EXPECT_EQ(vb_qp_state(b), VB_STATE_ERR);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	p->node[A].qp = first;
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
}

TEST(a_duplicate_send_inv_does_not_close_a_window_that_was_bound_again)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	uint32_t key = bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request again =
		bind_request(p, B, 51, mw, TARGET, 8, VB_ACCESS_REMOTE_WRITE);

	again.bind.rkey = key;
	post_recv(p, B, 4, 100);
	post(p, A, send_inv(p, key));
	send_all(p, A);
	deliver_nth(p, 0);
	post(p, B, again);
	send_all(p, B);
	deliver_nth(p, 0);
	lose(p);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	expect_write(p, key, IOVA_B + TARGET, 8, SUCCESS);
}

TEST(a_window_is_no_lkey)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key = bind(p, make_mw(p, B, VB_MW_TYPE_1),
			    VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ);
	struct vb_sge sge = { IOVA_B + TARGET, 8, key };
	struct vb_send_request request = write_request(p, B, 1, 8);

	request.sges = &sge;
	post(p, B, request);
	settle(p);
	expect_completions(p, B, "wr=1 LOC_PROT_ERR");
}

TEST(a_region_with_windows_cannot_be_destroyed)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);

	(void)bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	EXPECT_EQ(vb_mr_destroy(p->node[B].mr), VB_EBUSY);
	EXPECT_EQ(drop_mw(p, B, mw), VB_OK);
}

TEST(destroying_a_window_closes_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	uint32_t key = bind(p, mw, VB_ACCESS_REMOTE_WRITE);

	EXPECT_EQ(drop_mw(p, B, mw), VB_OK);
	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
}

TEST(bind_takes_its_place_in_the_order_of_the_queue)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_send_request request =
		bind_request(p, B, 2, mw, TARGET, 8, VB_ACCESS_REMOTE_WRITE);

	post_write(p, B, 1, 8);
	post(p, B, request);
	post_write(p, B, 3, 8);
	settle(p);
	expect_completions(p, B, "wr=1 SUCCESS WRITE", "wr=2 SUCCESS BIND_MW",
			   "wr=3 SUCCESS WRITE");
}

TEST(an_unsignaled_bind_completes_nothing)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = bind_request(p, B, 50, make_mw(p, B, VB_MW_TYPE_2), TARGET,
						      8, VB_ACCESS_REMOTE_READ);

	request.flags = 0;
	post(p, B, request);
	settle(p);
	expect_no_completion(p, B);
}

TEST(the_row_of_a_window_is_stable_after_every_change)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	uint32_t key = bind(p, mw, VB_ACCESS_REMOTE_WRITE);
	const struct vb_key_row *row = p->node[B].key_rows;

	while (row->key != key)
		row++;
	EXPECT_EQ(row->generation & 1, 0);
	EXPECT_EQ(row->qpn, vb_qp_number(p->node[B].qp).v);
	EXPECT_EQ(row->bound_key, key_of(p, B));
	uint32_t generation = row->generation;
	post(p, B, invalidate_request(60, key));
	settle(p);
	EXPECT(row->generation != generation && !(row->generation & 1));
	EXPECT_EQ(row->access, 0);
	EXPECT_EQ(drop_mw(p, B, mw), VB_OK);
	EXPECT_EQ(row->kind, VB_KEY_FREE);
	EXPECT_EQ(row->generation & 1, 0);
}

TEST(a_type_2_window_is_closed_with_the_qp_that_bound_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_qp *first = p->node[B].qp, *other = make_qp(p, B);
	struct vb_mr_init init = mr_init_at(p, B, TARGET, WINDOW_LENGTH, RIGHTS_ALL);
	struct vb_mr *mr = make_mr(p, B, &init);
	struct vb_send_request request =
		bind_request(p, B, 50, mw, TARGET, WINDOW_LENGTH, VB_ACCESS_REMOTE_WRITE);

	bring_up(p, B, other, vb_qp_number(p->node[A].qp), VB_STATE_RTS);
	p->node[B].qp = other;
	request.bind.mr = mr;
	post(p, B, request);
	settle(p);
	expect_completions(p, B, "wr=50 SUCCESS BIND_MW");
	p->node[B].qp = first;
	EXPECT_EQ(drop_mr(p, B, mr), VB_EBUSY);
	EXPECT_EQ(drop_qp(p, B, other), VB_OK);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
}

TEST(bind_with_local_rights_is_accepted_and_they_open_nothing)
{
	struct pair *p = pair_connect_rc(1024);
	uint32_t key =
		bind(p, make_mw(p, B, VB_MW_TYPE_2), VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ);

	expect_write(p, key, IOVA_B + TARGET, 8, REFUSED);
}
