/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter of fuzz_tags: a sender and a receiver with tags, and the books about which buffers
 * are open.
 */
#ifndef VB_TESTS_FUZZ_SUPPORT_TAGS_H
#define VB_TESTS_FUZZ_SUPPORT_TAGS_H

#include "support_input.h"

#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"

#define MUST(call) REQUIRE((call) == VB_OK)

enum {
	MESSAGES = 0, /* what the sender sends, and opens for READs */
	SECRET = 0x2000, /* open in the receiver's PD, not in the sender's */
	BUFFERS = 0x4000,
	BUFFER_LENGTH = 700,
	BUFFER_STEP = 768,
	BUFFER_COUNT = 16,
	AREA_LENGTH = BUFFERS + BUFFER_COUNT * BUFFER_STEP,
	TAGS = 5,
	TAG_DEPTH = 6,
	SEND_DEPTH = 4,
	MTU = 256,
	ROWS = 16,
	HELD_MAX = 32,
	USES_MAX = 256,
	SECRET_BYTE = 0x5c,
	OWN_ID = 1 << 20, /* the receiver's own requests */
};

#define IOVA 0x100000000ull

enum { SENDER, RECEIVER, QP_COUNT };

/* A buffer of the receiver: of a tag, or of a receive. */
struct use {
	bool is_tag;
	bool is_open;
	bool is_matched;
	uint8_t buffer;
	uint32_t handle;
};

struct held {
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t length;
	uint8_t bytes[4096 + 128];
};

struct tag_rig {
	struct vb_nic *nic;
	struct vb_gid gid;
	struct vb_pd *pds[QP_COUNT];
	struct vb_cq *send_cq; /* of both, and of the sender's receives */
	struct vb_cq *cq; /* of the SRQ */
	struct vb_srq *srq;
	struct vb_mr *messages;
	struct vb_mr *all; /* in the receiver's PD */
	struct vb_qp *qps[QP_COUNT];
	uint64_t now_ns;
	struct use uses[USES_MAX];
	uint32_t use_count;
	bool is_taken[BUFFER_COUNT];
	uint32_t unexpected; /* as the program counts */
	uint32_t own_posted, own_done;
	uint32_t held_count;
	struct held held[HELD_MAX];
};

extern struct tag_rig tag_rig;
extern uint8_t tag_area[AREA_LENGTH];

void tag_rig_create(uint32_t send_depth); /* of the receiver */
void tag_rig_destroy(void);
void tag_rig_bring_up(uint32_t index); /* from RESET to RTS */
void tag_rig_check(void); /* takes all completions and events */

#endif
