/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets from the wire whose QPN belongs to no process, as after a bit flip. The process that gets
 * such a packet refuses it itself, for the reason that the engine finds, and counts it.
 */
#include "support_verbs.h"

#include "abi/objects_priv.h"
#include "host/registry/port_member.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#define ROCE_PORT 4791
#define PACKET_LENGTH 32

static struct program program;

static const struct vb_counters *counters(void)
{
	return vb_nic_counters(vb_adapter_nic(vb_abi_context_of(program.context)->adapter));
}

/*
 * Sends a SEND without data, whose ICRC is wrong. The socket stays open: a port without a socket
 * does not belong to a process of the same user.
 */
static void send_to(uint32_t qpn)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT) };
	unsigned char packet[PACKET_LENGTH] = { 4,
						0x40,
						0xff,
						0xff,
						0,
						(unsigned char)(qpn >> 16),
						(unsigned char)(qpn >> 8),
						(unsigned char)qpn };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	inet_pton(AF_INET, "10.0.0.1", &to.sin_addr);
	EXPECT_EQ(sendto(fd, packet, sizeof(packet), 0, (struct sockaddr *)&to, sizeof(to)),
		  PACKET_LENGTH);
}

TEST(a_damaged_packet_for_a_process_that_is_not_there_is_counted_as_damaged)
{
	uint64_t before;
	uint32_t nobody;

	program_enter_namespace();
	program_open(&program);
	program_round(&program);
	before = counters()->drops[VB_DROP_ICRC];
	nobody = program.qp->qp_num ^ (1u << VB_PORT_MEMBER_QPN_SHIFT);
	send_to(nobody);
	program_round(&program);
	EXPECT_EQ(counters()->drops[VB_DROP_ICRC] - before, 1);
	program_close(&program);
}
