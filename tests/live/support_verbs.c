/* SPDX-License-Identifier: BSD-2-Clause */
/* The small verbs program. */
#include "support_verbs.h"

#include "namespace.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S 30

void program_enter_namespace(void)
{
	setenv("VERBATIM_PATH", "wire", 0);
	namespace_enter();
	namespace_add_dummy("d0");
	ip("link set lo up");
	ip("address add 10.0.0.1/24 dev d0");
}

static void connect_qp(struct program *program)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = program->to.qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	if (program->path.address)
		EXPECT_EQ(inet_pton(AF_INET6, program->path.address, &attr.ah_attr.grh.dgid), 1);
	else
		EXPECT_EQ(ibv_query_gid(program->context, 1, 1, &attr.ah_attr.grh.dgid), 0);
	EXPECT_EQ(ibv_modify_qp(program->qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(program->qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  0);
	attr.qp_state = IBV_QPS_RTS;
	EXPECT_EQ(ibv_modify_qp(program->qp, &attr,
				IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
		  0);
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	EXPECT(list);
	for (int i = 0; list[i] && !context; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return context;
}

static void make(struct program *program, struct path path)
{
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	memset(program, 0, sizeof(*program));
	program->path = path;
	program->context = open_device(path.device);
	EXPECT(program->context);
	program->channel = ibv_create_comp_channel(program->context);
	program->pd = ibv_alloc_pd(program->context);
	EXPECT(program->channel && program->pd);
	program->mr = ibv_reg_mr(program->pd, program->source, 2 * PROGRAM_LENGTH,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	program->cq = ibv_create_cq(program->context, 8, NULL, program->channel, 0);
	EXPECT(program->mr && program->cq);
	init.send_cq = init.recv_cq = program->cq;
	program->qp = ibv_create_qp(program->pd, &init);
	EXPECT(program->qp);
	program->to = (struct place){ .qpn = program->qp->qp_num,
				      .rkey = program->mr->rkey,
				      .address = (uintptr_t)program->target };
}

void program_open(struct program *program)
{
	program_open_on(program, (struct path){ 0 });
}

void program_open_on(struct program *program, struct path path)
{
	make(program, path);
	connect_qp(program);
}

void program_open_with_peer(struct program *program, int exchange)
{
	program_open_with_peer_on(program, exchange, (struct path){ 0 });
}

void program_open_with_peer_on(struct program *program, int exchange, struct path path)
{
	struct place own, peer;

	make(program, path);
	own = program->to;
	EXPECT_EQ(write(exchange, &own, sizeof(own)), sizeof(own));
	EXPECT_EQ(read(exchange, &peer, sizeof(peer)), sizeof(peer));
	program->to = peer;
	connect_qp(program);
	EXPECT_EQ(write(exchange, "r", 1), 1);
	EXPECT_EQ(read(exchange, &(char){ 0 }, 1), 1);
}

void program_close(struct program *program)
{
	EXPECT_EQ(ibv_destroy_qp(program->qp), 0);
	EXPECT_EQ(ibv_destroy_cq(program->cq), 0);
	EXPECT_EQ(ibv_dereg_mr(program->mr), 0);
	EXPECT_EQ(ibv_dealloc_pd(program->pd), 0);
	EXPECT_EQ(ibv_destroy_comp_channel(program->channel), 0);
	EXPECT_EQ(ibv_close_device(program->context), 0);
}

void program_post(struct program *program)
{
	struct ibv_sge sge = { (uintptr_t)program->source, PROGRAM_LENGTH, program->mr->lkey };
	struct ibv_send_wr request = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.wr.rdma = { program->to.address, program->to.rkey },
	};
	struct ibv_send_wr *bad;

	program->rounds++;
	for (unsigned i = 0; i < PROGRAM_LENGTH; i++)
		program->source[i] = (unsigned char)(i * 7 + program->rounds);
	EXPECT_EQ(ibv_post_send(program->qp, &request, &bad), 0);
}

const char *program_poll(struct program *program)
{
	time_t end = time(NULL) + WAIT_S;
	struct ibv_wc completion;
	int count;

	while ((count = ibv_poll_cq(program->cq, 1, &completion)) == 0)
		if (time(NULL) > end)
			FAIL("no completion in round %u", program->rounds);
	EXPECT_EQ(count, 1);
	return ibv_wc_status_str(completion.status);
}

void program_round(struct program *program)
{
	program_post(program);
	EXPECT_STR(program_poll(program), "success");
	EXPECT_MEM(program->target, program->source, PROGRAM_LENGTH);
}

static void take_event(struct program *program)
{
	struct ibv_cq *cq;
	void *cq_context;

	EXPECT_EQ(ibv_get_cq_event(program->channel, &cq, &cq_context), 0);
	EXPECT(cq == program->cq);
	ibv_ack_cq_events(cq, 1);
}

enum ibv_wc_status program_wait(struct program *program)
{
	struct ibv_wc completion;

	take_event(program);
	EXPECT_EQ(ibv_poll_cq(program->cq, 1, &completion), 1);
	return completion.status;
}

void program_round_with_event(struct program *program)
{
	EXPECT_EQ(ibv_req_notify_cq(program->cq, 0), 0);
	program_post(program);
	EXPECT_STR(ibv_wc_status_str(program_wait(program)), "success");
	EXPECT_MEM(program->target, program->source, PROGRAM_LENGTH);
}

static int log_fd;

void program_keep_log(const char *level)
{
	char path[64];

	log_fd = memfd_create("log", 0);
	EXPECT(log_fd >= 0);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), log_fd);
	setenv("VERBATIM_LOG", level, 1);
	setenv("VERBATIM_LOG_FILE", path, 1);
}

const char *program_read_log(void)
{
	static char text[1 << 16];
	ssize_t length = pread(log_fd, text, sizeof(text) - 1, 0);

	EXPECT(length >= 0);
	text[length] = 0;
	return text;
}

void program_expect_in_log(const char *part)
{
	if (!strstr(program_read_log(), part))
		FAIL("'%s' is not in the log: %s", part, program_read_log());
}
