/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small connection manager. It does what librdmacm does with QP 1 (host/qp1/qp1_user.h), for one
 * machine (mgmt/cm.h) and without QPs. Its connections carry no data. Events are taken one by one;
 * an event that does not come fails the test by the test's time-out.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_MANAGER_H
#define VB_TESTS_LIVE_SUPPORT_MANAGER_H

#include "harness.h"
#include "host/qp1/qp1_user.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/types.h>

#define MANAGER_EVENTS 4096
#define SPACE_PORT(port) vb_service_id(VB_SERVICE_SPACE_TCP, port)

struct manager {
	struct ibv_context *context;
	struct vb_qp1_config place;
	pthread_mutex_t lock; /* protects everything below */
	struct vb_cm *cm;
	int events_fd; /* counts the events */
	struct vb_cm_event events[MANAGER_EVENTS];
	uint32_t event_first;
	uint32_t event_count;
	uint32_t qpn_next;
};

struct service {
	struct vb_cm_listener *listener;
	struct vb_abi_qp1_name *name;
};

void manager_open(struct manager *manager);
/* Ends connections that still exist first. */
void manager_close(struct manager *manager);

/* Listens for both families, on `address` or, if it is NULL, on any address. */
void manager_listen(struct manager *manager, uint16_t port, const char *address,
		    struct service *service);
void manager_unlisten(struct manager *manager, struct service *service);

struct vb_cm_connection *manager_connect(struct manager *manager, const char *from, const char *to,
					 uint16_t port);
void manager_accept(struct manager *manager, struct vb_cm_connection *connection);
void manager_establish(struct manager *manager, struct vb_cm_connection *connection);
void manager_disconnect(struct manager *manager, struct vb_cm_connection *connection);
void manager_destroy(struct manager *manager, struct vb_cm_connection *connection);

/* Waits for the next event, which must be of that kind. */
struct vb_cm_event manager_expect(struct manager *manager, enum vb_cm_event_kind kind);
struct vb_cm_event manager_wait(struct manager *manager);
bool manager_has_event(struct manager *manager);

/* Creates both ends in one call, for a test that is not about connecting. */
struct vb_cm_connection *manager_take_connection(struct manager *manager);
struct vb_cm_connection *manager_make_connection(struct manager *manager, const char *from,
						 const char *to, uint16_t port);

struct vb_cm_counters manager_counters(struct manager *manager);

/* --- processes -------------------------------------------------------------------------------- */

/* A process that runs part of a test, and a socket to it. */
struct party {
	pid_t pid;
	int line;
};

/* Call this before the process has opened anything: a forked child inherits none of it. */
struct party party_start(void (*run)(int line));
void party_join(struct party *party); /* the process must have reached its end */
void party_kill(struct party *party);

void say_letter(int line, char letter);
void hear_letter(int line, char letter);

#endif
