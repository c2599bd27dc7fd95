/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving end may open a connected socket for its busiest sender. Everything must still
 * arrive, in order and with its addresses, and so must the datagrams of other senders.
 */
#include "support_wire.h"

#include "base/bytes.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

enum {
	STREAK_MAX = 20000, /* messages in a row, after which there must be a connected socket */
	FORBIDDEN_STREAK = 1000, /* messages, where no connected socket is allowed */
	READS_MAX = 20, /* within this many reads, every socket is read at least once */
	LENGTH = 100,
	PATIENCE_MS = 10000
};

/* Opens both ends with two source ports. The test is at end B, which receives. */
static struct wire *open_connected_rx_wire(struct vb_udp_config config)
{
	struct wire *wire;

	config.port = VB_ROCE_PORT;
	config.is_segmenting = true;
	config.source_count = 2;
	wire = open_wire_as(config);
	enter_end(END_B);
	vb_udp_allow_connected_rx(wire->b, true);
	return wire;
}

static struct vb_udp_message numbered(struct wire *wire, uint32_t number)
{
	store32(wire->bytes, number);
	return message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);
}

static uint64_t connected_rx_count(const struct vb_udp *udp)
{
	return vb_udp_counters(udp)[VB_UDP_RX_CONNECTED];
}

static bool is_readable(const struct vb_udp *udp, int timeout_ms)
{
	struct pollfd fd = { .fd = vb_udp_fd(udp), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

static bool is_readable_now(const struct vb_udp *udp)
{
	return is_readable(udp, 0);
}

static uint32_t take_any(struct vb_udp *udp)
{
	struct vb_udp_datagram got[64];

	return vb_udp_receive(udp, got, 64);
}

/* Not every read covers all sockets. */
static struct vb_udp_datagram receive_soon(struct vb_udp *udp)
{
	struct vb_udp_datagram got;

	for (uint32_t i = 0; i < READS_MAX; i++)
		if (vb_udp_receive(udp, &got, 1))
			return got;
	return receive_one(udp);
}

static void send_until_connected(struct wire *wire, struct vb_udp_message message)
{
	uint64_t before = connected_rx_count(wire->b);

	for (uint32_t i = 0; i < STREAK_MAX && connected_rx_count(wire->b) == before; i++) {
		send_one(wire->a, message);
		(void)receive_soon(wire->b);
	}
	EXPECT_EQ(connected_rx_count(wire->b), before + 1);
	EXPECT_EQ(take_any(wire->b), 0); /* nothing is left in the receiver */
}

/*
 * Takes the datagrams from number `next` to `end`, which are sent already and come in order, and
 * finds all sockets empty then.
 */
static uint32_t take_numbers(struct vb_udp *udp, uint32_t next, uint32_t end)
{
	uint32_t count = 0;

	for (uint32_t empty_reads = 0; empty_reads < READS_MAX;) {
		struct vb_udp_datagram got[64];
		uint32_t got_count = vb_udp_receive(udp, got, 64);

		for (uint32_t i = 0; i < got_count; i++)
			EXPECT_EQ(load32(got[i].data), next + count++);
		empty_reads = got_count ? 0 : empty_reads + 1;
		/* A busy kernel delivers later than sendmsg() returns. */
		if (next + count < end) {
			if (!is_readable(udp, PATIENCE_MS))
				break;
			empty_reads = 0;
		}
	}
	return count;
}

static void expect_from(struct wire *wire, const struct vb_udp_datagram *got, const char *source,
			const char *destination)
{
	struct vb_udp_address from = address_of(source), to = address_of(destination);

	EXPECT_EQ(got->length, LENGTH);
	EXPECT_MEM(got->data, wire->bytes, LENGTH);
	EXPECT_MEM(got->source.ip, from.ip, 16);
	EXPECT_MEM(got->destination.ip, to.ip, 16);
	EXPECT_EQ(got->source_port, vb_udp_source_port(wire->a, 0));
	EXPECT_EQ(got->segment_index, 0);
	EXPECT_EQ(got->traffic_class, 0x6a);
	EXPECT_EQ(got->hop_limit, 33);
}

static void expect_connected_rx_between(const char *source, const char *destination)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	struct vb_udp_message message = message_on(wire, source, destination, LENGTH);
	bool is_link_local = source[0] == 'f' && source[1] == 'e';

	send_until_connected(wire, message);
	for (uint32_t i = 0; i < 100; i++) {
		struct vb_udp_datagram got;

		send_one(wire->a, message);
		got = receive_one(wire->b);
		expect_from(wire, &got, source, destination);
		EXPECT_EQ(got.source.scope, is_link_local ? got.destination.scope : 0);
	}
	EXPECT_EQ(connected_rx_count(wire->b), 1);
	EXPECT(vb_udp_is_intact(wire->b));
	close_wire(wire);
}

TEST(a_busy_sender_gets_a_connected_socket_and_its_datagrams_look_the_same)
{
	expect_connected_rx_between("10.9.0.1", "10.9.0.2");
}

TEST(a_busy_sender_with_an_ipv6_address_gets_a_connected_socket)
{
	expect_connected_rx_between("fd09::1", "fd09::2");
}

TEST(a_busy_sender_with_a_link_local_address_gets_a_connected_socket)
{
	expect_connected_rx_between("fe80::1", "fe80::2");
}

TEST(a_coalesced_message_by_a_connected_socket_is_cut_up)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);
	struct vb_udp_datagram got[5];

	send_until_connected(wire, message);
	message = message_on(wire, "10.9.0.1", "10.9.0.2", 4 * SEGMENT + 10);
	message.segment_length = SEGMENT;
	send_one(wire->a, message);
	receive_all(wire->b, got, 5);
	for (uint32_t i = 0; i < 5; i++) {
		EXPECT_EQ(got[i].segment_index, i);
		EXPECT_EQ(got[i].length, i < 4 ? SEGMENT : 10);
		EXPECT_MEM(got[i].data, wire->bytes + (size_t)i * SEGMENT, got[i].length);
	}
	close_wire(wire);
}

TEST(a_sender_gets_no_connected_socket_where_that_is_not_allowed)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });

	vb_udp_allow_connected_rx(wire->b, false);
	for (uint32_t i = 0; i < FORBIDDEN_STREAK; i++) {
		send_one(wire->a, numbered(wire, i));
		EXPECT_EQ(load32(receive_one(wire->b).data), i);
	}
	expect_count(wire->b, RX_CONNECTED, 0);
	close_wire(wire);
}

/*
 * Bursts are still unread when the socket is opened, and when it should be closed: nothing is lost
 * or comes out of order.
 */
TEST(a_connected_socket_that_comes_and_goes_in_a_stream_loses_and_reorders_nothing)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	uint32_t sent = 0, taken = 0;

	for (uint32_t burst = 0; burst < 200; burst++) {
		for (uint32_t i = 0; i < 60; i++)
			send_one(wire->a, numbered(wire, sent++));
		vb_udp_allow_connected_rx(wire->b, burst / 20 % 2 == 0);
		taken += take_numbers(wire->b, taken, sent);
		EXPECT_EQ(taken, sent);
	}
	EXPECT(connected_rx_count(wire->b) >= 4);
	close_wire(wire);
}

TEST(packets_that_came_before_the_connected_socket_are_read_before_those_in_it)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	uint32_t sent = 0, taken = 0;

	for (; sent < 200; sent++, taken++) {
		send_one(wire->a, numbered(wire, sent));
		EXPECT_EQ(load32(receive_one(wire->b).data), taken);
	}
	for (uint32_t i = 0; i < 150; i++)
		send_one(wire->a, numbered(wire, sent++));
	while (!connected_rx_count(wire->b)) {
		EXPECT_EQ(load32(receive_one(wire->b).data), taken);
		taken++;
	}
	for (uint32_t i = 0; i < 100; i++)
		send_one(wire->a, numbered(wire, sent++));
	taken += take_numbers(wire->b, taken, sent);
	EXPECT_EQ(taken, sent);
	close_wire(wire);
}

/* Receives until a datagram of that port has come; false if none comes. */
static bool receive_from_port(struct vb_udp *udp, uint16_t source_port)
{
	struct vb_udp_datagram got = { 0 };

	for (uint32_t i = 0; i < READS_MAX && got.source_port != source_port; i++)
		(void)vb_udp_receive(udp, &got, 1);
	return got.source_port == source_port;
}

TEST(others_are_received_while_a_sender_has_a_connected_socket)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	struct vb_udp_message busy = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);
	struct vb_udp_message other = busy;

	send_until_connected(wire, busy);
	other.source_index = 1;
	for (uint32_t i = 0; i < 100; i++) {
		for (uint32_t k = 0; k < 50; k++)
			send_one(wire->a, busy); /* more than are taken before the other's turn */
		send_one(wire->a, other);
		EXPECT(receive_from_port(wire->b, vb_udp_source_port(wire->a, 1)));
		while (is_readable_now(wire->b))
			(void)take_any(wire->b);
	}
	EXPECT_EQ(connected_rx_count(wire->b), 1);
	close_wire(wire);
}

TEST(a_thread_about_to_sleep_finds_what_other_senders_sent_at_the_first_look)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);

	send_until_connected(wire, message);
	message.source_index = 1;
	for (uint32_t i = 0; i < 20; i++) {
		send_one(wire->a, message);
		vb_udp_read_others_next(wire->b);
		EXPECT_EQ(take_any(wire->b), 1);
	}
	close_wire(wire);
}

TEST(the_connected_socket_goes_to_another_sender_that_is_busier)
{
	struct wire *wire = open_connected_rx_wire((struct vb_udp_config){ 0 });
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);

	send_until_connected(wire, message);
	message.source_index = 1;
	send_until_connected(wire, message);
	send_one(wire->a, message);
	EXPECT_EQ(receive_one(wire->b).source_port, vb_udp_source_port(wire->a, 1));
	message.source_index = 0;
	send_one(wire->a, message);
	EXPECT(receive_from_port(wire->b, vb_udp_source_port(wire->a, 0)));
	close_wire(wire);
}

TEST(when_a_lent_receiver_begins_to_report_the_traffic_class_so_does_the_connected_socket)
{
	struct vb_udp_config config = { .port = VB_ROCE_PORT, .is_segmenting = true };
	struct wire *wire = open_wire_as(config);
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);
	struct vb_udp_datagram got;
	int receiver;

	enter_end(END_B);
	vb_udp_close(wire->b);
	MUST(vb_udp_receiver_open(&config, &receiver));
	config.receiver = &receiver;
	wire->b = open_link(config);
	vb_udp_allow_connected_rx(wire->b, true);
	send_until_connected(wire, message);
	send_one(wire->a, message);
	got = receive_one(wire->b);
	EXPECT_EQ(got.traffic_class, 0);
	MUST(vb_udp_receiver_enable_ip_fields(receiver));
	vb_udp_enable_ip_fields(wire->b);
	send_one(wire->a, message);
	got = receive_one(wire->b);
	expect_from(wire, &got, "10.9.0.1", "10.9.0.2");
	close_wire(wire);
	vb_udp_receiver_close(receiver);
}

/* Returns how many were dropped. */
static uint64_t overflow(struct wire *wire, struct vb_udp_message message)
{
	uint64_t before = vb_udp_counters(wire->b)[VB_UDP_RX_DROP_OVERFLOW];
	uint64_t dropped;
	uint32_t taken = 0;

	for (uint32_t i = 0; i < 500; i++)
		send_one(wire->a, message);
	while (is_readable_now(wire->b))
		taken += take_any(wire->b);
	send_one(wire->a,
		 message); /* the kernel reports drops with the next datagram that it queues */
	(void)receive_one(wire->b);
	dropped = vb_udp_counters(wire->b)[VB_UDP_RX_DROP_OVERFLOW] - before;
	EXPECT_EQ(taken + dropped, 500);
	return dropped;
}

TEST(drops_are_counted_in_the_shared_and_in_the_connected_socket)
{
	struct wire *wire =
		open_connected_rx_wire((struct vb_udp_config){ .receive_buffer_length = 4096 });
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", LENGTH);

	vb_udp_allow_connected_rx(wire->b, false);
	EXPECT(overflow(wire, message) > 0);
	vb_udp_allow_connected_rx(wire->b, true);
	send_until_connected(wire, message);
	EXPECT(overflow(wire, message) > 0);
	close_wire(wire);
}

/*
 * A thread that sends without a pause, from a link of its own; each message holds its source port.
 */
struct flood {
	struct vb_udp *link;
	uint8_t bytes[LENGTH];
	_Atomic uint32_t sent;
	_Atomic bool is_over;
};

static void *run_flood(void *argument)
{
	struct flood *flood = argument;
	struct iovec iovec = { flood->bytes, LENGTH };
	struct vb_udp_message message = message_of("10.9.0.1", "10.9.0.2", &iovec);

	store32(flood->bytes, vb_udp_source_port(flood->link, 0));
	while (!atomic_load(&flood->is_over)) {
		(void)vb_udp_send(flood->link, &message, 1);
		atomic_fetch_add(&flood->sent, 1);
	}
	return NULL;
}

static uint32_t receive_and_check_ports(struct vb_udp *udp)
{
	struct vb_udp_datagram got[64];
	uint32_t count = vb_udp_receive(udp, got, 64);

	for (uint32_t i = 0; i < count; i++)
		EXPECT_EQ(load32(got[i].data), got[i].source_port);
	return count;
}

/* Between bind() and connect() the new socket gets datagrams of all senders. */
TEST(datagrams_of_others_that_arrive_while_the_socket_is_opened_keep_their_source)
{
	struct vb_udp_config config = { .receive_buffer_length = 1 << 20 };
	struct wire *wire = open_connected_rx_wire(config);
	struct flood flood = { 0 };
	pthread_t thread;

	enter_end(END_A);
	flood.link = open_link((struct vb_udp_config){ .destination_port = VB_ROCE_PORT });
	enter_end(END_B);
	for (uint32_t round = 0; round < 40; round++) {
		uint64_t before = connected_rx_count(wire->b);

		for (uint32_t i = 0; i < 300; i++)
			send_one(wire->a, numbered(wire, vb_udp_source_port(wire->a, 0)));
		atomic_store(&flood.is_over, false);
		atomic_store(&flood.sent, 0);
		EXPECT_EQ(pthread_create(&thread, NULL, run_flood, &flood), 0);
		while (!atomic_load(&flood.sent))
			;
		while (connected_rx_count(wire->b) == before)
			(void)receive_and_check_ports(wire->b);
		atomic_store(&flood.is_over, true);
		pthread_join(thread, NULL);
		vb_udp_allow_connected_rx(wire->b, false);
		for (uint32_t empty_reads = 0; empty_reads < READS_MAX;)
			empty_reads = receive_and_check_ports(wire->b) ? 0 : empty_reads + 1;
		vb_udp_allow_connected_rx(wire->b, true);
	}
	vb_udp_close(flood.link);
	close_wire(wire);
}
