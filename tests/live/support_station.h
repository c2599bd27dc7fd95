/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stations: processes with a UD QP each that send notes to a multicast group, and readers that count on a board how often they got which.
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
	SELF = 0, /* the reader that sends, too */
	NOBODY = READERS,
};

/* What a datagram says. */
struct note {
	uint32_t sender, sequence;
};

/* In memory that all have. */
struct board {
	_Atomic uint32_t ready_count;
	_Atomic bool shall_close; /* a reader its descriptors */
	uint32_t qpn[READERS];
	_Atomic uint32_t counts[READERS][SENDERS][SEQUENCES]; /* how often each got each */
};

extern struct board *board;

/* Two hosts with a cable between them, and a board. */
void make_network(void);

struct place {
	enum end end;
	const char *path; /* VERBATIM_PATH */
	const char *device;
	const char *address; /* whose GID it sends from … */
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

/* At its place. A reader is in the group, and has that number; NOBODY only sends. */
void open_station(struct station *station, const struct place *place, uint32_t reader);
struct ibv_ah *make_handle(struct station *station, const char *from, const char *to);
/* Only that brings two to meet who have no group in common: an RC QP that is half connected. */
void connect_to(struct station *station, const char *address, uint32_t qpn);

/* Counts what has come. */
void serve(struct station *station);
void send_note(struct station *station, uint32_t sender, uint32_t sequence);
void send_note_to(struct station *station, struct ibv_ah *ah, uint32_t qpn, struct note note);

/* How often a reader got one, and all. */
uint32_t count_of(uint32_t reader, uint32_t sender, uint32_t sequence);
uint32_t count_all(uint32_t reader);
/* Until all readers of a bit set have it. */
void await_note(struct station *station, uint32_t readers, uint32_t sender, uint32_t sequence);
/* The first ones of a sender. */
void expect_once(uint32_t reader, uint32_t sender, uint32_t count);
void expect_no_more_than_once(uint32_t reader);

/* A child that does not outlive us; one that reads; and its end, until which it must not have failed. */
pid_t fork_station(void);
pid_t start_reader(uint32_t reader, struct place place);
void end_reader(pid_t child);

/* What an adapter counts. */
struct tally {
	bool has_lines;
	unsigned long sent, received, lost;
	unsigned long copies; /* that came by the wire, too */
	bool has_qp_on_line;
};

/* As `verbatim stat` does. */
struct tally ask(pid_t pid);
/* When the wire's copies of all that came by lines have come, too: if one was to be delivered again, it has been. */
struct tally ask_when_quiet(pid_t pid, uint32_t reader);
/* Where some may be lost: until nothing comes any more. */
void await_rest(pid_t pid, uint32_t reader);
/* Sends to readers until one has something by a line; returns the next sequence number. */
uint32_t send_until_by_line(struct station *station, uint32_t readers, pid_t pid,
			    uint32_t sequence);

#endif
