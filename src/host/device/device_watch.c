/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watch: a netlink socket that gets a message for every change of links and addresses. What
 * changed is not read from it: a message may be lost when the queue is full, a new look at the
 * interfaces may not.
 */
#include "host/device/device.h"

#include "link/fd.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

vb_err vb_device_watch_open(int *fd_out)
{
	struct sockaddr_nl own = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR,
	};
	long fd = syscall(SYS_socket, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			  NETLINK_ROUTE);

	if (fd >= 0 && !syscall(SYS_bind, fd, &own, sizeof(own))) {
		*fd_out = vb_fd_own((int)fd);
		return VB_OK;
	}
	vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "devices", .error = errno),
		     "cannot watch the network interfaces: %s", strerrordesc_np(errno));
	if (fd >= 0)
		syscall(SYS_close, fd);
	return VB_EOPNOTSUPP;
}

void vb_device_watch_close(int fd)
{
	vb_fd_close(fd);
}

enum vb_device_news vb_device_watch_take(int fd)
{
	enum vb_device_news news = VB_DEVICE_NO_NEWS;
	char first_bytes[64]; /* the rest of each message is discarded */
	int errno_before = errno;

	/*
	 * If the program has opened a descriptor of its own at this number since, reading would
	 * steal its data.
	 */
	if (!vb_fd_is_ours(fd)) {
		errno = errno_before;
		return VB_DEVICE_WATCH_LOST;
	}
	for (;;) {
		long got = syscall(SYS_recvfrom, fd, first_bytes, sizeof(first_bytes), MSG_DONTWAIT,
				   NULL, NULL);

		if (got < 0 && errno != EINTR && errno != ENOBUFS)
			break;
		if (got >= 0 || errno == ENOBUFS)
			news = VB_DEVICE_NEWS;
	}
	errno = errno_before;
	return news;
}
