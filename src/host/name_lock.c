/* SPDX-License-Identifier: BSD-2-Clause */
/* Binding the name takes the lock, connecting to it waits. Nobody accepts: a connection ends with the lock. */
#include "host/name_lock.h"

#include "host/file.h"
#include "link/fd.h"
#include "link/sys.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WAITING_MAX 4096
#define PATIENCE_S 10
#define LOOK_MS 100 /* between looks at the holder */
#define PAUSE_MS 1

static int open_socket(void)
{
	return vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static bool is_stopped(pid_t pid)
{
	char path[32], text[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!vb_file_read(path, text, sizeof(text), NULL))
		return false;
	end = strrchr(text, ')'); /* of the program's name, which may hold anything */
	return end && end[1] && (end[2] == 'T' || end[2] == 't');
}

static void wait_for(int fd, short events, int ms)
{
	struct pollfd wait = { .fd = fd, .events = events };
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	syscall(SYS_ppoll, &wait, fd >= 0, &time, NULL, 0);
}

/* Until the lock may be free; false if it is not worth waiting for. */
static bool wait_for_holder(const struct vb_mail_name *name, uid_t user)
{
	int fd = open_socket();
	struct ucred holder;
	socklen_t length = sizeof(holder);
	bool is_hopeful = false;

	if (fd < 0)
		return false;
	if (vb_sys_connect(fd, &name->address, name->length) < 0) {
		is_hopeful = true; /* he is gone, or just beginning */
		wait_for(-1, 0, PAUSE_MS);
	} else if (vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &holder, &length) == 0 &&
		   holder.uid == user) {
		wait_for(fd, POLLIN, LOOK_MS);
		is_hopeful = !is_stopped(holder.pid);
	}
	vb_fd_close(fd);
	return is_hopeful;
}

static bool take(int fd, const struct vb_mail_name *name)
{
	if (vb_sys_bind(fd, &name->address, name->length) < 0)
		return false;
	(void)syscall(SYS_listen, fd, WAITING_MAX);
	return true;
}

int vb_name_lock_try(const struct vb_mail_name *name)
{
	int fd = open_socket();

	if (fd >= 0 && take(fd, name))
		return fd;
	if (fd >= 0)
		vb_fd_close(fd);
	return -1;
}

int vb_name_lock_take(const struct vb_mail_name *name, uid_t user)
{
	struct timespec start, now;
	int fd = open_socket();

	if (fd < 0)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (take(fd, name))
			return fd;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (wait_for_holder(name, user) && now.tv_sec - start.tv_sec < PATIENCE_S);
	vb_fd_close(fd);
	return -1;
}

void vb_name_lock_release(int lock)
{
	if (lock >= 0)
		vb_fd_close(lock);
}
