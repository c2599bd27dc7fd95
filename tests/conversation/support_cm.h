/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connection managers that talk to each other, for tests: a client with one connection, and a
 * server that listens. No message is delivered by itself; a test says which messages it expects,
 * and whether they arrive. Messages are compared as words: "REQ", "REJ of REQ: invalid service ID",
 * "MRA of REP".
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_CM_H
#define VB_TESTS_CONVERSATION_SUPPORT_CM_H

#include "mgmt/cm.h"

#include <stdbool.h>
#include <stdint.h>

#define MADS_MAX 32
#define PORT 7471
#define CLIENT_QPN ((vb_qpn){ 0x11 })
#define SERVER_QPN ((vb_qpn){ 0x22 })
#define CLIENT_GUID 0xc1c1c1c1c1c1c1c1
#define SERVER_GUID 0x5e5e5e5e5e5e5e5e

enum { CLIENT, SERVER };

struct talk {
	uint64_t now_ns;
	struct vb_cm *cm[2];
	struct vb_cm_row rows[2][8];
	struct vb_cm_listener *listener;
	struct vb_cm_connection *connection[2];
	struct vb_cm_mad mads[MADS_MAX]; /* taken by expect_mads(), not delivered yet */
	uint32_t mad_count;
	struct vb_cm_event event; /* the last event taken */
	struct vb_cm_addressee addressee; /* of the last MAD that belonged to no connection */
};

/* Machines, the listener (backlog 2, any IPv4 address) and the client's connection. */
struct talk *talk_begin(void);
void talk_end(struct talk *talk);

struct vb_cm_request talk_request(void); /* the client's default; 3 retries */
struct vb_cm_reply talk_reply(void);
struct vb_service_ip talk_ip(void);
struct vb_flow talk_flow(int from);

void client_connects(struct talk *talk);
void server_accepts(struct talk *talk);
void client_establishes(struct talk *talk);
void disconnect_from(struct talk *talk, int side);

/* Drives both sides until they are connected, with all messages taken and delivered. */
struct talk *talk_begin_connected(void);

/*
 * Exactly these MADs are ready to be sent. They are held until they are delivered, lost, or
 * replaced by those of the next such call.
 */
#define expect_mads(talk, side, ...) \
	expect_mads_at(__FILE__, __LINE__, talk, side, (const char *const[]){ __VA_ARGS__, NULL })
#define expect_silence_of(talk, side) \
	expect_mads_at(__FILE__, __LINE__, talk, side, (const char *const[]){ NULL })
void expect_mads_at(const char *file, int line, struct talk *talk, int side,
		    const char *const *words);
/* The held MADs arrive at that side, which must accept them. */
void deliver_held(struct talk *talk, int to);
/* The same, but the MADs stay held and can arrive once more. */
void deliver_and_keep(struct talk *talk, int to);
void lose_held(struct talk *talk);
/*
 * The held MADs arrive and must belong to no connection. If the side `refuses`, it answers that
 * they do not.
 */
void deliver_unwanted(struct talk *talk, int to, bool refuses);

/* Both in one call: the side sends these MADs, and they arrive at the other side. */
#define say(talk, from, ...)                          \
	do {                                          \
		expect_mads(talk, from, __VA_ARGS__); \
		deliver_held(talk, !(from));          \
	} while (0)

#define expect_events(talk, side, ...) \
	expect_events_at(__FILE__, __LINE__, talk, side, (const char *const[]){ __VA_ARGS__, NULL })
#define expect_no_events(talk, side) \
	expect_events_at(__FILE__, __LINE__, talk, side, (const char *const[]){ NULL })
void expect_events_at(const char *file, int line, struct talk *talk, int side,
		      const char *const *words);

#define expect_state(talk, side, state) \
	EXPECT_STR(vb_cm_state_describe(vb_cm_connection_state((talk)->connection[side])), state)

/* Time passes until the next deadline of that machine. */
void pass_to_deadline_of(struct talk *talk, int side);
void pass_ns(struct talk *talk, uint64_t ns);

/* The side learns that the other one cannot be reached. Messages still arrive. */
void report_unreachable(struct talk *talk, int side);

/* Holds that MAD as if the side had sent it. */
void hold_mad(struct talk *talk, int from, const struct vb_mad *mad);
/* The held MAD, parsed. */
struct vb_mad parse_held_mad(const struct talk *talk, uint32_t index);

#endif
