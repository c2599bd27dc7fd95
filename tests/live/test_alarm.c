/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread's alarm clock. The caller of vb_alarm_postpone() passes the current time as an
 * argument, so these tests need not wait.
 */
#include "harness.h"

#include "host/adapter/alarm.h"

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define MS_NS 1000000ull
#define BEGIN_NS (5 * SECOND_NS)

static struct vb_alarm alarm_clock;

static uint64_t remaining_ns(void)
{
	struct itimerspec left;

	EXPECT_EQ(timerfd_gettime(alarm_clock.fd, &left), 0);
	return (uint64_t)left.it_value.tv_sec * SECOND_NS + (uint64_t)left.it_value.tv_nsec;
}

static bool is_postponed(void)
{
	return remaining_ns() <= VB_ALARM_POSTPONED_NS; /* or the alarm has rung since */
}

/*
 * Sets the alarm far ahead, so that postponing it is visible: it then rings VB_ALARM_POSTPONED_NS
 * from now, which is nearer.
 */
static void begin(void)
{
	vb_alarm_open(&alarm_clock);
	EXPECT_EQ(vb_alarm_set(&alarm_clock, BEGIN_NS, 100 * SECOND_NS), alarm_clock.fd);
	EXPECT(!is_postponed());
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

TEST(a_poll_postpones_the_alarm_when_half_of_its_time_has_passed)
{
	begin();
	vb_alarm_postpone(&alarm_clock, BEGIN_NS + 50 * SECOND_NS - 1);
	EXPECT(!is_postponed());
	vb_alarm_postpone(&alarm_clock, BEGIN_NS + 50 * SECOND_NS);
	EXPECT(is_postponed());
	vb_alarm_close(&alarm_clock);
}

TEST(an_alarm_is_not_postponed_more_often_than_needed)
{
	uint64_t postponed_ns = BEGIN_NS + 60 * SECOND_NS;
	struct itimerspec far = { .it_value.tv_sec = 100 };

	begin();
	vb_alarm_postpone(&alarm_clock, postponed_ns);
	EXPECT_EQ(timerfd_settime(alarm_clock.fd, 0, &far, NULL), 0);
	vb_alarm_postpone(&alarm_clock, postponed_ns + VB_ALARM_POSTPONE_AFTER_NS - 1);
	EXPECT(!is_postponed());
	vb_alarm_postpone(&alarm_clock, postponed_ns + VB_ALARM_POSTPONE_AFTER_NS);
	EXPECT(is_postponed());
	vb_alarm_close(&alarm_clock);
}

TEST(a_poll_postpones_no_alarm_once_the_helper_is_awake)
{
	begin();
	vb_alarm_stop(&alarm_clock);
	vb_alarm_postpone(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	vb_alarm_postpone_if_due(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	EXPECT(!is_postponed());
	vb_alarm_close(&alarm_clock);
}

TEST(an_alarm_that_the_program_has_closed_cannot_be_set_until_it_is_repaired)
{
	begin();
	close(alarm_clock.fd);
	EXPECT(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS) < 0);
	vb_alarm_postpone(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
	vb_alarm_repair(&alarm_clock);
	EXPECT_EQ(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS), alarm_clock.fd);
	vb_alarm_close(&alarm_clock);
}

TEST(after_forgetting_there_is_no_alarm)
{
	begin();
	vb_alarm_close(&alarm_clock);
	vb_alarm_forget(&alarm_clock);
	EXPECT(vb_alarm_set(&alarm_clock, BEGIN_NS, SECOND_NS) < 0);
	vb_alarm_postpone(&alarm_clock, BEGIN_NS + 1000 * SECOND_NS);
}
