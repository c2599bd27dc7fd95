/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Port members come and go in all orders, killed or of their own will. Still every packet arrives
 * at its owner's socket without being handed over: a member's number is its socket's place for as
 * long as one member lives. Sockets that no member needs are closed.
 */
#include "support_link.h"

#include "base/bytes.h"
#include "host/registry/name_lock.h"
#include "host/registry/port_member_priv.h"
#include "wire/flow.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MEMBERS = 3,
	BTH = 12,
	PATIENCE_MS = 10000,
	WHOLE_QUEUE = 2000,
	DEAF_MS = 50,
	TAIL_CHECK_MS = 250
};

/* What a member reports to the test. */
struct report {
	uint32_t number; /* its own */
	uint32_t qpn; /* of a packet that arrived; 0: the member has joined */
};

struct process {
	pid_t pid;
	uint32_t number;
	int end; /* closed: the member must leave */
};

struct group {
	struct process processes[MEMBERS];
	int reports[2];
	struct vb_udp *sender;
};

static void tell(int fd, struct report report)
{
	EXPECT_EQ(write(fd, &report, sizeof(report)), (ssize_t)sizeof(report));
}

/* Acts like an adapter: takes what comes to its socket and its mailbox. */
static void be_member(int reports, int end)
{
	struct vb_port_member *member;
	struct vb_frame frames[VB_PORT_MEMBER_BATCH];
	struct vb_udp *udp;

	MUST(vb_port_member_join(0, &member));
	udp = open_link((struct vb_udp_config){ .receiver = vb_port_member_receiver(member) });
	MUST(vb_udp_steer(udp, VB_PORT_MEMBER_QPN_SHIFT, 0xff, 0));
	tell(reports, (struct report){ vb_port_member_number(member), 0 });
	for (;;) {
		struct vb_udp_datagram datagram;
		struct pollfd fds[] = { { .fd = end, .events = POLLIN },
					{ .fd = vb_udp_fd(udp), .events = POLLIN },
					{ .fd = vb_port_member_fd(member), .events = POLLIN } };

		if (!poll(fds, 3, TAIL_CHECK_MS))
			vb_port_member_drop_tail(member);
		if (fds[0].revents)
			break;
		EXPECT_EQ(vb_port_member_take(member, frames), 0);
		vb_port_member_read_all(member, udp);
		if (!vb_udp_receive(udp, &datagram, 1))
			continue;
		vb_port_member_drop_tail(member);
		tell(reports,
		     (struct report){ vb_port_member_number(member), load24(datagram.data + 5) });
	}
	vb_udp_close(udp);
	vb_port_member_leave(member);
}

static struct report await_report(struct group *group)
{
	struct report report = { 0 };
	struct pollfd fd = { .fd = group->reports[0], .events = POLLIN };

	EXPECT_EQ(poll(&fd, 1, PATIENCE_MS), 1);
	EXPECT_EQ(read(group->reports[0], &report, sizeof(report)), (ssize_t)sizeof(report));
	return report;
}

static void start_member(struct group *group, struct process *process)
{
	int end[2];

	EXPECT_EQ(pipe2(end, O_CLOEXEC), 0);
	process->pid = fork();
	EXPECT(process->pid >= 0);
	if (!process->pid) {
		alarm(60);
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* also while the process is stopped */
		close(end[1]);
		for (uint32_t i = 0; i < MEMBERS; i++)
			if (group->processes[i].pid > 0)
				close(group->processes[i].end);
		be_member(group->reports[1], end[0]);
		_exit(0);
	}
	close(end[0]);
	process->end = end[1];
	process->number = await_report(group).number;
	EXPECT(process->number < MEMBERS);
}

static void end_member(struct process *process, bool is_killed)
{
	int status;

	if (is_killed)
		kill(process->pid, SIGKILL);
	close(process->end);
	EXPECT_EQ(waitpid(process->pid, &status, 0), process->pid);
	EXPECT(is_killed ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status));
	process->pid = 0;
}

/* Sends from outside the group. */
static void send_to(struct group *group, uint32_t qpn)
{
	uint8_t bytes[BTH] = { 0 };
	struct iovec iovec = { bytes, BTH };

	store24(bytes + 5, qpn);
	send_one(group->sender, message_of("127.0.0.1", "127.0.0.1", &iovec));
}

/*
 * A member reads its mailbox first: a member that got a packet has had all mail that was sent
 * before.
 */
static void gets_its_own(struct group *group, const struct process *process)
{
	uint32_t qpn = process->number << VB_PORT_MEMBER_QPN_SHIFT | 77;
	struct report report;

	send_to(group, qpn);
	report = await_report(group);
	EXPECT_EQ(report.qpn, qpn);
	EXPECT_EQ(report.number, process->number);
}

static void each_gets_its_own(struct group *group)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (group->processes[i].pid)
			gets_its_own(group, &group->processes[i]);
}

/*
 * The only sockets left of former members are those that a member behind them needs to keep its
 * place.
 */
static void nothing_is_left_behind(const struct group *group)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < MEMBERS; i++)
		if (group->processes[i].pid && group->processes[i].number >= count)
			count = group->processes[i].number + 1;
	EXPECT_EQ(vb_udp_count_receivers(VB_ROCE_PORT), count);
}

/*
 * Starts with all three members, does `step_count` steps that the digits of `plan` choose, and
 * checks after each.
 */
static void play(struct group *group, uint32_t plan, uint32_t step_count)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		start_member(group, &group->processes[i]);
	each_gets_its_own(group);
	for (uint32_t step = 0; step < step_count; step++, plan /= 2 * MEMBERS) {
		struct process *process = &group->processes[plan % MEMBERS];

		if (process->pid)
			end_member(process, plan / MEMBERS % 2);
		else
			start_member(group, process);
		each_gets_its_own(group);
		nothing_is_left_behind(group);
	}
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (group->processes[i].pid)
			end_member(&group->processes[i], false);
}

static struct vb_udp *open_sender(void)
{
	return open_link((struct vb_udp_config){ .destination_port = VB_ROCE_PORT });
}

static struct group *make_group(void)
{
	static struct group group;

	enter_own_network();
	EXPECT_EQ(pipe2(group.reports, O_CLOEXEC), 0);
	group.sender = open_sender();
	return &group;
}

TEST(a_members_number_is_its_sockets_place_whoever_came_and_went_before)
{
	uint32_t step_count = test_is_thorough() ? 5 : 3;
	struct group *group = make_group();
	uint32_t plan_count = 1;

	for (uint32_t i = 0; i < step_count; i++)
		plan_count *= 2 * MEMBERS;
	for (uint32_t plan = 0; plan < plan_count; plan++)
		play(group, plan, step_count);
	vb_udp_close(group->sender);
}

/* A member that is too busy to answer, and leaves after a moment. */
static void be_deaf(void *argument)
{
	struct vb_port_member *member;

	MUST(vb_port_member_join(0, &member));
	tell(*(int *)argument, (struct report){ vb_port_member_number(member), 0 });
	usleep(DEAF_MS * 1000);
	vb_port_member_leave(member);
}

TEST(a_member_keeps_its_place_when_the_others_leave_while_it_joins)
{
	struct group *group = make_group();
	pid_t deaf = start_process(be_deaf, &group->reports[1]);

	await_report(group);
	start_member(group, &group->processes[0]);
	join_process(deaf);
	for (uint32_t i = 0; i < 2; i++) {
		start_member(group, &group->processes[1]);
		gets_its_own(group, &group->processes[0]);
		end_member(&group->processes[1], i);
		gets_its_own(group, &group->processes[0]);
	}
	end_member(&group->processes[0], false);
	vb_udp_close(group->sender);
}

/*
 * Nobody gives the newcomer the socket of a stopped member. When that one is killed, its socket is
 * closed, and the newcomer's moves.
 */
TEST(a_member_that_has_lost_its_place_gets_its_packets_all_the_same)
{
	struct group *group = make_group();
	struct process *stopped = &group->processes[0];
	struct process *member = &group->processes[1];
	struct process *third = &group->processes[2];
	uint32_t qpn;

	start_member(group, stopped);
	kill(stopped->pid, SIGSTOP);
	start_member(group, member);
	EXPECT_EQ(member->number, 1);
	end_member(stopped, true);
	for (uint32_t i = 0; i < 4; i++) {
		start_member(group, third);
		EXPECT(third->number != 1);
		end_member(third, i % 2);
		qpn = 1u << VB_PORT_MEMBER_QPN_SHIFT | 77;
		send_to(group, qpn);
		EXPECT_EQ(await_report(group).qpn, qpn);
	}
	end_member(member, false);
	vb_udp_close(group->sender);
}

/* The one that leaves must not leave a socket behind that takes packets of the other one. */
static void lose_place_and_leave(struct group *group)
{
	start_member(group, &group->processes[0]);
	kill(group->processes[0].pid, SIGSTOP);
	start_member(group, &group->processes[1]);
	start_member(group, &group->processes[2]);
	EXPECT_EQ(group->processes[2].number, 2);
	end_member(&group->processes[0], true);
	end_member(&group->processes[1], false);
	/* The kernel chooses a socket by the source port. */
	for (uint32_t i = 0; i < 8; i++) {
		send_to(group, 2u << VB_PORT_MEMBER_QPN_SHIFT | 77);
		EXPECT_EQ(await_report(group).qpn, 2u << VB_PORT_MEMBER_QPN_SHIFT | 77);
		vb_udp_close(group->sender);
		group->sender = open_sender();
	}
	end_member(&group->processes[2], false);
}

TEST(a_member_that_leaves_tells_another_one_that_it_has_lost_its_place)
{
	struct group *group = make_group();

	for (uint32_t i = 0; i < 5; i++)
		lose_place_and_leave(group);
	vb_udp_close(group->sender);
}

TEST(what_a_killed_member_left_unread_does_not_come_to_its_successor)
{
	struct group *group = make_group();
	struct process *killed = &group->processes[1];

	start_member(group, &group->processes[0]);
	start_member(group, killed);
	kill(killed->pid, SIGSTOP);
	for (uint32_t i = 0; i < WHOLE_QUEUE; i++)
		send_to(group, killed->number << VB_PORT_MEMBER_QPN_SHIFT | 5);
	end_member(killed, true);
	start_member(group, killed);
	each_gets_its_own(group);
	end_member(killed, false);
	end_member(&group->processes[0], false);
	vb_udp_close(group->sender);
}

TEST(a_member_that_is_stopped_does_not_keep_others_from_joining)
{
	struct group *group = make_group();

	start_member(group, &group->processes[0]);
	start_member(group, &group->processes[1]);
	kill(group->processes[0].pid, SIGSTOP);
	start_member(group, &group->processes[2]);
	/* The second member has announced everything to the new one … */
	gets_its_own(group, &group->processes[1]);
	gets_its_own(group, &group->processes[2]);
	end_member(&group->processes[1], true);
	start_member(group, &group->processes[1]); /* … which announces it to this one */
	kill(group->processes[0].pid, SIGCONT);
	each_gets_its_own(group);
	for (uint32_t i = 0; i < MEMBERS; i++)
		end_member(&group->processes[i], false);
	vb_udp_close(group->sender);
}

TEST(a_place_that_only_a_stopped_member_knows_is_not_taken_for_free)
{
	struct group *group = make_group();
	struct process *stopped = &group->processes[0];

	start_member(group, stopped);
	start_member(group, &group->processes[1]);
	each_gets_its_own(group);
	kill(stopped->pid, SIGSTOP);
	end_member(&group->processes[1], true);
	/* No member announces the remaining socket to the new one. */
	start_member(group, &group->processes[1]);
	EXPECT_EQ(group->processes[1].number, 2);
	kill(stopped->pid, SIGCONT);
	each_gets_its_own(group);
	start_member(group, &group->processes[2]);
	EXPECT_EQ(group->processes[2].number, 1);
	each_gets_its_own(group);
	end_member(&group->processes[1], true);
	each_gets_its_own(group); /* … and closes the other one's */
	nothing_is_left_behind(group);
	start_member(group, &group->processes[1]);
	each_gets_its_own(group);
	for (uint32_t i = 0; i < MEMBERS; i++)
		end_member(&group->processes[i], false);
	vb_udp_close(group->sender);
}

TEST(members_that_come_and_go_beside_a_stopped_one_leave_no_numbers_behind)
{
	struct group *group = make_group();
	uint32_t round_count = test_is_thorough() ? 400 : 20;

	start_member(group, &group->processes[0]);
	kill(group->processes[0].pid, SIGSTOP);
	start_member(group, &group->processes[1]);
	for (uint32_t i = 0; i < round_count; i++) {
		start_member(group, &group->processes[2]); /* expects a low number */
		gets_its_own(group, &group->processes[1]);
		gets_its_own(group, &group->processes[2]);
		end_member(&group->processes[2], i % 2);
	}
	kill(group->processes[0].pid, SIGCONT);
	for (uint32_t i = 0; i < 2; i++)
		end_member(&group->processes[i], false);
	vb_udp_close(group->sender);
}

/* Holds the lock like a process that joins, and is stopped. */
static void take_lock(void *argument)
{
	struct vb_mail_user user = vb_mail_user();
	struct vb_mail_name name = vb_port_member_joining_name(&user);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	EXPECT(vb_name_lock_take(&name, &user) >= 0);
	tell(*(int *)argument, (struct report){ 0, 0 });
	raise(SIGSTOP);
}

TEST(a_member_that_joins_while_another_is_stopped_in_the_middle_of_joining_waits_a_moment_only)
{
	struct group *group = make_group();
	pid_t holder = start_process(take_lock, &group->reports[1]);
	int status;

	await_report(group);
	EXPECT_EQ(waitpid(holder, &status, WUNTRACED), holder);
	start_member(group, &group->processes[0]);
	start_member(group, &group->processes[1]);
	each_gets_its_own(group);
	for (uint32_t i = 0; i < 2; i++)
		end_member(&group->processes[i], i);
	kill(holder, SIGCONT);
	join_process(holder);
	vb_udp_close(group->sender);
}
