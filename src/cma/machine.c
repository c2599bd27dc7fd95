/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection manager of this process, its lock, and its access to QP 1. The functions that QP 1
 * calls run in a thread that owns the adapter. Each takes the lock, drives the connection manager
 * and queues the resulting events. A forked child starts from scratch: what it inherited belongs to
 * its parent. If the parent is gone, as in a program that becomes a daemon, the child takes over
 * everything, the adapter included.
 */
#include "cma/cma_priv.h"

#include "base/prng.h"

#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LISTENERS_MAX 65536

/* Error-checking: a thread that holds the lock and forks in a signal handler gets an error. */
static pthread_mutex_t lock = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;
static struct vb_cm *machine;
static struct ibv_context *home;
static uint32_t generation, generation_first; /* of identifiers that may be used */
static struct vb_prng prng;
static bool is_seeded;

/* What a forked child may take over. */
static struct {
	struct vb_cm *machine;
	struct ibv_context *home; /* NULL: nothing to take over */
	uint32_t generation_first;
	pid_t owner;
} inherited;
static bool is_torn; /* the fork happened in the middle of a change */

int vb_cma_errno(vb_err err)
{
	switch (err) {
	case VB_OK:
		return 0;
	case VB_ENOMEM:
	case VB_ENOSPC:
		return ENOMEM;
	case VB_EINVAL:
		return EINVAL;
	case VB_EBUSY:
		return EADDRINUSE;
	case VB_EOPNOTSUPP:
		return EOPNOTSUPP;
	case VB_EFAULT:
		return EFAULT;
	case VB_EMFILE:
		return EMFILE;
	case VB_EFBIG:
		return EFBIG;
	case VB_EAGAIN:
		return EAGAIN;
	}
	return EINVAL;
}

void vb_cma_lock(void)
{
	pthread_mutex_lock(&lock);
}

void vb_cma_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void vb_cma_sleep(void)
{
	pthread_cond_wait(&changed, &lock);
}

void vb_cma_wake_all(void)
{
	pthread_cond_broadcast(&changed);
}

struct vb_cm *vb_cma_machine(void)
{
	return machine;
}

struct ibv_context *vb_cma_machine_home(void)
{
	return __atomic_load_n(&home, __ATOMIC_ACQUIRE); /* pairs with vb_cma_machine_start() */
}

uint32_t vb_cma_generation(void)
{
	return generation;
}

bool vb_cma_is_ours(uint32_t of_generation)
{
	return of_generation >= generation_first;
}

static uint64_t seed(void)
{
	uint64_t value = vb_clock_now();

	(void)!syscall(SYS_getrandom, &value, sizeof(value), GRND_NONBLOCK);
	return value;
}

/* Call with the lock. */
static uint64_t next_random(void)
{
	if (!is_seeded) {
		vb_prng_init(&prng, seed());
		is_seeded = true;
	}
	return vb_prng_next(&prng);
}

uint32_t vb_cma_random(void)
{
	uint32_t value;

	vb_cma_lock();
	value = (uint32_t)next_random();
	vb_cma_unlock();
	return value;
}

/* --- what QP 1 calls -------------------------------------------------------------------------- */

static enum vb_cm_verdict receive(void *owner, const struct vb_flow *flow, vb_qpn source,
				  const uint8_t *bytes, uint32_t length, uint64_t now_ns,
				  struct vb_cm_addressee *addressee)
{
	enum vb_cm_verdict verdict;

	(void)owner;
	vb_cma_lock();
	verdict = vb_cm_receive(machine, flow, source, bytes, length, now_ns, addressee);
	vb_cma_deliver();
	vb_cma_unlock();
	return verdict;
}

static bool take_mad(void *owner, struct vb_cm_mad *mad)
{
	bool is_taken;

	(void)owner;
	vb_cma_lock();
	is_taken = vb_cm_take_mad(machine, mad);
	vb_cma_unlock();
	return is_taken;
}

static uint64_t deadline(void *owner)
{
	uint64_t deadline_ns;

	(void)owner;
	vb_cma_lock();
	deadline_ns = vb_cm_deadline(machine);
	vb_cma_unlock();
	return deadline_ns;
}

static void expire(void *owner, uint64_t now_ns)
{
	(void)owner;
	vb_cma_lock();
	vb_cm_fire_timers(machine, now_ns);
	vb_cma_deliver();
	vb_cma_unlock();
}

static void on_unreachable(void *owner, const struct vb_gid *address, uint64_t now_ns)
{
	(void)owner;
	vb_cma_lock();
	vb_cm_on_unreachable(machine, address, now_ns);
	vb_cma_deliver();
	vb_cma_unlock();
}

static void on_removal(void *owner, const struct ibv_device *device)
{
	(void)owner;
	vb_cma_lock();
	vb_cma_id_on_removal(device);
	vb_cma_unlock();
}

static const struct vb_qp1_user user = {
	.receive = receive,
	.take_mad = take_mad,
	.deadline = deadline,
	.expire = expire,
	.on_unreachable = on_unreachable,
	.on_removal = on_removal,
};

/* --- beginning -------------------------------------------------------------------------------- */

static void init_locks(void)
{
	pthread_mutexattr_t checked;

	pthread_mutexattr_init(&checked);
	pthread_mutexattr_settype(&checked, PTHREAD_MUTEX_ERRORCHECK);
	pthread_mutex_init(&lock, &checked);
	pthread_mutexattr_destroy(&checked);
	pthread_mutex_init(&starting, NULL);
	pthread_cond_init(&changed, NULL);
}

static void before_fork(void)
{
	is_torn = pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	if (!is_torn)
		pthread_mutex_unlock(&lock);
}

/* A grandchild inherits from its grandparent if its parent used nothing. */
static void after_fork_in_child(void)
{
	init_locks();
	if (home && !is_torn) {
		inherited.machine = machine;
		inherited.home = home;
		inherited.generation_first = generation_first;
		inherited.owner = getppid();
	}
	vb_cma_device_set_aside();
	vb_cma_port_set_aside();
	machine = NULL;
	home = NULL;
	is_seeded = false;
	generation_first = ++generation;
}

/*
 * Registered before any device is opened: a fork takes this lock after the adapters' locks and
 * releases it before them.
 */
static __attribute__((constructor)) void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static int make(const struct vb_qp1_config *place, uint8_t ack_delay)
{
	struct vb_cm_config config = {
		.ca_guid = place->ca_guid,
		.id_prefix = place->id_prefix,
		.id_prefix_bits = place->id_prefix_bits,
		.ack_delay = ack_delay,
		.connection_max = place->row_count,
		.listener_max = LISTENERS_MAX,
		.rows = place->rows,
	};
	vb_err err;

	vb_cma_lock();
	config.seed = next_random();
	err = vb_cm_create(&config, &machine);
	vb_cma_unlock();
	return vb_cma_errno(err);
}

/* Call with the lock `starting`. EIO: the adapter belongs to the parent. */
static int take_over(void)
{
	struct vb_qp1_config place;
	int error = vb_abi_qp1_attach(inherited.home, &user, &place);

	if (error)
		return error;
	vb_cma_device_take_back();
	vb_cma_port_take_back();
	vb_cma_lock();
	machine = inherited.machine;
	vb_cm_set_rows(machine, place.rows);
	generation_first = inherited.generation_first;
	vb_cma_unlock();
	vb_abi_qp1_kick(inherited.home);
	__atomic_store_n(&home, inherited.home, __ATOMIC_RELEASE);
	inherited.home = NULL;
	vb_cma_log(VB_LOG_INFO, 0, "connections: taken over from the parent process");
	return 0;
}

int vb_cma_machine_inherit(void)
{
	int error = EIO;

	pthread_mutex_lock(&starting);
	if (inherited.home)
		error = take_over();
	pthread_mutex_unlock(&starting);
	return error;
}

/*
 * Call with the lock `starting`. A child that starts from scratch while the owner lives never takes
 * over.
 */
static bool take_over_or_forget(void)
{
	bool is_orphaned = inherited.home && kill(inherited.owner, 0) && errno == ESRCH;

	if (is_orphaned && !take_over())
		return true;
	inherited.home = NULL;
	return false;
}

bool vb_cma_machine_inherit_or_forget(void)
{
	bool is_ours;

	pthread_mutex_lock(&starting);
	is_ours = take_over_or_forget();
	pthread_mutex_unlock(&starting);
	return is_ours;
}

static int start(void)
{
	struct vb_cma_device *device;
	struct vb_qp1_config place;
	int error = vb_cma_device_first(&device);

	if (error)
		return vb_cma_refuse(error, "connections: no device can be opened (errno %d)",
				     error);
	error = vb_abi_qp1_attach(device->verbs, &user, &place);
	if (error)
		return vb_cma_refuse(error, "connections: %s: no way to QP 1 (errno %d)",
				     ibv_get_device_name(device->verbs->device), error);
	error = make(&place, device->ack_delay);
	if (error) {
		vb_abi_qp1_detach(device->verbs);
		return error;
	}
	vb_abi_qp1_kick(device->verbs); /* from now on QP 1 calls the functions above */
	__atomic_store_n(&home, device->verbs, __ATOMIC_RELEASE);
	return 0;
}

int vb_cma_machine_start(void)
{
	int error = 0;

	if (vb_cma_machine_home())
		return 0;
	pthread_mutex_lock(&starting);
	if (!home && !take_over_or_forget())
		error = start();
	pthread_mutex_unlock(&starting);
	return error;
}

void vb_cma_machine_kick(void)
{
	struct ibv_context *context = vb_cma_machine_home();

	if (context)
		vb_abi_qp1_kick(context);
}
