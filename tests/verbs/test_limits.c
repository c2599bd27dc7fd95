/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs with small limits. Whatever the limit, there are two outcomes. Either a message goes to
 * another process and back, by whichever path. Or a call fails with the errno that belongs to the
 * limit, and the log names the limit as users know it. Nothing crashes, hangs or loses data.
 */
#include "harness.h"
#include "kernel_refuses.h"

#include <infiniband/verbs.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 8192, GID_INDEX = 1, PATIENCE_S = 20, LOG_MAX = 1 << 16 };
#define MB (1u << 20)

/* --- what the two processes exchange --- */

enum { LIMITED = 1, UNLIMITED }; /* the content of their messages */
enum { WORKED, FAILED, UNEXPECTED }; /* how they end */

struct board {
	_Atomic uint32_t qpns[2];
	_Atomic uint32_t is_over; /* the unlimited process has all it waits for */
	int error; /* of the limited process … */
	char call[32]; /* … and the call that failed */
	uint64_t locked_kb; /* what it has locked at the end */
};

static struct board *board;
static void (*before_connecting)(uint64_t value); /* also done by the limited process */

/* --- one end --- */

struct end {
	struct ibv_context *context;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *memory; /* what is sent, and what is received */
	uint32_t counts[2]; /* completions not yet waited for: of sends and receives */
};

static bool is_limited;
static uint64_t limit_value;

static void give_up(const char *call)
{
	int error = errno;

	if (!is_limited) {
		fprintf(stderr, "the other end: %s: %s\n", call, strerror(error));
		_exit(UNEXPECTED);
	}
	board->error = error;
	snprintf(board->call, sizeof(board->call), "%s", call);
	_exit(FAILED);
}

static void check(bool is_done, const char *call)
{
	if (!is_done)
		give_up(call);
}

static void check_error(int error, const char *call)
{
	errno = error;
	check(!error, call);
}

/* The buffer exists before the limit does: the program's own memory is not under test here. */
static uint8_t buffer[2 * LENGTH];

static void open_end(struct end *end)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_pd *pd;

	check(list && list[0], "ibv_get_device_list");
	end->context = ibv_open_device(list[0]);
	check(end->context, "ibv_open_device");
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(end->context);
	check(pd, "ibv_alloc_pd");
	end->cq = ibv_create_cq(end->context, 16, NULL, NULL, 0);
	check(end->cq, "ibv_create_cq");
	end->memory = buffer;
	end->mr = ibv_reg_mr(pd, buffer, sizeof(buffer),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	check(end->mr, "ibv_reg_mr");
	init.send_cq = init.recv_cq = end->cq;
	end->qp = ibv_create_qp(pd, &init);
	check(end->qp, "ibv_create_qp");
	check_error(ibv_modify_qp(end->qp, &attr,
				  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					  IBV_QP_ACCESS_FLAGS),
		    "ibv_modify_qp");
}

static void connect_end(struct end *end, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = GID_INDEX },
	};

	check_error(ibv_query_gid(end->context, 1, GID_INDEX, &attr.ah_attr.grh.dgid),
		    "ibv_query_gid");
	check_error(ibv_modify_qp(end->qp, &attr,
				  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					  IBV_QP_MIN_RNR_TIMER),
		    "ibv_modify_qp");
	attr.qp_state = IBV_QPS_RTS;
	check_error(ibv_modify_qp(end->qp, &attr,
				  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					  IBV_QP_MAX_QP_RD_ATOMIC),
		    "ibv_modify_qp");
}

static void post_recv(struct end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->memory + LENGTH, LENGTH, end->mr->lkey };
	struct ibv_recv_wr request = { .sg_list = &sge, .num_sge = 1 }, *bad;

	check_error(ibv_post_recv(end->qp, &request, &bad), "ibv_post_recv");
}

static void post_send(struct end *end)
{
	struct ibv_sge sge = { (uintptr_t)end->memory, LENGTH, end->mr->lkey };
	struct ibv_send_wr request = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	check_error(ibv_post_send(end->qp, &request, &bad), "ibv_post_send");
}

/* Waits for the next completion of this kind; others come in any order. */
static void await(struct end *end, enum ibv_wc_opcode opcode)
{
	struct ibv_wc completion;

	while (!end->counts[opcode == IBV_WC_RECV]) {
		if (!ibv_poll_cq(end->cq, 1, &completion))
			continue;
		errno = EPROTO;
		check(completion.status == IBV_WC_SUCCESS, ibv_wc_status_str(completion.status));
		end->counts[completion.opcode == IBV_WC_RECV]++;
	}
	end->counts[opcode == IBV_WC_RECV]--;
}

static void fill(uint8_t *bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < LENGTH; i++)
		bytes[i] = (uint8_t)(i * 7 + seed + i / 251);
}

static void expect_filled(const uint8_t *bytes, uint32_t seed)
{
	for (uint32_t i = 0; i < LENGTH; i++) {
		errno = EILSEQ;
		check(bytes[i] == (uint8_t)(i * 7 + seed + i / 251), "data");
	}
}

static uint32_t await_peer(uint32_t side)
{
	uint32_t qpn;

	while (!(qpn = atomic_load(&board->qpns[side])))
		usleep(200);
	return qpn;
}

static void note_locked(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];

	while (status && fgets(line, sizeof(line), status))
		(void)!sscanf(line, "VmLck: %lu", &board->locked_kb);
	if (status)
		fclose(status);
}

/* The limited end sends first, and gets another message back. */
static void be_limited(void)
{
	struct end end = { 0 };

	is_limited = true;
	open_end(&end);
	post_recv(&end);
	if (before_connecting)
		before_connecting(limit_value);
	atomic_store(&board->qpns[0], end.qp->qp_num);
	connect_end(&end, await_peer(1));
	fill(end.memory, LIMITED);
	post_send(&end);
	await(&end, IBV_WC_SEND);
	await(&end, IBV_WC_RECV);
	expect_filled(end.memory + LENGTH, UNLIMITED);
	note_locked();
	while (!atomic_load(&board->is_over))
		usleep(200);
	_exit(WORKED);
}

static void be_unlimited(void)
{
	struct end end = { 0 };

	open_end(&end);
	post_recv(&end);
	connect_end(&end, await_peer(0));
	atomic_store(&board->qpns[1], end.qp->qp_num);
	await(&end, IBV_WC_RECV);
	expect_filled(end.memory + LENGTH, LIMITED);
	fill(end.memory, UNLIMITED);
	post_send(&end);
	await(&end, IBV_WC_SEND);
	atomic_store(&board->is_over, 1);
	_exit(WORKED);
}

/* --- running them --- */

struct outcome {
	bool works;
	int error;
	const char *call;
	char log[LOG_MAX];
};

static struct outcome outcome;

static pid_t start(void (*be)(void), void (*limit)(uint64_t), uint64_t value, int log_fd)
{
	pid_t child = fork();

	EXPECT(child >= 0);
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(log_fd, STDERR_FILENO);
	close_range(3, ~0u, 0);
	alarm(PATIENCE_S);
	(void)ibv_wc_status_str(IBV_WC_SUCCESS); /* programs that open the library have it by now */
	limit_value = value;
	if (limit)
		limit(value);
	be();
	_exit(WORKED);
}

static int status_of(pid_t child)
{
	int status;

	EXPECT_EQ(waitpid(child, &status, 0), child);
	return status;
}

static void read_log(int fd)
{
	size_t length = 0;
	ssize_t count;

	while ((count = read(fd, outcome.log + length, LOG_MAX - 1 - length)) > 0)
		length += (size_t)count;
	outcome.log[length] = '\0';
	close(fd);
}

/* A process that crashes, or that fails without a cause in the limit, fails the test. */
static void run_under(void (*limit)(uint64_t), uint64_t value)
{
	int status, ends[2];
	pid_t limited, unlimited;

	setenv("VERBATIM_LOG", "warn", 1);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	EXPECT(board != MAP_FAILED);
	EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
	EXPECT(fcntl(ends[1], F_SETPIPE_SZ, LOG_MAX) >= 0);
	unlimited = start(be_unlimited, NULL, 0, STDERR_FILENO);
	limited = start(be_limited, limit, value, ends[1]);
	close(ends[1]);
	status = status_of(limited);
	read_log(ends[0]);
	if (WIFSIGNALED(status) || WEXITSTATUS(status) != WORKED)
		kill(unlimited, SIGKILL);
	if (WIFSIGNALED(status))
		FAIL("%lu: ended by signal %d; its log: %s", (unsigned long)value, WTERMSIG(status),
		     outcome.log);
	EXPECT(WEXITSTATUS(status) == WORKED || WEXITSTATUS(status) == FAILED);
	outcome.works = WEXITSTATUS(status) == WORKED;
	outcome.error = board->error;
	outcome.call = board->call;
	status = status_of(unlimited);
	EXPECT(!outcome.works || (WIFEXITED(status) && WEXITSTATUS(status) == WORKED));
}

static void expect_error(uint64_t value, int error, const char *name)
{
	if (outcome.error != error || !strstr(outcome.log, name))
		FAIL("%lu: %s() failed with errno %d (%s), and the log does not name %s: %s",
		     (unsigned long)value, outcome.call, outcome.error, strerror(outcome.error),
		     name, outcome.log);
}

/* Each run works, or says what is missing. Returns how many worked. */
static uint32_t try_all(void (*limit)(uint64_t), const uint64_t *values, uint32_t count, int error,
			const char *name)
{
	uint32_t worked = 0;

	for (uint32_t i = 0; i < count; i++) {
		run_under(limit, values[i]);
		worked += outcome.works;
		if (!outcome.works)
			expect_error(values[i], error, name);
	}
	return worked;
}

#define COUNT(values) (sizeof(values) / sizeof((values)[0]))

static void set_limit(int resource, uint64_t value)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit))
		_exit(UNEXPECTED);
	limit.rlim_cur = value;
	if (setrlimit(resource, &limit))
		_exit(UNEXPECTED);
}

static bool has_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
	return __has_feature(address_sanitizer);
#else
	return false;
#endif
}

/* --- the limits --- */

static void limit_files(uint64_t value)
{
	set_limit(RLIMIT_NOFILE, value);
}

TEST(few_descriptors)
{
	uint64_t values[62];

	for (uint32_t i = 0; i < COUNT(values); i++)
		values[i] = i + 3;
	EXPECT(try_all(limit_files, values, COUNT(values), EMFILE, "ulimit -n"));
	EXPECT(outcome.works); /* with 64 */
}

static void do_nothing(uint64_t value)
{
	(void)value;
}

/* Opens all descriptors but `value`. */
static void use_up_descriptors(uint64_t value)
{
	int last = -1, fd;

	while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		last = fd;
	for (uint64_t i = 0; i < value; i++)
		close(last - (int)i);
}

/* What is open stays open; peers that can no longer be met are reached by packets. */
TEST(descriptors_run_out_before_a_connection)
{
	before_connecting = use_up_descriptors;
	for (uint64_t left = 0; left < 12; left++) {
		run_under(do_nothing, left);
		if (!outcome.works)
			FAIL("%lu: %s failed with errno %d: %s", (unsigned long)left, outcome.call,
			     outcome.error, outcome.log);
		EXPECT(left || strstr(outcome.log, "ulimit -n"));
	}
	EXPECT(!strstr(outcome.log, "ulimit -n"));
}

static void limit_file_size(uint64_t value)
{
	set_limit(RLIMIT_FSIZE, value);
}

/* Local peers need shared memory; without it everything goes by the wire. */
TEST(small_files)
{
	static const uint64_t values[] = { 0, 1, 4096, 500000, MB, 10 * MB, 20 * MB };

	for (uint32_t i = 0; i < COUNT(values); i++) {
		run_under(limit_file_size, values[i]);
		if (!outcome.works)
			FAIL("%lu: %s failed with errno %d: %s", (unsigned long)values[i],
			     outcome.call, outcome.error, outcome.log);
		EXPECT(strstr(outcome.log, "ulimit -f"));
	}
	run_under(limit_file_size, 64 * MB);
	EXPECT(outcome.works);
	EXPECT(!strstr(outcome.log, "ulimit -f"));
}

static void limit_address_space(uint64_t value)
{
	set_limit(RLIMIT_AS, value);
}

TEST(little_address_space)
{
	static const uint64_t values[] = { 0,	    10 * MB, 20 * MB, 30 * MB,	40 * MB, 50 * MB,
					   60 * MB, 70 * MB, 80 * MB, 100 * MB, 200 * MB };

	if (has_sanitizer())
		SKIP("sanitizers need more than that");
	EXPECT(try_all(limit_address_space, values, COUNT(values), ENOMEM, "ulimit -v"));
	EXPECT(outcome.works);
}

static void limit_data(uint64_t value)
{
	set_limit(RLIMIT_DATA, value);
}

TEST(little_data)
{
	static const uint64_t values[] = { 0,	    MB,	     2 * MB,  4 * MB,  8 * MB,
					   12 * MB, 16 * MB, 20 * MB, 40 * MB, 80 * MB };

	if (has_sanitizer())
		SKIP("sanitizers need more than that");
	EXPECT(try_all(limit_data, values, COUNT(values), ENOMEM, "ulimit -d"));
	EXPECT(outcome.works);
}

static void limit_stack(uint64_t value)
{
	set_limit(RLIMIT_STACK, value);
}

TEST(stacks_of_any_size)
{
	static const uint64_t values[] = { 128 << 10, 256 << 10, 64 * MB, RLIM_INFINITY };

	if (has_sanitizer())
		SKIP("frames are larger there");
	EXPECT_EQ(try_all(limit_stack, values, COUNT(values), ENOMEM, "ulimit -s"), COUNT(values));
}

static void limit_locked(uint64_t value)
{
	set_limit(RLIMIT_MEMLOCK, value);
}

TEST(nothing_may_be_locked)
{
	run_under(limit_locked, 0);
	EXPECT(outcome.works);
}

/* The program has asked that all memory it gets from now on be locked. */
static void lock_memory(uint64_t value)
{
	set_limit(RLIMIT_MEMLOCK, value);
	if (mlockall(MCL_FUTURE))
		_exit(UNEXPECTED);
}

TEST(all_memory_is_locked)
{
	static const uint64_t values[] = { 4096, 64 << 10, MB, 2 * MB, 4 * MB, 8 * MB };

	if (has_sanitizer())
		SKIP("what they need cannot be locked");
	EXPECT(try_all(lock_memory, values, COUNT(values), ENOMEM, "ulimit -l"));
	EXPECT(outcome.works);
}

/* Memory that is not touched does not become resident. */
TEST(little_is_locked_with_the_programs_memory)
{
	struct rlimit limit;

	if (has_sanitizer())
		SKIP("what they need cannot be locked");
	EXPECT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	run_under(lock_memory, limit.rlim_max);
	EXPECT(outcome.works);
	if (board->locked_kb << 10 > 12 * MB)
		FAIL("%lu KB are locked", (unsigned long)board->locked_kb);
}

/*
 * As where the user has as many processes as permitted (RLIMIT_NPROC), which does not apply to
 * root.
 */
static void limit_threads(uint64_t value)
{
	(void)value;
	if (!kernel_refuses(SYS_clone3, EAGAIN) || !kernel_refuses(SYS_clone, EAGAIN))
		_exit(UNEXPECTED);
}

TEST(no_threads)
{
	run_under(limit_threads, 0);
	EXPECT(!outcome.works);
	expect_error(0, EAGAIN, "ulimit -u");
}
