/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the processes that share the port, and packets that are handed to their owner. */
#include "namespace.h"
#include "support_link.h"

#include "host/registry/port_member_priv.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, OTHER_PORT = 4000 };

static struct vb_mail_user group_user; /* whose names the members have */

static struct vb_port_member *join(void)
{
	static bool is_alone;
	struct vb_port_member *member;

	if (!is_alone)
		enter_own_network();
	is_alone = true;
	group_user = vb_mail_user();
	EXPECT_EQ(vb_port_member_join(0, &member), VB_OK);
	return member;
}

static struct vb_frame frame_of(const char *text)
{
	return (struct vb_frame){
		.path.ip = { .source_port = 77 },
		.ip_id = 5,
		.head = { (const uint8_t *)text, (uint32_t)strlen(text) },
	};
}

TEST(every_member_has_a_number_of_its_own)
{
	struct vb_port_member *first = join();
	struct vb_port_member *second = join();

	EXPECT(vb_port_member_number(first) != vb_port_member_number(second));
	vb_port_member_leave(first);
	vb_port_member_leave(second);
}

TEST(a_member_is_alone_while_nobody_else_has_a_socket_on_the_port)
{
	struct vb_port_member *first = join();
	struct vb_port_member *second;

	EXPECT(vb_port_member_is_alone(first));
	second = join();
	EXPECT(!vb_port_member_is_alone(first));
	vb_port_member_leave(second);
	EXPECT(!vb_port_member_is_alone(first)); /* the member has left a socket behind */
	vb_port_member_drop_tail(first);
	EXPECT(vb_port_member_is_alone(first));
	vb_port_member_leave(first);
}

TEST(a_number_is_free_again_when_its_process_is_killed)
{
	struct vb_port_member *before = join();
	uint32_t number = vb_port_member_number(before);
	int pipes[2];
	uint32_t child_number;
	pid_t child;

	vb_port_member_leave(before);
	EXPECT(!pipe(pipes));
	child = fork();
	if (!child) {
		struct vb_port_member *member;

		if (vb_port_member_join(0, &member))
			_exit(1);
		child_number = vb_port_member_number(member);
		if (write(pipes[1], &child_number, sizeof(child_number)) < 0)
			_exit(1);
		pause();
	}
	EXPECT_EQ(read(pipes[0], &child_number, sizeof(child_number)),
		  (ssize_t)sizeof(child_number));
	EXPECT_EQ(child_number, number);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	before = join();
	EXPECT_EQ(vb_port_member_number(before), number);
	vb_port_member_leave(before);
}

TEST(a_packet_is_handed_to_the_member_it_belongs_to)
{
	struct vb_port_member *from = join();
	struct vb_port_member *to = join();
	struct vb_bytes rest[] = { { (const uint8_t *)"lo", 2 }, { (const uint8_t *)"!", 1 } };
	struct vb_frame frame = frame_of("hel");
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];

	frame.rest = rest;
	frame.rest_count = 2;
	EXPECT_EQ(vb_port_member_take(to, taken), 0);
	EXPECT(vb_port_member_hand_over(from, vb_port_member_number(to), &frame, 1));
	EXPECT_EQ(poll(&(struct pollfd){ .fd = vb_port_member_fd(to), .events = POLLIN }, 1, 0), 1);
	EXPECT_EQ(vb_port_member_take(to, taken), 1);
	EXPECT_EQ(taken[0].head.length, 6);
	EXPECT_MEM(taken[0].head.data, "hello!", 6);
	EXPECT_EQ(taken[0].path.ip.source_port, 77);
	EXPECT_EQ(taken[0].ip_id, 5);
	EXPECT_EQ(vb_port_member_take(to, taken), 0);
	vb_port_member_leave(from);
	vb_port_member_leave(to);
}

TEST(packets_that_are_handed_over_together_arrive_together_and_in_order)
{
	struct vb_port_member *from = join();
	struct vb_port_member *to = join();
	struct vb_frame frames[] = { frame_of("one"), frame_of(""), frame_of("three") };
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];

	EXPECT(vb_port_member_hand_over(from, vb_port_member_number(to), frames, 3));
	EXPECT_EQ(vb_port_member_take(to, taken), 3);
	EXPECT_MEM(taken[0].head.data, "one", 3);
	EXPECT_EQ(taken[1].head.length, 0);
	EXPECT_MEM(taken[2].head.data, "three", 5);
	vb_port_member_leave(from);
	vb_port_member_leave(to);
}

TEST(a_whole_batch_of_the_longest_packets_can_be_handed_over)
{
	static uint8_t bytes[4200];
	struct vb_port_member *from = join();
	struct vb_port_member *to = join();
	struct vb_frame frames[VB_PORT_MEMBER_BATCH];
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];

	for (uint32_t i = 0; i < VB_PORT_MEMBER_BATCH; i++)
		frames[i] = (struct vb_frame){ .head = { bytes, sizeof(bytes) } };
	EXPECT(vb_port_member_hand_over(from, vb_port_member_number(to), frames,
					VB_PORT_MEMBER_BATCH));
	EXPECT_EQ(vb_port_member_take(to, taken), VB_PORT_MEMBER_BATCH);
	EXPECT_EQ(taken[VB_PORT_MEMBER_BATCH - 1].head.length, sizeof(bytes));
	vb_port_member_leave(from);
	vb_port_member_leave(to);
}

TEST(a_packet_for_nobody_is_lost)
{
	struct vb_port_member *from = join();
	struct vb_frame frame = frame_of("hello");

	EXPECT(!vb_port_member_hand_over(from, VB_PORT_MEMBER_COUNT - 1, &frame, 1));
	vb_port_member_leave(from);
}

TEST(a_member_that_does_not_keep_up_blocks_nobody)
{
	struct vb_port_member *from = join();
	struct vb_port_member *to = join();
	struct vb_frame frame = frame_of("hello");
	uint32_t handed = 0;

	while (handed < 1000000 &&
	       vb_port_member_hand_over(from, vb_port_member_number(to), &frame, 1))
		handed++;
	EXPECT(handed > 0 && handed < 1000000);
	vb_port_member_leave(from);
	vb_port_member_leave(to);
}

TEST(the_upper_bits_of_a_qpn_are_the_members_number)
{
	EXPECT_EQ(vb_port_member_of_qpn((vb_qpn){ 0x120034 }), 0x12);
	EXPECT(vb_port_member_of_qpn(VB_QPN_MULTICAST) >= VB_PORT_MEMBER_COUNT);
}

/* --- receiving sockets ------------------------------------------------------------------------ */

static uint32_t open_descriptors(void)
{
	DIR *directory = opendir("/proc/self/fd");
	uint32_t count = 0;

	while (readdir(directory))
		count++;
	closedir(directory);
	return count;
}

/* Gives the first member a socket as a newcomer would. */
static void give(uint32_t number, int fd)
{
	struct vb_port_member_sockets sockets = { .kind = VB_PORT_MEMBER_SOCKETS,
						  .count = 1,
						  .numbers = { (uint8_t)number } };
	struct iovec part = { &sockets, sizeof(sockets) };
	struct vb_mail_name name = vb_port_member_name(&group_user, 0);
	struct vb_mail_box *mailbox = vb_mail_open(&group_user, 1);

	EXPECT_EQ(vb_mail_send_fds(mailbox, &name, &part, &fd, 1), 0);
	vb_mail_close(mailbox);
}

static int receiver_on(uint16_t port)
{
	struct vb_udp_config config = { .port = port };
	int fd;

	MUST(vb_udp_receiver_open(&config, &fd));
	return fd;
}

static void expect_refused(struct vb_port_member *member, uint32_t number, int fd)
{
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];
	uint32_t before = open_descriptors();
	uint32_t held = vb_receivers_count();

	give(number, fd);
	EXPECT_EQ(vb_port_member_take(member, taken), 0);
	EXPECT_EQ(vb_receivers_count(), held);
	EXPECT_EQ(open_descriptors(), before);
}

TEST(a_receiving_socket_that_a_member_is_given_is_kept_once)
{
	struct vb_port_member *member = join();
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];
	int fd = receiver_on(VB_ROCE_PORT);

	give(7, fd);
	EXPECT_EQ(vb_port_member_take(member, taken), 0);
	EXPECT(vb_receivers_fd(7) >= 0);
	expect_refused(member, 7, fd);
	close(fd);
	vb_port_member_leave(member);
}

TEST(descriptors_that_are_no_receiving_sockets_of_the_port_are_refused_and_closed)
{
	struct vb_port_member *member = join();
	int other = receiver_on(OTHER_PORT);
	int own = receiver_on(VB_ROCE_PORT);
	int pipes[2];

	EXPECT_EQ(pipe(pipes), 0);
	expect_refused(member, 7, pipes[0]);
	expect_refused(member, 7, other);
	expect_refused(member, 7, vb_port_member_fd(member));
	expect_refused(member, VB_PORT_MEMBER_COUNT, own);
	vb_port_member_leave(member);
}

/* Waits also for the end of a rest. */
static void await_mail(struct vb_port_member *member)
{
	EXPECT_EQ(poll(&(struct pollfd){ .fd = vb_port_member_fd(member), .events = POLLIN }, 1,
		       10000),
		  1);
}

static void give_as_nobody(void *argument)
{
	EXPECT_EQ(setuid(NOBODY), 0);
	give(7, *(int *)argument);
}

TEST(descriptors_of_another_user_are_refused_and_closed)
{
	struct vb_port_member *member = join();
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];
	int fd = receiver_on(VB_ROCE_PORT);
	uint32_t before;

	need_another_user();
	join_process(start_process(give_as_nobody, &fd));
	EXPECT_EQ(vb_port_member_take(member, taken), 0);
	/* With a timer: the mailbox rests after a process of another user has connected. */
	before = open_descriptors();
	await_mail(member);
	join_process(start_process(give_as_nobody, &fd));
	EXPECT_EQ(vb_port_member_take(member, taken), 0);
	EXPECT_EQ(vb_receivers_count(), 1);
	EXPECT_EQ(open_descriptors(), before);
	close(fd);
	vb_port_member_leave(member);
}

TEST(a_message_that_is_cut_short_is_thrown_away)
{
	struct vb_port_member *member = join();
	struct vb_frame taken[VB_PORT_MEMBER_BATCH];
	uint32_t kinds[] = { VB_PORT_MEMBER_PACKETS, VB_PORT_MEMBER_SOCKETS_QUERY,
			     VB_PORT_MEMBER_SOCKETS, 5 };
	struct vb_mail_name name = vb_port_member_name(&group_user, 0);
	struct vb_mail_box *mailbox = vb_mail_open(&group_user, 1);

	for (uint32_t i = 0; i < 4; i++) {
		for (size_t length = 0; length <= sizeof(kinds[i]); length++) {
			struct iovec part = { &kinds[i], length };

			EXPECT_EQ(vb_mail_send(mailbox, &name, &part, 1), 0);
			EXPECT_EQ(vb_port_member_take(member, taken), 0);
		}
	}
	vb_mail_close(mailbox);
	vb_port_member_leave(member);
}

TEST(when_the_last_member_of_a_process_leaves_its_descriptors_are_closed)
{
	struct vb_port_member *first = join();
	struct vb_port_member *second;
	uint32_t before;

	vb_port_member_leave(first);
	before = open_descriptors();
	first = join();
	second = join();
	vb_port_member_leave(first);
	vb_port_member_leave(second);
	EXPECT_EQ(open_descriptors(), before);
}
