/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which messages are written, and where to; log_line.c composes the lines. The places that have
 * logged are kept in a small table without locks. When it is full, new places share the last row,
 * and are rate-limited together.
 */
#include "host/sys/log.h"

#include "host/sys/clock.h"
#include "host/sys/log_line_priv.h"
#include "host/sys/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PLACE_COUNT 128

static struct place {
	_Atomic(const char *) format; /* NULL: free */
	_Atomic uint64_t second_began_ns;
	_Atomic uint32_t count; /* in this second */
} places[PLACE_COUNT];

static _Atomic int level_now = VB_LOG_ERROR;
static _Atomic int format_now = VB_LOG_TEXT;
static _Atomic bool is_mute;
static char path_now[PATH_MAX];

void vb_log_set_level(enum vb_log_level level)
{
	atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
}

void vb_log_set_format(enum vb_log_format format)
{
	atomic_store_explicit(&format_now, (int)format, memory_order_relaxed);
}

bool vb_log_is_on(enum vb_log_level level)
{
	return (int)level <= atomic_load_explicit(&level_now, memory_order_relaxed) &&
	       !atomic_load_explicit(&is_mute, memory_order_relaxed);
}

void vb_log_mute(void)
{
	atomic_store_explicit(&is_mute, true, memory_order_relaxed);
}

void vb_log_set_file(const char *path)
{
	snprintf(path_now, sizeof(path_now), "%s", path);
}

static struct place *find_or_claim_place(const char *format)
{
	for (uint32_t i = 0; i < PLACE_COUNT - 1; i++) {
		const char *taken = NULL;

		if (atomic_compare_exchange_strong(&places[i].format, &taken, format) ||
		    taken == format)
			return &places[i];
	}
	return &places[PLACE_COUNT - 1];
}

/*
 * Whether this place may log now. If so, *left_out_out is how many of its messages were dropped in
 * its last second.
 */
static bool admit_line(struct place *place, uint32_t *left_out_out)
{
	uint64_t now = vb_clock_now();
	uint64_t began = atomic_load(&place->second_began_ns);
	uint32_t count;

	*left_out_out = 0;
	if (now - began >= VB_SECOND_NS &&
	    atomic_compare_exchange_strong(&place->second_began_ns, &began, now)) {
		count = atomic_exchange(&place->count, 1);
		if (count > VB_LOG_BURST)
			*left_out_out = count - VB_LOG_BURST;
		return true;
	}
	return atomic_fetch_add(&place->count, 1) < VB_LOG_BURST;
}

/*
 * A line may be written in parts only on a full pipe; then the rest is dropped without waiting. A
 * reader that has gone away, or a file that may not grow, must not end the program.
 */
static bool write_line(long fd, const char *line, size_t length)
{
	struct vb_quiet quiet;
	long written;

	vb_quiet_begin(&quiet);
	do
		written = syscall(SYS_write, fd, line, length);
	while (written < 0 && errno == EINTR);
	vb_quiet_end(&quiet, written < 0 ? errno : 0);
	return written >= 0;
}

static bool write_file(const char *line, size_t length)
{
	long fd = syscall(SYS_openat, AT_FDCWD, path_now,
			  O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644);
	bool is_written;

	if (fd < 0)
		return false;
	is_written = write_line(fd, line, length);
	syscall(SYS_close, fd);
	return is_written;
}

/* Called with a message that may be written; errno is the caller's again. */
__attribute__((format(printf, 4, 0))) static void write_message(enum vb_log_level level,
								const struct vb_log_about *about,
								uint32_t left_out,
								const char *format, va_list args)
{
	struct vb_log_line line;
	int errno_before = errno;

	vb_log_line_compose(
		&line, (enum vb_log_format)atomic_load_explicit(&format_now, memory_order_relaxed),
		level, about, left_out, format, args);
	if (!path_now[0] || !write_file(line.bytes, line.length))
		(void)write_line(STDERR_FILENO, line.bytes, line.length);
	errno = errno_before;
}

void vb_log(enum vb_log_level level, const char *format, ...)
{
	uint32_t left_out;
	va_list args;

	if (!vb_log_is_on(level) || !admit_line(find_or_claim_place(format), &left_out))
		return;
	va_start(args, format);
	write_message(level, VB_LOG_ABOUT(0), left_out, format, args);
	va_end(args);
}

void vb_log_about(enum vb_log_level level, const struct vb_log_about *about, const char *format,
		  ...)
{
	uint32_t left_out;
	va_list args;

	if (!vb_log_is_on(level) || !admit_line(find_or_claim_place(format), &left_out))
		return;
	va_start(args, format);
	write_message(level, about, left_out, format, args);
	va_end(args);
}
