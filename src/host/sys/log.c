/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The making and writing of log lines. The places that have logged are kept in a small table
 * without locks. When it is full, new places share the last row, and are rate-limited together.
 */
#include "host/sys/log.h"

#include "host/sys/clock.h"
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
static _Atomic bool is_mute;
static char path_now[PATH_MAX];

static const char *const level_names[] = {
	[VB_LOG_ERROR] = "error",
	[VB_LOG_WARN] = "warn",
	[VB_LOG_INFO] = "info",
	[VB_LOG_DEBUG] = "debug",
};

void vb_log_set_level(enum vb_log_level level)
{
	atomic_store_explicit(&level_now, (int)level, memory_order_relaxed);
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
 * Bytes from outside (names, paths, peers) must not move the cursor or begin a line of their own.
 */
static void replace_control_characters(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			*text = '?';
}

/* Appends to the line and returns its new length, at most VB_LOG_LINE_MAX - 2. */
__attribute__((format(printf, 3, 0))) static size_t append(char line[VB_LOG_LINE_MAX],
							   size_t length, const char *format,
							   va_list args)
{
	size_t room = VB_LOG_LINE_MAX - 1 - length;
	int wanted = vsnprintf(line + length, room, format, args);

	if (wanted < 0)
		wanted = 0;
	return length + ((size_t)wanted < room ? (size_t)wanted : room - 1);
}

__attribute__((format(printf, 3, 4))) static size_t append_words(char line[VB_LOG_LINE_MAX],
								 size_t length, const char *format,
								 ...)
{
	va_list args;

	va_start(args, format);
	length = append(line, length, format, args);
	va_end(args);
	return length;
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

void vb_log(enum vb_log_level level, const char *format, ...)
{
	char line[VB_LOG_LINE_MAX];
	int errno_before = errno;
	uint32_t left_out;
	size_t length;
	va_list args;

	if (!vb_log_is_on(level) || !admit_line(find_or_claim_place(format), &left_out))
		return;
	length = append_words(line, 0, "verbatim: %s: ", level_names[level]);
	va_start(args, format);
	length = append(line, length, format, args);
	va_end(args);
	if (left_out)
		length = append_words(line, length, " (and %u like this before)", left_out);
	replace_control_characters(line);
	line[length] = '\n';
	if (!path_now[0] || !write_file(line, length + 1))
		(void)write_line(STDERR_FILENO, line, length + 1);
	errno = errno_before;
}
