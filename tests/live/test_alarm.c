/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread's alarm clock. The thread that pushes the alarm passes the time, so that these
 * tests need not wait.
 */
#include "harness.h"

#include "host/alarm.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define MS_NS 1000000ull
#define BEGIN_NS (5 * SECOND_NS)

static struct vb_alarm alarm_clock;

static uint64_t left_ns(void)
{
	struct itimerspec left;

	EXPECT_EQ(timerfd_gettime(alarm_clock.fd, &left), 0);
	return (uint64_t)left.it_value.tv_sec * SECOND_NS + (uint64_t)left.it_value.tv_nsec;
}

static bool is_pushed(void)
{
	return left_ns() <= VB_ALARM_PUSHED_NS; /* or the alarm has rung since */
}

/* Sets the alarm far ahead, so that a push is visible: a push brings it nearer. */
static void begin(void)
{
	vb_alarm_open(&alarm_clock);
	EXPECT_EQ(vb_alarm_set(&alarm_clock, BEGIN_NS, 100 * SECOND_NS), alarm_clock.fd);
	EXPECT(!is_pushed());
}

TEST(an_alarm_rings_when_its_time_has_passed)
{
	struct pollfd ring;

	vb_alarm_open(&alarm_clock);
	ring = (struct pollfd){ .fd = vb_alarm_set(&alarm_clock, BEGIN_NS, MS_NS),
				.events = POLLIN };
	EXPECT_EQ(poll(&ring, 1, 60000), 1);
	/* An alarm that is set again is silent until it rings again. */
	ring.fd = vb_alarm_set(&alarm_clock, BEGIN_NS, 100 * SECOND_NS);
	EXPECT_EQ(poll(&ring, 1, 0), 0);
	vb_alarm_close(&alarm_clock);
}

TEST(a_poll_pushes_the_alarm_when_half_of_its_time_has_passed)
{
	begin();
	vb_alarm_push(&alarm_clock, BEGIN_NS + 50 * SECOND_NS - 1);
	EXPECT(!is_pushed());
	vb_alarm_push(&alarm_clock, BEGIN_NS + 50 * SECOND_NS);
	EXPECT(is_pushed());
	vb_alarm_close(&alarm_clock);
}

TEST(an_alarm_is_not_pushed_more_often_than_needed)
{
	uint64_t pushed_ns = BEGIN_NS + 60 * SECOND_NS;
	struct itimerspec far = { .it_value.tv_sec = 100 };

	begin();
	vb_alarm_push(&alarm_clock, pushed_ns);
	EXPECT_EQ(timerfd_settime(alarm_clock.fd, 0, &far, NULL), 0);
	vb_alarm_push(&alarm_clock, pushed_ns + VB_ALARM_PUSH_AFTER_NS - 1);
	EXPECT(!is_pushed());
	vb_alarm_push(&alarm_clock, pushed_ns + VB_ALARM_PUSH_AFTER_NS);
	EXPECT(is_pushed());
	vb_alarm_close(&alarm_clock);
}

TEST(a_poll_pushes_no_alarm_once_the_helper_is_awake)
{
	begin();
	vb_alarm_stop(&alarm_clock);
	vb_alarm_push(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	vb_alarm_push_now(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	EXPECT(!is_pushed());
	vb_alarm_close(&alarm_clock);
}

TEST(an_alarm_that_the_program_has_closed_is_not_relied_on_until_there_is_another)
{
	begin();
	close(alarm_clock.fd);
	EXPECT(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS) < 0);
	vb_alarm_push(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	vb_alarm_repair(&alarm_clock);
	EXPECT_EQ(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS), alarm_clock.fd);
	vb_alarm_close(&alarm_clock);
}

TEST(a_forked_child_has_none)
{
	begin();
	vb_alarm_close(&alarm_clock);
	vb_alarm_forget(&alarm_clock);
	EXPECT(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS) < 0);
	vb_alarm_push(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
}
