/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internals of QP 1, and the messages its processes exchange. Both ends are this program, of
 * one user on one host, but perhaps in different versions: each message begins with its kind, which
 * changes with its layout, and unknown messages are discarded.
 */
#ifndef VB_HOST_QP1_QP1_PRIV_H
#define VB_HOST_QP1_QP1_PRIV_H

#include "host/qp1/qp1.h"

#include "base/list.h"
#include "base/timer.h"
#include "host/registry/mail.h"
#include "nic/qp1_packet.h"

#define VB_QP1_LETTERS_MAX 24 /* in a message: the kernel queues few of them for a socket */
#define VB_QP1_QUEUE_MAX 1024
#define VB_QP1_ROWS 65536 /* connections of a process */
#define VB_QP1_FAMILIES 3 /* VB_CM_IPV4, VB_CM_IPV6, VB_CM_RAW */

/*
 * How long a request waits for a process to listen again, if one did; and how long any MAD waits
 * for a process that does not keep up.
 */
#define VB_QP1_PATIENCE_NS 500000000u

/* A MAD on its way to its process. */
struct vb_qp1_letter {
	struct vb_flow flow;
	vb_qpn source;
	uint64_t arrived_ns; /* at this host */
	uint8_t bytes[VB_MAD_SIZE];
};

/* --- messages --------------------------------------------------------------------------------- */

enum vb_qp1_message_kind {
	VB_QP1_LETTERS = 0x76623201,
	/*
	 * The sender lives: comes with a descriptor that signals its death, because the other end
	 * then closes.
	 */
	VB_QP1_PRESENCE = 0x76623205,
	VB_QP1_ROWS_OF = 0x76623204, /* the message found at that descriptor */
};

struct vb_qp1_letters {
	uint32_t kind;
	uint32_t count;
	struct vb_qp1_letter letters[VB_QP1_LETTERS_MAX];
};

struct vb_qp1_presence {
	uint32_t kind;
	uint32_t is_new; /* and asks which others live */
	uint32_t number; /* of the sender */
	uint32_t reserved;
	uint64_t token; /* unique to each adapter */
};

/* Comes with a descriptor of the rows, and one of the process (pidfd) if the kernel provides it. */
struct vb_qp1_rows_of {
	uint32_t kind;
	uint32_t row_size;
	uint32_t row_count;
};

/* --- the parts -------------------------------------------------------------------------------- */

/* Descriptors that wake the owner. */
enum vb_qp1_source_kind { VB_QP1_BOX, VB_QP1_NAME_SOCKET, VB_QP1_WATCH };

struct vb_qp1_source {
	enum vb_qp1_source_kind kind;
	int fd; /* or negative */
	struct vb_mail_box *box; /* the box that has this descriptor, or NULL */
};

/* A service's name for one family of addresses. */
struct vb_qp1_name_socket {
	struct vb_qp1_source source;
	struct vb_qp1_name *name; /* the name it belongs to */
};

/* A service that this process listens on, or listened on a moment ago. */
struct vb_qp1_name {
	struct vb_list_node node;
	uint64_t service;
	struct vb_gid address; /* or zero: any */
	uint32_t families;
	bool is_closed; /* incoming requests are held … */
	uint64_t closes_ns; /* … until then */
	struct vb_qp1_name_socket name_sockets[VB_QP1_FAMILIES];
};

/* A MAD that waits to be dispatched. */
struct vb_qp1_queued {
	struct vb_qp1_letter letter;
	struct vb_cm_addressee addressee;
	bool is_held; /* a process has listened, and may again */
};

/* Another adapter: a process that survives it notifies its peers. */
struct vb_qp1_watch {
	struct vb_qp1_source source;
	struct vb_list_node node;
	uint64_t token;
	bool is_dead;
	int rows_fd; /* negative as long as it lives */
	struct vb_qp1_rows_of rows;
	uint32_t row_next;
};

/* How other processes learn of our death. */
struct vb_qp1_liveness {
	uint64_t token;
	struct vb_cm_row *rows;
	int own_end; /* closed by the kernel when we die … */
	/*
	 * … which is seen here. With a user, it holds a message for the first process that takes
	 * it.
	 */
	int others_end;
};

struct vb_qp1 {
	struct vb_nic *nic;
	uint32_t number;
	struct vb_mail_user user_id;
	/* has no connections: it refuses, and sends last messages */
	struct vb_cm *machine;

	int epoll;
	struct vb_qp1_source box;
	struct vb_list_node names;
	struct vb_list_node watches;
	uint64_t closes_ns; /* of the next closed name; or VB_NEVER */
	bool has_steering_claim;
	uint64_t claimed_ns; /* when it last claimed the MADs of the host */
	uint64_t farewell_ns; /* when more last messages are due; or VB_NEVER */

	bool is_attached;
	bool has_user; /* and the user has a machine: its functions may be called */
	struct vb_qp1_user user;
	uint64_t user_ns; /* its deadline */
	struct vb_qp1_liveness life;

	bool is_send_requested; /* there may be MADs to send … */
	uint64_t send_ns; /* … but not before this */

	struct vb_qp1_queued *queue;
	uint32_t queue_count;
	uint64_t dispatch_ns; /* when to try next; VB_NEVER: nothing is queued */
	struct vb_qp1_letters message; /* sent or received last */
};

/* --- qp1.c --- */

/* There may be MADs to send. */
void vb_qp1_request_send(struct vb_qp1 *qp1);
/* The user's functions are no longer called. */
void vb_qp1_forget_user(struct vb_qp1 *qp1);

/* Finds out what a MAD is for; false if it is not a MAD. */
bool vb_qp1_interpret(struct vb_qp1 *qp1, const struct vb_qp1_letter *letter,
		      struct vb_cm_addressee *addressee);

/* Asks the user's machine. Writes *meaning if the MAD is not the machine's own. */
enum vb_cm_verdict vb_qp1_offer(struct vb_qp1 *qp1, uint64_t now_ns,
				const struct vb_qp1_letter *letter,
				struct vb_cm_addressee *addressee);

/* Takes some of the mail in a box, or at the socket of a name. False when there is no more. */
bool vb_qp1_receive_from_box(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_mail_box *box,
			     const struct vb_qp1_name *name);

/* --- qp1_dispatch.c --- */

/* Puts a MAD into the queue. If the queue is full, the MAD is dropped. */
void vb_qp1_enqueue(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letter *letter,
		    const struct vb_cm_addressee *addressee, bool is_held);
/* Sends the MADs in the queue to their processes, and refuses those that belong to no process. */
void vb_qp1_dispatch(struct vb_qp1 *qp1, uint64_t now_ns);
/*
 * Takes MADs that another process has sent us: for our communication IDs, or for a service of ours.
 */
void vb_qp1_on_letters(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letters *letters,
		       const struct vb_qp1_name *name);

struct vb_mail_name vb_qp1_box_name(const struct vb_mail_user *user_id, uint32_t number);

/* --- qp1_services.c --- */

/*
 * The service that a closed name covers: a port, in any space. Programs that have talked over a
 * port of one space go on in another, and their peers are faster.
 */
uint64_t vb_qp1_closed_service(uint64_t service);
struct vb_mail_name vb_qp1_service_name(const struct vb_mail_user *user_id,
					const struct vb_qp1_name *name, uint32_t family,
					bool is_closed);
/* Whether this process has that name; compares service, address and is_closed. */
bool vb_qp1_has_name(const struct vb_qp1 *qp1, const struct vb_qp1_name *wanted, uint32_t family);
VB_MUST_USE bool vb_qp1_add_source(struct vb_qp1 *qp1, struct vb_qp1_source *source,
				   uint32_t events);
/* Also closes the descriptor. */
void vb_qp1_remove_source(struct vb_qp1 *qp1, struct vb_qp1_source *source);
/* Opens the descriptors of all names again, or closes them. */
void vb_qp1_open_names(struct vb_qp1 *qp1);
void vb_qp1_close_names(struct vb_qp1 *qp1);
void vb_qp1_free_names(struct vb_qp1 *qp1);
void vb_qp1_end_closed_names(struct vb_qp1 *qp1, uint64_t now_ns);

/* --- qp1_death.c --- */

/* The other processes learn that we live, and we learn of them. */
VB_MUST_USE bool vb_qp1_open_liveness(struct vb_qp1 *qp1);
void vb_qp1_close_liveness(struct vb_qp1 *qp1);

/* The rows of a user: other processes read them when we have died. */
VB_MUST_USE vb_err vb_qp1_open_rows(struct vb_qp1 *qp1);
void vb_qp1_close_rows(struct vb_qp1 *qp1);
/* To be called in a forked child: other processes do not see what it writes there. */
void vb_qp1_forget_rows(struct vb_qp1 *qp1);

void vb_qp1_on_presence(struct vb_qp1 *qp1, const void *bytes, struct vb_mail *mail);
void vb_qp1_on_watch(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_watch *watch);
void vb_qp1_send_farewells(struct vb_qp1 *qp1, uint64_t now_ns);
void vb_qp1_forget_watches(struct vb_qp1 *qp1);

#endif
