/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the connection manager share. A connection keeps the two messages that it may have
 * to send again (a request, until it is answered; the last answer, for when it was lost) and the two
 * that a program may still want to read (the opening and the closing one): no event and no MAD of a
 * connection is ever allocated.
 */
#ifndef VB_MGMT_CM_PRIV_H
#define VB_MGMT_CM_PRIV_H

#include "base/list.h"
#include "base/prng.h"
#include "base/timer.h"
#include "mgmt/cm.h"

#define VB_CM_REFUSALS 64 /* answers without a connection that wait to be taken */
#define VB_CM_CLOSED_LISTENERS 8 /* the last ones, remembered */
#define VB_CM_HOP_LIMIT 64
#define VB_CM_RETRY_NS_MIN 1000000u /* whatever a peer asks for */

/* By which numbers a connection is found. */
enum vb_cm_index {
	VB_CM_BY_LOCAL_ID,
	VB_CM_BY_REMOTE_ID, /* and the peer's CA GUID and address: duplicates of a REQ, and a REJ for a time-out */
	VB_CM_BY_REMOTE_QPN, /* and the peer's CA GUID and address: stale connections */
	VB_CM_BY_SIDR, /* request ID and the peer's address: duplicates of a SIDR_REQ */
	VB_CM_INDEX_COUNT
};

struct vb_cm_key {
	uint32_t number;
	uint64_t scope; /* whose number it is: a CA GUID, which anybody may claim … */
	struct vb_gid address; /* … but only from where he is; all zero for our own numbers */
};

struct vb_cm_entry {
	struct vb_cm_connection *next;
	struct vb_cm_key key;
	bool is_in;
};

struct vb_cm_listener {
	struct vb_cm *cm;
	struct vb_cm_service service;
	uint32_t backlog;
	uint32_t waiting_count;
	struct vb_link waiting; /* connections whose request the program has not decided */
	struct vb_link link; /* in the machine's list */
	void *owner;
};

/* A listener that is gone. */
struct vb_cm_closed {
	struct vb_cm_service service;
	uint64_t time_ns;
};

struct vb_cm_connection {
	struct vb_cm *cm;
	void *owner;
	uint32_t slot;
	struct vb_cm_row self; /* state, IDs and address; published as a whole */
	bool is_unseen; /* its REQUEST has not been taken: the machine owns it */
	bool is_orphan; /* destroyed by its owner */
	bool was_timeout; /* the end was no answer of the peer */
	vb_qpn local_qpn;
	struct vb_cm_qp qp;
	struct vb_cm_listener *listener; /* while it counts there */
	struct vb_link waiting;

	struct vb_timer timer; /* the next retry, or the end of TIMEWAIT */
	uint64_t retry_ns;
	uint32_t retries_max;
	uint32_t retries_left;

	uint32_t events; /* 1 << enum vb_cm_event_kind */
	struct vb_link talking; /* in the machine's list, while it has any */
	bool has_closing;
	bool has_answer;
	bool is_request_due;
	bool is_retry; /* what is due was sent before */
	bool is_answer_due;
	struct vb_link sending; /* in the machine's list, while something is due */
	struct vb_cm_entry entries[VB_CM_INDEX_COUNT];
	enum vb_mad_kind answer_kind;
	uint8_t request[VB_MAD_SIZE];
	uint8_t answer[VB_MAD_SIZE];
	uint8_t opening[VB_MAD_SIZE];
	uint8_t closing[VB_MAD_SIZE];
};

struct vb_cm {
	struct vb_cm_config config;
	struct vb_cm_counters counters;
	uint64_t transaction_base;
	uint64_t salt; /* of the hash */
	uint64_t id_key;
	uint32_t next_id; /* before it is scrambled */
	uint32_t connection_count;
	uint32_t listener_count;
	uint32_t next_slot;
	struct vb_cm_connection **slots; /* config.connection_max */
	struct vb_cm_connection **buckets[VB_CM_INDEX_COUNT];
	uint32_t bucket_mask;
	struct vb_link listeners;
	struct vb_link sending;
	struct vb_link talking;
	struct vb_timers timers;
	struct vb_cm_closed closed[VB_CM_CLOSED_LISTENERS]; /* ring */
	uint32_t closed_next;
	struct vb_cm_mad refusals[VB_CM_REFUSALS]; /* ring */
	uint32_t refusal_first;
	uint32_t refusal_count;
};

/* A MAD that has arrived, with whom it came from. */
struct vb_cm_arrival {
	const struct vb_mad *mad;
	const uint8_t *bytes;
	struct vb_flow reply; /* the way back */
	vb_qpn source;
	uint64_t now_ns;
};

/* --- cm.c: life and finding ------------------------------------------------------------------- */

/* Without an owner, in IDLE, with an ID. NULL: no memory or no place. */
struct vb_cm_connection *vb_cm_connection_make(struct vb_cm *cm);
/* Frees an orphan that nothing is left to do for. The caller does not touch it after that. */
void vb_cm_settle(struct vb_cm_connection *connection);

/* --- cm_index.c ------------------------------------------------------------------------------- */

/* A number that the sender of a MAD calls its own. */
struct vb_cm_key vb_cm_key_of_peer(const struct vb_cm_arrival *arrival, uint32_t number,
				   uint64_t guid);

VB_MUST_USE vb_err vb_cm_index_init(struct vb_cm *cm);
void vb_cm_index_fini(struct vb_cm *cm);
void vb_cm_index_add(struct vb_cm_connection *connection, enum vb_cm_index index,
		     struct vb_cm_key key);
void vb_cm_index_remove(struct vb_cm_connection *connection, enum vb_cm_index index);
struct vb_cm_connection *vb_cm_index_find(const struct vb_cm *cm, enum vb_cm_index index,
					  struct vb_cm_key key);

/* --- cm_listen.c ------------------------------------------------------------------------------ */

struct vb_cm_listener *vb_cm_listener_find(const struct vb_cm *cm,
					   const struct vb_cm_meaning *meaning);
bool vb_cm_listener_is_full(const struct vb_cm_listener *listener);
void vb_cm_listener_admit(struct vb_cm_listener *listener, struct vb_cm_connection *connection);
void vb_cm_listener_release(struct vb_cm_connection *connection);

/* --- cm_state.c: what every change consists of ------------------------------------------------ */

void vb_cm_set_state(struct vb_cm_connection *connection, enum vb_cm_state state);
/* A message that is sent until it is answered. */
void vb_cm_send_request(struct vb_cm_connection *connection, const struct vb_mad *mad,
			uint64_t now_ns);
/* A message that is sent once, and kept for when it is asked for again. */
void vb_cm_send_answer(struct vb_cm_connection *connection, const struct vb_mad *mad);
void vb_cm_send_again(struct vb_cm_connection *connection); /* the kept answer */
void vb_cm_send_request_again(struct vb_cm_connection *connection);
void vb_cm_stop_request(struct vb_cm_connection *connection);
void vb_cm_note_event(struct vb_cm_connection *connection, enum vb_cm_event_kind kind);
void vb_cm_enter_timewait(struct vb_cm_connection *connection, uint64_t now_ns);
void vb_cm_close(struct vb_cm_connection *connection);
/* No answer came, or none will. */
void vb_cm_give_up(struct vb_cm_connection *connection, uint64_t now_ns);

/* --- cm_connect.c ----------------------------------------------------------------------------- */

/* A DREQ for a connection that stands. */
void vb_cm_hang_up(struct vb_cm_connection *connection, uint64_t now_ns);

/* --- cm_compose.c: messages ------------------------------------------------------------------- */

struct vb_mad vb_cm_compose(const struct vb_cm_row *row, enum vb_mad_kind kind);
/* What a REJ says about itself depends on what the connection has heard so far. */
struct vb_mad vb_cm_compose_rej(const struct vb_cm *cm, const struct vb_cm_row *row,
				uint16_t reason);
struct vb_mad vb_cm_compose_mra(const struct vb_cm_row *row, enum vb_mad_about about);
struct vb_mad vb_cm_compose_dreq(const struct vb_cm *cm, const struct vb_cm_row *row);
/* What the peer must hear when this end goes away: REJ, DREQ or DREP. False: nothing. */
bool vb_cm_compose_parting(const struct vb_cm *cm, const struct vb_cm_row *row, struct vb_mad *mad);
VB_MUST_USE vb_err vb_cm_put_private(struct vb_mad *mad, const struct vb_cm_private *private_data);
/* With addresses in front if there are any. */
VB_MUST_USE vb_err vb_cm_put_private_ip(struct vb_mad *mad, const struct vb_service_ip *ip,
					const struct vb_cm_private *private_data);
uint8_t vb_cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time);

/* --- cm_refuse.c ------------------------------------------------------------------------------ */

/* An answer that belongs to no connection. */
void vb_cm_send_refusal(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn qpn,
			const struct vb_mad *mad);
void vb_cm_send_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival, uint16_t reason);
void vb_cm_refuse_arrival(struct vb_cm *cm, const struct vb_cm_arrival *arrival);

/* --- what to do with each message; false: it is not for this machine -------------------------- */

bool vb_cm_on_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_mra(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rtu(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_dreq(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_drep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_sidr_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_sidr_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);

/* What a message is for, from its own fields. */
void vb_cm_meaning_of(const struct vb_mad *mad, struct vb_cm_meaning *meaning);

/*
 * The connection with the receiver's ID of the message, if that comes from the address of its peer. *is_pair: the sender's ID is also the one
 * that it has known or not known yet.
 */
struct vb_cm_connection *vb_cm_find_receiver(const struct vb_cm *cm,
					     const struct vb_cm_arrival *arrival, bool *is_pair);

/* A connection that a request has just made, in that state, with the listener's consent; NULL: dropped. */
struct vb_cm_connection *vb_cm_take_in(struct vb_cm *cm, const struct vb_cm_arrival *arrival,
				       struct vb_cm_listener *listener);

#endif
