/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages by connected transmit sockets have the numbers that the link predicted, on the cable
 * itself. Whatever is wrong with such a socket, the link goes on without it.
 */
#include "kernel_refuses.h"
#include "support_wire.h"

#include "base/bytes.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	STREAK_MAX = 1000, /* this many in a row are enough */
	BATCH = 50
};

static struct wire *open_connected_tx_wire(void)
{
	return open_wire_as((struct vb_udp_config){
		.port = VB_ROCE_PORT, .is_segmenting = true, .is_connected_tx_wanted = true });
}

static void await_packets(struct wire *wire, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		capture(wire->capture, &wire->captured);
}

/*
 * Returns when the message has arrived: on a busy machine packets stay in the kernel for a while,
 * and take room.
 */
static void deliver(struct wire *wire, struct vb_udp_message message)
{
	uint32_t length = (uint32_t)message.iovecs->iov_len;
	uint32_t segment = message.segment_length ? message.segment_length : length;

	send_one(wire->a, message);
	await_packets(wire, (length + segment - 1) / segment);
}

/*
 * Sends the message until its kind has a connected transmit socket. Returns false if that does not
 * happen.
 */
static bool reach_connected_tx(struct wire *wire, struct vb_udp_message message)
{
	uint16_t next;

	for (uint32_t i = 0; i < STREAK_MAX && !vb_udp_connected_tx(wire->a, 0, &next); i++)
		deliver(wire, message);
	return vb_udp_take_connected_tx_change(wire->a) && vb_udp_connected_tx(wire->a, 0, &next);
}

static void send_by_connected_tx(struct wire *wire, struct vb_udp_message message)
{
	EXPECT(vb_udp_connected_tx(wire->a, 0, &message.ip_id));
	message.is_connected_tx = true;
	send_one(wire->a, message);
}

/*
 * Sends messages with the numbers that the connected transmit socket would use next, except for the
 * message at index `plain`, if any. Returns how many were sent.
 */
static uint32_t send_batch(struct wire *wire, struct vb_udp_message message, uint32_t plain)
{
	struct vb_udp_message batch[BATCH];
	uint16_t next;

	EXPECT(vb_udp_connected_tx(wire->a, 0, &next));
	for (uint32_t i = 0; i < BATCH; i++) {
		batch[i] = message;
		batch[i].is_connected_tx = i != plain;
		batch[i].ip_id = i == plain ? 0 : next++;
	}
	return vb_udp_send(wire->a, batch, BATCH);
}

TEST(a_message_by_the_connected_socket_has_the_number_that_was_foretold)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", SEGMENT);

	EXPECT(reach_connected_tx(wire, message));
	for (uint32_t i = 0; i < 300; i++) {
		uint16_t foretold;

		EXPECT(vb_udp_connected_tx(wire->a, 0, &foretold));
		send_by_connected_tx(wire, message);
		expect_packet(wire, "10.9.0.1", "10.9.0.2", 0, SEGMENT);
		EXPECT_EQ(wire->captured.ip_id, foretold);
		EXPECT_EQ(wire->captured.ip[6], DF);
	}
	EXPECT(!vb_udp_take_connected_tx_change(wire->a));
	expect_count(wire->a, TX_CONNECTED, 1);
	close_wire(wire);
}

TEST(the_segments_of_a_message_by_the_connected_socket_count_on_from_its_number)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 3 * SEGMENT + 200);

	cut_segments_on_the_wire("va");
	message.segment_length = SEGMENT;
	EXPECT(reach_connected_tx(wire, message));
	for (uint32_t round = 0; round < 3; round++) {
		uint16_t foretold;

		EXPECT(vb_udp_connected_tx(wire->a, 0, &foretold));
		send_by_connected_tx(wire, message);
		for (uint32_t i = 0; i < 4; i++) {
			expect_packet(wire, "10.9.0.1", "10.9.0.2", i * SEGMENT,
				      i < 3 ? SEGMENT : 200);
			EXPECT_EQ(wire->captured.ip_id, (uint16_t)(foretold + i));
		}
	}
	close_wire(wire);
}

/* Sends one message by the connected transmit socket, and checks what is then on the cable. */
static void expect_cut(struct wire *wire, uint32_t length, uint16_t segment_length)
{
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", length);
	uint32_t step = segment_length ? segment_length : length;

	message.segment_length = segment_length;
	send_by_connected_tx(wire, message);
	for (uint32_t at = 0; at < length; at += step)
		expect_packet(wire, "10.9.0.1", "10.9.0.2", at, min32(step, length - at));
	(void)vb_udp_take_connected_tx_change(wire->a);
}

static void expect_all_kinds_of_cuts(struct wire *wire)
{
	expect_cut(wire, 1000, 300);
	expect_cut(wire, 800, 0);
	expect_cut(wire, 300, 0);
	expect_cut(wire, 200, 0);
	expect_cut(wire, 1000, 200);
	expect_cut(wire, 500, 400);
}

TEST(a_socket_that_is_told_once_how_to_cut_cuts_nothing_else)
{
	struct wire *wire = open_connected_tx_wire();

	cut_segments_on_the_wire("va");
	EXPECT(reach_connected_tx(wire, message_on(wire, "10.9.0.1", "10.9.0.2", 100)));
	expect_all_kinds_of_cuts(wire);
	expect_count(wire->a, TX_GSO_DEFAULTS, 0);
	for (uint32_t i = 0; i < 100; i++)
		expect_cut(wire, 1000, 300);
	expect_count(wire->a, TX_GSO_DEFAULTS, 1);
	for (uint32_t i = 0; i < 100; i++)
		expect_all_kinds_of_cuts(wire);
	expect_count(wire->a, TX_GSO_DEFAULTS, 1);
	for (uint32_t i = 0; i < 100; i++)
		expect_cut(wire, 800, 0);
	expect_count(wire->a, TX_GSO_DEFAULTS, 2);
	expect_all_kinds_of_cuts(wire);
	expect_count(wire->a, TX_CONNECTED, 1);
	close_wire(wire);
}

static void expect_numbers_to_stay_right(uint32_t plain, uint16_t segment_length)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 100);
	uint32_t changes = 0;

	EXPECT(reach_connected_tx(wire, message));
	message.segment_length = segment_length;
	for (uint32_t round = 0; round < 1500; round++) {
		EXPECT_EQ(send_batch(wire, message, plain), BATCH);
		changes += vb_udp_take_connected_tx_change(wire->a);
		await_packets(wire, BATCH);
	}
	EXPECT(changes > 0); /* the probes have numbers as well */
	expect_count(wire->a, TX_LOST_COUNT, 0);
	expect_count(wire->a, TX_DROP_NUMBER, 0);
	expect_count(wire->a, TX_CONNECTED, 1);
	close_wire(wire);
}

TEST(numbers_are_checked_now_and_then_and_stay_right)
{
	expect_numbers_to_stay_right(BATCH, 0);
}

/*
 * The probe for a number is also segmented. It goes to this host, where the segments are not put on
 * a cable.
 */
TEST(numbers_are_checked_on_a_socket_that_cuts_too)
{
	expect_numbers_to_stay_right(BATCH, 20);
}

/* A message behind the plain one has its number already when those in front of it have gone. */
TEST(numbers_are_checked_behind_all_that_have_one)
{
	expect_numbers_to_stay_right(BATCH / 2, 0);
}

TEST(ipv6_goes_by_the_connected_socket_too)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "fe80::1", "fe80::2", 100);

	EXPECT(reach_connected_tx(wire, message));
	send_by_connected_tx(wire, message);
	expect_packet(wire, "fe80::1", "fe80::2", 0, 100);
	EXPECT(load16(wire->captured.payload - 2) != 0);
	close_wire(wire);
}

TEST(a_message_with_another_number_is_dropped)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 100);
	struct vb_udp_message wrong;
	uint16_t next;

	EXPECT(reach_connected_tx(wire, message));
	EXPECT(vb_udp_connected_tx(wire->a, 0, &next));
	wrong = message;
	wrong.is_connected_tx = true;
	wrong.ip_id = (uint16_t)(next + 1);
	send_one(wire->a, wrong);
	EXPECT(vb_udp_take_connected_tx_change(wire->a)); /* for a caller that has lost count */
	expect_count(wire->a, TX_DROP_NUMBER, 1);
	send_by_connected_tx(wire, message);
	expect_packet(wire, "10.9.0.1", "10.9.0.2", 0, 100);
	EXPECT_EQ(wire->captured.ip_id, next);
	close_wire(wire);
}

TEST(a_message_that_does_not_go_by_the_connected_socket_is_as_ever)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 100);

	EXPECT(reach_connected_tx(wire, message));
	send_one(wire->a, message);
	expect_packet(wire, "10.9.0.1", "10.9.0.2", 0, 100);
	EXPECT_EQ(wire->captured.ip_id, 0);
	close_wire(wire);
}

TEST(a_connected_socket_that_fails_is_closed_and_the_link_goes_on)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 100);
	uint16_t next;

	EXPECT(reach_connected_tx(wire, message));
	command("ip addr del 10.9.0.1/24 dev va");
	send_by_connected_tx(wire, message);
	EXPECT(vb_udp_take_connected_tx_change(wire->a));
	EXPECT(!vb_udp_connected_tx(wire->a, 0, &next));
	command("ip addr add 10.9.0.1/24 dev va");
	send_one(wire->a, message);
	expect_packet(wire, "10.9.0.1", "10.9.0.2", 0, 100);
	EXPECT(reach_connected_tx(wire, message));
	close_wire(wire);
}

TEST(a_connected_socket_that_has_no_room_waits_for_it)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", SEGMENT);
	uint32_t rounds = 0;
	uint16_t next;

	EXPECT(reach_connected_tx(wire, message));
	if (system("tc qdisc add dev va root tbf rate 8kbit burst 1600 latency 1000s") != 0)
		SKIP("no way to make the cable slow");
	while (send_batch(wire, message, BATCH) == BATCH)
		EXPECT(++rounds < STREAK_MAX);
	EXPECT(vb_udp_connected_tx(wire->a, 0, &next));
	command("tc qdisc del dev va root");
	EXPECT(vb_udp_connected_tx(wire->a, 0, &next));
	send_by_connected_tx(wire, message);
	do
		await_packets(wire, 1);
	while (wire->captured.ip_id != next);
	expect_count(wire->a, TX_CONNECTED, 1);
	close_wire(wire);
}

TEST(a_port_that_nobody_has_is_reported_for_a_connected_socket)
{
	struct wire *wire = open_connected_tx_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 100);
	struct pollfd wait = { .fd = vb_udp_fd(wire->a), .events = POLLIN };
	struct vb_udp_address gone = { 0 };

	EXPECT(reach_connected_tx(wire, message));
	vb_udp_close(wire->b);
	send_by_connected_tx(wire, message);
	EXPECT_EQ(poll(&wait, 1, 5000), 1);
	EXPECT_EQ(vb_udp_take_unreachable(wire->a, &gone, 1), 1);
	EXPECT_MEM(gone.ip, message.destination.ip, 16);
	for (uint32_t i = 0; i < STREAK_MAX && poll(&wait, 1, 0); i++) /* of the last before it */
		(void)vb_udp_take_unreachable(wire->a, &gone, 1);
	EXPECT_EQ(poll(&wait, 1, 0), 0);
	close(wire->capture);
	vb_udp_close(wire->a);
}

/* From now on, nothing can be taken from error queues, as in a sandbox. */
static void forbid_error_queues(void)
{
	if (!kernel_refuses_flags(SYS_recvmsg, MSG_ERRQUEUE, EPERM))
		SKIP("no seccomp");
}

TEST(where_the_kernel_does_not_show_numbers_there_is_no_connected_socket_but_for_ipv6)
{
	struct wire *wire = open_connected_tx_wire();

	forbid_error_queues();
	EXPECT(!reach_connected_tx(wire, message_on(wire, "10.9.0.1", "10.9.0.2", 100)));
	expect_count(wire->a, TX_CONNECTED, 0);
	close_wire(wire);
	wire = open_connected_tx_wire();
	EXPECT(reach_connected_tx(wire, message_on(wire, "fd09::1", "fd09::2", 100)));
	close_wire(wire);
}
