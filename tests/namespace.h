/* SPDX-License-Identifier: BSD-2-Clause */
/* A network namespace of the test's own, which vanishes with it; its interfaces are made with `ip`. */
#ifndef VB_TESTS_NAMESPACE_H
#define VB_TESTS_NAMESPACE_H

/* Moves this process there, or skips the test where that is not possible. Every interface is down. */
void namespace_enter(void);

__attribute__((format(printf, 1, 2))) void ip(const char *format, ...);

/* An interface that is up, swallows what is sent, and has no addresses by itself. */
void namespace_add_dummy(const char *name);

#endif
