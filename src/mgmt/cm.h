/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The InfiniBand connection manager as a state machine without I/O: MADs, calls of the program and
 * the time go in; MADs, events and the next deadline come out. One thread at a time owns a machine.
 * Several processes of a host have one machine each, and together they are the connection manager
 * of the host: a MAD that is for none of a machine's listeners or communication IDs is reported as
 * not its own.
 *
 * A connect, from both sides. The passive program listens:
 *
 *	struct vb_cm_service service = { .id = vb_service_id(VB_SERVICE_SPACE_TCP, 7471),
 *					 .takes = VB_CM_IPV4 };
 *	vb_cm_listen(cm, &service, backlog, owner, &listener);
 *
 * The active program has made a QP and connects. The machine sends the REQ, and repeats it when no
 * answer comes:
 *
 *	vb_cm_connection_create(cm, owner, &connection);
 *	vb_cm_connect(connection, &request, now_ns);
 *	while (vb_cm_take_mad(cm, &out))	after each call, MAD or deadline
 *		…sends out.bytes by out.flow to QP out.qpn…
 *
 * At the passive side each MAD that arrives at QP 1 goes in, and the resulting events are taken
 * out:
 *
 *	switch (vb_cm_receive(cm, &flow, source_qpn, bytes, length, now_ns, &meaning)) {
 *	case VB_CM_TAKEN: …
 *	case VB_CM_NOT_MINE: …asks the other processes for meaning.service or meaning.comm_id; if no
 *		process has it: vb_cm_refuse(cm, &flow, source_qpn, bytes, length);
 *	case VB_CM_MALFORMED: …counts it…
 *	}
 *	while (vb_cm_take_event(cm, &event))
 *		…
 *
 * VB_CM_REQUEST brings a new connection, which belongs to the taker from now on. The passive
 * program makes a QP, moves it to RTR with the attributes of vb_cm_connection_qp(), and calls
 * vb_cm_accept(), which sends the REP (or vb_cm_reject()). The active program gets VB_CM_RESPONSE,
 * moves its QP to RTR and RTS, and calls vb_cm_establish(), which sends the RTU. With the RTU, or
 * with the first packet that its QP gets (vb_cm_on_communication()), the passive program gets
 * VB_CM_ESTABLISHED; its QP must be in RTS by then.
 *
 * Either side ends the connection with vb_cm_disconnect(), which sends a DREQ. The other side gets
 * VB_CM_DISCONNECTED and also calls vb_cm_disconnect(), which answers with a DREP; then the first
 * side gets VB_CM_DISCONNECTED. Both are in TIMEWAIT until VB_CM_TIMEWAIT_EXIT.
 * vb_cm_connection_destroy() may come at any time: the machine sends the peer what it must know and
 * holds the communication ID until TIMEWAIT has passed.
 *
 * UD has no connection. vb_cm_resolve() sends a SIDR_REQ; the other side gets VB_CM_SIDR_REQUEST
 * and answers with vb_cm_answer(); VB_CM_SIDR_RESPONSE brings QPN and Q_Key.
 */
#ifndef VB_MGMT_CM_H
#define VB_MGMT_CM_H

#include "base/err.h"
#include "wire/flow.h"
#include "wire/mad.h"
#include "wire/number.h"
#include "wire/service.h"

#include <stdbool.h>
#include <stdint.h>

/* Defaults: the values that the kernel's rdma_cm puts into its messages. */
#define VB_CM_RESPONSE_TIMEOUT 20 /* 4.3 s */
#define VB_CM_RETRIES_MAX 15
#define VB_CM_PACKET_LIFE_TIME 16 /* 0.27 s in one direction */
#define VB_CM_SERVICE_TIMEOUT 24 /* of an MRA: 69 s */

struct vb_cm;
struct vb_cm_listener;
struct vb_cm_connection;

/* --- the machine ------------------------------------------------------------------------------ */

/* IBA 12.9.7.1 (active side) and 12.9.7.2. CLOSED: over, without or after TIMEWAIT. */
enum vb_cm_state {
	VB_CM_IDLE,
	VB_CM_REQ_SENT,
	VB_CM_MRA_REQ_RCVD,
	VB_CM_REQ_RCVD,
	VB_CM_MRA_REQ_SENT,
	VB_CM_REP_SENT,
	VB_CM_MRA_REP_RCVD,
	VB_CM_REP_RCVD,
	VB_CM_MRA_REP_SENT,
	VB_CM_CONNECTED,
	VB_CM_DREQ_SENT,
	VB_CM_DREQ_RCVD,
	VB_CM_TIMEWAIT,
	VB_CM_SIDR_REQ_SENT,
	VB_CM_SIDR_REQ_RCVD,
	VB_CM_CLOSED,
};

/*
 * One connection, published for other processes of the host: the data needed to notify its peer
 * that the connection is over (vb_cm_send_farewell()). A row holds no pointers. A row with an odd
 * generation is being written, or was being written when its process died.
 */
struct vb_cm_row {
	uint32_t generation;
	uint8_t state; /* enum vb_cm_state; VB_CM_IDLE: no peer to notify */
	uint32_t local_id;
	uint32_t remote_id;
	uint64_t transaction;
	vb_qpn remote_qpn;
	vb_qpn peer_qpn; /* the QP that MADs go to: 1 */
	struct vb_flow flow;
};

struct vb_cm_config {
	/* The start of communication IDs and transactions; different for each process. */
	uint64_t seed;
	uint64_t ca_guid; /* the same for all processes of the host, unique to the host */
	/* The upper bits of all communication IDs; different for each process of the host. */
	uint32_t id_prefix;
	uint32_t id_prefix_bits; /* 0 to 16 */
	uint8_t ack_delay; /* local CA ACK delay of the adapter, 4.096 us * 2^this */
	uint32_t connection_max; /* including those in TIMEWAIT; requests beyond it are refused */
	uint32_t listener_max;
	/*
	 * connection_max zeroed rows, or NULL; owned by the caller for the lifetime of the machine
	 */
	struct vb_cm_row *rows;
};

/*
 * VB_EINVAL: no connections, a prefix that does not fit its bits, or more connections than IDs with
 * that prefix.
 */
VB_MUST_USE vb_err vb_cm_create(const struct vb_cm_config *config, struct vb_cm **cm_out);

/*
 * Frees everything and sends nothing. A caller that wants to notify peers destroys the connections
 * first and takes the MADs.
 */
void vb_cm_destroy(struct vb_cm *cm);

/* The addressee of a MAD. One that is not for this machine may be for that of another process. */
struct vb_cm_addressee {
	enum vb_mad_kind kind;
	/* REQ, SIDR_REQ: `service`, and `address` if it is an IP service; otherwise `comm_id` */
	bool has_service;
	uint64_t service;
	struct vb_gid address; /* 0 if none */
	/* The receiver's; 0: a REJ that names only its sender's ID (see sender_id). */
	uint32_t comm_id;
	uint32_t sender_id;
	uint64_t sender_guid; /* 0 if not in the message */
};

enum vb_cm_verdict {
	VB_CM_TAKEN, /* for this machine, even if ignored there */
	VB_CM_NOT_MINE, /* nothing has changed */
	VB_CM_MALFORMED, /* not for any connection manager */
};

/* `flow` is that of the packet that arrived. *meaning is written for VB_CM_NOT_MINE. */
enum vb_cm_verdict vb_cm_receive(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn source,
				 const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				 struct vb_cm_addressee *addressee);

/*
 * Answers a MAD that belongs to no process of this host: REQ, REP and RTU with a REJ, DREQ with a
 * DREP, SIDR_REQ with a SIDR_REP. Other MADs get no answer.
 */
void vb_cm_refuse(struct vb_cm *cm, const struct vb_flow *flow, vb_qpn source, const uint8_t *bytes,
		  uint32_t length);

/*
 * Notifies the peer of a dead process's connection that the connection is over, once, by a DREQ,
 * DREP or REJ as its state demands. The contents of the row are not trusted.
 */
void vb_cm_send_farewell(struct vb_cm *cm, const struct vb_cm_row *row);

/*
 * No one receives messages at that address (its port is closed, or the host does not exist):
 * requests that wait for it have used up all retries.
 */
void vb_cm_on_unreachable(struct vb_cm *cm, const struct vb_gid *address, uint64_t now_ns);

/*
 * Moves the rows to this memory, zeroed as in the configuration: a forked process continues with a
 * copy of the machine.
 */
void vb_cm_set_rows(struct vb_cm *cm, struct vb_cm_row *rows);

/* A MAD to send. */
struct vb_cm_mad {
	struct vb_flow flow; /* source_port is 0: the sender chooses one */
	vb_qpn qpn;
	uint8_t bytes[VB_MAD_SIZE];
};
bool vb_cm_take_mad(struct vb_cm *cm, struct vb_cm_mad *mad);

/* VB_NEVER (base/timer.h) if no timer runs. */
uint64_t vb_cm_deadline(struct vb_cm *cm);
void vb_cm_fire_timers(struct vb_cm *cm, uint64_t now_ns);

struct vb_cm_counters {
	uint64_t received[VB_MAD_KIND_COUNT]; /* by kind - VB_MAD_REQ */
	uint64_t sent[VB_MAD_KIND_COUNT];
	uint64_t retried; /* among those sent */
	uint64_t duplicates;
	uint64_t ignored; /* did not fit the state of the connection */
	uint64_t malformed;
	uint64_t over_backlog; /* requests dropped; their senders try again */
	uint64_t answers_lost; /* refusals that were not taken in time */
};
const struct vb_cm_counters *vb_cm_counters(const struct vb_cm *cm);

/* --- listening -------------------------------------------------------------------------------- */

/* The requests that a listener takes, or'ed. */
#define VB_CM_IPV4 1u
#define VB_CM_IPV6 2u
#define VB_CM_RAW 4u /* requests whose service ID is no IP service */

struct vb_cm_service {
	uint64_t id;
	uint32_t takes; /* families; a wildcard IPv6 listener usually has VB_CM_IPV4 | VB_CM_IPV6 */
	struct vb_gid address; /* 0: any address */
};

/*
 * A request goes to the listener for its address, otherwise to the listener for any address. Up to
 * `backlog` (at least 1) requests wait for an answer of the program; further requests are dropped,
 * and their senders try again. VB_EBUSY: a listener for the same service, family and address
 * exists. VB_EINVAL: `takes` is empty, or the address is of a family that the listener does not
 * take.
 */
VB_MUST_USE vb_err vb_cm_listen(struct vb_cm *cm, const struct vb_cm_service *service,
				uint32_t backlog, void *owner,
				struct vb_cm_listener **listener_out);

/* Rejects requests that were not yet taken as events. Connections that were taken stay. */
void vb_cm_listener_destroy(struct vb_cm_listener *listener, uint64_t now_ns);

/* True if a listener would take this. A VB_CM_NOT_MINE of another process may be for this one. */
bool vb_cm_has_listener(const struct vb_cm *cm, const struct vb_cm_addressee *addressee);

/*
 * True if a listener that would have taken this was destroyed at most ago_ns ago (only the last few
 * are remembered). Some programs close and listen again between connections: their peers should not
 * notice.
 */
bool vb_cm_had_listener(const struct vb_cm *cm, const struct vb_cm_addressee *addressee,
			uint64_t now_ns, uint64_t ago_ns);

/* --- connections ------------------------------------------------------------------------------ */

/* The caller owns the connection. VB_ENOSPC: connection_max is reached. */
VB_MUST_USE vb_err vb_cm_connection_create(struct vb_cm *cm, void *owner,
					   struct vb_cm_connection **connection_out);
/*
 * Allowed in any state, as in the kernel: a REJ withdraws a pending request or answer, a connected
 * peer gets a DREQ, a peer that asked to disconnect gets a DREP. The connection produces no more
 * events.
 */
void vb_cm_connection_destroy(struct vb_cm_connection *connection, uint64_t now_ns);

void vb_cm_connection_set_owner(struct vb_cm_connection *connection, void *owner);
enum vb_cm_state vb_cm_connection_state(const struct vb_cm_connection *connection);
uint32_t vb_cm_connection_id(const struct vb_cm_connection *connection);

enum vb_cm_transport { VB_CM_RC, VB_CM_UC, VB_CM_XRC };

/*
 * Enhanced connection establishment: options that two adapters of one vendor agree upon. 0 for
 * none.
 */
struct vb_cm_ece {
	uint32_t vendor; /* 24 bits */
	uint32_t options;
};

struct vb_cm_private {
	const void *data;
	uint32_t length; /* at most the room in the message (vb_mad_private_size()) */
};

struct vb_cm_request {
	uint64_t service;
	/* NULL without IP addresses; otherwise takes 36 bytes of the private data */
	const struct vb_service_ip *ip;
	struct vb_flow flow; /* from us to the peer: GIDs, flow label, traffic class, hop limit */
	enum vb_cm_transport transport;
	vb_qpn qpn;
	uint32_t qkey;
	vb_psn starting_psn; /* the first PSN that the peer sends: our QP's receive PSN */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	bool has_flow_control;
	bool has_srq;
	uint8_t mtu; /* 1 to 5 */
	uint8_t packet_rate;
	uint8_t service_level;
	uint16_t pkey;
	/* VB_CM_PACKET_LIFE_TIME; one less than the ACK timeout that the program wants */
	uint8_t packet_life_time;
	uint8_t response_timeout; /* VB_CM_RESPONSE_TIMEOUT */
	uint8_t retries_max; /* VB_CM_RETRIES_MAX */
	struct vb_cm_ece ece;
	struct vb_cm_private private_data;
};

struct vb_cm_reply {
	vb_qpn qpn;
	uint32_t qkey;
	vb_psn starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t rnr_retry_count;
	bool has_flow_control;
	bool has_srq;
	struct vb_cm_ece ece;
	struct vb_cm_private private_data;
};

struct vb_cm_rejection {
	/* enum vb_mad_reason; VB_MAD_CONSUMER_DEFINED for a reason of the program */
	uint16_t reason;
	const void *info; /* the ARI, up to VB_MAD_INFO_SIZE */
	uint32_t info_length;
	struct vb_cm_private private_data;
};

/*
 * The state that each function expects is named beside it. VB_EINVAL: another state, or private
 * data that does not fit; nothing has changed then.
 */
VB_MUST_USE vb_err vb_cm_connect(struct vb_cm_connection *connection,
				 const struct vb_cm_request *request, uint64_t now_ns); /* IDLE */
VB_MUST_USE vb_err vb_cm_accept(struct vb_cm_connection *connection,
				const struct vb_cm_reply *reply, uint64_t now_ns); /* REQ_RCVD */
VB_MUST_USE vb_err vb_cm_reject(struct vb_cm_connection *connection,
				const struct vb_cm_rejection *rejection,
				uint64_t now_ns); /* before CONNECTED */
VB_MUST_USE vb_err vb_cm_establish(struct vb_cm_connection *connection,
				   const struct vb_cm_private *private_data,
				   uint64_t now_ns); /* REP_RCVD; private_data may be NULL */
/*
 * A packet has arrived at the QP of an accepted connection: the peer is ready, and the RTU is late
 * or lost.
 */
void vb_cm_on_communication(struct vb_cm_connection *connection, uint64_t now_ns);
/* In CONNECTED sends a DREQ, in DREQ_RCVD a DREP. private_data may be NULL. */
VB_MUST_USE vb_err vb_cm_disconnect(struct vb_cm_connection *connection,
				    const struct vb_cm_private *private_data, uint64_t now_ns);

/*
 * The attributes for a QP of this connection. Valid after both sides have sent theirs (from
 * REQ_RCVD and REP_RCVD on).
 */
struct vb_cm_qp {
	enum vb_cm_transport transport;
	struct vb_flow flow; /* to the peer's QP */
	vb_qpn remote_qpn;
	vb_psn send_psn;
	vb_psn receive_psn;
	uint16_t pkey;
	uint8_t mtu; /* 1 to 5 */
	uint8_t responder_resources; /* max_dest_rd_atomic */
	uint8_t initiator_depth; /* max_rd_atomic */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t ack_timeout;
	uint8_t service_level;
	uint8_t packet_rate;
};
void vb_cm_connection_qp(const struct vb_cm_connection *connection, struct vb_cm_qp *qp);

/* --- UD: service ID resolution ---------------------------------------------------------------- */

struct vb_cm_resolution {
	uint64_t service;
	const struct vb_service_ip *ip;
	struct vb_flow flow;
	uint16_t pkey;
	uint8_t response_timeout;
	uint8_t retries_max;
	struct vb_cm_private private_data;
};

struct vb_cm_sidr {
	uint8_t status; /* enum vb_mad_sidr_status */
	vb_qpn qpn;
	uint32_t qkey;
	struct vb_cm_ece ece;
	struct vb_cm_private private_data;
};

VB_MUST_USE vb_err vb_cm_resolve(struct vb_cm_connection *connection,
				 const struct vb_cm_resolution *resolution,
				 uint64_t now_ns); /* IDLE */
VB_MUST_USE vb_err vb_cm_answer(struct vb_cm_connection *connection,
				const struct vb_cm_sidr *answer,
				uint64_t now_ns); /* SIDR_REQ_RCVD */

/* --- events ----------------------------------------------------------------------------------- */

/* In the order in which a connection can have them. A connection has each at most once. */
enum vb_cm_event_kind {
	VB_CM_REQUEST, /* passive: a new connection; `message` is the REQ */
	VB_CM_SIDR_REQUEST, /* the same for a SIDR_REQ; its flow leads to the sender */
	VB_CM_RESPONSE, /* active: the REP */
	VB_CM_SIDR_RESPONSE, /* the SIDR_REP, whatever its status */
	VB_CM_ESTABLISHED, /* passive; no message */
	VB_CM_REJECTED, /* The REJ; also when the peer withdraws its request or its answer. */
	VB_CM_UNREACHABLE, /* no answer to REQ, REP or SIDR_REQ; no message */
	VB_CM_DISCONNECTED, /* the DREQ or DREP, or none if no DREP came (is_timeout) */
	VB_CM_TIMEWAIT_EXIT, /* no message */
};
#define VB_CM_EVENT_COUNT 9

struct vb_cm_event {
	enum vb_cm_event_kind kind;
	struct vb_cm_connection *connection;
	void *owner; /* of the connection; for a new one, of the listener */
	struct vb_cm_listener *listener; /* that received the new connection, otherwise NULL */
	bool has_message;
	bool is_timeout;
	/*
	 * REQUEST, SIDR_REQUEST: the private data began with addresses, which were removed from it.
	 */
	bool has_ip;
	struct vb_service_ip ip;
	struct vb_flow flow; /* to the peer */
	struct vb_mad message;
	uint32_t private_length; /* of message.private_data */
};
bool vb_cm_take_event(struct vb_cm *cm, struct vb_cm_event *event);

const char *vb_cm_state_describe(enum vb_cm_state state);
const char *vb_cm_event_describe(enum vb_cm_event_kind kind);

#endif
