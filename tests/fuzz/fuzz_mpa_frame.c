/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and replies of MPA from arbitrary bytes: what was parsed and stored is parsed as the
 * same again; a frame that is cut is incomplete or refused, never something else; describing never
 * writes beyond its buffer. The first byte is the size of the text, the second the kind; if it is
 * over 1, the frame gets a valid key. The rest is the frame.
 */
#include "fuzz.h"
#include "support_input.h"

#include "wire/mpa.h"

#include <string.h>

enum { TEXT_MAX = 200 };

static void describe(const struct vb_mpa_frame *frame, uint32_t size)
{
	char *text = malloc(size ? size : 1);
	int length = vb_mpa_frame_describe(frame, text, size);

	REQUIRE(length > 0 && length < TEXT_MAX);
	REQUIRE(!size || strlen(text) == ((uint32_t)length < size ? (uint32_t)length : size - 1));
	free(text);
}

static bool is_same(const struct vb_mpa_frame *a, const struct vb_mpa_frame *b)
{
	return a->kind == b->kind && a->wants_markers == b->wants_markers &&
	       a->wants_crc == b->wants_crc && a->is_rejected == b->is_rejected &&
	       a->revision == b->revision && a->is_enhanced == b->is_enhanced &&
	       a->is_peer_to_peer == b->is_peer_to_peer && a->rtr == b->rtr && a->ird == b->ird &&
	       a->ord == b->ord && a->private_length == b->private_length &&
	       !memcmp(a->private_data, b->private_data, a->private_length);
}

static void check_cuts(enum vb_mpa_kind kind, const uint8_t *bytes, uint32_t length)
{
	struct vb_mpa_frame frame;
	uint32_t taken;

	for (uint32_t cut = 0; cut < length; cut++)
		REQUIRE(vb_mpa_frame_parse(kind, bytes, cut, &frame, &taken) == VB_MPA_INCOMPLETE);
}

static const uint8_t keys[2][16] = { { "MPA ID Req Frame" }, { "MPA ID Rep Frame" } };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	uint32_t text_size = input_8(&input);
	uint8_t style = input_8(&input);
	enum vb_mpa_kind kind = style & 1 ? VB_MPA_REPLY : VB_MPA_REQUEST;
	uint32_t length = (uint32_t)(input.size < 2048 ? input.size : 2048), taken;
	struct vb_mpa_frame frame, again;
	uint8_t stored[VB_MPA_FRAME_MAX];
	uint8_t *bytes = malloc(length + 1);

	memcpy(bytes, input.data, length);
	if (style > 1 && length >= 16)
		memcpy(bytes, keys[kind], sizeof(keys[kind]));
	if (vb_mpa_frame_parse(kind, bytes, length, &frame, &taken) == VB_MPA_PARSED) {
		REQUIRE(taken <= length && frame.private_length <= VB_MPA_PRIVATE_MAX);
		check_cuts(kind, bytes, taken);
		REQUIRE(vb_mpa_frame_store(stored, &frame) == taken);
		REQUIRE(vb_mpa_frame_parse(kind, stored, taken, &again, &taken) == VB_MPA_PARSED);
		REQUIRE(is_same(&frame, &again));
		describe(&frame, text_size);
	}
	free(bytes);
	return 0;
}
