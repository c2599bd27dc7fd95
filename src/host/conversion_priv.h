/* SPDX-License-Identifier: BSD-2-Clause */
/* What must be known before memory is converted, and how that is done and undone. */
#ifndef VB_HOST_CONVERSION_PRIV_H
#define VB_HOST_CONVERSION_PRIV_H

#include "host/mapping.h"

#include <stdbool.h>
#include <stdint.h>

/* --- conversion_check.c --- */

/* The program has one thread, which is the caller. */
bool vb_conversion_is_alone(void);

/* Whole pages may be converted, and everything that the kernel knows of them is known to us. With all signals blocked. */
bool vb_conversion_is_permitted(uint64_t begin, uint64_t end);

/* The caller runs on this memory, or keeps there what each thread has of its own: it cannot be replaced under the caller's feet. */
bool vb_conversion_is_in_use(uint64_t begin, uint64_t end);

/* The mapping is that of requests, which the kernel or a device may execute by itself. */
bool vb_conversion_is_of_requests(const struct vb_mapping *mapping);

uint64_t vb_conversion_page_size(void);

/* In a forked child. */
void vb_conversion_forget_helpers(void);

/* --- conversion_move.c --- */

/* Returns how many bytes from the beginning on are converted. A child that does not run our handler has none of them. */
uint64_t vb_conversion_move_in(int fd, uint64_t address, uint64_t length);

/*
 * Makes a mapping of the file anonymous, with the same contents; the program's only thread is the caller. Where that fails the rest stays
 * as it was, and *part is the rest. A negative descriptor: there is none any more.
 */
bool vb_conversion_move_out(int fd, struct vb_mapping *part);

/* In one step, whatever other threads do: what was stored before is in the file, what is stored later in pages of its own. */
bool vb_conversion_make_private(int fd, const struct vb_mapping *part);
/* Gives a private mapping pages of its own, and their room in the file back, with the same contents. Kernels may not be able to. */
void vb_conversion_leave_file(int fd, const struct vb_mapping *part);

/* As if pages had never been touched. */
bool vb_conversion_empty(uint64_t begin, uint64_t end);

#endif
