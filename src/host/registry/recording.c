/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of a recording. A position counts all bytes ever reserved; its place is the position
 * modulo the room. Writers take places by one compare-and-swap and finish in any order; a record
 * counts from the moment that its mark is there. A record lies in one piece: if it would cross the
 * end of the room, a filler takes the rest.
 */
#include "host/registry/recording.h"

#include "host/sys/sealed.h"
#include "link/fd.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

_Static_assert(sizeof(struct vb_record) % 8 == 0, "what follows the head is aligned");
_Static_assert(VB_RECORDING_ROOM % VB_RECORD_ALIGNMENT == 0, "a filler has a head or no length");
_Static_assert(VB_RECORD_LENGTH_MAX <= VB_RECORDING_ROOM / 2, "an empty room takes any record");

#define MARK_AND_LENGTH 16u /* the part of a head that a filler has */
_Static_assert(MARK_AND_LENGTH <= VB_RECORD_ALIGNMENT, "the shortest filler has room for it");

/* --- writing --- */

bool vb_recording_open(struct vb_recording *recording, const char *device, uint32_t number)
{
	struct vb_recording_memory *memory = NULL;
	uint64_t cookie;
	int fd = vb_sealed_open("verbatim-recording", sizeof(*memory));

	if (fd < 0)
		return false;
	if (getrandom(&cookie, sizeof(cookie), 0) == sizeof(cookie))
		memory = vb_sealed_map(fd, sizeof(*memory), PROT_READ | PROT_WRITE);
	if (!memory) {
		vb_fd_close(fd);
		return false;
	}
	memory->layout = VB_RECORDING_LAYOUT;
	memory->cookie = cookie;
	memory->number = number;
	snprintf(memory->device, sizeof(memory->device), "%s", device);
	snprintf(memory->program, sizeof(memory->program), "%s", program_invocation_short_name);
	*recording = (struct vb_recording){ .memory = memory, .fd = fd, .cookie = cookie };
	return true;
}

void vb_recording_close(struct vb_recording *recording)
{
	munmap(recording->memory, sizeof(*recording->memory));
	vb_fd_close(recording->fd);
	*recording = (struct vb_recording){ .fd = -1 };
}

static struct vb_record *record_at(struct vb_recording_memory *memory, uint64_t position)
{
	return (struct vb_record *)(void *)&memory->room[position & (VB_RECORDING_ROOM - 1)];
}

static void publish(const struct vb_recording *recording, struct vb_record *record,
		    uint64_t position)
{
	atomic_store_explicit(&record->mark, vb_recording_mark(recording->cookie, position),
			      memory_order_release);
}

void vb_recording_skip(struct vb_recording *recording, uint32_t weight)
{
	struct vb_recording_memory *memory = recording->memory;

	if (!weight) {
		atomic_fetch_add_explicit(&memory->skipped_events, 1, memory_order_relaxed);
		return;
	}
	atomic_fetch_add_explicit(&memory->skipped, weight, memory_order_relaxed);
	atomic_fetch_add_explicit(&recording->skipped, weight, memory_order_relaxed);
}

/* What is missing up to the end of the room, if a record of that length does not fit there. */
static uint32_t filler_before(uint64_t position, uint32_t length)
{
	uint32_t left = VB_RECORDING_ROOM - (uint32_t)(position & (VB_RECORDING_ROOM - 1));

	return length <= left ? 0 : left;
}

/* The observer's word is read once. One that cannot be true leaves no room. */
static bool has_room(const struct vb_recording *recording, uint64_t position, uint32_t length)
{
	uint64_t used = position -
			atomic_load_explicit(&recording->memory->read_to, memory_order_acquire);

	return used <= VB_RECORDING_ROOM && VB_RECORDING_ROOM - used >= length;
}

struct vb_record *vb_recording_reserve(struct vb_recording *recording, uint32_t length,
				       uint32_t weight)
{
	uint32_t whole = ((uint32_t)sizeof(struct vb_record) + length + VB_RECORD_ALIGNMENT - 1) &
			 ~(VB_RECORD_ALIGNMENT - 1);
	uint64_t position = atomic_load_explicit(&recording->reserved, memory_order_relaxed);
	struct vb_record *record;
	uint32_t filler;

	do {
		filler = filler_before(position, whole);
		if (length > VB_RECORD_LENGTH_MAX ||
		    !has_room(recording, position, filler + whole)) {
			vb_recording_skip(recording, weight);
			return NULL;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&recording->reserved, &position, position + filler + whole, memory_order_relaxed,
		memory_order_relaxed));
	if (filler) {
		record = record_at(recording->memory, position);
		record->length = filler;
		record->kind = VB_RECORD_FILLER;
		publish(recording, record, position);
	}
	record = record_at(recording->memory, position + filler);
	record->length = whole;
	record->skipped = atomic_exchange_explicit(&recording->skipped, 0, memory_order_relaxed);
	/* Until the record is whole, the place of the mark says which mark it will be. */
	atomic_store_explicit(&record->mark,
			      ~vb_recording_mark(recording->cookie, position + filler),
			      memory_order_relaxed);
	return record;
}

void vb_recording_commit(struct vb_record *record)
{
	uint64_t mark = atomic_load_explicit(&record->mark, memory_order_relaxed);

	atomic_store_explicit(&record->mark, ~mark, memory_order_release);
}

/* --- reading --- */

bool vb_recording_reader_open(struct vb_recording_reader *reader, int fd)
{
	struct vb_recording_memory *memory =
		vb_sealed_map(fd, sizeof(*memory), PROT_READ | PROT_WRITE);

	if (!memory)
		return false;
	if (memory->layout != VB_RECORDING_LAYOUT) {
		munmap(memory, sizeof(*memory));
		return false;
	}
	*reader = (struct vb_recording_reader){ .memory = memory, .cookie = memory->cookie };
	return true;
}

void vb_recording_reader_close(struct vb_recording_reader *reader)
{
	munmap(reader->memory, sizeof(*reader->memory));
	reader->memory = NULL;
}

static bool is_sound(uint64_t position, const struct vb_record *record)
{
	uint32_t left = VB_RECORDING_ROOM - (uint32_t)(position & (VB_RECORDING_ROOM - 1));
	uint32_t length_min = record->kind == VB_RECORD_FILLER ? VB_RECORD_ALIGNMENT
							       : (uint32_t)sizeof(*record);

	return record->length >= length_min && record->length <= left &&
	       record->length % VB_RECORD_ALIGNMENT == 0;
}

const struct vb_record *vb_recording_reader_take(struct vb_recording_reader *reader)
{
	for (;;) {
		const struct vb_record *record = record_at(reader->memory, reader->position);

		if (atomic_load_explicit(&record->mark, memory_order_acquire) !=
			    vb_recording_mark(reader->cookie, reader->position) ||
		    !is_sound(reader->position, record))
			return NULL;
		if (record->kind != VB_RECORD_FILLER)
			return record;
		vb_recording_reader_release(reader, record);
	}
}

void vb_recording_reader_release(struct vb_recording_reader *reader, const struct vb_record *record)
{
	reader->position += record->length;
	atomic_store_explicit(&reader->memory->read_to, reader->position, memory_order_release);
}
