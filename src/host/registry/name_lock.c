/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock made of an abstract socket name. Binding the name takes the lock. A waiting process
 * connects to it and polls the connection, which no process accepts and which therefore ends when
 * the holder closes its socket.
 */
#include "host/registry/name_lock.h"

#include "host/registry/mail_list.h"
#include "host/sys/clock.h"
#include "host/sys/stopped.h"
#include "link/fd.h"
#include "link/sys.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#define WAITING_MAX 4096
#define PATIENCE_NS 10000000000u
#define CHECK_MS 100 /* between checks whether the holder is stopped */
#define PAUSE_MS 1 /* before another try, if the holder cannot be connected to */
#define PAUSES_PER_CHECK 10u /* the holder of the name is looked up at every tenth pause */
#define NAMES 8u /* that a lock may have: if other users hold the first ones, the next is used */

/* What the caller does next, because of the process that holds the name. */
enum advice { RETRY, USE_NEXT_NAME, GIVE_UP };

static int open_socket(void)
{
	return vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/* The name itself, or the name with a number appended. */
static socklen_t store_address(const struct vb_mail_name *name, uint32_t index,
			       struct sockaddr_un *address)
{
	char *path = address->sun_path + 1;
	size_t size = sizeof(address->sun_path) - 1;
	int length = index ? snprintf(path, size, "%s~%u", name->text, index)
			   : snprintf(path, size, "%s", name->text);

	address->sun_family = AF_UNIX;
	address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void wait_for(int fd, short events, int ms)
{
	struct pollfd wait = { .fd = fd, .events = events };
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	syscall(SYS_ppoll, &wait, fd >= 0, &time, NULL, 0);
}

/*
 * The holder of the name cannot be connected to: it is gone or just beginning, other users'
 * processes fill its queue, or it is itself a process of another user. Pauses, and finds out at
 * every tenth pause whether it is the last of these. If the kernel does not report owners, it
 * counts as that, or strangers could delay everyone. If it is one of ours that is slow to listen,
 * two processes hold the lock, which is as if there were none.
 */
static enum advice judge_holder(const struct sockaddr_un *address, const struct vb_mail_user *user,
				uint32_t *pauses)
{
	struct vb_mail_list list = { 0 };
	bool is_same_user;

	wait_for(-1, 0, PAUSE_MS);
	if (++*pauses % PAUSES_PER_CHECK)
		return RETRY;
	vb_mail_list_fill(&list, user, VB_MAIL_ALL_NAMES);
	is_same_user = list.has_uids && vb_mail_list_has(&list, address->sun_path + 1);
	vb_mail_list_clear(&list);
	return is_same_user ? RETRY : USE_NEXT_NAME;
}

/* Waits until the lock may be free, or it is clear that it will not be. */
static enum advice wait_until_released(const struct sockaddr_un *address, socklen_t length,
				       const struct vb_mail_user *user, uint32_t *pauses)
{
	int fd = open_socket();
	enum advice advice = USE_NEXT_NAME;
	struct ucred holder;
	socklen_t size = sizeof(holder);

	if (fd < 0)
		return GIVE_UP;
	if (vb_sys_connect(fd, address, length) < 0) {
		advice = judge_holder(address, user, pauses);
	} else if (vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 &&
		   holder.uid == user->uid) {
		wait_for(fd, POLLIN, CHECK_MS);
		advice = vb_process_is_stopped(holder.pid) ? GIVE_UP : RETRY;
	}
	vb_fd_close(fd);
	return advice;
}

static bool take(int fd, const struct sockaddr_un *address, socklen_t length)
{
	if (vb_sys_bind(fd, address, length) < 0)
		return false;
	(void)syscall(SYS_listen, fd, WAITING_MAX);
	return true;
}

int vb_name_lock_try(const struct vb_mail_name *name)
{
	struct sockaddr_un address = { 0 };
	socklen_t length = store_address(name, 0, &address);
	int fd = open_socket();

	if (fd >= 0 && take(fd, &address, length))
		return fd;
	vb_fd_close(fd);
	return -1;
}

int vb_name_lock_take(const struct vb_mail_name *name, const struct vb_mail_user *user)
{
	uint64_t end_ns = vb_clock_now() + PATIENCE_NS;
	int fd = user->is_overflow ? -1 : open_socket();
	uint32_t pauses = 0;

	for (uint32_t index = 0; fd >= 0 && index < NAMES && vb_clock_now() < end_ns;) {
		struct sockaddr_un address = { 0 };
		socklen_t length = store_address(name, index, &address);
		enum advice advice;

		if (take(fd, &address, length))
			return fd;
		advice = wait_until_released(&address, length, user, &pauses);
		if (advice == GIVE_UP)
			break;
		index += advice == USE_NEXT_NAME;
	}
	vb_fd_close(fd);
	return -1;
}

void vb_name_lock_release(int lock)
{
	vb_fd_close(lock);
}
