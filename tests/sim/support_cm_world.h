/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Worlds of connection managers, each made from its seed alone: hosts with several processes, and
 * programs that connect, accept, reject, are slow, disconnect and leave, on a network that loses,
 * duplicates, delays and reorders messages; processes die, and some are started again. A model that
 * knows only the calls and events of the programs decides what the result must be: both ends of an
 * attempt are connected with the same pair of QPs, or both know that they are not.
 */
#ifndef VB_TESTS_SIM_SUPPORT_CM_WORLD_H
#define VB_TESTS_SIM_SUPPORT_CM_WORLD_H

#include "base/prng.h"
#include "mgmt/cm.h"
#include "sim/agenda.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define CM_HOSTS_MAX 3
#define CM_PROCESSES_MAX 3 /* of a host */
#define CM_PORTS 3
#define CM_CONNECTIONS_MAX 64 /* of a process */
#define CM_ATTEMPTS_MAX 24
#define CM_ENDS_MAX 512

/* How severe the faults are. In a mild world no attempt can run out of retries. */
enum cm_mood { CM_CALM, CM_MILD, CM_HOSTILE, CM_DEADLY };

struct cm_process {
	struct vb_cm *cm; /* NULL while it is dead */
	uint32_t host;
	uint32_t lives; /* how often it was started */
	uint32_t next_qpn;
	uint64_t wake_ns; /* the earliest wake-up on the agenda */
	struct vb_cm_listener *listeners[CM_PORTS];
	uint64_t listening_ns[CM_PORTS]; /* since when */
	struct vb_cm_row rows[CM_CONNECTIONS_MAX];
};

/* The phase of an attempt as the program at one end sees it. */
enum cm_phase {
	CM_ASKING, /* the client has connected */
	CM_ASKED, /* the server has the request */
	CM_ANSWERED, /* the server has accepted */
	CM_OFFERED, /* the client has the answer */
	CM_UP,
	CM_CLOSING, /* the program has asked for the end */
	CM_LEFT, /* the peer has asked for the end */
	CM_OVER,
};

struct cm_end {
	enum cm_phase phase;
	bool is_server;
	bool is_sidr;
	uint32_t attempt;
	uint32_t process;
	uint32_t life; /* of the process */
	struct vb_cm_connection *connection; /* NULL once it is destroyed */
	uint32_t turn; /* a decision on the agenda is for this turn, or void */
	vb_qpn qpn;
	vb_psn psn;
	vb_qpn peer_qpn;
	uint32_t host; /* a client's: the host it asked, for which port, and when */
	uint32_t port;
	uint64_t asked_ns;
	uint32_t peer_end; /* the end that the client established with; CM_ENDS_MAX: none */
	bool was_up;
	bool is_deserted; /* its own program ended it before it was up */
	bool is_mourned; /* its process died, and another process of its host notified the peer */
	bool was_exited; /* TIMEWAIT_EXIT came */
	uint64_t timewait_ns; /* when its TIMEWAIT began at the earliest; 0: none */
};

struct cm_coverage {
	uint64_t sent[VB_MAD_KIND_COUNT];
	uint64_t events[VB_CM_EVENT_COUNT];
	uint64_t lost, doubled, delayed, nobodys, farewells;
	uint64_t pairs; /* connections that were up at both ends */
	uint64_t stale;
};

struct cm_world {
	uint64_t seed;
	uint64_t now_ns;
	uint64_t hash;
	uint64_t fault_end_ns;
	enum cm_mood mood;
	struct vb_prng prng;
	struct vb_agenda agenda;
	uint32_t host_count;
	uint32_t process_count; /* process i is on host i % host_count */
	struct cm_process processes[CM_HOSTS_MAX * CM_PROCESSES_MAX];
	uint32_t loss, doubling, delay; /* in 1/1000 */
	uint32_t loss_budget;
	uint32_t lost_count;
	uint32_t death_count;
	uint32_t attempt_count;
	uint32_t client_ends[CM_ATTEMPTS_MAX];
	uint32_t end_count;
	struct cm_end ends[CM_ENDS_MAX];
	uint32_t mad_count;
	bool is_finishing; /* programs end all their connections */
	struct cm_coverage *coverage; /* owned by the caller */
	FILE *trace; /* messages and events in words, or NULL; owned by the caller */
	char violation[256]; /* "" while all rules hold */
};

/* Runs a whole life and checks everything. False: `violation` names the broken rule. */
bool cm_world_run(struct cm_world *world, uint64_t seed, struct cm_coverage *coverage, FILE *trace);

/* --- shared by the two files of a world ------------------------------------------------------- */

enum cm_item {
	CM_ITEM_PACKET, /* object: the packet; index: the host */
	CM_ITEM_WAKE, /* index: the process */
	CM_ITEM_CONNECT, /* index: the attempt */
	CM_ITEM_DECIDE, /* index: the end; object: its turn */
	CM_ITEM_DATA, /* index: the server's end that gets the first packet of its client */
	CM_ITEM_DEATH, /* index: the process */
	CM_ITEM_BIRTH,
	CM_ITEM_RELISTEN, /* index: the process */
};

/* Adds a line to the trace. */
__attribute__((format(printf, 2, 3))) void cm_note(struct cm_world *world, const char *format, ...);
__attribute__((format(printf, 2, 3))) void cm_violate(struct cm_world *world, const char *format,
						      ...);
void cm_plan(struct cm_world *world, uint64_t delay_ns, enum cm_item kind, uint32_t index,
	     void *object);
struct vb_gid cm_address(uint32_t host);

void cm_program_connect(struct cm_world *world, uint32_t attempt);
void cm_program_on_event(struct cm_world *world, uint32_t process, const struct vb_cm_event *event);
void cm_program_decide(struct cm_world *world, uint32_t end, uint32_t turn);
void cm_program_on_data(struct cm_world *world, uint32_t end);
void cm_program_listen(struct cm_world *world, uint32_t process);
void cm_program_relisten(struct cm_world *world, uint32_t process);
/* Ends every connection that is up; rejects every undecided request. */
void cm_program_finish(struct cm_world *world);
void cm_program_on_death(struct cm_world *world, uint32_t process, bool is_mourned);
/* Checks the view of both ends of each attempt, when nothing is outstanding. */
void cm_program_check_rest(struct cm_world *world);
void cm_program_check_end(struct cm_world *world);

#endif
