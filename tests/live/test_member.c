/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers of the processes that share the port, and packets that are handed to their owner. */
#include "harness.h"

#include "host/member.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct vb_member *join(void)
{
	struct vb_member *member;

	EXPECT_EQ(vb_member_join(&member), VB_OK);
	return member;
}

static struct vb_frame frame_of(const char *text)
{
	return (struct vb_frame){
		.flow = { .source_port = 77 },
		.ip_id = 5,
		.head = { (const uint8_t *)text, (uint32_t)strlen(text) },
	};
}

TEST(every_member_has_a_number_of_its_own)
{
	struct vb_member *first = join();
	struct vb_member *second = join();

	EXPECT(vb_member_number(first) != vb_member_number(second));
	vb_member_leave(first);
	vb_member_leave(second);
}

TEST(a_number_is_free_again_when_its_process_is_killed)
{
	struct vb_member *before = join();
	uint32_t number = vb_member_number(before);
	int pipes[2];
	uint32_t child_number;
	pid_t child;

	vb_member_leave(before);
	EXPECT(!pipe(pipes));
	child = fork();
	if (!child) {
		struct vb_member *member;

		if (vb_member_join(&member))
			_exit(1);
		child_number = vb_member_number(member);
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
	EXPECT_EQ(vb_member_number(before), number);
	vb_member_leave(before);
}

TEST(a_packet_is_handed_to_the_member_it_belongs_to)
{
	struct vb_member *from = join();
	struct vb_member *to = join();
	struct vb_bytes rest[] = { { (const uint8_t *)"lo", 2 }, { (const uint8_t *)"!", 1 } };
	struct vb_frame frame = frame_of("hel");
	struct vb_frame taken[VB_MEMBER_BATCH];

	frame.rest = rest;
	frame.rest_count = 2;
	EXPECT_EQ(vb_member_take(to, taken), 0);
	EXPECT(vb_member_hand_over(from, vb_member_number(to), &frame, 1));
	EXPECT_EQ(poll(&(struct pollfd){ .fd = vb_member_fd(to), .events = POLLIN }, 1, 0), 1);
	EXPECT_EQ(vb_member_take(to, taken), 1);
	EXPECT_EQ(taken[0].head.length, 6);
	EXPECT_MEM(taken[0].head.data, "hello!", 6);
	EXPECT_EQ(taken[0].flow.source_port, 77);
	EXPECT_EQ(taken[0].ip_id, 5);
	EXPECT_EQ(vb_member_take(to, taken), 0);
	vb_member_leave(from);
	vb_member_leave(to);
}

TEST(packets_that_are_handed_over_together_arrive_together_and_in_order)
{
	struct vb_member *from = join();
	struct vb_member *to = join();
	struct vb_frame frames[] = { frame_of("one"), frame_of(""), frame_of("three") };
	struct vb_frame taken[VB_MEMBER_BATCH];

	EXPECT(vb_member_hand_over(from, vb_member_number(to), frames, 3));
	EXPECT_EQ(vb_member_take(to, taken), 3);
	EXPECT_MEM(taken[0].head.data, "one", 3);
	EXPECT_EQ(taken[1].head.length, 0);
	EXPECT_MEM(taken[2].head.data, "three", 5);
	vb_member_leave(from);
	vb_member_leave(to);
}

TEST(a_whole_batch_of_the_longest_packets_can_be_handed_over)
{
	static uint8_t bytes[4200];
	struct vb_member *from = join();
	struct vb_member *to = join();
	struct vb_frame frames[VB_MEMBER_BATCH];
	struct vb_frame taken[VB_MEMBER_BATCH];

	for (uint32_t i = 0; i < VB_MEMBER_BATCH; i++)
		frames[i] = (struct vb_frame){ .head = { bytes, sizeof(bytes) } };
	EXPECT(vb_member_hand_over(from, vb_member_number(to), frames, VB_MEMBER_BATCH));
	EXPECT_EQ(vb_member_take(to, taken), VB_MEMBER_BATCH);
	EXPECT_EQ(taken[VB_MEMBER_BATCH - 1].head.length, sizeof(bytes));
	vb_member_leave(from);
	vb_member_leave(to);
}

TEST(a_packet_for_nobody_is_lost)
{
	struct vb_member *from = join();
	struct vb_frame frame = frame_of("hello");

	EXPECT(!vb_member_hand_over(from, VB_MEMBER_COUNT - 1, &frame, 1));
	vb_member_leave(from);
}

TEST(a_member_that_does_not_keep_up_blocks_nobody)
{
	struct vb_member *from = join();
	struct vb_member *to = join();
	struct vb_frame frame = frame_of("hello");
	uint32_t handed = 0;

	while (handed < 1000000 && vb_member_hand_over(from, vb_member_number(to), &frame, 1))
		handed++;
	EXPECT(handed > 0 && handed < 1000000);
	vb_member_leave(from);
	vb_member_leave(to);
}

TEST(the_upper_bits_of_a_qpn_are_the_members_number)
{
	EXPECT_EQ(vb_member_of_qpn((vb_qpn){ 0x120034 }), 0x12);
	EXPECT(vb_member_of_qpn(VB_QPN_MULTICAST) >= VB_MEMBER_COUNT);
}
