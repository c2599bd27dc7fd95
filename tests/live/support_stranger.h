/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Another user of this host, who holds names that programs of this one find each other by, and counts what comes to them. It knows of the
 * programs what everybody can read, and is no part of them: all with the C library.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_STRANGER_H
#define VB_TESTS_LIVE_SUPPORT_STRANGER_H

#include "harness.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#define STRANGER 4711 /* its uid */

/* What it counts, in memory that all have. */
struct spoils {
	_Atomic uint32_t name_count; /* that it holds */
	_Atomic uint32_t messages;
	_Atomic uint32_t descriptors;
	_Atomic uint32_t visits; /* connections of its own to others */
	_Atomic uint32_t round; /* of visits to all */
};

/* How names are held: by sockets of this type (SOCK_…), or by ones that only have the name. */
struct hold {
	int type;
	bool is_silent; /* nobody listens */
	const char *const *names; /* formats for a number, up to NULL */
	uint32_t first, count; /* numbers */
};

/* Starts it, and waits until it has its names. Skips the test without root. */
pid_t stranger_start(const struct hold *hold, struct spoils **spoils_out);
void stranger_end(pid_t stranger);

/* One that connects to all names below a prefix, as fast as it can or once after another, and sends what is given, with descriptors. */
pid_t stranger_visit(const char *prefix, bool is_sending, struct spoils **spoils_out);

/* Whether somebody has a name with this in it. */
bool is_named(const char *part);

#endif
