/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1: connections are made and ended between processes of one host and of two. Each message finds
 * the process that it is for, a message for no process is refused immediately, and peers of a
 * process that dies are notified.
 */
#include "support_manager.h"

#include "base/crc.h"
#include "base/prng.h"
#include "host/sys/clock.h"
#include "namespace.h"
#include "nic/nic.h"
#include "support_link.h"
#include "wire/header.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define HERE "10.0.0.1"
#define HERE6 "fd00::1"
#define PORT 7471

static struct manager manager;

static uint32_t many(void)
{
	return test_is_thorough() ? 1000 : 200;
}

static void enter_host(void)
{
	namespace_enter();
	namespace_add_dummy("d0");
	ip("link set lo up");
	ip("address add " HERE "/24 dev d0");
	ip("address add " HERE6 "/64 dev d0");
}

/* --- one host --------------------------------------------------------------------------------- */

/* Listens, announces it, takes one connection and waits for its end. */
static void serve_one(int line)
{
	struct vb_cm_connection *connection;
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	connection = manager_take_connection(&manager);
	manager_expect(&manager, VB_CM_DISCONNECTED);
	manager_disconnect(&manager, connection);
	manager_expect(&manager, VB_CM_TIMEWAIT_EXIT);
	manager_destroy(&manager, connection);
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

static void connect_once(const char *from, const char *to)
{
	struct vb_cm_connection *connection;

	manager_open(&manager);
	connection = manager_make_connection(&manager, from, to, PORT);
	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	manager_destroy(&manager, connection);
	manager_close(&manager);
}

static void connect_two_processes(const char *address)
{
	struct party server;

	enter_host();
	server = party_start(serve_one);
	hear_letter(server.line, 'l');
	connect_once(address, address);
	party_join(&server);
}

TEST(two_processes_connect_over_ipv4)
{
	connect_two_processes(HERE);
}

TEST(two_processes_connect_over_ipv6)
{
	connect_two_processes(HERE6);
}

TEST(two_processes_connect_over_loopback)
{
	connect_two_processes("127.0.0.1");
}

TEST(two_processes_connect_over_ipv6_loopback)
{
	connect_two_processes("::1");
}

TEST(a_process_connects_to_itself)
{
	struct vb_cm_connection *ends[2];
	struct service service;

	enter_host();
	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	ends[0] = manager_connect(&manager, HERE, HERE, PORT);
	ends[1] = manager_expect(&manager, VB_CM_REQUEST).connection;
	manager_accept(&manager, ends[1]);
	manager_expect(&manager, VB_CM_RESPONSE);
	manager_establish(&manager, ends[0]);
	manager_expect(&manager, VB_CM_ESTABLISHED);
	manager_destroy(&manager, ends[0]);
	manager_expect(&manager, VB_CM_DISCONNECTED);
	manager_destroy(&manager, ends[1]);
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

TEST(a_request_for_a_service_that_nobody_has_is_refused_at_once)
{
	struct vb_cm_event event;

	enter_host();
	manager_open(&manager);
	manager_connect(&manager, HERE, HERE, PORT);
	event = manager_expect(&manager, VB_CM_REJECTED);
	EXPECT_EQ(event.message.rej.reason, VB_MAD_INVALID_SERVICE_ID);
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	manager_destroy(&manager, event.connection);
	manager_close(&manager);
}

/* Opens the adapter, which gets the packets of the host, but makes no connections. */
static void only_open(int line)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = ibv_open_device(list[0]);

	EXPECT(context);
	ibv_free_device_list(list);
	say_letter(line, 'o');
	hear_letter(line, 'c');
	EXPECT_EQ(ibv_close_device(context), 0);
}

TEST(a_process_that_makes_no_connections_dispatches_for_the_others)
{
	struct party bystander, server;

	enter_host();
	bystander = party_start(only_open);
	hear_letter(bystander.line, 'o');
	server = party_start(serve_one);
	hear_letter(server.line, 'l');
	connect_once(HERE, HERE);
	party_join(&server);
	manager_open(&manager);
	manager_connect(&manager, HERE, HERE, PORT + 1);
	manager_destroy(&manager, manager_expect(&manager, VB_CM_REJECTED).connection);
	manager_close(&manager);
	say_letter(bystander.line, 'c');
	party_join(&bystander);
}

static void open_when_told(int line)
{
	hear_letter(line, 'g');
	only_open(line);
}

/*
 * The last process that opened a device gets the MADs of the host, until a running process wants
 * them.
 */
TEST(a_process_that_is_stopped_holds_up_nobody)
{
	struct vb_cm_connection *connection;
	struct party bystander, server;

	enter_host();
	bystander = party_start(open_when_told);
	server = party_start(serve_one);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	say_letter(bystander.line, 'g');
	hear_letter(bystander.line, 'o');
	EXPECT_EQ(kill(bystander.pid, SIGSTOP), 0);
	connection = manager_make_connection(&manager, HERE, HERE, PORT);
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	EXPECT_EQ(kill(bystander.pid, SIGCONT), 0);
	party_join(&server);
	manager_close(&manager);
	say_letter(bystander.line, 'c');
	party_join(&bystander);
}

/*
 * A server on a port that the test chooses, which answers each connection until the test ends it.
 */
static void serve_told_port(int line)
{
	struct service service;
	uint16_t port;

	EXPECT_EQ(read(line, &port, sizeof(port)), sizeof(port));
	manager_open(&manager);
	manager_listen(&manager, port, NULL, &service);
	say_letter(line, 'l');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	hear_letter(line, 'c');
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

TEST(many_processes_listen_and_each_gets_its_own_requests)
{
	enum { SERVERS = 8 };
	struct party servers[SERVERS];

	enter_host();
	for (int i = 0; i < SERVERS; i++) {
		uint16_t port = (uint16_t)(PORT + i);

		servers[i] = party_start(serve_told_port);
		EXPECT_EQ(write(servers[i].line, &port, sizeof(port)), sizeof(port));
		hear_letter(servers[i].line, 'l');
	}
	manager_open(&manager);
	for (uint16_t i = SERVERS; i-- > 0;) {
		manager_make_connection(&manager, HERE, HERE, (uint16_t)(PORT + i));
		hear_letter(servers[i].line, 'e');
	}
	for (int i = 0; i < SERVERS; i++) {
		say_letter(servers[i].line, 'c');
		party_join(&servers[i]);
	}
	manager_close(&manager);
}

static void serve_many(int line)
{
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	for (uint32_t established = 0; established < many();) {
		struct vb_cm_event event = manager_wait(&manager);

		if (event.kind == VB_CM_REQUEST)
			manager_accept(&manager, event.connection);
		else
			established += event.kind == VB_CM_ESTABLISHED;
	}
	say_letter(line, 'e');
	hear_letter(line, 'c');
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

TEST(many_connects_at_once_all_succeed_without_a_retry)
{
	struct party server;

	enter_host();
	server = party_start(serve_many);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	for (uint32_t i = 0; i < many(); i++)
		manager_connect(&manager, HERE, HERE, PORT);
	for (uint32_t i = 0; i < many(); i++)
		manager_establish(&manager, manager_expect(&manager, VB_CM_RESPONSE).connection);
	hear_letter(server.line, 'e');
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	say_letter(server.line, 'c');
	party_join(&server);
	manager_close(&manager);
}

/* --- names ------------------------------------------------------------------------------------ */

static void hold_port(int line)
{
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	hear_letter(line, 'c');
	manager_unlisten(&manager, &service);
	say_letter(line, 'u');
	hear_letter(line, 'e');
	manager_close(&manager);
}

TEST(a_service_has_one_owner_until_it_gives_it_back)
{
	struct vb_abi_qp1_name *name;
	struct party owner;

	enter_host();
	owner = party_start(hold_port);
	hear_letter(owner.line, 'l');
	manager_open(&manager);
	EXPECT_EQ(vb_abi_qp1_listen(manager.context, SPACE_PORT(PORT), NULL, VB_CM_IPV4, &name),
		  EADDRINUSE);
	EXPECT_EQ(vb_abi_qp1_listen(manager.context, SPACE_PORT(PORT), NULL, VB_CM_RAW, &name), 0);
	vb_abi_qp1_unlisten(name);
	say_letter(owner.line, 'c');
	hear_letter(owner.line, 'u');
	EXPECT_EQ(vb_abi_qp1_listen(manager.context, SPACE_PORT(PORT), NULL, VB_CM_IPV4, &name), 0);
	vb_abi_qp1_unlisten(name);
	say_letter(owner.line, 'e');
	party_join(&owner);
	manager_close(&manager);
}

TEST(a_request_goes_to_a_listener_on_its_address_before_a_listener_on_any)
{
	struct service service;
	struct party owner;

	enter_host();
	ip("address add 10.0.0.2/24 dev d0");
	owner = party_start(hold_port);
	hear_letter(owner.line, 'l');
	manager_open(&manager);
	manager_listen(&manager, PORT, "10.0.0.2", &service);
	manager_connect(&manager, HERE, "10.0.0.2", PORT);
	manager_destroy(&manager, manager_expect(&manager, VB_CM_REQUEST).connection);
	manager_destroy(&manager, manager_expect(&manager, VB_CM_REJECTED).connection);
	say_letter(owner.line, 'c');
	hear_letter(owner.line, 'u');
	say_letter(owner.line, 'e');
	party_join(&owner);
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

TEST(a_request_waits_a_moment_for_a_listener_that_was_just_closed)
{
	struct vb_cm_event event;
	struct party owner;

	enter_host();
	owner = party_start(hold_port);
	hear_letter(owner.line, 'l');
	manager_open(&manager);
	say_letter(owner.line, 'c');
	hear_letter(owner.line, 'u');
	manager_connect(&manager, HERE, HERE, PORT);
	event = manager_expect(&manager, VB_CM_REJECTED);
	EXPECT_EQ(event.message.rej.reason, VB_MAD_INVALID_SERVICE_ID);
	manager_destroy(&manager, event.connection);
	say_letter(owner.line, 'e');
	party_join(&owner);
	manager_close(&manager);
}

/*
 * The process that closed the service is stopped meanwhile, so only time could take the request
 * away.
 */
TEST(a_request_for_a_closed_service_finds_the_process_that_listens_next)
{
	struct party owner, next;
	uint16_t port = PORT;

	enter_host();
	owner = party_start(hold_port);
	hear_letter(owner.line, 'l');
	next = party_start(serve_told_port);
	manager_open(&manager);
	say_letter(owner.line, 'c');
	hear_letter(owner.line, 'u');
	manager_connect(&manager, HERE, HERE, PORT);
	EXPECT_EQ(write(next.line, &port, sizeof(port)), sizeof(port));
	hear_letter(next.line, 'l');
	manager_establish(&manager, manager_expect(&manager, VB_CM_RESPONSE).connection);
	hear_letter(next.line, 'e');
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	say_letter(owner.line, 'e');
	party_join(&owner);
	say_letter(next.line, 'c');
	party_join(&next);
	manager_close(&manager);
}

TEST(a_killed_process_frees_its_services)
{
	struct party owner;
	struct service service;

	enter_host();
	owner = party_start(hold_port);
	hear_letter(owner.line, 'l');
	party_kill(&owner);
	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

/* --- the user of QP 1 ------------------------------------------------------------------------- */

TEST(a_process_has_one_user_of_qp_1)
{
	struct vb_qp1_user user = { 0 };
	struct vb_qp1_config place;

	enter_host();
	manager_open(&manager);
	EXPECT_EQ(vb_abi_qp1_attach(manager.context, &user, &place), EBUSY);
	manager_close(&manager);
	manager_open(&manager);
	manager_close(&manager);
}

TEST(all_processes_of_a_host_have_its_guid_and_other_prefixes)
{
	struct party other;
	struct vb_qp1_config place;

	enter_host();
	other = party_start(hold_port);
	hear_letter(other.line, 'l');
	manager_open(&manager);
	place = manager.place;
	EXPECT_EQ(place.id_prefix, 1);
	EXPECT_EQ(place.id_prefix_bits, 8);
	EXPECT(place.ca_guid);
	say_letter(other.line, 'c');
	hear_letter(other.line, 'u');
	say_letter(other.line, 'e');
	party_join(&other);
	manager_close(&manager);
	manager_open(&manager);
	EXPECT_EQ(manager.place.ca_guid, place.ca_guid);
	manager_close(&manager);
}

/* --- death ------------------------------------------------------------------------------------ */

/* Takes a connection, announces it and waits forever. */
static void serve_until_killed(int line)
{
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	hear_letter(line, 'x');
}

static void serve_when_told(int line)
{
	hear_letter(line, 'g');
	serve_until_killed(line);
}

static struct vb_cm_connection *connect_to(struct party *server, const char *from, const char *to)
{
	struct vb_cm_connection *connection = manager_make_connection(&manager, from, to, PORT);

	hear_letter(server->line, 'e');
	return connection;
}

static void expect_dreq(void)
{
	struct vb_cm_event event = manager_expect(&manager, VB_CM_DISCONNECTED);

	EXPECT(event.has_message);
	EXPECT_STR(vb_mad_kind_describe(event.message.kind), "DREQ");
}

TEST(the_peer_of_a_killed_process_is_told)
{
	struct party server;

	enter_host();
	server = party_start(serve_until_killed);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	connect_to(&server, HERE, HERE);
	party_kill(&server);
	expect_dreq();
	manager_close(&manager);
}

/* The last process that came gets the MADs of the host. */
TEST(the_others_get_their_messages_after_the_one_that_got_them_first_is_killed)
{
	struct party servers[3];

	enter_host();
	for (uint32_t i = 0; i < 3; i++)
		servers[i] = party_start(serve_when_told);
	manager_open(&manager);
	for (uint32_t i = 0; i < 3; i++) {
		say_letter(servers[i].line, 'g');
		hear_letter(servers[i].line, 'l');
		connect_to(&servers[i], HERE, HERE);
		party_kill(&servers[i]);
		expect_dreq();
	}
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	manager_close(&manager);
}

/* Two processes survive, and both know of the connection. */
TEST(the_peer_of_a_killed_process_is_told_once)
{
	struct party server, witness;

	enter_host();
	witness = party_start(only_open);
	hear_letter(witness.line, 'o');
	server = party_start(serve_until_killed);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	connect_to(&server, HERE, HERE);
	party_kill(&server);
	expect_dreq();
	say_letter(witness.line, 'c');
	party_join(&witness);
	EXPECT_EQ(manager_counters(&manager).received[VB_MAD_DREQ - VB_MAD_REQ], 1);
	EXPECT(!manager_has_event(&manager));
	manager_close(&manager);
}

static void answer_never(int line)
{
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	manager_expect(&manager, VB_CM_REQUEST);
	say_letter(line, 'r');
	hear_letter(line, 'x');
}

TEST(a_process_killed_before_it_accepts_has_the_request_rejected)
{
	struct party server;

	enter_host();
	server = party_start(answer_never);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	manager_connect(&manager, HERE, HERE, PORT);
	hear_letter(server.line, 'r');
	party_kill(&server);
	manager_expect(&manager, VB_CM_REJECTED);
	manager_close(&manager);
}

TEST(a_forked_child_is_no_user_and_its_end_ends_nothing)
{
	struct vb_cm_connection *connection;
	struct party server;
	int status;
	pid_t child;

	enter_host();
	server = party_start(serve_one);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	connection = manager_make_connection(&manager, HERE, HERE, PORT);
	child = fork();
	EXPECT(child >= 0);
	if (!child) {
		memset(manager.place.rows, 0xff, 4096);
		vb_abi_qp1_kick(manager.context);
		vb_abi_qp1_detach(manager.context);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	EXPECT(!manager_has_event(&manager));
	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	party_join(&server);
	manager_close(&manager);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* The adapter's descriptors have the highest numbers. */
static void close_ours(void)
{
	long end = sysconf(_SC_OPEN_MAX) < 4096 ? sysconf(_SC_OPEN_MAX) : 4096;

	for (int fd = (int)(end - end / 4); fd < end; fd++)
		close(fd);
}

static void serve_without_descriptors(int line)
{
	struct service service;

	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	close_ours();
	say_letter(line, 'd');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	hear_letter(line, 'x');
}

/* Requests are refused until the adapter has noticed. */
static void connect_in_the_end(void)
{
	for (;;) {
		struct vb_cm_connection *connection = manager_connect(&manager, HERE, HERE, PORT);
		struct vb_cm_event event = manager_wait(&manager);

		EXPECT(event.connection == connection);
		if (event.kind == VB_CM_RESPONSE) {
			manager_establish(&manager, connection);
			return;
		}
		EXPECT_STR(vb_cm_event_describe(event.kind), "REJECTED");
		manager_destroy(&manager, connection);
		usleep(10000);
	}
}

TEST(a_program_that_closes_all_descriptors_listens_on_and_is_not_taken_for_dead)
{
	struct party server;

	enter_host();
	server = party_start(serve_without_descriptors);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	connect_to(&server, HERE, HERE);
	hear_letter(server.line, 'd');
	connect_in_the_end();
	hear_letter(server.line, 'e');
	EXPECT(!manager_has_event(&manager));
	party_kill(&server);
	expect_dreq();
	manager_close(&manager);
}

/* --- two hosts -------------------------------------------------------------------------------- */

static void serve_there(int line)
{
	enter_end(END_B);
	serve_one(line);
}

static void connect_to_other_host(const char *from, const char *to)
{
	struct party server;

	make_wire();
	server = party_start(serve_there);
	hear_letter(server.line, 'l');
	connect_once(from, to);
	party_join(&server);
}

TEST(two_hosts_connect_over_ipv4)
{
	connect_to_other_host("10.9.0.1", "10.9.0.2");
}

TEST(two_hosts_connect_over_ipv6)
{
	connect_to_other_host("fd09::1", "fd09::2");
}

TEST(a_host_where_nobody_has_the_port_is_unreachable_at_once)
{
	make_wire();
	manager_open(&manager);
	manager_connect(&manager, "10.9.0.1", "10.9.0.2", PORT);
	manager_expect(&manager, VB_CM_UNREACHABLE);
	EXPECT_EQ(manager_counters(&manager).retried, 0);
	manager_connect(&manager, "fd09::1", "fd09::2", PORT);
	manager_expect(&manager, VB_CM_UNREACHABLE);
	manager_close(&manager);
}

/* As programs do that return from main(): no process survives there. */
static void serve_and_leave(int line)
{
	struct service service;

	enter_end(END_B);
	manager_open(&manager);
	manager_listen(&manager, PORT, NULL, &service);
	say_letter(line, 'l');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	exit(0);
}

TEST(a_process_that_exits_with_a_connection_tells_its_peer)
{
	struct party server;

	make_wire();
	server = party_start(serve_and_leave);
	hear_letter(server.line, 'l');
	manager_open(&manager);
	connect_to(&server, "10.9.0.1", "10.9.0.2");
	expect_dreq();
	party_join(&server);
	manager_close(&manager);
}

/* --- arbitrary packets ------------------------------------------------------------------------ */

#define PACKET_MAX (VB_BTH_SIZE + VB_DETH_SIZE + VB_MAD_SIZE + 64 + VB_ICRC_SIZE)

/* Makes a packet for QP 1; `prng` decides what is random in it. */
static uint32_t make_packet(struct vb_prng *prng, struct vb_flow *flow, uint8_t packet[PACKET_MAX])
{
	struct vb_bth bth = {
		.opcode = VB_OPCODE(VB_SERVICE_UD, VB_OP_SEND_ONLY),
		.pkey = vb_prng_below(prng, 16) ? 0xffff : (uint16_t)vb_prng_next(prng),
		.destination = VB_MAD_QPN,
	};
	struct vb_deth deth = { vb_prng_below(prng, 16) ? VB_MAD_QKEY
							: (uint32_t)vb_prng_next(prng),
				VB_MAD_QPN };
	uint8_t *mad = packet + VB_BTH_SIZE + VB_DETH_SIZE;
	uint32_t payload = vb_prng_below(prng, 16) ? VB_MAD_SIZE
						   : (uint32_t)vb_prng_below(prng, 80) * 4;
	uint32_t length = VB_BTH_SIZE + VB_DETH_SIZE + payload + VB_ICRC_SIZE;

	for (uint32_t i = 0; i < payload; i++)
		mad[i] = (uint8_t)vb_prng_next(prng);
	if (vb_prng_below(prng, 8) && payload >= VB_MAD_HEADER_SIZE) {
		memcpy(mad, (uint8_t[]){ 1, 7, 2, 3, 0, 0, 0, 0 }, 8);
		mad[16] = 0;
		mad[17] = (uint8_t)(0x10 + vb_prng_below(prng, 12));
	}
	if (!vb_prng_below(prng, 32))
		bth.opcode = (uint8_t)vb_prng_next(prng);
	vb_bth_store(packet, &bth);
	vb_deth_store(packet + VB_BTH_SIZE, &deth);
	vb_icrc_store(packet + length - VB_ICRC_SIZE,
		      vb_crc32(vb_icrc_begin(flow, length, 0, packet), packet + VB_BTH_SIZE,
			       length - VB_ICRC_SIZE - VB_BTH_SIZE));
	return length;
}

static void flood(int line)
{
	struct vb_prng prng;
	struct vb_udp *udp;
	struct vb_flow flow = { .hop_limit = 64 };
	struct vb_udp_address a = address_of("10.9.0.1"), b = address_of("10.9.0.2");
	uint32_t count = test_is_thorough() ? 1000000 : 20000;

	hear_letter(line, 'b');
	vb_prng_init(&prng, 1);
	udp = open_link((struct vb_udp_config){ .destination_port = VB_ROCE_PORT });
	memcpy(flow.source.raw, a.ip, sizeof(a.ip));
	memcpy(flow.destination.raw, b.ip, sizeof(b.ip));
	flow.source_port = vb_udp_source_port(udp, 0);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t packet[PACKET_MAX];
		struct iovec iovec = { packet, make_packet(&prng, &flow, packet) };
		struct vb_udp_message message = message_of("10.9.0.1", "10.9.0.2", &iovec);

		(void)vb_udp_send(udp, &message, 1);
	}
	vb_udp_close(udp);
}

static void serve_twice(int line)
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
	say_letter(line, 'w');
	manager_take_connection(&manager);
	say_letter(line, 'e');
	hear_letter(line, 'c');
	manager_unlisten(&manager, &service);
	manager_close(&manager);
}

TEST(random_messages_to_qp_1_change_nothing)
{
	struct vb_cm_connection *connection;
	struct party server, flooder;

	make_wire();
	server = party_start(serve_twice);
	hear_letter(server.line, 'l');
	flooder = party_start(flood);
	enter_end(END_B);
	manager_open(&manager);
	connection = connect_to(&server, "10.9.0.2", "10.9.0.2");
	say_letter(flooder.line, 'b');
	party_join(&flooder);
	EXPECT(!manager_has_event(&manager));
	manager_disconnect(&manager, connection);
	EXPECT(!manager_expect(&manager, VB_CM_DISCONNECTED).is_timeout);
	manager_expect(&manager, VB_CM_TIMEWAIT_EXIT);
	hear_letter(server.line, 'w');
	connect_to(&server, "10.9.0.2", "10.9.0.2");
	say_letter(server.line, 'c');
	party_join(&server);
	manager_close(&manager);
}
