/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two QPs of one adapter, of which one writes into memory by the other: by packets, which pass the
 * port, or by the engine, which executes the WRITEs itself.
 */
#ifndef VB_TESTS_SUPPORT_WRITES_H
#define VB_TESTS_SUPPORT_WRITES_H

#include "support_adapter.h"

#include "host/adapter/adapter_priv.h"

enum { WRITES_COUNT = 64, WRITES_LENGTH = 3000 };

struct writes {
	struct vb_adapter *adapter;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_qp *qp, *target;
	struct vb_mr *mr;
	uint8_t memory[2 * WRITES_LENGTH]; /* written from, and written to */
};

void writes_begin(struct writes *writes, bool is_by_shared_memory);
/* Posts WRITES_COUNT requests, and waits until all are done. */
void writes_run(struct writes *writes);
void writes_end(struct writes *writes);

#endif
