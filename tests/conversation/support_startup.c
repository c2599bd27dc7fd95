/* SPDX-License-Identifier: BSD-2-Clause */
/* The two machines, their bytes, and the time. */
#include "support_startup.h"

#include "wire/rdmap.h"

struct vb_startup initiator, responder;
uint64_t now_ns;
const struct vb_startup_config usual_config = { .ird_max = 128, .ord_max = 128 };

struct vb_startup_offer offer_of(uint16_t ird, uint16_t ord, const char *data)
{
	return (struct vb_startup_offer){ .ird = ird,
					  .ord = ord,
					  .private_data = data,
					  .private_length = (uint32_t)strlen(data) };
}

uint32_t take_output(struct vb_startup *from, uint8_t *bytes, uint32_t most)
{
	uint32_t total = 0, length;
	const uint8_t *output;

	while (output = vb_startup_output(from, &length), length) {
		length = min32(length, most);
		memcpy(bytes + total, output, length);
		total += length;
		vb_startup_on_sent(from, length, now_ns);
	}
	return total;
}

void carry(struct vb_startup *from, struct vb_startup *to, uint32_t most)
{
	uint8_t bytes[1024];
	uint32_t length = take_output(from, bytes, most);

	for (uint32_t done = 0; done < length;) {
		uint32_t part = min32(most, length - done);

		EXPECT_EQ(vb_startup_receive(to, bytes + done, part, now_ns), part);
		done += part;
	}
}

void expect_event(struct vb_startup *end, enum vb_cm_event_kind kind,
		  struct vb_startup_event *event)
{
	EXPECT(vb_startup_take_event(end, event));
	EXPECT_EQ(event->kind, kind);
}

void expect_nothing(struct vb_startup *end)
{
	struct vb_startup_event event;

	EXPECT(!vb_startup_take_event(end, &event));
}

void expect_private(const struct vb_startup_event *event, const char *data)
{
	EXPECT_EQ(event->private_length, strlen(data));
	EXPECT_MEM(event->private_data, data, strlen(data));
}

void expect_rejected(struct vb_startup *end, enum vb_startup_reason reason)
{
	struct vb_startup_event event;

	expect_event(end, VB_CM_REJECTED, &event);
	EXPECT_EQ(event.reason, reason);
	expect_nothing(end);
}

void begin_with(const struct vb_startup_config *of_initiator,
		const struct vb_startup_config *of_responder)
{
	now_ns = 1 * S;
	vb_startup_init(&initiator, of_initiator);
	vb_startup_init(&responder, of_responder);
	vb_startup_await(&responder, now_ns);
}

void connect_initiator(const struct vb_startup_offer *of_initiator)
{
	EXPECT_EQ(vb_startup_connect(&initiator, of_initiator, now_ns), VB_OK);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_CONNECT);
	vb_startup_on_connected(&initiator, now_ns);
	EXPECT_EQ(vb_startup_wants(&initiator), VB_STARTUP_NOTHING);
}

struct vb_startup_event begin_request(const struct vb_startup_offer *of_initiator, uint32_t most)
{
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	connect_initiator(of_initiator);
	carry(&initiator, &responder, most);
	EXPECT_EQ(responder.state, VB_STARTUP_REQUEST_RCVD);
	expect_event(&responder, VB_CM_REQUEST, &event);
	return event;
}

const struct vb_mpa_frame request_frame = {
	.kind = VB_MPA_REQUEST, .revision = 2, .is_enhanced = true, .ird = 4, .ord = 6
};
const struct vb_mpa_frame reply_frame = {
	.kind = VB_MPA_REPLY, .revision = 2, .is_enhanced = true, .ird = 6, .ord = 4
};

void give(struct vb_startup *to, const struct vb_mpa_frame *frame)
{
	uint8_t bytes[VB_MPA_FRAME_MAX];
	uint32_t length = vb_mpa_frame_store(bytes, frame);

	EXPECT_EQ(vb_startup_receive(to, bytes, length, now_ns), length);
}

struct vb_mpa_frame taken_frame(struct vb_startup *from, enum vb_mpa_kind kind)
{
	uint8_t bytes[1024];
	uint32_t length = take_output(from, bytes, 1024), taken;
	struct vb_mpa_frame frame;

	EXPECT_EQ(vb_mpa_frame_parse(kind, bytes, length, &frame, &taken), VB_MPA_PARSED);
	EXPECT_EQ(taken, length);
	return frame;
}

struct vb_mpa_frame begin_initiator(uint16_t ird, uint16_t ord)
{
	struct vb_startup_offer of_initiator = offer_of(ird, ord, "hello");

	begin_with(&usual_config, &usual_config);
	connect_initiator(&of_initiator);
	return taken_frame(&initiator, VB_MPA_REQUEST);
}

void accept_request(uint16_t ird, uint16_t ord)
{
	struct vb_startup_offer of_responder = offer_of(ird, ord, "");

	EXPECT_EQ(vb_startup_accept(&responder, &of_responder, now_ns), VB_OK);
}

struct vb_mpa_frame begin_responder(const struct vb_mpa_frame *request, uint16_t ird, uint16_t ord)
{
	struct vb_startup_event event;

	begin_with(&usual_config, &usual_config);
	give(&responder, request);
	expect_event(&responder, VB_CM_REQUEST, &event);
	accept_request(ird, ord);
	return taken_frame(&responder, VB_MPA_REPLY);
}

void wait_for(struct vb_startup *end, uint64_t span_ns)
{
	EXPECT_EQ(vb_startup_deadline(end), now_ns + span_ns);
	now_ns += span_ns - 1;
	vb_startup_fire_timers(end, now_ns);
	EXPECT_EQ(vb_startup_deadline(end), now_ns + 1);
	now_ns++;
	vb_startup_fire_timers(end, now_ns);
}

void expect_terminate(struct vb_startup *end, bool has_crc, uint8_t code)
{
	uint8_t bytes[1024];
	uint32_t length = take_output(end, bytes, 7);
	struct vb_rdmap segment;

	EXPECT_EQ(length, vb_mpa_fpdu_size(load16(bytes)));
	EXPECT_EQ(vb_rdmap_parse(bytes + 2, load16(bytes), &segment), VB_RDMAP_PARSED);
	EXPECT_EQ(segment.ddp.opcode, VB_RDMAP_TERMINATE);
	EXPECT_EQ(segment.ddp.msn, 1);
	EXPECT(segment.ddp.is_last);
	EXPECT_EQ(segment.terminate.error.layer, 2);
	EXPECT_EQ(segment.terminate.error.type, 0);
	EXPECT_EQ(segment.terminate.error.code, code);
	EXPECT_EQ(vb_mpa_fpdu_check_crc(bytes), has_crc);
}
