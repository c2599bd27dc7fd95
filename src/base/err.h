/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Return values of our own functions, and the check for our own bugs. errno does not exist below
 * src/abi: each value here names the errno that the verbs library turns it into.
 */
#ifndef VB_BASE_ERR_H
#define VB_BASE_ERR_H

#include <stdlib.h>

typedef enum vb_err {
	VB_OK = 0,
	VB_ENOMEM, /* no memory, or a queue is full */
	VB_EINVAL, /* the caller's argument is wrong */
	VB_EBUSY, /* the object still has children or users */
	VB_ENOSPC, /* a table of the adapter is full */
	VB_EOPNOTSUPP, /* the adapter neither does this nor advertises it */
	VB_EFAULT, /* application memory could not be reached */
	VB_EMFILE, /* no descriptor is left */
	VB_EFBIG, /* a file may not be that large */
	VB_EAGAIN, /* no thread can be started */
} vb_err;

#define VB_MUST_USE __attribute__((warn_unused_result))

/*
 * For code that hardly ever runs: compilers place it apart from code that runs often. They
 * therefore also take any path that always leads to it for rare.
 */
#define VB_COLD __attribute__((cold, noinline))
/* For code that runs often enough, but would only be in the way inside its callers. */
#define VB_NOINLINE __attribute__((noinline))
/*
 * For conditions that nearly always hold where it matters. Of the path behind ten conditions that
 * may hold or not, compilers believe that it hardly ever runs, and save its space, not its time.
 */
#define VB_USUALLY(condition) __builtin_expect(condition, 1)
/*
 * For a function of another file that belongs into its hot callers whole: its arguments then stay
 * in the CPU's registers. Only a build with link-time optimization can do it.
 */
#define VB_INLINE extern inline __attribute__((always_inline))

/* A bug of ours, never a peer's or a program's: stop immediately rather than corrupt memory. */
#define VB_CHECK(condition)       \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

#endif
