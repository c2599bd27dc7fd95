/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper thread and its calls. Calls reach the keeper through a hatch, a pair of sockets with
 * an end in each table, so that descriptors can pass from one table to the other. If the program
 * closes our end, the keeper ends, and with it what it kept; the next call starts another keeper. A
 * forked child has none.
 */
#include "host/local/keeper.h"

#include "host/local/conversion.h"
#include "host/sys/log.h"
#include "host/sys/numbers.h"
#include "host/sys/thread.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define STANDARD_FDS 3

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;
static _Atomic pid_t process; /* the process that the keeper is a thread of */
static bool is_impossible; /* the kernel cannot give a thread its own table */
static struct vb_thread thread;
static uint32_t number; /* of the keeper: how many there have been */
static int hatch = -1; /* our end; -1: there is no keeper */

/* --- waiting for it --- */

enum { BUSY, DONE, FAILED };

static void answer(_Atomic uint32_t *state, uint32_t value)
{
	atomic_store_explicit(state, value, memory_order_release);
	syscall(SYS_futex, state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static uint32_t await_answer(_Atomic uint32_t *state)
{
	uint32_t value;

	while ((value = atomic_load_explicit(state, memory_order_acquire)) == BUSY)
		syscall(SYS_futex, state, FUTEX_WAIT_PRIVATE, BUSY, NULL, NULL, 0);
	return value;
}

/* --- through the hatch --- */

struct call {
	vb_keeper_task *task;
	void *argument;
	_Atomic uint32_t state;
};

union control {
	struct cmsghdr header; /* for its alignment */
	uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

static bool send_call(struct call *call, int fd)
{
	struct iovec part = { &call, sizeof(call) };
	union control control = { .header = { .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	return vb_sys_sendmsg(hatch, &message, MSG_NOSIGNAL) == sizeof(call);
}

/* NULL: the other end is closed. */
static struct call *receive_call(int fd, int *fd_out)
{
	struct call *call;
	union control control;
	struct iovec part = { &call, sizeof(call) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int length;

	do
		length = vb_sys_recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
	while (length == -EINTR);
	if (length != sizeof(call))
		return NULL;
	header = CMSG_FIRSTHDR(&message);
	*fd_out = -1;
	if (header && header->cmsg_type == SCM_RIGHTS)
		memcpy(fd_out, CMSG_DATA(header), sizeof(*fd_out));
	return call;
}

/* --- the keeper --- */

struct beginning {
	int hatch; /* the keeper's end, in the program's table */
	_Atomic uint32_t state;
};

static void close_range_of(int first, int last)
{
	if (first <= last)
		syscall(SYS_close_range, first, last, 0);
}

/* For kernels that cannot close a range. */
static bool close_one_by_one(int kept)
{
	struct vb_numbers descriptors;
	int fd;

	if (!vb_numbers_open(&descriptors, "/proc/thread-self/fd"))
		return false;
	while (vb_numbers_next(&descriptors, &fd))
		if (fd != kept && fd != descriptors.fd)
			vb_sys_close(fd);
	vb_numbers_close(&descriptors);
	return !descriptors.has_failed;
}

/*
 * Gives the thread a table that holds only our end of the hatch. At best the descriptors above it
 * are not even copied: while the program's pipes and sockets are in two tables, closing them does
 * not end them.
 */
static bool leave_table(int kept)
{
	if (!syscall(SYS_close_range, kept + 1, ~0u, CLOSE_RANGE_UNSHARE)) {
		close_range_of(0, kept - 1);
		return true;
	}
	return !unshare(CLONE_FILES) && close_one_by_one(kept);
}

/*
 * Occupies the standard descriptors: what is written to standard error from this thread must not
 * end up in a file that is kept.
 */
static bool block_standard_fds(int *fd)
{
	int moved = vb_sys_result(syscall(SYS_fcntl, *fd, F_DUPFD_CLOEXEC, STANDARD_FDS));
	int blocker;

	if (moved < 0)
		return false;
	vb_sys_close(*fd);
	*fd = moved;
	do
		blocker = vb_sys_result(
			syscall(SYS_openat, AT_FDCWD, "/", O_PATH | O_DIRECTORY | O_CLOEXEC));
	while (blocker >= 0 && blocker < STANDARD_FDS);
	if (blocker >= 0)
		vb_sys_close(blocker);
	return blocker >= 0;
}

static void *run_keeper(void *argument)
{
	struct beginning *beginning = argument;
	int fd = beginning->hatch;
	bool has_left = leave_table(fd) && block_standard_fds(&fd);
	struct call *call;
	int lent;

	if (has_left)
		vb_conversion_on_helper(true);
	answer(&beginning->state, has_left ? DONE : FAILED);
	if (!has_left)
		return NULL;
	while ((call = receive_call(fd, &lent))) {
		call->task(call->argument, lent);
		if (lent >= 0)
			vb_sys_close(lent);
		answer(&call->state, DONE);
	}
	vb_conversion_on_helper(false);
	return NULL; /* its table ends with it */
}

/* --- starting it --- */

static void forget_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	hatch = -1; /* closed with all our descriptors */
	vb_thread_forget(&thread);
	atomic_store(&process, getpid());
}

/*
 * A copy of the process that was made without our handler still has our end, and would reach its
 * parent's keeper.
 */
static void forget_if_copied(void)
{
	pid_t owner = atomic_load(&process);

	if (owner && owner != getpid())
		forget_in_child();
}

static void set_handler(void)
{
	pthread_atfork(NULL, NULL, forget_in_child);
}

static bool start_with(int end)
{
	struct beginning beginning = { .hatch = end };

	if (vb_thread_start(&thread, run_keeper, &beginning))
		return false;
	/* Its stack stays: the keeper runs for as long as the process. */
	pthread_detach(thread.id);
	is_impossible = await_answer(&beginning.state) == FAILED;
	if (is_impossible)
		vb_log_about(
			VB_LOG_INFO, VB_LOG_ABOUT(.phase = "open"),
			"no thread with descriptors of its own: files that programs map are not shared");
	return !is_impossible;
}

/*
 * The keeper's end keeps its low number until the keeper has it: the fewer of the program's
 * descriptors there are below, the fewer are copied.
 */
static bool start(void)
{
	int ends[2];
	bool is_started;

	if (is_impossible ||
	    syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return false;
	pthread_once(&handler_once, set_handler);
	is_started = start_with(ends[0]);
	vb_sys_close(ends[0]);
	if (!is_started) {
		vb_sys_close(ends[1]);
		return false;
	}
	hatch = vb_fd_own(ends[1]);
	atomic_store(&process, getpid());
	number++;
	return true;
}

static bool ensure_started(uint32_t keeper)
{
	if (hatch >= 0 && vb_fd_is_ours(hatch))
		return !keeper || keeper == number;
	vb_fd_close(hatch);
	hatch = -1;
	return !keeper && start();
}

uint32_t vb_keeper_call(uint32_t keeper, vb_keeper_task *task, void *argument, int fd)
{
	struct call call = { .task = task, .argument = argument };
	uint32_t done_by = 0;

	forget_if_copied();
	pthread_mutex_lock(&lock);
	if (ensure_started(keeper) && send_call(&call, fd)) {
		(void)await_answer(&call.state);
		done_by = number;
	}
	pthread_mutex_unlock(&lock);
	return done_by;
}
