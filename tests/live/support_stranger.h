/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of this host. Its process holds names by which programs of this user find each
 * other, and counts what comes to them. It knows what everybody can read about the programs and is
 * no part of them: it uses only the C library.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_STRANGER_H
#define VB_TESTS_LIVE_SUPPORT_STRANGER_H

#include "harness.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define STRANGER 4711 /* its UID */

/* What the process counts, in memory that all processes share. */
struct spoils {
	_Atomic uint32_t name_count; /* names that it holds */
	_Atomic uint32_t messages;
	_Atomic uint32_t descriptors;
	_Atomic uint32_t visits; /* its connections to others */
	_Atomic uint32_t round; /* of connections to all */
};

/*
 * How names are held: by sockets of this type (SOCK_…), or by sockets that have the name but do not
 * listen.
 */
struct hold {
	int type;
	bool is_silent; /* no socket listens */
	const char *const *names; /* formats for a number, up to NULL */
	uint32_t first, count; /* numbers */
};

/* Starts the process and waits until it holds its names. Skips the test without root. */
pid_t stranger_start(const struct hold *hold, struct spoils **spoils_out);
void stranger_end(pid_t stranger);

/*
 * Starts a process that connects to all names with a prefix: again and again as fast as it can, or,
 * if is_sending, to one after the other, and sends them messages with descriptors.
 */
pid_t stranger_visit(const char *prefix, bool is_sending, struct spoils **spoils_out);

/* Whether a socket has a name that contains this part. */
bool is_named(const char *part);

#endif
