/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A network namespace of the test's own, which vanishes with the test; its interfaces are made with
 * `ip`.
 */
#ifndef VB_TESTS_NAMESPACE_H
#define VB_TESTS_NAMESPACE_H

/*
 * Makes namespaces of these kinds (CLONE_NEWNET, …) for this process, or skips the test where that
 * is forbidden. Root needs no user namespace; any other user gets one and is root in it.
 */
void namespace_unshare(int kinds);

/*
 * Skips the test if a child cannot become another user: root in a user namespace of its own has no
 * other user to become.
 */
void need_another_user(void);

/*
 * Moves this process into a new network namespace, or skips the test where that is not possible.
 * Every interface is down.
 */
void namespace_enter(void);

__attribute__((format(printf, 1, 2))) void ip(const char *format, ...);

/* Adds an interface that is up, drops what is sent, and has no addresses by itself. */
void namespace_add_dummy(const char *name);

#endif
