/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Domains and queues of the less common kinds: parent domains with the program's allocator, thread
 * domains, SRQs that are changed while they are used, XRC, on-demand and device memory, advice.
 */
#include "harness.h"
#include "support_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static char memory[4096];

static void start(void)
{
	context = open_device();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	mr = register_all(pd, memory, sizeof(memory));
}

static void finish(void)
{
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

/* A message from a to b, through memory of this process. */
static void exchange(struct ibv_qp *a, struct ibv_qp *b)
{
	memset(memory, 'x', 64);
	memset(memory + 64, 0, 64);
	post_receive(b, mr, 64, 64);
	post_send(a, mr, 0, 64);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_MEM(memory + 64, memory, 64);
}

/* --- parent domains --- */

static int allocated;
static int released;
static bool has_answer;
static void *answer; /* the allocator's result if has_answer */

static void *allocate(struct ibv_pd *parent, void *pd_context, size_t size, size_t alignment,
		      uint64_t resource_type)
{
	void *memory_of_object = NULL;

	(void)resource_type;
	EXPECT(parent && pd_context == &allocated);
	if (has_answer)
		return answer;
	EXPECT_EQ(posix_memalign(&memory_of_object, alignment, size), 0);
	memset(memory_of_object, 0xa5, size); /* the library does not rely on zeroed memory */
	allocated++;
	return memory_of_object;
}

static void release(struct ibv_pd *parent, void *pd_context, void *pointer, uint64_t resource_type)
{
	(void)resource_type;
	EXPECT(parent && pd_context == &allocated);
	free(pointer);
	released++;
}

static struct ibv_pd *make_parent(struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd,
		.td = td,
		.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
		.alloc = allocate,
		.free = release,
		.pd_context = &allocated,
	};
	struct ibv_pd *parent = ibv_alloc_parent_domain(context, &attr);

	EXPECT(parent);
	EXPECT_EQ(parent->handle, pd->handle);
	return parent;
}

TEST(what_is_made_in_a_parent_domain_lies_in_memory_of_its_allocator)
{
	struct ibv_cq_init_attr_ex cq_attr = { .cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *parent;
	struct ibv_qp *a, *b;
	struct ibv_srq *srq;
	struct ibv_cq_ex *other;

	start();
	parent = make_parent(NULL);
	a = make_qp(parent, cq, IBV_QPT_RC);
	b = make_qp(parent, cq, IBV_QPT_RC);
	srq = ibv_create_srq(parent, &srq_attr);
	cq_attr.parent_domain = parent;
	other = ibv_create_cq_ex(context, &cq_attr);
	EXPECT(srq && other);
	EXPECT_EQ(allocated, 4);
	connect_pair(a, b);
	exchange(a, b); /* with a region of the parent domain's own PD */
	EXPECT_EQ(ibv_dealloc_pd(parent), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(other)), 0);
	EXPECT_EQ(released, 4);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	finish();
}

TEST(an_allocator_may_leave_it_to_the_library_or_refuse)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *parent;
	struct ibv_srq *srq;

	start();
	parent = make_parent(NULL);
	has_answer = true;
	EXPECT(!ibv_create_srq(parent, &attr));
	EXPECT_EQ(errno, ENOMEM);
	answer = IBV_ALLOCATOR_USE_DEFAULT;
	srq = ibv_create_srq(parent, &attr);
	EXPECT(srq);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(released, 0);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	finish();
}

TEST(domains_go_in_the_right_order)
{
	struct ibv_td_init_attr attr = { 0 };
	struct ibv_pd *parent;
	struct ibv_td *td;

	start();
	td = ibv_alloc_td(context, &attr);
	parent = make_parent(td);
	EXPECT_EQ(ibv_dealloc_td(td), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(pd), EBUSY);
	EXPECT_EQ(ibv_dealloc_pd(parent), 0);
	EXPECT_EQ(ibv_dealloc_td(td), 0);
	finish();
}

/* --- shared receive queues --- */

static struct ibv_qp *make_with_srq(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = cq,
					    .recv_cq = cq,
					    .srq = srq,
					    .cap = { 4, 0, 1, 0, 0 },
					    .qp_type = IBV_QPT_RC,
					    .sq_sig_all = 1,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = pd };

	return make_qp_as(context, &attr);
}

static int post_to(struct ibv_srq *srq, uint64_t offset)
{
	struct ibv_sge sge = { (uintptr_t)memory + offset, 64, mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_srq_recv(srq, &wr, &bad);
}

TEST(an_srq_grows_while_it_is_used_and_tells_when_it_runs_low)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1, .max_sge = 1 } };
	struct ibv_srq_attr change = { .max_wr = 3, .srq_limit = 2 };
	struct ibv_async_event event;
	struct ibv_srq *srq;
	struct ibv_qp *a, *b;

	start();
	srq = ibv_create_srq(pd, &init);
	a = make_qp(pd, cq, IBV_QPT_RC);
	b = make_with_srq(srq);
	connect_pair(a, b);
	EXPECT_EQ(post_to(srq, 64), 0);
	EXPECT_EQ(post_to(srq, 64), ENOMEM);
	EXPECT_EQ(ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR), 0);
	EXPECT_EQ(post_to(srq, 64), 0);
	EXPECT_EQ(ibv_modify_srq(srq, &change, IBV_SRQ_LIMIT), 0);
	post_send(a, mr, 0, 64);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(ibv_get_async_event(context, &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	EXPECT(event.element.srq == srq);
	ibv_ack_async_event(&event);
	EXPECT_EQ(ibv_query_srq(srq, &change), 0);
	EXPECT_EQ(change.srq_limit, 0); /* only once */
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	finish();
}

/* --- XRC --- */

static struct ibv_qp *make_xrc(enum ibv_qp_type type, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { 4, 0, 1, 0, 0 },
		.qp_type = type,
		.sq_sig_all = 1,
	};

	if (type == IBV_QPT_XRC_RECV) {
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		attr.xrcd = xrcd;
	} else {
		attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		attr.pd = pd;
		attr.send_cq = cq;
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	}
	return make_qp_as(context, &attr);
}

TEST(an_xrc_qp_reaches_each_srq_of_the_domain)
{
	struct ibv_xrcd_init_attr xrcd_attr = { .comp_mask = 3, .fd = -1, .oflags = O_CREAT };
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	struct ibv_qp *sender, *receiver;
	struct ibv_srq *srqs[2];
	struct ibv_xrcd *xrcd;
	struct ibv_qp_ex *qp;

	start();
	xrcd = ibv_open_xrcd(context, &xrcd_attr);
	init.pd = pd;
	init.xrcd = xrcd;
	init.cq = cq;
	srqs[0] = ibv_create_srq_ex(context, &init);
	srqs[1] = ibv_create_srq_ex(context, &init);
	sender = make_xrc(IBV_QPT_XRC_SEND, NULL);
	receiver = make_xrc(IBV_QPT_XRC_RECV, xrcd);
	connect_pair(sender, receiver);
	qp = ibv_qp_to_qp_ex(sender);
	for (int i = 0; i < 2; i++) {
		uint32_t number;

		memset(memory, 'a' + i, 64);
		EXPECT_EQ(ibv_get_srq_num(srqs[i], &number), 0);
		EXPECT_EQ(post_to(srqs[i], 64), 0);
		ibv_wr_start(qp);
		ibv_wr_send(qp);
		ibv_wr_set_xrc_srqn(qp, number);
		ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 64);
		EXPECT_EQ(ibv_wr_complete(qp), 0);
		EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
		EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
		EXPECT_MEM(memory + 64, memory, 64);
	}
	EXPECT_EQ(ibv_close_xrcd(xrcd), EBUSY);
	EXPECT_EQ(ibv_destroy_qp(sender), 0);
	EXPECT_EQ(ibv_destroy_qp(receiver), 0);
	EXPECT_EQ(ibv_destroy_srq(srqs[0]), 0);
	EXPECT_EQ(ibv_destroy_srq(srqs[1]), 0);
	EXPECT_EQ(ibv_close_xrcd(xrcd), 0);
	finish();
}

/* --- memory --- */

TEST(an_on_demand_region_may_be_registered_before_its_memory_exists)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *on_demand;
	struct ibv_qp *a, *b;

	start();
	EXPECT(!ibv_reg_mr(pd, page, 4096, ALL_ACCESS));
	EXPECT_EQ(errno, EFAULT);
	on_demand = ibv_reg_mr(pd, page, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	EXPECT(on_demand);
	EXPECT_EQ(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	a = make_qp(pd, cq, IBV_QPT_RC);
	b = make_qp(pd, cq, IBV_QPT_RC);
	connect_pair(a, b);
	memset(page, 'y', 64);
	post_receive(b, mr, 64, 64);
	post_send(a, on_demand, 0, 64);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_MEM(memory + 64, page, 64);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_dereg_mr(on_demand), 0);
	munmap(page, 4096);
	finish();
}

TEST(all_memory_can_be_one_region)
{
	struct ibv_mr *all;
	struct ibv_qp *a, *b;

	start();
	all = ibv_reg_mr(pd, NULL, SIZE_MAX, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
	EXPECT(all);
	a = make_qp(pd, cq, IBV_QPT_UC);
	b = make_qp(pd, cq, IBV_QPT_UC);
	connect_pair(a, b);
	memset(memory, 'z', 64);
	post_receive(b, mr, 64, 64);
	post_send(a, all, (uintptr_t)memory, 64);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_EQ(wait_completion(cq).status, IBV_WC_SUCCESS);
	EXPECT_MEM(memory + 64, memory, 64);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_dereg_mr(all), 0);
	finish();
}

/* How many of the first `count` pages are in memory? */
static int count_resident(char *pages, int count)
{
	unsigned char resident[16];
	int sum = 0;

	EXPECT_EQ(mincore(pages, (size_t)count * 4096, resident), 0);
	for (int i = 0; i < count; i++)
		sum += resident[i] & 1;
	return sum;
}

TEST(advice_brings_the_pages)
{
	char *pages =
		mmap(NULL, 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_sge sge = { .length = 2 * 4096 };
	struct ibv_mr *region;

	start();
	EXPECT_EQ(madvise(pages, 8 * 4096, MADV_NOHUGEPAGE), 0);
	region = ibv_reg_mr(pd, pages, 8 * 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	sge.addr = (uintptr_t)pages + 4096;
	sge.lkey = region->lkey;
	EXPECT_EQ(count_resident(pages, 8), 0);
	EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, 1, &sge, 1), 0);
	EXPECT_EQ(count_resident(pages, 8), 0);
	EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, 1, &sge, 1), 0);
	EXPECT_EQ(count_resident(pages, 8), 2);
	munmap(pages, 8 * 4096);
	EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 1, &sge, 1), EFAULT);
	EXPECT_EQ(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), 0);
	EXPECT_EQ(ibv_dereg_mr(region), 0);
	finish();
}

TEST(device_memory_is_written_by_a_peer_and_read_by_the_program)
{
	struct ibv_alloc_dm_attr attr = { .length = 128, .log_align_req = 6 };
	struct ibv_qp_ex *qp;
	struct ibv_qp *a, *b;
	struct ibv_mr *region;
	struct ibv_dm *dm;

	start();
	dm = ibv_alloc_dm(context, &attr);
	region = ibv_reg_dm_mr(pd, dm, 64, 64, IBV_ACCESS_ZERO_BASED | ALL_ACCESS);
	EXPECT(dm && region);
	EXPECT_EQ(ibv_free_dm(dm), EBUSY);
	a = make_qp(pd, cq, IBV_QPT_RC);
	b = make_qp(pd, cq, IBV_QPT_RC);
	connect_pair(a, b);
	memset(memory, 'd', 64);
	qp = ibv_qp_to_qp_ex(a);
	qp->wr_id = 9;
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, region->rkey, 0);
	ibv_wr_set_sge(qp, mr->lkey, (uintptr_t)memory, 64);
	EXPECT_EQ(ibv_wr_complete(qp), 0);
	expect_success(cq, 9);
	EXPECT_EQ(ibv_memcpy_from_dm(memory + 64, dm, 64, 64), 0);
	EXPECT_MEM(memory + 64, memory, 64);
	EXPECT_EQ(ibv_destroy_qp(a), 0);
	EXPECT_EQ(ibv_destroy_qp(b), 0);
	EXPECT_EQ(ibv_dereg_mr(region), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	finish();
}
