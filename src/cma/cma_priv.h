/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations shared by the files of librdmacm. A process has one connection manager (mgmt/cm.h)
 * with one lock, which also covers channels, ports and the private part of identifiers. Callbacks
 * from QP 1 take this lock while they own the adapter. Therefore no thread may call verbs or
 * vb_abi_qp1_*(), which wait for the adapter, while it holds the lock. That is why a callback only
 * queues an event; the thread that takes the event does the QP work the event needs.
 *
 * Functions return 0 or an errno unless stated otherwise; only the exported functions set errno
 * itself.
 */
#ifndef VB_CMA_PRIV_H
#define VB_CMA_PRIV_H

#include "base/list.h"
#include "cma/address.h"
#include "host/qp1/qp1_user.h"
#include "host/sys/clock.h"
#include "mgmt/cm.h"

#include <errno.h>
#include <rdma/rdma_cma.h>

#define VB_CMA_EXPORT __attribute__((visibility("default")))

/* `error` is an errno, or 0. */
__attribute__((format(printf, 3, 4))) void vb_cma_log(enum vb_log_level level, int error,
						      const char *format, ...);

/* The value is `error`. The log line names the call, the object and the problem. */
#define vb_cma_refuse(error, ...) (vb_cma_log(VB_LOG_WARN, (error), __VA_ARGS__), (error))

/* Turns an errno into the return value of an exported function. */
static inline int vb_cma_return(int error)
{
	if (!error)
		return 0;
	errno = error;
	return -1;
}

/* The errno for an error of the layers below. */
int vb_cma_errno(vb_err err);

/* --- devices ---------------------------------------------------------------------------------- */

#define VB_CMA_PORT_NUM 1 /* every device has one port */
#define VB_CMA_PKEY 0xffff
#define VB_CMA_HOP_LIMIT 64

/* A device is open from its first use to the end of the process. All identifiers share it. */
struct vb_cma_device {
	struct vb_list_node node;
	struct ibv_context *verbs;
	struct ibv_pd *pd; /* for programs that pass none */
	struct ibv_xrcd *xrcd; /* likewise; created on first need */
	uint8_t responder_resources_max;
	uint8_t initiator_depth_max;
	uint8_t ack_delay;
};

/* The device and the GID index that own an address of this host. */
struct vb_cma_place {
	struct vb_cma_device *device;
	uint8_t gid_index;
	uint32_t ifindex;
};

/*
 * `scope`: the interface of a link-local address; 0 if unknown. ENODEV: no device has the address.
 */
int vb_cma_device_find(const struct vb_gid *gid, uint32_t scope, struct vb_cma_place *place_out);
int vb_cma_device_count(void);
/* The device that gives access to QP 1. */
int vb_cma_device_first(struct vb_cma_device **device_out);
int vb_cma_device_open_xrcd(struct vb_cma_device *device, struct ibv_xrcd **xrcd_out);
/* For a forked child, which opens its own devices or takes these back. */
void vb_cma_device_set_aside(void);
void vb_cma_device_take_back(void);

/* --- the machine ------------------------------------------------------------------------------ */

void vb_cma_lock(void);
void vb_cma_unlock(void);
/* Releases the lock and waits for vb_cma_wake_all(). */
void vb_cma_sleep(void);
void vb_cma_wake_all(void);

/* Creates the connection manager on first need. */
int vb_cma_machine_start(void);
/* Call with the lock. NULL before the start. */
struct vb_cm *vb_cma_machine(void);
/* NULL before the start. */
struct ibv_context *vb_cma_machine_home(void);
/* Call without the lock, after anything that may have produced MADs. */
void vb_cma_machine_kick(void);
/*
 * The generation number changes in a forked child. Objects of an inherited generation may not be
 * used …
 */
uint32_t vb_cma_generation(void);
bool vb_cma_is_ours(uint32_t of_generation);
/*
 * … unless the child takes them over from a parent that is gone or about to go. EIO: the parent
 * stays, or there is nothing to take over.
 */
int vb_cma_machine_inherit(void);
/*
 * The same without waiting for the parent to go. False: the inherited objects will never be used.
 */
bool vb_cma_machine_inherit_or_forget(void);
uint32_t vb_cma_random(void);

/* --- channels and events ---------------------------------------------------------------------- */

struct vb_cma_id;
struct vb_cma_group;

/* The descriptor is readable as long as events wait. */
struct vb_cma_channel {
	struct rdma_event_channel channel;
	struct vb_list_node node; /* in the list of channels that are not destroyed */
	struct vb_list_node events;
	uint32_t generation;
	uint32_t waiter_count; /* threads in rdma_get_cm_event() */
	bool is_abandoned; /* destroyed: the last waiter frees it */
};

struct vb_cma_event {
	struct rdma_cm_event event;
	struct vb_list_node node; /* in its channel, until a program takes it */
	/* The identifier that waits for the acknowledgement: for a request, the listener. */
	struct vb_cma_id *counted;
	struct vb_cma_group *group; /* MULTICAST_JOIN, until the event is taken */
	struct vb_flow flow; /* CONNECT_REQUEST: the flow to the peer */
	uint8_t private_data[VB_MAD_PRIVATE_MAX];
};

/* Makes an event of this identifier. NULL: no memory. */
struct vb_cma_event *vb_cma_event_make(struct vb_cma_id *id, enum rdma_cm_event_type type,
				       int status);
/* Call with the lock. Queues the event in the channel of the identifier that counts it. */
void vb_cma_event_queue(struct vb_cma_event *event);
/* Makes and queues an event that has no parameters. */
int vb_cma_event_report(struct vb_cma_id *id, enum rdma_cm_event_type type, int status);
/*
 * Call with the lock. Drops the waiting events of this identifier and refuses the requests among
 * them.
 */
void vb_cma_event_drop_all(struct vb_cma_id *id);
void vb_cma_event_drop_group(struct vb_cma_id *id, const struct vb_cma_group *group);
bool vb_cma_event_is_waiting(const struct vb_cma_id *id, enum rdma_cm_event_type type);
/*
 * Call with the lock. Moves waiting events to the new channel, and the identifiers of requests with
 * them.
 */
void vb_cma_event_move_all(struct vb_cma_id *id, struct rdma_event_channel *to);
/*
 * Does the work that is left for the taker. False: nothing remains to report, and the event was
 * freed.
 */
bool vb_cma_event_complete(struct vb_cma_event *event);

/* Call with the lock. Takes events out of the connection manager. */
void vb_cma_deliver(void);

/* --- identifiers ------------------------------------------------------------------------------ */

enum vb_cma_state {
	VB_CMA_IDLE,
	VB_CMA_BOUND,
	VB_CMA_ADDRESS_RESOLVED,
	VB_CMA_ROUTE_RESOLVED,
	VB_CMA_LISTENING,
	VB_CMA_TALKING, /* has a connection, whose state is the one that counts */
};

struct vb_cma_id {
	struct rdma_cm_id id; /* the part that programs see */
	enum vb_cma_state state;
	uint32_t generation;
	bool is_sync; /* has a private channel, and calls wait */
	struct vb_cma_place place; /* device NULL: not bound to a device */
	struct vb_list_node placed; /* in the list of identifiers that have a device */
	uint32_t events_taken; /* taken and not yet acknowledged */
	struct ibv_sa_path_rec path;

	/* options */
	bool has_tos, has_ack_timeout, has_afonly;
	bool is_reusing, is_afonly;
	uint8_t tos, ack_timeout;

	/* port */
	struct vb_list_node bound; /* in the list of identifiers that have a port */
	bool is_for_all; /* bound to no single address: covers all addresses of this host */
	struct vb_abi_qp1_name *name; /* the name by which requests find this process */
	struct vb_cm_listener *listener;

	/* connection */
	struct vb_cm_connection *connection;
	vb_psn psn; /* the first PSN that the peer sends */
	uint32_t qp_num;
	bool has_srq;
	uint8_t responder_resources, initiator_depth;
	struct vb_cm_ece local_ece, remote_ece;

	struct vb_list_node groups;

	/* what a listening endpoint gives to each of its connections */
	struct ibv_qp_init_attr *child_qp;
	struct ibv_pd *child_pd;
};

struct vb_cma_id *vb_cma_id_of(struct rdma_cm_id *id);
/* Returns 0, EINVAL, or EIO in a forked child. */
int vb_cma_id_ensure_ours(const struct rdma_cm_id *id, const char *call);
/* Call with or without the lock. NULL: no memory. */
struct vb_cma_id *vb_cma_id_make(struct rdma_event_channel *channel, void *context,
				 enum rdma_port_space space, enum ibv_qp_type type);
void vb_cma_id_free(struct vb_cma_id *id);
/*
 * Call with the lock. For an identifier that the program has not seen: refuses the request it
 * stands for.
 */
void vb_cma_id_discard(struct vb_cma_id *id);
/*
 * Makes an identifier synchronous (`channel` NULL) or gives it a channel, as rdma_migrate_id()
 * does.
 */
int vb_cma_id_migrate(struct vb_cma_id *id, struct rdma_event_channel *channel);
int vb_cma_id_create(struct rdma_event_channel *channel, struct rdma_cm_id **id_out, void *context,
		     enum rdma_port_space space, enum ibv_qp_type type);
bool vb_cma_is_datagram(const struct vb_cma_id *id);
/* Sets the device and the GIDs that the program sees. */
void vb_cma_id_set_place(struct vb_cma_id *id, const struct vb_cma_place *place);
/* Call with the lock. Notifies all identifiers of the device. */
void vb_cma_id_on_removal(const struct ibv_device *device);
/* Sets the route that programs may read. */
void vb_cma_id_set_path(struct vb_cma_id *id, const struct vb_flow *flow, uint8_t mtu);
/*
 * In a synchronous call, waits for the event and returns its result. Otherwise returns 0
 * immediately.
 */
int vb_cma_wait(struct vb_cma_id *id);
/* Binds to an address and a port. `is_server`: requests for the port must come to this process. */
int vb_cma_bind(struct vb_cma_id *id, const struct sockaddr *address, bool is_server);

/* --- ports ------------------------------------------------------------------------------------ */

/* Claims a port for the source address of the identifier, and sets the port if it had none. */
int vb_cma_port_claim(struct vb_cma_id *id, bool is_server);
void vb_cma_port_release(struct vb_cma_id *id);
/* Takes the name of the service unless the identifier already has it. */
int vb_cma_port_take_name(struct vb_cma_id *id);
struct vb_cm_service vb_cma_port_service(const struct vb_cma_id *id);
/* For a forked child: the ports belong to its parent until the child takes them back. */
void vb_cma_port_set_aside(void);
void vb_cma_port_take_back(void);

/* --- queue pairs ------------------------------------------------------------------------------ */

/* Connects the QP as the connection demands. The QP must belong to the identifier. */
int vb_cma_qp_connect(struct vb_cma_id *id);
void vb_cma_qp_fail(struct vb_cma_id *id);
int vb_cma_qp_attr(struct vb_cma_id *id, struct ibv_qp_attr *attr, int *mask);
/* The path to a GID from this identifier. */
struct ibv_ah_attr vb_cma_ah_attr(const struct vb_cma_id *id, const struct vb_flow *flow);

/* Creates the CQs that the program did not pass. A count of 0: the program has one. */
int vb_cma_cqs_create(struct rdma_cm_id *id, uint32_t send_count, uint32_t receive_count);
void vb_cma_cqs_destroy(struct rdma_cm_id *id);

/* --- groups ----------------------------------------------------------------------------------- */

/* Completes a join when its event is taken. */
int vb_cma_group_complete(struct vb_cma_id *id, struct vb_cma_group *group);
void vb_cma_group_leave_all(struct vb_cma_id *id);

#endif
