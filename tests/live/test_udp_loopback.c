/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UDP link on loopback: what arrives is what was sent, with everything that the transport must
 * know about it.
 */
#include "support_link.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_address(struct vb_udp_address address, const char *text)
{
	struct vb_udp_address expected = address_of(text);

	EXPECT_MEM(address.ip, expected.ip, sizeof(expected.ip));
}

/* Sends there and back, between two addresses. */
static void echo(struct vb_udp_config config, const char *here, const char *there)
{
	struct vb_udp *udp = open_link(config);
	struct iovec question = { (char[]){ "a question" }, 10 };
	struct vb_udp_message message = message_of(here, there, &question);
	struct vb_udp_datagram got;
	struct iovec answer;

	message.traffic_class = 0xba; /* DSCP 46, ECN 2 */
	message.hop_limit = 17;
	send_one(udp, message);
	got = receive_one(udp);
	EXPECT_EQ(got.length, 10);
	EXPECT_MEM(got.data, "a question", 10);
	expect_address(got.source, here);
	expect_address(got.destination, there);
	EXPECT_EQ(got.destination.scope, 1); /* loopback's index */
	EXPECT_EQ(got.source_port, vb_udp_source_port(udp, 0));
	EXPECT_EQ(got.traffic_class, 0xba);
	EXPECT_EQ(got.hop_limit, 17);
	EXPECT_EQ(got.segment_index, 0);

	answer = (struct iovec){ (uint8_t *)(uintptr_t)got.data, got.length };
	message = (struct vb_udp_message){
		.source = got.destination,
		.destination = got.source,
		.iovecs = &answer,
		.iovec_count = 1,
	};
	send_one(udp, message);
	got = receive_one(udp);
	EXPECT_MEM(got.data, "a question", 10);
	expect_address(got.source, there);
	expect_address(got.destination, here);
	EXPECT_EQ(got.traffic_class, 0);
	EXPECT_EQ(got.hop_limit, 64);
	expect_count(udp, TX_DATAGRAMS, 2);
	expect_count(udp, RX_BYTES, 20);
	vb_udp_close(udp);
}

TEST(ipv4_comes_with_addresses_traffic_class_and_hop_limit)
{
	echo((struct vb_udp_config){ 0 }, "127.0.0.1", "127.0.0.2");
}

TEST(ipv6_comes_with_addresses_traffic_class_and_hop_limit)
{
	echo((struct vb_udp_config){ 0 }, "::1", "::1");
}

TEST(a_machine_without_ipv6_has_ipv4_all_the_same)
{
	echo((struct vb_udp_config){ .is_ipv4_only = true }, "127.0.0.1", "127.0.0.2");
}

TEST(a_link_without_ipv6_drops_what_goes_there)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_ipv4_only = true });
	struct iovec bytes = { (char[]){ "lost" }, 4 };

	send_one(udp, message_of("::1", "::1", &bytes));
	expect_count(udp, TX_DROP_NO_ROUTE, 1);
	vb_udp_close(udp);
}

TEST(each_transmit_socket_has_its_port_and_reports_it)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .source_count = 3 });
	struct iovec bytes = { (char[]){ "x" }, 1 };
	struct vb_udp_message messages[6];
	struct vb_udp_datagram got;

	EXPECT_EQ(vb_udp_source_count(udp), 3);
	EXPECT(vb_udp_source_port(udp, 0) != vb_udp_source_port(udp, 1));
	EXPECT(vb_udp_source_port(udp, 1) != vb_udp_source_port(udp, 2));
	for (uint32_t i = 0; i < 6; i++) {
		messages[i] = message_of("127.0.0.1", "127.0.0.1", &bytes);
		messages[i].source_index = i / 2; /* two of a kind go in one call */
	}
	EXPECT_EQ(vb_udp_send(udp, messages, 6), 6);
	for (uint32_t i = 0; i < 6; i++) {
		got = receive_one(udp);
		EXPECT_EQ(got.source_port, vb_udp_source_port(udp, i / 2));
	}
	vb_udp_close(udp);
}

TEST(a_source_port_that_is_taken_is_refused)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct vb_udp_config config = { .source_ports = { vb_udp_source_port(udp, 0) } };
	struct vb_udp *second;

	EXPECT_EQ(vb_udp_open(&config, &second), VB_EBUSY);
	vb_udp_close(udp);
	second = open_link(config);
	EXPECT_EQ(vb_udp_source_port(second, 0), config.source_ports[0]);
	vb_udp_close(second);
}

TEST(descriptors_are_not_inherited_by_programs)
{
	int first = dup(0); /* descriptors from here on are free, except a few from before */
	bool was_open[32];
	struct vb_udp *udp;

	EXPECT_EQ(close(first), 0);
	for (int fd = 0; fd < 32; fd++)
		was_open[fd] = fcntl(fd, F_GETFD) >= 0;
	udp = open_link((struct vb_udp_config){ .source_count = 2 });
	EXPECT(fcntl(first, F_GETFD) & FD_CLOEXEC);
	for (int fd = 0; fd < 32; fd++)
		EXPECT(was_open[fd] || fcntl(fd, F_GETFD) < 0 || fcntl(fd, F_GETFD) & FD_CLOEXEC);
	vb_udp_close(udp);
}

/* --- segments --------------------------------------------------------------------------------- */

enum { SEGMENT = 1000, SEGMENTS = 64, LAST = 300, BATCH = (SEGMENTS - 1) * SEGMENT + LAST };

/* A batch of 64 datagrams in iovecs that do not end at segment boundaries. */
struct batch {
	uint8_t bytes[BATCH];
	struct iovec iovecs[VB_UDP_IOVECS_MAX];
	struct vb_udp_message message;
};

static struct batch *make_batch(const char *address)
{
	static struct batch batch;
	uint32_t count = 0;

	fill_pattern(batch.bytes, BATCH, 1);
	for (uint32_t at = 0; at < BATCH; at += 777, count++)
		batch.iovecs[count] = (struct iovec){
			batch.bytes + at,
			BATCH - at < 777 ? BATCH - at : 777,
		};
	batch.message = message_of(address, address, batch.iovecs);
	batch.message.iovec_count = count;
	batch.message.segment_length = SEGMENT;
	return &batch;
}

static void expect_segments(const struct vb_udp_datagram *got, uint32_t first, uint32_t count,
			    const struct batch *batch)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = first + i;

		EXPECT_EQ(got[i].length, index == SEGMENTS - 1 ? LAST : SEGMENT);
		EXPECT_EQ(got[i].segment_index, index);
		EXPECT_MEM(got[i].data, batch->bytes + (size_t)index * SEGMENT, got[i].length);
	}
}

static void segments_arrive(const char *address)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });
	struct batch *batch = make_batch(address);
	struct vb_udp_datagram got[SEGMENTS];

	send_one(udp, batch->message);
	receive_all(udp, got, SEGMENTS);
	expect_segments(got, 0, SEGMENTS, batch);
	expect_count(udp, TX_MESSAGES, 1);
	expect_count(udp, TX_DATAGRAMS, SEGMENTS);
	expect_count(udp, TX_BYTES, BATCH);
	expect_count(udp, RX_MESSAGES, 1);
	expect_count(udp, RX_DATAGRAMS, SEGMENTS);
	EXPECT_EQ(vb_udp_segments_max(udp), VB_UDP_SEGMENTS_MAX);
	vb_udp_close(udp);
}

TEST(sixty_four_segments_in_one_message_arrive_as_numbered_datagrams_ipv4)
{
	segments_arrive("127.0.0.1");
}

TEST(sixty_four_segments_in_one_message_arrive_as_numbered_datagrams_ipv6)
{
	segments_arrive("::1");
}

TEST(coalesced_datagrams_are_kept_for_a_receiver_with_little_room)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });
	struct batch *batch = make_batch("127.0.0.1");
	struct vb_udp_datagram got[30];

	send_one(udp, batch->message);
	receive_all(udp, got, 30);
	expect_segments(got, 0, 30, batch);
	EXPECT_EQ(vb_udp_receive(udp, got, 30), 30);
	expect_segments(got, 30, 30, batch);
	EXPECT_EQ(vb_udp_receive(udp, got, 30), 4);
	expect_segments(got, 60, 4, batch);
	EXPECT_EQ(vb_udp_receive(udp, got, 30), 0);
	vb_udp_close(udp);
}

TEST(without_segmentation_a_message_goes_out_as_single_datagrams)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct batch *batch = make_batch("127.0.0.1");
	struct vb_udp_datagram got;

	EXPECT_EQ(vb_udp_segments_max(udp), 1);
	send_one(udp, batch->message);
	for (uint32_t i = 0; i < SEGMENTS; i++) {
		got = receive_one(udp);
		EXPECT_EQ(got.segment_index, 0);
		EXPECT_EQ(got.length, i == SEGMENTS - 1 ? LAST : SEGMENT);
		EXPECT_MEM(got.data, batch->bytes + (size_t)i * SEGMENT, got.length);
	}
	expect_count(udp, TX_SPLIT, 1);
	expect_count(udp, TX_DATAGRAMS, SEGMENTS);
	vb_udp_close(udp);
}

TEST(an_empty_iovec_behind_a_full_segment_is_no_datagram)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct iovec iovecs[] = { { (char[]){ "abc" }, 3 }, { (char[]){ "" }, 0 } };
	struct vb_udp_message message = message_of("127.0.0.1", "127.0.0.1", iovecs);

	message.iovec_count = 2;
	message.segment_length = 3;
	send_one(udp, message);
	EXPECT_EQ(receive_one(udp).length, 3);
	expect_silence(udp);
	expect_count(udp, TX_DATAGRAMS, 1);
	vb_udp_close(udp);
}

/* The descriptor of a socket of this process, by its port. */
static int descriptor_of_port(uint16_t port)
{
	for (int fd = 0; fd < 65536; fd++) {
		struct sockaddr_in6 name = { 0 };
		socklen_t length = sizeof(name);

		if (getsockname(fd, (struct sockaddr *)&name, &length) == 0 &&
		    name.sin6_family == AF_INET6 && ntohs(name.sin6_port) == port)
			return fd;
	}
	FAIL("no socket has port %u", port);
}

TEST(that_a_kernel_does_not_segment_is_found_out_and_remembered)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });
	struct batch *batch = make_batch("127.0.0.1");
	int one = 1, fd = descriptor_of_port(vb_udp_source_port(udp, 0));

	/*
	 * Without checksums the kernel refuses to segment, as it does on interfaces that cannot
	 * make them.
	 */
	EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one)), 0);
	for (uint32_t round = 1; round <= 2; round++) {
		send_one(udp, batch->message);
		EXPECT_EQ(vb_udp_segments_max(udp), 1);
		for (uint32_t i = 0; i < SEGMENTS; i++)
			EXPECT_MEM(receive_one(udp).data, batch->bytes + (size_t)i * SEGMENT, LAST);
		expect_count(udp, TX_SPLIT, round);
		expect_count(udp, TX_DATAGRAMS, round * SEGMENTS);
	}
	vb_udp_close(udp);
}

TEST(an_empty_datagram_is_a_datagram)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct iovec nothing = { (char[]){ "" }, 0 };

	send_one(udp, message_of("127.0.0.1", "127.0.0.1", &nothing));
	EXPECT_EQ(receive_one(udp).length, 0);
	vb_udp_close(udp);
}

/* --- what is dropped -------------------------------------------------------------------------- */

/*
 * Sends a good message, a bad one and a good one in one call: the bad one is dropped, the others
 * arrive.
 */
static void drop_the_middle_one(struct vb_udp *udp, struct vb_udp_message bad)
{
	struct iovec first = { (char[]){ "first" }, 5 };
	struct iovec third = { (char[]){ "third" }, 5 };
	struct vb_udp_message messages[3] = {
		message_of("127.0.0.1", "127.0.0.1", &first),
		bad,
		message_of("127.0.0.1", "127.0.0.1", &third),
	};
	struct vb_udp_address gone;
	struct vb_udp_datagram got;

	EXPECT_EQ(vb_udp_send(udp, messages, 3), 3);
	EXPECT_EQ(vb_udp_take_unreachable(udp, &gone, 1), 0);
	got = receive_one(udp);
	EXPECT_MEM(got.data, "first", 5);
	got = receive_one(udp);
	EXPECT_MEM(got.data, "third", 5);
	expect_silence(udp);
	expect_count(udp, TX_MESSAGES, 2);
}

TEST(memory_that_is_not_there_costs_its_message_only)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });
	struct iovec iovecs[2] = { { (char[]){ "head" }, 4 }, { vanished_memory(4096), 4096 } };
	struct vb_udp_message bad = message_of("127.0.0.1", "127.0.0.1", iovecs);

	bad.iovec_count = 2;
	drop_the_middle_one(udp, bad);
	bad.segment_length = 1025;
	EXPECT_EQ(vb_udp_send(udp, &bad, 1), 1);
	expect_silence(udp);
	expect_count(udp, TX_DROP_MEMORY, 1 + 4);
	EXPECT_EQ(vb_udp_segments_max(udp), VB_UDP_SEGMENTS_MAX);
	vb_udp_close(udp);
}

static void lose_the_middle_segment(struct vb_udp *udp)
{
	struct iovec iovecs[3] = { { (char[]){ "abc" }, 3 },
				   { vanished_memory(3), 3 },
				   { (char[]){ "xyz" }, 3 } };
	struct vb_udp_message bad = message_of("127.0.0.1", "127.0.0.1", iovecs);
	struct vb_udp_datagram got;

	bad.iovec_count = 3;
	bad.segment_length = 3;
	send_one(udp, bad);
	got = receive_one(udp);
	EXPECT_MEM(got.data, "abc", 3);
	got = receive_one(udp);
	EXPECT_MEM(got.data, "xyz", 3);
	expect_silence(udp);
	expect_count(udp, TX_DROP_MEMORY, 1);
}

TEST(memory_that_is_not_there_costs_its_segment_when_sent_singly)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });

	lose_the_middle_segment(udp);
	vb_udp_close(udp);
}

TEST(memory_that_is_not_there_costs_its_segment_when_the_kernel_segments)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });

	lose_the_middle_segment(udp);
	EXPECT_EQ(vb_udp_segments_max(udp), VB_UDP_SEGMENTS_MAX);
	vb_udp_close(udp);
}

TEST(a_message_that_is_too_long_is_dropped)
{
	static uint8_t bytes[65520];
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct iovec iovec = { bytes, sizeof(bytes) };

	drop_the_middle_one(udp, message_of("127.0.0.1", "127.0.0.1", &iovec));
	expect_count(udp, TX_DROP_TOO_LONG, 1);
	vb_udp_close(udp);
}

TEST(a_source_that_is_not_ours_is_dropped_and_not_blamed_on_segmentation)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_segmenting = true });
	struct iovec iovec = { (char[]){ "stranger" }, 8 };
	struct vb_udp_message bad = message_of("192.0.2.1", "127.0.0.1", &iovec);

	bad.segment_length = 4;
	drop_the_middle_one(udp, bad);
	EXPECT_EQ(vb_udp_segments_max(udp), VB_UDP_SEGMENTS_MAX);
	vb_udp_close(udp);
}

TEST(a_destination_without_route_is_dropped)
{
	struct iovec iovec = { (char[]){ "nowhere" }, 7 };
	struct vb_udp_message bad = message_of("127.0.0.1", "192.0.2.1", &iovec);
	struct vb_udp *udp;

	enter_own_network();
	udp = open_link((struct vb_udp_config){ 0 });
	bad.source = (struct vb_udp_address){ { 0 }, 0 };
	drop_the_middle_one(udp, bad);
	expect_count(udp, TX_DROP_NO_ROUTE, 1);
	vb_udp_close(udp);
}

TEST(a_message_of_which_no_segment_was_sent_does_not_count_as_sent)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .is_ipv4_only = true });

	send_one(udp, make_batch("::1")->message);
	expect_count(udp, TX_DROP_NO_ROUTE, 1);
	expect_count(udp, TX_MESSAGES, 0);
	expect_count(udp, TX_SPLIT, 0);
	vb_udp_close(udp);
}

TEST(a_datagram_longer_than_asked_for_is_dropped)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .datagram_length_max = 100 });
	uint8_t bytes[101] = { 0 };
	struct iovec too_long = { bytes, 101 }, fits = { bytes, 100 };
	struct vb_udp_datagram got;

	send_one(udp, message_of("127.0.0.1", "127.0.0.1", &too_long));
	EXPECT_EQ(vb_udp_receive(udp, &got, 1), 0);
	send_one(udp, message_of("127.0.0.1", "127.0.0.1", &fits));
	EXPECT_EQ(receive_one(udp).length, 100);
	expect_count(udp, RX_DROP_TRUNCATED, 1);
	vb_udp_close(udp);
}

TEST(what_strangers_send_to_a_transmit_socket_goes_nowhere)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	struct vb_udp *stranger =
		open_link((struct vb_udp_config){ .destination_port = vb_udp_source_port(udp, 0) });
	struct iovec iovec = { (char[]){ "hello" }, 5 };

	send_one(stranger, message_of("127.0.0.1", "127.0.0.1", &iovec));
	expect_silence(udp);
	vb_udp_close(stranger);
	vb_udp_close(udp);
}

/* --- errors that come back -------------------------------------------------------------------- */

static uint16_t closed_port(void)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ 0 });
	uint16_t port = vb_udp_port(udp);

	vb_udp_close(udp);
	return port;
}

static void nobody_there(const char *address)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){ .destination_port = closed_port() });
	struct iovec iovec = { (char[]){ "anybody?" }, 8 };
	struct vb_udp_address gone[4];

	EXPECT_EQ(vb_udp_take_unreachable(udp, gone, 4), 0);
	send_one(udp, message_of(address, address, &iovec));
	EXPECT_EQ(poll(&(struct pollfd){ .fd = vb_udp_fd(udp), .events = POLLIN }, 1, 5000), 1);
	EXPECT_EQ(vb_udp_take_unreachable(udp, gone, 4), 1);
	expect_address(gone[0], address);
	expect_count(udp, RX_UNREACHABLE, 1);
	expect_silence(udp);
	vb_udp_close(udp);
}

TEST(a_port_that_nobody_has_is_reported_ipv4)
{
	nobody_there("127.0.0.1");
}

TEST(a_port_that_nobody_has_is_reported_ipv6)
{
	nobody_there("::1");
}

TEST(an_error_about_one_message_does_not_cost_the_next)
{
	uint16_t port = closed_port();
	struct vb_udp *udp = open_link((struct vb_udp_config){ .destination_port = port });
	struct iovec iovec = { (char[]){ "anybody?" }, 8 };
	struct vb_udp_address gone[4];
	struct vb_udp *late;
	struct vb_udp_datagram got;

	send_one(udp, message_of("127.0.0.1", "127.0.0.1", &iovec));
	late = open_link((struct vb_udp_config){ .port = port });
	send_one(udp, message_of("127.0.0.1", "127.0.0.1", &iovec));
	got = receive_one(late);
	EXPECT_MEM(got.data, "anybody?", 8);
	expect_count(udp, TX_DATAGRAMS, 2);
	EXPECT_EQ(vb_udp_take_unreachable(udp, gone, 4), 1);
	vb_udp_close(late);
	vb_udp_close(udp);
}

/* --- buffers ---------------------------------------------------------------------------------- */

enum { STOCK_BUFFER = 212992 }; /* what the kernel reports for a socket that asked for nothing */

static struct vb_udp *open_with_stock_buffer(void)
{
	struct vb_udp *udp = open_link((struct vb_udp_config){
		.receive_buffer_length = STOCK_BUFFER / 2, .is_segmenting = true });

	EXPECT_EQ(vb_udp_receive_buffer_length(udp), STOCK_BUFFER);
	return udp;
}

TEST(a_stock_receive_buffer_holds_two_full_batches)
{
	struct vb_udp *udp = open_with_stock_buffer();
	struct batch *batch = make_batch("127.0.0.1");
	struct vb_udp_datagram got[SEGMENTS];

	send_one(udp, batch->message);
	send_one(udp, batch->message);
	receive_all(udp, got, SEGMENTS);
	expect_segments(got, 0, SEGMENTS, batch);
	receive_all(udp, got, SEGMENTS);
	expect_segments(got, 0, SEGMENTS, batch);
	vb_udp_close(udp);
}

TEST(what_the_receive_buffer_cannot_hold_is_lost_and_counted)
{
	struct vb_udp *udp = open_with_stock_buffer();
	struct batch *batch = make_batch("127.0.0.1");
	struct vb_udp_datagram got[SEGMENTS];
	uint32_t batches = 0;

	for (uint32_t i = 0; i < 20; i++)
		send_one(udp, batch->message);
	while (vb_udp_receive(udp, got, SEGMENTS) == SEGMENTS)
		batches++;
	EXPECT(batches >= 2 && batches < 20);
	send_one(udp, batch->message); /* the kernel reports the loss with the next arrival */
	receive_all(udp, got, SEGMENTS);
	EXPECT(vb_udp_counters(udp)[VB_UDP_RX_DROP_OVERFLOW] >= 20 - batches);
	vb_udp_close(udp);
}

TEST(every_counter_has_a_name_of_its_own)
{
	for (uint32_t i = 0; i < VB_UDP_COUNTER_COUNT; i++)
		for (uint32_t j = 0; j < i; j++)
			EXPECT(strcmp(vb_udp_counter_name(i), vb_udp_counter_name(j)) != 0);
}
