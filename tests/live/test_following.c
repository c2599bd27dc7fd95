/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open device follows its interface: what the verbs report of port and GIDs changes with the
 * interface, and programs learn of it by async events. Each change is made with `ip` and awaited by
 * its event.
 */
#include "harness.h"
#include "namespace.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 10000

static struct ibv_context *context;

static void open_first_device(const char *name)
{
	int count;
	struct ibv_device **list = ibv_get_device_list(&count);

	EXPECT(list && count > 0);
	EXPECT_STR(ibv_get_device_name(list[0]), name);
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
}

static void begin(void)
{
	namespace_enter();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	open_first_device("vb_d0");
}

static void expect_event(enum ibv_event_type type)
{
	struct pollfd events = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&events, 1, WAIT_MS) != 1)
		FAIL("there was no event; expected: %s", ibv_event_type_str(type));
	EXPECT_EQ(ibv_get_async_event(context, &event), 0);
	EXPECT_STR(ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	if (type != IBV_EVENT_DEVICE_FATAL)
		EXPECT_EQ(event.element.port_num, 1);
	ibv_ack_async_event(&event);
}

/* All three ways to ask must agree. */
static void expect_gid(int index, const char *expected)
{
	char text[INET6_ADDRSTRLEN] = "";
	struct ibv_gid_entry entry = { 0 }, table[256];
	union ibv_gid gid;
	ssize_t count;
	bool is_listed = false;

	EXPECT_EQ(ibv_query_gid(context, 1, index, &gid), 0);
	EXPECT_EQ(ibv_query_gid_ex(context, 1, (uint32_t)index, &entry, 0) == 0, *expected != 0);
	EXPECT_MEM(&entry.gid, &gid, sizeof(gid));
	count = ibv_query_gid_table(context, table, 256, 0);
	for (ssize_t i = 0; i < count; i++)
		is_listed |= table[i].gid_index == (uint32_t)index &&
			     !memcmp(&table[i].gid, &gid, sizeof(gid));
	EXPECT_EQ(is_listed, *expected != 0);
	if (*expected)
		inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	EXPECT_STR(text, expected);
}

static void expect_port(enum ibv_port_state state, enum ibv_mtu mtu)
{
	struct ibv_port_attr attr;

	EXPECT_EQ(ibv_query_port(context, 1, &attr), 0);
	EXPECT_EQ(attr.state, state);
	EXPECT_EQ(attr.active_mtu, mtu);
}

TEST(gids_come_and_go_with_the_addresses_and_the_others_keep_their_place)
{
	begin();
	expect_gid(1, "::ffff:10.0.0.1");
	ip("address add 10.0.1.1/24 dev d0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_gid(2, "::ffff:10.0.1.1");
	ip("address del 10.0.0.1/24 dev d0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_gid(1, "");
	expect_gid(2, "::ffff:10.0.1.1");
	ip("address add 10.0.2.1/24 dev d0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_gid(1, "::ffff:10.0.2.1");
	expect_gid(2, "::ffff:10.0.1.1");
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(an_interface_that_goes_down_is_a_port_error_until_it_is_up_again)
{
	begin();
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_1024);
	ip("link set d0 down");
	expect_event(IBV_EVENT_PORT_ERR);
	expect_port(IBV_PORT_DOWN, IBV_MTU_1024);
	ip("link set d0 up");
	expect_event(IBV_EVENT_PORT_ACTIVE);
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_1024);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_device_whose_interface_is_deleted_tells_so_once)
{
	begin();
	ip("link del d0");
	expect_event(IBV_EVENT_PORT_ERR);
	expect_event(IBV_EVENT_DEVICE_FATAL);
	expect_port(IBV_PORT_DOWN, IBV_MTU_1024);
	ip("link set lo up"); /* a notification that concerns other interfaces */
	EXPECT_EQ(poll(&(struct pollfd){ context->async_fd, POLLIN, 0 }, 1, 300), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	EXPECT(qp);
	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
	return qp;
}

static int connect_qp(struct ibv_qp *qp, enum ibv_mtu mtu)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1, .port_num = 1, .grh.sgid_index = 1 },
	};

	EXPECT_EQ(ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid), 0);
	return ibv_modify_qp(qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

/* No event reports the MTU: the addresses that change before and after it do. */
TEST(the_mtu_follows_the_interface)
{
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	begin();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	EXPECT(pd && cq);
	qp = make_qp(pd, cq);
	EXPECT_EQ(connect_qp(qp, IBV_MTU_4096), EINVAL);
	ip("link set d0 mtu 4500");
	ip("address add 10.0.1.1/24 dev d0");
	expect_event(IBV_EVENT_GID_CHANGE);
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_4096);
	EXPECT_EQ(connect_qp(qp, IBV_MTU_4096), 0);
	EXPECT_EQ(ibv_destroy_qp(qp), 0);
	EXPECT_EQ(ibv_destroy_cq(cq), 0);
	EXPECT_EQ(ibv_dealloc_pd(pd), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_device_that_was_listed_long_ago_is_opened_as_it_is_now)
{
	struct ibv_device **list;

	namespace_enter();
	namespace_add_dummy("d0");
	ip("address add 10.0.0.1/24 dev d0");
	list = ibv_get_device_list(NULL);
	EXPECT(list && list[0]);
	ip("address add 10.0.1.1/24 dev d0");
	ip("link set d0 mtu 4500");
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
	expect_gid(2, "::ffff:10.0.1.1");
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_4096);
	EXPECT_EQ(poll(&(struct pollfd){ context->async_fd, POLLIN, 0 }, 1, 0), 0);
	EXPECT_EQ(ibv_close_device(context), 0);
}

/* Sets the address of the alias d0:1, without a process that would take time to exit. */
static void set_alias(const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct ifreq request = { .ifr_name = "d0:1" };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	EXPECT_EQ(inet_pton(AF_INET, address, &in.sin_addr), 1);
	memcpy(&request.ifr_addr, &in, sizeof(in));
	EXPECT_EQ(ioctl(fd, SIOCSIFADDR, &request), 0);
	close(fd);
}

TEST(an_address_is_in_the_gid_table_as_soon_as_the_interface_has_it)
{
	begin();
	for (int i = 0; i < 50; i++) {
		set_alias("10.0.1.1");
		expect_gid(2, "::ffff:10.0.1.1");
		set_alias("10.0.2.1");
		expect_gid(2, "::ffff:10.0.2.1");
	}
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_dormant_link_is_down)
{
	begin();
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_1024);
	ip("link set d0 mode dormant");
	ip("link set d0 state dormant");
	expect_event(IBV_EVENT_PORT_ERR);
	expect_port(IBV_PORT_DOWN, IBV_MTU_1024);
	ip("link set d0 state up");
	expect_port(IBV_PORT_ACTIVE, IBV_MTU_1024);
	expect_event(IBV_EVENT_PORT_ACTIVE);
	EXPECT_EQ(ibv_close_device(context), 0);
}
