/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of DDP and RDMAP from arbitrary bytes: headers that were parsed and stored are the same
 * bytes when they are parsed and stored again; what is refused has words for a Terminate;
 * describing never writes beyond its buffer. The first byte is the size of the text. If the second
 * is odd, the segment gets valid versions, model and queue. The rest is the ULPDU.
 */
#include "fuzz.h"
#include "support_input.h"

#include "base/bytes.h"
#include "wire/rdmap.h"

#include <string.h>

enum { TEXT_MAX = 400 };

static void describe(const struct vb_rdmap *segment, uint32_t size)
{
	char *text = malloc(size ? size : 1);
	int length = vb_rdmap_describe(segment, text, size);

	REQUIRE(length > 0 && length < TEXT_MAX);
	REQUIRE(!size || strlen(text) == ((uint32_t)length < size ? (uint32_t)length : size - 1));
	free(text);
}

static void make_right(uint8_t *p, uint32_t length)
{
	uint8_t opcode = length > 1 ? p[1] % VB_RDMAP_OPCODE_COUNT : 0;
	bool is_tagged = vb_rdmap_traits((enum vb_rdmap_opcode)opcode) & VB_RDMAP_IS_TAGGED;

	if (length < VB_DDP_HEADER_MAX)
		return;
	p[0] = (uint8_t)((is_tagged ? 0x80 : 0) | (p[0] & 0x7c) | 1);
	p[1] = (uint8_t)((p[1] & 0x30) | 0x40 | opcode);
	if (!is_tagged)
		store32(p + 6, vb_rdmap_queue((enum vb_rdmap_opcode)opcode));
}

static void check(const struct vb_rdmap *segment, const uint8_t *bytes, uint32_t length)
{
	uint8_t once[VB_RDMAP_HEADERS_MAX], twice[VB_RDMAP_HEADERS_MAX];
	struct vb_rdmap again;
	uint32_t stored;

	REQUIRE(segment->header_length + segment->payload_length <= length);
	REQUIRE(segment->ddp.opcode == VB_RDMAP_TERMINATE ||
		segment->header_length + segment->payload_length == length);
	REQUIRE(segment->header_length <= VB_RDMAP_HEADERS_MAX);
	stored = vb_rdmap_store_headers(once, segment);
	REQUIRE(stored == segment->header_length);
	REQUIRE(once[0] == (bytes[0] & 0xc3) && once[1] == (bytes[1] & 0xcf));
	REQUIRE(vb_rdmap_parse(once, stored, &again) == VB_RDMAP_PARSED);
	REQUIRE(vb_rdmap_store_headers(twice, &again) == stored);
	REQUIRE(!memcmp(once, twice, stored));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };
	uint32_t text_size = input_8(&input);
	bool is_right = input_bool(&input);
	uint32_t length = (uint32_t)(input.size < 2048 ? input.size : 2048);
	uint8_t *bytes = calloc(1, length + 1);
	enum vb_rdmap_parsing parsing;
	struct vb_rdmap segment;

	memcpy(bytes, input.data, length);
	if (is_right)
		make_right(bytes, length);
	parsing = vb_rdmap_parse(bytes, length, &segment);
	if (parsing == VB_RDMAP_PARSED) {
		check(&segment, bytes, length);
		describe(&segment, text_size);
	} else {
		struct vb_rdmap_error error =
			vb_rdmap_parsing_error(parsing, length ? bytes[0] : 0);

		REQUIRE(strcmp(vb_rdmap_error_describe(error), "unknown error"));
	}
	free(bytes);
	return 0;
}
