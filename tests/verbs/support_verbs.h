/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters of this process, A and B, and an RC connection between them, by nothing but the
 * verbs that any program uses. Each side has a page-aligned buffer that a test may take away;
 * everything is released only when the process ends.
 */
#ifndef VB_TESTS_SUPPORT_VERBS_H
#define VB_TESTS_SUPPORT_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum side { A, B };

struct node {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	/* Has no QPs: polling it drives the adapter and takes nothing. */
	struct ibv_cq *empty_cq;
	struct ibv_qp *qp;
	union ibv_gid gid;
};

/* Opens the device, once or twice. */
void open_node(struct node *node);
void open_nodes(struct node nodes[2]);

/* Destroys the QPs of both, if there are any, and connects new ones. */
void connect_nodes(struct node nodes[2]);
/* The same by steps, for a peer in another process. */
void create_qp(struct node *node);
void connect_qp(struct node *node, uint32_t peer_qpn);

struct ibv_mr *register_memory(const struct node *node, void *memory, size_t length);

/* A request of one buffer; remote address and key are those of `target`, if there is one. */
struct ibv_send_wr make_request(enum ibv_wr_opcode opcode, struct ibv_sge *local,
				const struct ibv_mr *target);
struct ibv_sge make_sge(const struct ibv_mr *mr, uint32_t length);

void post_send(const struct node *node, struct ibv_send_wr request);
void post_recv(const struct node *node, struct ibv_sge sge);

/*
 * Waits for the next completion on one side. This thread drives that adapter and, if drives_both,
 * the other; otherwise a helper thread drives the other.
 */
enum ibv_wc_status await_status(struct node nodes[2], enum side side, bool drives_both);

#endif
