/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast: every link of a group gets a copy, on one port of one host as well as across a wire.
 * No other link gets any, and unicast datagrams are not disturbed.
 */
#include "support_link.h"

#include "wire/flow.h"

#include <net/if.h>
#include <string.h>
#include <unistd.h>

#define IPV4_GROUP "239.1.2.3"
#define IPV6_GROUP "ff02::1:2:3"

static struct vb_udp *open_on(const char *interface)
{
	return open_link((struct vb_udp_config){
		.port = VB_ROCE_PORT,
		.ifindex = if_nametoindex(interface),
		.is_segmenting = true,
	});
}

static void join(struct vb_udp *udp, const char *group)
{
	struct vb_udp_address address = address_of(group);

	MUST(vb_udp_join(udp, &address));
}

static void leave(struct vb_udp *udp, const char *group)
{
	struct vb_udp_address address = address_of(group);

	vb_udp_leave(udp, &address);
}

static void send_word(struct vb_udp *udp, const char *source, const char *destination)
{
	static char word[8] = "verbatim";
	struct iovec iovec = { word, sizeof(word) };

	send_one(udp, message_of(source, destination, &iovec));
}

static void expect_word(struct vb_udp *udp, const char *source, const char *destination)
{
	struct vb_udp_datagram datagram = receive_one(udp);
	struct vb_udp_address from = address_of(source);
	struct vb_udp_address to = address_of(destination);

	EXPECT_EQ(datagram.length, 8);
	EXPECT_MEM(datagram.data, "verbatim", 8);
	EXPECT_MEM(datagram.source.ip, from.ip, sizeof(from.ip));
	EXPECT_MEM(datagram.destination.ip, to.ip, sizeof(to.ip));
}

static void expect_copies_for_members(const char *interface, const char *source, const char *group)
{
	struct vb_udp *a = open_on(interface);
	struct vb_udp *b = open_on(interface);
	struct vb_udp *stranger = open_on(interface);

	join(a, group);
	join(b, group);
	send_word(stranger, source, group);
	expect_word(a, source, group);
	expect_word(b, source, group);
	expect_silence(a);
	expect_silence(b);
	expect_silence(stranger);
	vb_udp_close(a);
	vb_udp_close(b);
	vb_udp_close(stranger);
}

TEST(every_member_on_a_host_gets_a_copy_and_nobody_else_over_ipv4)
{
	enter_own_network();
	expect_copies_for_members("lo", "127.0.0.1", IPV4_GROUP);
}

TEST(every_member_on_a_host_gets_a_copy_and_nobody_else_over_ipv6)
{
	make_wire(); /* loopback has no route to IPv6 groups */
	enter_end(END_A);
	expect_copies_for_members("va", "fe80::1", IPV6_GROUP);
}

TEST(a_sender_that_is_a_member_gets_its_own)
{
	struct vb_udp *a;

	enter_own_network();
	a = open_on("lo");
	join(a, IPV4_GROUP);
	send_word(a, "127.0.0.1", IPV4_GROUP);
	expect_word(a, "127.0.0.1", IPV4_GROUP);
	expect_silence(a);
	vb_udp_close(a);
}

TEST(joining_twice_is_joining_once_and_a_link_that_has_left_gets_nothing)
{
	struct vb_udp *a;
	struct vb_udp *b;

	enter_own_network();
	a = open_on("lo");
	b = open_on("lo");
	join(a, IPV4_GROUP);
	join(a, IPV4_GROUP);
	join(b, IPV4_GROUP);
	send_word(b, "127.0.0.1", IPV4_GROUP);
	expect_word(a, "127.0.0.1", IPV4_GROUP);
	expect_silence(a);
	expect_word(b, "127.0.0.1", IPV4_GROUP);
	leave(a, IPV4_GROUP);
	leave(a, IPV4_GROUP);
	send_word(b, "127.0.0.1", IPV4_GROUP);
	expect_word(b, "127.0.0.1", IPV4_GROUP);
	expect_silence(a);
	vb_udp_close(a);
	vb_udp_close(b);
}

TEST(groups_do_not_mix)
{
	struct vb_udp *a;
	struct vb_udp *b;

	enter_own_network();
	a = open_on("lo");
	b = open_on("lo");
	join(a, IPV4_GROUP);
	join(a, "239.1.2.5");
	join(b, "239.1.2.4");
	send_word(a, "127.0.0.1", "239.1.2.4");
	expect_silence(a);
	expect_word(b, "127.0.0.1", "239.1.2.4");
	send_word(b, "127.0.0.1", "239.1.2.5");
	expect_word(a, "127.0.0.1", "239.1.2.5");
	expect_silence(b);
	vb_udp_close(a);
	vb_udp_close(b);
}

TEST(a_member_still_gets_each_unicast_datagram_once)
{
	struct vb_udp *a;

	enter_own_network();
	a = open_on("lo");
	join(a, IPV4_GROUP);
	for (int i = 0; i < 3; i++) {
		send_word(a, "127.0.0.1", "127.0.0.1");
		expect_word(a, "127.0.0.1", "127.0.0.1");
		send_word(a, "127.0.0.1", IPV4_GROUP);
		expect_word(a, "127.0.0.1", IPV4_GROUP);
	}
	expect_silence(a);
	vb_udp_close(a);
}

static void expect_copies_across(const char *source, const char *group)
{
	struct vb_udp *sender;
	struct vb_udp *neighbour;
	struct vb_udp *far;

	enter_end(END_A);
	sender = open_on("va");
	neighbour = open_on("va");
	join(neighbour, group);
	enter_end(END_B);
	far = open_on("vb");
	join(far, group);
	send_word(sender, source, group);
	expect_word(far, source, group);
	expect_word(neighbour, source, group);
	expect_silence(sender);
	vb_udp_close(sender);
	vb_udp_close(neighbour);
	vb_udp_close(far);
}

TEST(members_on_both_ends_of_a_wire_get_a_copy)
{
	make_wire();
	expect_copies_across("10.9.0.1", IPV4_GROUP);
	expect_copies_across("fe80::1", IPV6_GROUP);
	expect_copies_across("fd09::1", "ff1e::1:2:3");
}

static void expect_copies_on_this_host(const char *source, const char *group)
{
	struct vb_udp_config config = { .port = VB_ROCE_PORT, .is_host_only = true };
	struct vb_udp_message message;
	char byte = 'v';
	struct iovec iovec = { &byte, 1 };
	struct vb_udp *sender, *neighbour, *far;

	enter_end(END_B);
	far = open_on("vb");
	join(far, group);
	enter_end(END_A);
	config.ifindex = if_nametoindex("va");
	sender = open_link(config);
	neighbour = open_on("va");
	join(neighbour, group);
	message = message_of(source, group, &iovec);
	message.hop_limit = 33;
	send_one(sender, message);
	send_word(neighbour, source, group); /* comes later, and first to the far end */
	EXPECT_EQ(receive_one(neighbour).length, 1);
	expect_word(neighbour, source, group);
	expect_word(far, source, group);
	expect_silence(far);
	vb_udp_close(sender);
	vb_udp_close(neighbour);
	vb_udp_close(far);
}

TEST(only_members_on_this_host_get_a_copy_from_a_link_that_is_for_this_host)
{
	make_wire();
	expect_copies_on_this_host("10.9.0.1", IPV4_GROUP);
	expect_copies_on_this_host("fe80::1", IPV6_GROUP);
	expect_copies_on_this_host("fd09::1", "ff1e::1:2:3");
}

TEST(a_link_of_ipv4_alone_knows_no_ipv6_group)
{
	struct vb_udp *a = open_link((struct vb_udp_config){ .is_ipv4_only = true });
	struct vb_udp_address group = address_of(IPV6_GROUP);

	EXPECT_EQ(vb_udp_join(a, &group), VB_EOPNOTSUPP);
	vb_udp_close(a);
}
