/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings in shared memory: what a writer writes a reader reads, whole, once and in order, however
 * the two are interleaved. A reader survives whatever a writer puts there, and a writer whatever a
 * reader reports.
 */
#include "harness.h"

#include "base/prng.h"
#include "link/ring.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define RECORDS 40000u

static struct vb_ring_memory *make_memory(void)
{
	void *memory = mmap(NULL, sizeof(struct vb_ring_memory), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

static uint32_t length_of(struct vb_prng *prng)
{
	uint32_t kind = (uint32_t)vb_prng_below(prng, 8);

	if (kind == 0)
		return 0;
	if (kind == 1)
		return VB_RING_RECORD_MAX;
	return (uint32_t)vb_prng_below(prng, kind == 2 ? VB_RING_RECORD_MAX : 200);
}

/* Every byte of a record follows from its number, so that a byte of another record is noticed. */
static bool is_right(const uint8_t *bytes, uint32_t length, uint32_t number)
{
	for (uint32_t i = 0; i < length; i++)
		if (bytes[i] != (uint8_t)(number * 31 + i))
			return false;
	return true;
}

static bool write_one(struct vb_ring_writer *writer, uint32_t length, uint32_t number)
{
	uint8_t *to = vb_ring_reserve(writer, length);

	if (!to)
		return false;
	for (uint32_t i = 0; i < length; i++)
		to[i] = (uint8_t)(number * 31 + i);
	vb_ring_commit(writer, length);
	return true;
}

static void *write_all(void *argument)
{
	struct vb_ring_writer writer;
	struct vb_prng prng;

	vb_prng_init(&prng, 1);
	vb_ring_writer_init(&writer, argument);
	for (uint32_t i = 0; i < RECORDS; i++) {
		uint32_t length = length_of(&prng);

		while (!write_one(&writer, length, i))
			sched_yield();
	}
	return NULL;
}

TEST(what_one_thread_writes_another_reads_whole_once_and_in_order)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_reader reader;
	struct vb_prng prng;
	pthread_t writer;
	uint32_t count = 0;

	vb_prng_init(&prng, 1);
	vb_ring_reader_init(&reader, memory);
	EXPECT_EQ(pthread_create(&writer, NULL, write_all, memory), 0);
	while (count < RECORDS) {
		uint32_t length;
		const uint8_t *bytes = vb_ring_take(&reader, &length);

		EXPECT(!reader.is_broken);
		if (!bytes) {
			vb_ring_release(&reader);
			sched_yield();
			continue;
		}
		EXPECT_EQ(length, length_of(&prng));
		EXPECT(is_right(bytes, length, count));
		count++;
		if (count % 7 == 0)
			vb_ring_release(&reader);
	}
	EXPECT_EQ(pthread_join(writer, NULL), 0);
	EXPECT(!vb_ring_has_news(&reader));
}

TEST(a_full_ring_takes_nothing_more_until_something_is_released)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_ring_reader reader;
	uint32_t length;
	uint32_t room;
	uint32_t count = 0;

	vb_ring_writer_init(&writer, memory);
	vb_ring_reader_init(&reader, memory);
	room = vb_ring_room(&writer, VB_RING_RECORD_MAX);
	EXPECT(room > 0);
	while (write_one(&writer, VB_RING_RECORD_MAX, count))
		count++;
	EXPECT(count >= room);
	EXPECT_EQ(vb_ring_room(&writer, VB_RING_RECORD_MAX), 0);
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *bytes = vb_ring_take(&reader, &length);

		EXPECT(bytes && is_right(bytes, length, i));
	}
	EXPECT(!vb_ring_take(&reader, &length));
	EXPECT(!vb_ring_reserve(&writer, VB_RING_RECORD_MAX));
	vb_ring_release(&reader);
	EXPECT(vb_ring_room(&writer, VB_RING_RECORD_MAX) >= room - 1);
	EXPECT(write_one(&writer, VB_RING_RECORD_MAX, 0));
}

/* The cache lines behind a short record are touched before they hold a record: only free ones. */
TEST(a_ring_that_short_records_fill_keeps_all_of_them)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_ring_reader reader;
	uint32_t taken = 0, written = 0;

	vb_ring_writer_init(&writer, memory);
	vb_ring_reader_init(&reader, memory);
	for (uint32_t round = 0; round < 50; round++) {
		while (write_one(&writer, 1 + round * 5, written))
			written++;
		for (uint32_t i = 0; i < 999 && taken < written; i++) {
			uint32_t length;
			const uint8_t *bytes = vb_ring_take(&reader, &length);

			EXPECT(bytes && is_right(bytes, length, taken));
			taken++;
		}
		vb_ring_release(&reader);
	}
	EXPECT(taken > 40000);
}

TEST(as_many_records_as_there_is_room_for_always_fit)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_ring_reader reader;
	struct vb_prng prng;

	vb_prng_init(&prng, 2);
	vb_ring_writer_init(&writer, memory);
	vb_ring_reader_init(&reader, memory);
	for (uint32_t round = 0; round < 2000; round++) {
		uint32_t length;

		for (uint32_t room = vb_ring_room(&writer, VB_RING_RECORD_MAX); room; room--)
			EXPECT(write_one(&writer, length_of(&prng), round));
		for (uint32_t left = (uint32_t)vb_prng_below(&prng, 60); left; left--)
			(void)vb_ring_take(&reader, &length);
		EXPECT(!reader.is_broken);
		vb_ring_release(&reader);
	}
}

TEST(a_record_that_is_not_committed_is_not_seen)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_ring_reader reader;
	uint32_t length;

	vb_ring_writer_init(&writer, memory);
	vb_ring_reader_init(&reader, memory);
	memset(vb_ring_reserve(&writer, 100), 0xff, 100);
	EXPECT(!vb_ring_has_news(&reader));
	EXPECT(!vb_ring_take(&reader, &length));
	EXPECT(write_one(&writer, 50, 1));
	EXPECT(is_right(vb_ring_take(&reader, &length), 50, 1));
	EXPECT_EQ(length, 50);
}

/* Records with all bits set look like a commit word to a reader that looks in the wrong place. */
TEST(bytes_of_an_earlier_round_are_never_taken_for_a_record)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_ring_reader reader;
	struct vb_prng prng;
	uint32_t length;

	vb_prng_init(&prng, 3);
	vb_ring_writer_init(&writer, memory);
	vb_ring_reader_init(&reader, memory);
	for (uint32_t i = 0; i < 20000; i++) {
		uint32_t wanted = length_of(&prng);
		uint8_t *to = vb_ring_reserve(&writer, wanted);
		uint32_t next = (uint32_t)((writer.produced + VB_RING_SIZE) / VB_RING_ALIGN);

		EXPECT(to);
		for (uint32_t k = 0; k + 4 <= wanted; k += 4) { /* of records in a later round */
			uint32_t place = (uint32_t)sizeof(struct vb_ring_record) + k;
			uint32_t word = (next + place / VB_RING_ALIGN) | 0x80000000u;

			memcpy(to + k, &word, sizeof(word));
		}
		vb_ring_commit(&writer, wanted);
		EXPECT(vb_ring_take(&reader, &length));
		EXPECT_EQ(length, wanted);
		EXPECT(!vb_ring_has_news(&reader));
		vb_ring_release(&reader);
	}
}

TEST(a_reader_survives_any_bytes_and_stays_within_the_ring)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_prng prng;
	volatile uint8_t sink = 0;

	vb_prng_init(&prng, 4);
	for (uint32_t round = 0; round < 3000; round++) {
		struct vb_ring_reader reader;

		vb_ring_reader_init(&reader, memory);
		reader.next = vb_prng_below(&prng, 1u << 20) * VB_RING_ALIGN;
		for (uint32_t i = 0; i < 50; i++) {
			uint64_t at = reader.next & (VB_RING_SIZE - 1);
			struct vb_ring_record *record = (void *)(memory->data + at);
			uint32_t length;
			const uint8_t *bytes;

			atomic_store(&record->commit,
				     (uint32_t)(reader.next / VB_RING_ALIGN) | 0x80000000u);
			record->length =
				vb_prng_below(&prng, 2)
					? (uint32_t)vb_prng_below(&prng, 5000)
					: (uint32_t)vb_prng_next(&prng) |
						  (vb_prng_below(&prng, 2) ? UINT32_MAX : 0);
			bytes = vb_ring_take(&reader, &length);
			if (!bytes)
				continue;
			EXPECT(bytes >= memory->data &&
			       bytes + length <= memory->data + VB_RING_SIZE);
			for (uint32_t k = 0; k < length; k++)
				sink = (uint8_t)(sink + bytes[k]);
		}
	}
}

TEST(a_writer_survives_what_a_reader_says)
{
	struct vb_ring_memory *memory = make_memory();
	struct vb_ring_writer writer;
	struct vb_prng prng;

	vb_prng_init(&prng, 5);
	vb_ring_writer_init(&writer, memory);
	for (uint32_t i = 0; i < 20000; i++) {
		atomic_store(&memory->consumed,
			     vb_prng_below(&prng, 2)
				     ? vb_prng_next(&prng)
				     : writer.produced - vb_prng_below(&prng, VB_RING_SIZE));
		EXPECT(vb_ring_room(&writer, VB_RING_RECORD_MAX) * VB_RING_RECORD_MAX <=
		       VB_RING_SIZE);
		(void)write_one(&writer, length_of(&prng), i);
	}
}
