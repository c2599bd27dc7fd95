/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QPs that measure whether their long SENDs to a local peer go faster in trains or in packets. The
 * test says how long each takes. A sample is one message of LONG bytes.
 */
#include "support_train.h"

#include "nic/qp_priv.h"

enum { LONG = 4096, ANY_NS = 1000 };

static struct pair *connect_measuring(uint32_t sample_bytes)
{
	struct setup setup = train_setup(VB_QP_RC);

	setup.has_srq = true; /* there are no credits */
	setup.train_sample_bytes = sample_bytes;
	return connect_for_trains_as(setup);
}

static uint64_t trains_sent(struct pair *p)
{
	return vb_nic_counters(node_of(p, A)->nic)->counts[VB_COUNTER_TX_TRAINS];
}

static void renew_room(struct pair *p)
{
	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, ROOM);
	vb_nic_set_link_room(node_of(p, B)->nic, SHM_LINK, ROOM);
}

/* What A has posted takes so long to be acknowledged. Returns whether it went in a train. */
static bool pass(struct pair *p, uint64_t train_ns, uint64_t packets_ns)
{
	uint64_t before = trains_sent(p);
	bool is_by_train;

	renew_room(p);
	send_all(p, A);
	is_by_train = trains_sent(p) != before;
	wait_ns(p, is_by_train ? train_ns : packets_ns);
	deliver(p);
	send_all(p, B);
	deliver(p);
	return is_by_train;
}

static void expect_received(struct pair *p)
{
	expect_completions(p, B, "wr=2 SUCCESS RECV len=4096");
	expect_completions(p, A, "wr=1 SUCCESS SEND");
	wait_ns(p, 5000); /* the program does something else */
}

/* One message. Returns whether it went in a train. */
static bool send(struct pair *p, uint64_t train_ns, uint64_t packets_ns)
{
	bool is_by_train;

	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	is_by_train = pass(p, train_ns, packets_ns);
	expect_received(p);
	return is_by_train;
}

/* How many messages go in trains, or in packets, before one goes the other way. */
static uint32_t count_same(struct pair *p, bool is_by_train, uint64_t train_ns, uint64_t packets_ns)
{
	uint32_t count = 0;

	while (send(p, train_ns, packets_ns) == is_by_train)
		EXPECT(count++ < 10000);
	return count;
}

/* Trains were measured; the next message is the first of the trial. */
static struct pair *begin_trial(uint64_t train_ns)
{
	struct pair *p = connect_measuring(LONG);

	for (uint32_t i = 0; i < VB_TRIAL_SAMPLES_MAX; i++)
		EXPECT(send(p, train_ns, ANY_NS));
	return p;
}

/* --- what is chosen --------------------------------------------------------------------------- */

TEST(where_trains_are_slow_messages_go_in_packets)
{
	struct pair *p = begin_trial(5000);

	EXPECT_EQ(count_same(p, false, 5000, 1000), 1 + VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(count_same(p, false, 5000, 1000), 2 * VB_TRIAL_WAIT_MIN);
}

TEST(where_packets_are_slow_messages_go_in_trains)
{
	struct pair *p = begin_trial(1000);

	EXPECT(!send(p, 1000, 5000));
	EXPECT_EQ(count_same(p, true, 1000, 5000), VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(count_same(p, true, 1000, 5000), 2 * VB_TRIAL_WAIT_MIN);
}

TEST(a_way_that_becomes_faster_is_taken_when_it_is_tried_again)
{
	struct pair *p = begin_trial(1000);

	EXPECT(!send(p, 1000, 5000));
	EXPECT_EQ(count_same(p, true, 1000, 300), VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(count_same(p, false, 1000, 300), VB_TRIAL_WAIT_MIN);
}

TEST(without_a_length_of_samples_nothing_is_measured)
{
	struct pair *p = connect_measuring(0);

	for (uint32_t i = 0; i < 2 * VB_TRIAL_SAMPLES_MAX; i++)
		EXPECT(send(p, 3000, 1000));
}

TEST(a_QP_that_was_reset_begins_again)
{
	struct pair *p = begin_trial(3000);

	EXPECT(!send(p, 3000, 1000));
	EXPECT_EQ(node_of(p, A)->qp->train_choice.chosen, VB_BY_PACKETS);
	modify_state(p, A, VB_STATE_RESET);
	EXPECT_EQ(node_of(p, A)->qp->train_choice.chosen, VB_BY_TRAINS);
}

/* --- what counts ------------------------------------------------------------------------------ */

/* Two messages and another request between them, `count` times. Returns how often by trains. */
static uint32_t send_with(struct pair *p, void (*post_other)(struct pair *p), uint32_t count)
{
	uint32_t trains = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct vb_completion completions[3];

		for (uint32_t wr_id = 2; wr_id < 5; wr_id++)
			post_long_recv(p, wr_id, LONG);
		post_send(p, A, 1, LONG);
		post_other(p);
		post_send(p, A, 1, LONG);
		trains += pass(p, 1000, 1000);
		EXPECT_EQ(vb_cq_poll(node_of(p, A)->send_cq, completions, 3), 3);
		EXPECT_EQ(vb_cq_poll(node_of(p, B)->recv_cq, completions, 3), 3);
	}
	return trains;
}

static void post_short_send(struct pair *p)
{
	post_send(p, A, 4, TRAIN_MIN - 48);
}

static void post_long_write(struct pair *p)
{
	post_write_imm(p, A, 4, LONG, 5);
}

TEST(messages_too_short_for_trains_do_not_count)
{
	struct pair *p = connect_measuring(6 * LONG);

	EXPECT_EQ(send_with(p, post_short_send, 10), 3 * VB_TRIAL_SAMPLES_MAX);
}

TEST(operations_that_have_no_trains_do_not_count)
{
	struct pair *p = connect_measuring(6 * LONG);

	EXPECT_EQ(send_with(p, post_long_write, 10), 3 * VB_TRIAL_SAMPLES_MAX);
}

/* The message comes to an SRQ without a receive, and comes again. */
static void send_without_receive(struct pair *p)
{
	post_send(p, A, 1, LONG);
	renew_room(p);
	send_all(p, A);
	deliver(p);
	send_all(p, B);
	deliver(p);
	expect_counter(p, A, RNR_NAK_RETRY_ERR, 1);
	post_long_recv(p, 2, LONG);
	wait_until_work(p, A);
	pass(p, ANY_NS, ANY_NS);
	expect_received(p);
}

TEST(a_message_for_which_the_peer_had_no_receive_does_not_count)
{
	struct pair *p = connect_measuring(LONG);

	EXPECT(send(p, 1000, ANY_NS));
	EXPECT(send(p, 1000, ANY_NS));
	send_without_receive(p);
	EXPECT(send(p, 1000, ANY_NS));
	EXPECT(!send(p, 1000, ANY_NS));
}

TEST(a_trial_for_which_the_peer_had_no_receive_is_repeated_later)
{
	struct pair *p = begin_trial(3000);

	send_without_receive(p);
	EXPECT_EQ(count_same(p, true, 3000, 1000), VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(count_same(p, false, 3000, 1000), VB_TRIAL_WAIT_MIN);
}

TEST(a_message_that_was_lost_and_came_again_does_not_count)
{
	struct pair *p = connect_measuring(LONG);

	EXPECT(send(p, 1000, ANY_NS));
	EXPECT(send(p, 1000, ANY_NS));
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	lose(p);
	wait_ns(p, ACK_TIMEOUT_NS);
	pass(p, ANY_NS, ANY_NS);
	expect_received(p);
	EXPECT(send(p, 1000, ANY_NS));
	EXPECT(!send(p, 1000, ANY_NS));
}

/* They went in packets, but it was trains that were measured. */
TEST(messages_that_follow_a_refused_train_do_not_count)
{
	struct pair *p = connect_measuring(LONG);

	forbid_fetching(true);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	settle(p);
	expect_received(p);
	forbid_fetching(false);
	EXPECT_EQ(count_same(p, false, 3000, 1000), 16);
	EXPECT_EQ(count_same(p, true, 3000, 1000), VB_TRIAL_SAMPLES_MAX - 1);
}

/* A refused train in a trial: the next trial is a real one. */
TEST(a_refused_train_is_tried_again_after_so_many_messages_not_trials)
{
	struct pair *p = begin_trial(5000);

	EXPECT_EQ(count_same(p, false, 5000, 1000), 1 + VB_TRIAL_WAIT_MIN);
	EXPECT_EQ(count_same(p, false, 5000, 1000), 2 * VB_TRIAL_WAIT_MIN);
	for (uint32_t i = 0; i < 4 * VB_TRIAL_WAIT_MIN; i++)
		EXPECT(!send(p, 5000, 1000));
	forbid_fetching(true);
	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	settle(p);
	expect_received(p);
	forbid_fetching(false);
	EXPECT_EQ(count_same(p, false, 5000, 1000), 8 * VB_TRIAL_WAIT_MIN);
}
