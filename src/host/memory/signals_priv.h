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
 * Begins a series of copies at this time. True if the program may have one of the two signals
 * blocked in this thread: vb_signal_admit_faults() must then be called before the first copy. False
 * if both were found unblocked a moment ago and the program has not changed a mask since, as far as
 * the preloaded library sees its calls; this avoids a system call.
 */
bool vb_signal_begin(uint64_t now_ns);

/* Whether the preloaded library sees the program's calls. */
bool vb_signal_is_watched(void);

/* Unblocks both signals in this thread and remembers which of them the program had blocked … */
void vb_signal_admit_faults(void);

/* … and restores the thread's mask. */
void vb_signal_dismiss_faults(void);

/* Sets the real mask of this thread. */
void vb_signal_set_mask(const sigset_t *mask);

/* sigaction() for the program: its own handlers stay behind ours, and it notices nothing. */
int vb_signal_action(int signal, const struct sigaction *action, struct sigaction *old);

/*
 * If a copy caused this fault, closes its guard and returns true: after the handler, the thread
 * continues in the function that copied. Where guards are jmp_bufs, it jumps there instead of
 * returning. False for everything else.
 */
bool vb_guard_catch(const siginfo_t *info, ucontext_t *context);

#endif
