/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarations shared by the files of the connection manager. A connection keeps the two messages
 * that it may have to send again (a request, until it is answered; the last answer, in case it was
 * lost) and the two that a program may still want to read (the opening and the closing one): no
 * event and no MAD of a connection is ever allocated.
 */
#ifndef VB_MGMT_CM_PRIV_H
#define VB_MGMT_CM_PRIV_H

#include "base/list.h"
#include "base/prng.h"
#include "base/timer.h"
#include "mgmt/cm.h"

#define VB_CM_REFUSALS 64 /* answers without a connection that wait to be taken */
#define VB_CM_CLOSED_LISTENERS 8 /* the number of closed listeners remembered */
#define VB_CM_HOP_LIMIT 64
#define VB_CM_RETRY_NS_MIN 1000000u /* the minimum, whatever a peer asks for */

/* The numbers by which a connection is found. */
enum vb_cm_index {
	VB_CM_BY_LOCAL_ID,
	/* with the peer's CA GUID and address: duplicates of a REQ, and a REJ for a timeout */
	VB_CM_BY_REMOTE_ID,
	VB_CM_BY_REMOTE_QPN, /* with the peer's CA GUID and address: stale connections */
	VB_CM_BY_SIDR, /* request ID and the peer's address: duplicates of a SIDR_REQ */
	VB_CM_INDEX_COUNT
};

struct vb_cm_key {
	uint32_t number;
	uint64_t scope; /* The owner of the number: a CA GUID, which any sender may claim … */
	struct vb_gid address; /* … but only from its own address; all zero for our own numbers */
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
	struct vb_list_node waiting; /* connections whose request the program has not decided */
	struct vb_list_node node; /* in the machine's list */
	void *owner;
};

/* A destroyed listener. */
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
	bool was_timeout; /* ended without an answer of the peer */
	vb_qpn local_qpn;
	struct vb_cm_qp qp;
	struct vb_cm_listener *listener; /* while it counts in the backlog */
	struct vb_list_node waiting;

	struct vb_timer timer; /* the next retry, or the end of TIMEWAIT */
	uint64_t retry_ns;
	uint32_t retries_max;
	uint32_t retries_left;

	uint32_t events; /* 1 << enum vb_cm_event_kind */
	struct vb_list_node talking; /* in the machine's list, while it has events */
	bool has_closing;
	bool has_answer;
	bool is_request_due;
	bool is_retry; /* the due message was sent before */
	bool is_answer_due;
	struct vb_list_node sending; /* in the machine's list, while something is due */
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
	uint32_t next_id; /* before scrambling */
	uint32_t connection_count;
	uint32_t listener_count;
	uint32_t next_slot;
	struct vb_cm_connection **slots; /* config.connection_max */
	struct vb_cm_connection **buckets[VB_CM_INDEX_COUNT];
	uint32_t bucket_mask;
	struct vb_list_node listeners;
	struct vb_list_node sending;
	struct vb_list_node talking;
	struct vb_timers timers;
	struct vb_cm_closed closed[VB_CM_CLOSED_LISTENERS]; /* ring */
	uint32_t closed_next;
	struct vb_cm_mad refusals[VB_CM_REFUSALS]; /* ring */
	uint32_t refusal_first;
	uint32_t refusal_count;
};

/* A MAD that has arrived, with its origin. */
struct vb_cm_arrival {
	const struct vb_mad *mad;
	const uint8_t *bytes;
	struct vb_flow reply; /* the path back */
	vb_qpn source;
	uint64_t now_ns;
};

/* --- cm.c: lifetime and lookup ---------------------------------------------------------------- */

/* Makes a connection without an owner, in IDLE, with an ID. NULL: no memory or no slot. */
struct vb_cm_connection *vb_cm_connection_make(struct vb_cm *cm);
/* Frees an orphan with no work left. The caller must not touch it afterwards. */
void vb_cm_free_if_over(struct vb_cm_connection *connection);

/* --- cm_index.c ------------------------------------------------------------------------------- */

/* The key of a number that the sender of a MAD calls its own. */
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
					   const struct vb_cm_addressee *addressee);
bool vb_cm_listener_is_full(const struct vb_cm_listener *listener);
void vb_cm_listener_admit(struct vb_cm_listener *listener, struct vb_cm_connection *connection);
void vb_cm_listener_release(struct vb_cm_connection *connection);

/* --- cm_state.c: the parts of every state change ---------------------------------------------- */

void vb_cm_set_state(struct vb_cm_connection *connection, enum vb_cm_state state);
/* Sends a message until it is answered. */
void vb_cm_send_request(struct vb_cm_connection *connection, const struct vb_mad *mad,
			uint64_t now_ns);
/* Sends a message once, and keeps it in case the peer asks again. */
void vb_cm_send_answer(struct vb_cm_connection *connection, const struct vb_mad *mad);
void vb_cm_send_again(struct vb_cm_connection *connection); /* the kept answer */
void vb_cm_send_request_again(struct vb_cm_connection *connection);
void vb_cm_stop_request(struct vb_cm_connection *connection);
void vb_cm_note_event(struct vb_cm_connection *connection, enum vb_cm_event_kind kind);
void vb_cm_enter_timewait(struct vb_cm_connection *connection, uint64_t now_ns);
void vb_cm_close(struct vb_cm_connection *connection);
/* No answer came, or none will come. */
void vb_cm_give_up(struct vb_cm_connection *connection, uint64_t now_ns);

/* --- cm_connect.c ----------------------------------------------------------------------------- */

/* Sends a DREQ for an established connection. */
void vb_cm_hang_up(struct vb_cm_connection *connection, uint64_t now_ns);

/* --- cm_compose.c: messages ------------------------------------------------------------------- */

struct vb_mad vb_cm_compose(const struct vb_cm_row *row, enum vb_mad_kind kind);
/* The fields of a REJ depend on what the connection has received so far. */
struct vb_mad vb_cm_compose_rej(const struct vb_cm *cm, const struct vb_cm_row *row,
				uint16_t reason);
struct vb_mad vb_cm_compose_mra(const struct vb_cm_row *row, enum vb_mad_about about);
struct vb_mad vb_cm_compose_dreq(const struct vb_cm *cm, const struct vb_cm_row *row);
/* The message that the peer must get when this end goes away: REJ, DREQ or DREP. False: none. */
bool vb_cm_compose_farewell(const struct vb_cm *cm, const struct vb_cm_row *row,
			    struct vb_mad *mad);
VB_MUST_USE vb_err vb_cm_put_private(struct vb_mad *mad, const struct vb_cm_private *private_data);
/* Puts the addresses first, if there are any. */
VB_MUST_USE vb_err vb_cm_put_private_ip(struct vb_mad *mad, const struct vb_service_ip *ip,
					const struct vb_cm_private *private_data);
uint8_t vb_cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life_time);

/* --- cm_refuse.c ------------------------------------------------------------------------------ */

/* Sends an answer that belongs to no connection. */
void vb_cm_send_refusal(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn qpn,
			const struct vb_mad *mad);
void vb_cm_send_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival, uint16_t reason);
void vb_cm_refuse_arrival(struct vb_cm *cm, const struct vb_cm_arrival *arrival);

/* --- handlers of each message; false: not for this machine ------------------------------------ */

bool vb_cm_on_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_mra(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rtu(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_rej(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_dreq(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_drep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_sidr_req(struct vb_cm *cm, const struct vb_cm_arrival *arrival);
bool vb_cm_on_sidr_rep(struct vb_cm *cm, const struct vb_cm_arrival *arrival);

/* Finds the addressee of a message from its fields. */
void vb_cm_addressee_of(const struct vb_mad *mad, struct vb_cm_addressee *addressee);

/*
 * Finds the connection with the receiver's ID of the message, provided the message comes from the
 * address of its peer. *is_pair: the sender's ID also matches, or the connection does not know it
 * yet.
 */
struct vb_cm_connection *vb_cm_find_receiver(const struct vb_cm *cm,
					     const struct vb_cm_arrival *arrival, bool *is_pair);

/* Makes a connection for a request, in that state, if the listener admits it. NULL: dropped. */
struct vb_cm_connection *vb_cm_take_in(struct vb_cm *cm, const struct vb_cm_arrival *arrival,
				       struct vb_cm_listener *listener);

#endif
