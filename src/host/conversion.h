/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private memory of the program in whose place lies a shared mapping with the same contents, so that neighbors can have it, too.
 * docs/adr/0004 says when that is done and what keeps the program from noticing. All of it is for any thread; who takes or drops one
 * owns the adapter whose region it is for.
 */
#ifndef VB_HOST_CONVERSION_H
#define VB_HOST_CONVERSION_H

#include "base/list.h"
#include "host/shared.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_conversion;

/* Each region that is registered by this process, with whatever rights: memory that an adapter may write just now is not converted. */
struct vb_registration {
	struct vb_link link;
	uint64_t address;
	uint64_t length;
};

void vb_registration_add(struct vb_registration *registration, uint64_t address, uint64_t length);
void vb_registration_remove(struct vb_registration *registration);

/* The conversion that the range has pages in, or NULL. Each wants a vb_conversion_drop(). */
struct vb_conversion *vb_conversion_find(uint64_t address, uint64_t length);
/* Converts the pages that are wholly in the range, before it is registered; or NULL. */
struct vb_conversion *vb_conversion_make(uint64_t address, uint64_t length);
/* With a descriptor of its own. */
bool vb_conversion_share(const struct vb_conversion *conversion, struct vb_shared *shared_out);
/* With the last one, the memory is private again. No adapter and no neighbor acts in it meanwhile. */
void vb_conversion_drop(struct vb_conversion *conversion);

bool vb_conversion_overlaps(const struct vb_conversion *conversion, uint64_t address,
			    uint64_t length);

/* --- what the program does --------------------------------------------------------------------- */

/* Why a range must be as if it had never been converted. */
enum vb_conversion_reason {
	VB_CONVERSION_CHANGES, /* its mapping, or what is known of it, changes */
	VB_CONVERSION_EMPTIES, /* its contents are given up */
	VB_CONVERSION_GROWS,
	VB_CONVERSION_COPIES, /* the process is about to be copied */
	VB_CONVERSION_UNMAPS, /* something is about to be unmapped, or mapped in its place */
	VB_CONVERSION_UNMAPPED, /* that is done */
};

/* Whether there is anything in the range that was converted and is not all as it was. Costs hardly anything. */
bool vb_conversion_is_in(uint64_t address, uint64_t length);
/* All of the process's adapters are owned, and their neighbors kept out. False: the program's call must fail. */
bool vb_conversion_withdraw(enum vb_conversion_reason reason, uint64_t address, uint64_t length);

/* Gives up what nothing maps any more, and undoes what could not be undone before. */
void vb_conversion_tidy(void);

/* What the preloaded library calls before the program's call is done, or when it is. */
typedef bool vb_conversion_hook(enum vb_conversion_reason reason, uint64_t address,
				uint64_t length);
/* True if there is a preloaded library, which calls it from now on. */
bool vb_conversion_hook_in(vb_conversion_hook *hook);

/* A thread of ours begins, or is about to end; they are not the program's. */
void vb_conversion_on_helper(bool begins);
/* In a forked child, which has none of our threads. */
void vb_conversion_inherit(void);

#endif
