/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Endpoints: an identifier, its addresses, its route and its QP in one call, made from the result
 * of rdma_getaddrinfo().
 */
#include "cma/cma_priv.h"

#include "base/heap.h"

#include <rdma/rdma_verbs.h>

#define TIMEOUT_MS 2000

static int prepare_passive(struct vb_cma_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			   const struct ibv_qp_init_attr *attr)
{
	int error = vb_cma_bind(id, res->ai_src_addr, true);

	if (error || !attr)
		return error;
	id->child_qp = vb_heap_alloc(1, sizeof(*id->child_qp));
	if (!id->child_qp)
		return ENOMEM;
	*id->child_qp = *attr;
	id->child_pd = pd;
	return 0;
}

static int resolve_route(struct rdma_cm_id *id, const struct rdma_addrinfo *res)
{
	int result = res->ai_route_len ? rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH,
							 res->ai_route, res->ai_route_len)
				       : rdma_resolve_route(id, TIMEOUT_MS);

	return result ? errno : 0;
}

static int prepare_active(struct rdma_cm_id *id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
			  struct ibv_qp_init_attr *attr)
{
	int error;

	if (rdma_resolve_addr(id, res->ai_src_addr, res->ai_dst_addr, TIMEOUT_MS))
		return errno;
	error = resolve_route(id, res);
	if (error || !attr)
		return error;
	attr->qp_type = (enum ibv_qp_type)res->ai_qp_type;
	return rdma_create_qp(id, pd, attr) ? errno : 0;
}

static int create(struct rdma_cm_id **id, const struct rdma_addrinfo *res, struct ibv_pd *pd,
		  struct ibv_qp_init_attr *attr)
{
	struct rdma_cm_id *made;
	int error;

	if (!id || !res)
		return vb_cma_refuse(
			EINVAL, "rdma_create_ep: no addresses, or no place for the identifier");
	error = vb_cma_id_create(NULL, &made, NULL, (enum rdma_port_space)res->ai_port_space,
				 (enum ibv_qp_type)res->ai_qp_type);
	if (error)
		return error;
	error = res->ai_flags & RAI_PASSIVE ? prepare_passive(vb_cma_id_of(made), res, pd, attr)
					    : prepare_active(made, res, pd, attr);
	if (error) {
		rdma_destroy_ep(made);
		return error;
	}
	*id = made;
	return 0;
}

VB_CMA_EXPORT int rdma_create_ep(struct rdma_cm_id **id, struct rdma_addrinfo *res,
				 struct ibv_pd *pd, struct ibv_qp_init_attr *qp_init_attr)
{
	return vb_cma_return(create(id, res, pd, qp_init_attr));
}

VB_CMA_EXPORT void rdma_destroy_ep(struct rdma_cm_id *id)
{
	if (!id)
		return;
	rdma_destroy_qp(id);
	rdma_destroy_srq(id);
	rdma_destroy_id(id);
}
