/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that do not answer. The kernel's rdma_cm finds no hardware address for a host that does not
 * exist, and gives up after the timeout of rdma_resolve_addr(); here rdma_connect() fails instead,
 * with the same errno. Both wait for a host that exists and is silent, sixteen times 4.3 s.
 */
#include "support_cma.h"

#include "namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

/* Makes a pair of interfaces. One end has addresses. The other end exists and has none. */
static void make_wire(void)
{
	enter_network();
	ip("link add va type veth peer name vb");
	ip("link set vb addrgenmode none up");
	ip("link set va addrgenmode none up");
	ip("address add 10.9.0.1/24 dev va");
	ip("address add fd09::1/64 dev va nodad");
}

static void expect_unreachable(enum rdma_port_space space, const char *server)
{
	struct rdma_event_channel *channel = make_channel();
	struct rdma_cm_id *client = make_client_of(channel, space, server);

	EXPECT_EQ(rdma_connect(client, NULL), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_UNREACHABLE), -ETIMEDOUT);
	destroy(client);
}

TEST(a_host_that_is_not_there_is_unreachable_when_the_kernel_has_asked_for_it_in_vain)
{
	make_wire();
	expect_unreachable(RDMA_PS_TCP, "10.9.0.2");
	expect_unreachable(RDMA_PS_TCP, "fd09::2");
}

TEST(a_datagram_service_of_a_host_that_is_not_there_is_unreachable)
{
	make_wire();
	expect_unreachable(RDMA_PS_UDP, "10.9.0.2");
}

TEST(a_synchronous_connect_to_a_host_that_is_not_there_times_out)
{
	union address address = address_of("10.9.0.2", PORT);
	struct rdma_cm_id *id;

	make_wire();
	id = make_id(NULL, RDMA_PS_TCP);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
	make_qp(id);
	EXPECT_ERRNO(rdma_connect(id, NULL), ETIMEDOUT);
	destroy(id);
}

/*
 * The other end moves to a network of its own, as another host, where no process has the RoCE port.
 */
TEST(a_host_where_nobody_has_the_port_is_unreachable_at_once)
{
	int here, there;

	make_wire();
	here = open("/proc/self/ns/net", O_RDONLY);
	EXPECT_EQ(unshare(CLONE_NEWNET), 0);
	there = open("/proc/self/ns/net", O_RDONLY);
	EXPECT_EQ(setns(here, CLONE_NEWNET), 0);
	ip("link set vb netns /proc/%d/fd/%d", getpid(), there);
	EXPECT_EQ(setns(there, CLONE_NEWNET), 0);
	ip("link set vb addrgenmode none up");
	ip("address add 10.9.0.2/24 dev vb");
	ip("address add fd09::2/64 dev vb nodad");
	EXPECT_EQ(setns(here, CLONE_NEWNET), 0);
	expect_unreachable(RDMA_PS_TCP, "10.9.0.2");
	expect_unreachable(RDMA_PS_TCP, "fd09::2");
	expect_unreachable(RDMA_PS_UDP, "10.9.0.2");
}

/*
 * The other end is like a host whose programs hang: it has a hardware address, and drops
 * everything.
 */
TEST(a_host_that_is_silent_is_unreachable_after_all_retries)
{
	if (!test_is_thorough())
		SKIP("it takes more than a minute");
	make_wire();
	ip("neighbour add 10.9.0.2 lladdr 02:00:00:00:00:02 dev va");
	expect_unreachable(RDMA_PS_TCP, "10.9.0.2");
}
