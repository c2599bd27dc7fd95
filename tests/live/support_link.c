/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_link.h"

#include "namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int end_network[2];

enum { PATIENCE_MS = 10000, SILENCE_MS = 50 };

struct vb_udp *open_link(struct vb_udp_config config)
{
	struct vb_udp *udp;

	MUST(vb_udp_open(&config, &udp));
	return udp;
}

struct vb_udp_address address_of(const char *text)
{
	struct vb_udp_address address = { .ip = { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, address.ip + 12) != 1)
		EXPECT_EQ(inet_pton(AF_INET6, text, address.ip), 1);
	return address;
}

struct vb_udp_message message_of(const char *source, const char *destination,
				 const struct iovec *iovec)
{
	return (struct vb_udp_message){
		.source = address_of(source),
		.destination = address_of(destination),
		.iovecs = iovec,
		.iovec_count = 1,
	};
}

/* On a busy machine the kernel may have no room for a moment. */
void send_one(struct vb_udp *udp, struct vb_udp_message message)
{
	uint32_t waited_ms = 0;

	while (!vb_udp_send(udp, &message, 1)) {
		EXPECT(++waited_ms < PATIENCE_MS);
		usleep(1000);
	}
}

static bool is_readable(struct vb_udp *udp, int timeout_ms)
{
	struct pollfd fd = { .fd = vb_udp_fd(udp), .events = POLLIN };

	return poll(&fd, 1, timeout_ms) == 1;
}

void receive_all(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t count)
{
	uint32_t got = vb_udp_receive(udp, out, count);

	if (!got) {
		EXPECT(is_readable(udp, PATIENCE_MS));
		got = vb_udp_receive(udp, out, count);
	}
	EXPECT_EQ(got, count);
}

struct vb_udp_datagram receive_one(struct vb_udp *udp)
{
	struct vb_udp_datagram datagram;

	receive_all(udp, &datagram, 1);
	return datagram;
}

void expect_silence(struct vb_udp *udp)
{
	struct vb_udp_datagram datagram;

	EXPECT_EQ(vb_udp_receive(udp, &datagram, 1), 0);
	EXPECT(!is_readable(udp, SILENCE_MS));
	EXPECT_EQ(vb_udp_receive(udp, &datagram, 1), 0);
}

void fill_pattern(uint8_t *bytes, size_t length, uint32_t seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (uint8_t)(((uint32_t)i * 2654435761u + seed * 40503u) >> 16);
}

void *vanished_memory(size_t length)
{
	void *memory =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	EXPECT(memory != MAP_FAILED);
	EXPECT_EQ(munmap(memory, length), 0);
	return memory;
}

pid_t start_process(void (*run)(void *argument), void *argument)
{
	pid_t process = fork();

	EXPECT(process >= 0);
	if (process)
		return process;
	alarm(60); /* the test's own alarm is not inherited */
	run(argument);
	exit(0);
}

void join_process(pid_t process)
{
	int status;

	EXPECT_EQ(waitpid(process, &status, 0), process);
	EXPECT(WIFEXITED(status));
	EXPECT_EQ(WEXITSTATUS(status), 0);
}

void enter_own_network(void)
{
	namespace_unshare(CLONE_NEWNET);
	if (system("ip link set lo up 2>/dev/null") != 0)
		SKIP("no command ip, or it may not set up interfaces");
}

static int own_network(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY); /* the command ip inherits it */

	EXPECT(fd >= 0);
	return fd;
}

static void set_up_end(const char *interface, int number)
{
	command("ip addr add 10.9.0.%d/24 dev %s", number, interface);
	command("ip addr add fd09::%d/64 dev %s nodad", number, interface);
	command("ip link set %s up mtu 4500 addrgenmode none", interface);
	command("ip addr add fe80::%d/64 dev %s nodad", number, interface);
}

void make_wire(void)
{
	enter_own_network();
	end_network[END_A] = own_network();
	enter_own_network();
	end_network[END_B] = own_network();
	command("ip link add vb type veth peer name va netns /proc/%d/fd/%d", getpid(),
		end_network[END_A]);
	set_up_end("vb", 2);
	enter_end(END_A);
	set_up_end("va", 1);
}

void enter_end(enum end end)
{
	EXPECT_EQ(setns(end_network[end], CLONE_NEWNET), 0);
}

void cut_segments_on_the_wire(const char *interface)
{
	if (system("command -v ethtool >/dev/null") != 0)
		SKIP("no command ethtool");
	command("ethtool -K %s tx-udp-segmentation off", interface);
}

void command(const char *format, ...)
{
	char line[400];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (system(line) != 0)
		FAIL("failed: %s", line);
}

int open_capture(const char *interface)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(0x0003), /* all */
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	EXPECT(fd >= 0);
	EXPECT_EQ(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}
