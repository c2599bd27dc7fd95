/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A verbs program that the drill (wire.c) controls over TCP. The drill sends prepared packets and
 * checks the answers; the dummy is what it drills. It runs with our library or with the
 * distribution's. It does nothing by itself: each connection on its TCP port gives orders
 * (support_order.h), and everything made for a connection is destroyed when it ends.
 *
 * 	dummy <device> <own address> <drill's address> <TCP port>
 */
#include "drill/actor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCESS_ALL                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static union ibv_gid own_gid, drill_gid;
static int gid_index;

/* The objects of the current connection. */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct ibv_ah *ah; /* to the drill */

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* --- the QP ----------------------------------------------------------------------------------- */

static struct ibv_ah_attr address_of_drill(void)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = drill_gid, .sgid_index = (uint8_t)gid_index, .hop_limit = 64 },
	};
}

void actor_create(enum ibv_qp_type service, uint32_t *qpn, uint32_t *rkey)
{
	struct ibv_ah_attr address = address_of_drill();
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = QUEUE_DEPTH,
			 .max_recv_wr = QUEUE_DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = service,
	};

	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * QUEUE_DEPTH, NULL, NULL, 0);
	if (!pd || !cq)
		give_up("PD or CQ");
	mr = ibv_reg_mr(pd, region, REGION_LENGTH, ACCESS_ALL);
	ah = ibv_create_ah(pd, &address);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	if (!mr || !ah || !qp)
		give_up("region, address handle or QP");
	*qpn = qp->qp_num;
	*rkey = mr->rkey;
}

void actor_destroy(void)
{
	if (ibv_destroy_qp(qp) || ibv_destroy_ah(ah) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq) ||
	    ibv_dealloc_pd(pd))
		give_up("ending the QP");
}

static enum ibv_mtu mtu_code(uint32_t mtu)
{
	enum ibv_mtu code = IBV_MTU_256;

	while ((128u << code) < mtu)
		code++;
	return code;
}

bool actor_modify(enum ibv_qp_state state, const struct order_attr *wanted, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = wanted->access,
		.qkey = wanted->qkey,
		.ah_attr = address_of_drill(),
		.path_mtu = mtu_code(wanted->mtu),
		.timeout = wanted->timeout,
		.retry_cnt = wanted->retry,
		.rnr_retry = wanted->rnr_retry,
		.min_rnr_timer = wanted->min_rnr,
		.max_rd_atomic = (uint8_t)wanted->reads_out,
		.max_dest_rd_atomic = (uint8_t)wanted->reads_in,
		.rq_psn = wanted->rq_psn,
		.sq_psn = wanted->sq_psn,
		.dest_qp_num = DRILL_QPN,
	};

	return !ibv_modify_qp(qp, &attr, mask);
}

enum ibv_qp_state actor_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) ? IBV_QPS_UNKNOWN : attr.qp_state;
}

/* --- requests and completions ----------------------------------------------------------------- */

static struct ibv_sge buffer_of(const struct order_post *post)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)region + post->offset,
		.length = post->length,
		.lkey = mr->lkey,
	};
}

bool actor_post_recv(const struct order_post *post)
{
	struct ibv_sge sge = buffer_of(post);
	struct ibv_recv_wr request = { .wr_id = post->number, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return !ibv_post_recv(qp, &request, &bad);
}

/* Sets the destination. Each kind of request has its own member of the union. */
static void set_target(struct ibv_send_wr *request, const struct order_post *post)
{
	if (qp->qp_type == IBV_QPT_UD) {
		request->wr.ud.ah = ah;
		request->wr.ud.remote_qpn = DRILL_QPN;
		request->wr.ud.remote_qkey = post->qkey;
	} else if (request->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
		   request->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		request->wr.atomic.remote_addr = DRILL_ADDRESS;
		request->wr.atomic.rkey = DRILL_RKEY;
		request->wr.atomic.compare_add = post->compare_add;
		request->wr.atomic.swap = post->swap;
	} else {
		request->wr.rdma.remote_addr = DRILL_ADDRESS;
		request->wr.rdma.rkey = DRILL_RKEY;
	}
}

bool actor_post_send(const struct order_post *post)
{
	struct ibv_sge sge = buffer_of(post);
	struct ibv_send_wr *bad, request = {
		.wr_id = post->number,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = post->opcode,
		.send_flags = IBV_SEND_SIGNALED | (post->is_fenced ? IBV_SEND_FENCE : 0),
		.imm_data = htonl(post->imm),
	};

	set_target(&request, post);
	return !ibv_post_send(qp, &request, &bad);
}

bool actor_poll(struct ibv_wc *done)
{
	int count = ibv_poll_cq(cq, 1, done);

	if (count < 0)
		give_up("ibv_poll_cq");
	if (count)
		done->imm_data = ntohl(done->imm_data);
	return count;
}

/* --- orders ----------------------------------------------------------------------------------- */

static void serve(int fd)
{
	char order[ORDER_MAX];
	FILE *orders = fdopen(fd, "r");

	if (!orders)
		give_up("fdopen");
	while (fgets(order, sizeof(order), orders)) {
		order[strcspn(order, "\n")] = '\0';
		if (dprintf(fd, "%s\n", obey(order)) < 0)
			break;
	}
	fclose(orders);
	obey_no_more();
}

/* --- startup ---------------------------------------------------------------------------------- */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	errno = ENODEV;
	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		give_up(name);
	ibv_free_device_list(list);
}

static void find_gid(void)
{
	union ibv_gid gid;

	for (;; gid_index++) {
		if (ibv_query_gid(context, 1, gid_index, &gid))
			give_up("no GID has this address");
		if (!memcmp(&gid, &own_gid, sizeof(gid)))
			return;
	}
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	errno = EINVAL;
	if (inet_pton(AF_INET6, mapped, &gid) != 1)
		give_up(text);
	return gid;
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	int listener = socket(AF_INET6, SOCK_STREAM, 0), on = 1;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 1))
		give_up("listening");
	return listener;
}

int main(int argc, char **argv)
{
	int listener, fd, on = 1;

	if (argc != 5) {
		fprintf(stderr, "usage: %s device own-address drill's-address TCP-port\n", argv[0]);
		return 2;
	}
	own_gid = gid_of(argv[2]);
	drill_gid = gid_of(argv[3]);
	open_device(argv[1]);
	find_gid();
	signal(SIGPIPE, SIG_IGN); /* a drill may leave before it has read all answers */
	listener = listen_on((uint16_t)strtoul(argv[4], NULL, 10));
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		serve(fd);
	}
	give_up("accept");
}
