/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs over the real driver: a device on the loopback interface of a network that the test has for itself, QPs that
 * are connected to each other, and what the library wrote into its log. All of it ends the test when it fails.
 */
#ifndef VB_TESTS_ABI_SUPPORT_DEVICE_H
#define VB_TESTS_ABI_SUPPORT_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>

enum {
	GID_INDEX = 1,
	QKEY = 0x11111111,
	ALL_ACCESS = 0xf
}; /* 127.0.0.1; local, write, read, atomic */

struct ibv_context *open_device(void);

/* The network and the log without a device: VERBATIM_DEVICES is as the test set it. */
void enter_own_network(void);
void keep_log(void);

/* What the library has logged, at "warn" and above, since this was last called. */
const char *take_log(void);

/* A QP of that type in INIT, all of whose completions go to cq; with the newer way of posting. */
struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type);
struct ibv_qp *make_qp_as(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* From INIT to RTS; the second one is UD's. */
void connect_to(struct ibv_qp *qp, uint32_t remote_qpn);
void connect_pair(struct ibv_qp *a, struct ibv_qp *b);
void set_ready(struct ibv_qp *qp);

struct ibv_ah_attr loopback_address(void);
struct ibv_mr *register_all(struct ibv_pd *pd, void *memory, size_t length);

void post_send(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t offset, uint32_t length);
void post_receive(struct ibv_qp *qp, struct ibv_mr *mr, uint64_t offset, uint32_t length);

/* Waits for the next completion. */
struct ibv_wc wait_completion(struct ibv_cq *cq);
void expect_success(struct ibv_cq *cq, uint64_t wr_id);

#endif
