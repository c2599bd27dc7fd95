/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library that is preloaded into both programs of a case, so that neither comes too early. A
 * server that listens leaves a file in the folder $MEETING, "tcp.<port>" or "cm.<port>", and
 * removes the latter before it ends that listener. A client waits in rdma_connect() for the file of
 * the port that it wants: perftest and qperf agree to connect, and the server begins to listen
 * after that; a client on a faster machine does not wait for this.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATIENCE_MS 30000
#define STEP_MS 5
#define LISTENERS_MAX 16

static struct rdma_cm_id *listeners[LISTENERS_MAX]; /* programs listen from one thread */

union address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* 0 if the address has none. */
static unsigned port_of(const struct sockaddr *address)
{
	const union address *known = (const union address *)address;

	if (address->sa_family == AF_INET)
		return ntohs(known->ipv4.sin_port);
	return address->sa_family == AF_INET6 ? ntohs(known->ipv6.sin6_port) : 0;
}

static void name_file(char path[static 256], const char *kind, unsigned port)
{
	const char *folder = getenv("MEETING");

	snprintf(path, 256, "%s/%s.%u", folder ? folder : ".", kind, port);
}

static void announce(const char *kind, unsigned port)
{
	char path[256];
	int file;

	name_file(path, kind, port);
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (file >= 0)
		close(file);
}

static void withdraw(const char *kind, unsigned port)
{
	char path[256];

	name_file(path, kind, port);
	unlink(path);
}

static void await(const char *kind, unsigned port)
{
	char path[256];

	name_file(path, kind, port);
	for (int i = 0; i < PATIENCE_MS / STEP_MS && access(path, F_OK); i++)
		usleep(STEP_MS * 1000);
}

int listen(int descriptor, int backlog)
{
	int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "listen");
	union address address = { 0 };
	socklen_t length = sizeof(address);
	int status = next(descriptor, backlog);

	if (!status && !getsockname(descriptor, &address.any, &length) && port_of(&address.any))
		announce("tcp", port_of(&address.any));
	return status;
}

/* --- the connection manager ------------------------------------------------------------------- */

static bool replace_listener(const struct rdma_cm_id *old, struct rdma_cm_id *new)
{
	for (int i = 0; i < LISTENERS_MAX; i++)
		if (listeners[i] == old) {
			listeners[i] = new;
			return true;
		}
	return false;
}

int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	int (*next)(struct rdma_cm_id *, int) =
		(int (*)(struct rdma_cm_id *, int))dlsym(RTLD_NEXT, "rdma_listen");
	int status = next(id, backlog);

	if (!status && replace_listener(NULL, id))
		announce("cm", port_of(rdma_get_local_addr(id)));
	return status;
}

int rdma_destroy_id(struct rdma_cm_id *id)
{
	int (*next)(struct rdma_cm_id *) =
		(int (*)(struct rdma_cm_id *))dlsym(RTLD_NEXT, "rdma_destroy_id");

	if (id && replace_listener(id, NULL))
		withdraw("cm", port_of(rdma_get_local_addr(id)));
	return next(id);
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int (*next)(struct rdma_cm_id *, struct rdma_conn_param *) = (int (*)(
		struct rdma_cm_id *, struct rdma_conn_param *))dlsym(RTLD_NEXT, "rdma_connect");

	await("cm", port_of(rdma_get_peer_addr(id)));
	return next(id, param);
}
