/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The moving of memory into its file and out of it again. It goes in chunks, so that only one chunk
 * exists twice at a time. No code in here writes to memory that may be in transit: all memory of
 * ours lies elsewhere, and so does the stack. Descriptors and mappings come as values.
 */
#include "host/local/conversion_priv.h"

#include "host/memory/blocks.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK (4u << 20) /* bytes */
#define COPY_CHUNK (1u << 20) /* where bytes are copied through other memory */
#define PAGE_BATCH 512u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Uses bare system calls: the preloaded library would ask us what to do. */
static bool map(uint64_t address, uint64_t length, long protection, long flags, int fd,
		uint64_t offset)
{
	return syscall(SYS_mmap, address, length, protection, flags | MAP_FIXED, (long)fd,
		       offset) == (long)address;
}

/* --- there --- */

struct target {
	int fd;
	int pagemap; /* negative: the kernel does not say which pages were touched */
	bool is_held; /* other threads are held off */
};

/* Finds the pages that are more than untouched zeros: bits 62 and 63, in memory or swapped out. */
static bool read_pagemap(int pagemap, uint64_t address, uint32_t count, uint64_t words[PAGE_BATCH])
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

static bool is_zero(const uint8_t *bytes, uint64_t length)
{
	return !bytes[0] && !memcmp(bytes, bytes + 1, length - 1);
}

/* While threads are held off, untouched pages are there as well. They stay holes of the file. */
static void forget_zeros(uint64_t address, uint32_t count, uint64_t words[PAGE_BATCH])
{
	uint64_t size = vb_conversion_page_size();

	for (uint32_t i = 0; i < count; i++)
		if (words[i] && is_zero((const uint8_t *)(uintptr_t)(address + i * size), size))
			words[i] = 0;
}

/* Copies up to PAGE_BATCH pages into the file. */
static bool copy_pages(const struct target *to, uint64_t address, uint64_t length, uint64_t offset)
{
	uint64_t words[PAGE_BATCH];
	uint64_t size = vb_conversion_page_size();
	uint32_t count = (uint32_t)(length / size);

	if (!read_pagemap(to->pagemap, address, count, words))
		return write_out(to->fd, address, length, offset);
	if (to->is_held)
		forget_zeros(address, count, words);
	for (uint32_t i = 0, end; i < count; i = end) {
		bool is_there = words[i] >> 62;

		for (end = i + 1; end < count && (words[end] >> 62 != 0) == is_there;)
			end++;
		if (is_there &&
		    !write_out(to->fd, address + i * size, (end - i) * size, offset + i * size))
			return false;
	}
	return true;
}

static bool copy_chunk(const struct target *to, uint64_t address, uint64_t length, uint64_t offset)
{
	uint64_t portion = PAGE_BATCH * vb_conversion_page_size();

	for (uint64_t done = 0; done < length; done += portion)
		if (!copy_pages(to, address + done, least(portion, length - done), offset + done))
			return false;
	return true;
}

static bool move_chunk_in(const struct target *to, uint64_t address, uint64_t length,
			  uint64_t offset)
{
	return copy_chunk(to, address, length, offset) &&
	       map(address, length, PROT_READ | PROT_WRITE, MAP_SHARED, to->fd, offset);
}

/* What is asked for comes after the beginning: system calls that begin later wait. */
static bool move_chunk_in_held(const struct target *to, uint64_t address, uint64_t length,
			       uint64_t offset)
{
	struct vb_hold hold;
	bool is_done;

	if (!vb_hold_begin(&hold, address, address + length))
		return false;
	is_done = vb_hold_is_possible() &&
		  vb_conversion_is_still_permitted(address, address + length) &&
		  copy_chunk(to, address, length, offset) && vb_hold_close(&hold) &&
		  map(address, length, PROT_READ | PROT_WRITE, MAP_SHARED, to->fd, offset);
	vb_hold_end(&hold);
	return is_done;
}

uint64_t vb_conversion_move_in(int fd, uint64_t address, uint64_t length, bool is_alone)
{
	struct target to = {
		.fd = fd,
		.pagemap = vb_sys_result(
			syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC)),
		.is_held = !is_alone,
	};
	uint64_t done = 0;

	while (done < length) {
		uint64_t chunk = least(length - done, CHUNK);

		if (!(is_alone ? move_chunk_in : move_chunk_in_held)(&to, address + done, chunk,
								     done))
			break;
		done += chunk;
	}
	if (to.pagemap >= 0)
		vb_sys_close(to.pagemap);
	if (done)
		syscall(SYS_madvise, address, done, MADV_DONTFORK);
	return done;
}

/* --- and back --- */

static long protection_of(const struct vb_mapping *part)
{
	return (part->rights[0] == 'r' ? PROT_READ : 0) |
	       (part->rights[1] == 'w' ? PROT_WRITE : 0) | (part->rights[2] == 'x' ? PROT_EXEC : 0);
}

bool vb_conversion_make_private(int fd, const struct vb_mapping *part)
{
	return part->rights[3] == 'p' ||
	       (fd >= 0 && map(part->begin, part->end - part->begin, protection_of(part),
			       MAP_PRIVATE | MAP_NORESERVE, fd, part->offset));
}

bool vb_conversion_empty(uint64_t begin, uint64_t end)
{
	return map(begin, end - begin, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Finds the next data of a file between two offsets; false: there is none. */
static bool find_data(int fd, uint64_t from, uint64_t to, uint64_t *begin_out, uint64_t *end_out)
{
	long data = syscall(SYS_lseek, fd, from, SEEK_DATA);
	long hole = data < 0 || (uint64_t)data >= to ? -1 : syscall(SYS_lseek, fd, data, SEEK_HOLE);

	if (hole <= data)
		return false;
	*begin_out = (uint64_t)data;
	*end_out = least((uint64_t)hole, to);
	return true;
}

static void give_back(int fd, uint64_t begin, uint64_t end)
{
	syscall(SYS_fallocate, fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, end - begin);
}

/* What is a hole in the file is zero there, and also in new memory. */
static bool fill_from_file(int fd, const struct vb_mapping *part)
{
	uint64_t end = part->offset + (part->end - part->begin);
	uint64_t at = part->offset, stop;

	while (at < end && find_data(fd, at, end, &at, &stop))
		while (at < stop) {
			long count = syscall(SYS_pread64, fd, part->begin + (at - part->offset),
					     stop - at, at);

			if (count <= 0)
				return false;
			at += (uint64_t)count;
		}
	return true;
}

/* If the memory cannot be filled, the file still has all of it. */
static bool replace_from_file(int fd, const struct vb_mapping *part)
{
	if (!vb_conversion_empty(part->begin, part->end))
		return false;
	if (!fill_from_file(fd, part)) {
		(void)map(part->begin, part->end - part->begin, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_NORESERVE, fd, part->offset);
		return false;
	}
	give_back(fd, part->offset, part->offset + (part->end - part->begin));
	return true;
}

/* Copies through other memory. Pages of zeros need not be allocated. */
static bool replace_by_copy(const struct vb_mapping *part, uint8_t *copy)
{
	uint64_t length = part->end - part->begin, size = vb_conversion_page_size();
	uint8_t *original = (uint8_t *)(uintptr_t)part->begin;

	memcpy(copy, original, length);
	if (!vb_conversion_empty(part->begin, part->end))
		return false;
	for (uint64_t at = 0; at < length; at += size)
		if (!is_zero(copy + at, size))
			memcpy(original + at, copy + at, size);
	return true;
}

/* Moves from the file, or through `copy` if there is one. */
static bool move_chunk_out(int fd, const struct vb_mapping *part, uint8_t *copy)
{
	long protection = protection_of(part);
	bool is_done = copy ? replace_by_copy(part, copy) : replace_from_file(fd, part);

	if (is_done && protection != (PROT_READ | PROT_WRITE))
		syscall(SYS_mprotect, part->begin, part->end - part->begin, protection);
	return is_done;
}

static bool move_chunks_out(int fd, struct vb_mapping *part, uint8_t *copy)
{
	while (part->begin < part->end) {
		struct vb_mapping chunk = *part;

		chunk.end = least(part->end, part->begin + (copy ? COPY_CHUNK : CHUNK));
		if (!move_chunk_out(fd, &chunk, copy))
			return false;
		part->offset += chunk.end - part->begin;
		part->begin = chunk.end;
	}
	return true;
}

bool vb_conversion_move_out(int fd, struct vb_mapping *part)
{
	uint8_t *copy;
	bool is_done;

	if (part->rights[3] == 's' && fd >= 0)
		return move_chunks_out(fd, part, NULL);
	copy = part->rights[0] == 'r' ? vb_blocks_alloc(COPY_CHUNK) : NULL;
	is_done = copy && move_chunks_out(fd, part, copy);
	vb_blocks_free(copy);
	return is_done;
}

/*
 * Makes a copy of a chunk in `place`, and puts that where the chunk is, in one step. Threads that
 * are held off see the copy when they go on.
 */
static bool replace_chunk(const struct vb_mapping *chunk, uint64_t place)
{
	uint64_t length = chunk->end - chunk->begin, size = vb_conversion_page_size();
	const uint8_t *original = (const uint8_t *)(uintptr_t)chunk->begin;
	uint8_t *copy = (uint8_t *)(uintptr_t)place;
	struct vb_hold hold;
	bool is_done;

	if (!vb_hold_begin(&hold, chunk->begin, chunk->end))
		return false;
	is_done = vb_hold_is_possible();
	for (uint64_t at = 0; is_done && at < length; at += size)
		if (!is_zero(original + at, size))
			memcpy(copy + at, original + at, size);
	is_done = is_done && !syscall(SYS_mprotect, place, length, protection_of(chunk)) &&
		  vb_hold_close(&hold) &&
		  syscall(SYS_mremap, place, length, length, MREMAP_MAYMOVE | MREMAP_FIXED,
			  chunk->begin) == (long)chunk->begin;
	vb_hold_end(&hold);
	return is_done;
}

bool vb_conversion_move_out_held(int fd, struct vb_mapping *part)
{
	/* The copies lie side by side, so that the kernel can join their mappings again. */
	uint64_t length = part->end - part->begin;
	long place = syscall(SYS_mmap, 0l, length, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1l, 0l);
	uint64_t next = (uint64_t)place;
	bool is_done = place != -1;

	while (is_done && part->begin < part->end) {
		struct vb_mapping chunk = *part;
		uint64_t offset_end;

		chunk.end = least(part->end, part->begin + CHUNK);
		offset_end = chunk.offset + (chunk.end - chunk.begin);
		is_done = replace_chunk(&chunk, next);
		/* Protection puts pages of zeros into the file. */
		if (fd >= 0)
			give_back(fd, chunk.offset, offset_end);
		if (is_done) {
			next += chunk.end - chunk.begin;
			part->begin = chunk.end;
			part->offset = offset_end;
		}
	}
	if (place != -1 && next < (uint64_t)place + length)
		syscall(SYS_munmap, next, (uint64_t)place + length - next);
	return is_done;
}

/*
 * The kernel copies each page of the file that is mapped here, as if something had been stored to
 * it.
 */
bool vb_conversion_leave_file(int fd, const struct vb_mapping *part)
{
	uint64_t end = part->offset + (part->end - part->begin);
	uint64_t at = part->offset, stop;

	for (; at < end && find_data(fd, at, end, &at, &stop); at = stop) {
		stop = least(stop, at + CHUNK);
		if (syscall(SYS_madvise, part->begin + (at - part->offset), stop - at,
			    MADV_POPULATE_WRITE))
			return false;
		give_back(fd, at, stop);
	}
	return true;
}
