/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ports, their GID tables and P_Key tables. struct ibv_port_attr grew once: programs with the
 * shorter struct call the function ibv_query_port; current programs go through the context.
 */
#include "abi/driver_priv.h"
#include "abi/export_priv.h"
#include "abi/ops_priv.h"
#include "abi/refuse_priv.h"
#include "abi/returns.h"

#include <endian.h>

#undef ibv_query_port

enum { OLD_PORT_ATTR_SIZE = offsetof(struct ibv_port_attr, port_cap_flags2) };

int vb_abi_op_query_port(struct ibv_context *context, uint8_t port_num,
			 struct ibv_port_attr *attr_out, size_t attr_size)
{
	struct ibv_port_attr attr = { 0 };
	int error = vb_abi_query_port(context, port_num, &attr);

	if (error)
		return vb_abi_return_errno(error);
	memset(attr_out, 0, attr_size);
	memcpy(attr_out, &attr, attr_size < sizeof(attr) ? attr_size : sizeof(attr));
	return 0;
}

VB_ABI_VERSION(ibv_query_port, "ibv_query_port@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port_num,
				 struct _compat_ibv_port_attr *port_attr)
{
	return vb_abi_op_query_port(context, port_num, (struct ibv_port_attr *)port_attr,
				    OLD_PORT_ATTR_SIZE);
}

/* An empty slot reads as a GID of zero here; only the newer queries can report it. */
VB_ABI_VERSION(ibv_query_gid, "ibv_query_gid@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
				union ibv_gid *gid)
{
	struct ibv_gid_entry entry = { 0 };
	int error = vb_abi_query_gid(context, port_num, (uint32_t)index, &entry);

	if (error && error != ENODATA)
		return vb_abi_return_minus_one(error);
	*gid = entry.gid;
	return 0;
}

/* 0 is InfiniBand or RoCE v1, 1 is RoCE v2: not the numbers of enum ibv_gid_type. */
VB_ABI_EXPORT int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
				     unsigned int index, int *type)
{
	struct ibv_gid_entry entry = { 0 };
	int error = vb_abi_query_gid(context, port_num, index, &entry);

	if (error && error != ENODATA)
		return vb_abi_return_minus_one(error);
	*type = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
	return 0;
}

/* Programs of a later rdma-core may have a longer entry: fields unknown here are zero. */
static void store_entry(void *to, const struct ibv_gid_entry *entry, size_t entry_size)
{
	memset(to, 0, entry_size);
	memcpy(to, entry, sizeof(*entry));
}

VB_ABI_EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
				    uint32_t gid_index, struct ibv_gid_entry *entry, uint32_t flags,
				    size_t entry_size)
{
	struct ibv_gid_entry found = { 0 };
	int error;

	if (flags)
		return vb_abi_return_errno(
			vb_abi_refuse_at(EOPNOTSUPP, context,
					 "ibv_query_gid_ex: %s: flags 0x%x: no flag is supported",
					 vb_abi_device_name(context), flags));
	if (entry_size < sizeof(found))
		return vb_abi_return_errno(vb_abi_refuse_at(
			EINVAL, context,
			"ibv_query_gid_ex: %s: %zu bytes for an entry, at least %zu",
			vb_abi_device_name(context), entry_size, sizeof(found)));
	error = vb_abi_query_gid(context, port_num, gid_index, &found);
	if (error)
		return vb_abi_return_errno(error);
	store_entry(entry, &found, entry_size);
	return 0;
}

/* Appends the entries of a port after the first `count`. Returns the new count or -errno. */
static ssize_t add_port_entries(struct ibv_context *context, uint32_t port, void *entries,
				size_t capacity, size_t entry_size, size_t count)
{
	struct ibv_gid_entry found[VB_GID_COUNT];
	uint32_t found_count;
	int error = vb_abi_query_gids(context, port, found, &found_count);

	if (!error && found_count > capacity - count)
		error = vb_abi_refuse_at(
			EINVAL, context,
			"ibv_query_gid_table: %s: room for %zu entries, there are more",
			vb_abi_device_name(context), capacity);
	for (uint32_t i = 0; !error && i < found_count; i++)
		store_entry((char *)entries + count++ * entry_size, &found[i], entry_size);
	return error ? -(ssize_t)error : (ssize_t)count;
}

VB_ABI_EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context,
					   struct ibv_gid_entry *entries, size_t max_entries,
					   uint32_t flags, size_t entry_size)
{
	struct ibv_device_attr_ex device = { 0 };
	ssize_t count = 0;
	int error;

	if (flags)
		return -vb_abi_refuse_at(
			EOPNOTSUPP, context,
			"ibv_query_gid_table: %s: flags 0x%x: no flag is supported",
			vb_abi_device_name(context), flags);
	if (!max_entries || entry_size < sizeof(*entries))
		return -vb_abi_refuse_at(
			EINVAL, context,
			"ibv_query_gid_table: %s: room for %zu entries of %zu bytes, at least 1 of %zu",
			vb_abi_device_name(context), max_entries, entry_size, sizeof(*entries));
	error = vb_abi_query_device(context, &device);
	if (error)
		return -error;
	for (uint32_t port = 1; port <= device.orig_attr.phys_port_cnt && count >= 0; port++)
		count = add_port_entries(context, port, entries, max_entries, entry_size,
					 (size_t)count);
	return count;
}

VB_ABI_VERSION(ibv_query_pkey, "ibv_query_pkey@@@IBVERBS_1.1");
VB_ABI_EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
				 __be16 *pkey)
{
	int error = vb_abi_query_pkey(context, port_num, (uint32_t)index, pkey);

	return vb_abi_return_minus_one(error);
}

VB_ABI_EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	struct ibv_port_attr attr = { 0 };
	int error = vb_abi_query_port(context, port_num, &attr);

	for (int index = 0; !error && index < attr.pkey_tbl_len; index++) {
		__be16 found;

		error = vb_abi_query_pkey(context, port_num, (uint32_t)index, &found);
		if (!error && found == pkey)
			return index;
	}
	if (!error)
		error = vb_abi_refuse_at(ENOENT, context,
					 "ibv_get_pkey_index: %s has no P_Key 0x%04x",
					 vb_abi_device_name(context), be16toh(pkey));
	return vb_abi_return_minus_one(error);
}
