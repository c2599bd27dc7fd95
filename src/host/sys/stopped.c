/* SPDX-License-Identifier: BSD-2-Clause */
/* The check for stopped processes, from /proc. */
#include "host/sys/stopped.h"

#include "host/sys/file.h"

#include <stdio.h>
#include <string.h>

bool vb_process_is_stopped(pid_t pid)
{
	char path[32], text[512];
	const char *end;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (!vb_file_read(path, text, sizeof(text), NULL))
		return false;
	end = strrchr(text, ')'); /* end of the program's name, which may hold any character */
	return end && end[1] && (end[2] == 'T' || end[2] == 't');
}
