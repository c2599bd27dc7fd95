/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of an open device. adapter.c makes and ends it, crank.c drives its engine, helper.c is the thread that does so
 * when nobody else does, follow.c keeps up with the interface, plug.c with its descriptors, fork.c with the process.
 */
#ifndef VB_HOST_ADAPTER_PRIV_H
#define VB_HOST_ADAPTER_PRIV_H

#include "host/clock.h"
#include "host/adapter.h"
#include "host/alarm.h"
#include "base/list.h"
#include "host/conversion.h"
#include "host/device.h"
#include "host/lock.h"
#include "host/thread.h"

#include "host/pump.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

struct vb_member;
struct vb_neighbors;
struct vb_qp1;
struct vb_udp;
struct vb_udp_address;

struct vb_adapter {
	struct vb_lock owner; /* who has it may call the engine, the pump and the link */
	struct vb_nic *nic;
	struct vb_member *member; /* these three are NULL while it is unplugged */
	struct vb_udp *udp;
	struct vb_pump *pump;
	struct vb_qp1 *qp1;
	struct vb_neighbors *neighbors; /* NULL: all packets take the wire */
	struct vb_adapter_init init;
	struct vb_gid host_gid; /* that is no address and reaches this host only; or all zero */
	void *tables; /* key rows, QP rows, zero page, device memory: one mapping, rounded up to pages */
	uint64_t moves; /* how often driving moved something; the owner's … */
	struct vb_clock clock; /* … and this, too */

	uint32_t number; /* among the members … */
	uint16_t source_ports[VB_SOURCE_PORTS_MAX]; /* … and the link's ports: they stay for its life */

	struct vb_udp_address
		*groups; /* multicast groups that the link was in when it was unplugged */
	uint32_t group_count;

	_Atomic int wake_fd; /* of the helper … */
	struct vb_alarm alarm; /* … and its alarm clock */
	_Atomic int watch_fd; /* tells of changes of interfaces; negative: nobody does */
	struct vb_thread helper;
	_Atomic bool is_closing;
	_Atomic bool is_marked; /* neighbors see that the helper lives */
	_Atomic uint32_t rounds; /* of threads that poll */
	_Atomic bool is_helped; /* it is the helper that owns the engine */
	_Atomic uint64_t helper_wakes_ns; /* when the helper will look by itself; or HELPER_PAUSES */

	struct vb_link link; /* in the list of all that are open */
	_Atomic bool
		is_inherited; /* from the parent process, which has it: there is no plug and no helper */
	bool is_torn; /* the fork came in the middle of something */
	uint64_t inherited_ns;

	pthread_mutex_t device_lock;
	struct vb_device device; /* as the interface was at the last look; the helper changes it */
	_Atomic bool is_following; /* the helper has heard what is not in there yet */
	_Atomic uint32_t asked; /* how often somebody wanted the helper to look at the interface … */
	uint32_t answered; /* … and what that was when it did; the helper's, shown under the lock … */
	pthread_cond_t has_answered; /* … by this */
	bool is_gone; /* the interface; the helper's */

	_Atomic uint64_t driven_ns; /* when somebody last drove the engine */
	_Atomic uint64_t polled_ns; /* when somebody last looked for completions */
	_Atomic uint32_t polls_uncounted; /* so many more looks in vain do not count */
	_Atomic uint32_t
		put_off; /* answers wait for the program's next call, or so many more polls that find something; 0: none waits */
	_Atomic uint32_t idle_polls; /* in a row that moved nothing */
	_Atomic uint32_t posts_in_row; /* since somebody last looked for completions in vain … */
	_Atomic uint32_t posts_at_poll; /* … and how many those were at the last look */
	_Atomic bool is_all_done; /* of many in a row: none of them had to wait for an answer */
	_Atomic uint32_t waiter_count; /* threads in vb_adapter_wait(): they wait on the sockets */
};

/* A program that polls does so every few microseconds; but where CPUs are few or slow, it may itself have to wait for one. */
#define POLLED_RECENTLY_NS 1000000u

/* While others poll the helper looks a millisecond or two after they end: nobody needs to wake it for a deadline. */
#define HELPER_PAUSES 0u

/*
 * Who sleeps on a descriptor keeps alive what is behind it, even if the program has closed it, and hears nothing that comes to
 * its successor: nobody sleeps longer than this.
 */
#define CHECK_NS 250000000u

/* --- crank.c --- */

/*
 * As the owner: moves packets until nothing moves, but not for ever. Returns when to look again: the engine's next deadline,
 * or 0 if there was no end.
 */
uint64_t vb_adapter_drive(struct vb_adapter *adapter);
/* As the owner: one look at what comes most, and what is to be sent. True if anything moved. */
bool vb_adapter_glance(struct vb_adapter *adapter);
/* The same as vb_adapter_drive(), but nobody is told of events: at the end, when whoever holds their locks may be this very thread. */
void vb_adapter_move(struct vb_adapter *adapter);

/* As the owner: sends what the last poll left to the program's next call. */
void vb_adapter_send_put_off(struct vb_adapter *adapter);

/*
 * As the owner, before sleeping on the sockets: neighbors wake us from now on. False: there is something to do. In both cases
 * vb_adapter_end_sleep() follows, as the owner again.
 */
bool vb_adapter_begin_sleep(struct vb_adapter *adapter);
void vb_adapter_end_sleep(struct vb_adapter *adapter);

/* As the owner: some of the sockets have woken somebody; what to wait on for them. */
void vb_adapter_on_wake(struct vb_adapter *adapter, const struct pollfd fds[VB_PUMP_FDS_MAX]);
uint32_t vb_adapter_fds(const struct vb_adapter *adapter, struct pollfd fds[VB_PUMP_FDS_MAX]);

/* poll() until this time. Returns what that returns. */
int vb_adapter_sleep(struct pollfd *fds, uint32_t count, uint64_t until_ns);

/* --- helper.c --- */

VB_MUST_USE vb_err vb_adapter_start_helper(struct vb_adapter *adapter);
void vb_adapter_stop_helper(struct vb_adapter *adapter);

void vb_adapter_wake_helper(const struct vb_adapter *adapter);

/* Makes the helper look at this time at the latest. */
void vb_adapter_wake_helper_before(struct vb_adapter *adapter, uint64_t deadline_ns);

/* Makes a helper that pauses look now. */
void vb_adapter_end_pause(struct vb_adapter *adapter);

/* Whether some thread polls: it drives, and nobody needs to do so for it. */
bool vb_adapter_is_polled(const struct vb_adapter *adapter);

/* --- follow.c --- */

/* As the helper: the watch has something to tell, or somebody has asked. */
void vb_adapter_follow(struct vb_adapter *adapter);
bool vb_adapter_is_asked(const struct vb_adapter *adapter);
/* At first, and when the one before is lost. Without a watch only those who ask for a port that is down learn that it is up. */
void vb_adapter_open_watch(struct vb_adapter *adapter);

/* --- adapter.c --- */

uint32_t vb_adapter_receive_buffer(const struct vb_adapter *adapter);
void vb_adapter_init_locks(struct vb_adapter *adapter);

/* As the owner. */
void vb_adapter_set_host_gid(struct vb_adapter *adapter, const struct vb_device *device);
/* Another member gets the MADs of the host from now on, and no request waits here. */
void vb_adapter_give_up_qp1(struct vb_adapter *adapter);
/* Lines to neighbors, if the configuration permits any. Without them, all goes by the wire. */
void vb_adapter_plug_in_neighbors(struct vb_adapter *adapter);
/* With the source ports that it had, if it had any. */
VB_MUST_USE vb_err vb_adapter_open_link(struct vb_adapter *adapter);

/* --- plug.c --- */

/* As the owner. Closes what is still ours. */
void vb_adapter_unplug(struct vb_adapter *adapter);
/* As the owner. VB_EBUSY: somebody has our number or a port. */
VB_MUST_USE vb_err vb_adapter_plug_in_again(struct vb_adapter *adapter);
VB_MUST_USE vb_err vb_adapter_open_wake(struct vb_adapter *adapter);
/* As the helper: makes anew what the program has closed. */
void vb_adapter_repair(struct vb_adapter *adapter);

/* --- fork.c --- */

void vb_adapter_enlist(struct vb_adapter *adapter);
void vb_adapter_delist(struct vb_adapter *adapter);
/* The program is about to do something to this memory that must not meet a conversion. */
bool vb_adapter_on_memory_call(enum vb_conversion_reason reason, uint64_t address, uint64_t length);

#endif
