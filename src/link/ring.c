/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring's layout. Places count up for ever; a byte lies at its place modulo the size. A record's
 * commit word depends on its place, so that the remains of an earlier round are not mistaken for
 * it. Since old bytes may look like anything, the writer clears the word of the next record before
 * it fills in one. A record does not wrap: one that would wrap begins at the start again, after a
 * record that only fills the end.
 */
#include "link/ring.h"

#include <stddef.h>

#define MASK (VB_RING_SIZE - 1)
#define AHEAD_MAX 256u /* bytes */
#define FILLER UINT32_MAX /* the length of a record that only fills the end */

static struct vb_ring_record *record_at(const struct vb_ring_memory *memory, uint64_t place)
{
	return (struct vb_ring_record *)(uintptr_t)(memory->data + (place & MASK));
}

/* Never 0, and different for all places that lie in the ring at the same time. */
static uint32_t commit_of(uint64_t place)
{
	return (uint32_t)(place / VB_RING_ALIGN) | 0x80000000u;
}

static uint32_t size_of(uint32_t length)
{
	return (uint32_t)(sizeof(struct vb_ring_record) + length + VB_RING_ALIGN - 1) &
	       ~(VB_RING_ALIGN - 1);
}

static uint32_t left_to_end(uint64_t place)
{
	return VB_RING_SIZE - (uint32_t)(place & MASK);
}

void vb_ring_writer_init(struct vb_ring_writer *writer, struct vb_ring_memory *memory)
{
	*writer = (struct vb_ring_writer){ .memory = memory };
}

void vb_ring_reader_init(struct vb_ring_reader *reader, struct vb_ring_memory *memory)
{
	*reader = (struct vb_ring_reader){ .memory = memory };
}

/*
 * After the written bytes there is always room for the word of the next record. A reader that
 * reports nonsense leaves no room.
 */
static uint32_t free_bytes(const struct vb_ring_writer *writer)
{
	uint64_t used = writer->produced - writer->consumed;

	return used > VB_RING_SIZE - VB_RING_ALIGN
		       ? 0
		       : (uint32_t)(VB_RING_SIZE - VB_RING_ALIGN - used);
}

static void look_at_reader(struct vb_ring_writer *writer)
{
	writer->consumed = atomic_load_explicit(&writer->memory->consumed, memory_order_acquire);
}

uint32_t vb_ring_room(struct vb_ring_writer *writer, uint32_t length)
{
	uint32_t longest = size_of(length);
	uint32_t bytes;

	bytes = free_bytes(writer);
	/* reading this is expensive: the reader has just written it */
	if (bytes < VB_RING_SIZE / 2) {
		look_at_reader(writer);
		bytes = free_bytes(writer);
	}
	if (!longest || bytes < longest)
		return 0;
	/* The end may have to be filled, once. */
	return (bytes - longest) / longest;
}

static void clear_word(const struct vb_ring_writer *writer, uint64_t place)
{
	atomic_store_explicit(&record_at(writer->memory, place)->commit, 0, memory_order_relaxed);
}

static void publish(struct vb_ring_writer *writer, uint32_t length, uint32_t size)
{
	struct vb_ring_record *record = record_at(writer->memory, writer->produced);
	uint32_t commit = commit_of(writer->produced);

	record->length = length;
	writer->produced += size;
	/*
	 * Pairs with the reader's load: a reader that sees the word sees the bytes, and the word
	 * after them cleared.
	 */
	atomic_store_explicit(&record->commit, commit, memory_order_release);
}

/*
 * Fetches the cache lines of the next record, if it is as long, except the one that the reader
 * polls. The reader's CPU has had them since the last round, and fetching them takes longer than
 * filling them. At this point no thread waits for it.
 */
static void prefetch_cache_lines(const struct vb_ring_writer *writer, uint32_t size)
{
	if (size > AHEAD_MAX || free_bytes(writer) < size)
		return;
	for (uint32_t i = VB_RING_ALIGN; i <= size; i += VB_RING_ALIGN)
		clear_word(writer, writer->produced + i);
}

static bool has_room(struct vb_ring_writer *writer, uint32_t size)
{
	if (free_bytes(writer) >= size)
		return true;
	look_at_reader(writer);
	return free_bytes(writer) >= size;
}

uint8_t *vb_ring_reserve(struct vb_ring_writer *writer, uint32_t length)
{
	uint32_t size = size_of(length);
	uint32_t left = left_to_end(writer->produced);

	if (length > VB_RING_RECORD_MAX || !has_room(writer, size > left ? left + size : size))
		return NULL;
	if (size > left) {
		clear_word(writer, writer->produced + left);
		publish(writer, FILLER, left);
	}
	clear_word(writer, writer->produced + size);
	return (uint8_t *)(record_at(writer->memory, writer->produced) + 1);
}

void vb_ring_commit(struct vb_ring_writer *writer, uint32_t length)
{
	uint32_t size = size_of(length);

	publish(writer, length, size);
	prefetch_cache_lines(writer, size);
}

static bool is_committed(const struct vb_ring_reader *reader)
{
	const struct vb_ring_record *record = record_at(reader->memory, reader->next);

	return atomic_load_explicit(&record->commit, memory_order_acquire) ==
	       commit_of(reader->next);
}

static uint32_t length_at(const struct vb_ring_reader *reader)
{
	return *(const volatile uint32_t *)&record_at(reader->memory, reader->next)->length;
}

const uint8_t *vb_ring_take(struct vb_ring_reader *reader, uint32_t *length_out)
{
	const uint8_t *bytes;
	uint32_t length;

	if (reader->is_broken || !is_committed(reader))
		return NULL;
	length = length_at(reader);
	if (length == FILLER) {
		reader->next += left_to_end(reader->next);
		if (!is_committed(reader))
			return NULL;
		length = length_at(reader);
	}
	if (length > VB_RING_RECORD_MAX || size_of(length) > left_to_end(reader->next)) {
		reader->is_broken = true;
		return NULL;
	}
	bytes = (const uint8_t *)(record_at(reader->memory, reader->next) + 1);
	reader->next += size_of(length);
	*length_out = length;
	return bytes;
}

void vb_ring_release(struct vb_ring_reader *reader)
{
	atomic_store_explicit(&reader->memory->consumed, reader->next, memory_order_release);
}

bool vb_ring_has_news(const struct vb_ring_reader *reader)
{
	return !reader->is_broken && is_committed(reader);
}
