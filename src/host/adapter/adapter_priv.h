/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internals of an open device. adapter.c makes and ends it, drive.c drives its engine, wait.c
 * sleeps meanwhile, helper.c is the thread that drives when no other thread does, follow.c tracks
 * the interface, plug.c its descriptors, and fork.c the process.
 */
#ifndef VB_HOST_ADAPTER_ADAPTER_PRIV_H
#define VB_HOST_ADAPTER_ADAPTER_PRIV_H

#include "base/list.h"
#include "host/adapter/adapter.h"
#include "host/adapter/alarm.h"
#include "host/device/device.h"
#include "host/local/conversion.h"
#include "host/policy/drive_policy.h"
#include "host/sys/clock.h"
#include "host/sys/lock.h"
#include "host/sys/thread.h"
#include "link/udp.h"

#include "host/port/carrier_shm.h"
#include "host/port/async_log.h"
#include "host/port/port.h"
#include "host/port/recorder.h"
#include "host/port/self_check.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct vb_carrier_udp;
struct vb_port_member;
struct vb_local_peers;
struct vb_qp1;
struct vb_totals_row;
struct vb_udp;
struct vb_udp_address;

/*
 * SENDs from this length on go to local peers in trains. Below it, a copy through the link costs no
 * more than the access to the sender's memory.
 */
#define VB_ADAPTER_TRAIN_MIN (16u << 10)

struct vb_adapter {
	struct vb_lock owner; /* its holder may call the engine, the port and the link */
	struct vb_nic *nic;
	/* This and the next three are NULL while the adapter is unplugged. */
	struct vb_port_member *member;
	struct vb_udp *udp;
	struct vb_carrier_udp *wire;
	struct vb_port *port;
	struct vb_recorder recorder; /* asked at each post and poll */
	struct vb_carrier_shm shm; /* of this port, if there are local peers */
	struct vb_self_check self_check; /* of this port, if it is wanted */
	/* What it counts, among the totals of its device; NULL: no totals include it. */
	struct vb_totals_row *row;
	uint64_t udp_before[VB_UDP_COUNTER_COUNT]; /* what was counted there before it came */
	char name[VB_DEVICE_NAME_MAX]; /* the device's; never changes */
	struct vb_async_log events;
	struct vb_qp1 *qp1;
	struct vb_local_peers *peers; /* NULL: all packets go over the wire */
	struct vb_adapter_init init;
	/* A GID that is no address and reaches only this host; or all zero. */
	struct vb_gid host_gid;
	/* Key rows, QP rows, zero page, device memory: one mapping, rounded up to pages. */
	void *tables;
	uint64_t moves; /* how often driving moved something; the owner's */
	struct vb_clock clock; /* the owner's */

	uint32_t number; /* among the port members; kept for the adapter's life */
	/* The link's ports; kept for the adapter's life. */
	uint16_t source_ports[VB_SOURCE_PORTS_MAX];

	bool has_ip_fields; /* vb_adapter_enable_ip_fields() was called */
	/* Multicast groups that the link was in when it was unplugged. */
	struct vb_udp_address *groups;
	uint32_t group_count;

	_Atomic int wake_fd; /* the helper's */
	struct vb_alarm alarm; /* the helper's */
	_Atomic int watch_fd; /* reports changes of interfaces; negative: there is no watch */
	struct vb_thread helper;
	_Atomic bool is_closing;
	_Atomic bool is_marked; /* local peers see that the helper is alive */
	struct vb_drive_policy policy; /* which thread drives, and when */

	struct vb_list_node node; /* in the list of all open adapters */
	/* Inherited from the parent process, which has it: there is no plug and no helper. */
	_Atomic bool is_inherited;
	bool is_torn; /* the fork interrupted an operation */
	uint64_t inherited_ns;

	pthread_mutex_t device_lock;
	struct vb_device device; /* as the interface was at the last look; the helper changes it */
	_Atomic bool is_following; /* the helper knows of changes that `device` does not show yet */
	/* How often a thread has asked the helper to look at the interface. */
	_Atomic uint32_t asked;
	/*
	 * What `asked` was when the helper last looked. The helper's; published under device_lock.
	 */
	uint32_t answered;
	pthread_cond_t has_answered; /* signals `answered` */
	bool is_gone; /* whether the interface is gone; the helper's */
};

/* --- drive.c --- */

/*
 * As the owner: moves packets until nothing moves, within a limit. Returns when to look again: the
 * engine's next deadline, or 0 if the limit was reached.
 */
uint64_t vb_adapter_drive(struct vb_adapter *adapter);
/*
 * As the owner: one look at the most frequent input, and at what is to be sent. True if anything
 * moved.
 */
bool vb_adapter_glance(struct vb_adapter *adapter);
/*
 * The same as vb_adapter_drive(), but without reporting events: for the end, when the thread that
 * holds the locks of their receivers may be this very thread.
 */
void vb_adapter_move_packets(struct vb_adapter *adapter);

/* As the owner: sends what the last poll deferred to the program's next call. */
void vb_adapter_send_deferred_acks(struct vb_adapter *adapter);

/* --- wait.c --- */

/*
 * As the owner, before sleeping on the sockets: local peers wake us from now on. False: there is
 * something to do. In both cases vb_adapter_end_sleep() follows, again as the owner.
 */
bool vb_adapter_begin_sleep(struct vb_adapter *adapter);
void vb_adapter_end_sleep(struct vb_adapter *adapter);

/*
 * As the owner. vb_adapter_on_wake(): some of the sockets have woken a thread. vb_adapter_fds():
 * which descriptors to wait on for them.
 */
void vb_adapter_on_wake(struct vb_adapter *adapter, const struct pollfd fds[VB_PORT_FDS_MAX]);
uint32_t vb_adapter_fds(const struct vb_adapter *adapter, struct pollfd fds[VB_PORT_FDS_MAX]);

/* Calls poll() until this time and returns its result. */
int vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns);

/* --- helper.c --- */

VB_MUST_USE vb_err vb_adapter_start_helper(struct vb_adapter *adapter);
void vb_adapter_stop_helper(struct vb_adapter *adapter);

void vb_adapter_wake_helper(const struct vb_adapter *adapter);

/* Makes the helper look at this time at the latest. */
void vb_adapter_wake_helper_before(struct vb_adapter *adapter, uint64_t deadline_ns);

/* --- follow.c --- */

/* As the helper: the watch has something to report, or a thread has asked. */
void vb_adapter_follow(struct vb_adapter *adapter);
bool vb_adapter_is_asked(const struct vb_adapter *adapter);
/*
 * At the start, and when the previous watch is lost. Without a watch, only a thread that asks for a
 * port that is down learns that it is up.
 */
void vb_adapter_open_watch(struct vb_adapter *adapter);

/* --- adapter.c --- */

uint32_t vb_adapter_receive_buffer(const struct vb_adapter *adapter);
void vb_adapter_init_locks(struct vb_adapter *adapter);

/* As the owner. */
void vb_adapter_set_host_gid(struct vb_adapter *adapter, const struct vb_device *device);
/* From now on another port member gets the MADs of the host, and no request waits here. */
void vb_adapter_give_up_qp1(struct vb_adapter *adapter);
/*
 * Shared-memory links to local peers, if the configuration permits any. Without them, everything
 * goes over the wire.
 */
void vb_adapter_plug_in_local_peers(struct vb_adapter *adapter);
/* With the same source ports as before, if it had any. */
VB_MUST_USE vb_err vb_adapter_open_link(struct vb_adapter *adapter);
/* As the owner: counts among the totals from now on, if it can. It keeps a row that it has. */
void vb_adapter_take_row(struct vb_adapter *adapter);

/* --- plug.c --- */

/* Of the parts that exist; also begins a self check. */
VB_MUST_USE vb_err vb_adapter_make_port(struct vb_adapter *adapter);
/* As the owner, when the adapter or the process ends. */
void vb_adapter_report_self_check(const struct vb_adapter *adapter);
/* As the owner. Closes those descriptors that are still ours. */
void vb_adapter_unplug(struct vb_adapter *adapter);
/* As the owner. VB_EBUSY: another process has our number or a port. */
VB_MUST_USE vb_err vb_adapter_replug(struct vb_adapter *adapter);
VB_MUST_USE vb_err vb_adapter_open_wake_fd(struct vb_adapter *adapter);
/* As the helper: makes again what the program has closed. */
void vb_adapter_repair(struct vb_adapter *adapter);

/* --- fork.c --- */

void vb_adapter_enlist(struct vb_adapter *adapter);
void vb_adapter_delist(struct vb_adapter *adapter);
/*
 * The program is about to change this memory in a way that must not meet a conversion. False: its
 * call must fail.
 */
bool vb_adapter_restore_memory(enum vb_conversion_reason reason, uint64_t address, uint64_t length);

#endif
