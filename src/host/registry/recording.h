/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording: what passes a port, as it goes to an observer (`verbatim trace`) through memory that
 * both processes map. The adapter's process has made the memory, writes records and never waits:
 * what has no room is counted and left out. Any of its threads may write. The observer reads, and
 * says how far it has read. Each side believes of the other's words only what cannot harm it.
 */
#ifndef VB_HOST_REGISTRY_RECORDING_H
#define VB_HOST_REGISTRY_RECORDING_H

#include "nic/executed.h"
#include "wire/flow.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define VB_RECORDING_ROOM (16u << 20) /* for records; a power of two */
#define VB_RECORD_ALIGNMENT 16u
#define VB_RECORD_LENGTH_MAX (256u << 10)

enum vb_record_kind {
	VB_RECORD_FILLER, /* nothing: the next record begins at the beginning of the room */
	VB_RECORD_PACKET, /* struct vb_record_packet, then the first bytes of the UDP payload */
	VB_RECORD_EXECUTED, /* struct vb_record_executed, then its data */
	VB_RECORD_POST, /* struct vb_record_post */
	VB_RECORD_DOORBELL, /* no more than the head */
	VB_RECORD_POLL, /* struct vb_record_poll */
};

/* The head of each record. */
struct vb_record {
	_Atomic uint64_t mark; /* says that the record is whole: vb_recording_mark() */
	uint32_t length; /* with the head and what follows; a multiple of the alignment */
	uint32_t kind; /* enum vb_record_kind */
	uint64_t time_ns;
	uint64_t wr_id; /* of the request that it belongs to */
	uint32_t qpn; /* of this adapter; 0: unknown */
	uint32_t skipped; /* packets and executed parts that had no room, before this record */
};

struct vb_record_packet {
	struct vb_flow flow;
	uint32_t length; /* of the UDP payload; of a train: of those of all of its packets */
	uint32_t captured; /* bytes that follow */
	uint32_t train_headers; /* of a train: how many of these are headers, the rest is data */
	uint16_t train_packets; /* 0: no train */
	uint16_t ip_id;
	uint32_t ack_psn, ack_word; /* piggybacked; the word is syndrome and MSN */
	uint8_t is_sent; /* by this adapter; otherwise received */
	uint8_t is_by_link; /* through shared memory: without ICRC */
	uint8_t has_request; /* wr_id is known */
	uint8_t has_ack;
};

struct vb_record_executed {
	struct vb_executed part; /* data_offset does not count */
};

struct vb_record_post {
	uint32_t opcode; /* enum vb_wr_opcode */
	uint32_t length;
};

/* A completion, as the program takes it. */
struct vb_record_poll {
	uint64_t completed_ns; /* when the engine added it */
	uint32_t length;
	uint8_t status; /* enum vb_status */
	uint8_t opcode; /* enum vb_completion_opcode */
	uint8_t is_receive;
};

/* The shared memory. */
struct vb_recording_memory {
	/* Written once. */
	uint64_t layout; /* VB_RECORDING_LAYOUT */
	uint64_t cookie; /* random, so that no data looks like a mark */
	char device[64];
	char program[16]; /* its name, which nobody can look up once it has ended */
	uint32_t number; /* of the adapter */
	/* Written by the adapter's process. */
	_Alignas(64) _Atomic uint64_t skipped; /* packets and executed parts, in all */
	_Atomic uint64_t skipped_events; /* other records */
	_Atomic uint32_t is_ended; /* nothing more will come */
	/* Written by the observer. */
	_Alignas(64) _Atomic uint64_t read_to; /* all bytes before this position are read */
	_Atomic uint32_t beat; /* it changes as long as the observer lives */
	_Atomic uint32_t is_closed; /* the observer wants no more */
	_Alignas(4096) uint8_t room[VB_RECORDING_ROOM];
};

#define VB_RECORDING_LAYOUT                                                 \
	(0x7662720200000000ull | (uint64_t)sizeof(struct vb_record) << 24 | \
	 (uint64_t)(sizeof(struct vb_record_packet) << 12 | sizeof(struct vb_record_executed)))

/* What an observer wants to be recorded. */
struct vb_recording_wish {
	uint32_t packet_length_max; /* bytes of each UDP payload */
	uint32_t qpn; /* 0: all QPs; otherwise packets from and to this one */
	uint32_t has_events; /* posts, doorbells and polls as well */
};

/* The end that writes. Its fields are private to the process, whatever the observer writes. */
struct vb_recording {
	struct vb_recording_memory *memory;
	int fd;
	uint64_t cookie;
	_Atomic uint64_t reserved; /* position behind the last record */
	_Atomic uint32_t skipped; /* since the last record that had room */
};

static inline uint64_t vb_recording_mark(uint64_t cookie, uint64_t position)
{
	return (position + 1) ^ cookie;
}

/* False: there is no memory, or no descriptor. */
bool vb_recording_open(struct vb_recording *recording, const char *device, uint32_t number);
/* Does not write into the memory, which a forked child shares with its parent. */
void vb_recording_close(struct vb_recording *recording);

/*
 * Any thread. Room for a record with that many bytes behind its head; NULL: there is none, which is
 * counted. `weight` is how many packets the record stands for; 0: it is another event. The caller
 * fills in everything but mark, length and skipped, and then commits it.
 */
struct vb_record *vb_recording_reserve(struct vb_recording *recording, uint32_t length,
				       uint32_t weight);
void vb_recording_commit(struct vb_record *record);
/* Counts as reserve does, for what is not recorded at all. */
void vb_recording_skip(struct vb_recording *recording, uint32_t weight);

/* The end that reads. */
struct vb_recording_reader {
	struct vb_recording_memory *memory;
	uint64_t cookie;
	uint64_t position;
};

/* Maps the memory. False if it is none of this layout. The caller keeps the descriptor. */
bool vb_recording_reader_open(struct vb_recording_reader *reader, int fd);
void vb_recording_reader_close(struct vb_recording_reader *reader);
/* The next record, valid until it is released; NULL: there is none yet. */
const struct vb_record *vb_recording_reader_take(struct vb_recording_reader *reader);
void vb_recording_reader_release(struct vb_recording_reader *reader,
				 const struct vb_record *record);

static inline void *vb_record_body(struct vb_record *record)
{
	return record + 1;
}

/* NULL: the record is too short for that. */
static inline const void *vb_record_view(const struct vb_record *record, uint32_t length)
{
	return record->length >= sizeof(*record) + length ? record + 1 : NULL;
}

#endif
