/* SPDX-License-Identifier: BSD-2-Clause */
/* When a program that polls looks beyond the links. */
#include "harness.h"

#include "host/policy/elsewhere.h"

#define BEGIN_NS 5000000000ull

static struct vb_elsewhere elsewhere;

/* Rounds at that time, as many as given, of which none looks elsewhere. */
static void pass_rounds(uint64_t now_ns, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		EXPECT(!vb_elsewhere_is_due(&elsewhere, now_ns));
}

TEST(a_program_that_polls_without_pause_looks_by_the_clock)
{
	vb_elsewhere_on_look(&elsewhere, BEGIN_NS);
	pass_rounds(BEGIN_NS + VB_ELSEWHERE_NS - 1, 10000);
	EXPECT(vb_elsewhere_is_due(&elsewhere, BEGIN_NS + VB_ELSEWHERE_NS));
}

TEST(a_thread_that_was_away_polls_for_a_while_first)
{
	vb_elsewhere_on_look(&elsewhere, BEGIN_NS);
	pass_rounds(BEGIN_NS + VB_ELSEWHERE_NS, VB_ELSEWHERE_ROUNDS - 1);
	EXPECT(vb_elsewhere_is_due(&elsewhere, BEGIN_NS + VB_ELSEWHERE_NS));
}

TEST(a_program_that_seldom_polls_looks_each_time)
{
	vb_elsewhere_on_look(&elsewhere, BEGIN_NS);
	pass_rounds(BEGIN_NS + VB_ELSEWHERE_NS_MAX - 1, 1);
	EXPECT(vb_elsewhere_is_due(&elsewhere, BEGIN_NS + VB_ELSEWHERE_NS_MAX));
}

TEST(rounds_are_counted_from_the_last_look)
{
	vb_elsewhere_on_look(&elsewhere, BEGIN_NS);
	pass_rounds(BEGIN_NS + 1, VB_ELSEWHERE_ROUNDS);
	vb_elsewhere_on_look(&elsewhere, BEGIN_NS + 1);
	pass_rounds(BEGIN_NS + 1 + VB_ELSEWHERE_NS, VB_ELSEWHERE_ROUNDS - 1);
}
