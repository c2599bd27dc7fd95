/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handling of fork() and exit(). After fork(), the parent continues as if nothing had happened. The
 * child has a copy of the engines but no helper threads, and gives up all descriptors immediately:
 * sockets that it kept would outlive its parent. When a verb asks for such an adapter, the child
 * takes it over if its parent is gone, as programs that become daemons expect; else it is unusable.
 * The number among the port members is the token: the process that has it drives. At exit(),
 * deferred answers are sent: a program that has everything it waited for may end before the peer
 * has its answers.
 */
#include "host/adapter/adapter_priv.h"

#include "host/local/conversion.h"
#include "host/local/local_peer.h"
#include "host/qp1/qp1.h"
#include "host/registry/receivers.h"
#include "host/registry/totals.h"
#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "link/fd.h"
#include "nic/peer_memory.h"

#include <sys/syscall.h>
#include <unistd.h>

/*
 * The parent of a daemon exits right after the fork, while the child continues: this is how long
 * the child waits for that.
 */
#define PARENT_EXITS_NS 1000000000u
#define PAUSE_NS 1000000
#define FAREWELLS_MAX_NS 200000000u /* no one must wait longer for the end of a process */
#define FAREWELLS_PAUSE_NS 100000
#define EXIT_WAITS_NS 5000000

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list_node all = { &all, &all };
static pid_t process; /* the process that owns these adapters */
/*
 * The process that owns these locks. In a copy of it that was made without our handlers, they may
 * never be released.
 */
static pid_t locker;
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;

/* All engines are at rest from now on. */
static void enter_all(void)
{
	pthread_mutex_lock(&all_lock);
	for (struct vb_list_node *node = all.next; node != &all; node = node->next) {
		struct vb_adapter *adapter = VB_CONTAINER(node, struct vb_adapter, node);

		/* This very thread may hold it: in a signal handler that forks. */
		adapter->is_torn = vb_lock_is_mine(&adapter->owner);
		if (!adapter->is_torn)
			vb_lock_take(&adapter->owner);
		pthread_mutex_lock(&adapter->device_lock);
	}
}

static void leave_all(void)
{
	for (struct vb_list_node *node = all.next; node != &all; node = node->next) {
		struct vb_adapter *adapter = VB_CONTAINER(node, struct vb_adapter, node);

		pthread_mutex_unlock(&adapter->device_lock);
		if (!adapter->is_torn)
			vb_lock_give(&adapter->owner);
		adapter->is_torn = false;
	}
	pthread_mutex_unlock(&all_lock);
}

/* --- memory that local peers have --- */

static struct vb_local_peers *peers_of(struct vb_list_node *node)
{
	struct vb_adapter *adapter = VB_CONTAINER(node, struct vb_adapter, node);

	return adapter->is_torn ? NULL : adapter->peers;
}

/* For the owner of all adapters. Local peers continue by other paths, when all is done. */
static bool withdraw_conversions(enum vb_conversion_reason reason, uint64_t address,
				 uint64_t length)
{
	bool may_go_on;

	if (!vb_conversion_may_overlap(address, length))
		return true;
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		if (peers_of(node))
			vb_local_peers_close_memory(peers_of(node));
	/*
	 * First the contents go back where they were: then the last adapter that drops a conversion
	 * finds nothing left to do.
	 */
	may_go_on = vb_conversion_withdraw(reason, address, length);
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		if (peers_of(node))
			vb_local_peers_unshare_conversions(peers_of(node), address, length);
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		if (peers_of(node))
			vb_local_peers_open_memory(peers_of(node));
	return may_go_on;
}

bool vb_adapter_restore_memory(enum vb_conversion_reason reason, uint64_t address, uint64_t length)
{
	bool may_go_on;

	if (!vb_conversion_may_overlap(address, length) || locker != getpid())
		return true;
	enter_all();
	if (reason == VB_CONVERSION_UNMAPPED) {
		vb_conversion_tidy();
		may_go_on = true;
	} else {
		may_go_on = withdraw_conversions(reason, address, length);
	}
	leave_all();
	return may_go_on;
}

/* --- fork() --- */

/* The child gets copies of memory that no other process has. */
static void before_fork(void)
{
	enter_all();
	(void)withdraw_conversions(VB_CONVERSION_COPIES, 0, UINT64_MAX);
}

static void inherit(struct vb_adapter *adapter)
{
	vb_adapter_init_locks(adapter);
	adapter->is_inherited = true;
	adapter->inherited_ns = vb_clock_now();
	adapter->watch_fd = -1;
	vb_async_log_init(&adapter->events);
	atomic_store(&adapter->wake_fd, -1);
	vb_alarm_forget(&adapter->alarm);
	vb_drive_policy_inherit(&adapter->policy);
	vb_thread_forget(&adapter->helper);
	atomic_store(&adapter->is_marked, false);
	vb_qp1_inherit(adapter->qp1);
	vb_nic_publish(adapter->nic, NULL); /* the rows that local peers see are the parent's */
	if (!adapter->is_torn)
		vb_adapter_unplug(adapter);
}

static void after_fork_in_child(void)
{
	vb_fd_close_inherited();
	vb_receivers_forget();
	vb_totals_forget();
	vb_conversion_inherit();
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		inherit(VB_CONTAINER(node, struct vb_adapter, node));
	pthread_mutex_init(&all_lock, NULL);
	locker = getpid();
}

static void set_handlers(void)
{
	pthread_atfork(before_fork, leave_all, after_fork_in_child);
}

void vb_adapter_enlist(struct vb_adapter *adapter)
{
	pthread_once(&handlers_once, set_handlers);
	pthread_mutex_lock(&all_lock);
	process = locker = getpid();
	vb_list_append(&all, &adapter->node);
	pthread_mutex_unlock(&all_lock);
}

void vb_adapter_delist(struct vb_adapter *adapter)
{
	pthread_mutex_lock(&all_lock);
	vb_list_remove(&adapter->node);
	pthread_mutex_unlock(&all_lock);
}

VB_COLD static vb_err plug_in_when_parent_exits(struct vb_adapter *adapter)
{
	vb_err err;

	while ((err = vb_adapter_replug(adapter)) &&
	       vb_clock_now() - adapter->inherited_ns < PARENT_EXITS_NS)
		syscall(SYS_nanosleep, &(struct timespec){ 0, PAUSE_NS }, NULL);
	return err;
}

VB_COLD static bool take_over(struct vb_adapter *adapter)
{
	if (adapter->is_torn || plug_in_when_parent_exits(adapter))
		return false;
	adapter->is_inherited = false;
	if (vb_adapter_open_wake_fd(adapter) || vb_adapter_start_helper(adapter)) {
		adapter->is_inherited = true;
		vb_adapter_unplug(adapter);
		return false;
	}
	vb_adapter_open_watch(adapter);
	vb_log_about(VB_LOG_INFO, VB_LOG_ABOUT(.phase = "fork", .device = adapter->device.name),
		     "%s: taken over from the parent process", adapter->device.name);
	return true;
}

bool vb_adapter_ensure_usable(struct vb_adapter *adapter)
{
	bool is_usable;

	if (!atomic_load_explicit(&adapter->is_inherited, memory_order_acquire))
		return true;
	pthread_mutex_lock(&all_lock);
	is_usable = !adapter->is_inherited || take_over(adapter);
	pthread_mutex_unlock(&all_lock);
	if (!is_usable)
		vb_log_about(VB_LOG_WARN,
			     VB_LOG_ABOUT(.phase = "fork", .device = adapter->device.name),
			     "%s: belongs to the parent process, which still uses it",
			     adapter->device.name);
	return is_usable;
}

/*
 * The program leaves connections behind: this process notifies their peers now, rather than a
 * process that survives it.
 */
static void send_farewells(struct vb_adapter *adapter)
{
	uint64_t begin_ns = vb_clock_now();

	vb_qp1_begin_own_farewells(adapter->qp1, begin_ns);
	while (adapter->port && vb_qp1_is_sending(adapter->qp1) &&
	       vb_clock_now() - begin_ns < FAREWELLS_MAX_NS) {
		vb_adapter_move_packets(adapter);
		syscall(SYS_nanosleep, &(struct timespec){ 0, FAREWELLS_PAUSE_NS }, NULL);
	}
}

/*
 * Runs at the end of exit(). A process that ends in another way, or a copy of this one without our
 * handlers, sends nothing.
 */
static __attribute__((destructor)) void on_exit_of_process(void)
{
	if (getpid() != process || pthread_mutex_trylock(&all_lock))
		return; /* a copy, or another thread opens or closes a device and never ends */
	for (struct vb_list_node *node = all.next; node != &all; node = node->next) {
		struct vb_adapter *adapter = VB_CONTAINER(node, struct vb_adapter, node);

		/* A helper that is about to send would be killed doing so: it gets a moment. */
		if (adapter->is_inherited || !vb_lock_take_within(&adapter->owner, EXIT_WAITS_NS))
			continue;
		vb_adapter_send_deferred_acks(adapter);
		if (vb_qp1_has_user(adapter->qp1))
			send_farewells(adapter);
		vb_adapter_give_up_qp1(adapter);
		vb_adapter_report_self_check(adapter);
		vb_lock_give(&adapter->owner);
	}
	pthread_mutex_unlock(&all_lock);
}
