/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets over RDMA. Programs that link librdmacm find the names; no function behind them works
 * yet.
 */
#include "cma/cma_priv.h"

#include <rdma/rsocket.h>

/* The functions read none of their parameters. */
#define REFUSE(type, name, ...)              \
	VB_CMA_EXPORT type name(__VA_ARGS__) \
	{                                    \
		errno = ENOSYS;              \
		return (type)-1;             \
	}

#pragma GCC diagnostic ignored "-Wunused-parameter"

REFUSE(int, rsocket, int domain, int type, int protocol)
REFUSE(int, rbind, int socket, const struct sockaddr *addr, socklen_t addrlen)
REFUSE(int, rlisten, int socket, int backlog)
REFUSE(int, raccept, int socket, struct sockaddr *addr, socklen_t *addrlen)
REFUSE(int, rconnect, int socket, const struct sockaddr *addr, socklen_t addrlen)
REFUSE(int, rshutdown, int socket, int how)
REFUSE(int, rclose, int socket)
REFUSE(ssize_t, rrecv, int socket, void *buf, size_t len, int flags)
REFUSE(ssize_t, rrecvfrom, int socket, void *buf, size_t len, int flags, struct sockaddr *src_addr,
       socklen_t *addrlen)
REFUSE(ssize_t, rrecvmsg, int socket, struct msghdr *msg, int flags)
REFUSE(ssize_t, rsend, int socket, const void *buf, size_t len, int flags)
REFUSE(ssize_t, rsendto, int socket, const void *buf, size_t len, int flags,
       const struct sockaddr *dest_addr, socklen_t addrlen)
REFUSE(ssize_t, rsendmsg, int socket, const struct msghdr *msg, int flags)
REFUSE(ssize_t, rread, int socket, void *buf, size_t count)
REFUSE(ssize_t, rreadv, int socket, const struct iovec *iov, int iovcnt)
REFUSE(ssize_t, rwrite, int socket, const void *buf, size_t count)
REFUSE(ssize_t, rwritev, int socket, const struct iovec *iov, int iovcnt)
REFUSE(int, rpoll, struct pollfd *fds, nfds_t nfds, int timeout)
REFUSE(int, rselect, int nfds, fd_set *readfds, fd_set *writefds, fd_set *exceptfds,
       struct timeval *timeout)
REFUSE(int, rgetpeername, int socket, struct sockaddr *addr, socklen_t *addrlen)
REFUSE(int, rgetsockname, int socket, struct sockaddr *addr, socklen_t *addrlen)
REFUSE(int, rsetsockopt, int socket, int level, int optname, const void *optval, socklen_t optlen)
REFUSE(int, rgetsockopt, int socket, int level, int optname, void *optval, socklen_t *optlen)
REFUSE(int, rfcntl, int socket, int cmd, ...)
REFUSE(off_t, riomap, int socket, void *buf, size_t len, int prot, int flags, off_t offset)
REFUSE(int, riounmap, int socket, void *buf, size_t len)
REFUSE(size_t, riowrite, int socket, const void *buf, size_t count, off_t offset, int flags)
