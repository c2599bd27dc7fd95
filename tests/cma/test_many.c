/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many connections from one process to another: all at the same time, and one after the other for a
 * long time, after which nothing may be left in either process. Connections are made with a short
 * ACK timeout, and so are not long in TIMEWAIT: what waits there is no leak.
 */
#include "support_cma.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT_ONCE 1000
#define ACK_TIMEOUT 8 /* 1 ms */

/* --- the server ------------------------------------------------------------------------------- */

_Noreturn static void serve(int said)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *id;

	make_listener_with_room(channel, RDMA_PS_TCP, AT_ONCE);
	EXPECT_EQ(write(said, "", 1), 1);
	for (;;) {
		struct rdma_cm_event *event;
		enum rdma_cm_event_type type;

		EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
		type = event->event;
		id = event->id;
		EXPECT_EQ(rdma_ack_cm_event(event), 0);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(id);
			EXPECT_EQ(rdma_accept(id, NULL), 0);
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			destroy(id);
		} else {
			EXPECT_EQ(type, RDMA_CM_EVENT_ESTABLISHED);
		}
	}
}

static pid_t start_server(void)
{
	int said[2];
	pid_t pid;
	char byte;

	EXPECT_EQ(pipe(said), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		serve(said[1]);
	EXPECT_EQ(read(said[0], &byte, 1), 1);
	close(said[0]);
	close(said[1]);
	return pid;
}

/* Ends the server, which must have lived until now. */
static void end_server(pid_t pid)
{
	int status;

	EXPECT_EQ(waitpid(pid, &status, WNOHANG), 0);
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
}

/* --- all at the same time --------------------------------------------------------------------- */

static struct rdma_cm_id *begin(struct rdma_event_channel *channel)
{
	struct rdma_cm_id *id = make_id(channel, RDMA_PS_TCP);
	union address address = address_of("127.0.0.1", PORT);
	uint8_t timeout = ACK_TIMEOUT;

	EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1), 0);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	return id;
}

/* Takes the next event and takes the next step. Returns true if it was the last. */
static bool go_on(struct rdma_event_channel *channel)
{
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;
	enum rdma_cm_event_type type;

	EXPECT_EQ(rdma_get_cm_event(channel, &event), 0);
	id = event->id;
	type = event->event;
	EXPECT_EQ(rdma_ack_cm_event(event), 0);
	if (type == RDMA_CM_EVENT_ADDR_RESOLVED) {
		EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
	} else if (type == RDMA_CM_EVENT_ROUTE_RESOLVED) {
		make_qp(id);
		EXPECT_EQ(rdma_connect(id, NULL), 0);
	} else {
		EXPECT_STR(rdma_event_str(type), "RDMA_CM_EVENT_ESTABLISHED");
		return true;
	}
	return false;
}

TEST(a_thousand_connections_at_once_are_all_established)
{
	static struct rdma_cm_id *ids[AT_ONCE];
	struct rdma_event_channel *channel;
	pid_t server;

	enter_network();
	server = start_server();
	channel = make_channel();
	for (int i = 0; i < AT_ONCE; i++)
		ids[i] = begin(channel);
	for (int established = 0; established < AT_ONCE;)
		established += go_on(channel);
	for (int i = 0; i < AT_ONCE; i++)
		EXPECT_EQ(state_of(ids[i]), IBV_QPS_RTS);
	for (int i = 0; i < AT_ONCE; i++)
		destroy(ids[i]);
	end_server(server);
	rdma_destroy_event_channel(channel);
}

/* --- one after the other ---------------------------------------------------------------------- */

static void cycle(struct rdma_event_channel *channel, int count)
{
	for (int i = 0; i < count; i++) {
		struct rdma_cm_id *id = begin(channel);

		while (!go_on(channel))
			;
		EXPECT_EQ(rdma_disconnect(id), 0);
		EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_DISCONNECTED), 0);
		destroy(id);
	}
}

static long count_descriptors(pid_t pid)
{
	char path[64];
	DIR *folder;
	long count = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	folder = opendir(path);
	EXPECT(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

/* Names of services are sockets of the network namespace, which is the test's own. */
static long count_names(void)
{
	FILE *file = fopen("/proc/self/net/unix", "r");
	char line[512];
	long count = 0;

	EXPECT(file);
	while (fgets(line, sizeof(line), file))
		count += strstr(line, "verbatim") != NULL;
	fclose(file);
	return count;
}

/* Does not count what the process shares with others: tables of a fixed size. */
static long resident_bytes(pid_t pid)
{
	char path[64];
	long pages, resident, shared;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "r");
	EXPECT(file);
	EXPECT_EQ(fscanf(file, "%ld %ld %ld", &pages, &resident, &shared), 3);
	fclose(file);
	return (resident - shared) * sysconf(_SC_PAGESIZE);
}

/* A sanitizer keeps what was freed, but knows what was not. */
__attribute__((weak)) size_t __sanitizer_get_current_allocated_bytes(void);

static long own_bytes(void)
{
	if (&__sanitizer_get_current_allocated_bytes)
		return (long)__sanitizer_get_current_allocated_bytes();
	return resident_bytes(getpid());
}

static long bytes_of_server(pid_t pid)
{
	return &__sanitizer_get_current_allocated_bytes ? 0 : resident_bytes(pid);
}

struct footprint {
	long own_descriptors, server_descriptors, names;
	long own_bytes, server_bytes;
};

static struct footprint measure(pid_t server)
{
	return (struct footprint){
		.own_descriptors = count_descriptors(getpid()),
		.server_descriptors = count_descriptors(server),
		.names = count_names(),
		.own_bytes = own_bytes(),
		.server_bytes = bytes_of_server(server),
	};
}

TEST(connections_that_come_and_go_leave_nothing_in_either_process)
{
	int count = test_is_thorough() ? 10000 : 1000;
	/*
	 * The bound is less than an identifier, an event, a connection or a QP. It is more than the
	 * rows of tables, which have a fixed size but become resident one after the other. Without
	 * a sanitizer, only whole heaps are visible.
	 */
	long leak_max = 300L * count + (&__sanitizer_get_current_allocated_bytes ? 0 : 1 << 20);
	struct rdma_event_channel *channel;
	struct footprint before, after;
	pid_t server;

	enter_network();
	server = start_server();
	channel = make_channel();
	cycle(channel, count); /* for what is allocated once, and for the connections in TIMEWAIT */
	before = measure(server);
	cycle(channel, count);
	after = measure(server);
	EXPECT_EQ(after.own_descriptors, before.own_descriptors);
	EXPECT_EQ(after.server_descriptors, before.server_descriptors);
	EXPECT_EQ(after.names, before.names);
	EXPECT(after.own_bytes < before.own_bytes + leak_max);
	EXPECT(after.server_bytes < before.server_bytes + leak_max);
	end_server(server);
	rdma_destroy_event_channel(channel);
}
