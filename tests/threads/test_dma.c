/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Application memory that vanishes, before and while it is copied: a copy of missing memory fails,
 * a copy of present memory is right, and no thread crashes. And the query whether memory is mapped
 * at all.
 */
#include "base/crc.h"
#include "harness.h"
#include "host/memory/dma.h"
#include "support_dma.h"

#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	THREADS = 4,
	FAULTS_PER_THREAD = 1000,
	ENOUGH = 2000, /* copies that succeeded, and that failed, in a race */
};

/* --- missing memory --------------------------------------------------------------------------- */

TEST(copies_of_present_memory_are_right_for_every_length_and_alignment)
{
	uint8_t *at = map_pages(PAGE, PROT_READ | PROT_WRITE);
	uint8_t pattern[200], seen[200];

	MUST(vb_dma_install());
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i + 1);
	for (size_t length = 0; length <= 150; length++) {
		for (size_t offset = 1; offset <= 16; offset++) {
			memset(at, 0, 256);
			EXPECT(vb_dma_write(dma_address(at + offset), pattern, length));
			EXPECT_MEM(at + offset, pattern, length);
			EXPECT_EQ(at[offset - 1], 0);
			EXPECT_EQ(at[offset + length], 0);
			memset(seen, 0, sizeof(seen));
			EXPECT(vb_dma_read(seen + 1, dma_address(at + offset), length));
			EXPECT_MEM(seen + 1, pattern, length);
			EXPECT_EQ(seen[0], 0);
			EXPECT_EQ(seen[1 + length], 0);
		}
	}
}

TEST(long_copies_are_right_for_every_alignment)
{
	static const size_t lengths[] = { 1000, 2047, 2048, 2049, 2056, 4088, 4096, 4100, 8192 };
	static uint8_t pattern[8192 + 16];
	uint8_t *at = map_pages(4 * PAGE, PROT_READ | PROT_WRITE);

	MUST(vb_dma_install());
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(1 + i % 251);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		for (size_t offset = 1; offset <= 16; offset++) {
			memset(at, 0, 4 * PAGE);
			EXPECT(vb_dma_write(dma_address(at + offset), pattern + offset % 3,
					    lengths[i]));
			EXPECT_MEM(at + offset, pattern + offset % 3, lengths[i]);
			EXPECT_EQ(at[offset - 1], 0);
			EXPECT_EQ(at[offset + lengths[i]], 0);
		}
	}
}

TEST(atomics_and_crc_of_present_memory_are_right)
{
	uint64_t *at = (uint64_t *)(void *)map_pages(PAGE, PROT_READ | PROT_WRITE);
	uint64_t old, word = 0x0102030405060708;
	uint32_t crc = 5;

	MUST(vb_dma_install());
	EXPECT(vb_dma_atomic_store(dma_address(at), (const uint8_t *)&word));
	EXPECT(vb_dma_fetch_add(dma_address(at), 1, &old));
	EXPECT_EQ(old, word);
	EXPECT(vb_dma_compare_swap(dma_address(at), word, 9, &old));
	EXPECT_EQ(old, word + 1);
	EXPECT(vb_dma_compare_swap(dma_address(at), word + 1, 9, &old));
	EXPECT_EQ(*at, 9);
	EXPECT(vb_dma_crc32(&crc, dma_address(at), 100));
	EXPECT_EQ(crc, vb_crc32(5, at, 100));
	crc = 5;
	EXPECT(vb_dma_crc32c(&crc, dma_address(at), 100));
	EXPECT_EQ(crc, vb_crc32c(5, at, 100));
}

TEST(access_to_unmapped_memory_fails)
{
	install_dma();
	expect_no_access(unmapped_address());
	expect_no_access((uint8_t *)8);
}

TEST(access_to_an_address_that_no_page_can_have_fails)
{
	if (UNDER_SANITIZER)
		SKIP("sanitizers refuse such an address themselves");
	install_dma();
	expect_no_access((uint8_t *)0x8000000000000000);
	expect_no_access((uint8_t *)0xffffffffffffff00);
}

TEST(access_to_protected_memory_fails_where_protected)
{
	uint8_t *readable = map_pages(PAGE, PROT_READ);

	install_dma();
	expect_no_access(map_pages(PAGE, PROT_NONE));
	for (enum access access = 0; access < ACCESS_COUNT; access++)
		EXPECT_EQ(try_access(access, readable), access < WRITE_1);
}

TEST(access_to_a_truncated_file_fails)
{
	install_dma();
	expect_no_access(map_truncated_file());
}

TEST(a_copy_fails_exactly_when_one_of_its_bytes_is_missing)
{
	uint8_t *middle = map_pages(3 * PAGE, PROT_NONE) + PAGE;
	uint8_t ours[200] = { 0 };
	uint32_t crc = 0;

	install_dma();
	EXPECT_EQ(mprotect(middle, PAGE, PROT_READ | PROT_WRITE), 0);
	for (size_t length = 1; length <= 150; length++) {
		vb_dma_addr first = dma_address(middle), last = dma_address(middle + PAGE - length);

		EXPECT(vb_dma_read(ours, first, length) && vb_dma_read(ours, last, length));
		EXPECT(vb_dma_write(first, ours, length) && vb_dma_write(last, ours, length));
		EXPECT(vb_dma_crc32(&crc, first, length) && vb_dma_crc32(&crc, last, length));
		EXPECT(!vb_dma_read(ours, first - 1, length));
		EXPECT(!vb_dma_read(ours, last + 1, length));
		EXPECT(!vb_dma_write(first - 1, ours, length));
		EXPECT(!vb_dma_write(last + 1, ours, length));
		EXPECT(!vb_dma_crc32(&crc, first - 1, length));
		EXPECT(!vb_dma_crc32(&crc, last + 1, length));
		EXPECT(vb_dma_crc32c(&crc, first, length) && vb_dma_crc32c(&crc, last, length));
		EXPECT(!vb_dma_crc32c(&crc, first - 1, length));
		EXPECT(!vb_dma_crc32c(&crc, last + 1, length));
	}
}

TEST(a_long_write_fails_exactly_when_one_of_its_bytes_is_missing)
{
	enum { LONG_PAGES = 3, STEP = 8 };
	uint8_t *middle = map_pages((LONG_PAGES + 2) * PAGE, PROT_NONE) + PAGE;
	static uint8_t ours[LONG_PAGES * PAGE];

	install_dma();
	EXPECT_EQ(mprotect(middle, LONG_PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	for (size_t length = 1024; length <= sizeof(ours); length += 1016) {
		vb_dma_addr first = dma_address(middle);
		vb_dma_addr last = dma_address(middle + LONG_PAGES * PAGE - length);

		EXPECT(vb_dma_write(first, ours, length) && vb_dma_write(last, ours, length));
		EXPECT(!vb_dma_write(first - STEP, ours, length));
		EXPECT(!vb_dma_write(last + STEP, ours, length));
		EXPECT(!vb_dma_write(last + 1, ours, length));
	}
}

TEST(a_word_is_copied_unless_one_of_its_ends_is_missing)
{
	uint8_t *middle = map_pages(3 * PAGE, PROT_NONE) + PAGE;
	vb_dma_addr here = dma_address(middle), missing = dma_address(middle - 8);
	uint64_t words[2] = { 0x0123456789abcdef, 0 };

	if (!vb_dma_can_copy_word(here, 8))
		SKIP("no copy of this kind under a sanitizer");
	EXPECT(!vb_dma_can_copy_word(here + 4, 8)); /* another thread could see half of it */
	EXPECT(!vb_dma_can_copy_word(here, 4));
	install_dma();
	EXPECT_EQ(mprotect(middle, PAGE, PROT_READ | PROT_WRITE), 0);
	EXPECT(vb_dma_copy_word(here, dma_address(&words[0])));
	EXPECT(vb_dma_copy_word(dma_address(&words[1]), here));
	EXPECT_EQ(words[1], words[0]);
	EXPECT(!vb_dma_copy_word(missing, here));
	EXPECT(!vb_dma_copy_word(here, missing));
	EXPECT(!vb_dma_copy_word(here, missing + 1)); /* its last byte is there */
	EXPECT_EQ(mprotect(middle, PAGE, PROT_READ), 0);
	EXPECT(!vb_dma_copy_word(here, dma_address(&words[0])));
}

TEST(memory_that_comes_back_is_copied_again)
{
	uint8_t *at = map_pages(PAGE, PROT_NONE);

	install_dma();
	for (int i = 0; i < 100; i++) {
		expect_no_access(at);
		EXPECT_EQ(mprotect(at, PAGE, PROT_READ | PROT_WRITE), 0);
		expect_every_access(at);
		EXPECT_EQ(mprotect(at, PAGE, PROT_NONE), 0);
	}
}

TEST(a_failed_copy_leaves_errno_mask_and_rounding_alone)
{
	sigset_t usr1, seen;
	uint8_t *at = unmapped_address();
	volatile double one = 1, three = 3, third;

	if (UNDER_SANITIZER)
		SKIP("sanitizers must hear of a jump, and that kind restores no rounding");
	install_dma();
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	EXPECT_EQ(pthread_sigmask(SIG_SETMASK, &usr1, NULL), 0);
	fesetround(FE_UPWARD);
	third = one / three;
	errno = ELOOP;
	expect_no_access(at);
	EXPECT_EQ(errno, ELOOP);
	EXPECT_EQ(fegetround(), FE_UPWARD);
	EXPECT(one / three == third);
	EXPECT_EQ(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &seen, 8), 0);
	EXPECT_MEM(&seen, &usr1, 8);
}

TEST(without_installation_a_fault_is_a_crash)
{
	signal(SIGSEGV, SIG_DFL); /* a sanitizer's handler may be set */
	signal(SIGBUS, SIG_DFL);
	EXPECT_EQ(run_in_child(read_long, unmapped_address()), SIGSEGV);
	EXPECT_EQ(run_in_child(read_long, map_truncated_file()), SIGBUS);
	install_dma();
	EXPECT_EQ(run_in_child(read_long, unmapped_address()), 0);
	EXPECT_EQ(run_in_child(read_long, map_truncated_file()), 0);
}

/* --- many threads ----------------------------------------------------------------------------- */

struct race {
	uint8_t *at;
	atomic_bool is_over;
	atomic_ulong succeeded, failed;
};

static void *copy_until_over(void *argument)
{
	struct race *race = argument;

	for (unsigned i = 0; !atomic_load_explicit(&race->is_over, memory_order_relaxed); i++) {
		bool done = try_access((enum access)(i % ACCESS_COUNT), race->at + i % 4 * PAGE);

		atomic_fetch_add_explicit(done ? &race->succeeded : &race->failed, 1,
					  memory_order_relaxed);
	}
	return NULL;
}

static void map_again(uint8_t *at)
{
	EXPECT(mmap(at, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		    -1, 0) == at);
}

/* Some threads copy while another one does this to the memory. */
static void race_copies_with(void (*come_and_go)(uint8_t *at))
{
	/* This is far below everything, so that no other mapping is placed there meanwhile. */
	struct race race = { .at = unmapped_address() + 16 * PAGE };
	pthread_t threads[THREADS];

	install_dma();
	map_again(race.at);
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, copy_until_over, &race), 0);
	while (race.succeeded < ENOUGH || race.failed < ENOUGH)
		come_and_go(race.at);
	atomic_store(&race.is_over, true);
	for (int i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
}

static void unmap_and_map(uint8_t *at)
{
	EXPECT_EQ(munmap(at, 5 * PAGE), 0);
	sched_yield();
	map_again(at);
	sched_yield();
}

static void protect_and_unprotect(uint8_t *at)
{
	EXPECT_EQ(mprotect(at, 5 * PAGE, PROT_NONE), 0);
	sched_yield();
	EXPECT_EQ(mprotect(at, 5 * PAGE, PROT_READ | PROT_WRITE), 0);
	sched_yield();
}

static void truncate_and_extend(uint8_t *at)
{
	static int file;

	if (!file) {
		file = memfd_create("raced", 0);
		EXPECT(mmap(at, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file,
			    0) == at);
	}
	EXPECT_EQ(ftruncate(file, 5 * PAGE), 0);
	sched_yield();
	EXPECT_EQ(ftruncate(file, 0), 0);
	sched_yield();
}

TEST(memory_may_be_unmapped_while_threads_copy)
{
	race_copies_with(unmap_and_map);
}

TEST(memory_may_be_protected_while_threads_copy)
{
	race_copies_with(protect_and_unprotect);
}

TEST(a_file_may_be_truncated_while_threads_copy)
{
	race_copies_with(truncate_and_extend);
}

static void *fault_often(void *argument)
{
	for (int i = 0; i < FAULTS_PER_THREAD; i++)
		expect_no_access(argument);
	return NULL;
}

TEST(threads_that_install_and_fault_at_once_survive)
{
	pthread_t threads[16];

	install_dma();
	for (int i = 0; i < 16; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, fault_often, unmapped_address()), 0);
	for (int i = 0; i < 1000; i++)
		MUST(vb_dma_install());
	for (int i = 0; i < 16; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
}

struct watched {
	_Alignas(64) uint8_t area[4096 + 192];
	_Alignas(64) atomic_uint seen;
	_Alignas(64) atomic_bool is_torn;
	size_t offset, length;
	unsigned rounds;
};

static void *watch_last_byte(void *argument)
{
	struct watched *watched = argument;
	const uint8_t *from = watched->area + watched->offset;

	for (unsigned round = 1; round <= watched->rounds; round++) {
		uint8_t value = (uint8_t)(1 + round % 251);

		for (unsigned spins = 0;
		     __atomic_load_n(&from[watched->length - 1], __ATOMIC_ACQUIRE) != value;)
			if (++spins % 500 == 0)
				sched_yield();
		for (size_t i = 0; i < watched->length; i++)
			if (((const volatile uint8_t *)from)[i] != value)
				watched->is_torn = true;
		atomic_store_explicit(&watched->seen, round, memory_order_release);
	}
	return NULL;
}

TEST(the_last_byte_of_a_write_is_seen_last)
{
	/*
	 * Within one cache line; and across two, with the last byte alone, in a word, and with most
	 * of it. Long ones that are whole words, from a cache line's beginning and from within, and
	 * one that is not.
	 */
	static const struct {
		size_t offset, length;
	} cases[] = { { 64, 64 },   { 65, 9 },	  { 63, 2 },	{ 62, 3 },
		      { 56, 16 },   { 60, 12 },	  { 33, 64 },	{ 40, 56 },
		      { 8, 64 },    { 61, 61 },	  { 48, 48 },	{ 64, 4096 },
		      { 64, 2048 }, { 40, 4056 }, { 72, 3000 }, { 64, 2047 } };
	static uint8_t message[4096];
	struct watched watched = { .rounds = test_is_thorough() ? 1000000 : 5000 };

	if (UNDER_SANITIZER)
		SKIP("it races as the C standard sees it; and sanitizers get other copies");
	install_dma();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pthread_t thread;

		watched.length = cases[i].length;
		watched.offset = cases[i].offset;
		watched.seen = 0;
		memset(watched.area, 0, sizeof(watched.area));
		EXPECT_EQ(pthread_create(&thread, NULL, watch_last_byte, &watched), 0);
		for (unsigned round = 1; round <= watched.rounds; round++) {
			memset(message, (int)(1 + round % 251), sizeof(message));
			EXPECT(vb_dma_write(dma_address(watched.area + watched.offset), message,
					    watched.length));
			for (unsigned spins = 0; watched.seen != round;)
				if (++spins % 500 == 0)
					sched_yield();
		}
		EXPECT_EQ(pthread_join(thread, NULL), 0);
		if (watched.is_torn)
			FAIL("length %zu offset %zu", watched.length, watched.offset);
	}
}

/* --- what is mapped --------------------------------------------------------------------------- */

TEST(mapped_memory_is_told_from_holes)
{
	uint8_t *at = map_pages(4 * PAGE, PROT_READ | PROT_WRITE);

	EXPECT(vb_dma_is_mapped(dma_address(at), 4 * PAGE, true));
	EXPECT(vb_dma_is_mapped(dma_address(&at), sizeof(at), true));
	EXPECT(vb_dma_is_mapped(dma_address(at) + 1, 1, false));
	EXPECT_EQ(munmap(at + 2 * PAGE, PAGE), 0);
	EXPECT(vb_dma_is_mapped(dma_address(at), 2 * PAGE, true));
	EXPECT(!vb_dma_is_mapped(dma_address(at), 2 * PAGE + 1, true));
	EXPECT(!vb_dma_is_mapped(dma_address(at), 4 * PAGE, false));
	EXPECT(!vb_dma_is_mapped(dma_address(at) + 2 * PAGE, 1, false));
	EXPECT(!vb_dma_is_mapped(dma_address(at) + 3 * PAGE - 1, 2, false));
	EXPECT(vb_dma_is_mapped(dma_address(at) + 3 * PAGE, PAGE, false));
}

TEST(mapped_memory_is_told_by_its_protection)
{
	uint8_t *at = map_pages(3 * PAGE, PROT_READ | PROT_WRITE);

	EXPECT_EQ(mprotect(at + PAGE, PAGE, PROT_READ), 0);
	EXPECT(vb_dma_is_mapped(dma_address(at), 3 * PAGE, false)); /* three mappings by now */
	EXPECT(!vb_dma_is_mapped(dma_address(at), 3 * PAGE, true));
	EXPECT(vb_dma_is_mapped(dma_address(at), PAGE, true));
	EXPECT_EQ(mprotect(at + PAGE, PAGE, PROT_NONE), 0);
	EXPECT(!vb_dma_is_mapped(dma_address(at), 3 * PAGE, false));
	EXPECT(vb_dma_is_mapped(dma_address("text"), 4, false));
	EXPECT(!vb_dma_is_mapped(dma_address(&vb_dma_is_mapped), 1, true));
}

TEST(ranges_that_cannot_be_are_not_mapped)
{
	int variable;

	EXPECT(vb_dma_is_mapped(0, 0, true));
	EXPECT(!vb_dma_is_mapped(0, 1, false));
	EXPECT(!vb_dma_is_mapped(0, SIZE_MAX, false));
	EXPECT(!vb_dma_is_mapped(dma_address(&variable), SIZE_MAX, false));
	EXPECT(!vb_dma_is_mapped(UINT64_MAX, 1, false));
}

TEST(a_large_range_is_checked_without_being_touched)
{
	size_t length = (size_t)64 << 30;
	uint8_t *at = map_pages(length, PROT_READ | PROT_WRITE);
	unsigned char is_resident[2];

	EXPECT(vb_dma_is_mapped(dma_address(at), length, true));
	EXPECT_EQ(mincore(at, 2 * PAGE, is_resident), 0);
	EXPECT(!(is_resident[0] & 1) && !(is_resident[1] & 1));
	EXPECT_EQ(munmap(at + length / 2, PAGE), 0);
	EXPECT(!vb_dma_is_mapped(dma_address(at), length, true));
}
