/* SPDX-License-Identifier: BSD-2-Clause */
/* Listing devices, opening and closing them, and their attributes. */
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

VB_ABI_VERSION(ibv_get_device_list, "ibv_get_device_list@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_device **ibv_get_device_list(int *num_devices)
{
	struct ibv_device **list;
	int count;
	int error = vb_abi_device_list(&list, &count);

	if (num_devices)
		*num_devices = error ? 0 : count;
	return error ? vb_abi_return_null(error) : list;
}

VB_ABI_VERSION(ibv_free_device_list, "ibv_free_device_list@@@IBVERBS_1.1");
VB_ABI_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	if (list)
		vb_abi_device_list_free(list);
}

VB_ABI_VERSION(ibv_get_device_name, "ibv_get_device_name@@@IBVERBS_1.1");
VB_ABI_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

VB_ABI_VERSION(ibv_get_device_guid, "ibv_get_device_guid@@@IBVERBS_1.1");
VB_ABI_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return vb_abi_device_guid(device);
}

VB_ABI_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return vb_abi_device_index(device);
}

VB_ABI_VERSION(ibv_open_device, "ibv_open_device@@@IBVERBS_1.1");
VB_ABI_EXPORT struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *context;
	int error;

	if (!device)
		return vb_abi_return_null(vb_abi_refuse(EINVAL, "ibv_open_device: no device"));
	error = vb_abi_context_open(device, &context);
	return error ? vb_abi_return_null(error) : context;
}

VB_ABI_EXPORT struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *context;
	int error = vb_abi_context_import(cmd_fd, &context);

	return error ? vb_abi_return_null(error) : context;
}

VB_ABI_VERSION(ibv_close_device, "ibv_close_device@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_close_device(struct ibv_context *context)
{
	return vb_abi_return_minus_one(vb_abi_context_close(context));
}

VB_ABI_VERSION(ibv_query_device, "ibv_query_device@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *device_attr)
{
	struct ibv_device_attr_ex attr;
	int error = vb_abi_query_device(context, &attr);

	if (!error)
		*device_attr = attr.orig_attr;
	return vb_abi_return_errno(error);
}

/* The caller's struct may be older and shorter than ours, or newer and longer. */
int vb_abi_op_query_device_ex(struct ibv_context *context,
			      const struct ibv_query_device_ex_input *input,
			      struct ibv_device_attr_ex *attr_out, size_t attr_size)
{
	struct ibv_device_attr_ex attr = { 0 };
	int error;

	if (input && input->comp_mask)
		return vb_abi_return_errno(vb_abi_refuse_at(
			EINVAL, context,
			"ibv_query_device_ex: %s: comp_mask 0x%x: no bit is supported",
			vb_abi_device_name(context), input->comp_mask));
	if (attr_size < sizeof(attr.orig_attr))
		return vb_abi_return_errno(vb_abi_refuse_at(
			EINVAL, context,
			"ibv_query_device_ex: %s: %zu bytes for attributes, at least %zu",
			vb_abi_device_name(context), attr_size, sizeof(attr.orig_attr)));
	error = vb_abi_query_device(context, &attr);
	if (error)
		return vb_abi_return_errno(error);
	memset(attr_out, 0, attr_size);
	memcpy(attr_out, &attr, attr_size < sizeof(attr) ? attr_size : sizeof(attr));
	return 0;
}

int vb_abi_op_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	return vb_abi_return_errno(vb_abi_query_clock(context, values));
}
