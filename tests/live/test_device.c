/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices from a real kernel, in a network namespace of the test's own, which vanishes with the
 * test. Interfaces are made with `ip`. Most changes are in place when `ip` returns. For changes
 * that the kernel finishes later, the test waits with the watch, as a program would.
 */
#include "harness.h"
#include "namespace.h"

#include "host/device/device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_MS 10000

static struct vb_config config;
static struct vb_device *devices;
static uint32_t count;

static void free_list(void)
{
	vb_device_list_free(devices);
	devices = NULL;
}

static void begin(void)
{
	namespace_enter();
	atexit(free_list);
}

static void list(void)
{
	free_list();
	EXPECT_EQ(vb_device_list(&config, &devices, &count), VB_OK);
}

static void expect_list(const char *expected)
{
	char text[1024] = "";

	list();
	for (uint32_t i = 0; i < count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, devices[i].name);
	}
	EXPECT_STR(text, expected);
}

static void expect_gid(const struct vb_device *device, uint32_t index, const char *expected)
{
	char text[INET6_ADDRSTRLEN] = "";

	if (!vb_device_gid_is_empty(&device->gids[index]))
		inet_ntop(AF_INET6, device->gids[index].gid.raw, text, sizeof(text));
	EXPECT_STR(text, expected);
}

static uint32_t refresh(struct vb_device *device)
{
	struct vb_device_changes changes;

	EXPECT_EQ(vb_device_refresh(device, &config, &changes), VB_OK);
	return changes.what;
}

static int open_watch(void)
{
	int fd;

	EXPECT_EQ(vb_device_watch_open(&fd), VB_OK);
	return fd;
}

/* Refreshes at each notification until this change has come. */
static void wait_for(int fd, struct vb_device *device, uint32_t change)
{
	struct pollfd watch = { .fd = fd, .events = POLLIN };
	uint32_t seen = refresh(device);

	while (!(seen & change)) {
		if (poll(&watch, 1, WAIT_MS) != 1)
			FAIL("change %u did not come; there were %u", change, seen);
		EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_NEWS);
		seen |= refresh(device);
	}
}

TEST(a_namespace_with_loopback_only_has_that_device_once_it_is_up)
{
	begin();
	expect_list("");
	ip("link set lo up");
	expect_list("vb_lo");
	EXPECT(devices[0].is_loopback && vb_device_is_active(&devices[0]) && devices[0].guid);
	EXPECT_EQ(devices[0].path_mtu, 4096);
	EXPECT_EQ(devices[0].interface_mtu, 65536);
	EXPECT(devices[0].gids[0].is_host_only);
	expect_gid(&devices[0], 1, "::ffff:127.0.0.1");
	expect_gid(&devices[0], 2, "::1");
	expect_gid(&devices[0], 3, "");
}

TEST(gids_follow_the_addresses_of_the_interface)
{
	int fd;

	begin();
	namespace_add_dummy("d0");
	expect_list("");
	ip("address add 10.0.0.1/24 dev d0");
	ip("address add 10.0.0.2/24 dev d0");
	ip("address add 2001:db8::1/64 dev d0 nodad");
	ip("address add 10.5.0.1 peer 10.5.0.2 dev d0");
	fd = open_watch();
	expect_list("vb_d0");
	EXPECT(devices[0].gids[0].is_host_only);
	expect_gid(&devices[0], 1, "::ffff:10.0.0.1");
	expect_gid(&devices[0], 2, "::ffff:10.5.0.1");
	expect_gid(&devices[0], 3, "::ffff:10.0.0.2");
	expect_gid(&devices[0], 4, "2001:db8::1");

	/* Removes the second address of the network as well. */
	ip("address del 10.0.0.1/24 dev d0");
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_NEWS);
	EXPECT_EQ(refresh(&devices[0]), VB_DEVICE_GID_CHANGE);
	expect_gid(&devices[0], 1, "");
	expect_gid(&devices[0], 2, "::ffff:10.5.0.1");
	expect_gid(&devices[0], 4, "2001:db8::1");

	ip("address add fe80::77/64 dev d0 nodad");
	EXPECT_EQ(refresh(&devices[0]), VB_DEVICE_GID_CHANGE);
	expect_gid(&devices[0], 0, "fe80::77");
	EXPECT(!devices[0].gids[0].is_host_only);
	EXPECT_EQ(refresh(&devices[0]), 0);
	vb_device_watch_close(fd);
}

TEST(a_port_is_down_while_its_cable_is_unplugged)
{
	int fd;

	begin();
	ip("link add v0 mtu 9000 type veth peer name v1");
	ip("link set v0 addrgenmode none");
	ip("link set v0 up");
	ip("link set v1 up");
	ip("address add 10.0.0.1/24 dev v0");
	fd = open_watch();
	config = (struct vb_config){ .devices = "v0" };
	expect_list("vb_v0");
	EXPECT_EQ(devices[0].path_mtu, 4096);
	if (!vb_device_is_active(&devices[0]))
		wait_for(fd, &devices[0], VB_DEVICE_PORT_ACTIVE);
	ip("link set v1 down");
	wait_for(fd, &devices[0], VB_DEVICE_PORT_ERROR);
	expect_list("vb_v0"); /* the interface is up and has an address, but no peer */
	ip("link set v1 up");
	wait_for(fd, &devices[0], VB_DEVICE_PORT_ACTIVE);
	ip("link set v0 down");
	EXPECT(refresh(&devices[0]) & VB_DEVICE_PORT_ERROR);
	expect_gid(&devices[0], 1, "::ffff:10.0.0.1");
	vb_device_watch_close(fd);
}

TEST(the_path_mtu_follows_the_interface)
{
	begin();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	expect_list("vb_d0");
	EXPECT_EQ(devices[0].path_mtu, 1024);
	ip("link set d0 mtu 4500");
	EXPECT_EQ(refresh(&devices[0]), VB_DEVICE_MTU_CHANGE);
	EXPECT_EQ(devices[0].path_mtu, 4096);
	config.mtu = 512;
	list();
	EXPECT_EQ(devices[0].path_mtu, 512);
}

TEST(a_renamed_interface_is_the_same_device)
{
	begin();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	expect_list("vb_d0");
	ip("link set d0 down");
	ip("link set d0 name other");
	ip("link set other up");
	refresh(&devices[0]);
	EXPECT_STR(devices[0].name, "vb_d0");
	EXPECT_STR(devices[0].ifname, "other");
	EXPECT(vb_device_is_active(&devices[0]));
	expect_list("vb_other");
}

TEST(a_deleted_interface_is_gone_and_a_new_one_of_its_name_is_another)
{
	uint32_t ifindex;
	int fd;

	begin();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	fd = open_watch();
	expect_list("vb_d0");
	ifindex = devices[0].ifindex;
	ip("link del d0");
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_NEWS);
	EXPECT_EQ(refresh(&devices[0]), VB_DEVICE_GONE | VB_DEVICE_PORT_ERROR);
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	EXPECT_EQ(refresh(&devices[0]), VB_DEVICE_GONE);
	expect_list("vb_d0");
	EXPECT(devices[0].ifindex != ifindex);
	vb_device_watch_close(fd);
}

TEST(the_best_default_route_decides_which_device_is_first)
{
	begin();
	ip("link set lo up");
	namespace_add_dummy("d0");
	namespace_add_dummy("d1");
	namespace_add_dummy("d2");
	ip("address add 10.0.0.1/24 dev d0");
	ip("address add 10.0.1.1/24 dev d1");
	ip("address add 10.0.2.1/24 dev d2");
	expect_list("vb_d0 vb_d1 vb_d2 vb_lo");
	EXPECT(!devices[0].is_default_route);
	ip("route add default via 10.0.1.9 metric 100");
	expect_list("vb_d1 vb_d0 vb_d2 vb_lo");
	EXPECT(devices[0].is_default_route);
	ip("route add default via 10.0.2.9 metric 50");
	expect_list("vb_d2 vb_d0 vb_d1 vb_lo");
	ip("route add default via 10.0.0.9 table 77");
	ip("route add unreachable default metric 1");
	expect_list("vb_d2 vb_d0 vb_d1 vb_lo");
	ip("route del default via 10.0.2.9");
	expect_list("vb_d1 vb_d0 vb_d2 vb_lo");
	ip("route replace default metric 100 nexthop via 10.0.2.9 nexthop via 10.0.0.9");
	expect_list("vb_d2 vb_d0 vb_d1 vb_lo");
}

TEST(an_ipv6_default_route_counts_where_there_is_none_for_ipv4)
{
	begin();
	namespace_add_dummy("d0");
	namespace_add_dummy("d1");
	ip("address add 2001:db8::1/64 dev d0 nodad");
	ip("address add 2001:db8:1::1/64 dev d1 nodad");
	ip("address add 10.0.0.1/24 dev d0");
	ip("-6 route add default via 2001:db8:1::9 dev d1");
	expect_list("vb_d1 vb_d0");
	ip("route add default via 10.0.0.9 metric 5000");
	expect_list("vb_d0 vb_d1");
}

/* The kernel gives an interface its link-local address a moment after it is up. */
static void list_with_addresses(int watch_fd)
{
	struct pollfd watch = { .fd = watch_fd, .events = POLLIN };
	uint32_t ready;

	for (;;) {
		list();
		for (ready = 0; ready < count && !devices[ready].gids[0].is_host_only; ready++)
			;
		if (ready == count)
			return;
		if (poll(&watch, 1, WAIT_MS) != 1)
			FAIL("%s has no address of its own", devices[ready].name);
		EXPECT_EQ(vb_device_watch_take(watch_fd), VB_DEVICE_NEWS);
	}
}

TEST(two_hundred_interfaces_are_two_hundred_devices)
{
	int watch;

	begin();
	watch = open_watch();
	EXPECT_EQ(system("for i in $(seq 200); do echo link add d$i type $KIND;"
			 "echo link set d$i up; echo address add 10.0.$i.1/24 dev d$i;"
			 "echo address add 10.1.$i.1/24 dev d$i; done | ip -batch -"),
		  0);
	list_with_addresses(watch);
	EXPECT_EQ(count, 200);
	for (uint32_t i = 0; i < count; i++) {
		char expected[64];

		snprintf(expected, sizeof(expected), "vb_d%u", i + 1);
		EXPECT_STR(devices[i].name, expected);
		snprintf(expected, sizeof(expected), "::ffff:10.0.%u.1", i + 1);
		expect_gid(&devices[i], 1, expected);
		for (uint32_t j = 0; j < i; j++)
			EXPECT(devices[i].guid != devices[j].guid);
	}
	vb_device_watch_close(watch);
}

TEST(a_default_route_is_found_among_ten_thousand)
{
	begin();
	namespace_add_dummy("d0");
	namespace_add_dummy("d1");
	ip("address add 10.0.0.1/24 dev d0");
	ip("address add 10.0.1.1/24 dev d1");
	EXPECT_EQ(system("for i in $(seq 40); do for j in $(seq 250); do"
			 " echo route add 11.$i.$j.0/24 via 10.0.0.9; done; done | ip -batch -"),
		  0);
	ip("route add default via 10.0.1.9");
	expect_list("vb_d1 vb_d0");
}

TEST(changes_while_the_list_is_made_do_no_harm)
{
	int status;
	pid_t child;

	begin();
	namespace_add_dummy("d0");
	namespace_add_dummy("d1");
	ip("address add 10.0.0.1/24 dev d0");
	ip("address add 10.0.1.1/24 dev d1");
	child = fork();
	if (child == 0)
		_exit(system("for i in $(seq 100); do echo link add x$i type $KIND;"
			     "echo address add 10.3.0.1/24 dev x$i;"
			     "[ $i -lt 20 ] || echo link del x$((i - 19)); done | ip -batch -") !=
		      0);
	do {
		list();
		EXPECT_EQ(count, 2);
		EXPECT_STR(devices[1].name, "vb_d1");
		expect_gid(&devices[1], 1, "::ffff:10.0.1.1");
	} while (waitpid(child, &status, WNOHANG) == 0);
	EXPECT_EQ(status, 0);
}

static void on_alarm(int number)
{
	(void)number;
}

TEST(signals_do_no_harm)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };
	struct sigaction action = { .sa_handler = on_alarm };

	begin();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	EXPECT_EQ(sigaction(SIGVTALRM, &action, NULL), 0);
	EXPECT_EQ(sigaction(SIGPROF, &action, NULL), 0);
	EXPECT_EQ(setitimer(ITIMER_PROF, &often, NULL), 0);
	for (uint32_t i = 0; i < 200; i++)
		expect_list("vb_d0");
	setitimer(ITIMER_PROF, &never, NULL);
}

TEST(an_ordinary_user_sees_the_same_devices)
{
	begin();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	if (setresuid(65534, 65534, 65534))
		SKIP("cannot become another user: %s", strerror(errno));
	vb_device_watch_close(open_watch());
	expect_list("vb_d0");
}

TEST(more_changes_than_the_watch_can_hold_are_still_news)
{
	int fd;

	begin();
	namespace_add_dummy("d0");
	fd = open_watch();
	EXPECT_EQ(system("for i in $(seq 2000); do echo address add 10.0.0.1/24 dev d0;"
			 "echo address del 10.0.0.1/24 dev d0; done | ip -batch -"),
		  0);
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_NEWS);
	ip("address add 10.0.0.1/24 dev d0");
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_NEWS);
	vb_device_watch_close(fd);
}

TEST(a_watch_that_the_program_closed_is_lost_and_the_program_is_not_robbed)
{
	int fd, pipes[2];
	char letter = 'x';

	begin();
	fd = open_watch();
	EXPECT_EQ(vb_device_watch_take(fd),
		  VB_DEVICE_NO_NEWS); /* nothing has happened in this namespace */
	close(fd);
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_WATCH_LOST);
	EXPECT_EQ(pipe(pipes), 0);
	EXPECT_EQ(dup2(pipes[0], fd), fd);
	EXPECT_EQ(write(pipes[1], &letter, 1), 1);
	EXPECT_EQ(vb_device_watch_take(fd), VB_DEVICE_WATCH_LOST);
	vb_device_watch_close(fd);
	EXPECT_EQ(read(fd, &letter, 1), 1);
}
