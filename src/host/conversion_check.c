/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether memory may be converted. What is not known to be harmless is not: each mapping must be private, anonymous, writable, and
 * without any property that a new mapping would lack. Nobody else may write to it: no other thread of the program, and no requests that
 * the kernel executes by itself.
 */
#include "host/conversion_priv.h"

#include "host/conversion.h"
#include "host/file.h"
#include "host/mapping.h"
#include "host/numbers.h"
#include "link/sys.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define STATUS_SIZE 8192
#define RESIDENT_MAX (4ull << 30) /* bytes: to look at the flags of more takes too long */
#define OF_ADDRESS 2l
#define HELPERS_MAX 64u

uint64_t vb_conversion_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- threads --- */

static _Atomic int helpers
	[HELPERS_MAX]; /* thread IDs of ours; 0: none. One that finds no place counts as the program's */

static void exchange_helper(int from, int to)
{
	for (uint32_t i = 0; i < HELPERS_MAX; i++) {
		int expected = from;

		if (atomic_compare_exchange_strong(&helpers[i], &expected, to))
			return;
	}
}

void vb_conversion_on_helper(bool begins)
{
	int own = (int)syscall(SYS_gettid);

	exchange_helper(begins ? 0 : own, begins ? own : 0);
}

void vb_conversion_forget_helpers(void)
{
	for (uint32_t i = 0; i < HELPERS_MAX; i++)
		atomic_store(&helpers[i], 0);
}

static bool is_helper(int thread)
{
	for (uint32_t i = 0; i < HELPERS_MAX; i++)
		if (atomic_load(&helpers[i]) == thread)
			return true;
	return false;
}

/* A helper that ends after it was listed is taken for the program's: better than the other way round. */
bool vb_conversion_is_alone(void)
{
	int own = (int)syscall(SYS_gettid), thread;
	bool is_alone = !is_helper(own);
	struct vb_numbers threads;

	if (!vb_numbers_open(&threads, "/proc/self/task"))
		return false;
	while (is_alone && vb_numbers_next(&threads, &thread))
		is_alone = thread == own || is_helper(thread);
	vb_numbers_close(&threads);
	return is_alone && !threads.has_failed;
}

/* --- the process --- */

/* The number behind a word of a file; UINT64_MAX if there is none. */
static uint64_t read_number(const char *path, const char *word)
{
	char text[STATUS_SIZE];
	const char *found;

	if (!vb_file_read(path, text, sizeof(text), NULL))
		return UINT64_MAX;
	found = strstr(text, word);
	return found ? strtoull(found + strlen(word), NULL, 10) : UINT64_MAX;
}

static bool is_process_ordinary(uint64_t length)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= length &&
	       read_number("/proc/sys/vm/overcommit_memory", "") != 2 &&
	       read_number("/proc/self/status", "VmLck:") == 0 &&
	       read_number("/proc/self/status", "VmRSS:") < RESIDENT_MAX / 1024;
}

/* Requests to the kernel that may be under way: these mappings are their queues. */
static bool has_kernel_writers(void)
{
	struct vb_mapping_list list;
	struct vb_mapping mapping;
	bool is_found = false;

	if (!vb_mapping_list_open(&list, false))
		return true;
	while (!is_found && vb_mapping_list_next(&list, &mapping))
		is_found = strstr(mapping.path, "[io_uring]") || strstr(mapping.path, "[aio]");
	vb_mapping_list_close(&list);
	return is_found;
}

/* --- mappings --- */

/* Where memory lies: as for all of the process, or as the program has asked for here. */
static bool has_usual_policy(uint64_t address)
{
	int usual = 0, here = 0;

	if (syscall(SYS_get_mempolicy, &usual, NULL, 0l, NULL, 0l) ||
	    syscall(SYS_get_mempolicy, &here, NULL, 0l, address, OF_ADDRESS))
		return true; /* who may not ask may not choose either */
	return usual == here;
}

/* Readable, writable, both allowed, executable if wanted; accounted for or not; dirty. */
static bool are_flags_harmless(const char *flags)
{
	static const char harmless[] = " rd wr mr mw me ac nr sd ";
	char flag[5] = " ?? ";

	for (; *flags; flags++) {
		if (*flags == ' ')
			continue;
		if (!flags[1])
			return false;
		memcpy(flag + 1, flags, 2);
		if (!strstr(harmless, flag))
			return false;
		flags++;
	}
	return true;
}

static bool is_ordinary(const struct vb_mapping *mapping)
{
	static const char heap[] = "[heap]", named[] = "[anon:";

	return !strcmp(mapping->rights, "rw-p") && !mapping->inode &&
	       !mapping->has_protection_key &&
	       (!*mapping->path || !strcmp(mapping->path, heap) ||
		!strncmp(mapping->path, named, sizeof(named) - 1)) &&
	       are_flags_harmless(mapping->flags) && has_usual_policy(mapping->begin);
}

static bool are_mappings_ordinary(uint64_t begin, uint64_t end)
{
	struct vb_mapping_list list;
	struct vb_mapping mapping;

	if (!vb_mapping_list_open(&list, true))
		return false;
	while (begin < end && vb_mapping_list_next(&list, &mapping) && mapping.begin <= begin) {
		if (mapping.end <= begin)
			continue;
		if (!is_ordinary(&mapping))
			break;
		begin = mapping.end;
	}
	vb_mapping_list_close(&list);
	return begin >= end;
}

bool vb_conversion_is_permitted(uint64_t begin, uint64_t end)
{
	return vb_conversion_is_alone() && is_process_ordinary(end - begin) &&
	       !has_kernel_writers() && are_mappings_ordinary(begin, end);
}
