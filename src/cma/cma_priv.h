/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of librdmacm share. A process has one connection manager (mgmt/cm.h) with one lock, which also covers
 * channels, ports and the private part of identifiers. Callbacks from QP 1 take it while they own the adapter: so nobody
 * calls verbs or vb_gsi_*, which wait for the adapter, with it held. That is why an event is only queued by the callback,
 * and what it asks of a QP is done by the thread that takes it.
 *
 * Functions return 0 or an errno unless they say otherwise; only the exported ones know errno itself.
 */
#ifndef VB_CMA_PRIV_H
#define VB_CMA_PRIV_H

#include "base/list.h"
#include "cma/address.h"
#include "host/clock.h"
#include "host/gsi.h"
#include "mgmt/cm.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#define VB_CMA_EXPORT __attribute__((visibility("default")))

__attribute__((format(printf, 2, 3))) void vb_cma_log(enum vb_log_level level, const char *format,
						      ...);

/* The value is `error`. The line names the call, the object, and what was wrong with it. */
#define vb_cma_refuse(error, ...) (vb_cma_log(VB_LOG_WARN, __VA_ARGS__), (error))

/* How the exported functions tell that they failed. */
static inline int vb_cma_return(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

/* What the layers below answered. */
int vb_cma_errno(vb_err err);

/* --- devices ------------------------------------------------------------------------------------ */

#define VB_CMA_PORT_NUM 1 /* every device has one */
#define VB_CMA_PKEY 0xffff
#define VB_CMA_HOP_LIMIT 64

/* Open from its first use to the end of the process, and shared by all identifiers. */
struct vb_cma_device {
	struct vb_link link;
	struct ibv_context *verbs;
	struct ibv_pd *pd; /* for programs that bring none */
	struct ibv_xrcd *xrcd; /* the same; made when first needed */
	uint8_t responder_resources_max;
	uint8_t initiator_depth_max;
	uint8_t ack_delay;
};

/* Where an address of this host is. */
struct vb_cma_place {
	struct vb_cma_device *device;
	uint8_t gid_index;
	uint32_t ifindex;
};

/* `scope`: the interface, for link-local addresses; 0 if it is not known. ENODEV: no device has it. */
int vb_cma_device_find(const struct vb_gid *gid, uint32_t scope, struct vb_cma_place *place_out);
int vb_cma_device_count(void);
/* The one that QP 1 is reached through. */
int vb_cma_device_first(struct vb_cma_device **device_out);
int vb_cma_device_xrcd(struct vb_cma_device *device, struct ibv_xrcd **xrcd_out);
/* In a forked child: it opens its own, or takes these back. */
void vb_cma_device_set_aside(void);
void vb_cma_device_take_back(void);

/* --- the machine -------------------------------------------------------------------------------- */

void vb_cma_lock(void);
void vb_cma_unlock(void);
/* Waits, with the lock given up meanwhile, until vb_cma_wake_all(). */
void vb_cma_sleep(void);
void vb_cma_wake_all(void);

/* Makes it, when it is needed for the first time. */
int vb_cma_machine_start(void);
/* With the lock; NULL until it was started. */
struct vb_cm *vb_cma_machine(void);
/* NULL until it was started. */
struct ibv_context *vb_cma_machine_home(void);
/* Without the lock, after whatever may have made MADs. */
void vb_cma_machine_kick(void);
/* Another number in a forked child, and whether what has a number may be used: not what was inherited … */
uint32_t vb_cma_generation(void);
bool vb_cma_is_ours(uint32_t of_generation);
/* … unless it is taken over from a parent that is gone, or is about to go. EIO: it is not, or there is nothing. */
int vb_cma_machine_inherit(void);
/* The same without waiting for it. False: what was inherited will never be used. */
bool vb_cma_machine_inherit_or_forget(void);
uint32_t vb_cma_random(void);

/* --- channels and events ------------------------------------------------------------------------ */

struct vb_cma_id;
struct vb_cma_group;

/* Its descriptor is readable as long as events wait. */
struct vb_cma_channel {
	struct rdma_event_channel channel;
	struct vb_link link; /* among those that are not destroyed */
	struct vb_link events;
	uint32_t generation;
	uint32_t waiter_count; /* threads in rdma_get_cm_event() */
	bool is_abandoned; /* destroyed: the last of them frees it */
};

struct vb_cma_event {
	struct rdma_cm_event event;
	struct vb_link link; /* in its channel, until it is taken */
	struct vb_cma_id *counted; /* who waits for its acknowledgement: for a request the listener */
	struct vb_cma_group *group; /* MULTICAST_JOIN, until it is taken */
	struct vb_flow flow; /* CONNECT_REQUEST: to the peer */
	uint8_t private_data[VB_MAD_PRIVATE_MAX];
};

/* For an event of this identifier. NULL: no memory. */
struct vb_cma_event *vb_cma_event_make(struct vb_cma_id *id, enum rdma_cm_event_type type,
				       int status);
/* With the lock: into the channel of who waits for it. */
void vb_cma_event_queue(struct vb_cma_event *event);
/* Both in one, for events without more to tell. */
int vb_cma_event_tell(struct vb_cma_id *id, enum rdma_cm_event_type type, int status);
/* With the lock: those of this identifier that wait. Requests among them are refused. */
void vb_cma_event_drop_all(struct vb_cma_id *id);
void vb_cma_event_drop_group(struct vb_cma_id *id, const struct vb_cma_group *group);
bool vb_cma_event_is_waiting(const struct vb_cma_id *id, enum rdma_cm_event_type type);
/* With the lock: those that wait go to the new channel, and with requests the identifiers that they bring. */
void vb_cma_event_move_all(struct vb_cma_id *id, struct rdma_event_channel *to);
/* Does what is left to do. False: there is nothing to tell any more, and it was freed. */
bool vb_cma_event_complete(struct vb_cma_event *event);

/* With the lock: takes events out of the machine. */
void vb_cma_deliver(void);

/* --- identifiers -------------------------------------------------------------------------------- */

enum vb_cma_state {
	VB_CMA_IDLE,
	VB_CMA_BOUND,
	VB_CMA_ADDRESS_RESOLVED,
	VB_CMA_ROUTE_RESOLVED,
	VB_CMA_LISTENING,
	VB_CMA_TALKING, /* has a connection, and its state is what counts */
};

struct vb_cma_id {
	struct rdma_cm_id id; /* what programs see */
	enum vb_cma_state state;
	uint32_t generation;
	bool is_sync; /* the channel is its own, and calls wait */
	struct vb_cma_place place; /* device NULL: not bound to one */
	struct vb_link placed; /* among those that are */
	uint32_t events_taken; /* and not acknowledged */
	struct ibv_sa_path_rec path;

	/* options */
	bool has_tos, has_ack_timeout, has_afonly;
	bool is_reusing, is_afonly;
	uint8_t tos, ack_timeout;

	/* its port */
	struct vb_link bound; /* among those that have one */
	bool is_for_all; /* of this host's addresses: it is bound to none of them */
	struct vb_gsi_name *name; /* that requests find this process by */
	struct vb_cm_listener *listener;

	/* its connection */
	struct vb_cm_connection *connection;
	vb_psn psn; /* that the peer begins with */
	uint32_t qp_num;
	bool has_srq;
	uint8_t responder_resources, initiator_depth;
	struct vb_cm_ece local_ece, remote_ece;

	struct vb_link groups;

	/* what a listening endpoint gives to each of its connections */
	struct ibv_qp_init_attr *child_qp;
	struct ibv_pd *child_pd;
};

struct vb_cma_id *vb_cma_id_of(struct rdma_cm_id *id);
/* EINVAL, EIO in a forked child; else 0. */
int vb_cma_id_check(const struct rdma_cm_id *id, const char *call);
/* With or without the lock; NULL: no memory. */
struct vb_cma_id *vb_cma_id_make(struct rdma_event_channel *channel, void *context,
				 enum rdma_port_space space, enum ibv_qp_type type);
void vb_cma_id_free(struct vb_cma_id *id);
/* The program has never seen it, or not yet: refuses the request that it stands for. With the lock. */
void vb_cma_id_discard(struct vb_cma_id *id);
/* Makes an identifier with a channel synchronous, or the other way round (as rdma_migrate_id()). */
int vb_cma_id_migrate(struct vb_cma_id *id, struct rdma_event_channel *channel);
int vb_cma_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
		     enum rdma_port_space space, enum ibv_qp_type type);
bool vb_cma_is_datagram(const struct vb_cma_id *id);
/* What the program sees of the device and the GIDs. */
void vb_cma_id_set_place(struct vb_cma_id *id, const struct vb_cma_place *place);
/* With the lock: all that are there are told. */
void vb_cma_id_on_removal(const struct ibv_device *device);
/* Its route, as programs may read it. */
void vb_cma_id_set_path(struct vb_cma_id *id, const struct vb_flow *flow, uint8_t mtu);
/* A synchronous call: waits for the event and returns what it says. Others: 0 at once. */
int vb_cma_wait(struct vb_cma_id *id);
/* Binds to an address and a port. `is_server`: requests for the port shall come to this process. */
int vb_cma_bind(struct vb_cma_id *id, const struct sockaddr *address, bool is_server);

/* --- ports -------------------------------------------------------------------------------------- */

/* For the source address of the identifier, which gets the port if it had none. */
int vb_cma_port_claim(struct vb_cma_id *id, bool is_server);
void vb_cma_port_release(struct vb_cma_id *id);
/* The name of its service, unless it has it. */
int vb_cma_port_take_name(struct vb_cma_id *id);
struct vb_cm_service vb_cma_port_service(const struct vb_cma_id *id);
/* In a forked child: they are its parent's, until it takes them back. */
void vb_cma_port_set_aside(void);
void vb_cma_port_take_back(void);

/* --- queue pairs -------------------------------------------------------------------------------- */

/* As the connection demands. The QP must be the identifier's own. */
int vb_cma_qp_connect(struct vb_cma_id *id);
void vb_cma_qp_fail(struct vb_cma_id *id);
int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask);
/* The way to a GID from this identifier. */
struct ibv_ah_attr vb_cma_ah_attr(const struct vb_cma_id *id, const struct vb_flow *flow);

/* Those that the program did not bring; 0: it has one. */
int vb_cma_cqs_create(struct rdma_cm_id *id, uint32_t send_count, uint32_t receive_count);
void vb_cma_cqs_destroy(struct rdma_cm_id *id);

/* --- groups ------------------------------------------------------------------------------------- */

/* When the event of a join is taken. */
int vb_cma_group_complete(struct vb_cma_id *id, struct vb_cma_group *group);
void vb_cma_group_leave_all(struct vb_cma_id *id);

#endif
