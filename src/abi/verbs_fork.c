/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Support for fork(). Hardware holds physical pages, which copy-on-write may take away. This
 * adapter accesses memory through virtual addresses: nothing has to be prepared. The driver handles
 * the devices that a child inherits from its parent.
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
