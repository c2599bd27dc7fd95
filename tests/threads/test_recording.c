/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Recordings: the memory between a program and its observer, with several threads that write and
 * observers that lie; and the recorder of an adapter, which observers begin and end under traffic.
 */
#include "harness.h"
#include "support_writes.h"

#include "host/port/port_priv.h"
#include "host/port/recorder_priv.h"
#include "nic/nic.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 3, RECORDS = 20000, SESSIONS = 1000, FEW_SESSIONS = 200 };

static const struct vb_recording_wish everything = { .packet_length_max = UINT32_MAX,
						     .has_events = true };

/* --- the memory --- */

static struct vb_recording recording;
static struct vb_recording_reader reader;

static void begin_recording(void)
{
	EXPECT(vb_recording_open(&recording, "vb_eth0", 7));
	EXPECT(vb_recording_reader_open(&reader, recording.fd));
}

static void end_recording(void)
{
	vb_recording_reader_close(&reader);
	vb_recording_close(&recording);
}

/* A record with `length` bytes that follow from its number. */
static bool write_record(uint64_t number, uint32_t length)
{
	struct vb_record *record = vb_recording_reserve(&recording, length, 1);

	if (!record)
		return false;
	record->kind = VB_RECORD_PACKET;
	record->wr_id = number;
	memset(vb_record_body(record), (int)(number & 0xff), length);
	vb_recording_commit(record);
	return true;
}

static void expect_record(const struct vb_record *record, uint64_t number, uint32_t length)
{
	const uint8_t *bytes;

	EXPECT(record);
	bytes = vb_record_view(record, length);
	EXPECT(bytes);
	EXPECT_EQ(record->wr_id, number);
	for (uint32_t i = 0; i < length; i++)
		EXPECT_EQ(bytes[i], number & 0xff);
}

TEST(records_come_out_as_they_went_in_round_after_round)
{
	uint64_t bytes = 0;

	begin_recording();
	EXPECT(!strcmp(reader.memory->device, "vb_eth0") && reader.memory->number == 7);
	for (uint64_t i = 0; bytes < 3ull * VB_RECORDING_ROOM; i++) {
		uint32_t length = (uint32_t)(i * 7919 % 9000);
		const struct vb_record *record;

		EXPECT(write_record(i, length));
		record = vb_recording_reader_take(&reader);
		expect_record(record, i, length);
		EXPECT_EQ(record->skipped, 0);
		vb_recording_reader_release(&reader, record);
		EXPECT(!vb_recording_reader_take(&reader));
		bytes += length;
	}
	end_recording();
}

TEST(what_has_no_room_is_counted_and_the_next_record_says_so)
{
	const struct vb_record *record;
	uint64_t written = 0;

	begin_recording();
	while (write_record(written, 4000))
		written++;
	EXPECT(!write_record(written, 4000));
	EXPECT_EQ(atomic_load(&reader.memory->skipped), 2);
	for (uint64_t i = 0; i < written; i++) {
		record = vb_recording_reader_take(&reader);
		expect_record(record, i, 4000);
		EXPECT_EQ(record->skipped, 0);
		vb_recording_reader_release(&reader, record);
	}
	EXPECT(!vb_recording_reader_take(&reader));
	EXPECT(write_record(written, 4000));
	record = vb_recording_reader_take(&reader);
	expect_record(record, written, 4000);
	EXPECT_EQ(record->skipped, 2);
	EXPECT(!vb_recording_reserve(&recording, VB_RECORD_LENGTH_MAX + 1, 1));
	end_recording();
}

TEST(an_observer_that_lies_about_its_place_gets_nothing_and_harms_nothing)
{
	static const uint64_t lies[] = { 1, 1ull << 63, 1ull << 32, 2ull * VB_RECORDING_ROOM };

	begin_recording();
	EXPECT(write_record(0, 0));
	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		memset(reader.memory->room, 0xff, sizeof(reader.memory->room));
		atomic_store(&reader.memory->read_to, lies[i] + atomic_load(&recording.reserved));
		EXPECT(!write_record(1, 100));
	}
	end_recording();
}

TEST(memory_of_another_layout_is_refused)
{
	begin_recording();
	reader.memory->layout++;
	vb_recording_reader_close(&reader);
	EXPECT(!vb_recording_reader_open(&reader, recording.fd));
	vb_recording_close(&recording);
}

static void *write_many(void *thread)
{
	uint64_t first = (uint64_t)(uintptr_t)thread * RECORDS;

	for (uint64_t i = 0; i < RECORDS; i++)
		(void)write_record(first + i, (uint32_t)(i % 3000));
	return NULL;
}

TEST(records_of_several_threads_are_whole_and_those_without_room_are_counted)
{
	pthread_t threads[THREADS];
	uint64_t next[THREADS] = { 0 };
	uint64_t taken = 0, told = 0;

	EXPECT(vb_recording_open(&recording, "vb_eth0", 7));
	/* By the same mapping: a sanitizer does not know that two are one memory. */
	reader = (struct vb_recording_reader){ recording.memory, recording.cookie, 0 };
	for (uintptr_t i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, write_many, (void *)i), 0);
	while (taken + atomic_load(&reader.memory->skipped) < THREADS * RECORDS) {
		const struct vb_record *record = vb_recording_reader_take(&reader);
		uint64_t thread, index;

		if (!record)
			continue;
		thread = record->wr_id / RECORDS;
		index = record->wr_id % RECORDS;
		EXPECT(thread < THREADS && index >= next[thread]);
		expect_record(record, record->wr_id, (uint32_t)(index % 3000));
		next[thread] = index + 1;
		told += record->skipped;
		taken++;
		vb_recording_reader_release(&reader, record);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	EXPECT(!vb_recording_reader_take(&reader));
	EXPECT_EQ(told + atomic_load(&recording.skipped), atomic_load(&reader.memory->skipped));
	vb_recording_close(&recording);
}

/* --- the recorder of an adapter --- */

static struct writes writes;

struct counts {
	uint64_t sent, received, sent_bytes, parts, part_bytes, with_request, of_qp, data_bytes;
};

/* As an observer that asks. Returns whether it records. */
static bool attach(struct vb_recording_reader *to, const struct vb_recording_wish *wish)
{
	bool is_open;
	int fd;

	vb_adapter_enter(writes.adapter);
	fd = vb_port_begin_recording(writes.adapter->port, wish, vb_clock_now());
	is_open = fd >= 0 && vb_recording_reader_open(to, fd);
	vb_adapter_leave(writes.adapter);
	return is_open;
}

static void detach(struct vb_recording_reader *from)
{
	atomic_store(&from->memory->is_closed, 1);
	vb_recording_reader_close(from);
}

static void count_packet(const struct vb_record *record, struct counts *counts)
{
	const struct vb_record_packet *packet = vb_record_view(record, sizeof(*packet));

	EXPECT(packet);
	EXPECT_EQ(packet->captured, packet->length);
	*(packet->is_sent ? &counts->sent : &counts->received) += 1;
	if (!packet->is_sent)
		return;
	counts->sent_bytes += packet->length;
	counts->with_request += packet->has_request;
	counts->of_qp += record->qpn == vb_qp_number(writes.qp).v;
}

static void count_records(struct vb_recording_reader *from, struct counts *counts)
{
	const struct vb_record *record;

	*counts = (struct counts){ 0 };
	while ((record = vb_recording_reader_take(from))) {
		const struct vb_record_executed *executed =
			vb_record_view(record, sizeof(*executed));

		if (record->kind == VB_RECORD_PACKET) {
			count_packet(record, counts);
		} else if (record->kind == VB_RECORD_EXECUTED) {
			EXPECT(executed);
			counts->parts++;
			counts->part_bytes += executed->part.length;
			counts->data_bytes += executed->part.length == WRITES_LENGTH &&
					      !memcmp((const uint8_t *)(executed + 1),
						      writes.memory, WRITES_LENGTH);
		}
		vb_recording_reader_release(from, record);
	}
	EXPECT_EQ(atomic_load(&from->memory->skipped), 0);
}

TEST(a_recording_has_each_packet_that_the_engine_counts)
{
	struct vb_recording_reader from, other;
	const uint64_t *engine;
	struct counts counts;

	writes_begin(&writes, false);
	EXPECT(attach(&from, &everything));
	EXPECT(!attach(&other, &everything)); /* one observer at a time */
	writes_run(&writes);
	vb_adapter_enter(writes.adapter);
	count_records(&from, &counts);
	engine = vb_nic_counters(vb_adapter_nic(writes.adapter))->counts;
	EXPECT_EQ(counts.sent, engine[VB_COUNTER_TX_PACKETS]);
	EXPECT_EQ(counts.sent_bytes, engine[VB_COUNTER_TX_BYTES]);
	EXPECT_EQ(counts.received, engine[VB_COUNTER_RX_PACKETS]);
	vb_adapter_leave(writes.adapter);
	EXPECT_EQ(counts.of_qp, counts.with_request);
	EXPECT(counts.with_request >= WRITES_COUNT * ((WRITES_LENGTH + 1023) / 1024));
	EXPECT_EQ(counts.parts, 0);
	detach(&from);
	writes_end(&writes);
}

TEST(a_recording_has_the_data_of_requests_that_the_engine_executes_itself)
{
	struct vb_recording_reader from;
	struct counts counts;

	writes_begin(&writes, true);
	EXPECT(attach(&from, &everything));
	writes_run(&writes);
	vb_adapter_enter(writes.adapter);
	count_records(&from, &counts);
	vb_adapter_leave(writes.adapter);
	EXPECT_EQ(counts.part_bytes, WRITES_COUNT * WRITES_LENGTH);
	EXPECT_EQ(counts.parts, WRITES_COUNT);
	EXPECT_EQ(counts.data_bytes, WRITES_COUNT);
	detach(&from);
	writes_end(&writes);
}

TEST(a_recording_of_one_qp_leaves_out_the_others)
{
	struct vb_recording_wish wish = everything;
	struct vb_recording_reader from;
	struct counts counts;

	writes_begin(&writes, false);
	wish.qpn = 0xfffffe;
	EXPECT(attach(&from, &wish));
	writes_run(&writes);
	vb_adapter_enter(writes.adapter);
	count_records(&from, &counts);
	vb_adapter_leave(writes.adapter);
	EXPECT_EQ(counts.sent + counts.received, 0);
	detach(&from);
	writes_end(&writes);
}

static void expect_end(bool is_closed)
{
	struct vb_recording_reader from;

	writes_begin(&writes, false);
	EXPECT(attach(&from, &everything));
	writes_run(&writes);
	vb_adapter_enter(writes.adapter);
	EXPECT(vb_recorder_is_on(&writes.adapter->recorder));
	if (!is_closed) /* a long time ago */
		atomic_load(&writes.adapter->recorder.current)->beat_ns = 1;
	vb_adapter_leave(writes.adapter);
	if (is_closed)
		atomic_store(&from.memory->is_closed, 1);
	writes_run(&writes);
	vb_adapter_enter(writes.adapter);
	EXPECT(!vb_recorder_is_on(&writes.adapter->recorder));
	EXPECT(!writes.adapter->port->is_observed);
	vb_adapter_leave(writes.adapter);
	EXPECT(atomic_load(&from.memory->is_ended));
	vb_recording_reader_close(&from);
	writes_end(&writes);
}

TEST(a_recording_ends_when_its_observer_closes_it)
{
	expect_end(true);
}

TEST(a_recording_ends_when_its_observer_is_silent)
{
	expect_end(false);
}

static _Atomic bool is_over;

/* As threads of the program do that post and poll. */
static void *note_events(void *unused)
{
	struct vb_completion completion = { .qpn = 1 };

	while (!atomic_load(&is_over)) {
		if (!vb_recorder_is_on(&writes.adapter->recorder))
			continue;
		vb_recorder_on_post(&writes.adapter->recorder, (vb_qpn){ 1 }, 1, VB_WR_SEND, 1);
		vb_recorder_on_doorbell(&writes.adapter->recorder, (vb_qpn){ 1 });
		vb_recorder_on_poll(&writes.adapter->recorder, &completion);
	}
	return unused;
}

/* A thread sanitizer makes each of them take twenty times as long. */
static bool is_slow(void)
{
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
	return !getenv("VB_TEST_ALL");
#endif
#endif
	return false;
}

static void *attach_again_and_again(void *unused)
{
	uint32_t count = is_slow() ? FEW_SESSIONS : SESSIONS;

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_record *record;
		struct vb_recording_reader from;

		while (!attach(&from, &everything)) /* a thread is writing an event */
			;
		for (uint32_t k = 0; k < i % 200; k++) {
			record = vb_recording_reader_take(&from);
			if (record)
				vb_recording_reader_release(&from, record);
		}
		detach(&from);
	}
	atomic_store(&is_over, true);
	return unused;
}

static void run_under_observers(bool is_by_shared_memory)
{
	pthread_t observer, program;

	atomic_store(&is_over, false);
	writes_begin(&writes, is_by_shared_memory);
	EXPECT_EQ(pthread_create(&observer, NULL, attach_again_and_again, NULL), 0);
	EXPECT_EQ(pthread_create(&program, NULL, note_events, NULL), 0);
	while (!atomic_load(&is_over))
		writes_run(&writes);
	pthread_join(observer, NULL);
	pthread_join(program, NULL);
	writes_run(&writes);
	writes_end(&writes);
}

TEST(observers_that_come_and_go_lose_and_break_nothing)
{
	run_under_observers(false);
}

TEST(observers_that_come_and_go_lose_and_break_nothing_in_shared_memory)
{
	run_under_observers(true);
}
