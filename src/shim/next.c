/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of the interposed functions. Several threads may look them up at the same time: they find
 * the same functions.
 */
#include "shim/next.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

static struct vb_next found;
static _Atomic bool is_found;

/* Stores a data pointer from dlsym() in a function pointer, for which C has no cast. */
static void look_up(void *field, const char *name)
{
	__atomic_store_n((void **)field, dlsym(RTLD_NEXT, name), __ATOMIC_RELAXED);
}

__attribute__((constructor)) static void look_all_up(void)
{
	int errno_before = errno;

#define LOOK_UP(name) look_up(&found.name, #name);
	VB_NEXT_NAMES(LOOK_UP)
	LOOK_UP(readdir_r)
	LOOK_UP(readdir64_r)
	atomic_store_explicit(&is_found, true, memory_order_release);
	errno = errno_before;
}

const struct vb_next *vb_next(void)
{
	if (!atomic_load_explicit(&is_found, memory_order_acquire))
		look_all_up();
	return &found;
}
