/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions for programs that run at both ends of a network. They end the program with a message
 * when the machine refuses something.
 */
#ifndef BENCH_SUPPORT_NET_H
#define BENCH_SUPPORT_NET_H

#include <netinet/in.h>
#include <stdint.h>

/* Prints what failed and errno's reason, and exits with 1. */
_Noreturn void net_fail(const char *what);

struct sockaddr_in net_address(const char *text, uint16_t port);

/* Opens a nonblocking UDP socket on `port` (0: any) of all IPv4 addresses. */
int net_open_udp(uint16_t port);
void net_set(int fd, int level, int option, int value);

/*
 * Makes a TCP connection to or from the other end, for programs that need its numbers before they
 * can measure.
 */
int net_meet(const char *server, uint16_t port); /* NULL: as the server */
void net_swap(int fd, const void *own, void *other, uint32_t length);

#endif
