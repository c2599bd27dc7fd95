/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_wire.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void capture(int fd, struct captured *captured)
{
	uint32_t offset = 0;

	while (!offset) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t length;

		EXPECT_EQ(poll(&wait, 1, 5000), 1);
		length = recv(fd, captured->bytes, FRAME_MAX, 0);
		EXPECT(length > ETHERNET);
		captured->ip = captured->bytes + ETHERNET;
		offset = vb_flow_parse_ip_udp(captured->ip, (uint32_t)(length - ETHERNET),
					      &captured->flow, &captured->payload_length,
					      &captured->ip_id);
	}
	captured->payload = captured->ip + offset;
}

struct wire *open_wire_as(struct vb_udp_config config)
{
	static struct wire wire;

	make_wire();
	config.ifindex = if_nametoindex("va");
	wire.a = open_link(config);
	enter_end(END_B);
	config.ifindex = if_nametoindex("vb");
	wire.b = open_link(config);
	wire.capture = open_capture("vb");
	enter_end(END_A);
	fill_pattern(wire.bytes, sizeof(wire.bytes), 3);
	wire.iovec = (struct iovec){ wire.bytes, sizeof(wire.bytes) };
	return &wire;
}

struct wire *open_wire(void)
{
	return open_wire_as((struct vb_udp_config){ .port = VB_ROCE_PORT, .is_segmenting = true });
}

void close_wire(struct wire *wire)
{
	close(wire->capture);
	vb_udp_close(wire->a);
	vb_udp_close(wire->b);
}

struct vb_udp_message message_on(struct wire *wire, const char *source, const char *destination,
				 uint32_t length)
{
	struct vb_udp_message message;

	wire->iovec.iov_len = length;
	message = message_of(source, destination, &wire->iovec);
	message.traffic_class = 0x6a;
	message.hop_limit = 33;
	return message;
}

void expect_packet(struct wire *wire, const char *source, const char *destination, uint32_t first,
		   uint32_t length)
{
	struct captured *got = &wire->captured;
	struct vb_udp_address from = address_of(source), to = address_of(destination);

	capture(wire->capture, got);
	EXPECT_EQ(got->payload_length, length);
	EXPECT_MEM(got->payload, wire->bytes + first, length);
	EXPECT_MEM(got->flow.source.raw, from.ip, 16);
	EXPECT_MEM(got->flow.destination.raw, to.ip, 16);
	EXPECT_EQ(got->flow.source_port, vb_udp_source_port(wire->a, 0));
	EXPECT_EQ(got->flow.traffic_class, 0x6a);
	EXPECT_EQ(got->flow.hop_limit, 33);
}
