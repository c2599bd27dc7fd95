/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs over the real driver: a device on the loopback interface of a network that the test has
 * for itself, QPs that are connected to each other, and the log of the library. Every failure ends
 * the test.
 */
#ifndef VB_TESTS_ABI_SUPPORT_DEVICE_H
#define VB_TESTS_ABI_SUPPORT_DEVICE_H

#include <infiniband/verbs.h>
#include <stdint.h>

/* GID_INDEX is 127.0.0.1; ALL_ACCESS is local write, remote write, read and atomic. */
enum { GID_INDEX = 1, QKEY = 0x11111111, ALL_ACCESS = 0xf };

struct ibv_context *open_device(void);

/* The network and the log without a device: VERBATIM_DEVICES stays as the test set it. */
void enter_own_network(void);
void keep_log(void);

/* What the library has logged, at "warn" and above, since the last call. */
const char *take_log(void);

/*
 * A QP of that type in INIT, whose completions all go to cq; supports the extended ibv_wr_* calls.
 */
struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq, enum ibv_qp_type type);
struct ibv_qp *make_qp_as(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* From INIT to RTS; set_ready() is for UD. */
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
