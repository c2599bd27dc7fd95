/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RC: every reason for which a WRITE, READ or atomic can be refused, for each of them: the NAK, the
 * status at the requester, the event at the responder, both QPs in ERR, and the memory unchanged.
 */
#include "support_pair.h"

/*
 * One request goes out and is refused. The request behind it is flushed, and so is the receive,
 * which it did not need.
 */
static void expect_refusal(struct pair *p, struct vb_send_request request, const char *nak,
			   const char *status, const char *event)
{
	post_recv(p, B, 8, 16);
	post(p, A, request);
	post_write(p, A, 2, 8);
	send_all(p, A);
	deliver(p);
	expect_sent(p, B, nak);
	expect_events(p, B, event);
	expect_completions(p, B, "wr=8 WR_FLUSH_ERR");
	expect_state(p, B, VB_STATE_ERR);
	deliver(p);
	expect_completions(p, A, status, "wr=2 WR_FLUSH_ERR");
	expect_state(p, A, VB_STATE_ERR);
	expect_untouched(p, B, TARGET, 0x1000);
	expect_untouched(p, B, MEMORY_LENGTH - 0x1000, 0x1000);
	expect_untouched(p, A, SINK, 0x1000);
}

static void expect_access_error(struct pair *p, struct vb_send_request request)
{
	expect_refusal(p, request, "ACKNOWLEDGE psn=0 msn=0 NAK remote access",
		       "wr=1 REM_ACCESS_ERR", "QP_ACCESS_ERR");
	expect_counter(p, B, RESP_REMOTE_ACCESS_ERRORS, 1);
	expect_counter(p, A, REQ_REMOTE_ACCESS_ERRORS, 1);
}

static void expect_invalid_request(struct pair *p, struct vb_send_request request)
{
	expect_refusal(p, request, "ACKNOWLEDGE psn=0 msn=0 NAK invalid request",
		       "wr=1 REM_INV_REQ_ERR", "QP_REQ_ERR");
	expect_counter(p, A, REQ_REMOTE_INVALID_REQUEST, 1);
}

static struct pair *pair_with_qp_access(uint32_t access)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);

	setup.qp_access = access;
	return pair_connect(&setup);
}

/* A key of B for the TARGET with these rights, in this PD. */
static uint32_t key_with(struct pair *p, struct vb_pd *pd, uint32_t access)
{
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 0x1000, access);

	return vb_mr_key(make_mr_in(p, B, pd, &init));
}

TEST(rc_write_with_a_wrong_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey ^= 0x100;
	expect_access_error(p, request);
}

TEST(rc_write_with_the_right_row_but_the_wrong_low_bits_of_the_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey ^= 1;
	expect_access_error(p, request);
}

TEST(rc_write_with_a_key_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].other_pd, RIGHTS_ALL);
	expect_access_error(p, request);
}

TEST(rc_write_with_the_key_of_a_destroyed_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_access_error(p, request);
}

TEST(rc_write_reaching_one_byte_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.remote_address = IOVA_B + MEMORY_LENGTH - 63;
	expect_access_error(p, request);
}

TEST(rc_write_beginning_one_byte_before_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.remote_address = IOVA_B - 1;
	expect_access_error(p, request);
}

TEST(rc_write_whose_range_wraps_around_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.remote_address = UINT64_MAX - 31;
	expect_access_error(p, request);
}

TEST(rc_write_without_the_right_of_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL & ~VB_ACCESS_REMOTE_WRITE);
	expect_access_error(p, request);
}

TEST(rc_write_without_the_right_of_the_qp_is_an_invalid_request)
{
	struct pair *p = pair_with_qp_access(RIGHTS_REMOTE & ~VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request request = write_request(p, A, 1, 64);

	expect_invalid_request(p, request);
}

TEST(rc_read_with_a_wrong_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey ^= 0x100;
	expect_access_error(p, request);
}

TEST(rc_read_with_the_right_row_but_the_wrong_low_bits_of_the_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey ^= 1;
	expect_access_error(p, request);
}

TEST(rc_read_with_a_key_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].other_pd, RIGHTS_ALL);
	expect_access_error(p, request);
}

TEST(rc_read_with_the_key_of_a_destroyed_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_access_error(p, request);
}

TEST(rc_read_reaching_one_byte_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.remote_address = IOVA_B + MEMORY_LENGTH - 63;
	expect_access_error(p, request);
}

TEST(rc_read_beginning_one_byte_before_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.remote_address = IOVA_B - 1;
	expect_access_error(p, request);
}

TEST(rc_read_whose_range_wraps_around_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.remote_address = UINT64_MAX - 31;
	expect_access_error(p, request);
}

TEST(rc_read_without_the_right_of_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL & ~VB_ACCESS_REMOTE_READ);
	expect_access_error(p, request);
}

TEST(rc_read_without_the_right_of_the_qp_is_an_invalid_request)
{
	struct pair *p = pair_with_qp_access(RIGHTS_REMOTE & ~VB_ACCESS_REMOTE_READ);
	struct vb_send_request request = read_request(p, A, 1, 64);

	expect_invalid_request(p, request);
}

TEST(rc_fetch_add_with_a_wrong_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.rkey ^= 0x100;
	expect_access_error(p, request);
}

TEST(rc_fetch_add_with_the_right_row_but_the_wrong_low_bits_of_the_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.rkey ^= 1;
	expect_access_error(p, request);
}

TEST(rc_fetch_add_with_a_key_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.rkey = key_with(p, p->node[B].other_pd, RIGHTS_ALL);
	expect_access_error(p, request);
}

TEST(rc_fetch_add_with_the_key_of_a_destroyed_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_access_error(p, request);
}

TEST(rc_fetch_add_reaching_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.remote_address = IOVA_B + MEMORY_LENGTH;
	expect_access_error(p, request);
}

TEST(rc_fetch_add_beginning_before_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.remote_address = IOVA_B - 8;
	expect_access_error(p, request);
}

TEST(rc_fetch_add_at_the_end_of_all_addresses_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.remote_address = UINT64_MAX - 7;
	expect_access_error(p, request);
}

TEST(rc_fetch_add_without_the_right_of_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL & ~VB_ACCESS_REMOTE_ATOMIC);
	expect_access_error(p, request);
}

TEST(rc_fetch_add_without_the_right_of_the_qp_is_an_invalid_request)
{
	struct pair *p = pair_with_qp_access(RIGHTS_REMOTE & ~VB_ACCESS_REMOTE_ATOMIC);
	struct vb_send_request request = fetch_add_request(p, A, 1, 5);

	expect_invalid_request(p, request);
}

TEST(rc_compare_swap_with_a_wrong_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.rkey ^= 0x100;
	expect_access_error(p, request);
}

TEST(rc_compare_swap_with_the_right_row_but_the_wrong_low_bits_of_the_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.rkey ^= 1;
	expect_access_error(p, request);
}

TEST(rc_compare_swap_with_a_key_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.rkey = key_with(p, p->node[B].other_pd, RIGHTS_ALL);
	expect_access_error(p, request);
}

TEST(rc_compare_swap_with_the_key_of_a_destroyed_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_access_error(p, request);
}

TEST(rc_compare_swap_reaching_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.remote_address = IOVA_B + MEMORY_LENGTH;
	expect_access_error(p, request);
}

TEST(rc_compare_swap_beginning_before_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.remote_address = IOVA_B - 8;
	expect_access_error(p, request);
}

TEST(rc_compare_swap_at_the_end_of_all_addresses_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.remote_address = UINT64_MAX - 7;
	expect_access_error(p, request);
}

TEST(rc_compare_swap_without_the_right_of_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL & ~VB_ACCESS_REMOTE_ATOMIC);
	expect_access_error(p, request);
}

TEST(rc_compare_swap_without_the_right_of_the_qp_is_an_invalid_request)
{
	struct pair *p = pair_with_qp_access(RIGHTS_REMOTE & ~VB_ACCESS_REMOTE_ATOMIC);
	struct vb_send_request request = compare_swap_request(p, A, 1, 5, 6);

	expect_invalid_request(p, request);
}

TEST(rc_atomic_write_with_a_wrong_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.rkey ^= 0x100;
	expect_access_error(p, request);
}

TEST(rc_atomic_write_with_the_right_row_but_the_wrong_low_bits_of_the_key_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.rkey ^= 1;
	expect_access_error(p, request);
}

TEST(rc_atomic_write_with_a_key_of_another_pd_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.rkey = key_with(p, p->node[B].other_pd, RIGHTS_ALL);
	expect_access_error(p, request);
}

TEST(rc_atomic_write_with_the_key_of_a_destroyed_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_access_error(p, request);
}

TEST(rc_atomic_write_reaching_beyond_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.remote_address = IOVA_B + MEMORY_LENGTH;
	expect_access_error(p, request);
}

TEST(rc_atomic_write_beginning_before_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.remote_address = IOVA_B - 8;
	expect_access_error(p, request);
}

TEST(rc_atomic_write_at_the_end_of_all_addresses_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.remote_address = UINT64_MAX - 7;
	expect_access_error(p, request);
}

TEST(rc_atomic_write_without_the_right_of_the_region_is_refused)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL & ~VB_ACCESS_REMOTE_WRITE);
	expect_access_error(p, request);
}

TEST(rc_atomic_write_without_the_right_of_the_qp_is_an_invalid_request)
{
	struct pair *p = pair_with_qp_access(RIGHTS_REMOTE & ~VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request request = atomic_write_request(p, A, 1);

	expect_invalid_request(p, request);
}

TEST(rc_write_up_to_the_last_byte_of_the_region_is_allowed)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.remote_address = IOVA_B + MEMORY_LENGTH - 64;
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
	expect_copied(p, A, LOCAL, B, MEMORY_LENGTH - 64, 64);
}

TEST(rc_read_with_only_the_right_to_read_is_allowed)
{
	struct pair *p = pair_with_qp_access(VB_ACCESS_REMOTE_READ);
	struct vb_send_request request = read_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, VB_ACCESS_REMOTE_READ);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS READ len=64");
}

TEST(rc_write_with_only_the_right_to_write_is_allowed)
{
	struct pair *p = pair_with_qp_access(VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey = key_with(p, p->node[B].pd, VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS WRITE");
}

TEST(rc_atomic_with_only_the_right_to_atomics_is_allowed)
{
	struct pair *p = pair_with_qp_access(VB_ACCESS_REMOTE_ATOMIC);
	struct vb_send_request request = fetch_add_request(p, A, 1, 1);

	request.rkey = key_with(p, p->node[B].pd, VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_ATOMIC);
	post(p, A, request);
	settle(p);
	expect_completions(p, A, "wr=1 SUCCESS FETCH_ADD len=8");
}

TEST(rc_a_region_that_vanishes_in_the_middle_of_a_write_ends_it)
{
	struct pair *p = pair_connect_rc(256);
	uint32_t key = key_with(p, p->node[B].pd, RIGHTS_ALL);
	struct vb_send_request request = write_request(p, A, 1, 600);

	request.rkey = key;
	post(p, A, request);
	expect_sent(p, A, "WRITE_FIRST psn=0 len=256", "WRITE_MIDDLE psn=1 len=256",
		    "WRITE_LAST psn=2 len=88 ack");
	deliver_nth(p, 0);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	deliver_nth(p, 1);
	lose(p);
	expect_untouched(p, B, TARGET + 256, 0x100);
	expect_sent(p, B, "ACKNOWLEDGE psn=1 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
}

TEST(rc_a_region_that_vanishes_before_a_read_is_answered_ends_it)
{
	struct pair *p = pair_connect_rc(256);
	struct vb_send_request request = read_request(p, A, 1, 100);

	request.rkey = key_with(p, p->node[B].pd, RIGHTS_ALL);
	post(p, A, request);
	expect_sent(p, A, "READ_REQUEST psn=0 dma=100");
	deliver(p);
	EXPECT_EQ(drop_mr(p, B, p->node[B].mrs[0]), VB_OK);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	deliver(p);
	expect_completions(p, A, "wr=1 REM_ACCESS_ERR");
	expect_state(p, B, VB_STATE_ERR);
}

TEST(rc_a_write_refused_in_its_first_packet_does_not_execute_what_follows_it)
{
	struct pair *p = pair_connect_rc(1024);
	struct vb_send_request request = write_request(p, A, 1, 64);

	request.rkey ^= 0x100;
	post_recv(p, B, 1, 100);
	post(p, A, request);
	post_send(p, A, 2, 10);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=64 ack", "SEND_ONLY psn=1 len=10 ack");
	deliver(p);
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=0 NAK remote access");
	expect_completions(p, B, "wr=1 WR_FLUSH_ERR");
	expect_untouched(p, B, recv_at(1), 10);
}
