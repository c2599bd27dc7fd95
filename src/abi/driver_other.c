/* SPDX-License-Identifier: BSD-2-Clause */
/* Verbs that need nothing from the engine, and those that this adapter does not have. */
#include "abi/objects_priv.h"

#include <errno.h>
#include <stdlib.h>

/* A thread domain promises that one thread uses its objects; there is nothing to gain from it here. */
int vb_abi_td_alloc(struct ibv_context *context, struct ibv_td **td_out)
{
	struct ibv_td *td = calloc(1, sizeof(*td));

	(void)context;
	if (!td)
		return ENOMEM;
	*td_out = td;
	return 0;
}

int vb_abi_td_dealloc(struct ibv_td *td)
{
	free(td);
	return 0;
}

/* Pages are touched when they are used; all that can be told now is whether the keys are right. */
int vb_abi_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *ranges, uint32_t count)
{
	(void)pd;
	(void)flags;
	(void)ranges;
	(void)count;
	switch (advice) {
	case IBV_ADVISE_MR_ADVICE_PREFETCH:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		return 0;
	default:
		return EOPNOTSUPP;
	}
}

int vb_abi_mr_register_dmabuf(struct ibv_pd *pd, int fd, const struct vb_abi_range *range,
			      struct ibv_mr **mr_out)
{
	(void)pd;
	(void)fd;
	(void)range;
	(void)mr_out;
	return EOPNOTSUPP;
}

int vb_abi_qp_open(struct ibv_context *context, const struct ibv_qp_open_attr *attr,
		   struct ibv_qp **qp_out)
{
	(void)context;
	(void)attr;
	(void)qp_out;
	return EOPNOTSUPP;
}

int vb_abi_ah_resolve(struct ibv_context *context, const struct ibv_ah_attr *attr,
		      uint8_t mac_out[ETHERNET_LL_SIZE], uint16_t *vlan_out)
{
	(void)context;
	(void)attr;
	(void)mac_out;
	(void)vlan_out;
	return EOPNOTSUPP;
}
