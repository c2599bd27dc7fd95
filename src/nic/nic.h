/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The boundary of the engine. Frames, doorbells and the time go in; frames, completions, events and
 * the next deadline come out. One thread at a time owns an engine; there are no locks, clocks or
 * callbacks inside. `now_ns` never decreases and is the engine's only time.
 */
#ifndef VB_NIC_NIC_H
#define VB_NIC_NIC_H

#include "base/err.h"
#include "base/timer.h"
#include "framing/frame.h"
#include "framing/framing.h"
#include "nic/counters.h"
#include "nic/event.h"
#include "nic/tables.h"

#include <stdint.h>

struct vb_nic;
struct vb_send_request;

#define VB_INLINE_MAX 512
#define VB_GID_COUNT 128
#define VB_PKEY_COUNT 16
#define VB_PKEY_DEFAULT 0xffff
#define VB_SOURCE_PORTS_MAX 16

struct vb_nic_config {
	/*
	 * Tables in the caller's memory, all zero at first. The counts are powers of two. See
	 * nic/tables.h.
	 */
	struct vb_key_row *key_rows;
	uint32_t key_row_count;
	struct vb_qp_row *qp_rows;
	uint32_t qp_row_count;

	uint64_t seed; /* for keys and the first QPN, which are as hard to guess as the seed */
	/* First of the range that QPNs are taken from, without 0, 1 and 0xffffff. */
	uint32_t qpn_first;
	uint32_t qpn_count; /* length of that range; 0: everything from qpn_first on */

	/*
	 * UDP source ports that the link can send from. The engine chooses the port because the
	 * ICRC covers it. The count is a power of two; 0: any port from 0xc000 on.
	 */
	uint16_t source_ports[VB_SOURCE_PORTS_MAX];
	uint32_t source_port_count;

	struct vb_framing_config framing;
	uint32_t port_mtu; /* largest payload of a packet, and so of a UD message; 0: 4096 */
	/* Unacknowledged request packets that one QP may have in flight; 0: a default. */
	uint32_t window_packets_max;
	uint32_t window_bytes_max; /* approximate limit on their payload bytes; 0: no bound */
	/*
	 * Approximate limit on the bytes that all RC QPs together have in flight to one receiver;
	 * 0: no bound.
	 */
	uint32_t flight_bytes_max;
	/*
	 * SENDs of at least this many bytes go to local peers in trains, of at most
	 * train_length_max bytes each; 0: there are no trains.
	 */
	uint32_t train_length_min;
	uint32_t train_length_max;
	/*
	 * Each QP measures with its own SENDs, this many bytes at a time, whether they go faster in
	 * trains or in packets, and sends them so (nic/train_choice_priv.h); 0: always in trains.
	 */
	uint32_t train_sample_bytes;

	/*
	 * 4096 bytes of 0 in application memory: the contents that a null region appears to have.
	 */
	vb_dma_addr zero_page;
	/* Memory on the adapter, handed out by vb_dm_create(); may be 0. */
	vb_dma_addr device_memory;
	uint64_t device_memory_length;

	/* Limits, 0 for the default. Asking for more is VB_EINVAL. */
	uint32_t qp_depth_max;
	uint32_t cq_depth_max;
	uint32_t srq_depth_max;
	uint32_t reads_max; /* max_rd_atomic and max_dest_rd_atomic */
};

/* The largest values that the adapter takes, as device attributes report them. */
struct vb_nic_limits {
	uint32_t qp_depth;
	uint32_t cq_depth;
	uint32_t srq_depth;
	uint32_t sge;
	uint32_t inline_length;
	uint32_t reads;
	uint32_t qp_count;
	uint32_t key_count;
	uint32_t tags; /* in the list of an SRQ */
	uint32_t tag_sge;
	uint32_t tag_depth; /* operations on that list */
	uint32_t rendezvous_length; /* of a message that asks for a rendezvous, with its headers */
};

/*
 * The caller owns the engine and ends it with vb_nic_destroy() when all its objects are gone (else
 * VB_EBUSY).
 */
VB_MUST_USE vb_err vb_nic_create(const struct vb_nic_config *config, struct vb_nic **nic_out);
vb_err vb_nic_destroy(struct vb_nic *nic);
/* PDs, CQs, XRC domains and device memories. All other objects belong to one of these. */
uint32_t vb_nic_root_object_count(const struct vb_nic *nic);

struct vb_nic_limits vb_nic_limits(const struct vb_nic *nic);

/*
 * The tables of the port. An all-zero GID is an empty entry. VB_EINVAL for an index beyond the
 * table.
 */
VB_MUST_USE vb_err vb_nic_set_gid(struct vb_nic *nic, uint32_t index, const struct vb_gid *gid);
VB_MUST_USE vb_err vb_nic_set_pkey(struct vb_nic *nic, uint32_t index, uint16_t pkey);
/*
 * Sets the largest payload of a packet from now on: 256 to 4096, a power of two. QPs keep their
 * path MTU.
 */
VB_MUST_USE vb_err vb_nic_set_port_mtu(struct vb_nic *nic, uint32_t mtu);
/* NULL beyond the table. */
const struct vb_gid *vb_nic_gid(const struct vb_nic *nic, uint32_t index);
bool vb_nic_has_gid(const struct vb_nic *nic, const struct vb_gid *gid);
uint16_t vb_nic_pkey(const struct vb_nic *nic, uint32_t index); /* 0 beyond the table */

/*
 * Processes the frames in the order of the array. Each is accepted, or counted under one drop
 * reason. The answers come out of vb_nic_transmit().
 */
void vb_nic_receive(struct vb_nic *nic, uint64_t now_ns, const struct vb_frame *frames,
		    uint32_t count);

/* Fills up to `capacity` slots with packets to send; returns how many. 0: nothing to send now. */
uint32_t vb_nic_transmit(struct vb_nic *nic, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t capacity);

/*
 * Starts what was just posted to the QP, if the QP is quiet and the engine has no other work. Short
 * requests to the memory of a local peer are executed. A short SEND becomes a packet, with an ACK
 * behind it if one is due; `slot_count` is how many slots are filled. True: nothing is left to do.
 * False: the rest, perhaps everything, needs a doorbell and vb_nic_transmit().
 */
bool vb_qp_start_now(struct vb_qp *qp, uint64_t now_ns, struct vb_slot slots[2],
		     uint32_t *slot_count);

/*
 * The same for a request that is about to be posted and for which vb_qp_may_write_now(), called by
 * a thread that may post to the QP. False: nothing was done, and the request must be posted. True:
 * the data is in the peer's memory. Then vb_qp_conclude_write() is the next call to this engine; it
 * completes the request as if it had been posted. There are two calls because it takes long to read
 * a clock: the peer need not wait for that.
 */
bool vb_qp_write_now(struct vb_qp *qp, const struct vb_send_request *request);
/* To be called before it, as soon as the caller owns the engine: a hint for the CPU. */
void vb_qp_expect_write(const struct vb_qp *qp, const struct vb_send_request *request);
void vb_qp_conclude_write(struct vb_qp *qp, const struct vb_send_request *request, uint64_t now_ns);

/*
 * How packets become frames. The owner uses the part of framing/framing.h that is for it, between
 * calls into the engine.
 */
struct vb_framing *vb_nic_framing(struct vb_nic *nic);

/* Fires the timers that are due. Needed when now_ns >= vb_nic_deadline(), harmless otherwise. */
void vb_nic_fire_timers(struct vb_nic *nic, uint64_t now_ns);

/*
 * The engine does nothing by itself before this time; VB_NEVER if nothing is under way. Not const,
 * because it may reorder the timers.
 */
uint64_t vb_nic_deadline(struct vb_nic *nic);

/*
 * True if vb_nic_transmit() should be called; calls that change or destroy an object can also make
 * it so. There are packets to send, unread doorbells, or completions that can only be raised when
 * the link no longer uses the payload: those of UC and UD requests, and of QPs that fail because
 * their CQ overran.
 */
bool vb_nic_has_work(const struct vb_nic *nic);

/*
 * True if there is something to send, but only a few ACKs, which may wait for the program's next
 * call (nic/ack_policy_priv.h).
 */
bool vb_nic_can_defer_acks(const struct vb_nic *nic);

bool vb_nic_has_events(const struct vb_nic *nic);
/*
 * Takes out up to `capacity` events; returns how many. Objects come in the order in which their
 * first pending event arose, the events of one object in the order of enum vb_event_kind.
 */
uint32_t vb_nic_take_events(struct vb_nic *nic, struct vb_event *events, uint32_t capacity);

/* The counters as they are now. They may include what others have counted in the same memory. */
const struct vb_counters *vb_nic_counters(const struct vb_nic *nic);
/* What this engine has counted since it was created, in whichever memory. */
void vb_nic_counted(const struct vb_nic *nic, struct vb_counters *counters_out);
/*
 * From now on, the engine counts in the caller's memory, from the numbers that are there. The
 * memory is lent for the engine's life, or until the next call.
 */
void vb_nic_set_counters(struct vb_nic *nic, struct vb_counters *counters);

#endif
