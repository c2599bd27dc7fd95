/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stations: processes with one UD QP each that send notes to a multicast group, and readers that
 * count on a board how often each note arrived.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_STATION_H
#define VB_TESTS_LIVE_SUPPORT_STATION_H

#include "support_link.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

enum {
	READERS = 4,
	SENDERS = 24,
	SEQUENCES = 4096,
	RECEIVES = 4096,
	SLOT = 64, /* GRH and a note */
	GRH = 40,
	QKEY = 7,
	BURST = 16,
	SELF = 0, /* the reader that also sends */
	NOBODY = READERS,
};

/* The content of a datagram. */
struct note {
	uint32_t sender, sequence;
};

/* The board, in memory that all processes share. */
struct board {
	_Atomic uint32_t ready_count;
	_Atomic bool shall_close; /* asks a reader to close its descriptors */
	uint32_t qpn[READERS];
	/* How often each reader got each note. */
	_Atomic uint32_t counts[READERS][SENDERS][SEQUENCES];
};

extern struct board *board;

/* Makes two hosts with a cable between them, and a board. */
void make_network(void);

struct place {
	enum end end;
	const char *path; /* VERBATIM_PATH */
	const char *device;
	const char *address; /* the station sends from this GID … */
	const char *group; /* … and the group it reads */
};

struct station {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* of the group */
	uint32_t reader; /* or NOBODY */
	uint8_t memory[RECEIVES * SLOT];
};

/* Opens a station at its place. A reader joins the group and has that number; NOBODY only sends. */
void open_station(struct station *station, const struct place *place, uint32_t reader);
struct ibv_ah *make_handle(struct station *station, const char *from, const char *to);
/*
 * Makes an RC QP that is half connected. Only that makes two stations meet that have no group in
 * common.
 */
void connect_to(struct station *station, const char *address, uint32_t qpn);

/* Counts the notes that have arrived. */
void serve(struct station *station);
void send_note(struct station *station, uint32_t sender, uint32_t sequence);
void send_note_to(struct station *station, struct ibv_ah *ah, uint32_t qpn, struct note note);

/* How often a reader got one note, and how many notes it got in all. */
uint32_t count_of(uint32_t reader, uint32_t sender, uint32_t sequence);
uint32_t count_all(uint32_t reader);
/* Waits until all readers of a bit set have the note. */
void await_note(struct station *station, uint32_t readers, uint32_t sender, uint32_t sequence);
/* Expects the first `count` notes of a sender once each. */
void expect_once(uint32_t reader, uint32_t sender, uint32_t count);
void expect_no_more_than_once(uint32_t reader);

/*
 * Starts a child that does not outlive its parent; starts a child that reads; kills a child, which
 * must not have failed before.
 */
pid_t fork_station(void);
pid_t start_reader(uint32_t reader, struct place place);
void end_reader(pid_t child);

/* The event counters of an adapter. */
struct counts {
	bool has_shm_links;
	unsigned long sent, received, lost;
	unsigned long copies; /* copies that came by the wire as well */
	bool has_qp_on_shm_link;
};

/* Asks an adapter for its counters as `verbatim stat` does. */
struct counts ask(pid_t pid);
/*
 * Asks after the wire has delivered its copies of everything that came by shared-memory links. A
 * copy that would be delivered twice has then been delivered twice.
 */
struct counts ask_when_quiet(pid_t pid, uint32_t reader);
/* Waits until nothing arrives any more, for tests where copies may be lost. */
void await_rest(pid_t pid, uint32_t reader);
/*
 * Sends to the readers until one gets a note by a shared-memory link. Returns the next sequence
 * number.
 */
uint32_t send_until_by_shm_link(struct station *station, uint32_t readers, pid_t pid,
				uint32_t sequence);

#endif
