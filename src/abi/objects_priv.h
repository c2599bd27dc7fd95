/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The driver's objects: each begins with the public struct that programs hold, followed by the
 * engine's object. nic/rings.h requires its callers to hold the lock of a queue.
 *
 * Order of locks: the engine (vb_adapter_enter), then queues and CQs, then channels. A thread that
 * holds a queue's lock only tries to drive the engine and never waits for it.
 */
#ifndef VB_ABI_OBJECTS_PRIV_H
#define VB_ABI_OBJECTS_PRIV_H

#include "abi/driver_priv.h"
#include "abi/returns.h"
#include "base/list.h"
#include "host/adapter/adapter.h"
#include "host/device/device.h"
#include "host/local/conversion.h"
#include "host/sys/lock.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

/*
 * An open device. Contexts imported from each other share it: the file behind their cmd_fd
 * identifies it, and it is closed with the last of them. The adapter's ownership protects the
 * lists.
 */
struct vb_abi_opened {
	/* Under the lock of the list of all open devices. */
	struct vb_list_node node;
	uint32_t context_count; /* contexts that are not closed */

	pthread_mutex_t contexts_lock;
	struct vb_list_node contexts; /* including closed ones: objects made there refer to them */

	struct vb_adapter *adapter;
	struct vb_device device; /* as it was at the open */
	struct ibv_device *verbs;
	struct vb_pd *spare_pd; /* for XRC_RECV QPs, which have none */
	struct vb_list_node xrc_domains;
	struct vb_list_node pds; /* struct vb_abi_handle: objects that can be imported */
	struct vb_list_node mrs;
	struct vb_list_node dms;
	/* the last handle of a PD or device memory; the handle of a region is its key */
	uint32_t handle_next;
	pid_t process; /* a forked child cannot share the device */
	dev_t file_device;
	ino_t file_inode;
};

/* A context: the events that wait for the program, and the descriptor that signals them. */
struct vb_abi_context {
	struct verbs_context verbs; /* ends with the ibv_context */
	struct vb_list_node node; /* in opened->contexts */
	struct vb_abi_opened *opened;
	struct vb_adapter *adapter; /* that of `opened` */
	pthread_mutex_t events_lock;
	struct vb_list_node events; /* struct vb_abi_async_event */
};

/* The number by which an object is imported, see driver_import.c. */
struct vb_abi_handle {
	struct vb_list_node node;
	uint32_t number;
	bool is_shared; /* was imported: others may have the same number */
};

struct vb_abi_async_event {
	struct vb_list_node node;
	struct ibv_async_event event;
};

struct vb_abi_pd {
	struct ibv_pd verbs;
	struct vb_pd *pd;
	struct vb_abi_handle handle;
	/*
	 * The number of parent domains with this PD, or of objects made in this parent domain;
	 * under the adapter's ownership.
	 */
	uint32_t user_count;
	/* For a parent domain: the engine's object is that of the inner PD. */
	struct vb_abi_pd *inner;
	struct vb_abi_td *td; /* or NULL */
	struct ibv_parent_domain_init_attr parent;
};

struct vb_abi_td {
	struct ibv_td verbs;
	uint32_t user_count; /* parent domains, under the adapter's ownership */
};

/*
 * Memory for an object, with a record of its allocator at memory_offset. In a parent domain that
 * has an allocator, the program provides the memory. All of it is zero. NULL: no memory.
 */
struct vb_abi_memory {
	struct vb_abi_pd *parent; /* NULL: not allocated by the program */
	uint64_t resource;
};
enum vb_abi_resource { VB_ABI_QP, VB_ABI_CQ, VB_ABI_SRQ };
void *vb_abi_allocate(struct ibv_pd *pd, size_t size, size_t memory_offset,
		      enum vb_abi_resource kind);
void vb_abi_release(void *object, size_t memory_offset);

/* An XRC domain may be opened several times, through the file that identifies it. */
struct vb_abi_xrc_domain {
	struct vb_list_node node;
	struct vb_xrcd *xrcd;
	uint32_t open_count;
	bool has_file;
	dev_t device;
	ino_t inode;
};

struct vb_abi_xrcd {
	struct ibv_xrcd verbs;
	struct vb_abi_xrc_domain *domain;
};

struct vb_abi_mr {
	struct ibv_mr verbs;
	struct vb_mr *mr;
	uint32_t segment; /* see vb_adapter_share(); 0: none */
	struct vb_registration registration; /* for a region in the program's memory */
	struct vb_abi_handle handle;
};

struct vb_abi_mw {
	struct ibv_mw verbs;
	struct vb_mw *mw;
};

struct vb_abi_dm {
	struct ibv_dm verbs;
	struct vb_dm *dm;
	size_t length;
	struct vb_abi_handle handle;
};

struct vb_abi_channel {
	struct ibv_comp_channel verbs;
	struct vb_abi_context *context;
	pthread_mutex_t lock;
	struct vb_list_node waiting; /* CQs with events; each counts its own */
	/* the last event was waited for in ibv_get_cq_event(), which drives the engine */
	_Atomic bool is_waited_on;
};

struct vb_abi_cq {
	struct ibv_cq_ex verbs;
	struct vb_abi_memory memory;
	struct vb_cq *cq;
	struct vb_abi_channel *channel; /* or NULL */
	struct vb_lock lock;
	struct vb_completion current; /* the completion of the extended poll */
	/* Under the channel's lock. */
	struct vb_list_node waiting;
	uint32_t events_waiting;
	uint32_t events_taken;
	uint32_t async_taken; /* under the context's events_lock */
};

struct vb_abi_srq {
	struct ibv_srq verbs;
	struct vb_abi_memory memory;
	struct vb_srq *srq;
	struct vb_lock lock;
	uint32_t async_taken;
};

struct vb_abi_qp {
	union {
		struct ibv_qp verbs;
		struct ibv_qp_ex extended;
	};
	struct vb_abi_memory memory;
	struct vb_qp *qp;
	struct vb_lock send_lock;
	struct vb_lock recv_lock;
	bool has_send_ops;
	uint32_t async_taken;
	bool is_start_refused; /* ibv_wr_start() found the adapter unusable; under send_lock */
	/* The ibv_wr_* request under construction, under send_lock. */
	bool has_request;
	int error;
	struct vb_send_request request;
	struct vb_sge sges[VB_SGE_MAX];
	uint8_t inline_data[VB_INLINE_MAX];
};

struct vb_abi_ah {
	struct ibv_ah verbs;
	struct vb_ah *ah;
};

_Static_assert(sizeof(struct vb_sge) == sizeof(struct ibv_sge), "SGEs are handed on as they are");
_Static_assert(offsetof(struct vb_sge, lkey) == offsetof(struct ibv_sge, lkey),
	       "SGEs are handed on as they are");

static inline struct vb_abi_context *vb_abi_context_of(struct ibv_context *context)
{
	struct verbs_context *verbs = VB_CONTAINER(context, struct verbs_context, context);

	return VB_CONTAINER(verbs, struct vb_abi_context, verbs);
}

static inline struct vb_pd *vb_abi_pd_of(struct ibv_pd *pd)
{
	return VB_CONTAINER(pd, struct vb_abi_pd, verbs)->pd;
}

static inline struct vb_abi_cq *vb_abi_cq_of(struct ibv_cq *cq)
{
	return (struct vb_abi_cq *)(void *)cq;
}

static inline struct vb_abi_qp *vb_abi_qp_of(struct ibv_qp *qp)
{
	return VB_CONTAINER(qp, struct vb_abi_qp, verbs);
}

static inline struct vb_abi_srq *vb_abi_srq_of(struct ibv_srq *srq)
{
	return VB_CONTAINER(srq, struct vb_abi_srq, verbs);
}

/* The device as it was when last listed. */
struct vb_device vb_abi_device_description(const struct ibv_device *device);
const struct vb_config *vb_abi_config(void);

void vb_abi_dm_init(struct ibv_dm *dm); /* sets its copy functions */

/*
 * Under the adapter's ownership. The first makes an object importable; the second ends that for the
 * object and its imports.
 */
void vb_abi_handle_add(struct vb_list_node *list, struct vb_abi_handle *handle, uint32_t number);
void vb_abi_handle_remove(struct vb_list_node *list, struct vb_abi_handle *handle);

/*
 * Waits until a descriptor may be readable, and drives the engine meanwhile. Returns EAGAIN
 * immediately if the descriptor is non-blocking.
 */
int vb_abi_wait(struct vb_adapter *adapter, int fd);

/*
 * The adapter calls this for each event of the engine. `owner` is not needed: an object knows its
 * context.
 */
void vb_abi_on_event(void *owner, const struct vb_event *event);

/* The adapter calls this when the interface has changed. */
void vb_abi_on_change(void *owner, uint32_t what);
/* Notifies librdmacm that the interface of a device is gone. */
void vb_abi_report_removal(const struct ibv_device *device);

/* Removes the object's events that were not taken yet. */
void vb_abi_forget_events(struct vb_abi_context *context, const void *object);
void vb_abi_forget_completions(struct vb_abi_cq *cq);

/* Fills in the address of an AH or a path. EINVAL without GRH: Ethernet has no other address. */
int vb_abi_address(const struct ibv_ah_attr *attr, struct vb_address *address);

#endif
