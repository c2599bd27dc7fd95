/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs for librdmacm, written like any other: identifiers, events, and a connected pair within
 * one process.
 */
#ifndef VB_TESTS_CMA_SUPPORT_H
#define VB_TESTS_CMA_SUPPORT_H

#include "harness.h"

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <stdint.h>

enum { PORT = 7471 };

/* Enters a network namespace of the test's own, with loopback only. */
void enter_network(void);

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
	struct sockaddr_storage storage;
};

/* "127.0.0.1", "::1", … */
union address address_of(const char *text, uint16_t port);

struct rdma_event_channel *make_channel(void);
struct rdma_cm_id *make_id(struct rdma_event_channel *channel, enum rdma_port_space space);
/* A listener on all IPv4 addresses. */
struct rdma_cm_id *make_listener(struct rdma_event_channel *channel, enum rdma_port_space space);
struct rdma_cm_id *make_listener_with_room(struct rdma_event_channel *channel,
					   enum rdma_port_space space, int backlog);
/* An identifier whose route to loopback is resolved, with a QP. */
struct rdma_cm_id *make_client(struct rdma_event_channel *channel, enum rdma_port_space space);
struct rdma_cm_id *make_client_of(struct rdma_event_channel *channel, enum rdma_port_space space,
				  const char *server);
void make_qp(struct rdma_cm_id *id);
void destroy(struct rdma_cm_id *id);

/* Returns the next event, which must be of this type. The caller acknowledges it. */
struct rdma_cm_event *take_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);
/* The same, but acknowledges the event and returns its status. */
int pass_event(struct rdma_event_channel *channel, enum rdma_cm_event_type type);

/* Returns the identifier of the next event, which must be a request. */
struct rdma_cm_id *take_request(struct rdma_event_channel *channel);

/* An established connection within this process. Each end has a channel. */
struct pair {
	struct rdma_event_channel *server_channel, *client_channel;
	struct rdma_cm_id *listener, *server, *client;
};
void pair_connect(struct pair *pair);
void pair_destroy(struct pair *pair);

enum ibv_qp_state state_of(struct rdma_cm_id *id);

#define EXPECT_ERRNO(call, error)        \
	do {                             \
		errno = 0;               \
		EXPECT_EQ((call), -1);   \
		EXPECT_EQ(errno, error); \
	} while (0)

#endif
