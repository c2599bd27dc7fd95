/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of an exchange: the verbs objects, the memory with what must not change around it, and
 * the TCP connection to the other end.
 */
#ifndef VB_TESTS_INTEROP_SUPPORT_SIDE_H
#define VB_TESTS_INTEROP_SUPPORT_SIDE_H

#include "interop/support_plan.h"

#include <infiniband/verbs.h>

/* How often and after which time a QP retries, as the verbs count it. */
struct patience {
	uint8_t ack_timeout;
	uint8_t retry_count;
	uint8_t rnr_retry; /* 7: for ever */
};

/* 0.5 s: the other end may be emulated, and this machine busy. */
#define PATIENT ((struct patience){ .ack_timeout = 17, .retry_count = 7, .rnr_retry = 7 })

struct settings {
	const char *device;
	const char *server; /* NULL: this is the server */
	uint32_t gid_index;
	uint32_t port;
	uint32_t round_count; /* 0: until a signal */
	uint64_t seed;
	struct plan_limits limits;
	struct patience patience;
	unsigned denied_access; /* rights that the QP lacks */
	bool is_late; /* receives are posted after the other end has sent */
	bool is_hostile; /* a third party sends packets in the other end's name: see exchange.c */
};

/* Areas of memory that are registered separately, with what the other end may do to them. */
enum area {
	AREA_SOURCE, /* nothing */
	AREA_LANDING, /* write; and receives */
	AREA_SERVED, /* read */
	AREA_FETCHED, /* nothing, but READs and atomics return data to it */
	AREA_COUNTER, /* atomics */
	AREA_COUNT,
};

struct remote {
	uint64_t address[AREA_COUNT];
	uint32_t rkey[AREA_COUNT];
	uint32_t qpn;
	uint32_t psn;
	union ibv_gid gid;
	uint64_t seed;
};

struct side {
	const struct settings *settings;
	int talk;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	struct ibv_mr *mr[AREA_COUNT];
	uint8_t *area[AREA_COUNT];
	uint64_t area_length[AREA_COUNT];
	uint8_t *arena; /* all areas and what lies between them */
	uint64_t arena_length;
	struct remote own, other;
};

/* Prints the reason and ends the process with 1. */
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *format, ...);

/* The options that all programs have; false if `option` is none of them. */
#define SIDE_OPTIONS "d:g:p:"
bool settings_take(struct settings *settings, int option, const char *value);

uint64_t now_ns(void);

void side_open(struct side *side, const struct settings *settings);
void side_close(struct side *side); /* the QP may already be gone: NULL */
void side_connect(struct side *side); /* from any state; both ends do this at the same time */

/* Waits for the other end; both learn whether either one passed `flag`. */
bool side_meet(struct side *side, bool flag);

/* Waits until the other end's process and all its resources are gone. */
void side_await_end(struct side *side);

/* Offset of the operation's bytes in SOURCE, LANDING, SERVED and FETCHED. */
uint64_t slot_offset(const struct settings *settings, uint32_t index);
uint32_t slot_length(const struct settings *settings);

/* Ends the process if a byte between the areas has changed. */
void side_check_surroundings(const struct side *side);

#endif
