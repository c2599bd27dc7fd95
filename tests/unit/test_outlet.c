/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages cut into FPDUs: what each segment says, and that they fit. */
#include "base/bytes.h"
#include "base/crc.h"
#include "harness.h"
#include "stream/outlet.h"

#include <stdlib.h>
#include <string.h>

static uint8_t data[300000];

static void make_data(void)
{
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 13 + (i >> 8));
}

static struct vb_outgoing message_of(enum vb_rdmap_opcode opcode, uint32_t length)
{
	return (struct vb_outgoing){ .segment = { .ddp = { .opcode = (uint8_t)opcode } },
				     .length = length };
}

/* The next FPDU in one piece; *segment is what it says. */
static uint32_t next_fpdu(const struct vb_outlet *outlet, struct vb_outgoing *message,
			  uint8_t *bytes, struct vb_rdmap *segment)
{
	struct vb_fpdu fpdu;

	vb_outlet_cut(outlet, message, &fpdu);
	if (outlet->has_crc)
		fpdu.crc = vb_crc32c(fpdu.crc, data + fpdu.data_offset, fpdu.data_length);
	vb_outlet_finish(outlet, &fpdu);
	memcpy(bytes, fpdu.head, fpdu.head_length);
	memcpy(bytes + fpdu.head_length, data + fpdu.data_offset, fpdu.data_length);
	memcpy(bytes + fpdu.head_length + fpdu.data_length, fpdu.tail, fpdu.tail_length);
	EXPECT_EQ(vb_fpdu_length(&fpdu), vb_mpa_fpdu_size(load16(bytes)));
	EXPECT_EQ(vb_rdmap_parse(bytes + 2, load16(bytes), segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment->payload_length, fpdu.data_length);
	if (outlet->has_crc)
		EXPECT(vb_mpa_fpdu_check_crc(bytes));
	return vb_fpdu_length(&fpdu);
}

/* RFC 5041, 5.2 has these two examples, with a MULPDU of 1500. */
TEST(messages_are_cut_as_in_the_examples_of_the_rfc)
{
	struct vb_outgoing send = message_of(VB_RDMAP_SEND, 2048);
	struct vb_outgoing write = message_of(VB_RDMAP_WRITE, 2048);
	struct vb_outlet outlet;
	struct vb_rdmap segment;
	uint8_t bytes[2000];

	vb_outlet_init(&outlet, 1460, false);
	outlet.mulpdu = 1500;
	vb_outlet_begin(&outlet, &send);
	next_fpdu(&outlet, &send, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 1482);
	EXPECT_EQ(segment.ddp.offset, 0);
	EXPECT(!segment.ddp.is_last && !send.is_done);
	next_fpdu(&outlet, &send, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 566);
	EXPECT_EQ(segment.ddp.offset, 1482);
	EXPECT(segment.ddp.is_last && send.is_done);

	write.segment.ddp.offset = 16384;
	write.segment.ddp.stag = 77;
	vb_outlet_begin(&outlet, &write);
	next_fpdu(&outlet, &write, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 1486);
	EXPECT_EQ(segment.ddp.offset, 16384);
	EXPECT_EQ(segment.ddp.stag, 77);
	next_fpdu(&outlet, &write, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 562);
	EXPECT_EQ(segment.ddp.offset, 17870);
	EXPECT(segment.ddp.is_last && write.is_done);
}

TEST(all_data_goes_out_once_in_segments_that_fit)
{
	static const uint32_t sizes[] = { 0, 536, 1448, 1460, 8948, 65483 };
	static const uint32_t lengths[] = {
		0, 1, 2, 3, 4, 109, 110, 111, 1424, 1425, 70000, 300000
	};
	uint8_t *bytes = malloc(70000);

	make_data();
	for (uint32_t i = 0; i < 6; i++)
		for (uint32_t j = 0; j < 12; j++)
			for (uint32_t opcode = 0; opcode < 7; opcode++) {
				struct vb_outgoing message =
					message_of((enum vb_rdmap_opcode)opcode, lengths[j]);
				struct vb_outlet outlet;
				struct vb_rdmap segment;
				uint32_t sent = 0;

				if (opcode == VB_RDMAP_READ_REQUEST)
					continue;
				vb_outlet_init(&outlet, sizes[i], j % 2);
				vb_outlet_begin(&outlet, &message);
				do {
					uint32_t size =
						next_fpdu(&outlet, &message, bytes, &segment);

					EXPECT(size <= (sizes[i] > 140 ? sizes[i] : 136));
					EXPECT_EQ(segment.ddp.offset, sent);
					EXPECT_MEM(bytes + 2 + segment.header_length, data + sent,
						   segment.payload_length);
					sent += segment.payload_length;
				} while (!message.is_done);
				EXPECT_EQ(sent, lengths[j]);
				EXPECT(segment.ddp.is_last);
			}
	free(bytes);
}

TEST(a_message_that_fills_its_segments_has_no_empty_one)
{
	for (uint32_t count = 1; count < 4; count++) {
		struct vb_outgoing send = message_of(VB_RDMAP_SEND, count * 1436);
		struct vb_outlet outlet;
		struct vb_rdmap segment;
		uint8_t bytes[1500];

		vb_outlet_init(&outlet, 1460, false);
		vb_outlet_begin(&outlet, &send);
		for (uint32_t i = 1; i <= count; i++) {
			next_fpdu(&outlet, &send, bytes, &segment);
			EXPECT_EQ(segment.payload_length, 1436);
			EXPECT_EQ(segment.ddp.is_last, i == count);
		}
		EXPECT(send.is_done);
	}
}

TEST(each_queue_numbers_its_messages_from_1)
{
	struct vb_outgoing send = message_of(VB_RDMAP_SEND_SE, 0);
	struct vb_outgoing write = message_of(VB_RDMAP_WRITE, 0);
	struct vb_outgoing read = message_of(VB_RDMAP_READ_REQUEST, 0);
	struct vb_outgoing terminate = message_of(VB_RDMAP_TERMINATE, 0);
	struct vb_outlet outlet;
	struct vb_rdmap segment;
	uint8_t bytes[200];

	vb_outlet_init(&outlet, 1460, true);
	for (uint32_t i = 1; i < 4; i++) {
		vb_outlet_begin(&outlet, &send);
		EXPECT_EQ(next_fpdu(&outlet, &send, bytes, &segment), 24);
		EXPECT_EQ(segment.ddp.msn, i);
		vb_outlet_begin(&outlet, &write);
		EXPECT_EQ(next_fpdu(&outlet, &write, bytes, &segment), 20);
		vb_outlet_begin(&outlet, &read);
		EXPECT_EQ(next_fpdu(&outlet, &read, bytes, &segment), 52);
		EXPECT_EQ(segment.ddp.msn, i);
		EXPECT_EQ(segment.ddp.queue, VB_DDP_QUEUE_READ);
	}
	vb_outlet_begin(&outlet, &terminate);
	EXPECT_EQ(next_fpdu(&outlet, &terminate, bytes, &segment), 28);
	EXPECT_EQ(segment.ddp.msn, 1);
	outlet.send_msn = UINT32_MAX; /* and wraps to 0 */
	vb_outlet_begin(&outlet, &send);
	vb_outlet_begin(&outlet, &send);
	EXPECT_EQ(send.segment.ddp.msn, 0);
}

TEST(the_longest_segment_may_change_within_a_message)
{
	struct vb_outgoing send = message_of(VB_RDMAP_SEND, 3000);
	struct vb_outlet outlet;
	struct vb_rdmap segment;
	uint8_t bytes[3000];

	vb_outlet_init(&outlet, 1460, false);
	vb_outlet_begin(&outlet, &send);
	next_fpdu(&outlet, &send, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 1436);
	outlet.mulpdu = vb_mpa_mulpdu(536);
	next_fpdu(&outlet, &send, bytes, &segment);
	EXPECT_EQ(segment.payload_length, 512);
	EXPECT_EQ(segment.ddp.offset, 1436);
}
