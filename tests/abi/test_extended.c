/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The extended calls for posting and polling: every ibv_wr_* operation between two QPs, and
 * everything that an extended CQ reports about it.
 */
#include "harness.h"
#include "support_device.h"

#include "abi/objects_priv.h"
#include "host/adapter/adapter_priv.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <time.h>

enum { FROM = 0, TO = 1024, LENGTH = 64, IMM = 0x12345678, ID = 77 };
enum { BY_IPV4 = 8 | 2 }; /* a completion's service level: UDP over IPv4 */

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_mr *mr;
static struct ibv_qp *a;
static struct ibv_qp *b;
static struct ibv_qp_ex *qp; /* a */
static char memory[4096];

static void start(enum ibv_qp_type type)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK
	};

	context = open_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq_ex(context, &attr);
	EXPECT(cq);
	mr = register_all(pd, memory, sizeof(memory));
	a = make_qp(pd, ibv_cq_ex_to_cq(cq), type);
	b = make_qp(pd, ibv_cq_ex_to_cq(cq), type);
	if (type == IBV_QPT_UD) {
		set_ready(a);
		set_ready(b);
	} else {
		connect_pair(a, b);
	}
	qp = ibv_qp_to_qp_ex(a);
	qp->wr_id = ID;
	memset(memory + FROM, 'x', LENGTH);
}

static void finish(void)
{
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

static uint64_t at(uint32_t offset)
{
	return (uintptr_t)memory + offset;
}

static void set_buffer(uint32_t length)
{
	ibv_wr_set_sge(qp, mr->lkey, at(FROM), length);
}

/* Begins a poll that finds something. */
static void start_poll(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int error;

	while ((error = ibv_start_poll(cq, &attr)) == ENOENT)
		;
	EXPECT_EQ(error, 0);
	EXPECT_EQ(cq->status, IBV_WC_SUCCESS);
}

/* The next completion is the sender's, with this opcode. */
static void expect_sent(enum ibv_wc_opcode opcode)
{
	start_poll();
	EXPECT_EQ(cq->wr_id, ID);
	EXPECT_EQ(ibv_wc_read_opcode(cq), opcode);
	EXPECT_EQ(ibv_wc_read_qp_num(cq), a->qp_num);
	ibv_end_poll(cq);
}

/*
 * Polls until the receiver's completion is there, passing the sender's; the caller ends the poll.
 */
static void find_receive(void)
{
	for (;;) {
		bool is_receive;

		start_poll();
		is_receive = ibv_wc_read_opcode(cq) & IBV_WC_RECV;
		if (is_receive)
			return;
		ibv_end_poll(cq);
	}
}

TEST(sends_of_every_kind_arrive)
{
	start(IBV_QPT_RC);
	post_receive(b, mr, TO, LENGTH);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	find_receive();
	EXPECT_EQ(cq->wr_id, 2);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), LENGTH);
	EXPECT_EQ(ibv_wc_read_qp_num(cq), b->qp_num);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), 0);
	EXPECT_EQ(ibv_wc_read_sl(cq), BY_IPV4);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + TO, memory + FROM, LENGTH);

	post_receive(b, mr, TO, LENGTH);
	ibv_wr_start(qp);
	ibv_wr_send_imm(qp, htobe32(IMM));
	set_buffer(8);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	find_receive();
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_IMM);
	EXPECT_EQ(be32toh(ibv_wc_read_imm_data(cq)), IMM);
	ibv_end_poll(cq);
	finish();
}

TEST(a_send_that_invalidates_tells_which_key)
{
	struct ibv_mw_bind_info info;
	struct ibv_qp_ex *other;
	struct ibv_mw *mw;
	uint32_t rkey;

	start(IBV_QPT_RC);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	rkey = ibv_inc_rkey(mw->rkey);
	info = (struct ibv_mw_bind_info){ mr, at(TO), LENGTH, IBV_ACCESS_REMOTE_WRITE };
	other = ibv_qp_to_qp_ex(b);
	ibv_wr_start(other);
	ibv_wr_bind_mw(other, mw, rkey, &info);
	EXPECT_EQ(ibv_wr_complete(other), 0);
	start_poll();
	EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_BIND_MW);
	ibv_end_poll(cq);
	post_receive(b, mr, TO, LENGTH);
	ibv_wr_start(qp);
	ibv_wr_send_inv(qp, rkey);
	set_buffer(8);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	find_receive();
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_WITH_INV);
	EXPECT_EQ(ibv_wc_read_invalidated_rkey(cq), rkey);
	ibv_end_poll(cq);
	EXPECT_EQ(ibv_dealloc_mw(mw), 0);
	finish();
}

TEST(one_sided_operations_reach_the_other_sides_memory)
{
	uint64_t word;

	start(IBV_QPT_RC);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO));
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_RDMA_WRITE);
	EXPECT_MEM(memory + TO, memory + FROM, LENGTH);

	memset(memory + TO, 'r', LENGTH);
	ibv_wr_start(qp);
	ibv_wr_rdma_read(qp, mr->rkey, at(TO));
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_RDMA_READ);
	EXPECT_MEM(memory + FROM, memory + TO, LENGTH);

	memset(memory + TO, 0, 8);
	ibv_wr_start(qp);
	ibv_wr_atomic_fetch_add(qp, mr->rkey, at(TO), 5);
	set_buffer(8);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_FETCH_ADD);
	ibv_wr_start(qp);
	ibv_wr_atomic_cmp_swp(qp, mr->rkey, at(TO), 5, 9);
	set_buffer(8);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_COMP_SWAP);
	memcpy(&word, memory + FROM, 8);
	EXPECT_EQ(word, 5); /* the value before the operation */
	memcpy(&word, memory + TO, 8);
	EXPECT_EQ(word, 9);

	word = 0x1122334455667788;
	ibv_wr_start(qp);
	ibv_wr_atomic_write(qp, mr->rkey, at(TO), &word);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_ATOMIC_WRITE);
	EXPECT_MEM(memory + TO, &word, 8);
	finish();
}

TEST(a_write_with_immediate_takes_a_receive)
{
	start(IBV_QPT_UC);
	post_receive(b, mr, 2048, 0);
	ibv_wr_start(qp);
	ibv_wr_rdma_write_imm(qp, mr->rkey, at(TO), htobe32(IMM));
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	find_receive();
	EXPECT_EQ(ibv_wc_read_opcode(cq), IBV_WC_RECV_RDMA_WITH_IMM);
	EXPECT_EQ(be32toh(ibv_wc_read_imm_data(cq)), IMM);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + TO, memory + FROM, LENGTH);
	finish();
}

TEST(inline_data_are_taken_at_once_also_from_several_buffers)
{
	char first[] = "abcd";
	char second[] = "efgh";
	struct ibv_data_buf buffers[] = { { first, 4 }, { second, 4 } };

	start(IBV_QPT_RC);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO));
	ibv_wr_set_inline_data_list(qp, 2, buffers);
	memset(first, 0, 4);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO + 8));
	ibv_wr_set_inline_data(qp, second, 4);
	memset(second, 0, 4);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_RDMA_WRITE);
	expect_sent(IBV_WC_RDMA_WRITE);
	EXPECT_MEM(memory + TO, "abcdefghefgh", 12);
	finish();
}

TEST(sges_are_gathered_and_what_is_aborted_is_never_sent)
{
	const char digits[] = "12345678";
	struct ibv_sge sges[2];

	start(IBV_QPT_RC);
	sges[0] = (struct ibv_sge){ at(FROM), 4, mr->lkey };
	sges[1] = (struct ibv_sge){ at(FROM + 100), 4, mr->lkey };
	memcpy(memory + FROM, digits, 4);
	memcpy(memory + FROM + 100, digits + 4, 4);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO + 512));
	set_buffer(8);
	ibv_wr_abort(qp);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO));
	ibv_wr_set_sge_list(qp, 2, sges);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_sent(IBV_WC_RDMA_WRITE);
	EXPECT_MEM(memory + TO, digits, 8);
	EXPECT_EQ(memory[TO + 512], 0);
	finish();
}

/* As in a forked child whose parent still uses the adapter. */
static void set_usable(bool is_usable)
{
	struct vb_adapter *adapter = vb_abi_context_of(context)->adapter;

	vb_adapter_enter(adapter);
	adapter->is_torn = !is_usable;
	adapter->is_inherited = !is_usable;
	vb_adapter_leave(adapter);
}

TEST(a_refused_start_also_holds_the_queue_until_the_end)
{
	struct vb_lock *lock;

	start(IBV_QPT_RC);
	lock = &VB_CONTAINER(qp, struct vb_abi_qp, extended)->send_lock;
	set_usable(false);
	ibv_wr_start(qp);
	EXPECT(vb_lock_is_mine(lock));
	ibv_wr_send(qp);
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), EIO);
	EXPECT(!vb_lock_is_mine(lock));
	ibv_wr_start(qp);
	EXPECT(vb_lock_is_mine(lock));
	ibv_wr_abort(qp);
	EXPECT(!vb_lock_is_mine(lock));
	set_usable(true);
	ibv_wr_start(qp);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	finish();
}

TEST(a_datagram_tells_where_it_came_from)
{
	struct ibv_ah_attr address = loopback_address();
	struct ibv_ah *ah;

	start(IBV_QPT_UD);
	ah = ibv_create_ah(pd, &address);
	post_receive(b, mr, TO, 40 + LENGTH);
	ibv_wr_start(qp);
	ibv_wr_send_imm(qp, htobe32(IMM));
	ibv_wr_set_ud_addr(qp, ah, b->qp_num, QKEY);
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	find_receive();
	EXPECT_EQ(ibv_wc_read_src_qp(cq), a->qp_num);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), IBV_WC_GRH | IBV_WC_WITH_IMM);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), 40 + LENGTH);
	EXPECT_EQ(ibv_wc_read_slid(cq), 0);
	EXPECT_EQ(ibv_wc_read_sl(cq), BY_IPV4);
	EXPECT_EQ(ibv_wc_read_dlid_path_bits(cq), 0);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + TO + 40, memory + FROM, LENGTH);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	finish();
}

/* The completion's service level is not used: it would be a priority for the answers. */
TEST(the_answer_to_a_datagram_has_its_traffic_class_and_no_service_level)
{
	struct ibv_ah_attr address = loopback_address(), answer;
	struct ibv_wc wc;
	struct ibv_ah *ah;

	address.grh.traffic_class = 0x20;
	start(IBV_QPT_UD);
	ah = ibv_create_ah(pd, &address);
	post_receive(b, mr, TO, 40 + LENGTH);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_ud_addr(qp, ah, b->qp_num, QKEY);
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	do
		wc = wait_completion(ibv_cq_ex_to_cq(cq));
	while (!(wc.opcode & IBV_WC_RECV));
	EXPECT_EQ(wc.sl, BY_IPV4);
	EXPECT_EQ(ibv_init_ah_from_wc(context, 1, &wc, (struct ibv_grh *)(void *)(memory + TO),
				      &answer),
		  0);
	EXPECT_EQ(answer.sl, 0);
	EXPECT_EQ(answer.grh.traffic_class, 0x20);
	EXPECT_EQ(ibv_destroy_ah(ah), 0);
	finish();
}

static uint64_t nanoseconds(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

TEST(timestamps_lie_between_what_the_clocks_say_before_and_after)
{
	struct ibv_values_ex before = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct ibv_values_ex after = before;
	struct timespec wall_before, wall_after;
	struct ibv_device_attr_ex attr;
	uint64_t raw;

	start(IBV_QPT_RC);
	EXPECT_EQ(ibv_query_device_ex(context, NULL, &attr), 0);
	EXPECT_EQ(attr.hca_core_clock, 1000000); /* kHz: the raw clock counts nanoseconds */
	EXPECT_EQ(attr.completion_timestamp_mask, UINT64_MAX);
	EXPECT_EQ(ibv_query_rt_values_ex(context, &before), 0);
	clock_gettime(CLOCK_REALTIME, &wall_before);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, mr->rkey, at(TO));
	set_buffer(LENGTH);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	start_poll();
	raw = ibv_wc_read_completion_ts(cq);
	EXPECT_EQ(ibv_query_rt_values_ex(context, &after), 0);
	clock_gettime(CLOCK_REALTIME, &wall_after);
	EXPECT(raw >= nanoseconds(before.raw_clock) && raw <= nanoseconds(after.raw_clock));
	/* The two clocks are read one after the other: allow for that. */
	EXPECT(ibv_wc_read_completion_wallclock_ns(cq) + 1000000000u > nanoseconds(wall_before));
	EXPECT(ibv_wc_read_completion_wallclock_ns(cq) < nanoseconds(wall_after) + 1000000000u);
	ibv_end_poll(cq);
	finish();
}

/* As mlx5 does: some programs read tv_nsec only, others add the seconds. */
TEST(the_raw_clock_is_one_count_of_nanoseconds)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	struct timespec before, after;

	start(IBV_QPT_RC);
	clock_gettime(CLOCK_MONOTONIC, &before);
	EXPECT_EQ(ibv_query_rt_values_ex(context, &values), 0);
	clock_gettime(CLOCK_MONOTONIC, &after);
	EXPECT_EQ(values.comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	EXPECT_EQ(values.raw_clock.tv_sec, 0);
	EXPECT((uint64_t)values.raw_clock.tv_nsec >= nanoseconds(before));
	EXPECT((uint64_t)values.raw_clock.tv_nsec <= nanoseconds(after));
	finish();
}

TEST(a_clock_that_is_not_asked_for_is_not_written)
{
	struct ibv_values_ex values = { .raw_clock = { 1, 2 } };

	start(IBV_QPT_RC);
	EXPECT_EQ(ibv_query_rt_values_ex(context, &values), 0);
	EXPECT_EQ(values.comp_mask, 0);
	EXPECT_EQ(values.raw_clock.tv_sec, 1);
	EXPECT_EQ(values.raw_clock.tv_nsec, 2);
	finish();
}

TEST(one_poll_goes_through_several_completions)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int count = 1;

	start(IBV_QPT_RC);
	for (int i = 0; i < 4; i++) {
		qp->wr_id = (uint64_t)i;
		ibv_wr_start(qp);
		ibv_wr_rdma_write(qp, mr->rkey, at(TO));
		set_buffer(8);
		EXPECT_EQ(ibv_wr_complete(qp), 0);
	}
	start_poll();
	EXPECT_EQ(cq->wr_id, 0);
	while (count < 4) {
		int error = ibv_next_poll(cq);

		if (error == ENOENT) { /* the others are on their way */
			ibv_end_poll(cq);
			start_poll();
		} else {
			EXPECT_EQ(error, 0);
		}
		EXPECT_EQ(cq->wr_id, count);
		count++;
	}
	EXPECT_EQ(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
	EXPECT_EQ(ibv_start_poll(cq, &attr), ENOENT);
	attr.comp_mask = 1;
	EXPECT_EQ(ibv_start_poll(cq, &attr), EINVAL);
	finish();
}
