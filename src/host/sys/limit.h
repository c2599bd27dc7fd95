/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Limits of the process that prevent something, described for error messages by the names that a
 * user knows.
 */
#ifndef VB_HOST_SYS_LIMIT_H
#define VB_HOST_SYS_LIMIT_H

#include "base/err.h"

#define VB_LIMIT_TEXT_MAX 200

/* Translates what the kernel answered, a negative errno. */
vb_err vb_limit_err(int error);

/*
 * Describes the limits that may be behind an error, such as " (limits: open files 16, ulimit -n)";
 * "" if there are none. Returns the text.
 */
const char *vb_limit_describe(vb_err err, char text[VB_LIMIT_TEXT_MAX]);

#endif
