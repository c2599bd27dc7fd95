/* SPDX-License-Identifier: BSD-2-Clause */
/* Which host this is, as far as connections go: the kernel that runs, the network namespace and the user. */
#include "host/qp1_priv.h"

#include "host/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>

/* FNV-1a, and then all bits are mixed into all others. */
static uint64_t hash(const char *text)
{
	uint64_t value = 0xcbf29ce484222325ull;

	for (; *text; text++)
		value = (value ^ (uint8_t)*text) * 0x100000001b3ull;
	value ^= value >> 32;
	value *= 0xd6e8feb86659fd93ull;
	return value ^ value >> 32;
}

static void describe_kernel(char *text, size_t size)
{
	struct utsname names;

	if (!vb_file_read("/proc/sys/kernel/random/boot_id", text, size, NULL))
		snprintf(text, size, "%.63s", uname(&names) ? "" : names.nodename);
}

/* The bit that says "assigned by a manufacturer" is 0. */
uint64_t vb_qp1_host_guid(uid_t user_id)
{
	char kernel[64], text[192];
	struct stat space = { 0 };
	uint64_t guid;

	describe_kernel(kernel, sizeof(kernel));
	(void)!stat("/proc/self/ns/net", &space);
	snprintf(text, sizeof(text), "%s/%" PRIu64 "/%" PRIu64 "/%u", kernel,
		 (uint64_t)space.st_dev, (uint64_t)space.st_ino, user_id);
	guid = hash(text) & ~(2ull << 56);
	return guid ? guid : 1;
}
