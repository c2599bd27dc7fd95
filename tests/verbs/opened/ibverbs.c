/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs that the tests use, for a program that is not linked with libibverbs. The program opens
 * the library when it needs it and keeps its names to itself, as a plugin does.
 */
#include "harness.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>

#undef ibv_reg_mr

static void *find(const char *name)
{
	static void *library;
	void *found;

	if (!library)
		library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	EXPECT(library);
	found = dlsym(library, name);
	EXPECT(found);
	return found;
}

/* clang-format off */
#define FORWARD(type, name, parameters, arguments)                      \
	type name parameters                                            \
	{                                                               \
		return ((__typeof__(name) *)find(#name)) arguments;     \
	}

FORWARD(struct ibv_device **, ibv_get_device_list, (int *count), (count))
FORWARD(struct ibv_context *, ibv_open_device, (struct ibv_device *device), (device))
FORWARD(int, ibv_query_gid, (struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid),
	(context, port, index, gid))
FORWARD(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *context), (context))
FORWARD(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *pd, void *from, size_t length, int access),
	(pd, from, length, access))
FORWARD(struct ibv_mr *, ibv_reg_mr_iova2,
	(struct ibv_pd *pd, void *from, size_t length, uint64_t iova, unsigned access),
	(pd, from, length, iova, access))
FORWARD(int, ibv_dereg_mr, (struct ibv_mr *mr), (mr))
FORWARD(struct ibv_cq *, ibv_create_cq,
	(struct ibv_context *context, int depth, void *own, struct ibv_comp_channel *channel, int vector),
	(context, depth, own, channel, vector))
FORWARD(struct ibv_comp_channel *, ibv_create_comp_channel, (struct ibv_context *context), (context))
FORWARD(int, ibv_destroy_comp_channel, (struct ibv_comp_channel *channel), (channel))
FORWARD(struct ibv_qp *, ibv_create_qp, (struct ibv_pd *pd, struct ibv_qp_init_attr *init), (pd, init))
FORWARD(int, ibv_modify_qp, (struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))
FORWARD(int, ibv_query_qp,
	(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
	(qp, attr, mask, init))
FORWARD(struct ibv_ah *, ibv_create_ah, (struct ibv_pd *pd, struct ibv_ah_attr *path), (pd, path))
FORWARD(int, ibv_destroy_qp, (struct ibv_qp *qp), (qp))
FORWARD(const char *, ibv_wc_status_str, (enum ibv_wc_status status), (status))
/* clang-format on */

void ibv_free_device_list(struct ibv_device **list)
{
	((__typeof__(ibv_free_device_list) *)find("ibv_free_device_list"))(list);
}
