/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 while several threads use it as programs do: one waits and drives, one polls, one starts and
 * stops listening, and all of them send requests to services that come and go. Each request is
 * answered, and no two threads do anything at the same time.
 */
#include "harness.h"
#include "support_adapter.h"

#include "base/timer.h"
#include "host/qp1/qp1.h"
#include "host/sys/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)
#define SERVICE vb_service_id(VB_SERVICE_SPACE_TCP, 7471)
#define CONNECTS 300

static struct vb_adapter *adapter;
static struct vb_pd *pd;
static struct vb_qp1_config place;

static struct {
	pthread_mutex_t lock;
	struct vb_cm *cm;
	uint32_t asked; /* connects, and those that ended */
	uint32_t ended;
} user = { .lock = PTHREAD_MUTEX_INITIALIZER };
static atomic_bool is_over;
static int ended_fd;

/* --- the user --------------------------------------------------------------------------------- */

/* Any result of a connect is its end. */
static void take_events(void)
{
	struct vb_cm_event event;
	uint64_t one = 1;

	while (vb_cm_take_event(user.cm, &event)) {
		bool is_asked = event.kind == VB_CM_REJECTED || event.kind == VB_CM_RESPONSE;

		if (event.kind == VB_CM_REJECTED || event.kind == VB_CM_REQUEST || is_asked)
			vb_cm_connection_destroy(event.connection, vb_clock_now());
		user.ended += is_asked;
		if (is_asked && user.ended == CONNECTS)
			EXPECT_EQ(write(ended_fd, &one, sizeof(one)), sizeof(one));
	}
}

static enum vb_cm_verdict on_receive(void *owner, const struct vb_flow *flow, vb_qpn source,
				     const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				     struct vb_cm_addressee *addressee)
{
	enum vb_cm_verdict verdict;

	(void)owner;
	pthread_mutex_lock(&user.lock);
	verdict = vb_cm_receive(user.cm, flow, source, bytes, length, now_ns, addressee);
	take_events();
	pthread_mutex_unlock(&user.lock);
	return verdict;
}

static bool on_take_mad(void *owner, struct vb_cm_mad *mad)
{
	bool is_taken;

	(void)owner;
	pthread_mutex_lock(&user.lock);
	is_taken = vb_cm_take_mad(user.cm, mad);
	pthread_mutex_unlock(&user.lock);
	return is_taken;
}

static uint64_t on_deadline(void *owner)
{
	uint64_t deadline_ns;

	(void)owner;
	pthread_mutex_lock(&user.lock);
	deadline_ns = vb_cm_deadline(user.cm);
	pthread_mutex_unlock(&user.lock);
	return deadline_ns;
}

static void on_expire(void *owner, uint64_t now_ns)
{
	(void)owner;
	pthread_mutex_lock(&user.lock);
	vb_cm_fire_timers(user.cm, now_ns);
	take_events();
	pthread_mutex_unlock(&user.lock);
}

static void on_unreachable(void *owner, const struct vb_gid *address, uint64_t now_ns)
{
	(void)owner;
	pthread_mutex_lock(&user.lock);
	vb_cm_on_unreachable(user.cm, address, now_ns);
	pthread_mutex_unlock(&user.lock);
}

/* --- the threads ------------------------------------------------------------------------------ */

static void kick(void)
{
	vb_adapter_enter(adapter);
	vb_qp1_kick(vb_adapter_qp1(adapter));
	vb_adapter_leave(adapter);
}

static void connect_once(uint32_t number)
{
	struct vb_gid gid = vb_gid_from_ipv4(0x0a000001);
	struct vb_service_ip ip = { .source = gid, .destination = gid };
	struct vb_cm_request request = {
		.service = SERVICE,
		.ip = &ip,
		.flow = { .source = gid, .destination = gid, .hop_limit = 64 },
		.qpn = { 0x1000 + number },
		.mtu = 3,
		.pkey = 0xffff,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = VB_CM_RETRIES_MAX,
	};
	struct vb_cm_connection *connection;

	pthread_mutex_lock(&user.lock);
	MUST(vb_cm_connection_create(user.cm, NULL, &connection));
	MUST(vb_cm_connect(connection, &request, vb_clock_now()));
	pthread_mutex_unlock(&user.lock);
	kick();
}

static void *connect_often(void *argument)
{
	uint32_t first = *(uint32_t *)argument;

	for (uint32_t i = 0; i < CONNECTS / 2; i++)
		connect_once(first + i);
	return NULL;
}

static void *poll_always(void *argument)
{
	(void)argument;
	while (!is_over)
		vb_adapter_poll(adapter, NULL);
	return NULL;
}

/*
 * Requests are refused while this thread does not listen, and rejected by the machine while it
 * does.
 */
static void *listen_sometimes(void *argument)
{
	static const struct vb_gid any;

	(void)argument;
	while (!is_over) {
		struct vb_cm_service service = { .id = SERVICE, .takes = VB_CM_IPV4 };
		struct vb_cm_listener *listener;
		struct vb_qp1_name *name;

		vb_adapter_enter(adapter);
		MUST(vb_qp1_listen(vb_adapter_qp1(adapter), SERVICE, &any, VB_CM_IPV4, &name));
		vb_adapter_leave(adapter);
		pthread_mutex_lock(&user.lock);
		MUST(vb_cm_listen(user.cm, &service, CONNECTS, NULL, &listener));
		pthread_mutex_unlock(&user.lock);
		usleep(2000);
		pthread_mutex_lock(&user.lock);
		vb_cm_listener_destroy(listener, vb_clock_now());
		pthread_mutex_unlock(&user.lock);
		vb_adapter_enter(adapter);
		vb_qp1_unlisten(vb_adapter_qp1(adapter), vb_clock_now(), name);
		vb_adapter_leave(adapter);
		kick();
		usleep(1000);
	}
	return NULL;
}

static void on_event(void *owner, const struct vb_event *event)
{
	(void)owner;
	(void)event;
}

static void begin(void)
{
	struct vb_qp1_user functions = {
		.receive = on_receive,
		.take_mad = on_take_mad,
		.deadline = on_deadline,
		.expire = on_expire,
		.on_unreachable = on_unreachable,
	};
	struct vb_cm_config machine = { .connection_max = 4096, .listener_max = 1 };

	adapter_begin(on_event, &adapter, &pd);
	vb_adapter_enter(adapter);
	MUST(vb_qp1_attach(vb_adapter_qp1(adapter), &functions, &place));
	vb_adapter_leave(adapter);
	machine.ca_guid = place.ca_guid;
	machine.id_prefix = place.id_prefix;
	machine.id_prefix_bits = place.id_prefix_bits;
	machine.rows = place.rows;
	MUST(vb_cm_create(&machine, &user.cm));
	ended_fd = eventfd(0, 0);
	kick();
}

static void end(void)
{
	vb_adapter_enter(adapter);
	vb_qp1_detach(vb_adapter_qp1(adapter));
	vb_adapter_leave(adapter);
	vb_cm_destroy(user.cm);
	adapter_end(adapter, pd);
	close(ended_fd);
}

TEST(every_connect_ends_while_threads_wait_poll_and_listen)
{
	void *(*const run[])(void *) = { connect_often, connect_often, poll_always,
					 listen_sometimes };
	uint32_t firsts[] = { 0, CONNECTS, 0, 0 };
	pthread_t threads[4];

	begin();
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, run[i], &firsts[i]), 0);
	EXPECT_EQ(vb_adapter_wait(adapter, ended_fd), 0);
	is_over = true;
	for (uint32_t i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	end();
}
