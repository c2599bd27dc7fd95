/* SPDX-License-Identifier: BSD-2-Clause */
/* Several links of one user on one port: the destination QPN decides which link gets a packet. */
#include "namespace.h"
#include "support_link.h"

#include "base/bytes.h"

#include <unistd.h>

enum { MEMBERS = 4, SHIFT = 22, BTH_LENGTH = 12, NOBODY = 65534 };

struct packet {
	uint8_t bytes[BTH_LENGTH];
	struct iovec iovec;
};

/* A packet that consists of a BTH, with noise in the byte before the QPN. */
static struct vb_udp_message packet_to(struct packet *packet, const char *address, uint32_t qpn)
{
	fill_pattern(packet->bytes, BTH_LENGTH, qpn);
	store32(packet->bytes + 4, 0xa5000000u | qpn);
	packet->iovec = (struct iovec){ packet->bytes, BTH_LENGTH };
	return message_of(address, address, &packet->iovec);
}

static uint32_t qpn_of(struct vb_udp_datagram datagram)
{
	return load24(datagram.data + 5);
}

static void open_group(struct vb_udp *members[MEMBERS])
{
	struct vb_udp_config config = { .is_segmenting = true };

	for (uint32_t i = 0; i < MEMBERS; i++) {
		members[i] = open_link(config);
		config.port = vb_udp_port(members[0]);
		EXPECT_EQ(vb_udp_port(members[i]), config.port);
	}
	/* The rule applies to all links, whichever link sets it. */
	MUST(vb_udp_steer(members[2], SHIFT, MEMBERS - 1, 0));
}

static void close_group(struct vb_udp *members[MEMBERS])
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		if (members[i])
			vb_udp_close(members[i]);
}

static void expect_each_link_gets_its_own(const char *address)
{
	struct vb_udp *members[MEMBERS];
	struct packet packet;

	open_group(members);
	for (uint32_t qpn = 0; qpn < 1u << 24; qpn += 77777)
		send_one(members[0], packet_to(&packet, address, qpn));
	for (uint32_t qpn = 0; qpn < 1u << 24; qpn += 77777)
		EXPECT_EQ(qpn_of(receive_one(members[qpn >> SHIFT])), qpn);
	for (uint32_t i = 0; i < MEMBERS; i++)
		expect_silence(members[i]);
	close_group(members);
}

TEST(the_qpn_decides_which_of_four_links_gets_a_packet_ipv4)
{
	expect_each_link_gets_its_own("127.0.0.1");
}

TEST(the_qpn_decides_which_of_four_links_gets_a_packet_ipv6)
{
	expect_each_link_gets_its_own("::1");
}

TEST(packets_for_qps_0_and_1_go_where_they_are_told_to)
{
	struct vb_udp *members[MEMBERS];
	struct packet packet;

	open_group(members);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		MUST(vb_udp_steer(members[0], SHIFT, MEMBERS - 1, i));
		for (uint32_t qpn = 0; qpn < 3; qpn++)
			send_one(members[1], packet_to(&packet, "127.0.0.1", qpn));
		EXPECT_EQ(qpn_of(receive_one(members[i])), 0);
		EXPECT_EQ(qpn_of(receive_one(members[i])), 1);
		EXPECT_EQ(qpn_of(receive_one(members[0])), 2);
	}
	close_group(members);
}

TEST(a_batch_goes_whole_to_where_its_first_packet_goes)
{
	struct vb_udp *members[MEMBERS];
	struct packet first, second;
	struct vb_udp_message batch;
	struct vb_udp_datagram got[2];
	struct iovec iovecs[2];

	open_group(members);
	batch = packet_to(&first, "127.0.0.1", 3u << SHIFT);
	packet_to(&second, "127.0.0.1", 1u << SHIFT);
	iovecs[0] = first.iovec;
	iovecs[1] = second.iovec;
	batch.iovecs = iovecs;
	batch.iovec_count = 2;
	batch.segment_length = BTH_LENGTH;
	send_one(members[0], batch);
	receive_all(members[3], got, 2);
	EXPECT_EQ(qpn_of(got[0]), 3u << SHIFT);
	EXPECT_EQ(qpn_of(got[1]), 1u << SHIFT);
	expect_silence(members[1]);
	close_group(members);
}

TEST(the_last_link_moves_to_the_index_of_a_closed_one)
{
	struct vb_udp *members[MEMBERS];
	struct packet packet;

	open_group(members);
	vb_udp_close(members[1]);
	members[1] = NULL;
	send_one(members[0], packet_to(&packet, "127.0.0.1", 1u << SHIFT | 5));
	EXPECT_EQ(qpn_of(receive_one(members[3])), 1u << SHIFT | 5);
	close_group(members);
}

TEST(a_packet_for_an_index_without_a_socket_goes_to_some_member)
{
	struct vb_udp *members[MEMBERS];
	struct packet packet;
	uint64_t received = 0;

	open_group(members);
	vb_udp_close(members[3]);
	members[3] = NULL;
	send_one(members[0], packet_to(&packet, "127.0.0.1", 3u << SHIFT));
	for (uint32_t i = 0; i < 3; i++) {
		struct vb_udp_datagram got;

		received += vb_udp_receive(members[i], &got, 1);
	}
	EXPECT_EQ(received, 1);
	close_group(members);
}

TEST(a_packet_that_is_too_short_for_a_qpn_goes_to_the_first)
{
	struct vb_udp *members[MEMBERS];
	struct iovec iovec = { (char[]){ "short" }, 5 };

	open_group(members);
	send_one(members[3], message_of("127.0.0.1", "127.0.0.1", &iovec));
	EXPECT_EQ(receive_one(members[0]).length, 5);
	close_group(members);
}

TEST(a_shift_beyond_a_qpn_is_refused)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });

	EXPECT_EQ(vb_udp_steer(udp, 24, 1, 0), VB_EINVAL);
	vb_udp_close(udp);
}

/* --- processes -------------------------------------------------------------------------------- */

struct member {
	uint16_t port;
	uint32_t number;
	int ready; /* reports that the link is open */
	uint32_t packet_count;
};

static void receive_own(void *argument)
{
	const struct member *member = argument;
	struct vb_udp *udp = open_link((struct vb_udp_config){ .port = member->port });

	EXPECT_EQ(write(member->ready, "r", 1), 1);
	for (uint32_t i = 0; i < member->packet_count; i++)
		EXPECT_EQ(qpn_of(receive_one(udp)), member->number << SHIFT | i);
	expect_silence(udp);
	vb_udp_close(udp);
}

TEST(the_qpn_decides_which_of_four_processes_gets_a_packet)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct packet packet;
	pid_t processes[MEMBERS];
	int ready[2];
	char byte;

	EXPECT_EQ(pipe(ready), 0);
	for (uint32_t i = 1; i < MEMBERS; i++) {
		struct member member = { vb_udp_port(udp), i, ready[1], 100 };

		processes[i] = start_process(receive_own, &member);
		/* Waits, so that the links are opened in this order. */
		EXPECT_EQ(read(ready[0], &byte, 1), 1);
	}
	MUST(vb_udp_steer(udp, SHIFT, MEMBERS - 1, 0));
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t number = 0; number < MEMBERS; number++)
			send_one(udp, packet_to(&packet, "127.0.0.1", number << SHIFT | i));
	for (uint32_t i = 0; i < 100; i++)
		EXPECT_EQ(qpn_of(receive_one(udp)), i);
	for (uint32_t i = 1; i < MEMBERS; i++)
		join_process(processes[i]);
	vb_udp_close(udp);
}

static void be_refused(void *argument)
{
	struct vb_udp_config config = { .port = *(uint16_t *)argument };
	struct vb_udp *udp;

	EXPECT_EQ(setuid(NOBODY), 0);
	EXPECT_EQ(vb_udp_open(&config, &udp), VB_EBUSY);
}

TEST(another_user_does_not_get_into_the_group)
{
	struct vb_udp *udp;
	uint16_t port;

	need_another_user();
	udp = open_link((struct vb_udp_config){ 0 });
	port = vb_udp_port(udp);
	join_process(start_process(be_refused, &port));
	vb_udp_close(udp);
}
