/* SPDX-License-Identifier: BSD-2-Clause */
/* Links on loopback or in namespaces of the test's own, and the few steps that all live tests are made of. */
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

/* Waits for `count` datagrams, which the kernel must have coalesced into one; valid until the next call. */
void receive_all(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t count);
struct vb_udp_datagram receive_one(struct vb_udp *udp);
void expect_silence(struct vb_udp *udp);

#define expect_count(udp, counter, value) EXPECT_EQ(vb_udp_counters(udp)[VB_UDP_##counter], value)

/* Bytes that differ from place to place. */
void fill_pattern(uint8_t *bytes, size_t length, uint32_t seed);

/* Memory that no longer is there: reading it is EFAULT. */
void *vanished_memory(size_t length);

/* A second process that runs `run(argument)`; its failed expectations fail the test at join_process(). */
pid_t start_process(void (*run)(void *argument), void *argument);
void join_process(pid_t process);

/* This process gets a network of its own, where only loopback is up. Skips the test where that is forbidden. */
void enter_own_network(void);

/*
 * Two networks of their own with a cable between them: interface "va" with 10.9.0.1, fd09::1 and fe80::1 in one, "vb"
 * with 10.9.0.2, fd09::2 and fe80::2 in the other. They vanish with the last process. Skips like the above.
 */
enum end { END_A, END_B };
void make_wire(void);
void enter_end(enum end end);

/* On the wire itself, not as one long packet. Must be called at the end that sends. */
void cut_segments_on_the_wire(const char *interface);

/* A socket that gets all that is on an interface, in both directions. */
int open_capture(const char *interface);

/* Runs a shell command, which must succeed. */
__attribute__((format(printf, 1, 2))) void command(const char *format, ...);

#endif
