/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of receiving sockets. It belongs to the process, like the descriptors in it. Adapters
 * of several threads use it, hence the lock.
 */
#include "host/registry/receivers.h"

#include "host/sys/log.h"
#include "link/fd.h"
#include "link/udp.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
	pthread_mutex_t dropping; /* taken before the other one */
	pthread_mutex_t lock;
	uint32_t user_count;
	uint32_t count;
	uint16_t port;
	int fds[VB_RECEIVERS_MAX]; /* valid if in `held` */
	struct vb_receivers_set held;
	bool has_ip_fields;
	_Atomic bool is_out_of_order; /* changed under the lock */
} table = { .dropping = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER };

bool vb_receivers_set_has(const struct vb_receivers_set *set, uint32_t number)
{
	return set->bits[number / 8] >> (number % 8) & 1;
}

void vb_receivers_set_add(struct vb_receivers_set *set, uint32_t number)
{
	set->bits[number / 8] |= (uint8_t)(1u << (number % 8));
}

void vb_receivers_set_remove(struct vb_receivers_set *set, uint32_t number)
{
	set->bits[number / 8] &= (uint8_t) ~(1u << (number % 8));
}

static void forget(uint32_t number)
{
	vb_receivers_set_remove(&table.held, number);
	table.count--;
}

bool vb_receivers_open(void)
{
	bool is_first;

	pthread_mutex_lock(&table.lock);
	is_first = !table.user_count++;
	pthread_mutex_unlock(&table.lock);
	return is_first;
}

static void close_all(void)
{
	for (uint32_t i = 0; i < VB_RECEIVERS_MAX; i++)
		if (vb_receivers_set_has(&table.held, i))
			vb_udp_receiver_close(table.fds[i]);
	table.held = (struct vb_receivers_set){ { 0 } };
	table.count = 0;
	table.port = 0;
	table.has_ip_fields = false;
	table.is_out_of_order = false;
}

void vb_receivers_close(void)
{
	pthread_mutex_lock(&table.lock);
	if (!--table.user_count)
		close_all();
	pthread_mutex_unlock(&table.lock);
}

/* If this fails, a program that displays these values shows 0; nothing else depends on it. */
static void enable_ip_fields(int fd)
{
	if (vb_udp_receiver_enable_ip_fields(fd))
		vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "open"),
			     "traffic class and hop limit of packets will not be seen");
}

void vb_receivers_enable_ip_fields(void)
{
	pthread_mutex_lock(&table.lock);
	for (uint32_t i = 0; i < VB_RECEIVERS_MAX && !table.has_ip_fields; i++)
		if (vb_receivers_set_has(&table.held, i))
			enable_ip_fields(table.fds[i]);
	table.has_ip_fields = true;
	pthread_mutex_unlock(&table.lock);
}

static bool add(uint32_t number, int fd)
{
	uint16_t port = vb_udp_receiver_port(fd);

	if (number >= VB_RECEIVERS_MAX || !port || (table.count && port != table.port) ||
	    vb_receivers_set_has(&table.held, number))
		return false;
	table.fds[number] = fd;
	vb_receivers_set_add(&table.held, number);
	table.port = port;
	table.count++;
	if (table.has_ip_fields)
		enable_ip_fields(fd);
	if (table.is_out_of_order)
		vb_udp_receiver_end_retirement(fd);
	return true;
}

bool vb_receivers_add(uint32_t number, int fd)
{
	bool is_added;

	pthread_mutex_lock(&table.lock);
	is_added = add(number, fd);
	pthread_mutex_unlock(&table.lock);
	if (!is_added)
		vb_udp_receiver_close(fd);
	return is_added;
}

void vb_receivers_drop_lost(void)
{
	pthread_mutex_lock(&table.lock);
	for (uint32_t i = 0; i < VB_RECEIVERS_MAX; i++)
		if (vb_receivers_set_has(&table.held, i) && !vb_fd_is_ours(table.fds[i]))
			forget(i);
	pthread_mutex_unlock(&table.lock);
}

bool vb_receivers_find_last(uint32_t *number_out)
{
	uint32_t count = 0;
	bool is_found;

	pthread_mutex_lock(&table.lock);
	while (count < VB_RECEIVERS_MAX && vb_receivers_set_has(&table.held, count))
		count++;
	is_found = count && count == table.count;
	pthread_mutex_unlock(&table.lock);
	if (is_found)
		*number_out = count - 1;
	return is_found;
}

static void end_retirements(void)
{
	for (uint32_t i = 0; i < VB_RECEIVERS_MAX; i++)
		if (vb_receivers_set_has(&table.held, i))
			vb_udp_receiver_end_retirement(table.fds[i]);
}

void vb_receivers_declare_disorder(void)
{
	bool is_new;

	pthread_mutex_lock(&table.lock);
	is_new = !table.is_out_of_order;
	table.is_out_of_order = true;
	if (is_new)
		end_retirements();
	pthread_mutex_unlock(&table.lock);
	if (is_new)
		vb_log_about(VB_LOG_INFO, VB_LOG_ABOUT(.phase = "run"),
			     "the sockets of the port are out of order: packets take a detour");
}

bool vb_receivers_are_out_of_order(void)
{
	return table.is_out_of_order;
}

void vb_receivers_end_retirements(void)
{
	pthread_mutex_lock(&table.lock);
	if (table.is_out_of_order)
		end_retirements();
	pthread_mutex_unlock(&table.lock);
}

void vb_receivers_lock(void)
{
	pthread_mutex_lock(&table.dropping);
}

void vb_receivers_unlock(void)
{
	pthread_mutex_unlock(&table.dropping);
}

bool vb_receivers_drop(uint32_t number)
{
	bool is_dropped;

	vb_receivers_lock();
	pthread_mutex_lock(&table.lock);
	is_dropped = !table.is_out_of_order;
	if (is_dropped && vb_receivers_set_has(&table.held, number)) {
		forget(number);
		vb_udp_receiver_close(table.fds[number]);
	}
	pthread_mutex_unlock(&table.lock);
	vb_receivers_unlock();
	return is_dropped;
}

/* Other threads may have held the locks. */
void vb_receivers_forget(void)
{
	pthread_mutex_init(&table.dropping, NULL);
	pthread_mutex_init(&table.lock, NULL);
	table.held = (struct vb_receivers_set){ { 0 } };
	table.count = 0;
	table.is_out_of_order = false;
}

int vb_receivers_fd(uint32_t number)
{
	int fd = -1;

	pthread_mutex_lock(&table.lock);
	if (number < VB_RECEIVERS_MAX && vb_receivers_set_has(&table.held, number))
		fd = table.fds[number];
	pthread_mutex_unlock(&table.lock);
	return fd;
}

struct vb_receivers_set vb_receivers_held(void)
{
	struct vb_receivers_set held;

	pthread_mutex_lock(&table.lock);
	held = table.held;
	pthread_mutex_unlock(&table.lock);
	return held;
}

uint32_t vb_receivers_count(void)
{
	uint32_t count;

	pthread_mutex_lock(&table.lock);
	count = table.count;
	pthread_mutex_unlock(&table.lock);
	return count;
}

uint16_t vb_receivers_port(void)
{
	uint16_t port;

	pthread_mutex_lock(&table.lock);
	port = table.port;
	pthread_mutex_unlock(&table.lock);
	return port;
}

bool vb_receivers_are_complete(void)
{
	uint32_t count = vb_receivers_count();

	return count && vb_udp_count_receivers(vb_receivers_port()) <= count;
}
