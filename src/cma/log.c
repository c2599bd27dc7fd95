/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages to the user. They go into the log of libibverbs, which knows its destination and the log
 * level.
 */
#include "cma/cma_priv.h"

#include <stdarg.h>
#include <stdio.h>

void vb_cma_log(enum vb_log_level level, int error, const char *format, ...)
{
	char line[VB_LOG_MESSAGE_MAX];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	vb_abi_log_line(level, VB_LOG_ABOUT(.phase = "connect", .error = error), line);
}
