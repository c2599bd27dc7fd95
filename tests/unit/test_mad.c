/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the connection manager. The golden tests check the fields that tshark shows. Here are
 * those that it does not show, at offsets taken from the tables of IBA volume 1, chapter 12.6, and
 * what must be refused.
 */
#include "harness.h"

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/mad.h"
#include "wire/service.h"

#include <stdio.h>
#include <string.h>

#define BODY VB_MAD_HEADER_SIZE

static const enum vb_mad_kind all_kinds[VB_MAD_KIND_COUNT] = {
	VB_MAD_REQ,  VB_MAD_MRA,      VB_MAD_REJ,      VB_MAD_REP, VB_MAD_RTU, VB_MAD_DREQ,
	VB_MAD_DREP, VB_MAD_SIDR_REQ, VB_MAD_SIDR_REP, VB_MAD_LAP, VB_MAD_APR,
};

static void stored(uint8_t bytes[VB_MAD_SIZE], const struct vb_mad *mad)
{
	memset(bytes, 0xa5, VB_MAD_SIZE);
	vb_mad_store(bytes, mad);
}

TEST(the_common_header_is_that_of_the_connection_manager)
{
	struct vb_mad mad = { .kind = VB_MAD_RTU,
			      .transaction = 0x1122334455667788,
			      .modifier = 0x99aabbcc };
	static const uint8_t expected[VB_MAD_HEADER_SIZE] = {
		1,    7,    2,	  3,	0,    0,    0, 0, 0x11, 0x22, 0x33, 0x44,
		0x55, 0x66, 0x77, 0x88, 0x00, 0x14, 0, 0, 0x99, 0xaa, 0xbb, 0xcc,
	};
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_MEM(bytes, expected, sizeof(expected));
}

TEST(private_data_ends_with_the_message)
{
	static const uint32_t sizes[VB_MAD_KIND_COUNT] = { 92,	222, 148, 196, 224, 220,
							   224, 216, 136, 168, 148 };

	for (uint32_t i = 0; i < VB_MAD_KIND_COUNT; i++) {
		struct vb_mad mad = { .kind = all_kinds[i] };
		uint8_t bytes[VB_MAD_SIZE];

		EXPECT_EQ(vb_mad_private_size(mad.kind), sizes[i]);
		memset(mad.private_data, 0x5a, sizes[i]);
		stored(bytes, &mad);
		EXPECT_EQ(bytes[VB_MAD_SIZE - sizes[i]], 0x5a);
		EXPECT_EQ(bytes[VB_MAD_SIZE - 1], 0x5a);
		EXPECT_EQ(bytes[VB_MAD_SIZE - sizes[i] - 1], 0);
	}
}

TEST(an_mra_says_about_which_message_and_for_how_long)
{
	struct vb_mad mad = { .kind = VB_MAD_MRA,
			      .local_id = 0x01020304,
			      .remote_id = 0x05060708,
			      .mra = { .about = VB_MAD_ABOUT_REP, .service_timeout = 24 } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load32(bytes + BODY), 0x01020304);
	EXPECT_EQ(load32(bytes + BODY + 4), 0x05060708);
	EXPECT_EQ(bytes[BODY + 8], 1 << 6);
	EXPECT_EQ(bytes[BODY + 9], 24 << 3);
}

TEST(ece_is_in_the_modifier_and_in_fields_that_were_reserved)
{
	struct vb_mad req = { .kind = VB_MAD_REQ, .req.vendor = { 0x11, 0x22, 0x33 } };
	struct vb_mad rep = { .kind = VB_MAD_REP, .rep.vendor = { 0x11, 0x22, 0x33 } };
	struct vb_mad sidr = { .kind = VB_MAD_SIDR_REP, .sidr_rep.vendor = { 0x11, 0x22, 0x33 } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &req);
	EXPECT_EQ(load32(bytes + BODY + 4), 0x00112233);
	stored(bytes, &rep);
	EXPECT_EQ(bytes[BODY + 15], 0x11);
	EXPECT_EQ(bytes[BODY + 19], 0x22);
	EXPECT_EQ(bytes[BODY + 23], 0x33);
	stored(bytes, &sidr);
	EXPECT_EQ(load16(bytes + BODY + 6), 0x1122);
	EXPECT_EQ(bytes[BODY + 11], 0x33);
}

TEST(a_sidr_request_has_its_id_pkey_and_service)
{
	struct vb_mad mad = { .kind = VB_MAD_SIDR_REQ,
			      .local_id = 0x01020304,
			      .sidr_req = { .pkey = 0xffff, .service = 0x1111d71 } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load32(bytes + BODY), 0x01020304);
	EXPECT_EQ(load16(bytes + BODY + 4), 0xffff);
	EXPECT_EQ(load64(bytes + BODY + 8), 0x1111d71);
}

TEST(a_sidr_reply_names_the_request)
{
	struct vb_mad mad = { .kind = VB_MAD_SIDR_REP,
			      .remote_id = 0x01020304,
			      .sidr_rep = { .status = VB_MAD_SIDR_NO_QP,
					    .info_length = 5,
					    .qpn = { 0xabcdef },
					    .service = 0x1111d71,
					    .qkey = 0x01234567,
					    .info = { 1, 2, 3 } } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load32(bytes + BODY), 0x01020304);
	EXPECT_EQ(bytes[BODY + 4], 3);
	EXPECT_EQ(bytes[BODY + 5], 5);
	EXPECT_EQ(load24(bytes + BODY + 8), 0xabcdef);
	EXPECT_EQ(load64(bytes + BODY + 12), 0x1111d71);
	EXPECT_EQ(load32(bytes + BODY + 20), 0x01234567);
	EXPECT_EQ(bytes[BODY + 24], 1);
}

TEST(a_flow_label_has_20_bits_and_a_packet_rate_6)
{
	struct vb_mad mad = { .kind = VB_MAD_REQ,
			      .req = { .primary = { .flow_label = 0xabcde, .packet_rate = 0x2a },
				       .alternate = { .flow_label = 0x54321,
						      .packet_rate = 0x15 } } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load32(bytes + BODY + 88), 0xabcde02a);
	EXPECT_EQ(load32(bytes + BODY + 132), 0x54321015);
}

TEST(an_alternate_path_has_another_order_in_a_lap)
{
	struct vb_mad mad = {
		.kind = VB_MAD_LAP,
		.lap = { .remote_qpn = { 0x123456 },
			 .remote_response_timeout = 20,
			 .alternate = { .local_lid = 0x0102,
					.remote_lid = 0x0304,
					.flow_label = 0xabcde,
					.traffic_class = 0x11,
					.hop_limit = 0x22,
					.packet_rate = 0x3f,
					.service_level = 0x5,
					.is_subnet_local = 1,
					.ack_timeout = 17 } },
	};
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load24(bytes + BODY + 12), 0x123456);
	EXPECT_EQ(bytes[BODY + 15], 20 << 3);
	EXPECT_EQ(load32(bytes + BODY + 20), 0x01020304);
	EXPECT_EQ(load24(bytes + BODY + 56), 0xabcde0);
	EXPECT_EQ(load32(bytes + BODY + 59), 0x11223f58);
	EXPECT_EQ(bytes[BODY + 63], 17 << 3);
}

TEST(an_apr_has_a_status_and_information)
{
	struct vb_mad mad = { .kind = VB_MAD_APR,
			      .apr = { .info_length = 2, .status = 7, .info = { 0xaa, 0xbb } } };
	uint8_t bytes[VB_MAD_SIZE];

	stored(bytes, &mad);
	EXPECT_EQ(load16(bytes + BODY + 8), 0x0207);
	EXPECT_EQ(load16(bytes + BODY + 12), 0xaabb);
}

/* Reserved bits are lost at the first parse; after that nothing may change. */
TEST(what_is_parsed_and_stored_parses_to_the_same)
{
	struct vb_prng prng;

	vb_prng_init(&prng, 1);
	for (uint32_t i = 0; i < 200 * VB_MAD_KIND_COUNT; i++) {
		uint8_t random[VB_MAD_SIZE], once[VB_MAD_SIZE], twice[VB_MAD_SIZE];
		struct vb_mad mad = { .kind = all_kinds[i % VB_MAD_KIND_COUNT] };

		vb_mad_store(once, &mad);
		for (uint32_t j = 0; j < VB_MAD_SIZE; j++)
			random[j] = (uint8_t)vb_prng_next(&prng);
		memcpy(random, once, 4);
		memcpy(random + 16, once + 16, 2);
		EXPECT_EQ(vb_mad_parse(random, VB_MAD_SIZE, &mad), VB_MAD_PARSED);
		vb_mad_store(once, &mad);
		EXPECT_EQ(vb_mad_parse(once, VB_MAD_SIZE, &mad), VB_MAD_PARSED);
		vb_mad_store(twice, &mad);
		EXPECT_MEM(once, twice, VB_MAD_SIZE);
	}
}

/* --- from a capture of Linux 6.1 with rdma_rxe, 10.77.0.2 to 10.77.0.1, final zeros omitted -- */

static struct vb_mad from_kernel(const char *hex)
{
	uint8_t bytes[VB_MAD_SIZE] = { 0 }, again[VB_MAD_SIZE];
	struct vb_mad mad;

	for (uint32_t i = 0; hex[2 * i]; i++) {
		unsigned value;

		EXPECT(sscanf(hex + 2 * i, "%2x", &value) == 1);
		bytes[i] = (uint8_t)value;
	}
	EXPECT_EQ(vb_mad_parse(bytes, VB_MAD_SIZE, &mad), VB_MAD_PARSED);
	vb_mad_store(again, &mad);
	EXPECT_MEM(again, bytes, VB_MAD_SIZE);
	return mad;
}

TEST(a_req_of_the_kernel_is_read_as_it_is_meant)
{
	struct vb_mad mad =
		from_kernel("010702030000000000000002360272cb0010000000000000cb72023600000000"
			    "0000000001061d2f505400fffe12345600000000000000000000110100000001"
			    "000000a0a92003a5ffff50f0ffffffff00000000000000000000ffff0a4d0002"
			    "00000000000000000000ffff0a4d00012e0da000004000980000000000000000"
			    "0000000000000000000000000000000000000000000000000000000000000000"
			    "00000000"
			    "00409af50000000000000000000000000a4d0002000000000000000000000000"
			    "0a4d0001");
	struct vb_service_ip ip;
	struct vb_gid ours = vb_gid_from_ipv4(0x0a4d0001), theirs = vb_gid_from_ipv4(0x0a4d0002);

	EXPECT_EQ(mad.kind, VB_MAD_REQ);
	EXPECT_EQ(mad.local_id, 0xcb720236);
	EXPECT_EQ(mad.req.service, vb_service_id(VB_SERVICE_SPACE_TCP, 7471));
	EXPECT_EQ(mad.req.ca_guid, 0x505400fffe123456);
	EXPECT_EQ(mad.req.qpn.v, 17);
	EXPECT_EQ(mad.req.responder_resources, 1);
	EXPECT_EQ(mad.req.initiator_depth, 1);
	EXPECT_EQ(mad.req.remote_response_timeout, 20);
	EXPECT_EQ(mad.req.local_response_timeout, 20);
	EXPECT_EQ(mad.req.transport, VB_MAD_TRANSPORT_RC);
	EXPECT_EQ(mad.req.starting_psn.v, 0xa92003);
	EXPECT_EQ(mad.req.retry_count, 5);
	EXPECT_EQ(mad.req.pkey, 0xffff);
	EXPECT_EQ(mad.req.mtu, 5);
	EXPECT_EQ(mad.req.cm_retries_max, 15);
	EXPECT_EQ(mad.req.primary.local_lid, VB_MAD_LID_PERMISSIVE);
	EXPECT_EQ(mad.req.primary.remote_lid, VB_MAD_LID_PERMISSIVE);
	EXPECT(vb_gid_equal(&mad.req.primary.local_gid, &theirs));
	EXPECT(vb_gid_equal(&mad.req.primary.remote_gid, &ours));
	EXPECT_EQ(mad.req.primary.flow_label, 0x2e0da);
	EXPECT_EQ(mad.req.primary.hop_limit, 64);
	EXPECT_EQ(mad.req.primary.is_subnet_local, 0);
	EXPECT_EQ(mad.req.primary.ack_timeout, 19);
	EXPECT(vb_service_ip_parse(mad.private_data, &ip));
	EXPECT_EQ(ip.source_port, 39669);
	EXPECT(vb_gid_equal(&ip.source, &theirs));
	EXPECT(vb_gid_equal(&ip.destination, &ours));
}

TEST(answers_of_the_kernel_are_read_as_they_are_meant)
{
	struct vb_mad rep =
		from_kernel("01070203000000009f1eef7603dc96940013000000000000c872023603dc9694"
			    "00000000000013000000000045780c00010178e0505400fffe123456");
	struct vb_mad rtu =
		from_kernel("010702030000000000000002360272cb0014000000000000cb720236038f123c");
	struct vb_mad dreq = from_kernel("010702030000000000000002360272ca0015000000000000ca720236"
					 "038f123d000101");
	struct vb_mad drep =
		from_kernel("01070203000000009f1eef7603dc96940016000000000000c872023603dc9694");

	EXPECT_EQ(rep.kind, VB_MAD_REP);
	EXPECT_EQ(rep.transaction, 0x9f1eef7603dc9694); /* the transaction of our REQ */
	EXPECT_EQ(rep.local_id, 0xc8720236);
	EXPECT_EQ(rep.remote_id, 0x03dc9694);
	EXPECT_EQ(rep.rep.qpn.v, 19);
	EXPECT_EQ(rep.rep.starting_psn.v, 0x45780c);
	EXPECT_EQ(rep.rep.responder_resources, 1);
	EXPECT_EQ(rep.rep.initiator_depth, 1);
	EXPECT_EQ(rep.rep.target_ack_delay, 15);
	EXPECT_EQ(rep.rep.rnr_retry_count, 7);
	EXPECT_EQ(rep.rep.has_srq, 0);
	EXPECT_EQ(rep.rep.ca_guid, 0x505400fffe123456);
	EXPECT_EQ(rtu.kind, VB_MAD_RTU);
	EXPECT_EQ(rtu.remote_id, 0x038f123c);
	EXPECT_EQ(dreq.kind, VB_MAD_DREQ);
	EXPECT_EQ(dreq.dreq.remote_qpn.v, 0x101);
	EXPECT_EQ(drep.kind, VB_MAD_DREP);
	EXPECT_EQ(drep.remote_id, 0x03dc9694);
}

static enum vb_mad_parsing parsing_with(uint32_t offset, uint8_t value, uint32_t length)
{
	struct vb_mad mad = { .kind = VB_MAD_REQ };
	uint8_t bytes[VB_MAD_SIZE];

	vb_mad_store(bytes, &mad);
	bytes[offset] = value;
	return vb_mad_parse(bytes, length, &mad);
}

TEST(what_is_no_message_of_the_connection_manager_is_refused)
{
	EXPECT_EQ(parsing_with(0, 1, VB_MAD_SIZE), VB_MAD_PARSED);
	EXPECT_EQ(parsing_with(0, 1, VB_MAD_SIZE - 1), VB_MAD_BAD_LENGTH);
	EXPECT_EQ(parsing_with(0, 1, 0), VB_MAD_BAD_LENGTH);
	EXPECT_EQ(parsing_with(0, 2, VB_MAD_SIZE), VB_MAD_BAD_CLASS);
	EXPECT_EQ(parsing_with(1, 3, VB_MAD_SIZE), VB_MAD_BAD_CLASS);
	EXPECT_EQ(parsing_with(3, 1, VB_MAD_SIZE), VB_MAD_BAD_CLASS);
	EXPECT_EQ(parsing_with(2, 1, VB_MAD_SIZE), VB_MAD_BAD_VERSION);
	EXPECT_EQ(parsing_with(17, 0x0f, VB_MAD_SIZE), VB_MAD_BAD_KIND);
	EXPECT_EQ(parsing_with(17, 0x1b, VB_MAD_SIZE), VB_MAD_BAD_KIND);
	EXPECT_EQ(parsing_with(16, 1, VB_MAD_SIZE), VB_MAD_BAD_KIND);
}

TEST(a_timeout_is_4096_ns_times_a_power_of_two)
{
	EXPECT_EQ(vb_mad_timeout_ns(0), 4096);
	EXPECT_EQ(vb_mad_timeout_ns(20), 4294967296);
	EXPECT_EQ(vb_mad_timeout_ns(31), 8796093022208);
}

TEST(a_message_in_words)
{
	struct vb_mad mad = { .kind = VB_MAD_REJ,
			      .remote_id = 0x2a,
			      .rej = { .about = VB_MAD_ABOUT_REQ,
				       .reason = VB_MAD_INVALID_SERVICE_ID } };
	char text[80];

	EXPECT_EQ(vb_mad_describe(&mad, text, sizeof(text)), 52);
	EXPECT_STR(text, "REJ local=0x0 remote=0x2a of REQ: invalid service ID");
	EXPECT_EQ(vb_mad_describe(&mad, text, 8), 52);
	EXPECT_STR(text, "REJ loc");
	EXPECT_EQ(vb_mad_describe(&mad, NULL, 0), 52);
	EXPECT_STR(vb_mad_reason_describe(34), "unknown");
	EXPECT_STR(vb_mad_reason_describe(65535), "unknown");
}

TEST(a_port_is_a_service)
{
	EXPECT_EQ(vb_service_id(VB_SERVICE_SPACE_TCP, 7471), 0x01061d2f);
	EXPECT_EQ(vb_service_id(VB_SERVICE_SPACE_UDP, 0xffff), 0x0111ffff);
	EXPECT_EQ(vb_service_port(0x01061d2f), 7471);
	EXPECT(vb_service_is_ip(0x01061d2f));
	EXPECT(vb_service_is_ip(vb_service_id(VB_SERVICE_SPACE_IB, 1)));
	EXPECT(!vb_service_is_ip(vb_service_id(VB_SERVICE_SPACE_IPOIB, 1)));
	EXPECT(!vb_service_is_ip(0x1000000001061d2f));
}

TEST(addresses_in_front_of_private_data)
{
	struct vb_service_ip v4 = { .source_port = 0x1234,
				    .source = vb_gid_from_ipv4(0x0a000001),
				    .destination = vb_gid_from_ipv4(0x0a000002) };
	struct vb_service_ip v6 = { .source = { { 0xfe, 0x80, [15] = 1 } },
				    .destination = { { 0xfe, 0x80, [15] = 2 } } };
	struct vb_service_ip parsed;
	uint8_t bytes[VB_SERVICE_IP_SIZE];

	memset(bytes, 0xff, sizeof(bytes));
	vb_service_ip_store(bytes, &v4);
	EXPECT_EQ(load32(bytes), 0x00401234);
	EXPECT_EQ(load64(bytes + 4) | load32(bytes + 12), 0);
	EXPECT_EQ(load32(bytes + 16), 0x0a000001);
	EXPECT_EQ(load32(bytes + 32), 0x0a000002);
	EXPECT(vb_service_ip_parse(bytes, &parsed));
	EXPECT_MEM(&parsed, &v4, sizeof(v4));
	vb_service_ip_store(bytes, &v6);
	EXPECT_EQ(load32(bytes), 0x00600000);
	EXPECT(vb_service_ip_parse(bytes, &parsed));
	EXPECT_MEM(&parsed, &v6, sizeof(v6));
	bytes[1] = 0x50;
	EXPECT(!vb_service_ip_parse(bytes, &parsed));
	bytes[1] = 0x60;
	bytes[0] = 1;
	EXPECT(!vb_service_ip_parse(bytes, &parsed));
}

TEST(the_addresses_of_an_ip_service_are_of_one_family)
{
	struct vb_gid ipv4 = vb_gid_from_ipv4(0x0a000002);
	struct vb_service_ip v6 = { .source = { { 0xfe, 0x80, [15] = 1 } },
				    .destination = { { 0xfe, 0x80, [15] = 2 } } };
	struct vb_service_ip parsed;
	uint8_t bytes[VB_SERVICE_IP_SIZE];

	vb_service_ip_store(bytes, &v6);
	memcpy(bytes + 20, ipv4.raw, sizeof(ipv4.raw)); /* version 6, but an IPv4 destination */
	EXPECT(!vb_service_ip_parse(bytes, &parsed));
	memcpy(bytes + 4, ipv4.raw, sizeof(ipv4.raw));
	EXPECT(vb_service_ip_parse(bytes, &parsed));
}
