/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper thread's alarm clock: it rings, and only while the program leaves its descriptor. */
#include "harness.h"

#include "host/adapter/alarm.h"

#include <poll.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define MS_NS 1000000ull

static struct vb_alarm alarm_clock;

TEST(an_alarm_rings_when_its_time_has_passed)
{
	struct pollfd ring;

	vb_alarm_open(&alarm_clock);
	ring = (struct pollfd){ .fd = vb_alarm_set(&alarm_clock, MS_NS), .events = POLLIN };
	EXPECT_EQ(ring.fd, alarm_clock.fd);
	EXPECT_EQ(poll(&ring, 1, 60000), 1);
	/* An alarm that is set again is silent until it rings again. */
	ring.fd = vb_alarm_set(&alarm_clock, 100 * SECOND_NS);
	EXPECT_EQ(poll(&ring, 1, 0), 0);
	vb_alarm_close(&alarm_clock);
}

TEST(an_alarm_that_the_program_has_closed_cannot_be_set_until_it_is_repaired)
{
	vb_alarm_open(&alarm_clock);
	close(alarm_clock.fd);
	EXPECT(vb_alarm_set(&alarm_clock, SECOND_NS) < 0);
	vb_alarm_repair(&alarm_clock);
	EXPECT_EQ(vb_alarm_set(&alarm_clock, SECOND_NS), alarm_clock.fd);
	vb_alarm_close(&alarm_clock);
}

TEST(after_forgetting_there_is_no_alarm)
{
	vb_alarm_open(&alarm_clock);
	vb_alarm_close(&alarm_clock);
	vb_alarm_forget(&alarm_clock);
	EXPECT(vb_alarm_set(&alarm_clock, SECOND_NS) < 0);
}
