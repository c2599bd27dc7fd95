/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conversion of private memory: a shared mapping with the same contents takes the place of some
 * private memory of the program, so that local peers can also map it. docs/adr/0004 says when that
 * is done and what keeps the program from noticing. All functions are for any thread; the caller
 * that takes or drops a conversion owns the adapter whose region it is for.
 */
#ifndef VB_HOST_LOCAL_CONVERSION_H
#define VB_HOST_LOCAL_CONVERSION_H

#include "base/list.h"
#include "host/local/shared.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_conversion;

/*
 * Each region that is registered by this process, with whatever rights: memory that an adapter may
 * be writing is not converted.
 */
struct vb_registration {
	struct vb_list_node node;
	uint64_t address;
	uint64_t length;
};

void vb_registration_add(struct vb_registration *registration, uint64_t address, uint64_t length);
void vb_registration_remove(struct vb_registration *registration);

/* The conversion that the range has pages in, or NULL. Each result needs a vb_conversion_drop(). */
struct vb_conversion *vb_conversion_acquire(uint64_t address, uint64_t length);
/* Converts the pages that are entirely in the range, before it is registered; or returns NULL. */
struct vb_conversion *vb_conversion_make(uint64_t address, uint64_t length);
/* *shared_out gets a descriptor of its own. */
bool vb_conversion_share(const struct vb_conversion *conversion, struct vb_shared *shared_out);
/*
 * With the last drop, the memory becomes private again. No adapter and no local peer acts in it
 * meanwhile.
 */
void vb_conversion_drop(struct vb_conversion *conversion);

bool vb_conversion_overlaps(const struct vb_conversion *conversion, uint64_t address,
			    uint64_t length);

/* --- what the program does ------------------------------------------------------------------- */

/* Why a range must become as if it had never been converted. */
enum vb_conversion_reason {
	VB_CONVERSION_CHANGES, /* its mapping, or the properties of that, change */
	VB_CONVERSION_EMPTIES, /* its contents are given up */
	VB_CONVERSION_GROWS,
	VB_CONVERSION_COPIES, /* the process is about to be copied */
	VB_CONVERSION_UNMAPS, /* memory is about to be unmapped, or mapped in its place */
	VB_CONVERSION_UNMAPPED, /* the unmapping is done */
};

/*
 * Whether the range may hold memory that was converted and is not entirely restored. Costs hardly
 * anything.
 */
bool vb_conversion_may_overlap(uint64_t address, uint64_t length);
/*
 * The caller owns all adapters of the process, and their local peers are kept out. False: the
 * program's call must fail.
 */
bool vb_conversion_withdraw(enum vb_conversion_reason reason, uint64_t address, uint64_t length);

/* Gives up conversions that nothing maps any more, and undoes what could not be undone before. */
void vb_conversion_tidy(void);

/*
 * The function that the preloaded library calls before the program's call is done, or afterwards.
 */
typedef bool vb_conversion_hook(enum vb_conversion_reason reason, uint64_t address,
				uint64_t length);
/* True if there is a preloaded library, which calls the hook from now on. */
bool vb_conversion_hook_in(vb_conversion_hook *hook);

/* One of our threads begins, or is about to end. Our threads are not the program's. */
void vb_conversion_on_helper(bool begins);
/* For a forked child, which has none of our threads. */
void vb_conversion_inherit(void);

#endif
