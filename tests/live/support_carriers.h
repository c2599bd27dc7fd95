/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two engines in one process, each with a port, joined by a pair of carriers. A row says how the
 * carriers are made; everything else is the same for all of them. Time is counted in turns.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_CARRIERS_H
#define VB_TESTS_LIVE_SUPPORT_CARRIERS_H

#include "harness.h"

#include "host/port/carrier.h"
#include "host/port/port.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"

enum {
	CARRIER_QPS = 3,
	CARRIER_ROWS = 256, /* of the engines' tables */
	CARRIER_REQUESTS = 120,
	CARRIER_LENGTH_MAX = 20000,
	CARRIER_TURN_NS = 1000,
};

struct carrier_end {
	struct vb_nic_config config; /* the row may change it before the engine is made */
	struct vb_gid gid;
	struct vb_nic *nic;
	struct vb_port_parts parts; /* the row fills in the carriers */
	struct vb_port *port;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_mr *mr;
	struct vb_qp *qps[CARRIER_QPS];
	uint8_t *source; /* CARRIER_REQUESTS places */
	uint8_t *target;
	uint32_t sends_done;
	uint32_t receives_done;
	struct vb_key_row key_rows[CARRIER_ROWS];
	struct vb_qp_row qp_rows[CARRIER_ROWS];
};

struct carrier_ends {
	struct carrier_end end[2];
	uint64_t seed;
	uint64_t now_ns;
};

struct carrier_row {
	const char *name;
	bool may_lose; /* or repeat */
	/* Before the engines exist; or NULL. */
	void (*prepare)(struct carrier_ends *ends);
	/* Makes the carriers. */
	void (*open)(struct carrier_ends *ends);
	/* Puts the QPs on links, when they are connected; or NULL. */
	void (*attach)(struct carrier_ends *ends);
	/* What happens while packets are on their way, once a turn; or NULL. */
	void (*disturb)(struct carrier_ends *ends);
	void (*close)(struct carrier_ends *ends);
};

struct carrier_ends *carrier_ends_open(const struct carrier_row *row, uint64_t seed);
void carrier_ends_close(const struct carrier_row *row, struct carrier_ends *ends);

/* One turn of both ports. */
void carrier_ends_turn(struct carrier_ends *ends);

/* Both ends post SENDs, WRITEs and READs of all lengths on all QPs. */
void carrier_ends_post(struct carrier_ends *ends);
/* Drives until all of them are complete, and checks every byte. */
void carrier_ends_complete(const struct carrier_row *row, struct carrier_ends *ends);
/* Overwrites what the posted requests send. */
void carrier_ends_scribble(struct carrier_ends *ends);

/* Posts and completes. */
void carrier_ends_exchange(const struct carrier_row *row, struct carrier_ends *ends);

/* How often the engines had to repeat something, or saw a repetition. */
uint64_t carrier_ends_repetitions(const struct carrier_ends *ends);

#endif
