/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_rig.h"

#include "namespace.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <unistd.h>

enum {
	RETRIES = 7,
	RNR_RETRIES = 7 /* unlimited */,
	RNR_TIMER = 12 /* 0.64 ms */,
	PATIENCE_S = 1200
};

static const char *const folders[] = { "/tmp", "/dev/shm" };

double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void enter_own_world(void)
{
	namespace_unshare(CLONE_NEWNET | CLONE_NEWNS);
	EXPECT_EQ(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	for (int i = 0; i < 2; i++)
		EXPECT_EQ(mount("none", folders[i], "tmpfs", 0, NULL), 0);
	if (system("ip link set lo up") != 0)
		SKIP("no command ip");
	setenv("VERBATIM_DEVICES", "lo", 1);
	alarm(PATIENCE_S);
}

static void expect_no_line(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	char line[512];

	EXPECT(file != NULL);
	while (fgets(line, sizeof(line), file))
		if (strstr(line, text))
			FAIL("%s has: %s", path, line);
	fclose(file);
}

static void expect_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;

	EXPECT(folder != NULL);
	while ((entry = readdir(folder)))
		if (entry->d_name[0] != '.')
			FAIL("%s has: %s", path, entry->d_name);
	closedir(folder);
}

void expect_nothing_left(void)
{
	expect_no_line("/proc/self/net/udp", ":12B7 ");
	expect_no_line("/proc/self/net/udp6", ":12B7 ");
	expect_no_line("/proc/self/net/unix", "verbatim");
	for (int i = 0; i < 2; i++)
		expect_empty(folders[i]);
}

void rig_open(struct rig *rig, int cqe_count)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	EXPECT(devices && devices[0]);
	rig->context = ibv_open_device(devices[0]);
	EXPECT(rig->context != NULL);
	ibv_free_device_list(devices);
	rig->pd = ibv_alloc_pd(rig->context);
	EXPECT(rig->pd != NULL);
	rig->cq = ibv_create_cq(rig->context, cqe_count, NULL, NULL, 0);
	EXPECT(rig->cq != NULL);
	EXPECT_EQ(ibv_query_gid(rig->context, RIG_PORT, RIG_GID, &rig->gid), 0);
}

void rig_close(struct rig *rig)
{
	EXPECT_EQ(ibv_destroy_cq(rig->cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(rig->pd), 0);
	EXPECT_EQ(ibv_close_device(rig->context), 0);
}

struct ibv_qp *rig_make_qp(struct rig *rig, uint32_t depth)
{
	struct ibv_qp_init_attr init = {
		.send_cq = rig->cq,
		.recv_cq = rig->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = depth,
			 .max_recv_wr = depth,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(rig->pd, &init);

	EXPECT(qp != NULL);
	return qp;
}

static void to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = RIG_PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
}

static void to_rtr(struct rig *rig, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = peer,
		.rq_psn = peer,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = { .is_global = 1,
			     .port_num = RIG_PORT,
			     .grh = { .dgid = rig->gid, .sgid_index = RIG_GID, .hop_limit = 1 } },
	};

	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  0);
}

static void to_rts(struct ibv_qp *qp, uint8_t timeout)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = qp->qp_num,
		.timeout = timeout,
		.retry_cnt = RETRIES,
		.rnr_retry = RNR_RETRIES,
		.max_rd_atomic = 4,
	};

	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
		  0);
}

void rig_connect(struct rig *rig, struct ibv_qp *qp, uint32_t peer, uint8_t timeout)
{
	to_init(qp);
	to_rtr(rig, qp, peer);
	to_rts(qp, timeout);
}
