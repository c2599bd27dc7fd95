/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The history of a world: packets and their fates, posts, completions, events. The last entries are
 * kept and turned into text only on demand; a hash covers all of them, so that two runs can be
 * compared.
 */
#ifndef VB_SIM_TRACE_H
#define VB_SIM_TRACE_H

#include "wire/flow.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_TRACE_ENTRIES 4096 /* kept for a description */
#define VB_TRACE_PACKETS 64 /* kept with all their bytes, for a capture */
#define VB_TRACE_TEXT_MAX 320
#define VB_TRACE_NOBODY 0xff

enum vb_trace_kind {
	VB_TRACE_PACKET,
	VB_TRACE_POST_SEND, /* qpn, opcode, wr_id, length, flags */
	VB_TRACE_POST_RECV, /* qpn (or SRQ number), 0, wr_id, capacity */
	VB_TRACE_COMPLETION, /* qpn, opcode, wr_id, byte_length, status */
	VB_TRACE_EVENT, /* qpn, kind */
	VB_TRACE_ACTION, /* the action, and two numbers */
};

/*
 * The actions of programs and of the world. The numbers go into the hash and must not change; the
 * texts may.
 */
enum vb_trace_action {
	VB_ACTION_DIES = 1,
	VB_ACTION_RESTARTS = 2,
	VB_ACTION_LOSES_SHM_LINKS = 3,
	VB_ACTION_MEETS_LOCAL_PEERS = 4,
	VB_ACTION_PUTS_ON_SHM_LINK = 5, /* to which node, length */
	VB_ACTION_NEW_CHANNELS = 6, /* how many now, how many times more */
	VB_ACTION_CONNECTS_CHANNEL = 7, /* which, its QPs' type */
	VB_ACTION_MOVES_QP = 8, /* number, state */
	VB_ACTION_DESTROYS_QP = 9, /* number */
	VB_ACTION_DEREGISTERS = 10, /* key */
	VB_ACTION_MEMORY_VANISHES = 11, /* key */
	VB_ACTION_COUNT
};

enum vb_packet_fate {
	VB_FATE_DELIVERED,
	VB_FATE_LOST,
	VB_FATE_DUPLICATED,
	VB_FATE_REORDERED,
	VB_FATE_DELAYED,
	VB_FATE_CORRUPTED,
	VB_FATE_TRUNCATED,
	VB_FATE_PARTITIONED,
	VB_FATE_LINK_DOWN,
	VB_FATE_NOBODY, /* no such address, or its machine is dead */
	VB_FATE_COUNT
};

struct vb_trace_entry {
	uint64_t time_ns;
	uint64_t number; /* among all entries ever, from 0 */
	enum vb_trace_kind kind;
	enum vb_packet_fate fate;
	uint8_t from; /* the node */
	uint8_t to;
	uint32_t length; /* UDP payload of a packet */
	uint64_t values[5];
	uint8_t head[VB_PACKET_HEADERS_MAX];
};

struct vb_trace_packet {
	uint64_t time_ns;
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t length;
	uint32_t capacity;
	uint8_t *bytes;
};

struct vb_trace {
	uint64_t hash;
	uint64_t count; /* of all entries ever */
	uint64_t packet_count; /* of all packets ever */
	struct vb_trace_entry *entries; /* ring */
	struct vb_trace_packet packets[VB_TRACE_PACKETS]; /* ring */
};

void vb_trace_init(struct vb_trace *trace);
void vb_trace_fini(struct vb_trace *trace);

void vb_trace_on_packet(struct vb_trace *trace, uint64_t now_ns, uint32_t from, uint32_t to,
			enum vb_packet_fate fate, const struct vb_flow *flow, uint16_t ip_id,
			const uint8_t *bytes, uint32_t length);
void vb_trace_note(struct vb_trace *trace, uint64_t now_ns, enum vb_trace_kind kind, uint32_t node,
		   const uint64_t values[5]);

/* The entry with that number, or NULL if it is no longer kept or does not exist yet. */
const struct vb_trace_entry *vb_trace_entry(const struct vb_trace *trace, uint64_t number);

/* Writes one line of text, without a line feed. */
void vb_trace_describe(const struct vb_trace_entry *entry, char text[VB_TRACE_TEXT_MAX]);

const char *vb_fate_describe(enum vb_packet_fate fate);

/*
 * Writes a pcapng capture of the last packets and returns its size. With `p` NULL, only returns the
 * size.
 */
uint64_t vb_trace_store_capture(const struct vb_trace *trace, uint8_t *p);

#endif
