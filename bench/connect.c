/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast connections are made, each with a QP of its own at both ends: from an identifier without
 * an address to the event that reports the connection as established. The client makes them all at
 * the same time, as fast as it can, then the same number one after the other, each ended before the
 * next begins. The program prints both rates, in connections per second. The server serves until it
 * is killed.
 *
 *	connect                       as the server
 *	connect <address> <count>     as the client
 */
#include "support_net.h"
#include "support_report.h"

#include <rdma/rdma_cma.h>
#include <stdbool.h>

#define PORT 18700
#define BACKLOG 1024
#define RESOLVE_MS 2000

static struct rdma_event_channel *channel;

static void make_qp(struct rdma_cm_id *id)
{
	static struct ibv_cq *cq;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!cq)
		cq = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = cq;
	BENCH_CHECK(cq && !rdma_create_qp(id, NULL, &attr));
}

static void destroy(struct rdma_cm_id *id)
{
	rdma_destroy_qp(id);
	BENCH_CHECK(!rdma_destroy_id(id));
}

/* Returns the type of the next event, and its identifier. */
static enum rdma_cm_event_type next_event(struct rdma_cm_id **id_out)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	BENCH_CHECK(!rdma_get_cm_event(channel, &event));
	type = event->event;
	*id_out = event->id;
	BENCH_CHECK(!rdma_ack_cm_event(event));
	return type;
}

/* --- the server ------------------------------------------------------------------------------- */

_Noreturn static void serve(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_cm_id *id;

	BENCH_CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	BENCH_CHECK(!rdma_bind_addr(id, (struct sockaddr *)&address));
	BENCH_CHECK(!rdma_listen(id, BACKLOG));
	for (;;) {
		enum rdma_cm_event_type type = next_event(&id);

		if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
			make_qp(id);
			BENCH_CHECK(!rdma_accept(id, NULL));
		} else if (type == RDMA_CM_EVENT_DISCONNECTED) {
			destroy(id);
		} else {
			BENCH_CHECK(type == RDMA_CM_EVENT_ESTABLISHED);
		}
	}
}

/* --- the client ------------------------------------------------------------------------------- */

static struct rdma_cm_id *begin(struct sockaddr_in *server)
{
	struct rdma_cm_id *id;

	BENCH_CHECK(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	BENCH_CHECK(!rdma_resolve_addr(id, NULL, (struct sockaddr *)server, RESOLVE_MS));
	return id;
}

/*
 * Takes the next event and takes the next step. Returns true if it was the last: a connection is
 * established.
 */
static bool go_on(void)
{
	struct rdma_cm_id *id;

	switch ((int)next_event(&id)) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		BENCH_CHECK(!rdma_resolve_route(id, RESOLVE_MS));
		return false;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make_qp(id);
		BENCH_CHECK(!rdma_connect(id, NULL));
		return false;
	case RDMA_CM_EVENT_ESTABLISHED:
		return true;
	default:
		fprintf(stderr, "connect: a connection was not made\n");
		exit(1);
	}
}

static double together(struct sockaddr_in *server, uint32_t count)
{
	struct rdma_cm_id **ids = calloc(count, sizeof(struct rdma_cm_id *));
	uint64_t begin_ns = clock_now_ns(), end_ns;

	BENCH_CHECK(ids);
	for (uint32_t i = 0; i < count; i++)
		ids[i] = begin(server);
	for (uint32_t established = 0; established < count;)
		established += go_on();
	end_ns = clock_now_ns();
	for (uint32_t i = 0; i < count; i++)
		destroy(ids[i]);
	free(ids);
	return count / ((double)(end_ns - begin_ns) / 1e9);
}

static double one_by_one(struct sockaddr_in *server, uint32_t count)
{
	uint64_t begin_ns = clock_now_ns();

	for (uint32_t i = 0; i < count; i++) {
		struct rdma_cm_id *id = begin(server);

		while (!go_on())
			;
		destroy(id);
	}
	return count / ((double)(clock_now_ns() - begin_ns) / 1e9);
}

int main(int argc, char **argv)
{
	struct sockaddr_in server;
	uint32_t count;

	channel = rdma_create_event_channel();
	BENCH_CHECK(channel);
	if (argc < 3)
		serve();
	server = net_address(argv[1], PORT);
	count = (uint32_t)atoi(argv[2]);
	printf("%.1f ", together(&server, count));
	printf("%.1f\n", one_by_one(&server, count));
	return 0;
}
