/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching by its verbs: what ibv_query_device_ex() promises, SRQs with tags, operations on
 * them, and everything that an extended CQ reports about a message. A thread that is in the middle
 * of a poll posts operations as well.
 */
#include "harness.h"
#include "support_device.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/tm_types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { HEADERS = 0, FIN = 512, DATA = 1024, BUFFER = 2048, PLAIN = 3072, LENGTH = 256 };
enum { TAG = 0x1234, CONTEXT = 77 };

static struct ibv_context *context;
static struct ibv_device_attr_ex device;
static struct ibv_pd *pd;
static struct ibv_cq *send_cq; /* of both QPs, and of the sender's receives */
static struct ibv_cq_ex *cq; /* of the SRQ */
static struct ibv_srq *srq;
static struct ibv_mr *mr;
static struct ibv_qp *sender;
static struct ibv_qp *receiver; /* has the SRQ, and no send queue */
static char memory[4096];

static struct ibv_srq_init_attr_ex srq_attr(uint32_t tags, uint32_t operations)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = { .max_wr = 8, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_CQ |
			     IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.cq = ibv_cq_ex_to_cq(cq),
		.tm_cap = { .max_num_tags = tags, .max_ops = operations },
	};
}

static void start(void)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 64,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_TM_INFO,
	};
	struct ibv_srq_init_attr_ex attr;
	struct ibv_qp_init_attr_ex qp_attr = {
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};

	context = open_device();
	EXPECT_EQ(ibv_query_device_ex(context, NULL, &device), 0);
	pd = ibv_alloc_pd(context);
	send_cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	cq = ibv_create_cq_ex(context, &cq_attr);
	EXPECT(cq);
	attr = srq_attr(4, 8);
	srq = ibv_create_srq_ex(context, &attr);
	EXPECT(srq);
	mr = register_all(pd, memory, sizeof(memory));
	sender = make_qp(pd, send_cq, IBV_QPT_RC);
	qp_attr.pd = pd;
	qp_attr.send_cq = qp_attr.recv_cq = send_cq;
	qp_attr.srq = srq;
	receiver = make_qp_as(context, &qp_attr);
	connect_pair(sender, receiver);
	for (uint32_t i = 0; i < LENGTH; i++)
		memory[DATA + i] = (char)(i * 7);
}

static void finish(void)
{
	EXPECT_EQ(ibv_destroy_qp(sender), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(receiver), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_cq(send_cq), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

/* --- operations --- */

static struct ibv_sge buffer = { .length = LENGTH };

static struct ibv_ops_wr addition(uint64_t tag)
{
	buffer = (struct ibv_sge){ (uintptr_t)memory + BUFFER, LENGTH, mr->lkey };
	return (struct ibv_ops_wr){
		.wr_id = tag,
		.opcode = IBV_WR_TAG_ADD,
		.flags = IBV_OPS_SIGNALED,
		.tm.add = { .recv_wr_id = 1000 + tag,
			    .sg_list = &buffer,
			    .num_sge = 1,
			    .tag = tag,
			    .mask = UINT64_MAX },
	};
}

/* Posts one operation; `bad` must be it if it fails, and stay otherwise. */
static int operate(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;
	int error = ibv_post_srq_ops(srq, wr, &bad);

	EXPECT(bad == (error ? wr : NULL));
	return error;
}

/* Begins a poll that finds a completion like this; the caller ends it. */
static void find(uint64_t wr_id, enum ibv_wc_status status, enum ibv_wc_opcode opcode,
		 unsigned int flags)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int error;

	while ((error = ibv_start_poll(cq, &attr)) == ENOENT)
		;
	EXPECT_EQ(error, 0);
	EXPECT_EQ(cq->wr_id, wr_id);
	EXPECT_EQ(cq->status, status);
	EXPECT_EQ(ibv_wc_read_opcode(cq), opcode);
	EXPECT_EQ(ibv_wc_read_wc_flags(cq), flags);
}

static void expect_operation(uint64_t wr_id, enum ibv_wc_status status, enum ibv_wc_opcode opcode)
{
	find(wr_id, status, opcode, 0);
	ibv_end_poll(cq);
}

static uint32_t add_tag(uint64_t tag)
{
	struct ibv_ops_wr wr = addition(tag);

	EXPECT_EQ(operate(&wr), 0);
	expect_operation(tag, IBV_WC_SUCCESS, IBV_WC_TM_ADD);
	return wr.tm.handle;
}

static void expect_tag(uint64_t tag, uint32_t app_context)
{
	struct ibv_wc_tm_info info = { UINT64_MAX, UINT32_MAX };

	ibv_wc_read_tm_info(cq, &info);
	EXPECT_EQ(info.tag, tag);
	EXPECT_EQ(info.priv, app_context);
}

/* --- messages --- */

static void send_header(uint8_t opcode, uint64_t tag, uint32_t length)
{
	struct ibv_tmh tmh = { .opcode = opcode, .app_ctx = htobe32(CONTEXT), .tag = htobe64(tag) };

	memcpy(memory + HEADERS, &tmh, sizeof(tmh));
	memset(memory + HEADERS + sizeof(tmh), 'e', LENGTH);
	if (opcode == IBV_TMH_RNDV) {
		struct ibv_rvh rvh = { htobe64((uintptr_t)memory + DATA), htobe32(mr->rkey),
				       htobe32(length) };

		memcpy(memory + HEADERS + sizeof(tmh), &rvh, sizeof(rvh));
		length = sizeof(rvh);
	}
	post_send(sender, mr, HEADERS, (uint32_t)sizeof(tmh) + length);
	expect_success(send_cq, 1);
}

static void post_plain(void)
{
	struct ibv_sge sge = { (uintptr_t)memory + PLAIN, LENGTH + 16, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 5, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	EXPECT_EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

TEST(an_eager_message_goes_to_its_tag)
{
	start();
	add_tag(TAG);
	send_header(IBV_TMH_EAGER, TAG, LENGTH);
	find(1000 + TAG, IBV_WC_SUCCESS, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), LENGTH);
	EXPECT_EQ(ibv_wc_read_qp_num(cq), receiver->qp_num);
	EXPECT_EQ(ibv_wc_read_src_qp(cq), 0);
	expect_tag(TAG, CONTEXT);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + BUFFER, memory + HEADERS + 16, LENGTH);
	finish();
}

TEST(a_rendezvous_is_read_by_the_adapter)
{
	struct ibv_tmh fin;

	start();
	post_receive(sender, mr, FIN, 64);
	add_tag(TAG);
	send_header(IBV_TMH_RNDV, TAG, LENGTH);
	find(1000 + TAG, IBV_WC_SUCCESS, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	expect_tag(TAG, CONTEXT);
	ibv_end_poll(cq);
	find(1000 + TAG, IBV_WC_SUCCESS, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), LENGTH);
	expect_tag(0, 0);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + BUFFER, memory + DATA, LENGTH);
	expect_success(send_cq, 2);
	memcpy(&fin, memory + FIN, sizeof(fin));
	EXPECT_EQ(fin.opcode, IBV_TMH_FIN);
	EXPECT_EQ(be32toh(fin.app_ctx), CONTEXT);
	EXPECT_EQ(be64toh(fin.tag), TAG);
	finish();
}

TEST(other_messages_take_receives_with_their_headers)
{
	struct ibv_ops_wr wr;

	start();
	post_plain();
	send_header(IBV_TMH_NO_TAG, TAG, LENGTH);
	find(5, IBV_WC_SUCCESS, IBV_WC_TM_NO_TAG, 0);
	EXPECT_EQ(ibv_wc_read_byte_len(cq), LENGTH + 16);
	expect_tag(0, 0);
	ibv_end_poll(cq);
	EXPECT_MEM(memory + PLAIN, memory + HEADERS, LENGTH + 16);
	post_plain();
	send_header(IBV_TMH_EAGER, TAG, LENGTH);
	find(5, IBV_WC_SUCCESS, IBV_WC_TM_RECV, 0);
	expect_tag(0, 0);
	ibv_end_poll(cq);
	wr = addition(TAG);
	EXPECT_EQ(operate(&wr), 0);
	find(TAG, IBV_WC_SUCCESS, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	ibv_end_poll(cq);
	wr = (struct ibv_ops_wr){ .wr_id = 9,
				  .opcode = IBV_WR_TAG_SYNC,
				  .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
				  .tm.unexpected_cnt = 1 };
	EXPECT_EQ(operate(&wr), 0);
	expect_operation(9, IBV_WC_SUCCESS, IBV_WC_TM_SYNC);
	send_header(IBV_TMH_EAGER, TAG, 1);
	find(1000 + TAG, IBV_WC_SUCCESS, IBV_WC_TM_RECV, IBV_WC_TM_MATCH | IBV_WC_TM_DATA_VALID);
	ibv_end_poll(cq);
	finish();
}

TEST(a_tag_can_be_deleted_once)
{
	struct ibv_ops_wr wr = { .wr_id = 8, .opcode = IBV_WR_TAG_DEL, .flags = IBV_OPS_SIGNALED };

	start();
	wr.tm.handle = add_tag(TAG);
	EXPECT_EQ(operate(&wr), 0);
	expect_operation(8, IBV_WC_SUCCESS, IBV_WC_TM_DEL);
	EXPECT_EQ(operate(&wr), 0);
	expect_operation(8, IBV_WC_TM_ERR, IBV_WC_TM_DEL);
	wr.tm.handle += 0x10000; /* no tag had this one */
	EXPECT_EQ(operate(&wr), EINVAL);
	finish();
}

TEST(the_operations_before_a_bad_one_are_executed)
{
	struct ibv_ops_wr wrs[6];
	struct ibv_ops_wr *bad;

	start();
	for (uint32_t i = 0; i < 6; i++) {
		wrs[i] = addition(i);
		wrs[i].next = i < 5 ? &wrs[i + 1] : NULL;
	}
	EXPECT_EQ(ibv_post_srq_ops(srq, wrs, &bad), ENOMEM); /* there are 4 tags */
	EXPECT(bad == &wrs[4]);
	for (uint32_t i = 0; i < 4; i++)
		expect_operation(i, IBV_WC_SUCCESS, IBV_WC_TM_ADD);
	EXPECT(strstr(take_log(), "max_num_tags"));
	finish();
}

TEST(wrong_operations_have_their_errno)
{
	struct ibv_srq_init_attr basic_attr = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq *tagged, *basic;
	struct ibv_ops_wr wr;

	start();
	wr = (struct ibv_ops_wr){ .opcode = (enum ibv_ops_wr_opcode)3 };
	EXPECT_EQ(operate(&wr), EINVAL);
	EXPECT(strstr(take_log(), "no operation 3"));
	wr = (struct ibv_ops_wr){ .opcode = IBV_WR_TAG_SYNC, .flags = 4 };
	EXPECT_EQ(operate(&wr), EINVAL);
	EXPECT(strstr(take_log(), "flags 0x4"));
	wr = addition(TAG);
	wr.tm.add.num_sge = (int)device.tm_caps.max_sge + 1;
	EXPECT_EQ(operate(&wr), EINVAL);
	wr.tm.add.num_sge = -1;
	EXPECT_EQ(operate(&wr), EINVAL);
	EXPECT(strstr(take_log(), "SGEs, at most"));
	basic = ibv_create_srq(pd, &basic_attr);
	tagged = srq;
	srq = basic;
	wr = addition(TAG);
	EXPECT_EQ(operate(&wr), EINVAL);
	EXPECT(strstr(take_log(), "it has no tags"));
	srq = tagged;
	EXPECT_EQ(ibv_destroy_srq(basic), 0);
	finish();
}

static int create(struct ibv_srq_init_attr_ex attr)
{
	struct ibv_srq *made;

	errno = 0;
	made = ibv_create_srq_ex(context, &attr);
	if (made)
		EXPECT_EQ(ibv_destroy_srq(made), 0);
	return made ? 0 : errno;
}

TEST(srqs_with_tags_are_as_the_device_promises)
{
	struct ibv_tm_caps caps;
	struct ibv_srq_init_attr_ex attr;

	start();
	caps = device.tm_caps;
	EXPECT_EQ(caps.flags, IBV_TM_CAP_RC);
	EXPECT(caps.max_rndv_hdr_size >= sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh));
	EXPECT_EQ(create(srq_attr(caps.max_num_tags, caps.max_ops)), 0);
	EXPECT_EQ(create(srq_attr(1, 0)), 0);
	EXPECT_EQ(create(srq_attr(caps.max_num_tags + 1, 1)), EINVAL);
	EXPECT_EQ(create(srq_attr(1, caps.max_ops + 1)), EINVAL);
	EXPECT_EQ(create(srq_attr(0, 1)), EINVAL);
	attr = srq_attr(1, 1);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_CQ;
	EXPECT_EQ(create(attr), EINVAL);
	attr = srq_attr(1, 1);
	attr.comp_mask &= ~(uint32_t)IBV_SRQ_INIT_ATTR_TM;
	EXPECT_EQ(create(attr), EINVAL);
	attr = srq_attr(1, 1);
	attr.srq_type = IBV_SRQT_BASIC;
	EXPECT_EQ(create(attr), EINVAL);
	finish();
}

/* --- events and threads --- */

TEST(an_operation_wakes_a_program_that_sleeps)
{
	struct ibv_comp_channel *channel;
	struct ibv_srq_init_attr_ex attr;
	struct ibv_cq *armed, *woken;
	struct ibv_srq *made, *first;
	struct ibv_ops_wr wr;
	void *unused;

	start();
	channel = ibv_create_comp_channel(context);
	armed = ibv_create_cq(context, 4, NULL, channel, 0);
	attr = srq_attr(1, 1);
	attr.cq = armed;
	made = ibv_create_srq_ex(context, &attr);
	EXPECT(made);
	first = srq;
	srq = made;
	EXPECT_EQ(ibv_req_notify_cq(armed, 0), 0);
	wr = addition(TAG);
	EXPECT_EQ(operate(&wr), 0);
	EXPECT_EQ(ibv_get_cq_event(channel, &woken, &unused), 0);
	EXPECT(woken == armed);
	expect_success(armed, TAG);
	ibv_ack_cq_events(armed, 1);
	srq = first;
	EXPECT_EQ(ibv_destroy_srq(made), 0);
	EXPECT_EQ(ibv_destroy_cq(armed), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	finish();
}

static _Atomic bool is_over;

/* Needs the CQ's lock again and again, as the owner of the engine. */
static void *resize_until_over(void *unused)
{
	(void)unused;
	while (!atomic_load(&is_over))
		EXPECT_EQ(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64), 0);
	return NULL;
}

TEST(operations_are_posted_in_the_middle_of_a_poll)
{
	pthread_t thread;
	uint32_t handle;

	start();
	EXPECT_EQ(pthread_create(&thread, NULL, resize_until_over, NULL), 0);
	for (uint32_t i = 0; i < 200; i++) {
		struct ibv_ops_wr wr = addition(i);
		struct ibv_ops_wr remove = { .wr_id = 8,
					     .opcode = IBV_WR_TAG_DEL,
					     .flags = IBV_OPS_SIGNALED };

		EXPECT_EQ(operate(&wr), 0);
		handle = wr.tm.handle;
		find(i, IBV_WC_SUCCESS, IBV_WC_TM_ADD, 0);
		remove.tm.handle = handle;
		EXPECT_EQ(operate(&remove), 0);
		ibv_end_poll(cq);
		expect_operation(8, IBV_WC_SUCCESS, IBV_WC_TM_DEL);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	finish();
}
