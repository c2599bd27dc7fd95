/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ICRC of a received packet, which may lie in several pieces. A link on sockets does not know
 * the IPv4 ID that the ICRC covers: then the ID is guessed, or found from the ICRC itself.
 */
#include "framing/framing.h"

#include "base/bytes.h"
#include "base/crc.h"
#include "wire/icrc.h"

/* The packet's last 4 bytes, which may lie in several parts. */
static uint32_t icrc_of(const struct vb_frame *frame)
{
	uint8_t tail[VB_ICRC_SIZE];
	uint32_t missing = VB_ICRC_SIZE;
	uint32_t index = frame->rest_count;

	while (missing) {
		struct vb_bytes part = index ? frame->rest[index - 1] : frame->head;
		uint32_t length = min32(missing, part.length);

		if (part.length >= VB_ICRC_SIZE && missing == VB_ICRC_SIZE)
			return vb_icrc_load(part.data + part.length - VB_ICRC_SIZE);
		missing -= length;
		memcpy(tail + missing, part.data + part.length - length, length);
		index--; /* the packet has 4 bytes: they are found before this wraps */
	}
	return vb_icrc_load(tail);
}

static uint32_t crc_of(struct vb_framing *framing, const struct vb_frame *frame, uint32_t length,
		       uint16_t ip_id)
{
	uint32_t left = length - VB_ICRC_SIZE;
	uint32_t in_head = min32(frame->head.length, left);
	uint32_t crc = vb_icrc_memo_begin(&framing->icrc_received, &frame->path.ip, length, ip_id,
					  frame->head.data);

	if (in_head > VB_BTH_SIZE)
		crc = vb_icrc_memo_add(&framing->icrc_received, crc, frame->head.data + VB_BTH_SIZE,
				       in_head - VB_BTH_SIZE);
	left -= in_head;
	for (uint32_t i = 0; left; i++) {
		uint32_t part = min32(frame->rest[i].length, left);

		crc = vb_crc32(crc, frame->rest[i].data, part);
		left -= part;
	}
	return crc;
}

/*
 * The last IPv4 ID that a sender gave to a datagram or batch, unless another sender's ID has
 * replaced it.
 */
static uint16_t *last_number_of(struct vb_framing *framing, const struct vb_flow *flow)
{
	return &framing->numbers_seen[(flow->source_port ^ flow->source.raw[15]) %
				      VB_NUMBERS_SEEN_COUNT];
}

/*
 * Where the ID is not known, most senders use 0 everywhere, or count up. Finding it from the ICRC
 * takes as long as the rest of the check. So we guess that senders continue as they did.
 */
static bool is_icrc_right_for_some(struct vb_framing *framing, const struct vb_frame *frame,
				   uint32_t length)
{
	uint16_t *last = last_number_of(framing, &frame->path.ip);
	uint16_t segment = frame->ip_id;
	uint16_t guess = (uint16_t)(segment ? *last + segment : *last ? *last + 1 : 0);
	uint32_t difference = crc_of(framing, frame, length, guess) ^ icrc_of(frame);
	uint16_t ip_id = guess;

	if (difference && !vb_icrc_solve_ip_id(difference, length, guess, &ip_id))
		return false;
	*last = (uint16_t)(ip_id - segment);
	return true;
}

bool vb_framing_is_icrc_right(struct vb_framing *framing, const struct vb_frame *frame,
			      uint32_t length)
{
	if (framing->config.icrc_mode == VB_ICRC_SOLVED && vb_flow_is_ipv4(&frame->path.ip))
		return is_icrc_right_for_some(framing, frame, length);
	return crc_of(framing, frame, length, frame->ip_id) == icrc_of(frame);
}
