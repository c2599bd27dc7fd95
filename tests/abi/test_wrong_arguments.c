/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wrong arguments: each call must be refused with this errno, and the log must name the object, the
 * value and the limit. A row is a call; it returns the errno number, however its verb reports it.
 */
#include "harness.h"
#include "support_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_context *other_context;
static struct ibv_device_attr_ex device;
static struct ibv_pd *pd;
static struct ibv_pd *other_pd; /* of the same context */
static struct ibv_cq *cq;
static struct ibv_cq *other_cq; /* of the other context */
static struct ibv_comp_channel *channel;
static struct ibv_mr *mr;
static struct ibv_mr *read_only;
static struct ibv_mw *mw1;
static struct ibv_mw *mw2;
static struct ibv_dm *dm;
static struct ibv_srq *srq;
static struct ibv_qp *rc; /* RTS */
static struct ibv_qp *uc; /* RTS */
static struct ibv_qp *ud; /* RTS */
static struct ibv_qp *fresh; /* RC, INIT */
static struct ibv_qp *with_srq; /* RC, INIT */
static struct ibv_ah *other_ah; /* of the other PD */
static char memory[4096];

static int of_pointer(const void *result)
{
	return result ? 0 : errno;
}

static int of_minus_one(int result)
{
	return result ? errno : 0;
}

/* --- queries --- */

static int open_nothing(void)
{
	return of_pointer(ibv_open_device(NULL));
}

static int query_port_2(void)
{
	struct ibv_port_attr attr;

	return ibv_query_port(context, 2, &attr);
}

static int query_gid_128(void)
{
	union ibv_gid gid;

	return of_minus_one(ibv_query_gid(context, 1, 128, &gid));
}

static int query_gid_with_flags(void)
{
	struct ibv_gid_entry entry;

	return ibv_query_gid_ex(context, 1, 0, &entry, 4);
}

static int query_gid_table_without_room(void)
{
	struct ibv_gid_entry entry;

	return (int)-ibv_query_gid_table(context, &entry, 1, 0);
}

static int query_pkey_1(void)
{
	__be16 pkey;

	return of_minus_one(ibv_query_pkey(context, 1, 1, &pkey));
}

static int find_no_pkey(void)
{
	int index = ibv_get_pkey_index(context, 1, htobe16(0x1234));

	return index < 0 ? errno : 0;
}

static int query_unknown_clock(void)
{
	struct ibv_values_ex values = { .comp_mask = 6 };

	return ibv_query_rt_values_ex(context, &values);
}

/* --- domains --- */

static int dealloc_busy_pd(void)
{
	return ibv_dealloc_pd(pd);
}

static int parent_without_pd(void)
{
	struct ibv_parent_domain_init_attr attr = { 0 };

	return of_pointer(ibv_alloc_parent_domain(context, &attr));
}

static int parent_with_half_an_allocator(void)
{
	struct ibv_parent_domain_init_attr attr = {
		.pd = pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS
	};

	return of_pointer(ibv_alloc_parent_domain(context, &attr));
}

static int xrcd_of_no_file(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = 3, .fd = 999, .oflags = O_CREAT };

	return of_pointer(ibv_open_xrcd(context, &attr));
}

static int xrcd_that_is_not_there(void)
{
	struct ibv_xrcd_init_attr attr = { .comp_mask = 3, .fd = 0, .oflags = 0 };

	return of_pointer(ibv_open_xrcd(context, &attr));
}

/* --- memory --- */

static int register_unknown_access(void)
{
	return of_pointer(ibv_reg_mr(pd, memory, 64, 1 << 19));
}

static int register_remote_without_local(void)
{
	return of_pointer(ibv_reg_mr(pd, memory, 64, IBV_ACCESS_REMOTE_WRITE));
}

static int register_beyond_the_end(void)
{
	return of_pointer(ibv_reg_mr(pd, memory, SIZE_MAX, 0));
}

static int register_what_is_not_there(void)
{
	return of_pointer(ibv_reg_mr(pd, (void *)(uintptr_t)4096, 64, 0));
}

static int register_what_cannot_be_written(void)
{
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int error = of_pointer(ibv_reg_mr(pd, page, 64, IBV_ACCESS_LOCAL_WRITE));

	munmap(page, 4096);
	return error;
}

static int register_dmabuf(void)
{
	return of_pointer(ibv_reg_dmabuf_mr(pd, 0, 64, 0, 0, 0));
}

static int change_nothing(void)
{
	return ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) ? errno : 0;
}

static int change_to_no_pd(void)
{
	return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0) ? errno : 0;
}

static int advise_unknown_flags(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };

	return ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1);
}

static int advise_unknown(void)
{
	struct ibv_sge sge = { (uintptr_t)memory, 64, mr->lkey };

	return ibv_advise_mr(pd, (enum ibv_advise_mr_advice)9, 0, &sge, 1);
}

static int advise_of(struct ibv_pd *whose, uint32_t lkey, uint32_t length,
		     enum ibv_advise_mr_advice advice)
{
	struct ibv_sge sge = { (uintptr_t)memory, length, lkey };

	return ibv_advise_mr(whose, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int advise_no_key(void)
{
	return advise_of(pd, mr->lkey ^ 1, 64, IBV_ADVISE_MR_ADVICE_PREFETCH);
}

static int advise_too_much(void)
{
	return advise_of(pd, mr->lkey, 4097, IBV_ADVISE_MR_ADVICE_PREFETCH);
}

static int advise_others_region(void)
{
	return advise_of(other_pd, mr->lkey, 64, IBV_ADVISE_MR_ADVICE_PREFETCH);
}

static int advise_writing_read_only(void)
{
	return advise_of(pd, read_only->lkey, 64, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
}

static int advise_window(void)
{
	return advise_of(pd, mw1->rkey, 64, IBV_ADVISE_MR_ADVICE_PREFETCH);
}

static int window_of_type_3(void)
{
	return of_pointer(ibv_alloc_mw(pd, (enum ibv_mw_type)3));
}

static int too_much_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = (2 << 20) };

	return of_pointer(ibv_alloc_dm(context, &attr));
}

static int no_device_memory(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 0 };

	return of_pointer(ibv_alloc_dm(context, &attr));
}

static int copy_odd_length(void)
{
	return ibv_memcpy_to_dm(dm, 0, memory, 3);
}

static int copy_beyond_device_memory(void)
{
	return ibv_memcpy_from_dm(memory, dm, 60, 8);
}

static int region_beyond_device_memory(void)
{
	return of_pointer(ibv_reg_dm_mr(pd, dm, 32, 64, IBV_ACCESS_ZERO_BASED));
}

static int region_on_device_memory_with_addresses(void)
{
	return of_pointer(ibv_reg_dm_mr(pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE));
}

static int import_unknown_mr(void)
{
	return of_pointer(ibv_import_mr(pd, 0));
}

/* --- completion queues --- */

static int cq_without_entries(void)
{
	return of_pointer(ibv_create_cq(context, 0, NULL, NULL, 0));
}

static int cq_too_long(void)
{
	return of_pointer(ibv_create_cq(context, device.orig_attr.max_cqe + 1, NULL, NULL, 0));
}

static int cq_on_no_vector(void)
{
	return of_pointer(ibv_create_cq(context, 1, NULL, NULL, context->num_comp_vectors));
}

static int cq_on_others_channel(void)
{
	return of_pointer(ibv_create_cq(other_context, 1, NULL, channel, 0));
}

static int cq_with_flow_tags(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG };

	return of_pointer(ibv_create_cq_ex(context, &attr));
}

static int cq_with_unknown_mask(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .comp_mask = 1u << 30 };

	return of_pointer(ibv_create_cq_ex(context, &attr));
}

static int resize_to_nothing(void)
{
	return ibv_resize_cq(cq, 0);
}

static int moderate_nothing(void)
{
	struct ibv_modify_cq_attr attr = { .attr_mask = 0 };

	return ibv_modify_cq(cq, &attr);
}

static int destroy_busy_cq(void)
{
	return ibv_destroy_cq(cq);
}

static int destroy_busy_channel(void)
{
	return ibv_destroy_comp_channel(channel);
}

/* --- shared receive queues --- */

static int srq_of(uint32_t depth, uint32_t sges, uint32_t limit)
{
	struct ibv_srq_init_attr attr = { .attr = { depth, sges, limit } };

	return of_pointer(ibv_create_srq(pd, &attr));
}

static int srq_without_room(void)
{
	return srq_of(0, 1, 0);
}

static int srq_with_too_many_sges(void)
{
	return srq_of(4, 100000, 0);
}

static int srq_with_a_limit_above_all(void)
{
	return srq_of(4, 1, 5);
}

static int modify_unknown_of_srq(void)
{
	struct ibv_srq_attr attr = { 0 };

	return ibv_modify_srq(srq, &attr, 8);
}

static int limit_above_srq(void)
{
	struct ibv_srq_attr attr = { .srq_limit = 5 };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int destroy_busy_srq(void)
{
	return ibv_destroy_srq(srq);
}

static int post_to_srq_too_many_sges(void)
{
	struct ibv_sge sges[2] = { { (uintptr_t)memory, 8, mr->lkey },
				   { (uintptr_t)memory, 8, mr->lkey } };
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = 2 };
	struct ibv_recv_wr *bad = NULL;
	int error = ibv_post_srq_recv(srq, &wr, &bad);

	EXPECT(bad == &wr);
	return error;
}

/* --- queue pairs --- */

static struct ibv_qp_init_attr good_qp(void)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq, .recv_cq = cq, .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC
	};
}

static int create(struct ibv_qp_init_attr attr)
{
	return of_pointer(ibv_create_qp(pd, &attr));
}

static int qp_without_cq(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.recv_cq = NULL;
	return create(attr);
}

static int qp_of_no_type(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.qp_type = (enum ibv_qp_type)77;
	return create(attr);
}

static int qp_for_raw_packets(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.qp_type = IBV_QPT_RAW_PACKET;
	return create(attr);
}

static int qp_too_deep(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.cap.max_send_wr = (uint32_t)device.orig_attr.max_qp_wr + 1;
	return create(attr);
}

static int qp_with_too_many_sges(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.cap.max_recv_sge = (uint32_t)device.orig_attr.max_sge + 1;
	return create(attr);
}

static int qp_with_too_much_inline(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.cap.max_inline_data = 1 << 20;
	return create(attr);
}

static int qp_with_others_cq(void)
{
	struct ibv_qp_init_attr attr = good_qp();

	attr.recv_cq = other_cq;
	return create(attr);
}

static int ud_with_reads(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ,
	};

	return of_pointer(ibv_create_qp_ex(context, &attr));
}

static int modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

#define TO_RTR                                                           \
	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

static struct ibv_qp_attr good_rtr(void)
{
	return (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .min_rnr_timer = 12,
				     .ah_attr = loopback_address() };
}

static int modify_without_mtu(void)
{
	return modify(fresh, good_rtr(), TO_RTR & ~IBV_QP_PATH_MTU);
}

static int modify_with_qkey(void)
{
	return modify(fresh, good_rtr(), TO_RTR | IBV_QP_QKEY);
}

static int modify_from_init_to_rts(void)
{
	return modify(fresh, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, 0);
}

static int modify_to_a_wide_mtu(void)
{
	struct ibv_qp_attr attr = good_rtr();

	attr.path_mtu = (enum ibv_mtu)9;
	return modify(fresh, attr, TO_RTR);
}

static int modify_to_many_reads(void)
{
	struct ibv_qp_attr attr = good_rtr();

	attr.max_dest_rd_atomic = 255;
	return modify(fresh, attr, TO_RTR);
}

static int modify_to_an_address_without_grh(void)
{
	struct ibv_qp_attr attr = good_rtr();

	attr.ah_attr.is_global = 0;
	return modify(fresh, attr, TO_RTR);
}

static int modify_to_an_empty_gid(void)
{
	struct ibv_qp_attr attr = good_rtr();

	attr.ah_attr.grh.sgid_index = 77;
	return modify(fresh, attr, TO_RTR);
}

static int modify_migration(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .path_mig_state = IBV_MIG_REARM };

	return modify(rc, attr, IBV_QP_PATH_MIG_STATE);
}

static int modify_from_another_state(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQD };

	return modify(rc, attr, IBV_QP_CUR_STATE);
}

static int modify_rate_limit(void)
{
	return modify(rc, (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS }, IBV_QP_RATE_LIMIT);
}

static int attach_rc(void)
{
	return ibv_attach_mcast(rc, &(union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 1 } }, 0);
}

static int attach_to_a_host(void)
{
	return ibv_attach_mcast(ud, &(union ibv_gid){ .raw = { 0xfe, 0x80, [15] = 1 } }, 0);
}

static int detach_from_nothing(void)
{
	return ibv_detach_mcast(ud, &(union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 1 } }, 0);
}

static int set_ece(void)
{
	return ibv_set_ece(rc, &(struct ibv_ece){ .vendor_id = 1 });
}

/* --- addresses --- */

static int ah_without_grh(void)
{
	struct ibv_ah_attr attr = { .dlid = 1, .port_num = 1 };

	return of_pointer(ibv_create_ah(pd, &attr));
}

static int ah_on_port_2(void)
{
	struct ibv_ah_attr attr = loopback_address();

	attr.port_num = 2;
	return of_pointer(ibv_create_ah(pd, &attr));
}

static int ah_from_the_other_ip(void)
{
	struct ibv_ah_attr attr = loopback_address();

	attr.grh.sgid_index = 0;
	return of_pointer(ibv_create_ah(pd, &attr));
}

static int ah_from_rubbish(void)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_grh grh = { 0 };

	return of_pointer(ibv_create_ah_from_wc(pd, &wc, &grh, 1));
}

/* --- posting --- */

static int send(struct ibv_qp *qp, struct ibv_send_wr wr, uint32_t length, int sge_count)
{
	struct ibv_sge sges[3] = { { (uintptr_t)memory, length, mr->lkey },
				   { (uintptr_t)memory, length, mr->lkey },
				   { (uintptr_t)memory, length, mr->lkey } };
	struct ibv_send_wr *bad = NULL;
	int error;

	wr.sg_list = sges;
	wr.num_sge = sge_count;
	error = ibv_post_send(qp, &wr, &bad);
	EXPECT(bad == &wr);
	return error;
}

static int send_in_init(void)
{
	return send(fresh, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 8, 1);
}

static int send_three_sges(void)
{
	return send(rc, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 8, 3);
}

static int send_a_negative_number_of_sges(void)
{
	return send(rc,
		    (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE }, 8,
		    -1);
}

static int send_too_much_inline(void)
{
	return send(rc,
		    (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_INLINE },
		    65, 1);
}

static int send_too_much(void)
{
	return send(rc, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 0x7fffffff, 3);
}

static int send_no_operation(void)
{
	return send(rc, (struct ibv_send_wr){ .opcode = (enum ibv_wr_opcode)99 }, 8, 1);
}

static int read_on_uc(void)
{
	return send(uc, (struct ibv_send_wr){ .opcode = IBV_WR_RDMA_READ }, 8, 1);
}

static int read_inline(void)
{
	return send(rc,
		    (struct ibv_send_wr){ .opcode = IBV_WR_RDMA_READ,
					  .send_flags = IBV_SEND_INLINE },
		    8, 1);
}

static int atomic_of_4_bytes(void)
{
	return send(rc, (struct ibv_send_wr){ .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD }, 4, 1);
}

static int datagram_to_nobody(void)
{
	return send(ud, (struct ibv_send_wr){ .opcode = IBV_WR_SEND }, 8, 1);
}

static int datagram_with_others_handle(void)
{
	return send(ud, (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .wr.ud.ah = other_ah }, 8, 1);
}

static int bind_with_a_foreign_key(void)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw2,
			     .rkey = mw2->rkey ^ 0x100,
			     .bind_info = { .mr = mr, .addr = (uintptr_t)memory, .length = 8 } },
	};

	return send(rc, wr, 0, 0);
}

static int complete_three_sges(void)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(rc);
	struct ibv_sge sges[3] = { { 0 } };

	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 3, sges);
	return ibv_wr_complete(qp);
}

static int complete_hundred_sges(void)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(rc);
	struct ibv_sge sges[100] = { { 0 } };

	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge_list(qp, 100, sges);
	return ibv_wr_complete(qp);
}

static int receive(struct ibv_qp *qp, int sge_count)
{
	struct ibv_sge sges[3] = { { 0 } };
	struct ibv_recv_wr wr = { .sg_list = sges, .num_sge = sge_count };
	struct ibv_recv_wr *bad = NULL;
	int error = ibv_post_recv(qp, &wr, &bad);

	EXPECT(bad == &wr);
	return error;
}

static int receive_three_sges(void)
{
	return receive(rc, 3);
}

static int receive_beside_srq(void)
{
	return receive(with_srq, 1);
}

static int receive_in_reset(void)
{
	struct ibv_qp_init_attr attr = good_qp();
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	int error = receive(qp, 1);

	ibv_destroy_qp(qp);
	return error;
}

/* --- the table --- */

#define ROW(call, error, log)           \
	{                               \
#call, call, error, log \
	}

/* clang-format off */
static const struct row {
	const char *name;
	int (*call)(void);
	int error;
	const char *log; /* the line must contain this */
} rows[] = {
	ROW(open_nothing, EINVAL, "ibv_open_device: no device"),
	ROW(query_port_2, EINVAL, "vb_lo has no port 2, only port 1"),
	ROW(query_gid_128, EINVAL, "vb_lo has no GID 128, at most 127"),
	ROW(query_gid_with_flags, EOPNOTSUPP, "ibv_query_gid_ex: vb_lo: flags 0x4"),
	ROW(query_gid_table_without_room, EINVAL, "ibv_query_gid_table: vb_lo: room for 1 entries"),
	ROW(query_pkey_1, EINVAL, "vb_lo has no P_Key 1, only 0"),
	ROW(find_no_pkey, ENOENT, "ibv_get_pkey_index: vb_lo has no P_Key 0x1234"),
	ROW(query_unknown_clock, EOPNOTSUPP, "ibv_query_rt_values_ex: vb_lo: comp_mask 0x6: bits outside 0x1"),

	ROW(dealloc_busy_pd, EBUSY, "ibv_dealloc_pd: PD 1 still has"),
	ROW(parent_without_pd, EINVAL, "ibv_alloc_parent_domain: no PD"),
	ROW(parent_with_half_an_allocator, EINVAL, "ibv_alloc_parent_domain: alloc or free is missing"),
	ROW(xrcd_of_no_file, EBADF, "ibv_open_xrcd: 999 is no descriptor"),
	ROW(xrcd_that_is_not_there, ENOENT, "stands for no domain, and no O_CREAT"),

	ROW(register_unknown_access, EOPNOTSUPP, "a region with access 0x80000: bits outside 0x"),
	ROW(register_remote_without_local, EINVAL, "access 0x2: remote writes or atomics without local"),
	ROW(register_beyond_the_end, EINVAL, "a region of 18446744073709551615 bytes at"),
	ROW(register_what_is_not_there, EFAULT, "ibv_reg_mr: not all of the 64 bytes at 0x1000 can be read"),
	ROW(register_what_cannot_be_written, EFAULT, "not all of the 64 bytes at 0x* can be written"),
	ROW(register_dmabuf, EOPNOTSUPP, "ibv_reg_dmabuf_mr: vb_lo does not reach dma-bufs (descriptor 0)"),
	ROW(change_nothing, EINVAL, "ibv_rereg_mr: flags 0x0: none, or bits outside 0x7"),
	ROW(change_to_no_pd, EINVAL, "ibv_rereg_mr: IBV_REREG_MR_CHANGE_PD without a PD"),
	ROW(advise_unknown_flags, EINVAL, "ibv_advise_mr: flags 0x2: bits outside 0x1"),
	ROW(advise_unknown, ENOTSUP, "ibv_advise_mr: advice 9, at most 2"),
	ROW(advise_no_key, EFAULT, "64 bytes at 0x*: there is no such key"),
	ROW(advise_too_much, EFAULT, "4097 bytes at 0x*: not all of it is in the region"),
	ROW(advise_others_region, EPERM, "64 bytes at 0x*: the region is of another PD"),
	ROW(advise_writing_read_only, EPERM, "64 bytes at 0x*: the region is not writable"),
	ROW(advise_window, EINVAL, "64 bytes at 0x*: it is a window's key"),
	ROW(window_of_type_3, EINVAL, "ibv_alloc_mw: type 3, 1 or 2"),
	ROW(too_much_device_memory, ENOMEM, "ibv_alloc_dm: vb_lo: 2097152 bytes * 1 to 1048576 bytes"),
	ROW(no_device_memory, EINVAL, "ibv_alloc_dm: vb_lo: 0 bytes"),
	ROW(copy_odd_length, EINVAL, "cannot copy 3 bytes at 0: multiples of 4 within its 64 bytes"),
	ROW(copy_beyond_device_memory, EINVAL, "cannot copy 8 bytes at 60"),
	ROW(region_beyond_device_memory, EINVAL, "ibv_reg_dm_mr: 64 bytes at 32 of device memory * which has 64"),
	ROW(region_on_device_memory_with_addresses, EINVAL, "device memory needs IBV_ACCESS_ZERO_BASED"),
	ROW(import_unknown_mr, EINVAL, "ibv_import_mr: no region of vb_lo has handle 0"),

	ROW(cq_without_entries, EINVAL, "ibv_create_cq: 0 entries, at least 1"),
	ROW(cq_too_long, EINVAL, "ibv_create_cq: vb_lo: * entries, at most"),
	ROW(cq_on_no_vector, EINVAL, "ibv_create_cq: completion vector 8, at most 7"),
	ROW(cq_on_others_channel, EINVAL, "ibv_create_cq: the channel is of another context"),
	ROW(cq_with_flow_tags, EOPNOTSUPP, "ibv_create_cq_ex: wc_flags 0x200: bits outside 0x"),
	ROW(cq_with_unknown_mask, EOPNOTSUPP, "ibv_create_cq_ex: comp_mask 0x40000000: bits outside 0x"),
	ROW(resize_to_nothing, EINVAL, "ibv_resize_cq: CQ * 0 entries, at least 1 and the 0 that wait"),
	ROW(moderate_nothing, EINVAL, "ibv_modify_cq: CQ * attr_mask 0x0, needs 0x1"),
	ROW(destroy_busy_cq, EBUSY, "ibv_destroy_cq: CQ * still has QPs"),
	ROW(destroy_busy_channel, EBUSY, "ibv_destroy_comp_channel: descriptor * still has 1 CQs"),

	ROW(srq_without_room, EINVAL, "ibv_create_srq: vb_lo: 0 receives, 1 to"),
	ROW(srq_with_too_many_sges, EINVAL, "100000 SGEs, at most"),
	ROW(srq_with_a_limit_above_all, EINVAL, "4 receives, * limit 5, at most as many"),
	ROW(modify_unknown_of_srq, EINVAL, "ibv_modify_srq: SRQ 0x* mask 0x8: bits outside 0x3"),
	ROW(limit_above_srq, EINVAL, "ibv_modify_srq: SRQ 0x* limit 5, at most 4"),
	ROW(destroy_busy_srq, EBUSY, "ibv_destroy_srq: SRQ 0x* still has QPs"),
	ROW(post_to_srq_too_many_sges, EINVAL, "ibv_post_srq_recv: SRQ 0x* 2 SGEs, at most 1"),

	ROW(qp_without_cq, EINVAL, "ibv_create_qp: no CQ for receives"),
	ROW(qp_of_no_type, EINVAL, "ibv_create_qp: there is no type 77"),
	ROW(qp_for_raw_packets, EOPNOTSUPP, "ibv_create_qp: vb_lo has no QPs of type 8"),
	ROW(qp_too_deep, EINVAL, "ibv_create_qp: vb_lo: max_send_wr is * at most"),
	ROW(qp_with_too_many_sges, EINVAL, "ibv_create_qp: vb_lo: max_recv_sge is * at most"),
	ROW(qp_with_too_much_inline, EINVAL, "ibv_create_qp: vb_lo: max_inline_data is 1048576, at most"),
	ROW(qp_with_others_cq, EINVAL, "ibv_create_qp: vb_lo: a CQ, SRQ or XRC domain is of another device"),
	ROW(ud_with_reads, EOPNOTSUPP, "ibv_create_qp_ex: UD does not have send_ops_flags 0x10"),
	ROW(modify_without_mtu, EINVAL, "RC from INIT to RTR misses IBV_QP_PATH_MTU"),
	ROW(modify_with_qkey, EINVAL, "RC from INIT to RTR does not take IBV_QP_QKEY"),
	ROW(modify_from_init_to_rts, EINVAL, "RC cannot go from INIT to RTS"),
	ROW(modify_to_a_wide_mtu, EINVAL, "IBV_QP_PATH_MTU is 0 bytes, the port's is 4096"),
	ROW(modify_to_many_reads, EINVAL, "IBV_QP_MAX_DEST_RD_ATOMIC is 255, at most"),
	ROW(modify_to_an_address_without_grh, EINVAL, "an address without GRH"),
	ROW(modify_to_an_empty_gid, EINVAL, "IBV_QP_AV: there is no GID 77"),
	ROW(modify_migration, EOPNOTSUPP, "the adapter does not do IBV_QP_PATH_MIG_STATE"),
	ROW(modify_from_another_state, EINVAL, "IBV_QP_CUR_STATE says SQD but it is RTS"),
	ROW(modify_rate_limit, EOPNOTSUPP, "ibv_modify_qp: QP 0x* mask 0x2000001: bits outside 0x1ffffff"),
	ROW(attach_rc, EINVAL, "ibv_attach_mcast: QP 0x* only UD has groups"),
	ROW(attach_to_a_host, EINVAL, "a GID that begins with 0xfe, not 0xff, and is no IPv4 group"),
	ROW(detach_from_nothing, EINVAL, "it is not in that group"),
	ROW(set_ece, EOPNOTSUPP, "there is no ECE"),

	ROW(ah_without_grh, EINVAL, "an address without GRH: on Ethernet there is no other"),
	ROW(ah_on_port_2, EINVAL, "an address on port 2, there is only port 1"),
	ROW(ah_from_the_other_ip, EINVAL, "ibv_create_ah: vb_lo: there is no GID 0, or the destination's"),
	ROW(ah_from_rubbish, EPROTONOSUPPORT, "neither an IPv4 nor an IPv6 header (0x00000000)"),

	ROW(send_in_init, EINVAL, "ibv_post_send: QP 0x* in state INIT nothing can be sent"),
	ROW(send_three_sges, EINVAL, "ibv_post_send: QP 0x* 3 SGEs, at most 2"),
	ROW(send_a_negative_number_of_sges, EINVAL, "-1 SGEs, at most 2"),
	ROW(send_too_much_inline, EINVAL, "65 bytes of inline data, at most 64"),
	ROW(send_too_much, EINVAL, "3 SGEs, at most 2"),
	ROW(send_no_operation, EINVAL, "there is no operation 99"),
	ROW(read_on_uc, EOPNOTSUPP, "UC does not have operation 4"),
	ROW(read_inline, EINVAL, "operation 4 cannot have inline data"),
	ROW(atomic_of_4_bytes, EINVAL, "an atomic of 4 bytes, not 8"),
	ROW(datagram_to_nobody, EINVAL, "a datagram needs an address handle"),
	ROW(datagram_with_others_handle, EINVAL, "the address handle is of another PD"),
	ROW(bind_with_a_foreign_key, EINVAL, "is none that the window may get"),
	ROW(complete_three_sges, EINVAL, "ibv_wr_complete: QP 0x* 3 SGEs, at most 2"),
	ROW(complete_hundred_sges, EINVAL, "ibv_wr_set_sge_list: QP 0x* 100 SGEs, at most"),
	ROW(receive_three_sges, EINVAL, "ibv_post_recv: QP 0x* 3 SGEs, at most 2"),
	ROW(receive_beside_srq, EINVAL, "its receives come from an SRQ"),
	ROW(receive_in_reset, EINVAL, "in state RESET nothing can be posted"),
};
/* clang-format on */

/* Whether the text contains the pattern, in which * stands for anything. */
static bool contains(const char *text, const char *pattern)
{
	char part[128];

	while (*pattern) {
		size_t length = strcspn(pattern, "*");
		const char *found;

		snprintf(part, sizeof(part), "%.*s", (int)length, pattern);
		found = strstr(text, part);
		if (!found)
			return false;
		text = found + length;
		pattern += length + (pattern[length] == '*');
	}
	return true;
}

static struct ibv_qp *make_with_srq(void)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = cq,
					    .recv_cq = cq,
					    .srq = srq,
					    .cap = { 4, 0, 1, 0, 0 },
					    .qp_type = IBV_QPT_RC,
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = pd };

	return make_qp_as(context, &attr);
}

static void make_all(void)
{
	struct ibv_alloc_dm_attr dm_attr = { .length = 64 };
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_ah_attr address = loopback_address();

	context = open_device();
	other_context = ibv_open_device(context->device);
	EXPECT_EQ(ibv_query_device_ex(context, NULL, &device), 0);
	pd = ibv_alloc_pd(context);
	other_pd = ibv_alloc_pd(context);
	channel = ibv_create_comp_channel(context);
	cq = ibv_create_cq(context, 64, NULL, channel, 0);
	other_cq = ibv_create_cq(other_context, 64, NULL, NULL, 0);
	mr = register_all(pd, memory, sizeof(memory));
	read_only = ibv_reg_mr(pd, memory, sizeof(memory), 0);
	mw1 = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	mw2 = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	dm = ibv_alloc_dm(context, &dm_attr);
	srq = ibv_create_srq(pd, &srq_attr);
	other_ah = ibv_create_ah(other_pd, &address);
	EXPECT(other_cq && read_only && mw1 && mw2 && dm && srq && other_ah);
	rc = make_qp(pd, cq, IBV_QPT_RC);
	connect_to(rc, rc->qp_num);
	uc = make_qp(pd, cq, IBV_QPT_UC);
	connect_to(uc, uc->qp_num);
	ud = make_qp(pd, cq, IBV_QPT_UD);
	set_ready(ud);
	fresh = make_qp(pd, cq, IBV_QPT_RC);
	with_srq = make_with_srq();
}

static void destroy_all(void)
{
	EXPECT_EQ(ibv_destroy_qp(rc), 0);
	EXPECT_EQ(ibv_destroy_qp(uc), 0);
	EXPECT_EQ(ibv_destroy_qp(ud), 0);
	EXPECT_EQ(ibv_destroy_qp(fresh), 0);
	EXPECT_EQ(ibv_destroy_qp(with_srq), 0);
	EXPECT_EQ(ibv_destroy_ah(other_ah), 0);
	EXPECT_EQ(ibv_destroy_srq(srq), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_dealloc_mw(mw1), 0);
	EXPECT_EQ(ibv_dealloc_mw(mw2), 0);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_dereg_mr(read_only), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_destroy_cq(other_cq), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_dealloc_pd(other_pd), 0);
	EXPECT_EQ(ibv_close_device(other_context), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(each_wrong_call_has_its_errno_and_a_line_that_says_why)
{
	make_all();
	EXPECT_STR(take_log(), "");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int error = rows[i].call();
		const char *log = take_log();

		if (error != rows[i].error)
			FAIL("%s: %s, not %s", rows[i].name, strerrorname_np(error),
			     strerrorname_np(rows[i].error));
		if (!contains(log, rows[i].log))
			FAIL("%s: the log has \"%s\", not \"%s\"", rows[i].name, log, rows[i].log);
		if (strchr(log, '\n') != strrchr(log, '\n'))
			FAIL("%s: more than one line: %s", rows[i].name, log);
	}
	destroy_all(); /* nothing was left behind */
	EXPECT_STR(take_log(), "");
}

TEST(a_full_queue_is_ordinary_and_not_logged)
{
	struct ibv_recv_wr wr = { .num_sge = 0 };
	struct ibv_recv_wr *bad;
	struct ibv_send_wr send_wr = { .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr *bad_send;
	int error = 0;

	make_all();
	for (int i = 0; i < 8; i++)
		EXPECT_EQ(ibv_post_recv(rc, &wr, &bad), 0);
	EXPECT_EQ(ibv_post_recv(rc, &wr, &bad), ENOMEM);
	for (int i = 0; i < 9 && !error; i++)
		error = ibv_post_send(rc, &send_wr, &bad_send);
	EXPECT_EQ(error, ENOMEM);
	EXPECT_STR(take_log(), "");
	destroy_all();
}
