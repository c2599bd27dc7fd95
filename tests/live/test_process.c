/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program may do to its process while it has a device open: fork, exec, become a daemon,
 * close every descriptor it does not know. Its traffic goes on, and neither program nor adapter
 * reads, writes or closes what belongs to the other.
 */
#include "support_verbs.h"

#include "host/registry/port_member.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NUMBERS 65536

static struct program program, another;

/*
 * A child that goes on may find the sanitizer's allocator locked, by a thread that the child does
 * not have.
 */
static void skip_with_sanitizer(void)
{
#ifdef VB_TESTING
	SKIP("the sanitizer's allocator does not stand a fork beside threads");
#endif
}

static void begin(void)
{
	program_enter_namespace();
	program_open(&program);
	program_round(&program);
	program_round_with_event(&program);
}

static void end(void)
{
	program_round(&program);
	program_round_with_event(&program);
	program_close(&program);
}

/*
 * Runs a part of the test in a child. The child reports with a letter that it reached its end:
 * failed expectations end the process.
 */
static pid_t begin_child(void (*run)(void), int *said_out)
{
	int pipes[2];
	pid_t pid;

	EXPECT_EQ(pipe(pipes), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		close(pipes[0]);
		run();
		EXPECT_EQ(write(pipes[1], "k", 1), 1);
		_exit(0);
	}
	close(pipes[1]);
	*said_out = pipes[0];
	return pid;
}

static void expect_end(int said)
{
	char letter;

	EXPECT_EQ(read(said, &letter, 1), 1);
	close(said);
}

static void run_in_child(void (*run)(void))
{
	int said;
	pid_t pid = begin_child(run, &said);

	expect_end(said);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
}

/* --- fork ------------------------------------------------------------------------------------- */

/* The parent's program goes on meanwhile, undisturbed. */
static void run_child_beside_rounds(void (*run)(void))
{
	int said;
	pid_t pid;

	skip_with_sanitizer();
	begin();
	pid = begin_child(run, &said);
	for (int i = 0; i < 500; i++)
		program_round(&program);
	expect_end(said);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	end();
}

static void expect_refusals(void)
{
	struct ibv_send_wr send = { .opcode = IBV_WR_RDMA_WRITE }, *bad_send;
	struct ibv_recv_wr receive = { 0 }, *bad_receive;
	struct ibv_async_event event;
	struct ibv_wc completion;
	struct ibv_cq *cq;
	void *cq_context;

	EXPECT_EQ(ibv_post_send(program.qp, &send, &bad_send), EIO);
	EXPECT(bad_send == &send);
	EXPECT_EQ(ibv_post_recv(program.qp, &receive, &bad_receive), EIO);
	EXPECT(ibv_poll_cq(program.cq, 1, &completion) < 0);
	EXPECT_EQ(ibv_req_notify_cq(program.cq, 0), EIO);
	EXPECT_EQ(ibv_get_cq_event(program.channel, &cq, &cq_context), -1);
	EXPECT_EQ(ibv_get_async_event(program.context, &event), -1);
	EXPECT(!ibv_create_cq(program.context, 1, NULL, NULL, 0));
	EXPECT_EQ(errno, EIO);
	EXPECT(ibv_destroy_qp(program.qp));
	EXPECT(ibv_destroy_cq(program.cq));
}

TEST(a_forked_child_is_refused_while_its_parent_goes_on)
{
	run_child_beside_rounds(expect_refusals);
}

/* The objects concern no other process: the child's copy of the adapter holds them. */
static void make_memory_objects(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 64 };
	struct ibv_pd *pd = ibv_alloc_pd(program.context);
	struct ibv_dm *dm = ibv_alloc_dm(program.context, &attr);
	struct ibv_mr *mr;

	EXPECT(pd && dm);
	mr = ibv_reg_mr(pd, program.source, 10, 0);
	EXPECT(mr);
	EXPECT_EQ(ibv_dereg_mr(mr), 0);
	EXPECT_EQ(ibv_free_dm(dm), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

TEST(a_forked_child_may_make_memory_objects_of_its_own)
{
	run_child_beside_rounds(make_memory_objects);
}

static void use_another(void)
{
	program_open(&another);
	for (int i = 0; i < 50; i++)
		program_round(&another);
	program_close(&another);
}

static void open_anew(void)
{
	EXPECT_EQ(ibv_close_device(program.context),
		  0); /* an inherited object allows only this much */
	use_another();
}

TEST(a_forked_child_may_open_devices_of_its_own)
{
	int said;
	pid_t pid;

	skip_with_sanitizer();
	begin();
	pid = begin_child(open_anew, &said);
	for (int i = 0; i < 50; i++)
		program_round(&program);
	expect_end(said);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	end();
}

/* Calls the function for each number that is a descriptor, except that of the directory itself. */
static void for_each_descriptor(void (*call)(int fd, const char *what))
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	EXPECT(directory);
	while ((entry = readdir(directory))) {
		char path[300], what[64] = "";
		int fd = atoi(entry->d_name);

		if (*entry->d_name == '.' || fd == dirfd(directory))
			continue;
		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		EXPECT(readlink(path, what, sizeof(what) - 1) > 0);
		call(fd, what);
	}
	closedir(directory);
}

static void expect_no_socket(int fd, const char *what)
{
	if (!strncmp(what, "socket:", 7))
		FAIL("descriptor %d is %s", fd, what);
}

static void expect_no_sockets(void)
{
	for_each_descriptor(expect_no_socket);
}

TEST(a_forked_child_keeps_no_socket_alive)
{
	skip_with_sanitizer();
	begin();
	run_in_child(expect_no_sockets);
	end();
}

static atomic_bool is_stopping;

static void *poll_all_the_time(void *argument)
{
	(void)argument;
	while (!atomic_load(&is_stopping))
		program_round(&program);
	return NULL;
}

static void *wait_for_async_event(void *argument)
{
	struct ibv_async_event event;

	(void)argument;
	(void)ibv_get_async_event(another.context, &event);
	return NULL;
}

TEST(children_are_forked_at_any_moment)
{
	pthread_t poller, waiter;

	skip_with_sanitizer();
	begin();
	program_open(&another);
	EXPECT_EQ(pthread_create(&poller, NULL, poll_all_the_time, NULL), 0);
	EXPECT_EQ(pthread_create(&waiter, NULL, wait_for_async_event, NULL), 0);
	for (int i = 0; i < 20; i++)
		run_in_child(use_another);
	atomic_store(&is_stopping, true);
	pthread_join(poller, NULL);
	for (int i = 0; i < 50; i++)
		program_round(&another);
	pthread_cancel(waiter);
	end();
}

/* --- killing ---------------------------------------------------------------------------------- */

static void be_written_to(int exchange)
{
	program_open_with_peer(&program, exchange);
	pause();
}

/* Writes and waits for each event until it fails. */
static enum ibv_wc_status write_until_failure(void)
{
	enum ibv_wc_status status;

	do {
		EXPECT_EQ(ibv_req_notify_cq(program.cq, 0), 0);
		program_post(&program);
		status = program_wait(&program);
	} while (status == IBV_WC_SUCCESS);
	return status;
}

static void *kill_soon(void *argument)
{
	usleep(rand() % 20000);
	kill(*(pid_t *)argument, SIGKILL);
	return NULL;
}

static void write_to_one_who_is_killed(void)
{
	int pair[2];
	pthread_t killer;
	pid_t pid;

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		be_written_to(pair[1]);
	program_open_with_peer(&program, pair[0]);
	EXPECT_EQ(pthread_create(&killer, NULL, kill_soon, &pid), 0);
	EXPECT_STR(ibv_wc_status_str(write_until_failure()), "transport retry counter exceeded");
	pthread_join(killer, NULL);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	program_close(&program);
	close(pair[0]);
	close(pair[1]);
}

TEST(a_program_that_waits_for_an_event_learns_that_the_peer_was_killed)
{
	program_enter_namespace();
	for (int i = 0; i < (test_is_thorough() ? 100 : 5); i++)
		write_to_one_who_is_killed();
}

/* Takes the number of a process that was killed, and goes on until the test ends it. */
static void be_successor(int exchange, uint32_t killed_qpn)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	program_open(&another);
	EXPECT_EQ(another.qp->qp_num >> VB_PORT_MEMBER_QPN_SHIFT,
		  killed_qpn >> VB_PORT_MEMBER_QPN_SHIFT);
	EXPECT(another.qp->qp_num != killed_qpn); /* by chance, once in 65,536 times */
	EXPECT_EQ(write(exchange, "r", 1), 1);
	while (recv(exchange, &(char){ 0 }, 1, MSG_DONTWAIT) < 0)
		program_round(&another);
	program_close(&another);
	EXPECT_EQ(write(exchange, "e", 1), 1);
	_exit(0);
}

/* Its peers do not know that the process is gone, and send to QPs that it had. */
TEST(packets_for_a_killed_process_do_not_disturb_its_successor)
{
	int pair[2];
	pid_t pid;

	program_keep_log("debug");
	program_enter_namespace();
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		be_written_to(pair[1]);
	program_open_with_peer(&program, pair[0]);
	program_post(&program);
	EXPECT_STR(program_poll(&program), "success");
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	/* The process may have left a letter. */
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid)
		be_successor(pair[1], program.to.qpn);
	EXPECT_EQ(read(pair[0], &(char){ 0 }, 1), 1);
	program_post(&program);
	EXPECT_STR(program_poll(&program), "transport retry counter exceeded");
	EXPECT_EQ(write(pair[0], "e", 1), 1);
	EXPECT_EQ(read(pair[0], &(char){ 0 }, 1), 1);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	program_expect_in_log("vb_d0: dropped no_such_qp ");
	EXPECT(!strstr(program_read_log(), "dropped not_from_the_peer"));
	EXPECT(!strstr(program_read_log(), "dropped qp_state"));
	program_close(&program);
}

/* --- closing ---------------------------------------------------------------------------------- */

static int numbers[NUMBERS], number_count;

static void note_descriptor(int fd, const char *what)
{
	(void)what;
	if (fd > 2)
		numbers[number_count++] = fd;
}

static void close_all(void)
{
	for_each_descriptor(note_descriptor);
	for (int i = 0; i < number_count; i++)
		close(numbers[i]);
}

TEST(a_program_may_close_all_descriptors)
{
	begin();
	close_all();
	for (int i = 0; i < 50; i++)
		program_round(&program);
	program_close(&program);
}

TEST(a_program_may_close_all_descriptors_while_it_waits_for_events)
{
	pthread_t waiter;

	begin();
	program_open(&another);
	EXPECT_EQ(pthread_create(&waiter, NULL, wait_for_async_event, NULL), 0);
	usleep(50000);
	close_all();
	for (int i = 0; i < 50; i++) {
		program_round(&program);
		program_round(&another);
	}
	pthread_join(waiter, NULL);
	program_close(&program);
	program_close(&another);
}

/*
 * The program's own files then get the numbers that became free: those of the channel and the async
 * events, and lower ones that were the adapter's. The adapter may take nothing from them, write
 * nothing to them, and not close them.
 */
TEST(what_a_program_opens_instead_is_left_alone)
{
	enum { PAIRS = 50 };
	int pairs[PAIRS][2];
	char bytes[16];

	begin();
	close_all();
	for (int i = 0; i < PAIRS; i++) {
		EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pairs[i]), 0);
		EXPECT_EQ(send(pairs[i][0], "mine", 4, 0), 4);
		EXPECT_EQ(send(pairs[i][1], "mine", 4, 0), 4);
	}
	for (int i = 0; i < 50; i++) {
		EXPECT_EQ(ibv_req_notify_cq(program.cq, 0), 0);
		program_round(&program);
	}
	program_close(&program);
	for (int i = 0; i < PAIRS; i++) {
		for (int side = 0; side < 2; side++) {
			EXPECT_EQ(recv(pairs[i][side], bytes, sizeof(bytes), MSG_DONTWAIT), 4);
			EXPECT_EQ(recv(pairs[i][side], bytes, sizeof(bytes), MSG_DONTWAIT), -1);
			EXPECT_EQ(errno, EAGAIN);
		}
	}
}

/* --- daemons ---------------------------------------------------------------------------------- */

/* The process that opened the device ends; its child goes on. */
static void become_daemon(void)
{
	pid_t pid = fork();

	EXPECT(pid >= 0);
	if (pid)
		_exit(0);
}

static void go_on(void)
{
	for (int i = 0; i < 50; i++)
		program_round(&program);
	for (int i = 0; i < 50; i++)
		program_round_with_event(&program);
	program_open(&another);
	program_round(&another);
	program_close(&another);
	program_close(&program);
}

static void open_and_become_daemon(void)
{
	program_open(&program);
	program_round_with_event(&program);
	become_daemon();
	EXPECT_EQ(setsid(), getpid());
	go_on();
}

TEST(a_program_may_become_a_daemon_after_opening)
{
	int said;

	program_enter_namespace();
	skip_with_sanitizer();
	begin_child(open_and_become_daemon, &said);
	expect_end(said);
}

static void open_and_fork_twice(void)
{
	program_open(&program);
	program_round(&program);
	become_daemon();
	setsid();
	become_daemon();
	go_on();
}

TEST(a_program_may_become_a_daemon_by_two_forks)
{
	int said;

	program_enter_namespace();
	skip_with_sanitizer();
	begin_child(open_and_fork_twice, &said);
	expect_end(said);
}

static void open_fork_and_use_before(void)
{
	program_open(&program);
	program_round(&program);
	become_daemon();
	program_round(&program);
	become_daemon();
	go_on();
}

TEST(a_daemon_may_do_so_again)
{
	int said;

	program_enter_namespace();
	skip_with_sanitizer();
	begin_child(open_fork_and_use_before, &said);
	expect_end(said);
}
