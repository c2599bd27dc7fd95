/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two machines that set up a connection of iWARP with each other, or with frames that the test
 * makes. Nothing here has a socket: the test does what the machines want.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_STARTUP_H
#define VB_TESTS_CONVERSATION_SUPPORT_STARTUP_H

#include "harness.h"

#include "base/bytes.h"
#include "base/timer.h"
#include "mgmt/startup.h"

#include <string.h>

#define MS 1000000ull
#define S 1000000000ull

extern struct vb_startup initiator, responder;
extern uint64_t now_ns;
extern const struct vb_startup_config usual_config;
extern const struct vb_mpa_frame request_frame, reply_frame;

struct vb_startup_offer offer_of(uint16_t ird, uint16_t ord, const char *data);
/* All that an end has to send, `most` bytes at a time. */
uint32_t take_output(struct vb_startup *from, uint8_t *bytes, uint32_t most);
void carry(struct vb_startup *from, struct vb_startup *to, uint32_t most);
void expect_event(struct vb_startup *end, enum vb_cm_event_kind kind,
		  struct vb_startup_event *event);
void expect_nothing(struct vb_startup *end);
void expect_private(const struct vb_startup_event *event, const char *data);
void expect_rejected(struct vb_startup *end, enum vb_startup_reason reason);
void begin_with(const struct vb_startup_config *of_initiator,
		const struct vb_startup_config *of_responder);
void connect_initiator(const struct vb_startup_offer *of_initiator);
/* The request of the initiator is with the responder, whose program has seen it. */
struct vb_startup_event begin_request(const struct vb_startup_offer *of_initiator, uint32_t most);
/* Gives an end a frame that the test has made. */
void give(struct vb_startup *to, const struct vb_mpa_frame *frame);
/* What an end sends as a frame. */
struct vb_mpa_frame taken_frame(struct vb_startup *from, enum vb_mpa_kind kind);
/* An initiator that has sent its request, and waits for what the test gives it. */
struct vb_mpa_frame begin_initiator(uint16_t ird, uint16_t ord);
void accept_request(uint16_t ird, uint16_t ord);
/* A responder with this request, which its program accepts. */
struct vb_mpa_frame begin_responder(const struct vb_mpa_frame *request, uint16_t ird, uint16_t ord);
void wait_for(struct vb_startup *end, uint64_t span_ns);
void expect_terminate(struct vb_startup *end, bool has_crc, uint8_t code);

#endif
