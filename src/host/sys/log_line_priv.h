/* SPDX-License-Identifier: BSD-2-Clause */
/* A line of the log, as text or as an object of JSON. */
#ifndef VB_HOST_SYS_LOG_LINE_PRIV_H
#define VB_HOST_SYS_LOG_LINE_PRIV_H

#include "host/sys/log.h"

#include <stdarg.h>
#include <stddef.h>

#define VB_LOG_LINE_MAX 2048

struct vb_log_line {
	char bytes[VB_LOG_LINE_MAX]; /* ends with a newline, without a null */
	size_t length;
};

/* `left_out` messages of the same place were not written before this one. */
__attribute__((format(printf, 6, 0))) void vb_log_line_compose(
	struct vb_log_line *line, enum vb_log_format format_of_line, enum vb_log_level level,
	const struct vb_log_about *about, uint32_t left_out, const char *format, va_list args);

#endif
