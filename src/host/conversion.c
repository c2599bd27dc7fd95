/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All conversions of the process. One is made while the program stands still in its only thread. It is undone in the same way; but where there are other
 * threads by then, its mapping becomes a private one of the same file, in one step: what was stored before is in the file, what is stored
 * later in pages of its own, and nothing is lost. That is undone as soon as the program is alone again. Where the parts of a conversion
 * lie is asked of the kernel each time: the program may have moved or unmapped some.
 */
#include "host/conversion.h"

#include "base/heap.h"
#include "host/conversion_priv.h"
#include "host/export.h"
#include "host/log.h"
#include "host/mapping.h"
#include "link/fd.h"
#include "link/sys.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CHUNK (4u << 20) /* bytes that are there twice while they are converted */
#define PAGES_AT_ONCE 512u
#define REFUSALS_MAX \
	256u /* in a row: a program for which it never works shall not pay for each region */

struct vb_conversion {
	struct vb_link link;
	uint64_t address;
	uint64_t length;
	int fd;
	dev_t device;
	ino_t inode;
	uint32_t reference_count; /* 0: only what could not yet be undone is left */
	bool is_shared; /* rather than private parts of its file */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_link all = { &all, &all };
static struct vb_link registrations = { &registrations, &registrations };
static uint32_t refusal_count;
static _Atomic uint64_t lowest = UINT64_MAX, highest; /* what is in `all` lies in between */

static struct vb_conversion *conversion_of(struct vb_link *link)
{
	return VB_CONTAINER(link, struct vb_conversion, link);
}

static bool do_overlap(uint64_t a, uint64_t a_length, uint64_t b, uint64_t b_length)
{
	return a < b ? b - a < a_length : a - b < b_length;
}

bool vb_conversion_overlaps(const struct vb_conversion *conversion, uint64_t address,
			    uint64_t length)
{
	return do_overlap(conversion->address, conversion->length, address, length);
}

/* No handler of the program runs, which could store something or start a thread. */
static uint64_t block_signals(void)
{
	uint64_t everything = UINT64_MAX, before = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &everything, &before, sizeof(before));
	return before;
}

static void restore_signals(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* By bare system calls: the preloaded library would ask us what to do. */
static bool map(uint64_t address, uint64_t length, long protection, long flags, int fd,
		uint64_t offset)
{
	return syscall(SYS_mmap, address, length, protection, flags | MAP_FIXED, (long)fd,
		       offset) == (long)address;
}

/* --- registrations --- */

void vb_registration_add(struct vb_registration *registration, uint64_t address, uint64_t length)
{
	registration->address = address;
	registration->length = length;
	pthread_mutex_lock(&lock);
	vb_link_append(&registrations, &registration->link);
	pthread_mutex_unlock(&lock);
}

void vb_registration_remove(struct vb_registration *registration)
{
	pthread_mutex_lock(&lock);
	vb_link_remove(&registration->link);
	pthread_mutex_unlock(&lock);
}

static bool is_registered(uint64_t address, uint64_t length)
{
	for (struct vb_link *link = registrations.next; link != &registrations; link = link->next) {
		const struct vb_registration *registration =
			VB_CONTAINER(link, struct vb_registration, link);

		if (do_overlap(registration->address, registration->length, address, length))
			return true;
	}
	return false;
}

/* --- the list --- */

static void note_bounds(void)
{
	uint64_t low = UINT64_MAX, high = 0;

	for (struct vb_link *link = all.next; link != &all; link = link->next) {
		const struct vb_conversion *conversion = conversion_of(link);

		low = conversion->address < low ? conversion->address : low;
		high = conversion->address + conversion->length > high
			       ? conversion->address + conversion->length
			       : high;
	}
	lowest = low;
	highest = high;
}

bool vb_conversion_is_in(uint64_t address, uint64_t length)
{
	uint64_t low = lowest, high = highest;

	return low < high && do_overlap(low, high - low, address, length);
}

static void forget(struct vb_conversion *conversion)
{
	vb_link_remove(&conversion->link);
	note_bounds();
	vb_fd_close(conversion->fd);
	vb_heap_free(conversion);
}

/* --- there --- */

/* Which pages are more than zeros that nobody has touched: bits 62 and 63, in memory or swapped out. */
static bool read_pagemap(int pagemap, uint64_t address, uint32_t count,
			 uint64_t words[PAGES_AT_ONCE])
{
	uint64_t at = address / vb_conversion_page_size() * sizeof(words[0]);
	long wanted = (long)(count * sizeof(words[0]));

	return pagemap >= 0 && syscall(SYS_pread64, pagemap, words, wanted, at) == wanted;
}

static bool write_out(int fd, uint64_t address, uint64_t length, uint64_t offset)
{
	while (length) {
		long written = syscall(SYS_pwrite64, fd, address, length, offset);

		if (written <= 0)
			return false;
		address += (uint64_t)written;
		offset += (uint64_t)written;
		length -= (uint64_t)written;
	}
	return true;
}

/* Up to PAGES_AT_ONCE pages into the file. */
static bool copy_pages(int fd, int pagemap, uint64_t address, uint64_t length, uint64_t offset)
{
	uint64_t words[PAGES_AT_ONCE];
	uint64_t size = vb_conversion_page_size();
	uint32_t count = (uint32_t)(length / size);

	if (!read_pagemap(pagemap, address, count, words))
		return write_out(fd, address, length, offset);
	for (uint32_t i = 0, end; i < count; i = end) {
		bool is_there = words[i] >> 62;

		for (end = i + 1; end < count && (words[end] >> 62 != 0) == is_there;)
			end++;
		if (is_there &&
		    !write_out(fd, address + i * size, (end - i) * size, offset + i * size))
			return false;
	}
	return true;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool copy_chunk(int fd, int pagemap, uint64_t address, uint64_t length, uint64_t offset)
{
	uint64_t portion = PAGES_AT_ONCE * vb_conversion_page_size();

	for (uint64_t done = 0; done < length; done += portion)
		if (!copy_pages(fd, pagemap, address + done, least(portion, length - done),
				offset + done))
			return false;
	return true;
}

/* Returns how many bytes from the beginning on are converted. A child that does not run our handler has none of them. */
static uint64_t move_in(int fd, uint64_t address, uint64_t length)
{
	int pagemap = vb_sys_result(
		syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
	uint64_t done = 0;

	while (done < length) {
		uint64_t chunk = least(length - done, CHUNK);

		if (!copy_chunk(fd, pagemap, address + done, chunk, done) ||
		    !map(address + done, chunk, PROT_READ | PROT_WRITE, MAP_SHARED, fd, done))
			break;
		done += chunk;
	}
	if (pagemap >= 0)
		vb_sys_close(pagemap);
	if (done)
		syscall(SYS_madvise, address, done, MADV_DONTFORK);
	return done;
}

static struct vb_conversion *convert(uint64_t address, uint64_t length)
{
	struct vb_conversion *conversion = vb_heap_alloc(1, sizeof(*conversion));
	struct stat status;

	if (!conversion)
		return NULL;
	conversion->fd = vb_export_open_memory("verbatim-memory", length);
	if (conversion->fd >= 0 && !fstat(conversion->fd, &status))
		conversion->length = move_in(conversion->fd, address, length);
	if (!conversion->length) {
		vb_fd_close(conversion->fd);
		vb_heap_free(conversion);
		return NULL;
	}
	conversion->address = address;
	conversion->device = status.st_dev;
	conversion->inode = status.st_ino;
	conversion->reference_count = 1;
	conversion->is_shared = true;
	vb_link_append(&all, &conversion->link);
	note_bounds();
	return conversion;
}

/* --- and back --- */

/* The first mapping of its file from an address on. */
static bool find_part(const struct vb_conversion *conversion, uint64_t from,
		      struct vb_mapping *part)
{
	struct vb_mapping_list list;
	bool is_found = false;

	if (!vb_mapping_list_open(&list, false))
		return false;
	while (!is_found && vb_mapping_list_next(&list, part))
		is_found = part->begin >= from && part->inode == conversion->inode &&
			   part->device == conversion->device;
	vb_mapping_list_close(&list);
	return is_found;
}

static long protection_of(const struct vb_mapping *part)
{
	return (part->rights[0] == 'r' ? PROT_READ : 0) |
	       (part->rights[1] == 'w' ? PROT_WRITE : 0) | (part->rights[2] == 'x' ? PROT_EXEC : 0);
}

/* In one step, whatever other threads do. */
static bool make_private(const struct vb_conversion *conversion, const struct vb_mapping *part)
{
	return part->rights[3] == 'p' ||
	       (vb_fd_is_ours(conversion->fd) &&
		map(part->begin, part->end - part->begin, protection_of(part),
		    MAP_PRIVATE | MAP_NORESERVE, conversion->fd, part->offset));
}

static bool empty(const struct vb_mapping *part)
{
	return map(part->begin, part->end - part->begin, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* What is not in the file is zero there, and in new memory. */
static bool fill_from_file(int fd, const struct vb_mapping *part)
{
	uint64_t end = part->offset + (part->end - part->begin);
	uint64_t at = part->offset;

	while (at < end) {
		long data = syscall(SYS_lseek, fd, at, SEEK_DATA);
		long hole = data < 0 ? -1 : syscall(SYS_lseek, fd, data, SEEK_HOLE);

		if (data < 0 || hole < 0 || (uint64_t)data >= end)
			return true;
		for (at = (uint64_t)data; at < least((uint64_t)hole, end);) {
			long count = syscall(SYS_pread64, fd, part->begin + (at - part->offset),
					     least((uint64_t)hole, end) - at, at);

			if (count <= 0)
				return false;
			at += (uint64_t)count;
		}
	}
	return true;
}

/* By way of other memory. */
static bool replace(const struct vb_mapping *part)
{
	uint64_t length = part->end - part->begin;
	void *copy = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *original = (void *)(uintptr_t)part->begin;
	bool is_done;

	if (copy == MAP_FAILED)
		return false;
	memcpy(copy, original, length);
	is_done = empty(part);
	if (is_done)
		memcpy(original, copy, length);
	syscall(SYS_munmap, copy, length);
	return is_done;
}

/* The program's only thread is here. */
static bool make_anonymous(const struct vb_conversion *conversion, const struct vb_mapping *part)
{
	long protection = protection_of(part);
	bool is_done;

	if (part->rights[3] == 's' && vb_fd_is_ours(conversion->fd))
		is_done = empty(part) && fill_from_file(conversion->fd, part);
	else
		is_done = protection & PROT_READ && replace(part);
	if (is_done && protection != (PROT_READ | PROT_WRITE))
		syscall(SYS_mprotect, part->begin, part->end - part->begin, protection);
	return is_done;
}

/* True if all of it is as it was before. `is_quiet`: no adapter writes to it meanwhile. */
static bool undo(struct vb_conversion *conversion, bool is_quiet)
{
	uint64_t mask = block_signals();
	bool is_alone = is_quiet && vb_conversion_is_alone();
	bool is_undone = true;
	struct vb_mapping part;

	for (uint64_t from = 0; find_part(conversion, from, &part); from = part.end)
		if (!is_alone || !make_anonymous(conversion, &part)) {
			is_undone = false;
			if (!make_private(conversion, &part))
				vb_log(VB_LOG_ERROR,
				       "the memory at 0x%" PRIx64
				       " stays shared: it cannot be mapped again",
				       part.begin);
		}
	restore_signals(mask);
	conversion->is_shared = false;
	return is_undone;
}

/* What could not be undone before. */
static void tidy_up(void)
{
	struct vb_link *link = all.next;

	while (link != &all) {
		struct vb_conversion *conversion = conversion_of(link);

		link = link->next;
		if (!conversion->reference_count &&
		    undo(conversion, !is_registered(conversion->address, conversion->length)))
			forget(conversion);
	}
}

/* --- from outside --- */

static struct vb_conversion *find(uint64_t address, uint64_t length)
{
	for (struct vb_link *link = all.next; link != &all; link = link->next) {
		struct vb_conversion *conversion = conversion_of(link);

		if (conversion->is_shared && vb_conversion_overlaps(conversion, address, length))
			return conversion;
	}
	return NULL;
}

struct vb_conversion *vb_conversion_find(uint64_t address, uint64_t length)
{
	struct vb_conversion *conversion;

	pthread_mutex_lock(&lock);
	conversion = find(address, length);
	if (conversion)
		conversion->reference_count++;
	pthread_mutex_unlock(&lock);
	return conversion;
}

struct vb_conversion *vb_conversion_make(uint64_t address, uint64_t length)
{
	uint64_t size = vb_conversion_page_size();
	uint64_t begin = (address + size - 1) / size * size;
	uint64_t end = (address + length) / size * size;
	struct vb_conversion *conversion = NULL;
	uint64_t mask;

	if (begin < address || end <= begin)
		return NULL;
	pthread_mutex_lock(&lock);
	tidy_up();
	mask = block_signals();
	if (refusal_count < REFUSALS_MAX && !is_registered(begin, end - begin) &&
	    vb_conversion_is_permitted(begin, end))
		conversion = convert(begin, end - begin);
	if (conversion)
		refusal_count = 0;
	else if (refusal_count < REFUSALS_MAX)
		refusal_count++;
	restore_signals(mask);
	pthread_mutex_unlock(&lock);
	return conversion;
}

bool vb_conversion_share(const struct vb_conversion *conversion, struct vb_shared *shared_out)
{
	int fd = vb_fd_own(vb_sys_result(syscall(SYS_fcntl, conversion->fd, F_DUPFD_CLOEXEC, 0)));

	if (fd < 0)
		return false;
	*shared_out = (struct vb_shared){
		.fd = fd,
		.address = conversion->address,
		.length = conversion->length,
	};
	return true;
}

void vb_conversion_drop(struct vb_conversion *conversion)
{
	pthread_mutex_lock(&lock);
	if (!--conversion->reference_count)
		tidy_up();
	pthread_mutex_unlock(&lock);
}

/* Parts of files that could not be made anonymous: as if their pages were given back. */
static void empty_parts(const struct vb_conversion *conversion, uint64_t address, uint64_t length)
{
	struct vb_mapping part;

	for (uint64_t from = 0; find_part(conversion, from, &part); from = part.end) {
		uint64_t end = part.end;

		if (!do_overlap(part.begin, part.end - part.begin, address, length))
			continue;
		part.begin = part.begin > address ? part.begin : address;
		part.end = least(part.end, address + length);
		(void)empty(&part);
		part.end = end;
	}
}

static bool withdraw(struct vb_conversion *conversion, enum vb_conversion_reason reason,
		     uint64_t address, uint64_t length)
{
	if (undo(conversion, true)) {
		if (!conversion->reference_count)
			forget(conversion);
		return true;
	}
	if (reason == VB_CONVERSION_EMPTIES)
		empty_parts(conversion, address, length);
	return reason != VB_CONVERSION_GROWS;
}

bool vb_conversion_withdraw(enum vb_conversion_reason reason, uint64_t address, uint64_t length)
{
	bool may_go_on = true;

	pthread_mutex_lock(&lock);
	for (struct vb_link *link = all.next; link != &all;) {
		struct vb_conversion *conversion = conversion_of(link);

		link = link->next;
		if (vb_conversion_overlaps(conversion, address, length))
			may_go_on &= withdraw(conversion, reason, address, length);
	}
	pthread_mutex_unlock(&lock);
	return may_go_on;
}

bool vb_conversion_hook_in(vb_conversion_hook *hook)
{
	vb_conversion_hook **place = dlsym(RTLD_DEFAULT, "vb_shim_memory");

	if (place)
		__atomic_store_n(place, hook, __ATOMIC_RELEASE);
	return place;
}

/* Its conversions were withdrawn before the fork; their files were closed with all others. */
void vb_conversion_inherit(void)
{
	vb_conversion_forget_helpers();
	for (struct vb_link *link = all.next; link != &all; link = link->next)
		conversion_of(link)->fd = -1;
	pthread_mutex_init(&lock, NULL);
}
