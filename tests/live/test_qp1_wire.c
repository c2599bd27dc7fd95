/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connect and a disconnect as they are on the cable: tshark must recognize each message, and each
 * ICRC must be right.
 */
#include "support_manager.h"

#include "base/crc.h"
#include "support_link.h"
#include "wire/flow.h"
#include "wire/header.h"
#include "wire/icrc.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORT 7471
#define PATIENCE_MS 10000
#define MESSAGES 5

enum { FRAME_MAX = 2000, ETHERNET = 14 };

struct frame {
	uint8_t bytes[FRAME_MAX];
	uint32_t length;
};

static struct manager manager;
static struct frame frames[MESSAGES];

static void serve(int line)
{
	struct vb_cm_connection *connection;
	struct service service;

	enter_end(END_B);
	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	connection = manager_take_connection(&manager);
	say_letter(line, 'e');
	manager_expect(&manager, VB_CM_DISCONNECTED);
	manager_disconnect(&manager, connection);
	manager_expect(&manager, VB_CM_TIMEWAIT_EXIT);
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

/* Returns the next RoCEv2 packet; skips neighbour discovery and the like. */
static void capture(int fd, struct frame *frame)
{
	struct vb_flow flow;
	uint32_t payload_length;
	uint16_t ip_id;

	do {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		ssize_t length;

		EXPECT_EQ(poll(&wait, 1, PATIENCE_MS), 1);
		length = recv(fd, frame->bytes, FRAME_MAX, 0);
		EXPECT(length > ETHERNET);
		frame->length = (uint32_t)length;
	} while (!vb_flow_parse_ip_udp(frame->bytes + ETHERNET, frame->length - ETHERNET, &flow,
				       &payload_length, &ip_id));
}

static void expect_right_icrc(const struct frame *frame)
{
	struct vb_flow flow;
	uint32_t length, offset, crc;
	uint16_t ip_id;
	const uint8_t *packet;

	offset = vb_flow_parse_ip_udp(frame->bytes + ETHERNET, frame->length - ETHERNET, &flow,
				      &length, &ip_id);
	packet = frame->bytes + ETHERNET + offset;
	crc = vb_crc32(vb_icrc_begin(&flow, length, ip_id, packet), packet + VB_BTH_SIZE,
		       length - VB_ICRC_SIZE - VB_BTH_SIZE);
	EXPECT_EQ(vb_icrc_load(packet + length - VB_ICRC_SIZE), crc);
}

static void write_capture(const char *path)
{
	static const uint32_t begin[] = { 0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65536, 1 };
	FILE *file = fopen(path, "wb");

	EXPECT(file);
	EXPECT_EQ(fwrite(begin, sizeof(begin), 1, file), 1);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t head[] = { i, 0, frames[i].length, frames[i].length };

		EXPECT_EQ(fwrite(head, sizeof(head), 1, file), 1);
		EXPECT_EQ(fwrite(frames[i].bytes, frames[i].length, 1, file), 1);
	}
	EXPECT_EQ(fclose(file), 0);
}

/* Checks what tshark prints for each packet, one per line. */
static void expect_in_tshark(const char *path, const char *const words[MESSAGES])
{
	char line[512];
	FILE *said;

	snprintf(line, sizeof(line),
		 "tshark -r %s -T fields -e _ws.col.Info -e _ws.malformed 2>/dev/null", path);
	said = popen(line, "r");
	EXPECT(said);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		EXPECT(fgets(line, sizeof(line), said));
		if (!strstr(line, words[i]) || strstr(line, "alformed"))
			FAIL("message %u is %s for tshark, not %s", i, line, words[i]);
	}
	pclose(said);
}

static void record_connect(const char *from, const char *to)
{
	static const char *const words[MESSAGES] = { "ConnectRequest", "ConnectReply", "ReadyToUse",
						     "DisconnectRequest", "DisconnectReply" };
	char path[] = "/tmp/verbatim-test-XXXXXX";
	struct vb_cm_connection *connection;
	struct party server;
	int fd;

	if (system("command -v tshark >/dev/null"))
		SKIP("no command tshark");
	make_wire();
	server = party_start(serve);
	hear_letter(server.line, 'l');
	fd = open_capture("va");
	manager_open(&manager);
	connection = manager_make_connection(&manager, from, to, PORT);
	hear_letter(server.line, 'e');
	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		capture(fd, &frames[i]);
		expect_right_icrc(&frames[i]);
	}
	close(fd);
	EXPECT(mkstemp(path) >= 0);
	write_capture(path);
	expect_in_tshark(path, words);
	unlink(path);
	party_join(&server);
	manager_close(&manager);
}

TEST(tshark_knows_each_message_of_a_connection_over_ipv4)
{
	record_connect("10.9.0.1", "10.9.0.2");
}

TEST(tshark_knows_each_message_of_a_connection_over_ipv6)
{
	record_connect("fd09::1", "fd09::2");
}
