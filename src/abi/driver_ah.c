/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses as programs specify them, and address handles. */
#include "abi/refuse_priv.h"

#include "base/heap.h"

#include <errno.h>
#include <string.h>

int vb_abi_address(const struct ibv_ah_attr *attr, struct vb_address *address)
{
	if (!attr->is_global)
		return vb_abi_refuse(
			EINVAL,
			"an address without GRH: on Ethernet there is no other. The program "
			"must choose a GID; many have an option for its index");
	if (attr->port_num != 1)
		return vb_abi_refuse(EINVAL, "an address on port %u, there is only port 1",
				     attr->port_num);
	*address = (struct vb_address){
		.flow_label = attr->grh.flow_label & 0xfffff,
		.source_index = attr->grh.sgid_index,
		.hop_limit = attr->grh.hop_limit,
		.traffic_class = attr->grh.traffic_class,
		.service_level = attr->sl,
	};
	memcpy(address->destination.raw, attr->grh.dgid.raw, sizeof(address->destination.raw));
	return 0;
}

int vb_abi_ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah_out)
{
	struct vb_adapter *adapter = vb_abi_context_of(pd->context)->adapter;
	struct vb_address address;
	struct vb_abi_ah *ah;
	vb_err err;

	if (vb_abi_address(attr, &address))
		return EINVAL;
	ah = vb_heap_alloc(1, sizeof(*ah));
	if (!ah)
		return ENOMEM;
	vb_adapter_enter(adapter);
	err = vb_ah_create(vb_abi_pd_of(pd), &address, &ah->ah);
	vb_adapter_leave(adapter);
	if (err) {
		vb_heap_free(ah);
		return vb_abi_refuse_at(
			vb_abi_errno(err), pd->context,
			"ibv_create_ah: %s: there is no GID %u, or the destination's is zero "
			"or of the other IP version",
			vb_abi_device_name(pd->context), attr->grh.sgid_index);
	}
	*ah_out = &ah->verbs;
	return 0;
}

int vb_abi_ah_destroy(struct ibv_ah *ah)
{
	struct vb_abi_ah *own = VB_CONTAINER(ah, struct vb_abi_ah, verbs);
	struct vb_adapter *adapter = vb_abi_context_of(ah->context)->adapter;

	vb_adapter_enter(adapter);
	vb_ah_destroy(own->ah);
	vb_adapter_leave(adapter);
	vb_heap_free(own);
	return 0;
}
