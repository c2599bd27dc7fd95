/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's own state and the objects that are not queues. Everything here belongs to the
 * engine's owner, except the doorbell stack.
 */
#ifndef VB_NIC_NIC_PRIV_H
#define VB_NIC_NIC_PRIV_H

#include "base/list.h"
#include "base/prng.h"
#include "base/timer.h"
#include "nic/executed.h"
#include "nic/flight_priv.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"

#include <stdatomic.h>

#define VB_QP_ROWS_RESERVED 2 /* for QPN 0 and 1 */

/* The kind of object that a timer of the engine belongs to. */
enum vb_timer_kind { VB_TIMER_QP, VB_TIMER_CQ };

/* The part of an object that events come from. */
enum vb_event_source_kind { VB_SOURCE_QP, VB_SOURCE_CQ, VB_SOURCE_SRQ };

struct vb_event_source {
	struct vb_list_node node;
	uint32_t pending; /* one bit for each enum vb_event_kind */
	enum vb_event_source_kind kind;
	void *owner_context;
};

/* See nic/executed.h. */
struct vb_executed_state {
	struct vb_executed_log log;
	uint32_t count; /* parts since the last look, also those beyond the capacity */
	uint32_t byte_count;
};

struct vb_nic {
	struct vb_nic_config config;
	struct vb_nic_limits limits;
	uint64_t now_ns;
	struct vb_prng prng;

	/* QPs whose rings have new entries: any thread pushes, the engine takes the whole stack. */
	_Atomic(struct vb_qp *) doorbells;
	struct vb_list_node active; /* QPs that may have something to send */
	/* QPs that may, but whose shared-memory link has no room */
	struct vb_list_node without_room;
	/* UC and UD QPs whose requests complete once the link has read their packets. */
	struct vb_list_node sent;
	struct vb_list_node with_events; /* objects with pending events, oldest first */
	struct vb_list_node overruns; /* CQs that overran and whose QPs are not in error yet */
	struct vb_timers timers;
	uint32_t timer_count;
	struct vb_framing framing;
	uint32_t link_room[VB_LINK_COUNT]; /* packets */
	uint32_t direct_left; /* Bytes that initiators may still move themselves in this turn. */
	struct vb_row_mirror mirror; /* NULL: nothing is published */
	struct vb_flight flights[VB_FLIGHT_COUNT];

	struct vb_qp **qps; /* beside qp_rows: the QP of each row */
	/* Beside key_rows: the region or window of each row (the row's kind says which). */
	void **key_owners;
	struct vb_srq **srqs; /* by the low bits of the SRQ number */
	struct vb_srq_row *srq_rows; /* what is published of them */
	vb_psn mad_psn; /* of QP 1 */
	uint32_t qpn_next;
	uint32_t srqn_next;
	uint32_t domain_next; /* protection domains and XRC domains */
	uint32_t qp_count;
	uint32_t key_count;
	uint32_t root_object_count; /* objects that must be destroyed before the adapter */

	struct vb_list_node pds; /* for observers; so are the CQs */
	struct vb_list_node cqs;
	uint32_t cq_next; /* number of the CQ that was made last */
	struct vb_list_node groups; /* multicast groups */
	struct vb_multicast_dedup *dedup; /* exists as long as there is a group */
	struct vb_list_node device_memories; /* by address */
	struct vb_gid gids[VB_GID_COUNT];
	uint16_t pkeys[VB_PKEY_COUNT];
	struct vb_counters *counters; /* these, or the caller's … */
	struct vb_counters own_counters;
	struct vb_counters counters_before; /* … less what this engine has counted there */
	struct vb_executed_state executed;
};

struct vb_pd {
	struct vb_nic *nic;
	struct vb_list_node node; /* in nic->pds */
	uint32_t number;
	uint32_t child_count;
};

struct vb_xrcd {
	struct vb_nic *nic;
	uint32_t number;
	struct vb_list_node srqs;
	uint32_t user_count;
};

struct vb_ah {
	struct vb_pd *pd;
	struct vb_address address;
};

static inline void vb_nic_count(struct vb_nic *nic, enum vb_counter counter)
{
	nic->counters->counts[counter]++;
}

void vb_nic_drop(struct vb_nic *nic, enum vb_drop drop);

/* Makes room in the timer heap for one more object that has a timer. */
VB_MUST_USE vb_err vb_nic_add_timer(struct vb_nic *nic);

/*
 * Begins every boundary call: sets the time, and handles what waited for the link to be done with
 * the last slots.
 */
void vb_nic_begin(struct vb_nic *nic, uint64_t now_ns);

/*
 * Ends every boundary call: handles what calls inside the engine left to do, which is the QPs of a
 * CQ that overran.
 */
void vb_nic_fail_users_of_overruns(struct vb_nic *nic);

static inline void vb_nic_fail_overruns(struct vb_nic *nic)
{
	if (vb_list_is_linked(&nic->overruns))
		vb_nic_fail_users_of_overruns(nic);
}

/*
 * Checks that hold for every frame, before its QP is looked up: well-formed, with a correct ICRC.
 * False: counted and dropped.
 */
bool vb_nic_accept(struct vb_nic *nic, const struct vb_frame *frame, struct vb_packet *packet);

/* Whether the P_Key of a packet matches that entry of the table. */
bool vb_nic_is_pkey_right(const struct vb_nic *nic, uint32_t index, uint16_t pkey);

void vb_event_source_init(struct vb_event_source *source, enum vb_event_source_kind kind,
			  void *owner_context);
void vb_event_raise(struct vb_nic *nic, struct vb_event_source *source, enum vb_event_kind kind);
void vb_event_source_fini(struct vb_event_source *source);

/* The UDP source port of packets between two QPs. */
uint16_t vb_nic_source_port(const struct vb_nic *nic, uint32_t flow_label, vb_qpn local,
			    vb_qpn remote);

/*
 * Fills in the flow of a packet to that address, except the UDP source port. False if the GID entry
 * is empty.
 */
bool vb_nic_fill_flow(const struct vb_nic *nic, const struct vb_address *address,
		      struct vb_flow *flow);

#endif
