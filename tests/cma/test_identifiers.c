/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identifiers and channels: wrong arguments, options, and events that wait, are moved, dropped or
 * waited for.
 */
#include "support_cma.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_readable(struct rdma_event_channel *channel)
{
	struct pollfd look = { .fd = channel->fd, .events = POLLIN };

	return poll(&look, 1, 0) == 1;
}

static void await_readable(struct rdma_event_channel *channel)
{
	struct pollfd look = { .fd = channel->fd, .events = POLLIN };

	EXPECT_EQ(poll(&look, 1, -1), 1);
}

/* The thread never waited there, so no race with the destruction can excuse its call. */
TEST(a_channel_that_was_destroyed_has_no_events)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_event *event;

	rdma_destroy_event_channel(channel);
	EXPECT_EQ(rdma_get_cm_event(channel, &event), -1);
	EXPECT_EQ(errno, EBADF);
}

TEST(a_channel_is_readable_as_long_as_events_wait)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT(!is_readable(channel));
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT(is_readable(channel));
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	EXPECT(!is_readable(channel));
	EXPECT_EQ(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	EXPECT_ERRNO(rdma_get_cm_event(channel, &event), EAGAIN);
	destroy(id);
	rdma_destroy_event_channel(channel);
}

TEST(destroying_an_identifier_drops_what_waits_for_it_and_nothing_else)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_id *one, *other;
	struct rdma_cm_event *event;

	enter_network();
	one = make_id(channel, RDMA_PS_TCP);
	other = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_resolve_addr(one, NULL, &address.any, 1000), 0);
	EXPECT_EQ(rdma_resolve_addr(other, NULL, &address.any, 1000), 0);
	destroy(one);
	event = take_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT(event->id == other);
	rdma_ack_cm_event(event);
	EXPECT(!is_readable(channel));
	destroy(other);
}

static atomic_bool is_acknowledged;

static void *acknowledge_late(void *event)
{
	usleep(50000);
	is_acknowledged = true;
	rdma_ack_cm_event(event);
	return NULL;
}

TEST(destroying_an_identifier_waits_until_its_events_are_acknowledged)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_id *id;
	pthread_t thread;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(pthread_create(&thread, NULL, acknowledge_late,
				 take_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED)),
		  0);
	destroy(id);
	EXPECT(is_acknowledged);
	pthread_join(thread, NULL);
}

TEST(what_waits_moves_with_its_identifier)
{
	struct rdma_event_channel *channel = make_channel(), *other = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_id *id;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(rdma_migrate_id(id, other), 0);
	EXPECT(!is_readable(channel));
	EXPECT(id->channel == other);
	EXPECT_EQ(pass_event(other, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	destroy(id);
}

TEST(a_listener_moves_with_the_requests_that_wait_for_it)
{
	struct rdma_event_channel *channel = make_channel(), *other = make_channel(),
				  *clients = make_channel();
	struct rdma_cm_id *listener, *one, *two, *servers[2];

	enter_network();
	listener = make_listener(channel, RDMA_PS_TCP);
	one = make_client(clients, RDMA_PS_TCP);
	two = make_client(clients, RDMA_PS_TCP);
	EXPECT_EQ(rdma_connect(one, NULL), 0);
	EXPECT_EQ(rdma_connect(two, NULL), 0);
	await_readable(channel);
	EXPECT_EQ(rdma_migrate_id(listener, other), 0);
	for (int i = 0; i < 2; i++) {
		servers[i] = take_request(other);
		EXPECT(servers[i]->channel == other);
	}
	for (int i = 0; i < 2; i++) {
		make_qp(servers[i]);
		EXPECT_EQ(rdma_accept(servers[i], NULL), 0);
		EXPECT_EQ(pass_event(clients, RDMA_CM_EVENT_ESTABLISHED), 0);
		EXPECT_EQ(pass_event(other, RDMA_CM_EVENT_ESTABLISHED), 0);
		destroy(servers[i]);
		EXPECT_EQ(pass_event(clients, RDMA_CM_EVENT_DISCONNECTED), 0);
	}
	EXPECT(!is_readable(channel));
	destroy(one);
	destroy(two);
	destroy(listener);
}

static void *wait_for_ever(void *channel)
{
	struct rdma_cm_event *event;

	rdma_get_cm_event(channel, &event);
	return NULL;
}

static void cancel_a_wait(struct rdma_event_channel *channel)
{
	pthread_t thread;
	void *result;

	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_ever, channel), 0);
	usleep(20000); /* mostly the thread waits then */
	EXPECT_EQ(pthread_cancel(thread), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
}

/* Tested before a device is open, and when the wait drives one. Everything goes on as before. */
TEST(a_thread_that_waits_for_an_event_can_be_cancelled)
{
	struct rdma_event_channel *channel = make_channel();
	struct pair pair;

	enter_network();
	cancel_a_wait(channel);
	pair_connect(&pair);
	cancel_a_wait(channel);
	EXPECT_EQ(rdma_disconnect(pair.client), 0);
	EXPECT_EQ(pass_event(pair.server_channel, RDMA_CM_EVENT_DISCONNECTED), 0);
	pair_destroy(&pair);
	rdma_destroy_event_channel(channel);
}

static void destroy_under_a_wait(struct rdma_event_channel *channel)
{
	uint64_t one = 1;
	int flag = dup(channel->fd);
	struct timespec until;
	pthread_t thread;
	void *result;

	EXPECT_EQ(pthread_create(&thread, NULL, wait_for_ever, channel), 0);
	usleep(20000); /* mostly the thread waits then */
	rdma_destroy_event_channel(channel);
	EXPECT_EQ(write(flag, &one, sizeof(one)),
		  sizeof(one)); /* as an event does that comes too late */
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	EXPECT_EQ(pthread_timedjoin_np(thread, NULL, &until), ETIMEDOUT);
	EXPECT_EQ(pthread_cancel(thread), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
	close(flag);
}

/*
 * rping leaves its thread waiting when it ends: returning an error would end the process with that
 * error.
 */
TEST(a_thread_that_waits_for_an_event_waits_on_when_the_channel_is_destroyed)
{
	struct pair pair;

	enter_network();
	destroy_under_a_wait(make_channel());
	pair_connect(&pair);
	destroy_under_a_wait(make_channel());
	pair_destroy(&pair);
}

static atomic_bool has_event, is_destroyed;

/* Takes one event. Comes back for the next when the channel has been destroyed. */
static void *come_back_late(void *channel)
{
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	has_event = true;
	while (!is_destroyed)
		usleep(1000);
	return wait_for_ever(channel);
}

/*
 * rping's thread asks for the next event while its main thread ends: an error would end the process
 * with that error. Had the thread been a little faster, it would wait, and goes on to do so.
 */
TEST(a_thread_that_comes_back_to_a_channel_destroyed_meanwhile_waits)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct timespec until;
	struct rdma_cm_id *id;
	pthread_t thread;
	void *result;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(pthread_create(&thread, NULL, come_back_late, channel), 0);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	while (!has_event)
		usleep(1000);
	destroy(id);
	rdma_destroy_event_channel(channel);
	is_destroyed = true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	EXPECT_EQ(pthread_timedjoin_np(thread, NULL, &until), ETIMEDOUT);
	EXPECT_EQ(pthread_cancel(thread), 0);
	EXPECT_EQ(pthread_join(thread, &result), 0);
	EXPECT(result == PTHREAD_CANCELED);
}

TEST(a_thread_that_destroyed_a_channel_gets_an_error_from_it)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_event *event;
	struct rdma_cm_id *id;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(pass_event(channel, RDMA_CM_EVENT_ADDR_RESOLVED), 0);
	destroy(id);
	rdma_destroy_event_channel(channel);
	EXPECT_ERRNO(rdma_get_cm_event(channel, &event), EBADF);
}

TEST(without_a_channel_calls_wait_for_what_comes_of_them)
{
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_cm_id *id;

	enter_network();
	id = make_id(NULL, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_migrate_id(id, NULL), EINVAL);
	EXPECT_EQ(rdma_resolve_addr(id, NULL, &address.any, 1000), 0);
	EXPECT_EQ(id->event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
	EXPECT_EQ(rdma_resolve_route(id, 1000), 0);
	make_qp(id);
	EXPECT_ERRNO(rdma_connect(id, NULL), ECONNREFUSED);
	destroy(id);
}

TEST(calls_in_the_wrong_order_are_refused)
{
	struct rdma_event_channel *channel = make_channel();
	union address address = address_of("127.0.0.1", PORT);
	struct rdma_conn_param param = { 0 };
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };
	struct rdma_cm_id *id, *unused;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_create_id(channel, &unused, NULL, (enum rdma_port_space)1), EINVAL);
	EXPECT_ERRNO(rdma_resolve_route(id, 1000), EINVAL);
	EXPECT_ERRNO(rdma_connect(id, &param), EINVAL);
	EXPECT_ERRNO(rdma_accept(id, &param), EINVAL);
	EXPECT_ERRNO(rdma_reject(id, NULL, 0), EINVAL);
	EXPECT_ERRNO(rdma_disconnect(id), EINVAL);
	EXPECT_ERRNO(rdma_establish(id), EINVAL);
	EXPECT_ERRNO(rdma_notify(id, IBV_EVENT_COMM_EST), EINVAL);
	EXPECT_ERRNO(rdma_create_qp(id, NULL, &attr), EINVAL);
	EXPECT_ERRNO(rdma_get_request(id, &unused), EINVAL);
	EXPECT_EQ(rdma_bind_addr(id, &address.any), 0);
	EXPECT_ERRNO(rdma_bind_addr(id, &address.any), EINVAL);
	EXPECT_EQ(rdma_listen(id, 1), 0);
	EXPECT_ERRNO(rdma_listen(id, 1), EINVAL);
	EXPECT_ERRNO(rdma_resolve_addr(id, NULL, &address.any, 1000), EINVAL);
	destroy(id);
}

TEST(addresses_that_are_not_ours_or_of_no_family_are_refused)
{
	struct rdma_event_channel *channel = make_channel();
	union address far = address_of("10.1.2.3", PORT), infiniband = { .any.sa_family = 27 },
		      strange = { .any.sa_family = AF_UNIX };
	struct rdma_cm_id *id;

	enter_network();
	id = make_id(channel, RDMA_PS_TCP);
	EXPECT_ERRNO(rdma_bind_addr(id, &far.any), EADDRNOTAVAIL);
	EXPECT_ERRNO(rdma_bind_addr(id, &infiniband.any), EINVAL);
	EXPECT_ERRNO(rdma_bind_addr(id, &strange.any), EAFNOSUPPORT);
	EXPECT_ERRNO(rdma_resolve_addr(id, NULL, &far.any, 1000), ENETUNREACH);
	destroy(id);
}

TEST(options_have_their_lengths_and_their_time)
{
	struct rdma_event_channel *channel = make_channel();
	uint8_t byte = 18;
	int number = 1;
	struct rdma_cm_id *id;

	enter_network();
	id = make_listener(channel, RDMA_PS_TCP);
	EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &byte, 1), 0);
	EXPECT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &number, 4), EINVAL);
	EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &byte, 1), 0);
	EXPECT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &number, 4),
		     EINVAL);
	EXPECT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &number, 4),
		     EINVAL);
	EXPECT_ERRNO(rdma_set_option(id, RDMA_OPTION_ID, 99, &number, 4), ENOSYS);
	EXPECT_ERRNO(rdma_set_option(id, 99, 0, &number, 4), ENOSYS);
	destroy(id);
}

TEST(names_become_addresses_with_port_space_and_type)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_UDP }, *info;

	EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", &hints, &info), 0);
	EXPECT_EQ(info->ai_qp_type, IBV_QPT_UD);
	EXPECT_EQ(info->ai_family, AF_INET);
	EXPECT_EQ(((struct sockaddr_in *)(void *)info->ai_dst_addr)->sin_port, htobe16(7471));
	rdma_freeaddrinfo(info);
	hints = (struct rdma_addrinfo){ .ai_flags = RAI_PASSIVE };
	EXPECT_EQ(rdma_getaddrinfo(NULL, "7471", &hints, &info), 0);
	EXPECT_EQ(info->ai_port_space, RDMA_PS_TCP);
	EXPECT(info->ai_src_addr && !info->ai_dst_addr);
	rdma_freeaddrinfo(info);
	hints = (struct rdma_addrinfo){ .ai_flags = 0x100 };
	EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &info), EAI_BADFLAGS);
	hints = (struct rdma_addrinfo){ .ai_family = 27 };
	EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &info), EAI_FAMILY);
	hints = (struct rdma_addrinfo){ .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_UD };
	EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", NULL, &hints, &info), EAI_SOCKTYPE);
	EXPECT_ERRNO(rdma_getaddrinfo(NULL, NULL, NULL, &info), EINVAL);
}

/* As libfabric does. */
TEST(a_program_may_replace_the_addresses_that_a_name_has)
{
	struct rdma_addrinfo *info;
	socklen_t length;

	EXPECT_EQ(rdma_getaddrinfo("127.0.0.1", "7471", NULL, &info), 0);
	length = info->ai_dst_len;
	free(info->ai_dst_addr);
	free(info->ai_src_addr);
	info->ai_dst_addr = calloc(1, length);
	info->ai_src_addr = calloc(1, length);
	EXPECT(info->ai_dst_addr && info->ai_src_addr);
	rdma_freeaddrinfo(info);
}

TEST(sockets_over_rdma_are_not_there_yet)
{
	EXPECT_ERRNO(rsocket(AF_INET, SOCK_STREAM, 0), ENOSYS);
	EXPECT_ERRNO(rpoll(NULL, 0, 0), ENOSYS);
}

TEST(a_qp_has_room_for_inline_data_where_its_sges_would_lie)
{
	struct rdma_event_channel *channel = make_channel();
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct rdma_cm_id *id;

	enter_network();
	id = make_client(channel, RDMA_PS_TCP);
	rdma_destroy_qp(id);
	EXPECT_EQ(rdma_create_qp(id, NULL, &attr), 0);
	EXPECT(attr.cap.max_inline_data >= 16);
	destroy(id);
}
