/* SPDX-License-Identifier: BSD-2-Clause */
/* The small connection manager, and the processes that have one. */
#include "support_manager.h"

#include "base/timer.h"
#include "host/sys/clock.h"
#include "support_link.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 2048
#define LISTENERS_MAX 64
#define RETRIES 3

/* --- what the adapter calls ------------------------------------------------------------------- */

/* The caller holds the lock. */
static void collect_events(struct manager *manager)
{
	struct vb_cm_event event;
	uint64_t one = 1;

	while (vb_cm_take_event(manager->cm, &event)) {
		EXPECT(manager->event_count < MANAGER_EVENTS);
		manager->events[(manager->event_first + manager->event_count++) % MANAGER_EVENTS] =
			event;
		EXPECT_EQ(write(manager->events_fd, &one, sizeof(one)), sizeof(one));
	}
}

static enum vb_cm_verdict on_receive(void *owner, const struct vb_flow *flow, vb_qpn source,
				     const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				     struct vb_cm_addressee *addressee)
{
	struct manager *manager = owner;
	enum vb_cm_verdict verdict;

	pthread_mutex_lock(&manager->lock);
	verdict = vb_cm_receive(manager->cm, flow, source, bytes, length, now_ns, addressee);
	collect_events(manager);
	pthread_mutex_unlock(&manager->lock);
	return verdict;
}

static bool on_take_mad(void *owner, struct vb_cm_mad *mad)
{
	struct manager *manager = owner;
	bool is_taken;

	pthread_mutex_lock(&manager->lock);
	is_taken = vb_cm_take_mad(manager->cm, mad);
	pthread_mutex_unlock(&manager->lock);
	return is_taken;
}

static uint64_t on_deadline(void *owner)
{
	struct manager *manager = owner;
	uint64_t deadline_ns;

	pthread_mutex_lock(&manager->lock);
	deadline_ns = vb_cm_deadline(manager->cm);
	pthread_mutex_unlock(&manager->lock);
	return deadline_ns;
}

static void on_expire(void *owner, uint64_t now_ns)
{
	struct manager *manager = owner;

	pthread_mutex_lock(&manager->lock);
	vb_cm_fire_timers(manager->cm, now_ns);
	collect_events(manager);
	pthread_mutex_unlock(&manager->lock);
}

static void on_unreachable(void *owner, const struct vb_gid *address, uint64_t now_ns)
{
	struct manager *manager = owner;

	pthread_mutex_lock(&manager->lock);
	vb_cm_on_unreachable(manager->cm, address, now_ns);
	collect_events(manager);
	pthread_mutex_unlock(&manager->lock);
}

/* --- opening and closing ---------------------------------------------------------------------- */

static void make_machine(struct manager *manager)
{
	struct vb_cm_config config = {
		.ca_guid = manager->place.ca_guid,
		.id_prefix = manager->place.id_prefix,
		.id_prefix_bits = manager->place.id_prefix_bits,
		.connection_max = CONNECTIONS_MAX,
		.listener_max = LISTENERS_MAX,
		.rows = manager->place.rows,
	};

	EXPECT(manager->place.row_count >= CONNECTIONS_MAX);
	EXPECT_EQ(getrandom(&config.seed, sizeof(config.seed), 0), sizeof(config.seed));
	MUST(vb_cm_create(&config, &manager->cm));
}

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	EXPECT(list && list[0]);
	context = ibv_open_device(list[0]);
	EXPECT(context);
	ibv_free_device_list(list);
	return context;
}

void manager_open(struct manager *manager)
{
	struct vb_qp1_user user = {
		.owner = manager,
		.receive = on_receive,
		.take_mad = on_take_mad,
		.deadline = on_deadline,
		.expire = on_expire,
		.on_unreachable = on_unreachable,
	};

	memset(manager, 0, sizeof(*manager));
	pthread_mutex_init(&manager->lock, NULL);
	manager->events_fd = eventfd(0, EFD_SEMAPHORE);
	manager->context = open_first_device();
	EXPECT_EQ(vb_abi_qp1_attach(manager->context, &user, &manager->place), 0);
	make_machine(manager);
	vb_abi_qp1_kick(manager->context);
	/*
	 * QPNs of a process that had the same number are still in use if its end was not announced.
	 */
	EXPECT_EQ(getrandom(&manager->qpn_next, 2, 0), 2);
	manager->qpn_next |= manager->place.id_prefix << 16 | 2;
}

void manager_close(struct manager *manager)
{
	vb_abi_qp1_detach(manager->context);
	vb_cm_destroy(manager->cm);
	EXPECT_EQ(ibv_close_device(manager->context), 0);
	close(manager->events_fd);
	pthread_mutex_destroy(&manager->lock);
}

/* --- what programs do ------------------------------------------------------------------------- */

/*
 * The caller owns the machine between enter() and leave(). Then what the machine has to send is
 * sent.
 */
static void enter(struct manager *manager)
{
	pthread_mutex_lock(&manager->lock);
}

static void leave(struct manager *manager)
{
	collect_events(manager);
	pthread_mutex_unlock(&manager->lock);
	vb_abi_qp1_kick(manager->context);
}

static struct vb_gid gid_of(const char *text)
{
	struct vb_udp_address address = address_of(text);
	struct vb_gid gid;

	memcpy(gid.raw, address.ip, sizeof(gid.raw));
	return gid;
}

void manager_listen(struct manager *manager, uint16_t port, const char *address,
		    struct service *service)
{
	struct vb_cm_service wish = { .id = SPACE_PORT(port), .takes = VB_CM_IPV4 | VB_CM_IPV6 };

	if (address) {
		wish.address = gid_of(address);
		wish.takes = vb_gid_is_ipv4(&wish.address) ? VB_CM_IPV4 : VB_CM_IPV6;
	}
	EXPECT_EQ(vb_abi_qp1_listen(manager->context, wish.id, address ? &wish.address : NULL,
				    wish.takes, &service->name),
		  0);
	enter(manager);
	MUST(vb_cm_listen(manager->cm, &wish, CONNECTIONS_MAX, NULL, &service->listener));
	leave(manager);
}

void manager_unlisten(struct manager *manager, struct service *service)
{
	enter(manager);
	vb_cm_listener_destroy(service->listener, vb_clock_now());
	leave(manager);
	vb_abi_qp1_unlisten(service->name);
}

struct vb_cm_connection *manager_connect(struct manager *manager, const char *from, const char *to,
					 uint16_t port)
{
	struct vb_service_ip ip = { .source_port = 40000,
				    .source = gid_of(from),
				    .destination = gid_of(to) };
	struct vb_cm_request request = {
		.service = SPACE_PORT(port),
		.ip = &ip,
		.flow = { .source = ip.source, .destination = ip.destination, .hop_limit = 64 },
		.starting_psn = { 1 },
		.retry_count = 7,
		.rnr_retry_count = 7,
		.mtu = 3,
		.pkey = 0xffff,
		.packet_life_time = VB_CM_PACKET_LIFE_TIME,
		.response_timeout = VB_CM_RESPONSE_TIMEOUT,
		.retries_max = RETRIES,
	};
	struct vb_cm_connection *connection;

	enter(manager);
	request.qpn.v = manager->qpn_next++;
	MUST(vb_cm_connection_create(manager->cm, NULL, &connection));
	MUST(vb_cm_connect(connection, &request, vb_clock_now()));
	leave(manager);
	return connection;
}

void manager_accept(struct manager *manager, struct vb_cm_connection *connection)
{
	struct vb_cm_reply reply = { .starting_psn = { 2 }, .rnr_retry_count = 7 };

	enter(manager);
	reply.qpn.v = manager->qpn_next++;
	MUST(vb_cm_accept(connection, &reply, vb_clock_now()));
	leave(manager);
}

void manager_establish(struct manager *manager, struct vb_cm_connection *connection)
{
	enter(manager);
	MUST(vb_cm_establish(connection, NULL, vb_clock_now()));
	leave(manager);
}

void manager_disconnect(struct manager *manager, struct vb_cm_connection *connection)
{
	enter(manager);
	MUST(vb_cm_disconnect(connection, NULL, vb_clock_now()));
	leave(manager);
}

void manager_destroy(struct manager *manager, struct vb_cm_connection *connection)
{
	enter(manager);
	vb_cm_connection_destroy(connection, vb_clock_now());
	leave(manager);
}

struct vb_cm_event manager_wait(struct manager *manager)
{
	struct vb_cm_event event;
	uint64_t one;

	EXPECT_EQ(vb_abi_qp1_wait(manager->context, manager->events_fd), 0);
	EXPECT_EQ(read(manager->events_fd, &one, sizeof(one)), sizeof(one));
	enter(manager);
	event = manager->events[manager->event_first++ % MANAGER_EVENTS];
	manager->event_first %= MANAGER_EVENTS;
	manager->event_count--;
	leave(manager);
	return event;
}

struct vb_cm_event manager_expect(struct manager *manager, enum vb_cm_event_kind kind)
{
	struct vb_cm_event event = manager_wait(manager);

	EXPECT_STR(vb_cm_event_describe(event.kind), vb_cm_event_describe(kind));
	return event;
}

bool manager_has_event(struct manager *manager)
{
	bool has_event;

	enter(manager);
	has_event = manager->event_count;
	leave(manager);
	return has_event;
}

struct vb_cm_connection *manager_take_connection(struct manager *manager)
{
	struct vb_cm_connection *connection = manager_expect(manager, VB_CM_REQUEST).connection;

	manager_accept(manager, connection);
	EXPECT(manager_expect(manager, VB_CM_ESTABLISHED).connection == connection);
	return connection;
}

struct vb_cm_connection *manager_make_connection(struct manager *manager, const char *from,
						 const char *to, uint16_t port)
{
	struct vb_cm_connection *connection = manager_connect(manager, from, to, port);

	EXPECT(manager_expect(manager, VB_CM_RESPONSE).connection == connection);
	manager_establish(manager, connection);
	return connection;
}

struct vb_cm_counters manager_counters(struct manager *manager)
{
	struct vb_cm_counters counters;

	enter(manager);
	counters = *vb_cm_counters(manager->cm);
	leave(manager);
	return counters;
}

/* --- processes -------------------------------------------------------------------------------- */

struct call {
	void (*run)(int line);
	int line;
};

static void run_party(void *argument)
{
	const struct call *call = argument;

	call->run(call->line);
}

struct party party_start(void (*run)(int line))
{
	int ends[2];
	struct party party;
	struct call call = { .run = run };

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	call.line = ends[1];
	party = (struct party){ start_process(run_party, &call), ends[0] };
	close(ends[1]);
	return party;
}

void party_join(struct party *party)
{
	join_process(party->pid);
	close(party->line);
}

void party_kill(struct party *party)
{
	EXPECT_EQ(kill(party->pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(party->pid, NULL, 0), party->pid);
	close(party->line);
}

void say_letter(int line, char letter)
{
	EXPECT_EQ(write(line, &letter, 1), 1);
}

void hear_letter(int line, char letter)
{
	char heard = 0;

	EXPECT_EQ(read(line, &heard, 1), 1);
	EXPECT_EQ(heard, letter);
}
