/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock made of an abstract name. Binding the name takes the lock; connecting to it waits. No
 * process accepts, so a connection ends with the lock.
 */
#include "host/name_lock.h"

#include "host/clock.h"
#include "host/mail_list.h"
#include "host/stopped.h"
#include "link/fd.h"
#include "link/sys.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>

#define WAITING_MAX 4096
#define PATIENCE_NS 10000000000u
#define LOOK_MS 100 /* between looks at the holder */
#define PAUSE_MS 1
#define DOUBTS_MAX 10u /* pauses before a holder that cannot be connected to is doubted */
#define NAMES 8u /* for one lock */

enum holder { GONE, FELLOW, STRANGER, STOPPED };

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
 * processes fill its queue, or it is itself a process of another user.
 */
static enum holder judge_holder(const struct sockaddr_un *address, const struct vb_mail_user *user,
				uint32_t *doubts)
{
	struct vb_mail_list list = { 0 };
	bool is_fellow;

	wait_for(-1, 0, PAUSE_MS);
	if (++*doubts % DOUBTS_MAX)
		return GONE;
	vb_mail_list_fill(&list, user, VB_MAIL_ALL_NAMES);
	is_fellow = list.has_uids && vb_mail_list_has(&list, address->sun_path + 1);
	vb_mail_list_clear(&list);
	return is_fellow ? FELLOW : STRANGER;
}

/* Waits until the lock may be free, or it is clear that it will not be. */
static enum holder wait_for_holder(const struct sockaddr_un *address, socklen_t length,
				   const struct vb_mail_user *user, uint32_t *doubts)
{
	int fd = open_socket();
	enum holder who = STRANGER;
	struct ucred holder;
	socklen_t size = sizeof(holder);

	if (fd < 0)
		return STOPPED;
	if (vb_sys_connect(fd, address, length) < 0) {
		who = judge_holder(address, user, doubts);
	} else if (vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 &&
		   holder.uid == user->uid) {
		wait_for(fd, POLLIN, LOOK_MS);
		who = vb_process_is_stopped(holder.pid) ? STOPPED : FELLOW;
	}
	vb_fd_close(fd);
	return who;
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
	uint32_t doubts = 0;

	for (uint32_t index = 0; fd >= 0 && index < NAMES && vb_clock_now() < end_ns;) {
		struct sockaddr_un address = { 0 };
		socklen_t length = store_address(name, index, &address);
		enum holder who;

		if (take(fd, &address, length))
			return fd;
		who = wait_for_holder(&address, length, user, &doubts);
		if (who == STOPPED)
			break;
		index += who == STRANGER;
	}
	vb_fd_close(fd);
	return -1;
}

void vb_name_lock_release(int lock)
{
	if (lock >= 0)
		vb_fd_close(lock);
}
