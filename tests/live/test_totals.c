/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The totals of a device: they include every process that has it or had it, whichever way that
 * ended, and begin again when no process is left.
 */
#include "namespace.h"
#include "support_link.h"

#include "host/registry/port_member_priv.h"
#include "host/registry/totals_shown.h"
#include "host/sys/clock.h"
#include "host/sys/sealed.h"
#include "link/fd.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICE = 7, OTHER_DEVICE = 8 };

static struct vb_port_member *join(void)
{
	static bool is_alone;
	struct vb_port_member *member;

	if (!is_alone)
		enter_own_network();
	is_alone = true;
	EXPECT_EQ(vb_port_member_join(0, &member), VB_OK);
	return member;
}

/* Without asking: this process has the memory. */
static struct vb_totals_sum sum_of(uint32_t ifindex)
{
	struct vb_totals *totals =
		vb_sealed_map(vb_totals_fd(), sizeof(struct vb_totals), PROT_READ);
	struct vb_totals_sum sum;

	EXPECT(totals);
	vb_totals_add_up(totals, ifindex, &sum);
	munmap(totals, sizeof(*totals));
	return sum;
}

static uint64_t packets_of(uint32_t ifindex)
{
	return sum_of(ifindex).counters.counts[VB_COUNTER_TX_PACKETS];
}

/* Counts as an adapter with that number would. */
static void count(const struct vb_port_member *member, uint32_t ifindex, uint64_t packets)
{
	struct vb_totals_row *row = vb_totals_take_row(ifindex, vb_port_member_number(member));

	EXPECT(row);
	row->counters.counts[VB_COUNTER_TX_PACKETS] += packets;
	vb_totals_give_row(row);
}

/* Answers questions until the child has ended. Returns its exit status, or the signal. */
static int serve(struct vb_port_member *member, pid_t child)
{
	struct vb_frame frames[VB_PORT_MEMBER_BATCH];
	int status;

	while (!waitpid(child, &status, WNOHANG)) {
		struct pollfd fd = { .fd = vb_port_member_fd(member), .events = POLLIN };

		poll(&fd, 1, 10);
		(void)vb_port_member_take(member, frames);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
}

TEST(the_totals_are_the_sum_of_the_members_of_a_device)
{
	struct vb_port_member *first = join();
	struct vb_port_member *second = join();

	count(first, DEVICE, 3);
	count(second, DEVICE, 4);
	EXPECT_EQ(packets_of(DEVICE), 7);
	EXPECT_EQ(packets_of(OTHER_DEVICE), 0);
	vb_port_member_leave(first);
	vb_port_member_leave(second);
}

TEST(what_a_member_has_counted_stays_when_it_has_left)
{
	struct vb_port_member *first = join();
	struct vb_port_member *second = join();

	count(second, DEVICE, 4);
	vb_port_member_leave(second);
	EXPECT_EQ(packets_of(DEVICE), 4);
	second = join();
	count(second, DEVICE, 1); /* with the same number: in the same row */
	EXPECT_EQ(packets_of(DEVICE), 5);
	vb_port_member_leave(second);
	second = join();
	count(second, OTHER_DEVICE, 10); /* with the same number again */
	EXPECT_EQ(packets_of(DEVICE), 5);
	EXPECT_EQ(packets_of(OTHER_DEVICE), 10);
	vb_port_member_leave(first);
	vb_port_member_leave(second);
}

TEST(the_totals_begin_again_when_no_member_is_left)
{
	struct vb_port_member *member = join();

	count(member, DEVICE, 3);
	vb_port_member_leave(member);
	EXPECT_EQ(vb_totals_fd(), -1);
	member = join();
	EXPECT_EQ(packets_of(DEVICE), 0);
	vb_port_member_leave(member);
}

TEST(the_counts_of_a_process_that_was_killed_stay)
{
	struct vb_port_member *member = join();
	pid_t child;

	count(member, DEVICE, 1);
	child = fork();
	if (!child) {
		vb_fd_close_inherited();
		vb_receivers_forget();
		vb_totals_forget();
		vb_port_member_leave(member);
		count(join(), DEVICE, 20);
		raise(SIGKILL);
	}
	EXPECT_EQ(serve(member, child), SIGKILL);
	EXPECT_EQ(packets_of(DEVICE), 21);
	vb_port_member_leave(member);
}

TEST(a_process_that_loses_its_descriptor_keeps_the_counts)
{
	struct vb_port_member *member = join();
	struct vb_totals_row *row = vb_totals_take_row(DEVICE, vb_port_member_number(member));
	struct vb_totals_row *again;

	row->counters.counts[VB_COUNTER_TX_PACKETS] = 5;
	close(vb_totals_fd());
	EXPECT_EQ(vb_totals_fd(), -1);
	vb_totals_ensure();
	EXPECT_EQ(packets_of(DEVICE), 5);
	row->counters.counts[VB_COUNTER_RX_PACKETS]++; /* still there, until it is given back */
	again = vb_totals_take_row(DEVICE, vb_port_member_number(member));
	EXPECT(again != row);
	vb_totals_give_row(row);
	again->counters.counts[VB_COUNTER_TX_PACKETS]++;
	EXPECT_EQ(packets_of(DEVICE), 6);
	vb_totals_give_row(again);
	vb_port_member_leave(member);
}

TEST(memory_that_is_not_the_totals_is_refused)
{
	struct vb_port_member *member = join();
	int fds[] = { vb_sealed_open("short", 4096),
		      vb_sealed_open("empty", sizeof(struct vb_totals)),
		      vb_fd_own(memfd_create("unsealed", MFD_CLOEXEC)) };

	EXPECT_EQ(ftruncate(fds[2], sizeof(struct vb_totals)), 0);
	close(vb_totals_fd());
	for (uint32_t i = 0; i < 3; i++) {
		vb_totals_learn(fds[i]);
		EXPECT_EQ(vb_totals_fd(), -1);
		EXPECT(!vb_fd_is_ours(fds[i]));
	}
	vb_port_member_leave(member);
}

TEST(what_an_initiator_executes_counts_at_both_devices)
{
	struct vb_port_member *member = join();
	struct vb_totals_row *row = vb_totals_take_row(DEVICE, vb_port_member_number(member));
	struct vb_totals_direct *direct = vb_totals_direct(row, OTHER_DEVICE);
	struct vb_totals_sum sum;

	*direct = (struct vb_totals_direct){ .ops = 2, .written = 100, .read = 8 };
	EXPECT(vb_totals_direct(row, OTHER_DEVICE) == direct);
	EXPECT(vb_totals_direct(row, DEVICE) != direct);
	EXPECT(!vb_totals_direct(row, 0));
	sum = sum_of(DEVICE);
	EXPECT_EQ(sum.initiated.ops, 2);
	EXPECT_EQ(sum.targeted.ops, 0);
	sum = sum_of(OTHER_DEVICE);
	EXPECT_EQ(sum.initiated.ops, 0);
	EXPECT_EQ(sum.targeted.written, 100);
	EXPECT_EQ(sum.targeted.read, 8);
	vb_totals_give_row(row);
	vb_port_member_leave(member);
}

TEST(when_all_rows_are_taken_a_newcomer_gets_none)
{
	static struct vb_totals_row *rows[VB_TOTALS_ROWS];
	struct vb_port_member *member = join();

	for (uint32_t i = 0; i < VB_TOTALS_ROWS; i++)
		EXPECT((rows[i] = vb_totals_take_row(i + 1, 0)));
	EXPECT(!vb_totals_take_row(DEVICE, 1));
	EXPECT(vb_totals_take_row(DEVICE, 0) == rows[DEVICE - 1]);
	vb_totals_give_row(rows[DEVICE - 1]);
	for (uint32_t i = 0; i < VB_TOTALS_DEVICES; i++)
		EXPECT(vb_totals_direct(rows[0], i + 1));
	EXPECT(!vb_totals_direct(rows[0], VB_TOTALS_DEVICES + 1));
	for (uint32_t i = 0; i < VB_TOTALS_ROWS; i++)
		vb_totals_give_row(rows[i]);
	vb_port_member_leave(member);
}

TEST(any_process_of_the_user_can_ask_for_the_totals)
{
	struct vb_port_member *member = join();
	pid_t child;

	count(member, DEVICE, 9);
	child = fork();
	if (!child) {
		struct vb_totals_sum sum;
		int error = -1;
		const struct vb_totals *totals = vb_totals_query(&error);

		vb_totals_add_up(totals, DEVICE, &sum);
		vb_totals_end_query(totals);
		_exit(error ? 200 : (int)sum.counters.counts[VB_COUNTER_TX_PACKETS]);
	}
	EXPECT_EQ(serve(member, child), 9);
	vb_port_member_leave(member);
}

TEST(without_a_member_there_are_no_totals_and_no_error)
{
	struct vb_port_member *member = join();
	struct vb_totals_sum sum;
	int error = -1;

	vb_port_member_leave(member);
	EXPECT(!vb_totals_query(&error));
	EXPECT_EQ(error, 0);
	vb_totals_add_up(NULL, DEVICE, &sum);
	EXPECT_EQ(sum.counters.counts[VB_COUNTER_TX_PACKETS], 0);
}

TEST(members_that_do_not_answer_are_an_error)
{
	struct vb_port_member *member = join();
	int error = -1;

	EXPECT(!vb_totals_query(&error)); /* the member would have to answer meanwhile */
	EXPECT_EQ(error, EAGAIN);
	vb_port_member_leave(member);
}

TEST(a_member_without_totals_is_an_error_at_once)
{
	struct vb_port_member *member = join();
	uint64_t begin_ns = vb_clock_now();
	pid_t child;

	close(vb_totals_fd());
	child = fork();
	if (!child) {
		int error = -1;

		_exit(vb_totals_query(&error) ? 200 : error);
	}
	EXPECT_EQ(serve(member, child), EAGAIN);
	EXPECT(vb_clock_now() - begin_ns < VB_SECOND_NS);
	vb_port_member_leave(member);
}

TEST(every_counter_that_is_shown_has_a_name_of_its_own)
{
	static const struct vb_totals_sum sum;
	char name[VB_TOTALS_NAME_MAX], other[VB_TOTALS_NAME_MAX];
	uint64_t value;

	for (int group = VB_TOTALS_COUNTERS; group <= VB_TOTALS_HW_COUNTERS; group++)
		for (uint32_t i = 0; vb_totals_shown(&sum, group, i, name, &value); i++)
			for (uint32_t k = 0; k < i; k++) {
				EXPECT(vb_totals_shown(&sum, group, k, other, &value));
				EXPECT(strcmp(name, other) != 0);
			}
}

TEST(data_counts_in_words_of_four_bytes_with_what_was_executed)
{
	struct vb_totals_sum sum = {
		.initiated = { .ops = 2, .written = 40, .read = 8 },
		.targeted = { .ops = 3, .written = 400, .read = 80 },
	};
	char name[VB_TOTALS_NAME_MAX];
	uint64_t value;

	sum.counters.counts[VB_COUNTER_TX_BYTES] = 4000;
	sum.counters.counts[VB_COUNTER_RX_BYTES] = 40000;
	EXPECT(vb_totals_shown(&sum, VB_TOTALS_COUNTERS, 0, name, &value));
	EXPECT_STR(name, "port_xmit_data");
	EXPECT_EQ(value, (4000 + 40 + 80) / 4);
	EXPECT(vb_totals_shown(&sum, VB_TOTALS_COUNTERS, 1, name, &value));
	EXPECT_STR(name, "port_rcv_data");
	EXPECT_EQ(value, (40000 + 400 + 8) / 4);
}
