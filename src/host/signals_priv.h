/* SPDX-License-Identifier: BSD-2-Clause */
/* What the guards of copies and the handlers of SIGSEGV and SIGBUS want of each other. */
#ifndef VB_HOST_SIGNALS_PRIV_H
#define VB_HOST_SIGNALS_PRIV_H

#include "base/err.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Makes the handlers ours; what was there before is the program's. Repeated, it takes back what we lost. */
VB_MUST_USE vb_err vb_signal_install(void);

/*
 * Whether the program may have one of both signals blocked in this thread. No, if it had not a few microseconds ago and has not
 * changed a mask since, as far as the preloaded library sees its calls. Only then is the system call spared.
 */
bool vb_signal_may_be_blocked(uint64_t now_ns);

/* Unblocks both signals in this thread and remembers which of them the program had blocked … */
void vb_signal_admit_faults(void);

/* … and gives the thread's mask back as it was. */
void vb_signal_dismiss_faults(void);

/* The real mask of this thread. */
void vb_signal_set_mask(const sigset_t *mask);

/* As sigaction(), for the program: its own handlers stay behind ours and it notices nothing. */
int vb_signal_action(int signal, const struct sigaction *action, struct sigaction *old);

/*
 * For a fault of a copy: true, and the thread will go on in the function that copied (or has done so and
 * this does not return). False for everything else.
 */
bool vb_guard_catch(const siginfo_t *info, ucontext_t *context);

#endif
