/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads from /proc the pending signals of another process's threads. */
#include "host/sys/dying.h"

#include "host/sys/file.h"
#include "host/sys/numbers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vb_dying look_at_thread(pid_t pid, int tid)
{
	static const char label[] = "\nSigPnd:";
	char path[64], text[4096];
	const char *pending;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, tid);
	if (!vb_file_read(path, text, sizeof(text), NULL))
		return errno == ENOENT || errno == ESRCH ? VB_DYING_NONE : VB_DYING_UNKNOWN;
	pending = strstr(text, label);
	if (!pending)
		return VB_DYING_UNKNOWN;
	return strtoull(pending + sizeof(label) - 1, NULL, 16) & 1u << (SIGKILL - 1)
		       ? VB_DYING_SOME
		       : VB_DYING_NONE;
}

enum vb_dying vb_dying_threads(pid_t pid)
{
	enum vb_dying dying = VB_DYING_NONE;
	struct vb_numbers threads;
	char path[64];
	int tid;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (!vb_numbers_open(&threads, path))
		return VB_DYING_UNKNOWN;
	while (dying == VB_DYING_NONE && vb_numbers_next(&threads, &tid))
		dying = look_at_thread(pid, tid);
	vb_numbers_close(&threads);
	return threads.has_failed ? VB_DYING_UNKNOWN : dying;
}
