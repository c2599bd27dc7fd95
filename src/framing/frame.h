/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as it passes between the engine and a link. Both directions carry the UDP payload (BTH
 * to ICRC) and, beside it, the path. From its flow a link on sockets has the kernel make the IP
 * header; the simulator and captures write one out.
 */
#ifndef VB_FRAMING_FRAME_H
#define VB_FRAMING_FRAME_H

#include "base/dma.h"
#include "framing/path.h"
#include "framing/piggyback_ack.h"
#include "wire/packet.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_SGE_MAX 32
#define VB_PAYLOAD_MAX 4096 /* the largest path MTU */
#define VB_SLOT_TAIL_MAX 8

struct vb_bytes {
	const uint8_t *data;
	uint32_t length;
};

/* Memory of a sender that its receiver reads itself: an SGE of a send request, or a part of one. */
struct vb_reference {
	uint64_t address; /* in the key's address space */
	uint32_t length;
	uint32_t key;
};

/*
 * A train stands for consecutive packets of one SEND. It crosses a shared-memory link in one piece:
 * headers, and references instead of the data. Its opcode is that of one packet in the place of the
 * whole train, its PSN that of its first packet.
 */
struct vb_train {
	uint16_t packet_count; /* 0: no train but one packet */
	uint16_t reference_count;
	uint32_t byte_count; /* of the UDP payloads of its packets, for counters */
};

/* A received packet, borrowed for the call: `head` and then the `rest` parts, in this order. */
struct vb_frame {
	struct vb_path path; /* late_flow may have its flow */
	/*
	 * On a shared-memory link: where the flow lies, for a reader that needs more than the mark;
	 * or NULL.
	 */
	const uint8_t *late_flow;
	uint32_t flow_mark; /* on a shared-memory link: vb_flow_mark() */
	struct vb_piggyback_ack piggyback_ack; /* on a shared-memory link */
	/* What the IPv4 header says, or the link's best guess (see vb_icrc_mode). */
	uint16_t ip_id;
	struct vb_train train; /* on a shared-memory link; `head` then holds headers only */
	/* Of the train, not aligned, in memory that the sender may be changing. */
	const uint8_t *references;
	struct vb_bytes head; /* holds at least all transport headers */
	const struct vb_bytes *rest; /* may be NULL when rest_count is 0 */
	uint32_t rest_count;
};

static inline struct vb_flow vb_frame_flow(const struct vb_frame *frame)
{
	struct vb_flow flow;

	memcpy(&flow, frame->late_flow ? frame->late_flow : (const uint8_t *)&frame->path.ip,
	       sizeof(flow));
	return flow;
}

struct vb_span {
	vb_dma_addr address;
	uint32_t length;
};

/*
 * A packet to send: `head` (headers, and a payload that is short or might change), spans into
 * application memory, `tail` (pad and ICRC; empty without spans: `head` then holds the whole
 * packet). The spans are valid until the next call into the engine. The link reads them only with
 * vb_dma_read() or a system call: the program may have unmapped the memory.
 */
struct vb_slot {
	struct vb_path path;
	/*
	 * IPv4 ID that the ICRC was computed for: the index in a batch, or counted on from the ID
	 * of the batch.
	 */
	uint16_t ip_id;
	bool is_numbered; /* the link must send it with that ID, on the path of number_index */
	uint8_t number_index; /* the index given to vb_framing_number_flow() */
	/*
	 * Same flow as the slot before and not longer: may be sent as the next segment of its
	 * batch.
	 */
	bool continues;
	uint8_t span_count;
	uint8_t tail_length;
	uint16_t head_length;
	struct vb_piggyback_ack piggyback_ack; /* on a shared-memory link */
	uint32_t length; /* of the whole UDP payload */
	struct vb_train train; /* on a shared-memory link */
	uint8_t tail[VB_SLOT_TAIL_MAX];
	union {
		struct vb_span spans[VB_SGE_MAX];
		struct vb_reference references[VB_SGE_MAX]; /* of the train, which has no spans */
	};
	uint8_t head[VB_PACKET_HEADERS_MAX + VB_PAYLOAD_MAX + VB_SLOT_TAIL_MAX];
};

/*
 * Copies the whole UDP payload to `to` (slot->length bytes). False if application memory was gone.
 */
bool vb_slot_gather(const struct vb_slot *slot, uint8_t *to);

/*
 * Moves everything into the head, so that the slot no longer depends on application memory. False
 * if that was gone.
 */
bool vb_slot_settle(struct vb_slot *slot);

#endif
