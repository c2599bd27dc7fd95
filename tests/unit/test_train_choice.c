/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which way long SENDs go to a local peer. Messages are sent one by one, or several at the same
 * time; the test says how long they take. A sample is one message of SAMPLE bytes where nothing
 * else is said.
 */
#include "harness.h"

#include "nic/train_choice_priv.h"

enum { SAMPLE = 1 << 20, IDLE_NS = 5000 };

static struct vb_train_choice choice;
static uint64_t now_ns = 1000000;
static uint32_t next_number; /* of the message that begins next */

__attribute__((constructor)) static void init(void)
{
	vb_train_choice_init(&choice);
}

static void begin(bool is_busy)
{
	vb_train_choice_on_begun(&choice, next_number++, is_busy, now_ns);
}

/* Returns whether others are in flight. */
static bool end(uint32_t number, uint32_t length, uint64_t ns)
{
	now_ns += ns;
	return vb_train_choice_on_done(&choice, number, length, SAMPLE, now_ns);
}

/* One message that takes so long, and then nothing for a while. */
static void send(uint64_t ns)
{
	begin(false);
	EXPECT(!end(next_number - 1, SAMPLE, ns));
	now_ns += IDLE_NS;
}

static bool is_by_packets(void)
{
	return vb_train_choice_way(&choice) == VB_BY_PACKETS;
}

/* Messages that take so long in either way, until their way changes. Returns how many. */
static uint32_t send_until_change(uint64_t trains_ns, uint64_t packets_ns)
{
	bool was_by_packets = is_by_packets();
	uint32_t count = 0;

	while (is_by_packets() == was_by_packets) {
		send(was_by_packets ? packets_ns : trains_ns);
		EXPECT(++count < 100000);
	}
	return count;
}

/* The QP has measured trains at 1000 ns, and tries packets. */
static void begin_first_trial(void)
{
	EXPECT_EQ(send_until_change(1000, 0), VB_TRIAL_SAMPLES_MAX);
	EXPECT(is_by_packets());
}

/* --- trials ----------------------------------------------------------------------------------- */

TEST(messages_begin_by_trains)
{
	EXPECT(!is_by_packets());
}

TEST(packets_are_tried_after_three_samples_of_trains)
{
	begin_first_trial();
}

TEST(the_cheaper_way_is_taken)
{
	begin_first_trial();
	send(500);
	EXPECT(is_by_packets());
	EXPECT_EQ(send_until_change(1000, 500), VB_TRIAL_WAIT_MIN);
}

TEST(a_way_that_costs_more_is_left)
{
	begin_first_trial();
	EXPECT_EQ(send_until_change(1000, 1400), VB_TRIAL_SAMPLES_MAX);
	EXPECT(!is_by_packets());
}

TEST(a_way_that_costs_half_as_much_again_is_left_after_two_samples)
{
	begin_first_trial();
	EXPECT_EQ(send_until_change(1000, 1501), 2);
}

TEST(a_way_that_costs_four_times_as_much_is_left_after_one_sample)
{
	begin_first_trial();
	EXPECT_EQ(send_until_change(1000, 4001), 1);
}

/* The CPU was taken away during the first sample. */
TEST(one_slow_sample_does_not_end_a_trial)
{
	begin_first_trial();
	send(3999);
	send(500);
	EXPECT(is_by_packets());
	EXPECT_EQ(send_until_change(1000, 500), VB_TRIAL_WAIT_MIN);
}

TEST(a_way_that_costs_about_as_much_gets_three_samples)
{
	begin_first_trial();
	EXPECT_EQ(send_until_change(1000, 1400), VB_TRIAL_SAMPLES_MAX);
}

TEST(a_way_that_is_a_little_cheaper_is_not_taken)
{
	begin_first_trial();
	EXPECT_EQ(send_until_change(1000, 900), VB_TRIAL_SAMPLES_MAX);
}

TEST(a_way_that_is_clearly_cheaper_is_taken)
{
	begin_first_trial();
	send(890);
	EXPECT_EQ(send_until_change(1000, 890), VB_TRIAL_WAIT_MIN);
}

TEST(the_best_sample_of_a_trial_counts)
{
	begin_first_trial();
	send(1400);
	send(1300);
	send(500);
	EXPECT(is_by_packets());
}

/* The other samples had to wait for the CPU. */
TEST(the_best_of_the_last_samples_of_the_chosen_way_counts)
{
	send(9000);
	send(1000);
	send(9000);
	EXPECT(is_by_packets());
	EXPECT_EQ(send_until_change(1000, 5000), 1);
}

TEST(the_other_way_is_tried_ever_more_seldom)
{
	begin_first_trial();
	for (uint32_t wait = VB_TRIAL_WAIT_MIN; wait < VB_TRIAL_WAIT_MAX; wait *= 2) {
		EXPECT_EQ(send_until_change(1000, 5000), 1);
		EXPECT_EQ(send_until_change(1000, 5000), wait);
	}
	for (uint32_t i = 0; i < 3; i++) {
		EXPECT_EQ(send_until_change(1000, 5000), 1);
		EXPECT_EQ(send_until_change(1000, 5000), VB_TRIAL_WAIT_MAX);
	}
}

TEST(a_machine_that_changes_is_noticed_and_the_old_way_is_tried_again_soon)
{
	begin_first_trial();
	for (uint32_t i = 0; i < 4; i++) {
		send_until_change(1000, 2000);
		send_until_change(1000, 2000);
	}
	EXPECT(is_by_packets());
	send(200);
	EXPECT_EQ(send_until_change(1000, 200), VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(send_until_change(1000, 200), 1);
	EXPECT(is_by_packets());
	EXPECT_EQ(send_until_change(1000, 200), 2 * VB_TRIAL_WAIT_MIN);
}

/* --- samples ---------------------------------------------------------------------------------- */

TEST(short_messages_make_up_a_sample_together)
{
	for (uint32_t i = 0; i < 4 * VB_TRIAL_SAMPLES_MAX; i++) {
		EXPECT(!is_by_packets());
		begin(false);
		end(i, SAMPLE / 4, 250);
	}
	EXPECT(is_by_packets());
	EXPECT_EQ(choice.costs[0], 1000);
}

/* The messages of send() are far apart, and those here follow each other. */
TEST(time_without_a_message_in_flight_does_not_count)
{
	send(1000);
	begin(false);
	begin(true);
	EXPECT(end(1, SAMPLE, 1000));
	EXPECT(!end(2, SAMPLE, 1000));
	EXPECT_EQ(choice.costs[0], 1000);
	EXPECT_EQ(choice.costs[1], 1000);
	EXPECT_EQ(choice.costs[2], 1000);
}

TEST(a_message_that_begins_twice_is_one)
{
	begin(false);
	now_ns += 400;
	vb_train_choice_on_begun(&choice, 0, true, now_ns);
	EXPECT(!end(0, SAMPLE, 600));
	EXPECT_EQ(choice.costs[0], 1000);
}

/* Two messages that went by trains are in flight when the trial begins. */
TEST(messages_of_the_other_way_do_not_count)
{
	send(1000);
	send(1000);
	begin(false);
	begin(true);
	begin(true);
	EXPECT(end(2, SAMPLE, 1000));
	EXPECT(is_by_packets());
	begin(true);
	EXPECT(end(3, SAMPLE, 9000));
	EXPECT(end(4, SAMPLE, 9000));
	EXPECT(is_by_packets());
	EXPECT(!end(5, SAMPLE, 500));
	EXPECT_EQ(choice.trial_cost, 500);
	EXPECT_EQ(send_until_change(1000, 500), VB_TRIAL_WAIT_MIN);
}

TEST(numbers_wrap)
{
	next_number = UINT32_MAX - 1;
	begin_first_trial();
	send(500);
	EXPECT_EQ(send_until_change(1000, 500), VB_TRIAL_WAIT_MIN);
}

/* So many requests of other kinds were between the messages that the numbers seem to go back. */
TEST(a_message_long_after_the_last_one_counts)
{
	send(1000);
	next_number += 1u << 31;
	EXPECT_EQ(send_until_change(1000, 0), VB_TRIAL_SAMPLES_MAX - 1);
}

/* A sample that lasted for hours, as when the peer was stopped. */
TEST(a_cost_that_is_too_large_for_its_field_is_the_largest)
{
	send(1ull << 60);
	EXPECT_EQ(choice.costs[0], UINT32_MAX - 1);
}

/* --- disturbances ----------------------------------------------------------------------------- */

TEST(what_was_disturbed_does_not_count)
{
	begin(false);
	end(0, SAMPLE / 2, 9000);
	begin(false);
	vb_train_choice_on_disturbed(&choice);
	end(1, SAMPLE, 9000);
	EXPECT_EQ(choice.costs[0], UINT32_MAX);
	begin_first_trial();
	EXPECT_EQ(choice.costs[0], 1000);
}

TEST(a_trial_that_is_disturbed_ends_and_is_repeated_later)
{
	begin_first_trial();
	begin(false);
	vb_train_choice_on_disturbed(&choice);
	EXPECT(!is_by_packets());
	end(next_number - 1, SAMPLE, 100);
	EXPECT_EQ(send_until_change(1000, 0), VB_TRIAL_WAIT_MIN);
	send(500);
	EXPECT(is_by_packets());
}
