/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of the adapter in a program that closes descriptors it does not know. */
#include "harness.h"

#include "link/fd.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* Both are of the same kind, which is all that the kernel reports about them. */
TEST(a_descriptor_that_the_program_closed_is_not_taken_for_the_next_one)
{
	int lost = vb_fd_own(eventfd(0, 0)), next;

	EXPECT(vb_fd_is_ours(lost));
	close(lost);
	EXPECT(!vb_fd_is_ours(lost));
	next = vb_fd_own(eventfd(0, 0));
	EXPECT(vb_fd_is_ours(next));
	EXPECT(!vb_fd_is_ours(lost));
	vb_fd_close(lost);
	EXPECT(vb_fd_is_ours(next));
	vb_fd_close(next);
	EXPECT(!vb_fd_is_ours(next));
}
