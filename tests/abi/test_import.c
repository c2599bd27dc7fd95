/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One open device with several contexts: an imported object is the same object, and lives as long
 * as any context has it.
 */
#include "harness.h"
#include "support_device.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ibv_context *import_context(struct ibv_context *context)
{
	int fd = dup(context->cmd_fd);
	struct ibv_context *imported = ibv_import_device(fd);

	EXPECT(imported && imported != context);
	EXPECT_EQ(imported->cmd_fd, fd);
	EXPECT(imported->device == context->device);
	return imported;
}

TEST(an_imported_domain_and_region_carry_traffic_of_the_other_context)
{
	struct ibv_context *first = open_device();
	struct ibv_context *second = import_context(first);
	struct ibv_pd *pd = ibv_alloc_pd(first);
	char memory[128] = "from the first context's region";
	struct ibv_mr *mr = register_all(pd, memory, sizeof(memory));
	struct ibv_pd *imported_pd = ibv_import_pd(second, pd->handle);
	struct ibv_mr *imported_mr = ibv_import_mr(imported_pd, mr->handle);
	struct ibv_cq *cq = ibv_create_cq(second, 8, NULL, NULL, 0);
	struct ibv_qp *a;
	struct ibv_qp *b;

	EXPECT(imported_pd && imported_mr && imported_pd->context == second);
	EXPECT_EQ(imported_mr->lkey, mr->lkey);
	EXPECT_EQ(imported_mr->rkey, mr->rkey);
	EXPECT(!imported_mr->addr);
	a = make_qp(imported_pd, cq, IBV_QPT_RC);
	b = make_qp(imported_pd, cq, IBV_QPT_RC);
	connect_pair(a, b);
	post_receive(b, mr, 64, 64);
	post_send(a, mr, 0, 64);
	wait_completion(cq);
	wait_completion(cq);
	EXPECT_STR(memory + 64, memory);
	ibv_destroy_qp(a);
	ibv_destroy_qp(b);
	ibv_destroy_cq(cq);
	ibv_unimport_mr(imported_mr);
	ibv_unimport_pd(imported_pd);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT_EQ(ibv_close_device(first), 0);
}

TEST(an_imported_device_outlives_the_context_it_came_from)
{
	struct ibv_context *first = open_device();
	struct ibv_context *second = import_context(first);
	struct ibv_pd *pd;

	EXPECT_EQ(ibv_close_device(first), 0);
	pd = ibv_alloc_pd(second);
	EXPECT(pd);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(second), 0);
}

TEST(destroying_an_object_in_any_context_ends_it_for_all)
{
	struct ibv_context *first = open_device();
	struct ibv_context *second = import_context(first);
	struct ibv_pd *pd = ibv_alloc_pd(first);
	struct ibv_pd *imported = ibv_import_pd(second, pd->handle);
	uint32_t handle = pd->handle;

	EXPECT_EQ(ibv_dealloc_pd(imported), 0);
	EXPECT(!ibv_import_pd(second, handle));
	EXPECT_EQ(errno, EINVAL);
	EXPECT(strstr(take_log(), "no PD of vb_lo has handle 1"));
	ibv_unimport_pd(pd); /* the only call that is still allowed */
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT_EQ(ibv_close_device(first), 0);
}

TEST(imported_device_memory_is_the_same_memory)
{
	struct ibv_context *first = open_device();
	struct ibv_context *second = import_context(first);
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_dm *dm = ibv_alloc_dm(first, &attr);
	struct ibv_dm *imported = ibv_import_dm(second, dm->handle);
	char out[8];

	EXPECT(dm && imported);
	EXPECT_EQ(ibv_memcpy_to_dm(dm, 8, "1234567", 8), 0);
	EXPECT_EQ(ibv_memcpy_from_dm(out, imported, 8, 8), 0);
	EXPECT_STR(out, "1234567");
	ibv_unimport_dm(imported);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT_EQ(ibv_close_device(first), 0);
}

TEST(events_go_to_the_context_that_made_the_object)
{
	struct ibv_context *first = open_device();
	struct ibv_context *second = import_context(first);
	struct ibv_pd *pd = ibv_alloc_pd(second);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_cq *cq = ibv_create_cq(second, 8, NULL, NULL, 0);
	struct ibv_qp_init_attr_ex attr = { .send_cq = cq,
					    .recv_cq = cq,
					    .srq = srq,
					    .cap = { 4, 0, 1, 0, 0 },
					    .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = pd };
	struct ibv_qp *qp = make_qp_as(second, &attr);
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct ibv_async_event event;

	EXPECT_EQ(ibv_modify_qp(qp, &error, IBV_QP_STATE), 0);
	EXPECT_EQ(ibv_get_async_event(second, &event), 0);
	EXPECT_EQ(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	EXPECT(event.element.qp == qp);
	ibv_ack_async_event(&event);
	ibv_destroy_qp(qp);
	ibv_destroy_srq(srq);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	EXPECT_EQ(ibv_close_device(second), 0);
	EXPECT_EQ(ibv_close_device(first), 0);
}

TEST(what_is_no_device_of_this_process_cannot_be_imported)
{
	struct ibv_context *context = open_device();
	pid_t child;
	int status;

	EXPECT(!ibv_import_device(-1));
	EXPECT_EQ(errno, EBADF);
	EXPECT(!ibv_import_device(0));
	EXPECT_EQ(errno, EOPNOTSUPP);
	child = fork();
	if (!child)
		_exit(!ibv_import_device(context->cmd_fd) && errno == EOPNOTSUPP ? 0 : 1);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_device_may_be_closed_before_what_was_made_there)
{
	struct ibv_context *context = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	char memory[64];
	struct ibv_mr *mr = register_all(pd, memory, sizeof(memory));

	EXPECT_EQ(ibv_close_device(context), 0);
	EXPECT(strstr(take_log(), "vb_lo is closed with 1 PDs"));
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}
