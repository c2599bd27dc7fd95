/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lets the kernel refuse system calls of this process from now on, as older kernels, limits and
 * sandboxes do. Children inherit it, and there is no way back. Each function returns false if the
 * kernel has no seccomp.
 */
#ifndef TESTS_KERNEL_REFUSES_H
#define TESTS_KERNEL_REFUSES_H

#include <stdbool.h>
#include <stdint.h>

/* All calls of this number. */
bool kernel_refuses(long number, int error);
/* Those whose third argument is `value`. */
bool kernel_refuses_value(long number, uint32_t value, int error);
/* Those whose third argument has one of these bits. */
bool kernel_refuses_flags(long number, uint32_t bits, int error);

#endif
