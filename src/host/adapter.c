/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who turns the crank. One mutex is the engine's ownership: control calls wait for it, threads that poll or post
 * only try. While somebody polls, the helper thread sleeps a millisecond at a time and touches nothing; when nobody
 * has for that long, it waits on the link and drives. It is woken only when a deadline is nearer than it knows.
 */
#include "host/adapter.h"

#include "host/config.h"
#include "host/device.h"
#include "host/dma.h"
#include "host/log.h"
#include "host/member.h"
#include "host/pump.h"
#include "link/udp.h"
#include "nic/rings.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define KEY_ROWS (1u << 18)
#define QP_ROWS (1u << 16)
#define DEVICE_MEMORY (1u << 20)
#define ZERO_PAGE 4096u
#define POLLED_RECENTLY_NS 1000000ull
#define WAITED_PAUSE_NS 10000000l
#define EVENTS_AT_ONCE 32u
#define TURNS_AT_ONCE 16u
#define IDLE_POLLS_MAX 64u
#define SOURCE_PORTS 4u
#define STEERING_MASK 0xffu
#define RECEIVE_BUFFER (4u << 20)
#define FLIGHT_PACKETS 64u /* of a QP: what a stock receive buffer takes, with a few QPs at once */

struct vb_adapter {
	pthread_mutex_t owner;
	struct vb_nic *nic;
	struct vb_member *member;
	struct vb_pump *pump;
	struct vb_udp *udp;
	struct vb_adapter_init init;
	uint8_t *tables; /* key rows, QP rows, zero page, device memory: one mapping */
	size_t tables_length;
	int wake_fd;
	pthread_t helper;
	_Atomic bool is_closing;
	_Atomic uint64_t polled_ns; /* when somebody last looked for completions */
	_Atomic uint32_t idle_polls; /* in a row that moved nothing */
	_Atomic uint32_t waiter_count; /* threads in vb_adapter_wait(): they see to everything */
	_Atomic uint64_t helper_wakes_ns; /* when the helper will look by itself */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void tell_events(struct vb_adapter *adapter)
{
	struct vb_event events[EVENTS_AT_ONCE];
	uint32_t count;

	do {
		count = vb_nic_take_events(adapter->nic, events, EVENTS_AT_ONCE);
		for (uint32_t i = 0; i < count; i++)
			adapter->init.on_event(adapter->init.owner, &events[i]);
	} while (count == EVENTS_AT_ONCE);
}

/* The helper does not know of a deadline that came up after it went to sleep. */
static void wake_helper_before(struct vb_adapter *adapter, uint64_t deadline_ns)
{
	uint64_t one = 1;

	if (deadline_ns >= atomic_load_explicit(&adapter->helper_wakes_ns, memory_order_relaxed))
		return;
	atomic_store_explicit(&adapter->helper_wakes_ns, deadline_ns, memory_order_relaxed);
	syscall(SYS_write, adapter->wake_fd, &one, sizeof(one));
}

/* As the owner: moves packets until nothing moves, but not for ever. Returns the next deadline. */
static uint64_t drive(struct vb_adapter *adapter)
{
	vb_dma_begin();
	for (uint32_t i = 0; i < TURNS_AT_ONCE && vb_pump_turn(adapter->pump, now_ns()); i++)
		atomic_store_explicit(&adapter->idle_polls, 0, memory_order_relaxed);
	vb_dma_end();
	tell_events(adapter);
	return vb_nic_deadline(adapter->nic);
}

/* Drives unless another thread does; what is posted while it does so is not left behind. */
static void try_drive(struct vb_adapter *adapter)
{
	do {
		uint64_t deadline_ns;

		if (pthread_mutex_trylock(&adapter->owner))
			return; /* its owner looks at the doorbells after it has let go */
		deadline_ns = drive(adapter);
		pthread_mutex_unlock(&adapter->owner);
		wake_helper_before(adapter, deadline_ns);
	} while (vb_nic_is_rung(adapter->nic));
}

void vb_adapter_enter(struct vb_adapter *adapter)
{
	pthread_mutex_lock(&adapter->owner);
}

void vb_adapter_leave(struct vb_adapter *adapter)
{
	uint64_t deadline_ns = drive(adapter);

	pthread_mutex_unlock(&adapter->owner);
	wake_helper_before(adapter, deadline_ns);
	if (vb_nic_is_rung(adapter->nic))
		try_drive(adapter);
}

void vb_adapter_poll(struct vb_adapter *adapter)
{
	atomic_store_explicit(&adapter->polled_ns, now_ns(), memory_order_relaxed);
	try_drive(adapter);
	/* Perhaps the one we wait for waits for our CPU. */
	if (atomic_fetch_add_explicit(&adapter->idle_polls, 1, memory_order_relaxed) >=
	    IDLE_POLLS_MAX)
		syscall(SYS_sched_yield);
}

void vb_adapter_kick(struct vb_adapter *adapter)
{
	try_drive(adapter);
}

static bool has_waiters(const struct vb_adapter *adapter)
{
	return atomic_load_explicit(&adapter->waiter_count, memory_order_relaxed);
}

static bool is_polled(const struct vb_adapter *adapter, uint64_t now)
{
	return has_waiters(adapter) ||
	       now - atomic_load_explicit(&adapter->polled_ns, memory_order_relaxed) <
		       POLLED_RECENTLY_NS;
}

static struct timespec wait_time(uint64_t now, uint64_t deadline_ns)
{
	uint64_t left = deadline_ns > now ? deadline_ns - now : 0;

	return (struct timespec){ (time_t)(left / 1000000000u), (long)(left % 1000000000u) };
}

/* Waits for packets, the deadline, or one more descriptor. */
static int wait_for_work(struct vb_adapter *adapter, int fd, uint64_t deadline_ns)
{
	struct pollfd fds[VB_PUMP_FDS_MAX + 1];
	uint32_t count = vb_pump_fds(adapter->pump, fds);
	struct timespec timeout = wait_time(now_ns(), deadline_ns);

	fds[count] = (struct pollfd){ .fd = fd, .events = POLLIN };
	return (int)syscall(SYS_ppoll, fds, count + 1, deadline_ns == VB_NEVER ? NULL : &timeout,
			    NULL, 0);
}

static int wait_driving(struct vb_adapter *adapter, int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (;;) {
		uint64_t deadline_ns;

		pthread_mutex_lock(&adapter->owner);
		vb_pump_on_wake(adapter->pump);
		deadline_ns = drive(adapter);
		pthread_mutex_unlock(&adapter->owner);
		if (syscall(SYS_poll, &ready, 1, 0) > 0)
			return 0;
		if (wait_for_work(adapter, fd, deadline_ns) < 0 && errno == EINTR)
			return EINTR;
	}
}

int vb_adapter_wait(struct vb_adapter *adapter, int fd)
{
	int error;

	atomic_fetch_add_explicit(&adapter->waiter_count, 1, memory_order_relaxed);
	error = wait_driving(adapter, fd);
	atomic_fetch_sub_explicit(&adapter->waiter_count, 1, memory_order_relaxed);
	return error;
}

static void sleep_while_polled(struct vb_adapter *adapter)
{
	struct pollfd wake = { .fd = adapter->wake_fd, .events = POLLIN };
	struct timespec pause = { 0, has_waiters(adapter) ? WAITED_PAUSE_NS
							  : (long)POLLED_RECENTLY_NS };

	syscall(SYS_ppoll, &wake, 1, &pause, NULL, 0);
}

static void *help(void *argument)
{
	struct vb_adapter *adapter = argument;
	uint64_t woken;

	while (!atomic_load_explicit(&adapter->is_closing, memory_order_acquire)) {
		uint64_t deadline_ns;

		if (is_polled(adapter, now_ns())) {
			/* Whoever polls sees to deadlines too: nobody needs to wake us. */
			atomic_store_explicit(&adapter->helper_wakes_ns, 0, memory_order_relaxed);
			sleep_while_polled(adapter);
			continue;
		}
		pthread_mutex_lock(&adapter->owner);
		vb_pump_on_wake(adapter->pump);
		deadline_ns = drive(adapter);
		atomic_store_explicit(&adapter->helper_wakes_ns, deadline_ns, memory_order_relaxed);
		pthread_mutex_unlock(&adapter->owner);
		wait_for_work(adapter, adapter->wake_fd, deadline_ns);
		syscall(SYS_read, adapter->wake_fd, &woken, sizeof(woken));
	}
	return NULL;
}

/* The helper takes no signals: they are the program's. */
static vb_err start_helper(struct vb_adapter *adapter)
{
	sigset_t all;
	sigset_t before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&adapter->helper, NULL, help, adapter);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err ? VB_ENOMEM : VB_OK;
}

static vb_err make_tables(struct vb_adapter *adapter, struct vb_nic_config *config)
{
	size_t keys = KEY_ROWS * sizeof(struct vb_key_row);
	size_t qps = QP_ROWS * sizeof(struct vb_qp_row);

	adapter->tables_length = keys + qps + ZERO_PAGE + DEVICE_MEMORY;
	adapter->tables = mmap(NULL, adapter->tables_length, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (adapter->tables == MAP_FAILED) {
		adapter->tables = NULL;
		return VB_ENOMEM;
	}
	config->key_rows = (struct vb_key_row *)(void *)adapter->tables;
	config->key_row_count = KEY_ROWS;
	config->qp_rows = (struct vb_qp_row *)(void *)(adapter->tables + keys);
	config->qp_row_count = QP_ROWS;
	config->zero_page = (vb_dma_addr)(uintptr_t)(adapter->tables + keys + qps);
	config->device_memory = config->zero_page + ZERO_PAGE;
	config->device_memory_length = DEVICE_MEMORY;
	return VB_OK;
}

static vb_err seed(uint64_t *seed_out)
{
	return getrandom(seed_out, sizeof(*seed_out), 0) == sizeof(*seed_out) ? VB_OK : VB_EFAULT;
}

static vb_err open_link(struct vb_adapter *adapter, struct vb_nic_config *config)
{
	struct vb_udp_config udp = {
		.interface_index = adapter->init.device->ifindex,
		.port = VB_ROCE_PORT,
		.source_count = SOURCE_PORTS,
		.receive_buffer_length = adapter->init.config->receive_buffer
						 ? adapter->init.config->receive_buffer
						 : RECEIVE_BUFFER,
		.is_segmenting = true,
	};
	vb_err err = vb_udp_open(&udp, &adapter->udp);

	if (err)
		return err;
	/* For speed only: what comes to the wrong process is handed over. */
	(void)!vb_udp_steer(adapter->udp, VB_MEMBER_QPN_SHIFT, STEERING_MASK);
	config->source_port_count = SOURCE_PORTS;
	for (uint32_t i = 0; i < SOURCE_PORTS; i++)
		config->source_ports[i] = vb_udp_source_port(adapter->udp, i);
	config->batch_segments_max = vb_udp_segments_max(adapter->udp);
	return VB_OK;
}

static vb_err make_engine(struct vb_adapter *adapter, struct vb_nic_config *config)
{
	const struct vb_device *device = adapter->init.device;
	vb_err err = seed(&config->seed);

	if (err)
		return err;
	config->icrc_mode = adapter->init.config->icrc;
	config->qp_depth_max = adapter->init.config->qp_depth;
	config->cq_depth_max = adapter->init.config->cq_depth;
	config->srq_depth_max = adapter->init.config->srq_depth;
	config->reads_max = adapter->init.config->reads;
	config->port_mtu = device->path_mtu;
	config->flight_packets_max = FLIGHT_PACKETS;
	config->qpn_first = vb_member_number(adapter->member) << VB_MEMBER_QPN_SHIFT;
	config->qpn_count = 1u << VB_MEMBER_QPN_SHIFT;
	if (!config->qpn_first) { /* QPN 0 and 1 are special */
		config->qpn_first = 2;
		config->qpn_count -= 2;
	}
	err = vb_nic_create(config, &adapter->nic);
	for (uint32_t i = 0; !err && i < VB_GID_COUNT; i++)
		err = vb_nic_set_gid(adapter->nic, i, &device->gids[i].gid);
	return err;
}

static const struct vb_gid *host_gid(const struct vb_adapter *adapter)
{
	const struct vb_device_gid *first = &adapter->init.device->gids[0];

	return first->is_host_only ? &first->gid : NULL;
}

/* In the order in which they are made; ended in reverse by vb_adapter_close(), as far as they exist. */
static vb_err make_parts(struct vb_adapter *adapter)
{
	struct vb_nic_config config = { 0 };
	vb_err err = vb_dma_install();

	if (!err)
		err = make_tables(adapter, &config);
	if (!err)
		err = vb_member_join(&adapter->member);
	if (!err)
		err = open_link(adapter, &config);
	if (!err)
		err = make_engine(adapter, &config);
	if (!err)
		err = vb_pump_create(adapter->nic, adapter->udp, adapter->member, host_gid(adapter),
				     &adapter->pump);
	return err;
}

static void end_parts(struct vb_adapter *adapter)
{
	if (adapter->pump)
		vb_pump_destroy(adapter->pump);
	if (adapter->nic)
		vb_nic_destroy(adapter->nic);
	if (adapter->udp)
		vb_udp_close(adapter->udp);
	if (adapter->member)
		vb_member_leave(adapter->member);
	if (adapter->tables)
		munmap(adapter->tables, adapter->tables_length);
	if (adapter->wake_fd >= 0)
		syscall(SYS_close, adapter->wake_fd);
	pthread_mutex_destroy(&adapter->owner);
	free(adapter);
}

vb_err vb_adapter_open(const struct vb_adapter_init *init, struct vb_adapter **adapter_out)
{
	struct vb_adapter *adapter = calloc(1, sizeof(*adapter));
	vb_err err;

	if (!adapter)
		return VB_ENOMEM;
	adapter->init = *init;
	pthread_mutex_init(&adapter->owner, NULL);
	adapter->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = adapter->wake_fd < 0 ? VB_ENOMEM : make_parts(adapter);
	if (!err)
		err = start_helper(adapter);
	if (err) {
		end_parts(adapter);
		return err;
	}
	*adapter_out = adapter;
	return VB_OK;
}

/* What a person who looks for the reason of something would like to know. */
static void log_counters(const struct vb_adapter *adapter)
{
	const struct vb_counters *counters = vb_nic_counters(adapter->nic);
	const uint64_t *udp = vb_udp_counters(adapter->udp);
	const char *name = adapter->init.device->name;

	for (uint32_t i = 0; i < VB_COUNTER_COUNT; i++)
		if (counters->counts[i])
			vb_log(VB_LOG_DEBUG, "%s: %s %" PRIu64, name, vb_counter_name(i),
			       counters->counts[i]);
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		if (counters->drops[i])
			vb_log(VB_LOG_DEBUG, "%s: dropped %s %" PRIu64, name, vb_drop_name(i),
			       counters->drops[i]);
	for (uint32_t i = 0; i < VB_UDP_COUNTER_COUNT; i++)
		if (udp[i])
			vb_log(VB_LOG_DEBUG, "%s: %s %" PRIu64, name, vb_udp_counter_name(i),
			       udp[i]);
}

void vb_adapter_close(struct vb_adapter *adapter)
{
	uint64_t one = 1;

	atomic_store_explicit(&adapter->is_closing, true, memory_order_release);
	syscall(SYS_write, adapter->wake_fd, &one, sizeof(one));
	pthread_join(adapter->helper, NULL);
	log_counters(adapter);
	end_parts(adapter);
}

struct vb_nic *vb_adapter_nic(const struct vb_adapter *adapter)
{
	return adapter->nic;
}

uint64_t vb_adapter_device_memory(const struct vb_adapter *adapter)
{
	(void)adapter;
	return DEVICE_MEMORY;
}
