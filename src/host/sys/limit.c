/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names the limits that may be behind an error. The kernel does not report which limit it was, so
 * all limits are named that are in force and may lead to the error. errno is preserved.
 */
#include "host/sys/limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

struct limit {
	int resource;
	vb_err err; /* the error that it leads to */
	const char *what;
	uint32_t unit; /* of `ulimit` */
	const char *unit_name;
	char option; /* of `ulimit` */
};

/* clang-format off */
static const struct limit limits[] = {
	{ RLIMIT_NOFILE,  VB_EMFILE, "open files",    1,    "",    'n' },
	{ RLIMIT_FSIZE,   VB_EFBIG,  "size of files", 1024, " KB", 'f' },
	{ RLIMIT_NPROC,   VB_EAGAIN, "processes and threads of the user", 1, "", 'u' },
	{ RLIMIT_AS,      VB_EAGAIN, "address space", 1024, " KB", 'v' },
	{ RLIMIT_AS,      VB_ENOMEM, "address space", 1024, " KB", 'v' },
	{ RLIMIT_DATA,    VB_ENOMEM, "data",          1024, " KB", 'd' },
	{ RLIMIT_MEMLOCK, VB_ENOMEM, "locked memory", 1024, " KB", 'l' },
};
/* clang-format on */

vb_err vb_limit_err(int error)
{
	switch (-error) {
	case EMFILE:
	case ENFILE:
		return VB_EMFILE;
	case EFBIG:
		return VB_EFBIG;
	default:
		return VB_ENOMEM;
	}
}

/*
 * Whether the limit of locked memory holds for all new memory: the program has asked for that
 * (mlockall()), and may not lock as much as it likes. Only then does the kernel refuse this mapping
 * with EAGAIN.
 */
static bool is_memory_locked(rlim_t limit)
{
	size_t length = (size_t)limit + (size_t)sysconf(_SC_PAGESIZE);
	void *memory =
		mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return errno == EAGAIN;
	munmap(memory, length);
	return false;
}

static bool holds(const struct limit *limit, const struct rlimit *value)
{
	return value->rlim_cur != RLIM_INFINITY &&
	       (limit->resource != RLIMIT_MEMLOCK || is_memory_locked(value->rlim_cur));
}

__attribute__((format(printf, 3, 4))) static int append(char text[VB_LIMIT_TEXT_MAX], int length,
							const char *format, ...)
{
	va_list arguments;
	int added;

	if (length >= VB_LIMIT_TEXT_MAX)
		return length;
	va_start(arguments, format);
	added = vsnprintf(text + length, (size_t)(VB_LIMIT_TEXT_MAX - length), format, arguments);
	va_end(arguments);
	return length + (added > 0 ? added : 0);
}

const char *vb_limit_describe(vb_err err, char text[VB_LIMIT_TEXT_MAX])
{
	int errno_before = errno;
	int length = 0;

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const struct limit *limit = &limits[i];
		struct rlimit value;

		if (limit->err != err || getrlimit(limit->resource, &value) ||
		    !holds(limit, &value))
			continue;
		length = append(text, length, "%s%s %" PRIu64 "%s, ulimit -%c",
				length ? "; " : " (limits: ", limit->what,
				(uint64_t)value.rlim_cur / limit->unit, limit->unit_name,
				limit->option);
	}
	if (length)
		append(text, length, ")");
	errno = errno_before;
	return text;
}
