/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork(). Hardware holds physical pages, so copy-on-write may take them away from under it. This
 * adapter reaches memory through virtual addresses: nothing has to be prepared. What a child has of its parent's devices is
 * the driver's business.
 */
#include "abi/export_priv.h"

VB_ABI_EXPORT int ibv_fork_init(void)
{
	return 0;
}

VB_ABI_EXPORT enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

VB_ABI_EXPORT int ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

VB_ABI_EXPORT int ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
