/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The return from a fault to the copy that caused it. Runs in a signal handler, between any two
 * instructions of a copy, and therefore touches only what belongs to its own thread, and the table
 * of short copies.
 */
#include "host/memory/guard_priv.h"

#include "host/memory/faultable_copy.h"
#include "host/memory/signals_priv.h"

#include <ucontext.h>

VB_GUARD_THREAD struct vb_guard *vb_guard_innermost;
VB_GUARD_THREAD bool vb_guard_is_untried;

/*
 * The linker marks the ends of the section that faultable_copy.h fills. Without the section there
 * are no rows.
 */
extern const struct vb_faultable_row __start_vb_faultable[]
	__attribute__((weak, visibility("hidden")));
extern const struct vb_faultable_row __stop_vb_faultable[]
	__attribute__((weak, visibility("hidden")));

void vb_guard_prepare(void)
{
	vb_guard_is_untried = false;
	vb_signal_admit_faults();
}

static bool is_in(const struct vb_guard *guard, const siginfo_t *info)
{
	uintptr_t at = (uintptr_t)info->si_addr;

	if (!guard)
		return false;
	if (at - guard->first <= guard->last - guard->first) /* the range may wrap */
		return true;
	/* For an address that no page can have, the CPU does not report which address it was. */
	return info->si_code == SI_KERNEL && (guard->first | guard->last) >> 47;
}

#ifdef VB_GUARD_IS_PLAIN

static bool land(ucontext_t *context)
{
	(void)context;
	return false;
}

static void resume(struct vb_guard *guard, ucontext_t *context)
{
	vb_signal_set_mask(&context->uc_sigmask);
	longjmp(guard->mark, 1);
}

#else

/* Continues at the landing of a copy of a few instructions, if such a copy faulted. */
static bool land(ucontext_t *context)
{
	greg_t *at = &context->uc_mcontext.gregs[REG_RIP];

	for (const struct vb_faultable_row *row = __start_vb_faultable; row < __stop_vb_faultable;
	     row++) {
		if (*at == (greg_t)(uintptr_t)&row->instruction + row->instruction) {
			*at = (greg_t)(uintptr_t)&row->landing + row->landing;
			return true;
		}
	}
	return false;
}

static void resume(struct vb_guard *guard, ucontext_t *context)
{
	context->uc_mcontext.gregs[REG_RBP] = (greg_t)(uintptr_t)guard->mark[0];
	context->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)guard->mark[1];
	context->uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)guard->mark[2];
}

#endif

bool vb_guard_catch(const siginfo_t *info, ucontext_t *context)
{
	struct vb_guard *guard = vb_guard_innermost;

	if (info->si_code <= 0 || (info->si_signo == SIGBUS && info->si_code == BUS_MCEERR_AO))
		return false; /* sent by a process, or an early warning: no fault */
	if (land(context))
		return true;
	if (!is_in(guard, info))
		return false;
	vb_guard_set_innermost(guard->outer);
	resume(guard, context);
	return true;
}
