/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching with threads: one adds and deletes tags, sends messages for them, and posts requests
 * of the receiver's own; one polls the CQs; one owns the engine, which executes the operations,
 * gives numbers of tags back and moves the requests. The thread sanitizer finds races; a message or
 * slot that is lost ends in the harness's time limit.
 */
#include "harness.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"
#include "wire/tag_header.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum { ROWS = 16, BATCH = 16, TAGS = 4, DEPTH = 4, LENGTH = 64, MESSAGES = 3000, OWN = MESSAGES };
enum { SENDER, RECEIVER };

static struct {
	struct vb_key_row key_rows[ROWS];
	struct vb_qp_row qp_rows[ROWS];
	struct vb_nic *nic;
	struct vb_gid gid;
	struct vb_pd *pd;
	struct vb_mr *mr;
	struct vb_cq *send_cq; /* of both QPs */
	struct vb_cq *cq; /* of the SRQ */
	struct vb_srq *srq;
	struct vb_qp *qps[2];
	atomic_bool is_over;
	_Atomic uint32_t valid; /* messages whose data is there */
	_Atomic uint32_t deleted;
	_Atomic uint32_t sent;
	_Atomic uint32_t own_done;
	uint8_t messages[DEPTH][LENGTH];
	uint8_t data[LENGTH];
	uint8_t buffers[TAGS + 1][LENGTH];
	uint8_t fins[DEPTH][LENGTH];
} rig;

static void bring_up(uint32_t index)
{
	static const uint32_t masks[] = {
		[VB_STATE_INIT] = VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS,
		[VB_STATE_RTR] = VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				 VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER,
		[VB_STATE_RTS] = VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY |
				 VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT,
	};

	for (uint32_t state = VB_STATE_INIT; state <= VB_STATE_RTS; state++) {
		struct vb_qp_attr attr = {
			.state = (enum vb_qp_state)state,
			.port = 1,
			.access = VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_WRITE,
			.address = { .destination = rig.gid },
			.path_mtu = 1024,
			.destination = vb_qp_number(rig.qps[!index]),
			.rnr_retry = 7,
			.min_rnr_timer = 1,
			.reads_out = 2,
			.reads_in = 2,
		};

		MUST(vb_qp_modify(rig.qps[index], &attr, masks[state] | VB_ATTR_STATE));
	}
}

static void start(void)
{
	struct vb_nic_config config = {
		.key_rows = rig.key_rows,
		.key_row_count = ROWS,
		.qp_rows = rig.qp_rows,
		.qp_row_count = ROWS,
		.seed = 1,
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)&rig,
		.length = sizeof(rig),
		.iova = (uintptr_t)&rig,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_WRITE,
	};
	struct vb_srq_init srq_init = {
		.depth = 4, .sge_max = 1, .tag_count = TAGS, .tag_depth = 2
	};
	struct vb_qp_init qp_init = { .type = VB_QP_RC,
				      .send_depth = DEPTH,
				      .recv_depth = DEPTH,
				      .send_sge_max = 1,
				      .recv_sge_max = 1,
				      .inline_max = 8 };

	rig.gid = vb_gid_from_ipv4(0x0a000001);
	MUST(vb_nic_create(&config, &rig.nic));
	MUST(vb_nic_set_gid(rig.nic, 0, &rig.gid));
	MUST(vb_pd_create(rig.nic, &rig.pd));
	MUST(vb_mr_create(rig.pd, &mr_init, &rig.mr));
	MUST(vb_cq_create(rig.nic, 64, NULL, &rig.send_cq));
	MUST(vb_cq_create(rig.nic, 64, NULL, &rig.cq));
	srq_init.cq = rig.cq;
	MUST(vb_srq_create(rig.pd, &srq_init, &rig.srq));
	qp_init.send_cq = qp_init.recv_cq = rig.send_cq;
	MUST(vb_qp_create(rig.pd, &qp_init, &rig.qps[SENDER]));
	qp_init.srq = rig.srq;
	MUST(vb_qp_create(rig.pd, &qp_init, &rig.qps[RECEIVER]));
	bring_up(SENDER);
	bring_up(RECEIVER);
}

static void finish(void)
{
	MUST(vb_qp_destroy(rig.qps[SENDER]));
	MUST(vb_qp_destroy(rig.qps[RECEIVER]));
	MUST(vb_srq_destroy(rig.srq));
	MUST(vb_cq_destroy(rig.cq));
	MUST(vb_cq_destroy(rig.send_cq));
	MUST(vb_mr_destroy(rig.mr));
	MUST(vb_pd_destroy(rig.pd));
	MUST(vb_nic_destroy(rig.nic));
}

/* The wire leads back to the adapter. */
static void *own(void *unused)
{
	static struct vb_slot slots[BATCH];
	static uint8_t bytes[4096 + 128];
	uint64_t now_ns = 1000;

	(void)unused;
	while (!atomic_load(&rig.is_over)) {
		uint32_t count = vb_nic_transmit(rig.nic, now_ns += 1000, slots, BATCH);

		for (uint32_t i = 0; i < count; i++) {
			struct vb_frame frame = {
				.path.ip = slots[i].path.ip,
				.ip_id = slots[i].ip_id,
				.head = { bytes, slots[i].length },
			};

			MUST(!vb_slot_gather(&slots[i], bytes));
			vb_nic_receive(rig.nic, now_ns, &frame, 1);
		}
		vb_nic_fire_timers(rig.nic, now_ns);
		if (!count)
			sched_yield();
	}
	return NULL;
}

static struct vb_sge sge_of(const void *memory)
{
	return (struct vb_sge){ (uintptr_t)memory, LENGTH, vb_mr_key(rig.mr) };
}

static void post_fin_receive(uint64_t index)
{
	const struct vb_sge sge = sge_of(rig.fins[index]);
	const struct vb_recv_request request = { .wr_id = index, .sges = &sge, .sge_count = 1 };

	MUST(vb_qp_post_recv(rig.qps[SENDER], &request));
}

static void *poll(void *unused)
{
	struct vb_completion completion;

	(void)unused;
	while (!atomic_load(&rig.is_over)) {
		while (vb_cq_poll(rig.cq, &completion, 1)) {
			EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
			if (completion.opcode == VB_COMPLETION_TM_DEL)
				atomic_fetch_add(&rig.deleted, 1);
			if (completion.flags & VB_COMPLETION_TM_DATA_VALID)
				atomic_fetch_add(&rig.valid, 1);
		}
		while (vb_cq_poll(rig.send_cq, &completion, 1)) {
			EXPECT_EQ(completion.status, VB_STATUS_SUCCESS);
			if (completion.is_receive)
				post_fin_receive(completion.wr_id);
			else
				atomic_fetch_add(
					completion.wr_id == OWN ? &rig.own_done : &rig.sent, 1);
		}
		sched_yield();
	}
	return NULL;
}

/* Tries again while the list or the queue is full. */
static uint32_t post_tag(struct vb_tag_request request)
{
	uint32_t handle = 0;
	vb_err err;

	while ((err = vb_srq_post_tag(rig.srq, &request, &handle)) == VB_ENOMEM)
		sched_yield();
	MUST(err);
	vb_srq_ring_doorbell(rig.srq);
	return handle;
}

/* Adds a tag for the message with this number, and another that is deleted at once. */
static void add_tags(uint32_t number)
{
	const struct vb_sge sge = sge_of(rig.buffers[number % TAGS]);
	const struct vb_sge unused = sge_of(rig.buffers[TAGS]);
	struct vb_tag_request request = {
		.opcode = VB_TAG_ADD, .sges = &unused, .sge_count = 1, .tag = ~0ull, .mask = ~0ull
	};
	struct vb_tag_request remove = { .opcode = VB_TAG_DELETE, .flags = VB_TAG_SIGNALED };

	remove.handle = post_tag(request);
	request.sges = &sge;
	request.tag = number;
	post_tag(request);
	post_tag(remove);
}

static void post(uint32_t index, struct vb_send_request request)
{
	vb_err err;

	while ((err = vb_qp_post_send(rig.qps[index], &request)) == VB_ENOMEM)
		sched_yield();
	MUST(err);
	vb_qp_publish_and_ring(rig.qps[index]);
}

static void send_message(uint32_t number)
{
	const struct vb_tmh tmh = { number % 2 ? VB_TMH_EAGER : VB_TMH_RENDEZVOUS, number, number };
	const struct vb_rvh rvh = { (uintptr_t)rig.data, vb_mr_key(rig.mr), LENGTH };
	uint8_t *message = rig.messages[number % DEPTH];
	const struct vb_sge sge = { (uintptr_t)message, VB_TMH_SIZE + VB_RVH_SIZE,
				    vb_mr_key(rig.mr) };

	while (atomic_load(&rig.sent) + DEPTH <= number) /* its memory is still being sent */
		sched_yield();
	vb_tmh_store(message, &tmh);
	vb_rvh_store(message + VB_TMH_SIZE, &rvh);
	post(SENDER, (struct vb_send_request){ .wr_id = number,
					       .opcode = VB_WR_SEND,
					       .flags = VB_SEND_SIGNALED,
					       .sges = &sge,
					       .sge_count = 1 });
}

static void write_own(void)
{
	static const uint64_t word = 7;
	const struct vb_sge sge = { (uintptr_t)&word, sizeof(word), 0 };

	post(RECEIVER, (struct vb_send_request){ .wr_id = OWN,
						 .opcode = VB_WR_WRITE,
						 .flags = VB_SEND_SIGNALED | VB_SEND_INLINE,
						 .sges = &sge,
						 .sge_count = 1,
						 .remote_address = (uintptr_t)rig.buffers[TAGS],
						 .rkey = vb_mr_key(rig.mr) });
}

TEST(tags_messages_and_requests_pass_between_threads)
{
	pthread_t owner, poller;

	start();
	for (uint64_t i = 0; i < DEPTH; i++)
		post_fin_receive(i);
	EXPECT_EQ(pthread_create(&owner, NULL, own, NULL), 0);
	EXPECT_EQ(pthread_create(&poller, NULL, poll, NULL), 0);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		add_tags(i);
		send_message(i);
		write_own();
	}
	while (atomic_load(&rig.valid) < MESSAGES || atomic_load(&rig.deleted) < MESSAGES ||
	       atomic_load(&rig.own_done) < MESSAGES || atomic_load(&rig.sent) < MESSAGES)
		sched_yield();
	atomic_store(&rig.is_over, true);
	pthread_join(owner, NULL);
	pthread_join(poller, NULL);
	finish();
}
