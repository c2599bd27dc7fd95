/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The other end of wire.c: an ordinary verbs program, so it runs with our library and with the distribution's alike. It has
 * no will of its own: each connection on its TCP port gets a QP and a region, gives orders (support_order.h), and takes
 * both along when it ends.
 *
 *	dummy <device> <own address> <drill's address> <TCP port>
 */
#include "drill/support_order.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAGE 4096
#define ACCESS_ALL                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

static struct ibv_context *context;
static union ibv_gid own_gid, drill_gid;
static int gid_index;
static _Alignas(PAGE) uint8_t region[REGION_LENGTH];

/* Of the connection that is served. */
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint32_t drill_qpn;
static char answer[ORDER_MAX];

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

/* --- the QP --------------------------------------------------------------------------------------- */

static enum ibv_mtu mtu_code(uint32_t mtu)
{
	enum ibv_mtu code = IBV_MTU_256;

	while ((128u << code) < mtu)
		code++;
	return code;
}

static int modify_towards(enum ibv_qp_state state, const struct order_attr *wanted)
{
	static const int masks[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = state,
		.port_num = 1,
		.qp_access_flags = wanted->access,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = drill_gid,
				      .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
		.path_mtu = mtu_code(wanted->mtu),
		.timeout = wanted->timeout,
		.retry_cnt = wanted->retry,
		.rnr_retry = wanted->rnr_retry,
		.min_rnr_timer = wanted->min_rnr,
		.max_rd_atomic = (uint8_t)wanted->reads_out,
		.max_dest_rd_atomic = (uint8_t)wanted->reads_in,
		.rq_psn = wanted->rq_psn,
		.sq_psn = wanted->sq_psn,
		.dest_qp_num = drill_qpn,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | masks[state]);
}

static const char *connect_qp(const char *order)
{
	struct order_attr wanted = order_attr(order);

	for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		int error = modify_towards(state, &wanted);

		if (error) {
			snprintf(answer, sizeof(answer), "no: ibv_modify_qp to state %d: %s", state,
				 strerror(error));
			return answer;
		}
	}
	return "done";
}

static const char *reset_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE) ? "no: ibv_modify_qp" : "done";
}

static const char *open_qp(const char *order)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = QUEUE_DEPTH,
			 .max_recv_wr = QUEUE_DEPTH,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	const char *said;

	if (qp)
		return "no: it is open";
	pattern_fill(region);
	drill_qpn = (uint32_t)order_value(order, "qpn", 0);
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4 * QUEUE_DEPTH, NULL, NULL, 0);
	if (!pd || !cq)
		give_up("PD or CQ");
	mr = ibv_reg_mr(pd, region, REGION_LENGTH, ACCESS_ALL);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(pd, &attr);
	if (!mr || !qp)
		give_up("region or QP");
	said = connect_qp(order);
	if (strcmp(said, "done") != 0)
		return said;
	snprintf(answer, sizeof(answer), "qpn=0x%x address=0x%" PRIxPTR " rkey=0x%x", qp->qp_num,
		 (uintptr_t)region, mr->rkey);
	return answer;
}

static void close_qp(void)
{
	if (!qp)
		return;
	if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr) || ibv_destroy_cq(cq) || ibv_dealloc_pd(pd))
		give_up("ending the QP");
	qp = NULL;
}

static const char *state_of_qp(void)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || attr.qp_state > IBV_QPS_ERR)
		return "no: ibv_query_qp";
	return names[attr.qp_state];
}

/* --- requests and completions --------------------------------------------------------------------- */

static int post_recv(const struct order_post *post, struct ibv_sge *sge)
{
	struct ibv_recv_wr request = { .wr_id = post->number, .sg_list = sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(qp, &request, &bad);
}

static bool is_atomic(enum order_operation operation)
{
	return operation == ORDER_FETCH_ADD || operation == ORDER_COMPARE_SWAP;
}

static int post_send(const struct order_post *post, struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[ORDER_SEND] = IBV_WR_SEND,
		[ORDER_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[ORDER_WRITE] = IBV_WR_RDMA_WRITE,
		[ORDER_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[ORDER_READ] = IBV_WR_RDMA_READ,
		[ORDER_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[ORDER_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct ibv_send_wr *bad, request = {
		.wr_id = post->number,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = opcodes[post->operation],
		.send_flags = IBV_SEND_SIGNALED | (post->is_fenced ? IBV_SEND_FENCE : 0),
		.imm_data = htonl(post->imm),
	};

	if (is_atomic(post->operation)) {
		request.wr.atomic.remote_addr = DRILL_ADDRESS;
		request.wr.atomic.rkey = DRILL_RKEY;
		request.wr.atomic.compare_add = post->compare_add;
		request.wr.atomic.swap = post->swap;
	} else {
		request.wr.rdma.remote_addr = DRILL_ADDRESS;
		request.wr.rdma.rkey = DRILL_RKEY;
	}
	return ibv_post_send(qp, &request, &bad);
}

static const char *post(const char *order)
{
	struct order_post wanted = order_post(order);
	struct ibv_sge sge = {
		.addr = (uintptr_t)region + wanted.offset,
		.length = wanted.length,
		.lkey = mr->lkey,
	};
	int error;

	if (wanted.operation == ORDER_UNKNOWN)
		return "no: what is to be posted?";
	error = wanted.operation == ORDER_RECV ? post_recv(&wanted, &sge)
					       : post_send(&wanted, &sge);
	return error ? "no: posting was refused" : "done";
}

/* As the engine names them. */
static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[IBV_WC_FATAL_ERR] = "FATAL_ERR",
	};

	if ((size_t)status >= sizeof(names) / sizeof(names[0]) || !names[status])
		return ibv_wc_status_str(status);
	return names[status];
}

static const char *opcode_name(enum ibv_wc_opcode opcode)
{
	switch (opcode) {
	case IBV_WC_SEND:
		return "SEND";
	case IBV_WC_RDMA_WRITE:
		return "WRITE";
	case IBV_WC_RDMA_READ:
		return "READ";
	case IBV_WC_COMP_SWAP:
		return "COMPARE_SWAP";
	case IBV_WC_FETCH_ADD:
		return "FETCH_ADD";
	case IBV_WC_RECV:
		return "RECV";
	case IBV_WC_RECV_RDMA_WITH_IMM:
		return "RECV_WRITE_IMM";
	default:
		return "?";
	}
}

static const char *poll_one(void)
{
	struct ibv_wc done;
	int used, count = ibv_poll_cq(cq, 1, &done);

	if (count < 0)
		return "no: ibv_poll_cq";
	if (!count)
		return "none";
	used = snprintf(answer, sizeof(answer), "wr=%" PRIu64 " %s", done.wr_id,
			status_name(done.status));
	if (done.status != IBV_WC_SUCCESS)
		return answer;
	used += snprintf(answer + used, sizeof(answer) - (size_t)used, " %s",
			 opcode_name(done.opcode));
	if (!(done.opcode & IBV_WC_RECV))
		return answer;
	used += snprintf(answer + used, sizeof(answer) - (size_t)used, " len=%u", done.byte_len);
	if (done.wc_flags & IBV_WC_WITH_IMM)
		snprintf(answer + used, sizeof(answer) - (size_t)used, " imm=0x%x",
			 ntohl(done.imm_data));
	return answer;
}

/* --- orders --------------------------------------------------------------------------------------- */

static const char *store_word(const char *order)
{
	uint64_t word = order_value(order, "word", 0);

	memcpy(region + order_value(order, "offset", 0) % (REGION_LENGTH - 7), &word, sizeof(word));
	return "done";
}

static const char *load_bytes(const char *order)
{
	uint32_t offset = (uint32_t)order_value(order, "offset", 0) % (REGION_LENGTH - LOAD_MAX);
	uint32_t length = (uint32_t)order_value(order, "len", 0) % (LOAD_MAX + 1);

	order_answer_bytes(answer, region + offset, length);
	return answer;
}

static const char *obey(const char *order)
{
	if (order_begins(order, "open"))
		return open_qp(order);
	if (!qp)
		return "no: open comes first";
	if (order_begins(order, "post"))
		return post(order);
	if (order_begins(order, "poll"))
		return poll_one();
	if (order_begins(order, "state"))
		return state_of_qp();
	if (order_begins(order, "store"))
		return store_word(order);
	if (order_begins(order, "load"))
		return load_bytes(order);
	if (order_begins(order, "reset"))
		return reset_qp();
	if (order_begins(order, "connect"))
		return connect_qp(order);
	return "no: there is no such order";
}

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
	close_qp();
}

/* --- beginning ------------------------------------------------------------------------------------ */

static void open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	union ibv_gid gid;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (!context)
		give_up(name);
	ibv_free_device_list(list);
	while (!ibv_query_gid(context, 1, gid_index, &gid) &&
	       memcmp(&gid, &own_gid, sizeof(gid)) != 0)
		gid_index++;
	if (memcmp(&gid, &own_gid, sizeof(gid)) != 0)
		give_up("no GID has this address");
}

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
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
	listener = listen_on((uint16_t)strtoul(argv[4], NULL, 10));
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		serve(fd);
	}
	give_up("accept");
}
