/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim trace`: recordings of adapters go in (trace_source.c), records become packets
 * (trace_packet.c), and those go to whoever shows them.
 */
#ifndef VB_TOOLS_TRACE_H
#define VB_TOOLS_TRACE_H

#include "host/registry/recording.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define TRACE_SOURCES_MAX 256u
#define TRACE_COMMENT_MAX 320

struct vb_mail_box;
struct trace_executed;

/* The recording of one adapter. */
struct trace_source {
	struct vb_recording_reader reader;
	pid_t pid;
	int process; /* a descriptor that is readable when it has ended; or -1 */
	char program[16]; /* its name */
	uint32_t index; /* among all sources ever */
	bool is_over;
	uint64_t skipped_before; /* packets without room, that the next packet reports */
	struct trace_executed *executed; /* trace_packet.c: requests that come in parts */
};

struct trace_sources {
	struct vb_mail_box *box;
	struct trace_source *all[TRACE_SOURCES_MAX];
	uint32_t count;
	uint32_t refused; /* adapters that record for another observer */
	struct vb_recording_wish wish;
};

/* A packet as Wireshark sees it. The bytes are those of the UDP payload. */
struct trace_packet {
	const struct trace_source *source;
	uint64_t time_ns; /* by the clock of the adapter */
	struct vb_flow flow;
	uint16_t ip_id;
	bool is_sent;
	bool is_by_link; /* through shared memory, which loses nothing */
	bool is_executed; /* it stands for a request that was executed, and never was a packet */
	bool has_request;
	uint64_t wr_id;
	uint32_t qpn; /* of the adapter */
	uint64_t skipped; /* packets without room before it */
	const uint8_t *bytes;
	uint32_t captured;
	uint32_t length;
	const char *comment;
};

/* --- trace_source.c --- */

/* A descriptor that is readable when the process has ended; -1: see errno. */
int trace_open_process(pid_t pid);
bool trace_has_ended(int process, pid_t pid);

/* False: there is no box. `variable` is for the environment of programs to be started. */
bool trace_sources_open(struct trace_sources *sources, const struct vb_recording_wish *wish,
			char *variable);
/* Takes recordings that have come. Calls `begin` for each. */
void trace_sources_take(struct trace_sources *sources,
			void (*begin)(void *owner, struct trace_source *source), void *owner);
/* The oldest of the next records; NULL: there is none. */
const struct vb_record *trace_sources_next(struct trace_sources *sources,
					   struct trace_source **source_out);
/* Marks those that have ended and are read to their end. Returns how many go on. */
uint32_t trace_sources_end_old(struct trace_sources *sources);
/* No more is wanted; what was recorded can still be taken. */
void trace_sources_stop(struct trace_sources *sources);
void trace_sources_close(struct trace_sources *sources);

/* --- trace_packet.c --- */

typedef void trace_take(void *owner, const struct trace_packet *packet);

/* Calls `take` for each packet that the record stands for. */
void trace_packet_expand(struct trace_source *source, const struct vb_record *record,
			 trace_take *take, void *owner);
void trace_packet_forget(struct trace_source *source);

/* --- trace_pcapng.c --- */

struct trace_pcapng {
	FILE *file;
	uint64_t clock_ns; /* what to add to the adapter's time */
	uint32_t packet_length_max;
};

/* "-" is the standard output. False: reported. */
bool trace_pcapng_open(struct trace_pcapng *pcapng, const char *path, uint32_t packet_length_max);
void trace_pcapng_add_source(struct trace_pcapng *pcapng, const struct trace_source *source);
void trace_pcapng_add(struct trace_pcapng *pcapng, const struct trace_packet *packet);
/* False: not everything could be written, or nobody reads any more. */
bool trace_pcapng_flush(struct trace_pcapng *pcapng);
bool trace_pcapng_close(struct trace_pcapng *pcapng, const struct trace_sources *sources);

/* --- trace_ladder.c --- */

struct trace_conversation;

/* All zero at first. */
struct trace_ladder {
	struct trace_conversation *conversations;
};

void trace_ladder_add(struct trace_ladder *ladder, const struct trace_packet *packet);
/* A post or a poll. */
void trace_ladder_add_event(struct trace_ladder *ladder, const struct trace_source *source,
			    const struct vb_record *record);
/* Draws and forgets everything. */
void trace_ladder_draw(struct trace_ladder *ladder, FILE *to);

/* --- trace_timeline.c --- */

struct trace_track;

struct trace_timeline {
	FILE *file;
	uint64_t begin_ns;
	struct trace_track *tracks;
};

/* False: reported. */
bool trace_timeline_open(struct trace_timeline *timeline, const char *path, uint64_t begin_ns);
void trace_timeline_add(struct trace_timeline *timeline, const struct trace_packet *packet);
/* A post, doorbell or poll. */
void trace_timeline_add_event(struct trace_timeline *timeline, const struct trace_source *source,
			      const struct vb_record *record);
bool trace_timeline_close(struct trace_timeline *timeline);

#endif
