/* SPDX-License-Identifier: BSD-2-Clause */
/* The interface between the guards of copies and the handlers of SIGSEGV and SIGBUS. */
#ifndef VB_HOST_MEMORY_SIGNALS_PRIV_H
#define VB_HOST_MEMORY_SIGNALS_PRIV_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/*
 * Installs our handlers; the previous ones are kept as the program's. A repeated call takes back
 * handlers that we lost.
 */
VB_MUST_USE vb_err vb_signal_install(void);

/*
 * Whether the program may have one of the two signals blocked in this thread. False if both were
 * unblocked a few microseconds ago and the program has not changed a mask since, as far as the
 * preloaded library sees its calls. Only then is the system call saved.
 */
bool vb_signal_may_be_blocked(uint64_t now_ns);

/* Unblocks both signals in this thread and remembers which of them the program had blocked … */
void vb_signal_admit_faults(void);

/* … and restores the thread's mask. */
void vb_signal_dismiss_faults(void);

/* Sets the real mask of this thread. */
void vb_signal_set_mask(const sigset_t *mask);

/* sigaction() for the program: its own handlers stay behind ours, and it notices nothing. */
int vb_signal_action(int signal, const struct sigaction *action, struct sigaction *old);

/*
 * True for a fault of a copy: the thread will continue in the function that copied (or has done so
 * and this does not return). False for everything else.
 */
bool vb_guard_catch(const siginfo_t *info, ucontext_t *context);

#endif
