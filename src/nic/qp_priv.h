/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a queue pair. The requester is the half that sends requests and takes responses.
 * The responder is the half that executes the peer's requests. Fields that every packet uses stand
 * together.
 */
#ifndef VB_NIC_QP_PRIV_H
#define VB_NIC_QP_PRIV_H

#include "nic/flight_priv.h"
#include "nic/inspect.h"
#include "nic/memory_priv.h"
#include "nic/nic_priv.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"
#include "nic/queue_priv.h"
#include "nic/rings.h"
#include "nic/train_choice_priv.h"
#include "wire/packet.h"

/* A place in a list of SGEs. */
struct vb_cursor {
	uint32_t sge_index;
	uint32_t sge_offset;
};

struct vb_requester {
	uint32_t send_index; /* the request whose packets go out next */
	uint32_t done_index; /* the oldest incomplete request */
	vb_psn next_psn; /* of the next packet to send; moved back to repeat */
	vb_psn new_psn; /* one beyond the highest ever sent */
	vb_psn unacked; /* the oldest PSN that the peer has not acknowledged */
	vb_psn recovered; /* the PSN that the last implied NAK made us go back to */
	bool has_recovered; /* nothing was acknowledged since then */
	bool has_failed; /* the request at send_index cannot be sent */
	uint8_t failure; /* its enum vb_status, reported when the requests before it are done */
	bool waits_for_receiver; /* after an RNR NAK: the timer runs until we may try again */
	bool has_credits; /* the responder does end-to-end flow control */
	/* Without credits for long enough: the next message goes out to ask for a receive. */
	bool may_probe;
	bool is_probing; /* the message under way was begun without credits */
	uint8_t retries_left;
	uint8_t rnr_retries_left;
	bool has_raised_drained; /* SQ_DRAINED was raised for this SQD */
	uint8_t hold; /* enum vb_hold: why nothing goes out, since qp->held_since_ns */
	bool is_timed; /* messages are in flight that qp->train_choice measures */
	uint32_t credit_limit; /* the last message (SSN) that the peer has a receive for; 24 bits */
	uint32_t next_ssn;
	uint32_t reads_out; /* READs and atomics sent but not complete */
	uint32_t read_psns_out; /* their PSNs beyond that of the request itself */
	/* How many packets fewer than window_packets_max may be in flight: see rc_timers.c. */
	uint32_t window_reduction;
	uint32_t end_byte; /* end of the payload of the last request that was begun, modulo 2^32 */
	uint32_t packets_since_ack_request; /* packets since the last one that asked for an ACK */
	uint16_t direct_skip; /* requests that do not wait for a chance to be executed directly */
	uint16_t direct_refusals; /* direct executions refused in a row; they set direct_skip */
	uint32_t direct_offset; /* bytes of the request at send_index that are already executed */
	uint16_t train_skip; /* messages that go in packets before trains are tried again */
	uint16_t train_refusals; /* trains refused in a row; they set train_skip */
	bool is_by_train; /* the message at send_index goes in trains, as far as it can */
	bool has_trains_out; /* trains up to trains_end were sent and not refused */
	vb_psn trains_end;
	uint32_t own_done; /* completed requests of the adapter itself (nic/rendezvous_priv.h) */
	/* UC: end of its shared-memory link when its last packet was on it */
	uint64_t shm_link_end;
	struct vb_cursor cursor; /* in the request at send_index, for next_psn */
};

enum vb_message { VB_MESSAGE_NONE = 0, VB_MESSAGE_SEND, VB_MESSAGE_WRITE };

/*
 * A READ or atomic of the peer. It waits for its reply and is kept so that the reply can be
 * repeated.
 */
struct vb_resource {
	vb_psn first_psn;
	vb_psn next_psn; /* of the next reply packet */
	vb_psn run_psn; /* where this run of reply packets began */
	vb_psn run_end; /* the PSN after its end */
	uint32_t run_length; /* READ: how far into the data this run goes */
	uint32_t packet_count;
	uint32_t msn;
	uint32_t pd;
	uint32_t rkey;
	uint32_t length;
	uint8_t op; /* enum vb_packet_op of the request */
	bool is_used;
	bool is_pending;
	bool is_repeat; /* the reply was sent in full before */
	uint64_t address; /* READ */
	uint64_t result; /* COMPARE_SWAP, FETCH_ADD */
};

/* The acknowledgement that is due. */
enum vb_reply {
	VB_REPLY_NONE = 0,
	VB_REPLY_ACK,
	VB_REPLY_NAK_SEQUENCE,
	VB_REPLY_RNR,
	VB_REPLY_REFUSAL
};

/* What a message is to tag matching. */
enum vb_tagged {
	VB_TAGGED_NOT = 0, /* no tag matching, or no SEND */
	VB_TAGGED_UNTAGGED, /* its header says so */
	VB_TAGGED_UNEXPECTED, /* no tag of the list matches */
	VB_TAGGED_EAGER, /* with its data */
	VB_TAGGED_RENDEZVOUS, /* its data is still to be read, by the adapter */
	VB_TAGGED_INCOMPLETE, /* the same, but by the program, which gets the headers */
};

/* The receive that a message is going into. */
struct vb_receive {
	bool is_used;
	uint8_t tagged; /* enum vb_tagged */
	uint32_t skip; /* bytes of the first packet that are not placed */
	uint32_t slot_end; /* RQ: ring index after it */
	uint32_t sge_count;
	uint32_t length;
	uint32_t pd; /* PD that its keys must belong to */
	uint64_t wr_id;
	const struct vb_sge *sges; /* in the RQ's slot, or in `copy` */
	/* Of an SRQ's entry, so that its slot is free immediately; NULL without SRQ. */
	struct vb_sge *copy;
	struct vb_srq *srq; /* the SRQ it came from, or NULL */
	struct vb_tag *tag; /* whose buffer it is, or NULL */
};

struct vb_responder {
	vb_psn expected;
	uint32_t msn;
	uint8_t message; /* enum vb_message under way */
	uint8_t reply; /* enum vb_reply */
	uint8_t refusal; /* enum vb_verdict; from then on nothing is accepted */
	/* a NAK for `expected` is due or sent; no second one until that packet arrives */
	bool has_noted_nak;
	/* while a NAK is due: packets after the gap, up to dropped_end, came and were dropped */
	bool has_dropped;
	bool is_established; /* COMM_EST was raised, or is not due */
	bool is_broken; /* UC: the rest of this message is dropped */
	uint8_t headers; /* enum vb_headers of the path, or of the last datagram */
	uint8_t resource_count;
	uint8_t resource_next; /* where the next request is kept */
	uint8_t resources_pending;
	vb_psn ack_psn; /* the PSN that an ACK names: the newest without a response of its own */
	vb_psn dropped_end;
	vb_psn refusal_psn;
	uint32_t received; /* bytes of the message so far */
	uint32_t pd; /* PD that the request may access; XRC: that of the SRQ it names */
	uint32_t write_key;
	uint32_t write_left;
	uint64_t write_address;
	struct vb_cursor cursor; /* in the receive */
	struct vb_resource *resources;
	struct vb_receive receive;
};

struct vb_qp {
	struct vb_nic *nic;
	struct vb_qp_row *row;
	vb_qpn number;
	vb_qpn peer;
	uint8_t type; /* enum vb_qp_type */
	uint8_t service; /* enum vb_service of its packets */
	_Atomic uint8_t state; /* enum vb_qp_state; read by posting threads */
	/* The peer knows that there are no receives; read by posting threads. */
	_Atomic uint8_t has_announced_no_credits;
	_Atomic uint8_t has_peer_memory; /* `peer_memory` is not NULL; read by posting threads */
	uint8_t mtu_shift;
	bool signal_all;
	bool has_replied; /* the last packet was a reply: next is a request */
	uint32_t pd_number;
	/* link that its peer may have chosen while its own packets take the wire; 0: none */
	uint16_t peer_link;
	struct vb_list_node active; /* in nic->active */
	struct vb_list_node sent; /* in nic->sent */
	struct vb_path path; /* of packets to the peer */
	struct vb_flight *flight; /* to the peer, or NULL */
	struct vb_list_node waiting; /* in flight->waiting */
	uint32_t flight_bytes; /* its share of flight->bytes */
	uint32_t packet_bytes; /* how much each packet counts */
	uint32_t window_packets_max; /* limit of the QP by itself, in full packets */
	struct vb_peer_memory *peer_memory; /* its peer memory access, or NULL */
	struct vb_peer_memory_initiator initiator; /* the QP as the initiator of that access */

	struct vb_queue sq;
	struct vb_requester requester;
	struct vb_timer timer; /* ACK timeout, wait after an RNR NAK, or wait for credits */
	struct vb_cq *send_cq;

	struct vb_responder responder;
	struct vb_queue rq;
	struct vb_cq *recv_cq;

	_Atomic uint32_t is_rung;
	struct vb_qp *next_rung;
	struct vb_pd *pd;
	struct vb_srq *srq;
	struct vb_xrcd *xrcd;
	struct vb_queue *posted; /* what the program posts to: sq, or rendezvous->posted */
	struct vb_rendezvous *rendezvous; /* with an SRQ for tag matching; otherwise NULL */
	uint32_t inline_max;
	uint32_t group_count;
	uint32_t window_count; /* type 2 windows bound to the QP */
	struct vb_qp_attr attr; /* as last given; state and path are above */
	struct vb_event_source source;
	uint64_t held_since_ns;
	uint64_t held_ns[VB_HOLD_COUNT]; /* until then */
	uint32_t repeat_count; /* how often it went back to send packets again */
	struct vb_train_choice train_choice; /* numbers are those of requests in the send queue */
};

static inline enum vb_qp_state vb_qp_state_now(const struct vb_qp *qp)
{
	return (enum vb_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

static inline bool vb_qp_is_reliable(const struct vb_qp *qp)
{
	return qp->type == VB_QP_RC || qp->type == VB_QP_XRC_SEND || qp->type == VB_QP_XRC_RECV;
}

/* The QP now has this many packets in flight. */
static inline void vb_flight_update(struct vb_qp *qp, uint32_t packet_count)
{
	uint32_t bytes;
	bool has_fallen;

	if (!qp->flight)
		return;
	bytes = packet_count * qp->packet_bytes;
	has_fallen = bytes < qp->flight_bytes;
	qp->flight->bytes += (uint64_t)bytes - qp->flight_bytes;
	qp->flight_bytes = bytes;
	if (has_fallen)
		vb_flight_wake(qp->nic, qp->flight);
}

/* Whether the QP may not send now: there is no room, or other QPs come first. */
static inline bool vb_flight_is_full(const struct vb_qp *qp)
{
	const struct vb_flight *flight = qp->flight;

	return flight && (flight->bytes >= qp->nic->config.flight_bytes_max ||
			  (vb_list_is_linked(&flight->waiting) && flight->turn != qp));
}

/* Whether one more packet uses up the room. */
static inline bool vb_flight_is_nearly_full(const struct vb_qp *qp)
{
	return qp->flight &&
	       qp->flight->bytes + qp->packet_bytes >= qp->nic->config.flight_bytes_max;
}

/* Whether a part of the request at send_index is done or in flight. */
static inline bool vb_qp_has_begun(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return wqe->progress != VB_WQE_NOT_STARTED || qp->requester.direct_offset;
}

/* inspect.c: the link has no room for what the QP may have to send. */
void vb_qp_note_no_room(struct vb_qp *qp);
/* Its turn ends. It is not empty if it has more to send. */
void vb_qp_note_more(struct vb_qp *qp);
/* The QP begins again. */
void vb_qp_forget_holds(struct vb_qp *qp);
/* From now on, this is why nothing goes out. */
void vb_qp_change_hold(struct vb_qp *qp, enum vb_hold hold);

/* The same, for callers that usually find that nothing has changed. */
static inline void vb_qp_note_hold(struct vb_qp *qp, enum vb_hold hold)
{
	if (qp->requester.hold != hold)
		vb_qp_change_hold(qp, hold);
}

/* qp.c */
void vb_qp_schedule(struct vb_qp *qp); /* the QP may have something to send */
/* The path becomes the IP flow to the peer's address; the link stays. */
void vb_qp_fill_path(struct vb_qp *qp);
void vb_qp_on_timer(struct vb_qp *qp);
/*
 * Builds one packet, if there is one to send. `is_last_of_turn`: the QP may send no other in this
 * turn.
 */
bool vb_qp_emit(struct vb_qp *qp, struct vb_slot *slot, bool is_last_of_turn);
void vb_qp_publish_row(struct vb_qp *qp); /* brings the row up to date with the QP */
void vb_qp_withdraw_row(struct vb_qp *qp); /* local peers no longer access memory by it */
void vb_qp_on_established(struct vb_qp *qp); /* its first request has arrived */
void vb_qp_set_state(struct vb_qp *qp, enum vb_qp_state state);
void vb_qp_reset(struct vb_qp *qp); /* as new, without completions */
void vb_qp_remove_from_doorbell(struct vb_qp *qp);

/* qp_error.c */
void vb_qp_enter_error(struct vb_qp *qp); /* flushes everything posted */
void vb_qp_enter_sqe(struct vb_qp *qp); /* UC and UD: the send queue stops, receives go on */
void vb_qp_flush_send(struct vb_qp *qp);
void vb_qp_flush_recv(struct vb_qp *qp);

/* complete.c */
uint8_t vb_headers_of(const struct vb_flow *flow); /* enum vb_headers */
/* The request at send_index, which is the oldest, is done. */
void vb_qp_complete_current(struct vb_qp *qp);
void vb_qp_complete_send(struct vb_qp *qp, uint32_t index, enum vb_status status);
/* The same for a WRITE that succeeded and wants a completion, though it has no slot. */
void vb_qp_complete_write(struct vb_qp *qp, uint32_t index, uint64_t wr_id, uint32_t length);
void vb_qp_complete_receive(struct vb_qp *qp, enum vb_status status, const struct vb_packet *packet,
			    uint32_t byte_length);
/*
 * The same for a plain message that went into the newest receive taken from the QP's own queue.
 * That receive never was the one in use.
 */
void vb_qp_complete_taken(struct vb_qp *qp, uint64_t wr_id, uint32_t byte_length,
			  bool is_solicited);

/*
 * receive_queue.c: makes the receive for the message that begins, or for the WRITE that ends, with
 * this packet the one in use; VB_NOT_READY when there is none. Without an SRQ the packet may be
 * NULL.
 */
enum vb_verdict vb_qp_take_receive(struct vb_qp *qp, const struct vb_frame *frame,
				   const struct vb_packet *packet);

/* receive.c */
void vb_qp_on_packet(struct vb_qp *qp, const struct vb_frame *frame,
		     const struct vb_packet *packet);

/* multicast.c */
void vb_multicast_deliver(struct vb_nic *nic, const struct vb_frame *frame,
			  const struct vb_packet *packet);

#endif
