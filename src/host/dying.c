/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says about the signals of another process's threads. */
#include "host/dying.h"

#include "host/file.h"
#include "link/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vb_dying look_at_thread(pid_t pid, const char *tid)
{
	static const char label[] = "\nSigPnd:";
	char path[64], text[4096];
	const char *pending;

	snprintf(path, sizeof(path), "/proc/%d/task/%.16s/status", (int)pid, tid);
	if (!vb_file_read(path, text, sizeof(text), NULL))
		return errno == ENOENT || errno == ESRCH ? VB_DYING_NONE : VB_DYING_UNKNOWN;
	pending = strstr(text, label);
	if (!pending)
		return VB_DYING_UNKNOWN;
	return strtoull(pending + sizeof(label) - 1, NULL, 16) & 1u << (SIGKILL - 1)
		       ? VB_DYING_SOME
		       : VB_DYING_NONE;
}

/* Those of a part of the folder. */
static enum vb_dying look_at_threads(pid_t pid, const char *entries, long length)
{
	enum vb_dying dying = VB_DYING_NONE;

	for (long at = 0; at < length && dying == VB_DYING_NONE;) {
		const struct dirent64 *entry = (const void *)(entries + at);

		if (entry->d_name[0] != '.')
			dying = look_at_thread(pid, entry->d_name);
		at += entry->d_reclen;
	}
	return dying;
}

enum vb_dying vb_dying_threads(pid_t pid)
{
	_Alignas(struct dirent64) char entries[2048];
	enum vb_dying dying = VB_DYING_NONE;
	char path[64];
	long fd, length = 1;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return VB_DYING_UNKNOWN;
	while (dying == VB_DYING_NONE && length > 0) {
		length = syscall(SYS_getdents64, fd, entries, sizeof(entries));
		dying = length < 0 ? VB_DYING_UNKNOWN : look_at_threads(pid, entries, length);
	}
	syscall(SYS_close, fd);
	return dying;
}
