/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel makes of a message on a cable between two networks, read from the cable itself:
 * the fields that the ICRC covers must be what the engine assumed when it computed the ICRC.
 */
#include "support_wire.h"

#include "base/bytes.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

TEST(an_ipv4_packet_has_the_id_0_and_may_not_be_fragmented)
{
	struct wire *wire = open_wire();

	for (uint32_t i = 0; i < 5; i++) {
		send_one(wire->a, message_on(wire, "10.9.0.1", "10.9.0.2", SEGMENT));
		expect_packet(wire, "10.9.0.1", "10.9.0.2", 0, SEGMENT);
		EXPECT_EQ(wire->captured.ip_id, 0);
		EXPECT_EQ(wire->captured.ip[6], DF);
		EXPECT_EQ(wire->captured.ip[7], 0);
	}
	close_wire(wire);
}

TEST(the_segments_of_an_ipv4_message_have_the_ids_0_1_2)
{
	struct wire *wire = open_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 9 * SEGMENT + 200);

	cut_segments_on_the_wire("va");
	message.segment_length = SEGMENT;
	for (uint32_t round = 0; round < 2; round++) {
		send_one(wire->a, message);
		for (uint32_t i = 0; i < 10; i++) {
			expect_packet(wire, "10.9.0.1", "10.9.0.2", i * SEGMENT,
				      i < 9 ? SEGMENT : 200);
			EXPECT_EQ(wire->captured.ip_id, i);
			EXPECT_EQ(wire->captured.ip[6], DF);
		}
	}
	EXPECT_EQ(vb_udp_segments_max(wire->a), VB_UDP_SEGMENTS_MAX);
	close_wire(wire);
}

TEST(the_segments_of_an_ipv6_message_are_right_and_have_checksums)
{
	struct wire *wire = open_wire();
	struct vb_udp_message message = message_on(wire, "fd09::1", "fd09::2", 5 * SEGMENT);

	cut_segments_on_the_wire("va");
	message.segment_length = SEGMENT;
	send_one(wire->a, message);
	for (uint32_t i = 0; i < 5; i++) {
		expect_packet(wire, "fd09::1", "fd09::2", i * SEGMENT, SEGMENT);
		EXPECT(load16(wire->captured.payload - 2) != 0);
	}
	close_wire(wire);
}

TEST(a_link_local_address_means_the_interface_of_the_link)
{
	struct wire *wire = open_wire();
	struct vb_udp_datagram got;
	struct vb_udp_address peer = address_of("fe80::1");

	send_one(wire->a, message_on(wire, "fe80::1", "fe80::2", 100));
	expect_packet(wire, "fe80::1", "fe80::2", 0, 100);
	got = receive_one(wire->b);
	EXPECT_MEM(got.source.ip, peer.ip, 16);
	enter_end(END_B);
	EXPECT_EQ(got.source.scope, if_nametoindex("vb"));
	close_wire(wire);
}

TEST(a_batch_that_stays_whole_on_the_cable_is_numbered_at_the_other_end)
{
	struct wire *wire = open_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 10 * SEGMENT);
	struct vb_udp_datagram got[10];

	message.segment_length = SEGMENT;
	send_one(wire->a, message);
	receive_all(wire->b, got, 10);
	for (uint32_t i = 0; i < 10; i++) {
		EXPECT_EQ(got[i].segment_index, i);
		EXPECT_EQ(got[i].traffic_class, 0x6a);
		EXPECT_EQ(got[i].hop_limit, 33);
	}
	close_wire(wire);
}

/* A thread that waits has nothing to send again: it would only be woken without end. */
TEST(without_room_sending_stops_and_new_room_wakes_nobody)
{
	struct wire *wire = open_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.77", 4000);
	struct pollfd wait = { .fd = vb_udp_fd(wire->a), .events = POLLIN };
	uint32_t sent = 0;

	/*
	 * Packets for a neighbour that does not answer wait for it, and the kernel lends a socket a
	 * limited amount of memory.
	 */
	if (system("echo 100000000 2>/dev/null >/proc/sys/net/ipv4/neigh/va/unres_qlen_bytes") != 0)
		SKIP("may not change the queue of unresolved neighbours");
	while (sent < 10000 && vb_udp_send(wire->a, &message, 1) == 1)
		sent++;
	EXPECT(sent > 10 && sent < 10000);
	expect_count(wire->a, TX_STOPS, 1);
	expect_count(wire->a, TX_DATAGRAMS, sent);
	EXPECT_EQ(poll(&wait, 1, 50), 0);
	command("ip neigh replace 10.9.0.77 lladdr 02:00:00:00:00:77 dev va");
	EXPECT_EQ(poll(&wait, 1, 200), 0);
	send_one(wire->a, message);
	EXPECT_EQ(poll(&wait, 1, 50), 0);
	close_wire(wire);
}

TEST(what_does_not_fit_the_interface_is_dropped_segmented_or_not)
{
	struct wire *wire = open_wire();
	struct vb_udp_message message = message_on(wire, "10.9.0.1", "10.9.0.2", 4500);
	struct vb_udp_address gone;

	send_one(wire->a, message);
	expect_count(wire->a, TX_DROP_TOO_LONG, 1);
	message = message_on(wire, "10.9.0.1", "10.9.0.2", 10000);
	message.segment_length = 5000;
	send_one(wire->a, message);
	expect_count(wire->a, TX_DATAGRAMS, 0);
	EXPECT_EQ(vb_udp_segments_max(wire->a), VB_UDP_SEGMENTS_MAX);
	EXPECT_EQ(vb_udp_take_unreachable(wire->a, &gone, 1), 0);
	close_wire(wire);
}

TEST(an_ipv6_packet_without_checksum_is_taken)
{
	struct wire *wire = open_wire();
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(VB_ROCE_PORT) };
	struct vb_udp_datagram got;
	int one = 1, fd = socket(AF_INET6, SOCK_DGRAM, 0);

	EXPECT(fd >= 0);
	EXPECT_EQ(inet_pton(AF_INET6, "fd09::2", &to.sin6_addr), 1);
	EXPECT_EQ(setsockopt(fd, IPPROTO_UDP, 101 /* UDP_NO_CHECK6_TX */, &one, sizeof(one)), 0);
	EXPECT_EQ(sendto(fd, "as Soft-RoCE", 12, 0, (struct sockaddr *)&to, sizeof(to)), 12);
	capture(wire->capture, &wire->captured);
	EXPECT_EQ(load16(wire->captured.payload - 2), 0);
	got = receive_one(wire->b);
	EXPECT_MEM(got.data, "as Soft-RoCE", 12);
	close(fd);
	close_wire(wire);
}

/* Sends to our own port; whatever went on the wire would come to the other end's. */
TEST(a_link_that_is_for_this_host_sends_nothing_to_others)
{
	static const struct {
		const char *source, *own, *others;
	} cases[] = {
		{ "10.9.0.1", "127.0.0.1", "10.9.0.2" }, { "127.0.0.1", "10.9.0.1", "10.9.0.2" },
		{ "10.9.0.1", "10.9.0.1", "10.9.0.77" }, { "fd09::1", "::1", "fd09::2" },
		{ "fd09::1", "fe80::1", "fe80::2" },	 { "fe80::1", "fe80::1", "fe80::2" },
	};
	struct wire *wire = open_wire();
	struct vb_udp_config config = { .destination_port = VB_ROCE_PORT,
					.ifindex = if_nametoindex("va"),
					.is_host_only = true };
	struct vb_udp *host_only = open_link(config);

	command("ip link set lo up");
	command("sysctl -q -w net.ipv4.ip_nonlocal_bind=1"); /* must make no difference */
	command("ip route add default dev va");
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vb_udp_message messages[] = {
			message_on(wire, cases[i].source, cases[i].own, 100),
			message_on(wire, cases[i].source, cases[i].others, 100),
			message_on(wire, cases[i].source, cases[i].others, 100),
			message_on(wire, cases[i].source, cases[i].own, 100),
		};
		struct vb_udp_datagram got[2];

		EXPECT_EQ(vb_udp_send(host_only, messages, 4), 4);
		for (uint32_t k = 0; k < 2; k++) {
			got[k] = receive_one(wire->a);
			EXPECT_MEM(got[k].destination.ip, messages[0].destination.ip, 16);
		}
		expect_count(host_only, TX_DROP_PORT_HELD, 2 * (i + 1));
		expect_count(host_only, TX_DATAGRAMS, 2 * (i + 1));
	}
	expect_silence(wire->b);
	vb_udp_close(host_only);
	close_wire(wire);
}

/* The same address may be ours on one interface and another host's on the next. */
TEST(a_link_that_is_for_this_host_asks_for_each_interface)
{
	struct wire *wire = open_wire();
	struct vb_udp_config config = { .destination_port = VB_ROCE_PORT,
					.ifindex = if_nametoindex("va"),
					.is_host_only = true };
	struct vb_udp *host_only = open_link(config);
	struct vb_udp_message messages[] = {
		message_on(wire, "fd09::1", "fe80::1", 100),
		message_on(wire, "fd09::1", "fe80::1", 100),
	};

	command("ip link set lo up");
	command("ip link add x type veth peer name y");
	command("ip link set x up");
	command("ip link set y up");
	messages[1].destination.scope = if_nametoindex("x");
	EXPECT_EQ(vb_udp_send(host_only, messages, 2), 2);
	expect_count(host_only, TX_DROP_PORT_HELD, 1);
	vb_udp_close(host_only);
	close_wire(wire);
}

/* --- the owner of an address ------------------------------------------------------------------ */

static bool is_local_on(const char *address, const char *interface)
{
	struct vb_udp_address asked = address_of(address);

	asked.scope = if_nametoindex(interface);
	return vb_udp_address_is_local(&asked);
}

/* Only link-local addresses belong to one interface. */
TEST(an_address_of_any_interface_is_one_of_this_host)
{
	make_wire();
	enter_end(END_A);
	command("ip link add x type veth peer name y");
	command("ip addr add 10.8.0.1/24 dev x");
	command("ip addr add fd08::1/64 dev x nodad");
	command("ip link set x up");
	command("ip link set y up");
	while (!is_local_on("fd08::1", "x")) /* the kernel takes its time */
		usleep(1000);
	EXPECT(is_local_on("10.9.0.1", "va"));
	EXPECT(is_local_on("10.8.0.1", "va"));
	EXPECT(is_local_on("fd08::1", "va"));
	EXPECT(is_local_on("fe80::1", "va"));
	EXPECT(!is_local_on("fe80::1", "x"));
	EXPECT(!is_local_on("10.9.0.2", "va"));
	EXPECT(!is_local_on("10.8.0.2", "va"));
}
