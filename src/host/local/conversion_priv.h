/* SPDX-License-Identifier: BSD-2-Clause */
/* The conditions for converting memory, and the steps that convert it and undo that. */
#ifndef VB_HOST_LOCAL_CONVERSION_PRIV_H
#define VB_HOST_LOCAL_CONVERSION_PRIV_H

#include "host/sys/mapping.h"

#include <stdbool.h>
#include <stdint.h>

/* --- conversion_check.c --- */

/* True if the program's only thread is the caller. */
bool vb_conversion_is_alone(void);

/*
 * True if whole pages may be converted, as far as other threads are not concerned, and everything
 * that the kernel knows of them is known to us. Called with all signals blocked.
 */
bool vb_conversion_is_permitted(uint64_t begin, uint64_t end);

/*
 * True if the caller runs on this memory, or keeps its thread-local data there: it cannot be
 * replaced while the caller uses it.
 */
bool vb_conversion_is_in_use(uint64_t begin, uint64_t end);

/* The part of vb_conversion_is_permitted() that other threads may have changed since. */
bool vb_conversion_is_still_permitted(uint64_t begin, uint64_t end);

/* True if the mapping belongs to requests that the kernel or a device may execute by itself. */
bool vb_conversion_is_request_queue(const struct vb_mapping *mapping);

uint64_t vb_conversion_page_size(void);

/*
 * Finds the variable of the preloaded library that says whether the program has asked for special
 * memory. Looking for it takes a lock that other threads hold while they load libraries.
 */
void vb_conversion_find_special(void);

/* For a forked child. */
void vb_conversion_forget_helpers(void);

/* --- conversion_hold.c --- */

struct vb_hold {
	int fd;
	uint64_t begin, end;
};

/* False: system calls of other threads may be writing to memory in a way that nothing stops. */
bool vb_hold_is_possible(void);
/*
 * From now on, each thread that stores to these pages waits. The caller must not store to them
 * itself. False if the kernel or its administrator does not permit that.
 */
bool vb_hold_begin(struct vb_hold *hold, uint64_t begin, uint64_t end);
/*
 * From now on, each access to pages that vanish waits as well, so the caller must not touch them
 * any more. False if some have vanished already: something may have been stored.
 */
bool vb_hold_close(const struct vb_hold *hold);
void vb_hold_end(struct vb_hold *hold);

/* --- conversion_move.c --- */

/*
 * Returns how many bytes, from the beginning on, are converted. A child that does not run our
 * handler has none of them. Unless the caller is the program's only thread, others are held off,
 * for a chunk at a time.
 */
uint64_t vb_conversion_move_in(int fd, uint64_t address, uint64_t length, bool is_alone);

/*
 * Makes a mapping of the file anonymous, with the same contents. The caller is the program's only
 * thread. On failure the rest stays as it was, and *part is that rest. A negative descriptor: the
 * file's descriptor no longer exists.
 */
bool vb_conversion_move_out(int fd, struct vb_mapping *part);
/*
 * The same for a private mapping that has left the file, beside other threads, which are held off
 * meanwhile, for a chunk at a time.
 */
bool vb_conversion_move_out_held(int fd, struct vb_mapping *part);

/*
 * Makes a mapping private in one step, whatever other threads do: what was stored before is in the
 * file, what is stored later is in pages of the mapping's own.
 */
bool vb_conversion_make_private(int fd, const struct vb_mapping *part);
/*
 * Gives a private mapping pages of its own with the same contents, and gives back their room in the
 * file. False: it still needs the file, because the kernel cannot do that.
 */
bool vb_conversion_leave_file(int fd, const struct vb_mapping *part);

/* Makes pages look as if they had never been touched. */
bool vb_conversion_empty(uint64_t begin, uint64_t end);

#endif
