/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The keeper: a thread that holds files of the program open in a descriptor table of its own. The
 * table contains nothing of the program but these files, the program survives the loss of the
 * keeper, and a copy of the process gets a keeper of its own.
 */
#include "harness.h"
#include "kernel_refuses.h"

#include "host/local/kept.h"
#include "host/local/shared.h"
#include "link/fd.h"
#include "support_ends.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct vb_shared keep(uint8_t *memory)
{
	struct vb_shared shared;

	EXPECT(vb_shared_find((uintptr_t)memory, LENGTH, &shared));
	EXPECT(shared.kept.keeper);
	return shared;
}

/* Maps the file through an envelope, as a local peer does. */
static void expect_same_memory(const struct vb_shared *shared, uint8_t *memory)
{
	int envelope = vb_kept_seal(&shared->kept);
	uint8_t *other;

	EXPECT(envelope >= 0);
	other = vb_kept_map_sealed(envelope, shared->length, shared->offset);
	vb_fd_close(envelope);
	EXPECT(other && other != memory);
	memory[7] = 'x';
	EXPECT_EQ(other[7], 'x');
	EXPECT_EQ(munmap(other, shared->length), 0);
}

TEST(what_is_kept_is_the_memory_of_the_program)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared = keep(memory);

	expect_same_memory(&shared, memory);
	expect_same_memory(&shared, memory);
	vb_kept_close(&shared.kept);
	EXPECT(vb_kept_seal(&shared.kept) < 0);
}

TEST(an_envelope_outlives_what_was_kept)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared = keep(memory);
	int envelope = vb_kept_seal(&shared.kept);
	uint8_t *other;

	vb_kept_close(&shared.kept);
	other = vb_kept_map_sealed(envelope, LENGTH, 0);
	EXPECT(other);
	EXPECT(!vb_kept_map_sealed(envelope, LENGTH, 0)); /* the envelope is empty */
	vb_fd_close(envelope);
}

TEST(what_is_no_envelope_is_refused)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared = keep(memory);

	EXPECT(!vb_kept_map_sealed(0, LENGTH, 0));
	EXPECT(!vb_kept_map_sealed(-1, LENGTH, 0));
	vb_kept_close(&shared.kept);
}

/* A pipe does not end while its writing end is open in another descriptor table. */
TEST(the_keeper_has_no_descriptor_of_the_program)
{
	struct vb_shared shared;
	int ends[2];
	char byte;

	EXPECT_EQ(pipe(ends), 0);
	shared = keep(shared_memory());
	EXPECT_EQ(close(ends[1]), 0);
	EXPECT_EQ(read(ends[0], &byte, 1), 0);
	vb_kept_close(&shared.kept);
}

TEST(a_keeper_that_is_cut_off_gets_a_successor)
{
	/* The next descriptor will get this number. */
	unsigned fd = (unsigned)open("/dev/null", O_RDONLY | O_CLOEXEC);
	uint8_t *memory = (close((int)fd), shared_memory());
	struct vb_shared before = keep(memory);
	struct vb_shared after;

	/* All but the memfd, which has no path by which it could be opened again. */
	EXPECT_EQ(close_range(fd + 1, ~0u, 0), 0);
	EXPECT(vb_kept_seal(&before.kept) < 0);
	after = keep(memory);
	EXPECT(after.kept.keeper != before.kept.keeper);
	vb_kept_close(&before.kept);
	expect_same_memory(&after, memory);
	vb_kept_close(&after.kept);
}

static void expect_to_keep_in_child(long child, struct vb_shared *inherited, uint8_t *memory)
{
	struct vb_shared own;

	EXPECT(child >= 0);
	if (child) {
		expect_child_success((pid_t)child);
		expect_same_memory(inherited, memory);
		vb_kept_close(&inherited->kept);
		return;
	}
	own = keep(memory);
	expect_same_memory(&own, memory);
	vb_kept_close(&inherited->kept);
	expect_same_memory(&own, memory);
	_exit(0);
}

TEST(a_forked_child_has_a_keeper_of_its_own)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared = keep(memory);

	expect_to_keep_in_child(fork(), &shared, memory);
}

TEST(a_copy_that_no_handler_saw_has_a_keeper_of_its_own)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared = keep(memory);

	expect_to_keep_in_child(syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL), &shared,
				memory);
}

TEST(without_close_range_the_keeper_has_no_descriptor_of_the_program_either)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared;
	int ends[2];
	char byte;

	EXPECT(kernel_refuses(SYS_close_range, ENOSYS));
	EXPECT_EQ(pipe(ends), 0);
	shared = keep(memory);
	EXPECT_EQ(close(ends[1]), 0);
	EXPECT_EQ(read(ends[0], &byte, 1), 0);
	expect_same_memory(&shared, memory);
	vb_kept_close(&shared.kept);
}

TEST(where_no_thread_may_have_a_table_of_its_own_nothing_is_kept)
{
	uint8_t *memory = shared_memory();
	struct vb_shared shared;

	EXPECT(kernel_refuses(SYS_close_range, ENOSYS));
	EXPECT(kernel_refuses(SYS_unshare, ENOSYS));
	EXPECT(!vb_shared_find((uintptr_t)memory, LENGTH, &shared));
	EXPECT(!vb_shared_find((uintptr_t)memory, LENGTH, &shared));
}
