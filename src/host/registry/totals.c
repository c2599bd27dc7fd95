/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of the totals as this process has it. A program may close the descriptor, and a forked
 * child has none; the mapping stays. Then the process gets a descriptor from another port member,
 * or, if it is alone, makes new memory with the same contents. Rows of the old memory stay valid
 * until their owners have given them back.
 */
#include "host/registry/totals.h"

#include "base/heap.h"
#include "host/sys/log.h"
#include "host/sys/sealed.h"
#include "link/fd.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* One memory, and this process's share in it. */
struct share {
	struct vb_totals *totals;
	int fd;
	uint32_t row_count; /* rows that were taken and not given back */
	struct share *next;
};

static struct {
	pthread_mutex_t lock;
	uint32_t user_count;
	struct share *current; /* NULL: not known yet */
	struct share *shares; /* the current one, and older ones with rows in use */
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool has_fd(const struct share *share)
{
	return share->fd >= 0 && vb_fd_is_ours(share->fd);
}

/* Takes the descriptor. NULL if it is no such memory, or there is no room for it. */
static struct share *add_share(int fd)
{
	struct share *share = vb_heap_alloc(1, sizeof(*share));

	if (!share)
		goto close_fd;
	share->fd = fd;
	share->totals = vb_sealed_map(fd, sizeof(*share->totals), PROT_READ | PROT_WRITE);
	if (!share->totals)
		goto free_share;
	share->next = state.shares;
	state.shares = share;
	return share;

free_share:
	vb_heap_free(share);
close_fd:
	vb_fd_close(fd);
	return NULL;
}

static void drop_share(struct share *share)
{
	struct share **link = &state.shares;

	while (*link != share)
		link = &(*link)->next;
	*link = share->next;
	munmap(share->totals, sizeof(*share->totals));
	vb_fd_close(share->fd);
	vb_heap_free(share);
}

static void drop_if_unused(struct share *share)
{
	bool is_kept = share == state.current && state.user_count;

	if (is_kept || share->row_count)
		return;
	if (share == state.current)
		state.current = NULL;
	drop_share(share);
}

static void set_current(struct share *share)
{
	struct share *former = state.current;

	state.current = share;
	if (former)
		drop_if_unused(former);
}

void vb_totals_open(void)
{
	pthread_mutex_lock(&state.lock);
	state.user_count++;
	pthread_mutex_unlock(&state.lock);
}

void vb_totals_close(void)
{
	pthread_mutex_lock(&state.lock);
	if (!--state.user_count && state.current)
		drop_if_unused(state.current);
	pthread_mutex_unlock(&state.lock);
}

static void learn(int fd)
{
	struct share *current = state.current;
	struct share *share;

	if (current && has_fd(current)) {
		vb_fd_close(fd);
		return;
	}
	share = add_share(fd);
	if (!share)
		return;
	if (share->totals->layout != VB_TOTALS_LAYOUT) {
		drop_share(share);
	} else if (current && share->totals->identity == current->totals->identity) {
		current->fd = share->fd;
		share->fd = -1;
		drop_share(share);
	} else {
		set_current(share);
	}
}

void vb_totals_learn(int fd)
{
	pthread_mutex_lock(&state.lock);
	learn(fd);
	pthread_mutex_unlock(&state.lock);
}

/* Rows that are not used stay untouched, so that they take no memory. */
static void copy(struct vb_totals *totals, const struct vb_totals *former)
{
	memcpy(totals, former, offsetof(struct vb_totals, rows));
	for (uint32_t i = 0; i < VB_TOTALS_ROWS && former->rows[i].key; i++)
		memcpy(&totals->rows[i], &former->rows[i], sizeof(totals->rows[i]));
}

static bool init(struct vb_totals *totals, const struct vb_totals *former)
{
	if (former) {
		copy(totals, former);
		return true;
	}
	totals->layout = VB_TOTALS_LAYOUT;
	return getrandom(&totals->identity, sizeof(totals->identity), 0) ==
	       sizeof(totals->identity);
}

static bool ensure(void)
{
	struct share *share;
	int fd;

	if (state.current && has_fd(state.current))
		return true;
	fd = vb_sealed_open("verbatim-totals", sizeof(struct vb_totals));
	share = fd < 0 ? NULL : add_share(fd);
	if (!share)
		return false;
	if (!init(share->totals, state.current ? state.current->totals : NULL)) {
		drop_share(share);
		return false;
	}
	set_current(share);
	return true;
}

void vb_totals_ensure(void)
{
	bool is_there;

	pthread_mutex_lock(&state.lock);
	is_there = ensure();
	pthread_mutex_unlock(&state.lock);
	if (!is_there)
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "open", .error = ENOMEM),
			"no memory for the device's totals: counters of this process are not part of them");
}

int vb_totals_fd(void)
{
	int fd;

	pthread_mutex_lock(&state.lock);
	fd = state.current && has_fd(state.current) ? state.current->fd : -1;
	pthread_mutex_unlock(&state.lock);
	return fd;
}

/* Other threads may have held the lock. */
void vb_totals_forget(void)
{
	pthread_mutex_init(&state.lock, NULL);
	for (struct share *share = state.shares; share; share = share->next)
		share->fd = -1;
}

/* --- rows --- */

static uint64_t key_of(uint32_t ifindex, uint32_t number)
{
	return (uint64_t)ifindex << 32 | (number + 1);
}

/* Only the adapter with that number looks for that key, so no two find the same row. */
static struct vb_totals_row *find_row(struct vb_totals *totals, uint64_t key)
{
	for (uint32_t i = 0; i < VB_TOTALS_ROWS; i++) {
		struct vb_totals_row *row = &totals->rows[i];
		uint64_t found = atomic_load(&row->key);

		if (found == key ||
		    (!found && atomic_compare_exchange_strong(&row->key, &found, key)))
			return row;
	}
	return NULL;
}

struct vb_totals_row *vb_totals_take_row(uint32_t ifindex, uint32_t number)
{
	struct vb_totals_row *row = NULL;

	pthread_mutex_lock(&state.lock);
	if (state.current)
		row = find_row(state.current->totals, key_of(ifindex, number));
	if (row)
		state.current->row_count++;
	pthread_mutex_unlock(&state.lock);
	return row;
}

static struct share *share_of(const struct vb_totals_row *row)
{
	struct share *share = state.shares;

	while (row < share->totals->rows || row >= share->totals->rows + VB_TOTALS_ROWS)
		share = share->next;
	return share;
}

void vb_totals_give_row(struct vb_totals_row *row)
{
	struct share *share;

	if (!row)
		return;
	pthread_mutex_lock(&state.lock);
	share = share_of(row);
	share->row_count--;
	drop_if_unused(share);
	pthread_mutex_unlock(&state.lock);
}

struct vb_totals_direct *vb_totals_direct(struct vb_totals_row *row, uint32_t ifindex)
{
	struct vb_totals_direct *direct = NULL;
	struct vb_totals *totals;

	if (!ifindex)
		return NULL;
	pthread_mutex_lock(&state.lock);
	totals = share_of(row)->totals;
	for (uint32_t i = 0; i < VB_TOTALS_DEVICES && !direct; i++) {
		uint32_t found = 0;

		if (atomic_compare_exchange_strong(&totals->devices[i], &found, ifindex) ||
		    found == ifindex)
			direct = &row->direct[i];
	}
	pthread_mutex_unlock(&state.lock);
	return direct;
}
