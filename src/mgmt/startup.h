/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set-up of one iWARP connection (RFC 5044, 7.1; RFC 6581) as a state machine without I/O:
 * bytes of a TCP stream, calls of the program and the time go in; bytes, events and the next
 * deadline come out. The owner has the socket and does with it what vb_startup_wants() says. The
 * machine lies in the owner's memory, has no pointers out of it, and needs no end: any state may
 * be forgotten.
 *
 * The initiator:
 *
 *	vb_startup_init(&startup, &config);
 *	vb_startup_connect(&startup, &offer, now_ns);
 *	…wants VB_STARTUP_CONNECT: opens a TCP connection, and then vb_startup_on_connected(), or
 *	  vb_startup_on_unconnected()…
 *
 * The responder, with a TCP connection that it has accepted:
 *
 *	vb_startup_init(&startup, &config);
 *	vb_startup_await(&startup, now_ns);
 *
 * Both, after each call:
 *
 *	bytes = vb_startup_output(&startup, &length);	what the socket takes: vb_startup_on_sent()
 *	while (vb_startup_take_event(&startup, &event)) …
 *	…does what vb_startup_wants() says, and comes again at vb_startup_deadline()…
 *
 * Bytes that arrive go to vb_startup_receive() until the state is VB_STARTUP_UP. From then on the
 * stream belongs to the QP: it sends as soon as vb_startup_may_send() says so, and reports its
 * first FPDU by vb_startup_on_fpdu().
 *
 * The events are those of the other connection manager, as the kernel's iwcm has them. An
 * initiator gets VB_CM_ESTABLISHED at once: no program has to confirm a reply. Nothing is
 * repeated, and there is no TIMEWAIT, for TCP has both.
 */
#ifndef VB_MGMT_STARTUP_H
#define VB_MGMT_STARTUP_H

#include "base/err.h"
#include "mgmt/cm.h"
#include "wire/mpa.h"

#include <stdbool.h>
#include <stdint.h>

/* As the kernel's siw has them. */
#define VB_STARTUP_REPLY_NS 10000000000u /* an initiator waits for a connection, for a reply */
#define VB_STARTUP_REQUEST_NS 5000000000u /* a responder waits for a request */
#define VB_STARTUP_LINGER_NS 1000000000u /* a peer may take the last bytes until then */
/*
 * An initiator should send first (RFC 5044, 7.1.2): siw takes an FPDU right behind the reply for
 * an error. Programs whose server sends first work all the same if the responder waits this long.
 */
#define VB_STARTUP_HOLD_NS 50000000u

enum vb_startup_state {
	VB_STARTUP_IDLE,
	VB_STARTUP_CONNECTING, /* initiator: no TCP connection yet */
	VB_STARTUP_REQUEST_SENT, /* initiator */
	VB_STARTUP_AWAIT_REQUEST, /* responder */
	VB_STARTUP_REQUEST_RCVD, /* responder: the program decides */
	VB_STARTUP_REPLY_SENT, /* responder: accepted, but not all of the reply has left */
	VB_STARTUP_UP, /* the stream belongs to the QP */
	VB_STARTUP_CLOSING, /* last bytes leave; what comes is thrown away */
	VB_STARTUP_CLOSED,
};

/* Why it did not come up. */
enum vb_startup_reason {
	VB_STARTUP_NO_REASON,
	VB_STARTUP_REJECTED, /* by the peer's program */
	VB_STARTUP_REFUSED, /* nobody listens at that port */
	VB_STARTUP_TIMEOUT, /* no such host, or no answer */
	VB_STARTUP_LOST, /* the stream ended */
	VB_STARTUP_MALFORMED, /* not a frame of MPA, or one that may not come now */
	VB_STARTUP_MARKERS, /* the peer demands markers */
	VB_STARTUP_DEPTH, /* the peer demands more READs than the adapter takes */
	VB_STARTUP_RTR, /* no RTR that both ends know */
	VB_STARTUP_GONE, /* the program gave it up */
};

/* What the owner is to do with the socket. */
enum vb_startup_wish {
	VB_STARTUP_NOTHING,
	VB_STARTUP_CONNECT, /* a new TCP connection; an old one is closed first */
	VB_STARTUP_FINISH, /* all bytes are out: shut down this direction, and read on */
	VB_STARTUP_DROP, /* close it */
};

struct vb_startup_config {
	uint16_t ird_max; /* of the adapter; at most VB_MPA_DEPTH_MAX */
	uint16_t ord_max;
	bool wants_crc; /* otherwise there is a CRC if the peer asks for it */
};

/* What an end offers: of a connect or an accept. */
struct vb_startup_offer {
	uint16_t ird; /* responder_resources */
	uint16_t ord; /* initiator_depth */
	const void *private_data;
	uint32_t private_length;
};

/* What both have agreed upon; valid in VB_STARTUP_UP. */
struct vb_startup_terms {
	bool has_crc;
	bool takes_long_fpdus; /* the peer does */
	uint16_t ird;
	uint16_t ord;
	uint8_t rtr; /* one of VB_MPA_RTR_… that the initiator sends first; 0 for none */
};

struct vb_startup_event {
	enum vb_cm_event_kind kind;
	enum vb_startup_reason reason; /* of REJECTED and UNREACHABLE */
	/*
	 * REQUEST and ESTABLISHED: READs that this end may be asked for, and may ask for. A peer
	 * that did not say it leaves what the adapter has (a request), or what was offered.
	 */
	uint16_t ird;
	uint16_t ord;
	/* Of the request, reply or rejection; valid until the machine gets more bytes. */
	const uint8_t *private_data;
	uint32_t private_length;
};

struct vb_startup {
	struct vb_startup_config config;
	enum vb_startup_state state;
	enum vb_startup_reason reason;
	enum vb_startup_wish wish;
	bool is_initiator;
	bool was_lost; /* initiator: the first try ended without a reply */
	bool holds; /* responder: its QP may not send yet */
	bool awaits_rtr; /* responder: peer-to-peer */
	uint32_t events; /* a bit for each kind */
	uint64_t deadline_ns;
	struct vb_startup_terms terms;
	struct vb_mpa_frame mine; /* the request, to be stored once more for revision 1 */
	struct vb_mpa_frame peer; /* its request or reply */
	uint32_t received_length;
	uint32_t output_length;
	uint32_t output_sent;
	uint8_t received[VB_MPA_FRAME_MAX];
	uint8_t output[VB_MPA_FRAME_MAX];
};

void vb_startup_init(struct vb_startup *startup, const struct vb_startup_config *config);

/* --- calls of the program --------------------------------------------------------------------- */

/*
 * The state that each function expects is named beside it. VB_EINVAL: another state (the peer may
 * have left), or private data that does not fit; nothing has changed then. Depths beyond those of
 * the adapter are lowered.
 */
VB_MUST_USE vb_err vb_startup_connect(struct vb_startup *startup,
				      const struct vb_startup_offer *offer,
				      uint64_t now_ns); /* IDLE */
void vb_startup_await(struct vb_startup *startup, uint64_t now_ns); /* IDLE */
VB_MUST_USE vb_err vb_startup_accept(struct vb_startup *startup,
				     const struct vb_startup_offer *offer,
				     uint64_t now_ns); /* REQUEST_RCVD */
VB_MUST_USE vb_err vb_startup_reject(struct vb_startup *startup, const void *private_data,
				     uint32_t private_length, uint64_t now_ns); /* REQUEST_RCVD */
/* In any state: the program wants no more of it. A request that waits for an answer is rejected. */
void vb_startup_abandon(struct vb_startup *startup, uint64_t now_ns);

/* --- the socket ------------------------------------------------------------------------------- */

void vb_startup_on_connected(struct vb_startup *startup, uint64_t now_ns);
/* TCP says that nobody listens there, or that the host does not answer. */
void vb_startup_on_unconnected(struct vb_startup *startup, bool is_refused);

/*
 * Returns how many of the bytes belong to the set-up. The others are the beginning of the FPDUs;
 * there are some only in VB_STARTUP_UP.
 */
uint32_t vb_startup_receive(struct vb_startup *startup, const uint8_t *bytes, uint32_t length,
			    uint64_t now_ns);
/* FIN or reset. */
void vb_startup_on_ended(struct vb_startup *startup, uint64_t now_ns);

/* Bytes for the socket, valid until the next call. *length is 0 if there are none. */
const uint8_t *vb_startup_output(const struct vb_startup *startup, uint32_t *length);
void vb_startup_on_sent(struct vb_startup *startup, uint32_t length, uint64_t now_ns);

/* VB_STARTUP_CONNECT, FINISH and DROP stay until the next call that changes the state. */
enum vb_startup_wish vb_startup_wants(const struct vb_startup *startup);

/* --- the QP ----------------------------------------------------------------------------------- */

/* The first FPDU of the peer was right. */
void vb_startup_on_fpdu(struct vb_startup *startup);
bool vb_startup_may_send(const struct vb_startup *startup);

/* --- time and events -------------------------------------------------------------------------- */

/* VB_NEVER (base/timer.h) if no timer runs. */
uint64_t vb_startup_deadline(const struct vb_startup *startup);
void vb_startup_fire_timers(struct vb_startup *startup, uint64_t now_ns);

bool vb_startup_take_event(struct vb_startup *startup, struct vb_startup_event *event);

const char *vb_startup_state_describe(enum vb_startup_state state);
const char *vb_startup_reason_describe(enum vb_startup_reason reason);

#endif
