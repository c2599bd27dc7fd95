/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread drives an adapter: no deadline and no doorbell may be left to a thread that sleeps,
 * and the helper thread must not get in the way of a program that polls. The adapter is on an
 * interface of the test's own. What it sends to BLACK_HOLE vanishes; what it sends to itself comes
 * back over its sockets.
 */
#include "harness.h"
#include "support_adapter.h"

#include "host/adapter/adapter_priv.h"
#include "link/fd.h"
#include "nic/cq.h"
#include "nic/qp.h"
#include "nic/rings.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)
#define WAIT_S 30

enum { OWN_ADDRESS = 1, BLACK_HOLE = 2 }; /* the last number of 10.0.0.x */
enum { SEND_DEPTH = 16 };
enum { TIMEOUT_1_MS = 8, TIMEOUT_275_S = 26, TIMEOUT_NEVER = 0 };
enum { ROUNDS_OF_POLLING = 30 };

static struct vb_adapter *adapter;
static struct vb_pd *pd;

/* A QP and CQ with an event descriptor, as behind a completion channel. */
struct end {
	int fd;
	struct vb_cq *cq;
	struct vb_qp *qp;
};

static void on_event(void *owner, const struct vb_event *event)
{
	uint64_t one = 1;
	struct end *end = event->owner_context;

	(void)owner;
	if (event->kind == VB_EVENT_COMPLETION)
		EXPECT_EQ(write(end->fd, &one, sizeof(one)), sizeof(one));
}

static void connect_end(struct end *end, uint8_t to, uint8_t timeout)
{
	struct vb_qp_attr attr = {
		.port = 1,
		.path_mtu = 1024,
		.address = { .destination = { { [10] = 0xff, [11] = 0xff, 10, 0, 0, to } },
			     .source_index = 1 },
		.destination = vb_qp_number(end->qp),
		.timeout = timeout,
		.retry_count = 1,
		.rnr_retry = 7,
		.reads_out = 1,
		.reads_in = 1,
		.min_rnr_timer = 1,
		.access = VB_ACCESS_REMOTE_WRITE,
	};

	adapter_raise_qp(NULL, end->qp, attr);
}

static void open_end(struct end *end, uint8_t to, uint8_t timeout)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_depth = SEND_DEPTH,
		.recv_depth = 1,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};

	end->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	EXPECT(end->fd >= 0);
	vb_adapter_enter(adapter);
	MUST(vb_cq_create(vb_adapter_nic(adapter), 64, end, &end->cq));
	init.send_cq = init.recv_cq = end->cq;
	MUST(vb_qp_create(pd, &init, &end->qp));
	connect_end(end, to, timeout);
	vb_adapter_leave(adapter);
}

static void close_end(struct end *end)
{
	vb_adapter_enter(adapter);
	MUST(vb_qp_destroy(end->qp));
	MUST(vb_cq_destroy(end->cq));
	vb_adapter_leave(adapter);
	close(end->fd);
}

/* A WRITE of no bytes, which needs no memory. */
static void post(struct end *end)
{
	struct vb_send_request request = { .opcode = VB_WR_WRITE };

	MUST(vb_qp_post_send(end->qp, &request));
	vb_qp_publish_and_ring(end->qp);
	vb_adapter_kick(adapter);
}

static void *wait_for_event(void *argument)
{
	const struct end *end = argument;

	EXPECT_EQ(vb_adapter_wait(adapter, end->fd), 0);
	return NULL;
}

static void join(pthread_t thread)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += WAIT_S;
	if (pthread_timedjoin_np(thread, NULL, &end))
		FAIL("a thread still sleeps");
}

static void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void expect_completion(struct end *end, const char *status)
{
	struct vb_completion completion;

	EXPECT_EQ(vb_cq_poll(end->cq, &completion, 1), 1);
	EXPECT_STR(vb_status_describe(completion.status), status);
}

/* CPU time of all threads but this one. */
static double other_threads_seconds(void)
{
	struct timespec all, own;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
	return (double)(all.tv_sec - own.tv_sec) + (double)(all.tv_nsec - own.tv_nsec) / 1e9;
}

static double now_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Polls for a while; the helper thread pauses then. */
static void poll_for_a_while(void)
{
	double end_seconds = now_seconds() + 0.003;

	while (now_seconds() < end_seconds)
		vb_adapter_poll(adapter, NULL);
}

/* --- deadlines -------------------------------------------------------------------------------- */

TEST(a_deadline_that_comes_up_while_a_thread_waits_is_kept)
{
	struct end quiet, lost;
	pthread_t waiter;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&quiet, OWN_ADDRESS, TIMEOUT_NEVER);
	open_end(&lost, BLACK_HOLE, TIMEOUT_1_MS);
	vb_cq_arm(lost.cq, false);
	EXPECT_EQ(pthread_create(&waiter, NULL, wait_for_event, &lost), 0);
	sleep_ms(100); /* the thread sleeps now: nothing is under way */
	post(&lost);
	join(waiter);
	expect_completion(&lost, "RETRY_EXC_ERR");
	close_end(&lost);
	close_end(&quiet);
	adapter_end(adapter, pd);
}

TEST(a_deadline_is_kept_when_nobody_polls_or_waits)
{
	struct end lost;
	struct pollfd event;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&lost, BLACK_HOLE, TIMEOUT_1_MS);
	event = (struct pollfd){ .fd = lost.fd, .events = POLLIN };
	sleep_ms(100);
	vb_cq_arm(lost.cq, false);
	vb_adapter_expect_sleep(adapter);
	post(&lost);
	EXPECT_EQ(poll(&event, 1, WAIT_S * 1000), 1);
	expect_completion(&lost, "RETRY_EXC_ERR");
	close_end(&lost);
	adapter_end(adapter, pd);
}

/*
 * Unless it pauses, the helper thread announces when it looks next. No other thread does what is
 * due before that.
 */
static void expect_helper_in_time(void)
{
	uint64_t wakes_ns, deadline_ns;

	vb_lock_take(&adapter->owner);
	wakes_ns = atomic_load(&adapter->policy.helper_wakes_ns);
	deadline_ns = vb_nic_deadline(adapter->nic);
	vb_lock_give(&adapter->owner);
	EXPECT(wakes_ns == VB_DRIVE_HELPER_PAUSES || wakes_ns <= deadline_ns);
}

TEST(a_deadline_is_kept_when_a_program_has_just_stopped_polling)
{
	adapter_begin(on_event, &adapter, &pd);
	for (uint32_t i = 0; i < ROUNDS_OF_POLLING; i++) {
		double end_seconds = now_seconds() + WAIT_S;
		struct end lost;

		open_end(&lost, BLACK_HOLE, TIMEOUT_1_MS);
		poll_for_a_while();
		post(&lost);
		while (!vb_cq_waiting(lost.cq)) {
			expect_helper_in_time();
			nanosleep(&(struct timespec){ 0, 200000 }, NULL);
			if (now_seconds() > end_seconds)
				FAIL("round %u: the request has not ended", i);
		}
		expect_completion(&lost, "RETRY_EXC_ERR");
		close_end(&lost);
	}
	adapter_end(adapter, pd);
}

TEST(a_thread_that_drives_and_then_sleeps_learns_of_the_deadline_though_the_helper_pauses)
{
	struct end lost;
	uint64_t deadline_ns;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&lost, BLACK_HOLE, TIMEOUT_275_S); /* which does not elapse meanwhile */
	post(&lost);
	vb_lock_take(&adapter->owner);
	deadline_ns = vb_nic_deadline(adapter->nic);
	EXPECT(deadline_ns != VB_NEVER);
	atomic_store(&adapter->policy.helper_wakes_ns, VB_DRIVE_HELPER_PAUSES);
	EXPECT(vb_adapter_drive(adapter) <= deadline_ns);
	vb_lock_give(&adapter->owner);
	vb_adapter_wake_helper(adapter);
	close_end(&lost);
	adapter_end(adapter, pd);
}

TEST(a_waiting_thread_learns_of_what_another_has_driven)
{
	struct end ends[2];
	pthread_t waiters[2];

	adapter_begin(on_event, &adapter, &pd);
	for (int i = 0; i < 2; i++) {
		open_end(&ends[i], OWN_ADDRESS, TIMEOUT_NEVER);
		vb_cq_arm(ends[i].cq, false);
		EXPECT_EQ(pthread_create(&waiters[i], NULL, wait_for_event, &ends[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		sleep_ms(20);
		post(&ends[i]);
		join(waiters[i]);
		expect_completion(&ends[i], "SUCCESS");
	}
	for (int i = 0; i < 2; i++)
		close_end(&ends[i]);
	adapter_end(adapter, pd);
}

/* --- doorbells -------------------------------------------------------------------------------- */

#define POSTERS 3

static uint32_t round_count(void)
{
	return test_is_thorough() ? 100000 : 5000;
}

/*
 * Posts and waits for the event in poll(), as a program with an event loop does: only the helper
 * thread drives.
 */
static void *post_and_poll_descriptor(void *argument)
{
	struct end *end = argument;
	struct pollfd event = { .fd = end->fd, .events = POLLIN };

	for (uint32_t i = 0; i < round_count(); i++) {
		uint64_t count;

		vb_cq_arm(end->cq, false);
		post(end);
		if (poll(&event, 1, WAIT_S * 1000) != 1)
			FAIL("the completion of post %u did not come", i);
		EXPECT_EQ(read(end->fd, &count, sizeof(count)), sizeof(count));
		expect_completion(end, "SUCCESS");
	}
	return NULL;
}

/* Spins on the ring without driving. Dice decide how early after a completion it posts. */
static void *post_and_spin(void *argument)
{
	struct end *end = argument;

	for (uint32_t i = 0; i < 10 * round_count(); i++) {
		double end_seconds = now_seconds() + WAIT_S;
		struct vb_completion completion;

		post(end);
		while (!vb_cq_poll(end->cq, &completion, 1))
			if (now_seconds() > end_seconds)
				FAIL("the completion of post %u did not come", i);
		for (uint32_t spin = i * 7 % 64; spin; spin--)
			(void)now_seconds();
	}
	return NULL;
}

static void *post_and_wait(void *argument)
{
	struct end *end = argument;

	for (uint32_t i = 0; i < round_count(); i++) {
		uint64_t count;

		vb_cq_arm(end->cq, false);
		post(end);
		EXPECT_EQ(vb_adapter_wait(adapter, end->fd), 0);
		EXPECT_EQ(read(end->fd, &count, sizeof(count)), sizeof(count));
		expect_completion(end, "SUCCESS");
	}
	return NULL;
}

static void run_posters(int count, void *(*first)(void *), void *(*others)(void *))
{
	struct end ends[POSTERS];
	pthread_t threads[POSTERS];

	adapter_begin(on_event, &adapter, &pd);
	for (int i = 0; i < count; i++) {
		open_end(&ends[i], OWN_ADDRESS, TIMEOUT_NEVER);
		EXPECT_EQ(pthread_create(&threads[i], NULL, i ? others : first, &ends[i]), 0);
	}
	for (int i = 0; i < count; i++) {
		pthread_join(threads[i], NULL);
		close_end(&ends[i]);
	}
	adapter_end(adapter, pd);
}

/*
 * Posts more in a row than are sent one by one: the rest waits for more requests that never come.
 */
TEST(what_a_program_posted_before_it_stopped_polling_is_sent)
{
	struct end end;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&end, OWN_ADDRESS, TIMEOUT_NEVER);
	for (uint32_t i = 0; i < 50; i++) {
		double end_seconds = now_seconds() + WAIT_S;
		uint32_t done = 0;

		poll_for_a_while();
		for (uint32_t k = 0; k < SEND_DEPTH; k++)
			post(&end);
		while (done < SEND_DEPTH) {
			struct vb_completion completion;

			done += vb_cq_poll(end.cq, &completion, 1);
			if (now_seconds() > end_seconds)
				FAIL("round %u: %u posts of %u are done", i, done, SEND_DEPTH);
		}
	}
	close_end(&end);
	adapter_end(adapter, pd);
}

TEST(no_doorbell_is_lost_when_only_the_helper_drives)
{
	run_posters(POSTERS, post_and_poll_descriptor, post_and_poll_descriptor);
}

TEST(no_doorbell_is_lost_when_one_thread_waits_and_others_only_post)
{
	run_posters(POSTERS, post_and_wait, post_and_poll_descriptor);
}

TEST(no_doorbell_is_lost_to_a_program_that_spins_on_memory)
{
	run_posters(1, post_and_spin, NULL);
}

/* --- the helper thread's share of the CPU ----------------------------------------------------- */

static void poll_for(struct end *end, double seconds)
{
	double end_seconds = now_seconds() + seconds;
	struct vb_completion completion;

	while (now_seconds() < end_seconds) {
		vb_adapter_poll(adapter, NULL);
		(void)vb_cq_poll(end->cq, &completion, 1);
	}
}

TEST(the_helper_sleeps_while_a_program_polls)
{
	struct end end;
	double spent = 0, begun;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&end, OWN_ADDRESS, TIMEOUT_1_MS);
	begun = now_seconds();
	/*
	 * The helper thread is woken for a deadline at the moment when the program begins to poll,
	 * again and again.
	 */
	for (int i = 0; i < 100; i++) {
		double before = other_threads_seconds();

		post(&end);
		poll_for(&end, 0.005);
		spent += other_threads_seconds() - before;
		sleep_ms(2);
	}
	EXPECT(spent < 0.2 * (now_seconds() - begun));
	close_end(&end);
	adapter_end(adapter, pd);
}

/* Seconds without a poll after which the helper thread takes over … */
#define GAP 0.0005
#define SLEEP_MIN 0.0001 /* … and hardly sleeps for less */

/* How often threads other than this one have gone to sleep. */
static long other_threads_sleeps(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;
	long sum = 0;

	EXPECT(directory);
	while ((entry = readdir(directory))) {
		char path[300], end[200];
		long count;
		FILE *file;

		if (*entry->d_name == '.' || atoi(entry->d_name) == gettid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
		file = fopen(path, "r");
		EXPECT(file);
		while (fgets(end, sizeof(end), file))
			if (sscanf(end, "voluntary_ctxt_switches: %ld", &count) == 1)
				sum += count;
		fclose(file);
	}
	closedir(directory);
	return sum;
}

/*
 * While this thread had no CPU it did not poll: the helper thread drove instead, and then started
 * again.
 */
TEST(the_helper_sleeps_on_while_a_program_polls)
{
	struct end end;
	double begun, last, unpolled = 0;
	long before, gaps = 0;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&end, OWN_ADDRESS, TIMEOUT_1_MS);
	poll_for(&end, 0.01);
	before = other_threads_sleeps();
	begun = last = now_seconds();
	while (last < begun + 1) {
		struct vb_completion completion;
		double now;

		post(&end);
		while (!vb_cq_poll(end.cq, &completion, 1))
			vb_adapter_poll(adapter, NULL);
		vb_adapter_on_poll(adapter);
		now = now_seconds();
		if (now - last > GAP) {
			gaps++;
			unpolled += now - last;
		}
		last = now;
	}
	EXPECT(other_threads_sleeps() - before < 200 + 10 * gaps + (long)(unpolled / SLEEP_MIN));
	close_end(&end);
	adapter_end(adapter, pd);
}

/*
 * Polls once, as a thread whose last poll was long ago or just now. Returns whether that postpones
 * an alarm that is due.
 */
static bool postpones_alarm(bool has_polled)
{
	atomic_store(&adapter->policy.polled_ns, has_polled ? vb_clock_now() : 0);
	atomic_store(&adapter->policy.postpone_ns, 0);
	vb_adapter_poll(adapter, NULL);
	return atomic_load(&adapter->policy.postpone_ns);
}

/*
 * A thread that polls now and then does most of the work only every few polls: its polls cannot be
 * relied on.
 */
TEST(only_a_thread_that_polls_on_postpones_the_alarm)
{
	bool is_so = false;

	adapter_begin(on_event, &adapter, &pd);
	sleep_ms(50); /* the helper thread has nothing to do now */
	for (uint32_t i = 0; i < 3 && !is_so; i++) /* but it may look, four times a second */
		is_so = !postpones_alarm(false) && postpones_alarm(true);
	EXPECT(is_so);
	adapter_end(adapter, pd);
}

/*
 * In a program without standard input, the adapter's first descriptor that keeps its number has
 * number 0.
 */
TEST(an_adapter_takes_no_descriptor_for_its_alarm_that_it_did_not_open)
{
	close(0);
	EXPECT_EQ(eventfd(0, EFD_CLOEXEC), 0);
	vb_fd_own_in_place(0);
	adapter_begin(on_event, &adapter, &pd);
	EXPECT(adapter->alarm.fd > 0);
	adapter_end(adapter, pd);
	EXPECT(vb_fd_is_ours(0));
	vb_fd_close(0);
}

TEST(an_idle_adapter_uses_no_cpu)
{
	struct end end;
	struct timespec before, after;

	adapter_begin(on_event, &adapter, &pd);
	open_end(&end, OWN_ADDRESS, TIMEOUT_1_MS);
	post(&end);
	poll_for(&end, 0.01);
	sleep_ms(100);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	sleep_ms(1000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	EXPECT((double)(after.tv_sec - before.tv_sec) +
		       (double)(after.tv_nsec - before.tv_nsec) / 1e9 <
	       0.005);
	close_end(&end);
	adapter_end(adapter, pd);
}
