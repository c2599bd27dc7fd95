/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first version of the ABI (IBVERBS_1.0, before 2007), whose structs differ from today's. A
 * program of that time starts and finds no device; every other call fails.
 */
#include "abi/export_priv.h"
#include "abi/returns.h"
#include "base/heap.h"

int vb_abi_compat_refuse(void);
int vb_abi_compat_refuse_minus_one(void);
void *vb_abi_compat_refuse_null(void);
void vb_abi_compat_ignore(void);
void **vb_abi_compat_get_device_list(int *count_out);
void vb_abi_compat_free_device_list(void **list);

VB_ABI_EXPORT int vb_abi_compat_refuse(void)
{
	return vb_abi_return_errno(EOPNOTSUPP);
}

VB_ABI_EXPORT int vb_abi_compat_refuse_minus_one(void)
{
	return vb_abi_return_minus_one(EOPNOTSUPP);
}

VB_ABI_EXPORT void *vb_abi_compat_refuse_null(void)
{
	return vb_abi_return_null(EOPNOTSUPP);
}

VB_ABI_EXPORT void vb_abi_compat_ignore(void)
{
}

VB_ABI_EXPORT void **vb_abi_compat_get_device_list(int *count_out)
{
	void **list = vb_heap_alloc(1, sizeof(*list));

	if (!list)
		return vb_abi_return_null(ENOMEM);
	if (count_out)
		*count_out = 0;
	return list;
}

VB_ABI_EXPORT void vb_abi_compat_free_device_list(void **list)
{
	vb_heap_free(list);
}

VB_ABI_VERSION(vb_abi_compat_get_device_list, "ibv_get_device_list@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_free_device_list, "ibv_free_device_list@IBVERBS_1.0");

VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_get_device_name@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_open_device@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_alloc_pd@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_reg_mr@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_create_cq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_create_srq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_create_qp@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_create_ah@IBVERBS_1.0");

/* A GUID of zero means none. */
VB_ABI_VERSION(vb_abi_compat_refuse_null, "ibv_get_device_guid@IBVERBS_1.0");

VB_ABI_VERSION(vb_abi_compat_refuse_minus_one, "ibv_close_device@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_minus_one, "ibv_get_async_event@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_minus_one, "ibv_get_cq_event@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_minus_one, "ibv_query_gid@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse_minus_one, "ibv_query_pkey@IBVERBS_1.0");

VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_query_device@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_query_port@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_dealloc_pd@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_dereg_mr@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_resize_cq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_destroy_cq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_modify_srq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_query_srq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_destroy_srq@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_query_qp@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_modify_qp@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_destroy_qp@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_destroy_ah@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_attach_mcast@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_refuse, "ibv_detach_mcast@IBVERBS_1.0");

VB_ABI_VERSION(vb_abi_compat_ignore, "ibv_ack_async_event@IBVERBS_1.0");
VB_ABI_VERSION(vb_abi_compat_ignore, "ibv_ack_cq_events@IBVERBS_1.0");

/* How providers registered themselves until rdma-core 14. */
VB_ABI_VERSION(vb_abi_compat_ignore, "ibv_register_driver@IBVERBS_1.1");
