/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that the verbs need from the adapter. The verbs_*.c files do what is the same for
 * every adapter: error conventions, checks that need no limits, the public fields, counting and
 * waiting for acknowledgements. The functions here do the rest.
 *
 * Unless stated otherwise a function returns 0 or an errno number, and writes its outputs only on
 * success. A function that creates an object allocates it, with the public struct at its beginning
 * and any size that the driver needs. It sets the fields that its comment names; the caller sets
 * all others. Pointers that a verb requires are never NULL. Any function may be called from any
 * thread.
 */
#ifndef VB_ABI_DRIVER_PRIV_H
#define VB_ABI_DRIVER_PRIV_H

#include "nic/nic.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * --- devices and contexts -----------------------------------------------------------------------
 */

/*
 * libmlx5 and libefa take any ibv_device for their library's private kind and compare `provider`
 * with an address of their own. Only they may look behind `verbs`.
 */
struct vb_abi_device {
	struct ibv_device verbs;
	const void *provider; /* points to nothing of theirs; NULL is enough */
	uint64_t reserved[8]; /* they may read a few words beyond: zero */
};
_Static_assert(offsetof(struct vb_abi_device, provider) == 664, "where libmlx5 and libefa look");

/*
 * All devices, in a NULL-terminated array for vb_abi_device_list_free(). A device keeps its address
 * for the lifetime of the process: programs compare pointers of two lists.
 */
int vb_abi_device_list(struct ibv_device ***list_out, int *count_out);
void vb_abi_device_list_free(struct ibv_device **list);
int vb_abi_device_index(const struct ibv_device *device); /* unique, not negative */
__be64 vb_abi_device_guid(const struct ibv_device *device);

/*
 * Opening begins with vb_abi_context_init() (ops.c), which fills the operations of `context` with
 * the functions of this file; the driver then sets cmd_fd, async_fd and num_comp_vectors. The
 * driver's own struct contains verbs_context.
 */
void vb_abi_context_init(struct verbs_context *context, struct ibv_device *device);
int vb_abi_context_open(struct ibv_device *device, struct ibv_context **context_out);
int vb_abi_context_import(int cmd_fd, struct ibv_context **context_out);
int vb_abi_context_close(struct ibv_context *context);

/*
 * --- queries ------------------------------------------------------------------------------------
 */

int vb_abi_query_device(struct ibv_context *context, struct ibv_device_attr_ex *attr_out);
/* EINVAL: no such port. */
int vb_abi_query_port(struct ibv_context *context, uint32_t port, struct ibv_port_attr *attr_out);
/* EINVAL: no such port, or beyond gid_tbl_len. ENODATA: an empty slot. */
int vb_abi_query_gid(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry_out);
/* All non-empty entries, as a snapshot. EINVAL: no such port. */
int vb_abi_query_gids(struct ibv_context *context, uint32_t port,
		      struct ibv_gid_entry entries[VB_GID_COUNT], uint32_t *count_out);
/* EINVAL: no such port, or beyond pkey_tbl_len. */
int vb_abi_query_pkey(struct ibv_context *context, uint32_t port, uint32_t index, __be16 *pkey_out);
/* values->comp_mask selects the wanted values, and afterwards reports those that were given. */
int vb_abi_query_clock(struct ibv_context *context, struct ibv_values_ex *values);

/*
 * --- domains ------------------------------------------------------------------------------------
 */

int vb_abi_pd_alloc(struct ibv_context *context, struct ibv_pd **pd_out); /* sets handle */
int vb_abi_pd_alloc_parent(struct ibv_context *context,
			   const struct ibv_parent_domain_init_attr *attr, struct ibv_pd **pd_out);
int vb_abi_pd_dealloc(struct ibv_pd *pd); /* EBUSY: has children */
int vb_abi_pd_import(struct ibv_context *context, uint32_t handle, struct ibv_pd **pd_out);
void vb_abi_pd_unimport(struct ibv_pd *pd);

int vb_abi_td_alloc(struct ibv_context *context, struct ibv_td **td_out);
int vb_abi_td_dealloc(struct ibv_td *td);

int vb_abi_xrcd_open(struct ibv_context *context, const struct ibv_xrcd_init_attr *attr,
		     struct ibv_xrcd **xrcd_out);
int vb_abi_xrcd_close(struct ibv_xrcd *xrcd);

/*
 * --- memory -------------------------------------------------------------------------------------
 */

/*
 * The memory to register. The access flags are checked and the optional ones removed; on-demand and
 * zero-based remain. iova is where remote addresses begin. Sets handle, lkey and rkey.
 */
struct vb_abi_range {
	void *address;
	size_t length;
	uint64_t iova;
	unsigned int access;
};
int vb_abi_mr_register(struct ibv_pd *pd, const struct vb_abi_range *range, struct ibv_mr **mr_out);
/* range->address is an offset into the buffer behind fd. EBADF: not a descriptor. */
int vb_abi_mr_register_dmabuf(struct ibv_pd *pd, int fd, const struct vb_abi_range *range,
			      struct ibv_mr **mr_out);
/* range->iova is an offset into dm; range->address is NULL. */
int vb_abi_mr_register_dm(struct ibv_pd *pd, struct ibv_dm *dm, const struct vb_abi_range *range,
			  struct ibv_mr **mr_out);
int vb_abi_mr_register_null(struct ibv_pd *pd, struct ibv_mr **mr_out);
/*
 * flags are of enum ibv_rereg_mr_flags; the parts of pd and range that they do not name stay as
 * they are. Sets lkey and rkey. After an error, *is_intact_out tells whether the old registration
 * is still valid; so far it always is.
 */
int vb_abi_mr_reregister(struct ibv_mr *mr, int flags, struct ibv_pd *pd,
			 const struct vb_abi_range *range, bool *is_intact_out);
int vb_abi_mr_deregister(struct ibv_mr *mr); /* EBUSY: windows are bound */
int vb_abi_mr_import(struct ibv_pd *pd, uint32_t handle, struct ibv_mr **mr_out);
void vb_abi_mr_unimport(struct ibv_mr *mr);
int vb_abi_mr_advise(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
		     struct ibv_sge *ranges, uint32_t count);

/* sets rkey */
int vb_abi_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw_out);
int vb_abi_mw_dealloc(struct ibv_mw *mw);
int vb_abi_mw_bind(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);

/* Sets memcpy_to_dm, memcpy_from_dm, comp_mask and handle. */
int vb_abi_dm_alloc(struct ibv_context *context, const struct ibv_alloc_dm_attr *attr,
		    struct ibv_dm **dm_out);
int vb_abi_dm_free(struct ibv_dm *dm);
int vb_abi_dm_import(struct ibv_context *context, uint32_t handle, struct ibv_dm **dm_out);
void vb_abi_dm_unimport(struct ibv_dm *dm);

/*
 * --- events -------------------------------------------------------------------------------------
 */

/*
 * Sets fd, which programs poll and make non-blocking. vb_abi_channel_destroy() is called with the
 * mutex of the context held, and only when no CQ uses the channel.
 */
int vb_abi_channel_create(struct ibv_context *context, struct ibv_comp_channel **channel_out);
int vb_abi_channel_destroy(struct ibv_comp_channel *channel);
/*
 * Takes the next event. Waits for it unless the descriptor is non-blocking (EAGAIN). An event taken
 * here counts as reported, see vb_abi_cq_destroy().
 */
int vb_abi_channel_take_event(struct ibv_comp_channel *channel, struct ibv_cq **cq_out);
int vb_abi_context_take_event(struct ibv_context *context, struct ibv_async_event *event_out);

/*
 * Objects that events name are destroyed in two steps. `destroy` takes the object from the adapter,
 * removes its events that were not taken yet, and reports how many were taken in its whole life; if
 * it fails, the object is unchanged. The caller waits until the program has acknowledged all of
 * them, and then calls `free`, which releases the memory.
 */
struct vb_abi_reported {
	uint32_t completion_events;
	uint32_t async_events;
};

/*
 * --- completion queues --------------------------------------------------------------------------
 */

/* Sets handle, cqe, and the functions of the extended CQ that attr->wc_flags request. */
int vb_abi_cq_create(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr,
		     struct ibv_cq_ex **cq_out);
int vb_abi_cq_resize(struct ibv_cq *cq, int cqe); /* sets cqe */
int vb_abi_cq_modify(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int vb_abi_cq_destroy(struct ibv_cq *cq, struct vb_abi_reported *reported_out);
void vb_abi_cq_free(struct ibv_cq *cq);
/* Returns the number of completions, or a negative value. */
int vb_abi_cq_poll(struct ibv_cq *cq, int capacity, struct ibv_wc *wc_out);
int vb_abi_cq_arm(struct ibv_cq *cq, int solicited_only);

/*
 * --- shared receive queues ----------------------------------------------------------------------
 */

/* Sets handle, and in attr the granted capacity. */
int vb_abi_srq_create(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr,
		      struct ibv_srq **srq_out);
int vb_abi_srq_modify(struct ibv_srq *srq, const struct ibv_srq_attr *attr, int mask);
int vb_abi_srq_query(struct ibv_srq *srq, struct ibv_srq_attr *attr_out);
int vb_abi_srq_number(struct ibv_srq *srq, uint32_t *number_out);
int vb_abi_srq_destroy(struct ibv_srq *srq, struct vb_abi_reported *reported_out);
void vb_abi_srq_free(struct ibv_srq *srq);
int vb_abi_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
/* Sets the handle of each tag that it adds. */
int vb_abi_srq_post_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr, struct ibv_ops_wr **bad_wr);

/*
 * --- queue pairs --------------------------------------------------------------------------------
 */

/* Sets handle and qp_num, and in attr->cap the granted capacity. */
int vb_abi_qp_create(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
		     struct ibv_qp **qp_out);
/* Opens the receiving XRC QP of that number; sets handle, qp_num and state. */
int vb_abi_qp_open(struct ibv_context *context, const struct ibv_qp_open_attr *attr,
		   struct ibv_qp **qp_out);
/* NULL unless the QP was created with IBV_QP_INIT_ATTR_SEND_OPS_FLAGS. */
struct ibv_qp_ex *vb_abi_qp_extended(struct ibv_qp *qp);
int vb_abi_qp_modify(struct ibv_qp *qp, const struct ibv_qp_attr *attr, int mask);
int vb_abi_qp_query(struct ibv_qp *qp, struct ibv_qp_attr *attr_out, int mask,
		    struct ibv_qp_init_attr *init_attr_out);
int vb_abi_qp_destroy(struct ibv_qp *qp, struct vb_abi_reported *reported_out);
void vb_abi_qp_free(struct ibv_qp *qp);
int vb_abi_qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
int vb_abi_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int vb_abi_qp_attach(struct ibv_qp *qp, const union ibv_gid *group, uint16_t lid);
int vb_abi_qp_detach(struct ibv_qp *qp, const union ibv_gid *group, uint16_t lid);

/*
 * --- addresses ----------------------------------------------------------------------------------
 */

int vb_abi_ah_create(struct ibv_pd *pd, const struct ibv_ah_attr *attr, struct ibv_ah **ah_out);
int vb_abi_ah_destroy(struct ibv_ah *ah);
/* Finds the Ethernet address and VLAN (0xffff: none) that packets to attr would have. */
int vb_abi_ah_resolve(struct ibv_context *context, const struct ibv_ah_attr *attr,
		      uint8_t mac_out[ETHERNET_LL_SIZE], uint16_t *vlan_out);

#endif
