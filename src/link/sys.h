/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls without the C library's functions of the same names. A preloaded library may have
 * replaced those for the whole process (rsockets does so with all socket calls), and our own
 * sockets must not end up there. All return what the kernel does: a negative errno for an error.
 */
#ifndef VB_LINK_SYS_H
#define VB_LINK_SYS_H

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int vb_sys_result(long result)
{
	return result < 0 ? -errno : (int)result;
}

static inline int vb_sys_socket(int family, int type, int protocol)
{
	return vb_sys_result(syscall(SYS_socket, family, type, protocol));
}

static inline int vb_sys_bind(int fd, const void *name, socklen_t length)
{
	return vb_sys_result(syscall(SYS_bind, fd, name, length));
}

static inline int vb_sys_connect(int fd, const void *name, socklen_t length)
{
	return vb_sys_result(syscall(SYS_connect, fd, name, length));
}

static inline int vb_sys_getsockname(int fd, void *name, socklen_t *length)
{
	return vb_sys_result(syscall(SYS_getsockname, fd, name, length));
}

static inline int vb_sys_setsockopt(int fd, int level, int option, const void *value,
				    socklen_t length)
{
	return vb_sys_result(syscall(SYS_setsockopt, fd, level, option, value, length));
}

static inline int vb_sys_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	return vb_sys_result(syscall(SYS_getsockopt, fd, level, option, value, length));
}

static inline int vb_sys_send(int fd, const void *bytes, size_t length, int flags)
{
	return vb_sys_result(syscall(SYS_sendto, fd, bytes, length, flags, NULL, 0));
}

static inline int vb_sys_sendmsg(int fd, const struct msghdr *message, int flags)
{
	return vb_sys_result(syscall(SYS_sendmsg, fd, message, flags));
}

static inline int vb_sys_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return vb_sys_result(syscall(SYS_sendmmsg, fd, messages, count, flags));
}

static inline int vb_sys_recvmsg(int fd, struct msghdr *message, int flags)
{
	return vb_sys_result(syscall(SYS_recvmsg, fd, message, flags));
}

static inline int vb_sys_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	return vb_sys_result(syscall(SYS_recvmmsg, fd, messages, count, flags, NULL));
}

static inline int vb_sys_epoll_create(int flags)
{
	return vb_sys_result(syscall(SYS_epoll_create1, flags));
}

static inline int vb_sys_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
	return vb_sys_result(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

/* Returns what is ready now, without waiting. */
static inline int vb_sys_epoll_look(int epoll, struct epoll_event *events, int capacity)
{
	return vb_sys_result(syscall(SYS_epoll_pwait, epoll, events, capacity, 0, NULL, 0));
}

static inline void vb_sys_close(int fd)
{
	(void)syscall(SYS_close, fd);
}

/*
 * For our own mappings only. The preloaded library's munmap() makes all adapters stop, and a thread
 * that owns one must not wait for that.
 */
static inline void vb_sys_munmap(const void *address, size_t length)
{
	(void)syscall(SYS_munmap, address, length);
}

#endif
