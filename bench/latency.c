/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long one operation on 8 bytes takes. The program is like any other verbs program. perftest
 * reads the clock around each operation and rounds to hundredths of a microsecond; here a batch of
 * operations lies between two reads of the clock. Prints the median of the batches in microseconds.
 *
 *	latency <kind> <device>                 as the target
 *	latency <kind> <device> <address>       as the initiator
 *
 * The kinds:
 *	write, send     half a round trip of WRITEs that both ends wait for in their memory,
 *	                or of SENDs
 *	read, atomic    a READ or a FETCH_ADD, with its completion
 *	spin            how late a WRITE becomes visible to a program that only reads its memory.
 *	                The target calls no verb. It spins on a word into which the initiator writes
 *	                the time, now and then. Both ends run on one machine. Between two WRITEs the
 *	                target's adapter has time to fall asleep.
 *
 * The target prints the figure of `spin`, the initiator prints the others.
 */
#include "support_net.h"
#include "support_report.h"

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PORT 18600
#define GID_INDEX 1 /* the interface's IPv4 address */
#define PAGE 4096u
#define DEPTH 16u
#define WARMUP_BATCHES 100u
#define BATCHES 2000u
#define BATCH 50u
#define SPIN_WRITES 300u
#define SPIN_PAUSE_US 3000
#define LAST UINT64_MAX
#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Each word has a cache line of its own. */
struct words {
	_Alignas(64) _Atomic uint64_t in; /* the peer's operations access it */
	_Alignas(64) _Atomic uint64_t out; /* the source or sink of this end's operations */
};

struct end {
	union ibv_gid gid;
	uint64_t address;
	uint32_t rkey;
	uint32_t qpn;
};

static struct words *words;
static struct ibv_qp *qp;
static struct ibv_mr *mr; /* of the words */
static struct end other;

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);

	for (struct ibv_device **d = devices; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	fprintf(stderr, "latency: there is no device %s\n", name);
	exit(1);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_context *context)
{
	struct ibv_qp_init_attr init = {
		.send_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0),
		.recv_cq = ibv_create_cq(context, DEPTH, NULL, NULL, 0),
		.cap = {
			.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *made = ibv_create_qp(pd, &init);

	BENCH_CHECK(made);
	return made;
}

static void connect_qp(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = ACCESS,
	};

	BENCH_CHECK(!ibv_modify_qp(
		qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other.qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = other.gid,
				      .sgid_index = GID_INDEX,
				      .hop_limit = 64 } },
	};
	BENCH_CHECK(!ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					   IBV_QP_MIN_RNR_TIMER));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 18,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	BENCH_CHECK(!ibv_modify_qp(qp, &attr,
				   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					   IBV_QP_MAX_QP_RD_ATOMIC));
}

/* --- single steps --- */

static void post(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)&words->out, sizeof(words->out), mr->lkey };
	struct ibv_send_wr request = { .sg_list = &sge, .num_sge = 1, .opcode = opcode };
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		request.wr.atomic.remote_addr = other.address;
		request.wr.atomic.rkey = other.rkey;
		request.wr.atomic.compare_add = 1;
	} else {
		request.wr.rdma.remote_addr = other.address;
		request.wr.rdma.rkey = other.rkey;
	}
	BENCH_CHECK(!ibv_post_send(qp, &request, &bad));
}

static void post_receive(void)
{
	struct ibv_sge sge = { (uintptr_t)&words->in, sizeof(words->in), mr->lkey };
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	BENCH_CHECK(!ibv_post_recv(qp, &request, &bad));
}

static void await_completion(struct ibv_cq *cq)
{
	struct ibv_wc completion;
	int count;

	do {
		count = ibv_poll_cq(cq, 1, &completion);
	} while (!count);
	BENCH_CHECK(count == 1 && completion.status == IBV_WC_SUCCESS);
}

static void await_word(uint64_t value)
{
	while (atomic_load_explicit(&words->in, memory_order_acquire) != value)
		;
}

/* --- the kinds; a round is numbered from 1 --- */

static void write_word(uint64_t value)
{
	atomic_store_explicit(&words->out, value, memory_order_relaxed);
	post(IBV_WR_RDMA_WRITE);
	await_completion(qp->send_cq);
}

static void ask_by_write(uint64_t round)
{
	write_word(round);
	await_word(round);
}

static void answer_write(uint64_t round)
{
	await_word(round);
	write_word(round);
}

static void ask_by_send(uint64_t round)
{
	(void)round;
	post(IBV_WR_SEND);
	await_completion(qp->recv_cq);
	post_receive();
	await_completion(qp->send_cq);
}

static void answer_send(uint64_t round)
{
	(void)round;
	await_completion(qp->recv_cq);
	post_receive();
	post(IBV_WR_SEND);
	await_completion(qp->send_cq);
}

static void read_word(uint64_t round)
{
	(void)round;
	post(IBV_WR_RDMA_READ);
	await_completion(qp->send_cq);
}

static void add_to_word(uint64_t round)
{
	post(IBV_WR_ATOMIC_FETCH_AND_ADD);
	await_completion(qp->send_cq);
	BENCH_CHECK(atomic_load_explicit(&words->out, memory_order_relaxed) == round - 1);
}

static const struct kind {
	const char *name;
	void (*ask)(uint64_t round);
	void (*answer)(uint64_t round); /* NULL: the target does nothing */
	double ways; /* that a round consists of */
} kinds[] = {
	{ "write", ask_by_write, answer_write, 2 },
	{ "send", ask_by_send, answer_send, 2 },
	{ "read", read_word, NULL, 1 },
	{ "atomic", add_to_word, NULL, 1 },
};

static void initiate(const struct kind *kind)
{
	static double us[BATCHES];
	uint64_t round = 0;

	while (round < (uint64_t)WARMUP_BATCHES * BATCH)
		kind->ask(++round);
	for (uint32_t i = 0; i < BATCHES; i++) {
		uint64_t begin_ns = clock_now_ns();

		for (uint32_t k = 0; k < BATCH; k++)
			kind->ask(++round);
		us[i] = (double)(clock_now_ns() - begin_ns) / 1e3 / BATCH / kind->ways;
	}
	printf("%.4f\n", median(us, BATCHES));
}

static void serve(const struct kind *kind)
{
	uint64_t rounds = (uint64_t)(WARMUP_BATCHES + BATCHES) * BATCH;

	for (uint64_t round = 1; kind->answer && round <= rounds; round++)
		kind->answer(round);
}

/* --- spin --- */

static void spin(void)
{
	static double late_us[SPIN_WRITES];
	uint32_t count = 0;
	uint64_t before = 0;

	for (;;) {
		uint64_t written_ns = atomic_load_explicit(&words->in, memory_order_acquire);

		if (written_ns == before)
			continue;
		if (written_ns == LAST)
			break;
		BENCH_CHECK(count < SPIN_WRITES);
		late_us[count++] = (double)(clock_now_ns() - written_ns) / 1e3;
		before = written_ns;
	}
	printf("%.3f\n", median(late_us, count));
}

static void write_times(void)
{
	for (uint32_t i = 0; i < SPIN_WRITES; i++) {
		usleep(SPIN_PAUSE_US);
		write_word(clock_now_ns());
	}
	write_word(LAST);
}

/* --- */

static const struct kind *kind_named(const char *name)
{
	for (uint32_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static void set_up(const char *device)
{
	struct ibv_context *context = open_device(device);
	struct ibv_pd *pd;

	BENCH_CHECK(context);
	pd = ibv_alloc_pd(context);
	words = aligned_alloc(PAGE, PAGE);
	BENCH_CHECK(words);
	memset(words, 0, PAGE);
	mr = ibv_reg_mr(pd, words, PAGE, ACCESS);
	BENCH_CHECK(mr);
	qp = make_qp(pd, context);
	other = (struct end){ .address = (uintptr_t)&words->in,
			      .rkey = mr->rkey,
			      .qpn = qp->qp_num };
	BENCH_CHECK(!ibv_query_gid(context, 1, GID_INDEX, &other.gid));
}

static void swap_ends(int meeting)
{
	struct end own = other;

	net_swap(meeting, &own, &other, sizeof(own));
}

int main(int argc, char **argv)
{
	const char *server = argc == 4 ? argv[3] : NULL;
	const struct kind *kind = argc >= 3 ? kind_named(argv[1]) : NULL;
	struct end ignored;
	int meeting;

	if (argc < 3 || argc > 4 || (!kind && strcmp(argv[1], "spin") != 0)) {
		fprintf(stderr,
			"usage: latency write|send|read|atomic|spin <device> [<address>]\n");
		return 2;
	}
	set_up(argv[2]);
	meeting = net_meet(server, PORT);
	swap_ends(meeting);
	connect_qp();
	for (uint32_t i = 0; i < DEPTH; i++)
		post_receive();
	net_swap(meeting, &other, &ignored, sizeof(ignored)); /* both are ready */
	if (kind)
		server ? initiate(kind) : serve(kind);
	else
		server ? write_times() : spin();
	net_swap(meeting, &other, &ignored, sizeof(ignored)); /* both are done */
	return 0;
}
