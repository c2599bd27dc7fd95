/* SPDX-License-Identifier: BSD-2-Clause */
/* Links on loopback or in namespaces of the test's own, and the basic steps of all live tests. */
#ifndef VB_TESTS_LIVE_SUPPORT_LINK_H
#define VB_TESTS_LIVE_SUPPORT_LINK_H

#include "harness.h"
#include "link/udp.h"

#include <sys/types.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

struct vb_udp *open_link(struct vb_udp_config config);
struct vb_udp_address address_of(const char *text); /* "127.0.0.1" or "::1" */

/* One message of these bytes between two addresses, from the first transmit socket. */
struct vb_udp_message message_of(const char *source, const char *destination,
				 const struct iovec *iovec);
void send_one(struct vb_udp *udp, struct vb_udp_message message);

/*
 * Waits for `count` datagrams, which the kernel must have coalesced into one. They are valid until
 * the next call.
 */
void receive_all(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t count);
struct vb_udp_datagram receive_one(struct vb_udp *udp);
void expect_silence(struct vb_udp *udp);

#define expect_count(udp, counter, value) EXPECT_EQ(vb_udp_counters(udp)[VB_UDP_##counter], value)

/* Fills the memory with bytes that depend on their position. */
void fill_pattern(uint8_t *bytes, size_t length, uint32_t seed);

/* Returns memory that is no longer mapped: reading it fails with EFAULT. */
void *vanished_memory(size_t length);

/*
 * Starts a second process that runs `run(argument)`. Its failed expectations fail the test at
 * join_process().
 */
pid_t start_process(void (*run)(void *argument), void *argument);
void join_process(pid_t process);

/*
 * Moves this process into a network namespace of its own, where only loopback is up. Skips the test
 * where that is forbidden.
 */
void enter_own_network(void);

/*
 * Two network namespaces with a cable between them: interface "va" with 10.9.0.1, fd09::1 and
 * fe80::1 in one, "vb" with 10.9.0.2, fd09::2 and fe80::2 in the other. They vanish with the last
 * process. Skips the test like enter_own_network().
 */
enum end { END_A, END_B };
void make_wire(void);
void enter_end(enum end end);

/*
 * Makes segments separate packets on the wire itself, not one long packet. Call it at the end that
 * sends.
 */
void cut_segments_on_the_wire(const char *interface);

/* A socket that receives everything on an interface, in both directions. */
int open_capture(const char *interface);

/* Runs a shell command, which must succeed. */
__attribute__((format(printf, 1, 2))) void command(const char *format, ...);

#endif
