/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory allocator, asked by one thread how much it has while another one takes and gives. */
#include "harness.h"

#include "host/memory/blocks.h"

#include <pthread.h>

enum { TIMES = 1000, LARGE = 4 << 20 }; /* a large block has a mapping of its own */

static void *take_and_give(void *argument)
{
	(void)argument;
	for (uint32_t i = 0; i < TIMES; i++)
		vb_blocks_free(vb_blocks_alloc(LARGE));
	return NULL;
}

TEST(any_thread_may_ask_how_much_is_mapped)
{
	size_t before = vb_blocks_mapped();
	pthread_t thread;

	EXPECT(!pthread_create(&thread, NULL, take_and_give, NULL));
	for (uint32_t i = 0; i < TIMES; i++)
		EXPECT(vb_blocks_mapped() <= before + 2 * LARGE);
	pthread_join(thread, NULL);
	EXPECT_EQ(vb_blocks_mapped(), before);
}
