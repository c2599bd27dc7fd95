/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of all three kinds: when two are the same, which leads back, and how they read. */
#include "framing/path.h"
#include "harness.h"

#include <string.h>

/* On memory that is not zero, as a slot that was used before. */
static struct vb_path on_used_memory(uint8_t filler, enum vb_path_kind kind, uint16_t link)
{
	struct vb_path path;

	memset(&path, filler, sizeof(path));
	path.kind = (uint8_t)kind;
	path.link = link;
	return path;
}

static struct vb_path ip_path(uint8_t filler)
{
	struct vb_path path = on_used_memory(filler, VB_PATH_IP, 0);

	path.ip = (struct vb_flow){
		.source = vb_gid_from_ipv4(0x0a000001),
		.destination = vb_gid_from_ipv4(0x0a000002),
		.flow_label = 0x12345,
		.source_port = 0xc001,
		.traffic_class = 0x28,
		.hop_limit = 64,
	};
	return path;
}

static struct vb_path lid_path(uint8_t filler)
{
	struct vb_path path = on_used_memory(filler, VB_PATH_LID, 0);

	path.lid = (struct vb_lid_route){
		.source = 4, .destination = 49151, .service_level = 15, .virtual_lane = 7
	};
	return path;
}

static struct vb_path stream_path(uint8_t filler)
{
	return on_used_memory(filler, VB_PATH_STREAM, 255);
}

static struct vb_path (*const makers[])(uint8_t filler) = { ip_path, lid_path, stream_path };

enum { KINDS = sizeof(makers) / sizeof(*makers) };

/* --- the same path --- */

TEST(a_path_equals_what_has_its_kind_link_and_addresses_whatever_lies_beside_them)
{
	for (uint32_t i = 0; i < KINDS; i++)
		for (uint32_t k = 0; k < KINDS; k++) {
			struct vb_path a = makers[i](0x00), b = makers[k](0xff);

			EXPECT_EQ(vb_path_equal(&a, &b), i == k);
			EXPECT_EQ(vb_path_equal(&b, &a), i == k);
		}
}

TEST(paths_on_two_links_differ)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		struct vb_path a = makers[i](0), b = makers[i](0);

		b.link ^= 1;
		EXPECT(!vb_path_equal(&a, &b));
	}
}

/* Flips each bit of the addresses in turn. */
static void expect_every_byte_to_count(struct vb_path (*make)(uint8_t filler), size_t length)
{
	for (size_t bit = 0; bit < 8 * length; bit++) {
		struct vb_path a = make(0), b = make(0);

		((uint8_t *)&b)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		EXPECT(!vb_path_equal(&a, &b));
	}
}

TEST(every_bit_of_a_flow_counts)
{
	expect_every_byte_to_count(ip_path, sizeof(struct vb_flow));
}

TEST(every_bit_of_LIDs_SL_and_VL_counts)
{
	expect_every_byte_to_count(lid_path, sizeof(struct vb_lid_route));
}

/* --- the way back --- */

TEST(a_packet_is_from_the_peer_if_its_GIDs_are_ours_exchanged)
{
	struct vb_path sent = ip_path(0), received = ip_path(0);

	EXPECT(!vb_path_is_from(&received, &sent));
	received.ip.source = sent.ip.destination;
	EXPECT(!vb_path_is_from(&received, &sent));
	received.ip.destination = sent.ip.source;
	EXPECT(vb_path_is_from(&received, &sent));
	/* The peer chooses its own source port, and routers change the rest. */
	received.ip.source_port = 0xffff;
	received.ip.traffic_class = 3;
	received.ip.hop_limit = 1;
	received.ip.flow_label = 0;
	EXPECT(vb_path_is_from(&received, &sent));
}

TEST(a_packet_is_from_the_peer_if_its_LIDs_are_ours_exchanged)
{
	struct vb_path sent = lid_path(0), received = lid_path(0);

	EXPECT(!vb_path_is_from(&received, &sent));
	received.lid.source = sent.lid.destination;
	EXPECT(!vb_path_is_from(&received, &sent));
	received.lid.destination = sent.lid.source;
	EXPECT(vb_path_is_from(&received, &sent));
	/* Switches choose the VL of each link. */
	received.lid.virtual_lane = 0;
	EXPECT(vb_path_is_from(&received, &sent));
}

TEST(a_packet_is_from_the_peer_if_it_came_by_the_same_stream)
{
	struct vb_path sent = stream_path(0x00), received = stream_path(0xff);

	EXPECT(vb_path_is_from(&received, &sent));
	received.link = 254;
	EXPECT(!vb_path_is_from(&received, &sent));
}

TEST(no_packet_is_from_a_peer_on_a_path_of_another_kind)
{
	for (uint32_t i = 0; i < KINDS; i++)
		for (uint32_t k = 0; k < KINDS; k++) {
			struct vb_path sent = on_used_memory(0, (enum vb_path_kind)i, 1);
			struct vb_path received = on_used_memory(0, (enum vb_path_kind)k, 1);

			EXPECT_EQ(vb_path_is_from(&received, &sent), i == k);
		}
}

/* --- text --- */

static void expect_text(const struct vb_path *path, const char *expected)
{
	char text[VB_PATH_TEXT_MAX];

	memset(text, '#', sizeof(text));
	vb_path_describe(path, text);
	EXPECT_STR(text, expected);
}

TEST(a_path_reads_as_the_place_where_it_leads)
{
	struct vb_path path = ip_path(0xff);

	expect_text(&path, "::ffff:10.0.0.2");
	path.ip.destination = (struct vb_gid){ { 0xfe, 0x80, [15] = 1 } };
	expect_text(&path, "fe80::1");
	memset(&path.ip.destination, 0xff, sizeof(path.ip.destination));
	expect_text(&path, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
	path = lid_path(0xff);
	expect_text(&path, "LID 49151, SL 15, VL 7");
	path = stream_path(0xff);
	expect_text(&path, "stream 255");
}

TEST(a_path_that_is_all_zero_is_an_IP_flow)
{
	struct vb_path path = { 0 };

	EXPECT_EQ(path.kind, VB_PATH_IP);
	expect_text(&path, "::");
}

/* Slots and frames are copied often: the kind must not make them longer. */
TEST(the_kind_takes_no_room)
{
	struct without {
		struct vb_flow ip;
		uint16_t link;
	};

	EXPECT_EQ(sizeof(struct vb_path), sizeof(struct without));
}
