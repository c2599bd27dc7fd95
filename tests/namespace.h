/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace of the test's own, which vanishes with it; its interfaces are made with `ip`. */
#ifndef VB_TESTS_NAMESPACE_H
#define VB_TESTS_NAMESPACE_H

/*
 * Namespaces of these kinds (CLONE_NEWNET, …) for this process, or skips the test where it may not make them. Root needs no user
 * namespace; everybody else gets one, in which he is root.
 */
void namespace_unshare(int kinds);

/* Skips the test if a child may not become another user: root in a namespace of his own has nobody to become. */
void need_another_user(void);

/* Moves this process there, or skips the test where that is not possible. Every interface is down. */
void namespace_enter(void);

__attribute__((format(printf, 1, 2))) void ip(const char *format, ...);

/* An interface that is up, swallows what is sent, and has no addresses by itself. */
void namespace_add_dummy(const char *name);

#endif
