/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check whether memory may be converted. What is not known to be harmless is refused: each
 * mapping must be private, anonymous, writable, and without any property that a new mapping would
 * lack. Nothing may write to it that cannot be held off: none of our threads, and no requests that
 * the kernel executes by itself. The whole check may take 0.2 ms, so the parts whose cost grows
 * with the program's size are bounded by estimates.
 */
#include "host/local/conversion_priv.h"

#include "host/local/conversion.h"
#include "host/memory/blocks.h"
#include "host/sys/file.h"
#include "host/sys/numbers.h"
#include "link/sys.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define STATUS_SIZE 8192
#define MAPPINGS_MAX 250u /* listing one takes 0.6 us */
#define RESIDENT_PAGES_MAX 3000u /* reading one takes 32 ns, when flags are needed */
#define GET_MEMORY_MERGE 68l
#define OF_ADDRESS 2l
#define HELPERS_MAX 64u
/*
 * In bytes. Functions called from here do not need more below. The frames of our callers do not
 * change before we return, except for some variables nearby.
 */
#define STACK_BELOW (64u << 10)
#define STACK_ABOVE (64u << 10)
#define THREAD_LENGTH 2560u /* the C library's data of a thread, which the kernel writes to */

uint64_t vb_conversion_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/* --- threads --- */

/* Thread IDs of our threads; 0: none. A thread that finds no place counts as the program's. */
static _Atomic int helpers[HELPERS_MAX];

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

/* A helper that ends after it was listed counts as the program's: better than the reverse. */
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

/* The number after a word of a text; UINT64_MAX if there is none. */
static uint64_t number_in(const char *text, const char *word)
{
	const char *found = strstr(text, word);

	return found ? strtoull(found + strlen(word), NULL, 10) : UINT64_MAX;
}

/*
 * No memory is locked, and none is pinned for a device or the kernel to write to. Kernels before
 * 3.2 do not report pinned memory.
 */
static bool is_memory_free(const char *status)
{
	uint64_t pinned = number_in(status, "VmPin:");

	return number_in(status, "VmLck:") == 0 && (pinned == 0 || pinned == UINT64_MAX);
}

static bool is_process_ordinary(uint64_t length)
{
	char text[STATUS_SIZE];
	struct rlimit limit;

	/* A kernel without GET_MEMORY_MERGE merges nothing. */
	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= length &&
	       vb_file_read("/proc/sys/vm/overcommit_memory", text, sizeof(text), NULL) &&
	       number_in(text, "") != 2 &&
	       vb_file_read("/proc/self/status", text, sizeof(text), NULL) &&
	       is_memory_free(text) && syscall(SYS_prctl, GET_MEMORY_MERGE, 0l, 0l, 0l, 0l) <= 0;
}

/* --- what is ours, or each thread's --- */

static bool do_overlap(uint64_t a, uint64_t a_end, uint64_t b, uint64_t b_end)
{
	return a < b_end && b < a_end;
}

static uint64_t below(uint64_t address, uint64_t distance)
{
	return address > distance ? address - distance : 0;
}

/* This also covers a stack that the program has made itself, such as a coroutine's. */
bool vb_conversion_is_in_use(uint64_t begin, uint64_t end)
{
	uint64_t frame = (uintptr_t)__builtin_frame_address(0);
	uint64_t own = (uintptr_t)pthread_self(), error = (uintptr_t)&errno;

	return do_overlap(begin, end, below(frame, STACK_BELOW), frame + STACK_ABOVE) ||
	       do_overlap(begin, end, own, own + THREAD_LENGTH) ||
	       do_overlap(begin, end, error, error + sizeof(errno));
}

struct range {
	uint64_t begin, end;
	bool is_found;
};

/*
 * Variables of libraries: our threads write to those of our library and of the C library. Variables
 * of the program itself are like other memory.
 */
static int look_at_object(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct range *range = argument;
	uint64_t here = (uintptr_t)&helpers;
	bool is_hit = false, has_us = false;

	(void)size;
	for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		uint64_t begin = object->dlpi_addr + segment->p_vaddr;
		uint64_t end = begin + segment->p_memsz;

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_W))
			continue;
		has_us |= begin <= here && here < end;
		is_hit |= do_overlap(range->begin, range->end, begin, end);
	}
	/* Only the program itself has no name. */
	range->is_found |= is_hit && (has_us || (object->dlpi_name && *object->dlpi_name));
	return range->is_found;
}

static bool has_library_variables(uint64_t begin, uint64_t end)
{
	struct range range = { begin, end, false };

	dl_iterate_phdr(look_at_object, &range);
	return range.is_found;
}

/* --- mappings --- */

static bool begins_with(const char *text, const char *beginning)
{
	return !strncmp(text, beginning, strlen(beginning));
}

/*
 * Queues of io_uring, AIO and packet sockets, and what drivers map: their requests write to memory
 * that nothing lists.
 */
bool vb_conversion_is_request_queue(const struct vb_mapping *mapping)
{
	const char *path = mapping->path;

	if (!mapping->inode)
		return false;
	return begins_with(path, "anon_inode:") || begins_with(path, "socket:") ||
	       begins_with(path, "/[aio]") ||
	       (begins_with(path, "/dev/") && !begins_with(path, "/dev/shm/") &&
		!begins_with(path, "/dev/zero") && !begins_with(path, "/dev/hugepages/"));
}

/* Whether memory is placed as in the whole process, and not as the program has asked for here. */
static bool has_usual_policy(uint64_t address)
{
	int usual = 0, here = 0;

	if (syscall(SYS_get_mempolicy, &usual, NULL, 0l, NULL, 0l) ||
	    syscall(SYS_get_mempolicy, &here, NULL, 0l, address, OF_ADDRESS))
		return true; /* a process that may not ask may not choose either */
	return usual == here;
}

/*
 * Harmless flags: readable, writable, both permitted, executable permitted; accounted for or not;
 * dirty.
 */
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
	return !strcmp(mapping->rights, "rw-p") && !mapping->inode &&
	       !mapping->has_protection_key &&
	       (!*mapping->path || !strcmp(mapping->path, "[heap]") ||
		begins_with(mapping->path, "[anon:")) &&
	       (!mapping->flags || are_flags_harmless(mapping->flags)) &&
	       has_usual_policy(mapping->begin);
}

/* The end of a mapping that guards memory above it, as below the stacks of threads; else 0. */
static uint64_t end_of_guard(const struct vb_mapping *mapping)
{
	return !strcmp(mapping->rights, "---p") && !mapping->inode ? mapping->end : 0;
}

/*
 * With flags, looks only until the end of the range; else at all mappings, to find those of
 * requests.
 */
static bool are_mappings_ordinary(uint64_t begin, uint64_t end, bool with_flags, bool is_alone)
{
	uint64_t guard_end = 0; /* of the mapping before */
	uint32_t count = 0;
	struct vb_mapping_list list;
	struct vb_mapping mapping;
	bool is_ordinary_so_far = vb_mapping_list_open(&list, with_flags);

	if (!is_ordinary_so_far)
		return false;
	while (is_ordinary_so_far && !(with_flags && begin >= end) &&
	       vb_mapping_list_next(&list, &mapping)) {
		is_ordinary_so_far = ++count <= MAPPINGS_MAX &&
				     !vb_conversion_is_request_queue(&mapping);
		if (mapping.end > begin && begin < end) {
			is_ordinary_so_far &= mapping.begin <= begin && is_ordinary(&mapping) &&
					      (is_alone || mapping.begin != guard_end);
			begin = mapping.end;
		}
		guard_end = end_of_guard(&mapping);
	}
	vb_mapping_list_close(&list);
	return is_ordinary_so_far && begin >= end;
}

/*
 * The kernel looks at each page before it reports flags. Only programs that have ever asked for
 * special memory have any, and the preloaded library knows whether this one has.
 */
static _Atomic(const bool *) special;

void vb_conversion_find_special(void)
{
	atomic_store(&special, (const bool *)dlsym(RTLD_DEFAULT, "vb_shim_has_special_memory"));
}

static bool are_flags_ordinary(uint64_t begin, uint64_t end, bool is_alone)
{
	const bool *has_special = atomic_load(&special);
	char text[STATUS_SIZE];

	if (has_special && !__atomic_load_n(has_special, __ATOMIC_ACQUIRE))
		return true;
	if (!vb_file_read("/proc/self/statm", text, sizeof(text), NULL))
		return false;
	return strtoull(text + strcspn(text, " "), NULL, 10) <= RESIDENT_PAGES_MAX &&
	       are_mappings_ordinary(begin, end, true, is_alone);
}

bool vb_conversion_is_permitted(uint64_t begin, uint64_t end)
{
	bool is_alone = vb_conversion_is_alone();

	return !vb_blocks_overlap(begin, end - begin) && !vb_conversion_is_in_use(begin, end) &&
	       is_process_ordinary(end - begin) && !has_library_variables(begin, end) &&
	       are_mappings_ordinary(begin, end, false, is_alone) &&
	       are_flags_ordinary(begin, end, is_alone);
}

bool vb_conversion_is_still_permitted(uint64_t begin, uint64_t end)
{
	return is_process_ordinary(end - begin) && are_mappings_ordinary(begin, end, false, false);
}
