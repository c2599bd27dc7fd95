/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The answer of the target's rows to a request is remembered, and is valid for the next request
 * only while the rows are unchanged. In each test a WRITE is executed; then a change forbids it,
 * and nothing more is written.
 */
#include "support_direct.h"

#include "nic/peer_memory.h"

#include <string.h>

enum { LENGTH = 16, MARK = 0x55 };

/* A newly connected QP has work to do, which is done here. */
static struct pair *connect_idle(void)
{
	struct pair *p = connect_directly(VB_QP_RC);

	expect_silence(p, A);
	return p;
}

static bool write_at_once(struct pair *p, struct vb_send_request request)
{
	struct vb_qp *qp = node_of(p, A)->qp;

	if (!vb_qp_write_now(qp, &request))
		return false;
	vb_qp_conclude_write(qp, &request, p->now_ns);
	return true;
}

static bool is_marked(struct pair *p, uint32_t offset)
{
	const uint8_t *bytes = node_of(p, B)->memory + offset;

	for (uint32_t i = 0; i < LENGTH; i++)
		if (bytes[i] != MARK)
			return false;
	return true;
}

/* The request is executed twice, the second time with the remembered answer. */
static void expect_allowed(struct pair *p, struct vb_send_request request)
{
	for (uint32_t i = 0; i < 2; i++) {
		set_bytes(p, B, TARGET, MARK, LENGTH);
		EXPECT(write_at_once(p, request));
		expect_completions(p, A, "wr=1 SUCCESS WRITE");
		expect_copied(p, A, LOCAL, B, TARGET, LENGTH);
	}
	set_bytes(p, B, TARGET, MARK, LENGTH);
}

/* The request is refused twice: a refusal is not remembered either. */
static void expect_forbidden(struct pair *p, struct vb_send_request request)
{
	for (uint32_t i = 0; i < 2; i++) {
		EXPECT(!write_at_once(p, request));
		EXPECT(is_marked(p, TARGET));
	}
}

static struct vb_send_request plain_write(struct pair *p)
{
	return write_request(p, A, 1, LENGTH);
}

/* The rows as B would write them. */
static struct vb_key_row *key_row_of(uint32_t key)
{
	const struct vb_peer_memory_tables *tables = &direct_peer_memory.tables;

	return (struct vb_key_row *)(uintptr_t)&tables
		->key_rows[key >> 8 & (tables->key_row_count - 1)];
}

static struct vb_qp_row *qp_row_of(const struct vb_qp *qp)
{
	const struct vb_peer_memory_tables *tables = &direct_peer_memory.tables;

	return (struct vb_qp_row *)(uintptr_t)&tables
		->qp_rows[vb_qp_number(qp).v & (tables->qp_row_count - 1)];
}

/* --- regions --- */

TEST(a_region_that_was_deregistered_is_written_no_more)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);

	expect_allowed(p, request);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	expect_forbidden(p, request);
}

TEST(a_region_that_was_deregistered_is_written_no_more_by_requests_that_are_posted)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);

	for (uint32_t i = 0; i < 2; i++) {
		post(p, A, request);
		expect_executed(p, "wr=1 SUCCESS WRITE");
	}
	set_bytes(p, B, TARGET, MARK, LENGTH);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	post(p, A, request);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=16 ack");
	EXPECT(is_marked(p, TARGET));
}

TEST(another_region_in_the_row_of_one_that_is_gone_is_not_it)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);
	struct vb_key_row *row = key_row_of(request.rkey);

	expect_allowed(p, request);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	EXPECT_EQ(row->kind, VB_KEY_FREE);
	/* all of B's memory, by a key with another low byte */
	*row = *key_row_of(key_of(p, B));
	row->key = request.rkey ^ 1;
	row->generation = 1000;
	expect_forbidden(p, request);
	request.rkey ^= 1;
	expect_allowed(p, request);
}

TEST(a_key_that_shares_its_row_with_the_one_before_is_another)
{
	struct pair *p = connect_idle();
	struct vb_send_request request = plain_write(p);

	expect_allowed(p, request);
	request.rkey ^= 1;
	expect_forbidden(p, request);
}

TEST(a_region_that_was_registered_anew_is_where_it_is_now)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);
	struct vb_mr_init elsewhere = mr_init_at(p, B, TARGET + 0x1000, 0x1000, RIGHTS_ALL);

	expect_allowed(p, request);
	elsewhere.iova = node_of(p, B)->iova + TARGET;
	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_TRANSLATION, NULL, &elsewhere), VB_OK);
	EXPECT(write_at_once(p, request));
	EXPECT(is_marked(p, TARGET));
	expect_copied(p, A, LOCAL, B, TARGET + 0x1000, LENGTH);
}

TEST(a_region_that_lost_a_right_is_written_no_more)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);
	struct vb_mr_init init = { .access = VB_ACCESS_REMOTE_READ };

	expect_allowed(p, request);
	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_ACCESS, NULL, &init), VB_OK);
	expect_forbidden(p, request);
}

TEST(a_region_that_went_to_another_pd_is_written_no_more)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);

	expect_allowed(p, request);
	EXPECT_EQ(vb_mr_reregister(mr, VB_REREG_PD, node_of(p, B)->other_pd, NULL), VB_OK);
	expect_forbidden(p, request);
}

TEST(beyond_the_region_nothing_is_written_though_its_row_is_remembered)
{
	struct pair *p = connect_idle();
	struct vb_mr_init init = mr_init_at(p, B, TARGET, LENGTH, RIGHTS_ALL);
	struct vb_send_request request = plain_write(p);

	request.rkey = vb_mr_key(make_mr(p, B, &init));
	expect_allowed(p, request);
	set_bytes(p, B, TARGET + LENGTH, MARK, 1);
	request.remote_address++;
	expect_forbidden(p, request);
	EXPECT_EQ(node_of(p, B)->memory[TARGET + LENGTH], MARK);
	request.remote_address -= 2;
	expect_forbidden(p, request);
}

/* --- rights --- */

TEST(a_right_to_write_is_no_right_to_read)
{
	struct pair *p = connect_idle();
	struct vb_mr_init init =
		mr_init_at(p, B, TARGET, 4096, VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE);
	struct vb_send_request write = plain_write(p);
	struct vb_send_request read = read_request(p, A, 2, LENGTH);

	write.rkey = read.rkey = vb_mr_key(make_mr(p, B, &init));
	expect_allowed(p, write);
	post(p, A, read);
	expect_sent(p, A, "READ_REQUEST psn=0");
	expect_untouched(p, A, SINK, LENGTH);
}

TEST(a_right_to_read_is_no_right_to_write)
{
	struct pair *p = connect_idle();
	struct vb_mr_init init = mr_init_at(p, B, TARGET, 4096, VB_ACCESS_REMOTE_READ);
	struct vb_send_request write = plain_write(p);
	struct vb_send_request read = read_request(p, A, 2, LENGTH);

	write.rkey = read.rkey = vb_mr_key(make_mr(p, B, &init));
	set_bytes(p, B, TARGET, MARK, LENGTH);
	post(p, A, read);
	expect_executed(p, "wr=2 SUCCESS READ len=16");
	expect_forbidden(p, write);
}

/* --- the target's QP --- */

TEST(a_qp_that_entered_the_error_state_is_reached_no_more)
{
	struct pair *p = connect_idle();

	expect_allowed(p, plain_write(p));
	modify_state(p, B, VB_STATE_ERR);
	expect_forbidden(p, plain_write(p));
}

TEST(a_qp_that_was_reset_is_reached_again_when_it_is_connected_again)
{
	struct pair *p = connect_idle();
	struct vb_qp *qp = node_of(p, B)->qp;

	expect_allowed(p, plain_write(p));
	modify_state(p, B, VB_STATE_RESET);
	expect_forbidden(p, plain_write(p));
	bring_up(p, B, qp, vb_qp_number(node_of(p, A)->qp), VB_STATE_RTS);
	expect_allowed(p, plain_write(p));
}

TEST(a_qp_that_has_another_peer_now_is_reached_no_more)
{
	struct pair *p = connect_idle();
	struct vb_qp *other = make_qp(p, A);

	expect_allowed(p, plain_write(p));
	modify_state(p, B, VB_STATE_RESET);
	bring_up(p, B, node_of(p, B)->qp, vb_qp_number(other), VB_STATE_RTS);
	expect_forbidden(p, plain_write(p));
}

TEST(a_qp_that_allows_no_writes_any_more_is_written_to_no_more)
{
	struct pair *p = connect_idle();
	struct vb_qp_attr attr = { .access = VB_ACCESS_REMOTE_READ };

	expect_allowed(p, plain_write(p));
	EXPECT_EQ(vb_qp_modify(node_of(p, B)->qp, &attr, VB_ATTR_ACCESS), VB_OK);
	expect_forbidden(p, plain_write(p));
	attr.access = VB_ACCESS_REMOTE_WRITE;
	EXPECT_EQ(vb_qp_modify(node_of(p, B)->qp, &attr, VB_ATTR_ACCESS), VB_OK);
	expect_allowed(p, plain_write(p));
}

TEST(a_row_that_is_being_changed_says_nothing)
{
	struct pair *p = connect_idle();
	struct vb_qp_row *qp_row = qp_row_of(node_of(p, B)->qp);
	struct vb_key_row *key_row = key_row_of(key_of(p, B));

	expect_allowed(p, plain_write(p));
	qp_row->generation++;
	expect_forbidden(p, plain_write(p));
	qp_row->generation++;
	expect_allowed(p, plain_write(p));
	key_row->generation++;
	expect_forbidden(p, plain_write(p));
	key_row->generation++;
	expect_allowed(p, plain_write(p));
}

/* --- the asking QP --- */

TEST(a_qp_that_is_connected_to_another_one_now_asks_anew)
{
	struct pair *p = connect_idle();
	struct vb_qp *qp = node_of(p, A)->qp;
	struct vb_qp *other = make_qp(p, B); /* to which A's QP is not connected */

	expect_allowed(p, plain_write(p));
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, qp, vb_qp_number(other), VB_STATE_RTS);
	vb_qp_set_link(qp, SHM_LINK, &direct_peer_memory);
	expect_silence(p, A);
	expect_forbidden(p, plain_write(p));
}

/* On the wire, the target would accept none of its packets. */
TEST(a_qp_that_was_given_another_path_asks_anew)
{
	struct pair *p = connect_idle();
	struct vb_qp *qp = node_of(p, A)->qp;
	struct vb_qp_attr attr;

	expect_allowed(p, plain_write(p));
	vb_qp_query(qp, &attr);
	modify_state(p, A, VB_STATE_SQD);
	attr.address.destination.raw[15] ^= 1;
	EXPECT_EQ(vb_qp_modify(qp, &attr, VB_ATTR_ADDRESS), VB_OK);
	modify_state(p, A, VB_STATE_RTS);
	expect_silence(p, A);
	expect_forbidden(p, plain_write(p));
}

/* --- the tables --- */

TEST(rows_that_are_published_in_other_memory_count_and_the_old_ones_do_not)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);

	expect_allowed(p, request);
	publish_again(p);
	expect_allowed(p, request);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	expect_forbidden(p, request);
}

TEST(rows_that_are_published_in_other_memory_count_at_once)
{
	struct pair *p = connect_idle();
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, LENGTH, &mr);

	expect_allowed(p, request);
	publish_again(p);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK); /* the old rows do not show this */
	expect_forbidden(p, request);
}

/* The new rows at that place may have reached the same generation numbers. */
TEST(other_rows_that_lie_where_those_lay_are_others)
{
	struct pair *p = connect_idle();

	expect_allowed(p, plain_write(p));
	key_row_of(key_of(p, B))->access = 0;
	direct_peer_memory.tables.epoch++;
	expect_forbidden(p, plain_write(p));
}

TEST(rows_full_of_rubbish_allow_nothing_though_they_were_right_before)
{
	struct pair *p = connect_idle();
	struct vb_key_row *key_row = key_row_of(key_of(p, B));
	struct vb_qp_row *qp_row = qp_row_of(node_of(p, B)->qp);
	const struct vb_key_row right_key = *key_row;
	const struct vb_qp_row right_qp = *qp_row;

	for (uint32_t rubbish = 0; rubbish < 256; rubbish += 51) {
		expect_allowed(p, plain_write(p));
		memset(key_row, (int)rubbish, sizeof(*key_row));
		expect_forbidden(p, plain_write(p));
		*key_row = right_key;
		expect_allowed(p, plain_write(p));
		memset(qp_row, (int)rubbish, sizeof(*qp_row));
		expect_forbidden(p, plain_write(p));
		*qp_row = right_qp;
	}
}

/* A request of length 0 needs no key, and leaves none behind. */
TEST(a_request_of_length_0_is_asked_for_each_time)
{
	struct pair *p = connect_idle();
	struct vb_send_request empty = write_request(p, A, 2, 0);

	expect_allowed(p, plain_write(p));
	post(p, A, empty);
	expect_executed(p, "wr=2 SUCCESS WRITE");
	expect_allowed(p, plain_write(p));
	modify_state(p, B, VB_STATE_ERR);
	post(p, A, empty);
	expect_sent(p, A, "WRITE_ONLY psn=0 len=0 ack");
}
