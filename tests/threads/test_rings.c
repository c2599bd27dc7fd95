/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads other than the engine's owner may do (nic/rings.h): post, poll and arm. One thread
 * owns two adapters and carries packets between them. Other threads post to A, refill B's shared
 * receive queue, poll the CQs and sleep until an armed one wakes them. Each queue has a lock, as
 * rings.h demands, and nothing else is shared except through the rings. A lost wake-up ends in the
 * harness's time limit; the thread sanitizer finds races.
 */
#include "harness.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum {
	ROWS = 16,
	/* Large packets are spans into the program's memory until the link reads them. */
	MTU = 1024,
	POSTER_COUNT = 2,
	WINDOW = 8, /* messages that a poster has under way */
	BUFFER_LENGTH = 4096,
	SEND_DEPTH = 64,
	RECV_DEPTH = 16,
	CQ_DEPTH = 256,
	BATCH = 16,
	NS_PER_TURN = 1000,
};

enum side { A, B };

/* A CQ with its lock, and the bell on which its poller sleeps. */
struct polled {
	struct vb_cq *cq;
	pthread_mutex_t lock;
	pthread_mutex_t bell_lock;
	pthread_cond_t bell;
	bool has_rung;
};

struct node {
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_mr *mr;
	struct vb_srq *srq;
	struct vb_qp *qp;
	struct polled send_cq;
	struct polled recv_cq;
	struct vb_key_row key_rows[ROWS];
	struct vb_qp_row qp_rows[ROWS];
};

struct rig {
	struct node nodes[2];
	pthread_mutex_t send_lock; /* of A's send queue */
	pthread_mutex_t recv_lock; /* of A's receive queue or B's SRQ */
	pthread_t owner;
	atomic_bool is_over;
	atomic_bool is_to_fail; /* the owner moves A's QP to ERR */
	/*
	 * In A: the memory that posters send from. In B: the target of WRITEs, then the buffers of
	 * the SRQ.
	 */
	uint8_t from[POSTER_COUNT][WINDOW][BUFFER_LENGTH];
	uint8_t target[POSTER_COUNT][WINDOW][BUFFER_LENGTH];
	uint8_t received[RECV_DEPTH][BUFFER_LENGTH];
};

/* --- the rig ---------------------------------------------------------------------------------- */

static void polled_init(struct polled *polled, struct vb_nic *nic)
{
	pthread_mutex_init(&polled->lock, NULL);
	pthread_mutex_init(&polled->bell_lock, NULL);
	pthread_cond_init(&polled->bell, NULL);
	MUST(vb_cq_create(nic, CQ_DEPTH, polled, &polled->cq));
}

static void polled_fini(struct polled *polled)
{
	MUST(vb_cq_destroy(polled->cq));
	pthread_cond_destroy(&polled->bell);
	pthread_mutex_destroy(&polled->bell_lock);
	pthread_mutex_destroy(&polled->lock);
}

static struct vb_gid gid_of(enum side side)
{
	return vb_gid_from_ipv4(0x0a000001u + side);
}

static void node_init(struct rig *rig, enum side side, enum vb_qp_type type)
{
	struct node *node = &rig->nodes[side];
	struct vb_nic_config config = {
		.key_rows = node->key_rows,
		.key_row_count = ROWS,
		.qp_rows = node->qp_rows,
		.qp_row_count = ROWS,
		.seed = side + 1,
	};
	struct vb_mr_init mr_init = {
		.address = (uintptr_t)rig,
		.length = sizeof(*rig),
		.iova = (uintptr_t)rig,
		.access = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE,
	};
	struct vb_srq_init srq_init = { .depth = RECV_DEPTH, .sge_max = 1 };
	struct vb_qp_init qp_init = {
		.type = type,
		.send_depth = SEND_DEPTH,
		.recv_depth = RECV_DEPTH,
		.send_sge_max = 1,
		.recv_sge_max = 1,
	};
	struct vb_gid gid = gid_of(side);

	MUST(vb_nic_create(&config, &node->nic));
	MUST(vb_nic_set_gid(node->nic, 0, &gid));
	MUST(vb_pd_create(node->nic, &node->pd));
	MUST(vb_mr_create(node->pd, &mr_init, &node->mr));
	polled_init(&node->send_cq, node->nic);
	polled_init(&node->recv_cq, node->nic);
	if (side == B)
		MUST(vb_srq_create(node->pd, &srq_init, &node->srq));
	qp_init.send_cq = node->send_cq.cq;
	qp_init.recv_cq = node->recv_cq.cq;
	qp_init.srq = node->srq;
	MUST(vb_qp_create(node->pd, &qp_init, &node->qp));
}

static void connect_qp(struct rig *rig, enum side side, enum vb_qp_type type)
{
	struct vb_qp *qp = rig->nodes[side].qp;
	struct vb_qp_attr attr = {
		.port = 1,
		.access = VB_ACCESS_REMOTE_WRITE,
		.address = { .destination = gid_of(!side) },
		.path_mtu = MTU,
		.destination = vb_qp_number(rig->nodes[!side].qp),
		.timeout = 14,
		.retry_count = 7,
		.rnr_retry = 7, /* unlimited */
		.min_rnr_timer = 1,
	};
	uint32_t to_rtr = VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN;
	uint32_t to_rts = VB_ATTR_SQ_PSN;

	if (type == VB_QP_RC) {
		to_rtr |= VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER;
		to_rts |= VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY |
			  VB_ATTR_READS_OUT;
	}
	attr.state = VB_STATE_INIT;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS));
	attr.state = VB_STATE_RTR;
	MUST(vb_qp_modify(qp, &attr, VB_ATTR_STATE | to_rtr));
	attr.state = VB_STATE_RTS;
	MUST(vb_qp_modify(qp, &attr, VB_ATTR_STATE | to_rts));
}

/*
 * Hands everything that `from` has to send to the other side immediately. Returns false if there
 * was nothing.
 */
static bool carry(struct rig *rig, enum side from, uint64_t now_ns)
{
	static struct vb_slot slots[BATCH];
	static uint8_t bytes[BATCH][2 * BUFFER_LENGTH];
	struct vb_frame frames[BATCH];
	uint32_t count = vb_nic_transmit(rig->nodes[from].nic, now_ns, slots, BATCH);

	for (uint32_t i = 0; i < count; i++) {
		EXPECT(vb_slot_gather(&slots[i], bytes[i]));
		frames[i] = (struct vb_frame){
			.path.ip = slots[i].path.ip,
			.ip_id = slots[i].ip_id,
			.head = { bytes[i], slots[i].length },
		};
	}
	if (count)
		vb_nic_receive(rig->nodes[!from].nic, now_ns, frames, count);
	return count > 0;
}

static void ring_bells(struct rig *rig, enum side side)
{
	struct vb_event event;

	while (vb_nic_take_events(rig->nodes[side].nic, &event, 1)) {
		struct polled *polled = event.owner_context;

		if (event.kind != VB_EVENT_COMPLETION)
			continue;
		pthread_mutex_lock(&polled->bell_lock);
		polled->has_rung = true;
		pthread_cond_signal(&polled->bell);
		pthread_mutex_unlock(&polled->bell_lock);
	}
}

static void *own(void *argument)
{
	struct rig *rig = argument;
	uint64_t now_ns = 0;

	while (!atomic_load_explicit(&rig->is_over, memory_order_acquire)) {
		bool has_moved = false;

		for (enum side side = A; side <= B; side++) {
			has_moved |= carry(rig, side, now_ns);
			vb_nic_fire_timers(rig->nodes[side].nic, now_ns);
			ring_bells(rig, side);
		}
		if (atomic_exchange_explicit(&rig->is_to_fail, false, memory_order_acquire)) {
			struct vb_qp_attr attr = { .state = VB_STATE_ERR };

			MUST(vb_qp_modify(rig->nodes[A].qp, &attr, VB_ATTR_STATE));
		}
		now_ns += NS_PER_TURN;
		if (!has_moved)
			sched_yield();
	}
	return NULL;
}

static struct rig *rig_start(enum vb_qp_type type)
{
	struct rig *rig = calloc(1, sizeof(*rig));

	EXPECT(rig);
	pthread_mutex_init(&rig->send_lock, NULL);
	pthread_mutex_init(&rig->recv_lock, NULL);
	node_init(rig, A, type);
	node_init(rig, B, type);
	connect_qp(rig, A, type);
	connect_qp(rig, B, type);
	EXPECT(!pthread_create(&rig->owner, NULL, own, rig));
	return rig;
}

static void rig_stop(struct rig *rig)
{
	atomic_store_explicit(&rig->is_over, true, memory_order_release);
	EXPECT(!pthread_join(rig->owner, NULL));
	for (enum side side = A; side <= B; side++) {
		struct node *node = &rig->nodes[side];

		MUST(vb_qp_destroy(node->qp));
		if (node->srq)
			MUST(vb_srq_destroy(node->srq));
		polled_fini(&node->send_cq);
		polled_fini(&node->recv_cq);
		MUST(vb_mr_destroy(node->mr));
		MUST(vb_pd_destroy(node->pd));
		MUST(vb_nic_destroy(node->nic));
	}
	pthread_mutex_destroy(&rig->send_lock);
	pthread_mutex_destroy(&rig->recv_lock);
	free(rig);
}

/* --- what programs do ------------------------------------------------------------------------- */

static uint32_t poll_once(struct polled *polled, struct vb_completion *completions)
{
	uint32_t count;

	pthread_mutex_lock(&polled->lock);
	count = vb_cq_poll(polled->cq, completions, BATCH);
	pthread_mutex_unlock(&polled->lock);
	return count;
}

/* As programs do it: poll; arm; poll once more; sleep. The sleep has no time limit. */
static uint32_t poll_or_sleep(struct polled *polled, struct vb_completion *completions)
{
	uint32_t count;

	while (!(count = poll_once(polled, completions))) {
		pthread_mutex_lock(&polled->lock);
		vb_cq_arm(polled->cq, false);
		pthread_mutex_unlock(&polled->lock);
		count = poll_once(polled, completions);
		if (count)
			break;
		pthread_mutex_lock(&polled->bell_lock);
		while (!polled->has_rung)
			pthread_cond_wait(&polled->bell, &polled->bell_lock);
		polled->has_rung = false;
		pthread_mutex_unlock(&polled->bell_lock);
	}
	return count;
}

/* Puts requests in until the queue takes them, then publishes them. */
static void post_sends(struct rig *rig, const struct vb_send_request *requests, uint32_t count)
{
	struct vb_qp *qp = rig->nodes[A].qp;
	bool is_posted = false;

	while (!is_posted) {
		vb_err err = VB_OK;

		pthread_mutex_lock(&rig->send_lock);
		for (uint32_t i = 0; i < count && !err; i++)
			err = vb_qp_post_send(qp, &requests[i]);
		if (err)
			vb_qp_discard_staged(qp);
		else
			vb_qp_publish_and_ring(qp);
		pthread_mutex_unlock(&rig->send_lock);
		EXPECT(err == VB_OK || err == VB_ENOMEM);
		is_posted = !err;
		if (!is_posted)
			sched_yield();
	}
}

/* --- messages --------------------------------------------------------------------------------- */

/* A message names its sender and sequence number; its bytes follow from them. */
struct label {
	uint32_t poster;
	uint32_t sequence;
	uint32_t length; /* of the WRITE before it, or 0 */
};

struct exchange {
	struct rig *rig;
	uint32_t message_count; /* of each poster */
	atomic_uint taken[POSTER_COUNT]; /* messages whose buffers are free at both ends */
	atomic_uint sent[POSTER_COUNT];
	/* Receives on their way from the thread that empties them to the thread that posts them. */
	pthread_mutex_t empty_lock;
	uint32_t empty[RECV_DEPTH];
	uint32_t empty_count;
};

struct poster {
	struct exchange *exchange;
	uint32_t index;
};

static uint8_t byte_of(uint32_t poster, uint32_t sequence)
{
	return (uint8_t)(1 + (sequence * 7 + poster * 101) % 251);
}

static uint32_t length_of(uint32_t sequence)
{
	return 1 + sequence * 37 % BUFFER_LENGTH;
}

/* Each message is an unsignaled WRITE, and a SEND behind it that describes the WRITE. */
static void post_message(struct rig *rig, uint32_t poster, uint32_t sequence)
{
	uint32_t place = sequence % WINDOW;
	uint8_t *from = rig->from[poster][place];
	struct label label = { poster, sequence, length_of(sequence) % (BUFFER_LENGTH / 2) };
	uint32_t key = vb_mr_key(rig->nodes[A].mr);
	struct vb_sge data = { (uintptr_t)from + sizeof(label), label.length, key };
	struct vb_sge words = { (uintptr_t)from, (uint32_t)sizeof(label), key };
	struct vb_send_request requests[] = {
		{
			.opcode = VB_WR_WRITE,
			.sges = &data,
			.sge_count = 1,
			.remote_address = (uintptr_t)rig->target[poster][place],
			.rkey = vb_mr_key(rig->nodes[B].mr),
		},
		{
			.wr_id = poster,
			.opcode = VB_WR_SEND,
			.flags = VB_SEND_SIGNALED,
			.sges = &words,
			.sge_count = 1,
		},
	};

	memcpy(from, &label, sizeof(label));
	memset(from + sizeof(label), byte_of(poster, sequence), label.length);
	post_sends(rig, requests, 2);
}

static void *post_messages(void *argument)
{
	const struct poster *poster = argument;
	struct exchange *exchange = poster->exchange;

	for (uint32_t i = 0; i < exchange->message_count; i++) {
		while (i - atomic_load_explicit(&exchange->taken[poster->index],
						memory_order_acquire) >=
			       WINDOW ||
		       i - atomic_load_explicit(&exchange->sent[poster->index],
						memory_order_acquire) >=
			       WINDOW)
			sched_yield();
		post_message(exchange->rig, poster->index, i);
	}
	return NULL;
}

static void *poll_sends(void *argument)
{
	struct exchange *exchange = argument;
	uint32_t left = exchange->message_count * POSTER_COUNT;

	while (left) {
		struct vb_completion completions[BATCH];
		uint32_t count = poll_or_sleep(&exchange->rig->nodes[A].send_cq, completions);

		EXPECT(count <= left);
		left -= count;
		for (uint32_t i = 0; i < count; i++) {
			EXPECT_EQ(completions[i].status, VB_STATUS_SUCCESS);
			atomic_fetch_add_explicit(&exchange->sent[completions[i].wr_id], 1,
						  memory_order_release);
		}
	}
	return NULL;
}

static void expect_message(struct exchange *exchange, const uint8_t *received)
{
	const uint8_t *target;
	struct label label;
	uint32_t expected;

	memcpy(&label, received, sizeof(label));
	EXPECT(label.poster < POSTER_COUNT);
	expected = atomic_load_explicit(&exchange->taken[label.poster], memory_order_relaxed);
	EXPECT_EQ(label.sequence, expected); /* in order, once each */
	target = exchange->rig->target[label.poster][label.sequence % WINDOW];
	for (uint32_t i = 0; i < label.length; i++)
		EXPECT_EQ(target[i], byte_of(label.poster, label.sequence));
	atomic_store_explicit(&exchange->taken[label.poster], expected + 1, memory_order_release);
}

static void *poll_receives(void *argument)
{
	struct exchange *exchange = argument;
	struct rig *rig = exchange->rig;
	uint32_t left = exchange->message_count * POSTER_COUNT;

	while (left) {
		struct vb_completion completions[BATCH];
		uint32_t count = poll_or_sleep(&rig->nodes[B].recv_cq, completions);

		EXPECT(count <= left);
		left -= count;
		for (uint32_t i = 0; i < count; i++) {
			EXPECT_EQ(completions[i].status, VB_STATUS_SUCCESS);
			EXPECT_EQ(completions[i].byte_length, sizeof(struct label));
			expect_message(exchange, rig->received[completions[i].wr_id]);
			pthread_mutex_lock(&exchange->empty_lock);
			exchange->empty[exchange->empty_count++] = (uint32_t)completions[i].wr_id;
			pthread_mutex_unlock(&exchange->empty_lock);
		}
	}
	return NULL;
}

static void post_empty(struct rig *rig, uint32_t index)
{
	struct vb_sge sge = { (uintptr_t)rig->received[index], BUFFER_LENGTH,
			      vb_mr_key(rig->nodes[B].mr) };
	struct vb_recv_request request = { .wr_id = index, .sges = &sge, .sge_count = 1 };

	pthread_mutex_lock(&rig->recv_lock);
	MUST(vb_srq_post_recv(rig->nodes[B].srq, &request));
	pthread_mutex_unlock(&rig->recv_lock);
}

/* Refills the SRQ until as many receives were posted as there are messages. */
static void *refill(void *argument)
{
	struct exchange *exchange = argument;
	uint32_t left = exchange->message_count * POSTER_COUNT;

	while (left) {
		uint32_t index = UINT32_MAX;

		pthread_mutex_lock(&exchange->empty_lock);
		if (exchange->empty_count)
			index = exchange->empty[--exchange->empty_count];
		pthread_mutex_unlock(&exchange->empty_lock);
		if (index == UINT32_MAX) {
			sched_yield();
			continue;
		}
		post_empty(exchange->rig, index);
		left--;
	}
	return NULL;
}

TEST(messages_posted_by_many_threads_arrive_whole_in_order_and_once)
{
	struct exchange exchange = {
		.rig = rig_start(VB_QP_RC),
		.message_count = test_is_thorough() ? 100000 : 5000,
		.empty_lock = PTHREAD_MUTEX_INITIALIZER,
	};
	struct poster posters[POSTER_COUNT];
	pthread_t threads[3 + POSTER_COUNT];

	for (uint32_t i = 0; i < RECV_DEPTH; i++)
		exchange.empty[exchange.empty_count++] = i;
	EXPECT(!pthread_create(&threads[0], NULL, poll_sends, &exchange));
	EXPECT(!pthread_create(&threads[1], NULL, poll_receives, &exchange));
	EXPECT(!pthread_create(&threads[2], NULL, refill, &exchange));
	for (uint32_t i = 0; i < POSTER_COUNT; i++) {
		posters[i] = (struct poster){ &exchange, i };
		EXPECT(!pthread_create(&threads[3 + i], NULL, post_messages, &posters[i]));
	}
	for (uint32_t i = 0; i < 3 + POSTER_COUNT; i++)
		EXPECT(!pthread_join(threads[i], NULL));
	rig_stop(exchange.rig);
}

/* --- a buffer is the program's again when its request completes ------------------------------- */

static void write_again_and_again(struct rig *rig, uint32_t count)
{
	struct vb_completion completions[BATCH];
	struct vb_sge sge = { (uintptr_t)rig->from[0][0], BUFFER_LENGTH,
			      vb_mr_key(rig->nodes[A].mr) };
	struct vb_send_request request = {
		.opcode = VB_WR_WRITE,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = (uintptr_t)rig->target[0][0],
		.rkey = vb_mr_key(rig->nodes[B].mr),
	};

	for (uint32_t i = 0; i < count; i++) {
		memset(rig->from[0][0], (int)i, BUFFER_LENGTH);
		post_sends(rig, &request, 1);
		while (!poll_once(&rig->nodes[A].send_cq, completions))
			/* Waits on no bell: its lock would order this thread behind the link. */
			sched_yield();
		EXPECT_EQ(completions[0].status, VB_STATUS_SUCCESS);
	}
}

TEST(the_buffer_of_a_complete_uc_request_is_not_read)
{
	struct rig *rig = rig_start(VB_QP_UC);

	write_again_and_again(rig, test_is_thorough() ? 20000 : 1000);
	rig_stop(rig);
}

TEST(the_buffer_of_a_complete_rc_request_is_not_read)
{
	struct rig *rig = rig_start(VB_QP_RC);

	write_again_and_again(rig, test_is_thorough() ? 20000 : 1000);
	rig_stop(rig);
}

/* --- failing while posting -------------------------------------------------------------------- */

enum { REQUESTS_EACH = 200 };

static void *flood_sends(void *argument)
{
	struct rig *rig = argument;
	struct vb_sge sge = { (uintptr_t)rig->from[0][0], MTU + 1, vb_mr_key(rig->nodes[A].mr) };

	for (uint32_t i = 0; i < REQUESTS_EACH; i++) {
		struct vb_send_request request = {
			.wr_id = i,
			.opcode = VB_WR_WRITE,
			.flags = VB_SEND_SIGNALED,
			.sges = &sge,
			.sge_count = 1,
			.remote_address = (uintptr_t)rig->target[0][0],
			.rkey = vb_mr_key(rig->nodes[B].mr),
		};

		post_sends(rig, &request, 1);
		if (i == REQUESTS_EACH / 2)
			atomic_store_explicit(&rig->is_to_fail, true, memory_order_release);
	}
	return NULL;
}

static void *flood_receives(void *argument)
{
	struct rig *rig = argument;

	for (uint32_t i = 0; i < REQUESTS_EACH;) {
		struct vb_recv_request request = { .wr_id = i };
		vb_err err;

		pthread_mutex_lock(&rig->recv_lock);
		err = vb_qp_post_recv(rig->nodes[A].qp, &request);
		pthread_mutex_unlock(&rig->recv_lock);
		EXPECT(err == VB_OK || err == VB_ENOMEM);
		if (err)
			sched_yield(); /* full until the QP fails */
		else
			i++;
	}
	return NULL;
}

/* Counts completions until all of that queue have come. */
static void drain(struct rig *rig, bool is_receive)
{
	struct node *node = &rig->nodes[A];
	struct polled *polled = is_receive ? &node->recv_cq : &node->send_cq;
	uint32_t last = 0;
	uint32_t left = REQUESTS_EACH;

	while (left) {
		struct vb_completion completions[BATCH];
		uint32_t count = poll_or_sleep(polled, completions);

		EXPECT(count <= left);
		left -= count;
		for (uint32_t i = 0; i < count; i++) {
			EXPECT_EQ(completions[i].wr_id, last++); /* in order, none left out */
			EXPECT(completions[i].status == VB_STATUS_WR_FLUSH_ERR ||
			       (completions[i].status == VB_STATUS_SUCCESS && !is_receive));
		}
	}
}

static void *drain_sends(void *argument)
{
	drain(argument, false);
	return NULL;
}

static void *drain_receives(void *argument)
{
	drain(argument, true);
	return NULL;
}

TEST(what_is_posted_while_the_qp_fails_completes_exactly_once)
{
	for (uint32_t round = 0; round < (test_is_thorough() ? 500u : 50u); round++) {
		struct rig *rig = rig_start(VB_QP_RC);
		pthread_t threads[4];

		EXPECT(!pthread_create(&threads[0], NULL, drain_sends, rig));
		EXPECT(!pthread_create(&threads[1], NULL, drain_receives, rig));
		EXPECT(!pthread_create(&threads[2], NULL, flood_sends, rig));
		EXPECT(!pthread_create(&threads[3], NULL, flood_receives, rig));
		for (uint32_t i = 0; i < 4; i++)
			EXPECT(!pthread_join(threads[i], NULL));
		EXPECT_EQ(vb_cq_waiting(rig->nodes[A].send_cq.cq), 0);
		EXPECT_EQ(vb_cq_waiting(rig->nodes[A].recv_cq.cq), 0);
		rig_stop(rig);
	}
}
