/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that poll first, find nothing, and then arm the CQ and wait. A completion that comes in
 * between must raise its event all the same, as with common hardware: UCX waits in this way.
 */
#include "support_verbs.h"

#include <poll.h>
#include <unistd.h>

enum { MILLISECONDS = 10000 };

static struct program program;

/* The two halves are equal as soon as the WRITE to the program itself is done. */
static void await_data(void)
{
	volatile unsigned char *last = &program.target[PROGRAM_LENGTH - 1];

	while (*last != program.source[PROGRAM_LENGTH - 1])
		usleep(100);
	usleep(20000); /* the ACK, and the completion */
}

static void expect_event(void)
{
	struct pollfd event = { .fd = program.channel->fd, .events = POLLIN };

	EXPECT_EQ(poll(&event, 1, MILLISECONDS), 1);
	EXPECT_STR(ibv_wc_status_str(program_wait(&program)), "success");
}

TEST(a_completion_that_came_before_its_cq_was_armed_raises_its_event)
{
	struct pollfd event;

	program_enter_namespace();
	program_open(&program);
	for (int i = 0; i < 20; i++) {
		program_post(&program);
		await_data();
		EXPECT_EQ(ibv_req_notify_cq(program.cq, 0), 0);
		expect_event();
	}
	/* There is one event for each request, and none for completions that were polled. */
	EXPECT_EQ(ibv_req_notify_cq(program.cq, 0), 0);
	event = (struct pollfd){ .fd = program.channel->fd, .events = POLLIN };
	EXPECT_EQ(poll(&event, 1, 50), 0);
	program_close(&program);
}
