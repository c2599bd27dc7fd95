/* SPDX-License-Identifier: BSD-2-Clause */
/* The set of local peers: its creation and destruction, and sleeping. */
#include "host/neighbor_priv.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"
#include "nic/nic.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

vb_err vb_neighbors_create(struct vb_nic *nic, uint32_t interface_index,
			   struct vb_neighbors **neighbors_out)
{
	struct vb_neighbors *neighbors = vb_heap_alloc(1, sizeof(*neighbors));

	if (!neighbors)
		return VB_ENOMEM;
	neighbors->nic = nic;
	neighbors->interface_index = interface_index;
	neighbors->block_fd = -1;
	neighbors->wake_fd = -1;
	for (uint32_t i = 0; i < VB_MEMBER_COUNT; i++) {
		neighbors->table[i].wake_fd = -1;
		neighbors->table[i].pid_fd = -1;
		neighbors->table[i].out_fd = -1;
	}
	*neighbors_out = neighbors;
	return VB_OK;
}

void vb_neighbors_take_mail(struct vb_neighbors *neighbors, uint32_t kind, const void *bytes,
			    struct vb_mail *mail)
{
	switch ((enum vb_neighbor_mail)kind) {
	case VB_NEIGHBOR_OFFER:
		vb_neighbors_take_offer(neighbors, bytes, mail);
		break;
	case VB_NEIGHBOR_ASKS:
	case VB_NEIGHBOR_SEGMENT:
	case VB_NEIGHBOR_FORGET:
		vb_neighbors_take_segment(neighbors, bytes, mail);
		break;
	case VB_NEIGHBOR_REFUSES:
		vb_neighbors_take_refusal(neighbors, bytes, mail);
		break;
	}
}

void vb_neighbors_destroy(struct vb_neighbors *neighbors)
{
	vb_neighbors_unshare_all(neighbors);
	vb_neighbors_unplug(neighbors);
	vb_heap_free(neighbors);
}

static void offer_links_again(struct vb_neighbors *neighbors)
{
	for (uint32_t i = 0; i < VB_MEMBER_COUNT; i++) {
		if (!neighbors->table[i].is_known)
			continue;
		neighbors->table[i].asked_ns = 0; /* that was about descriptors we no longer have */
		(void)vb_neighbor_meet(neighbors, i);
	}
}

static void publish_rows(struct vb_neighbors *neighbors)
{
	struct vb_row_mirror mirror = { neighbors->block->key_rows, neighbors->block->qp_rows,
					neighbors->block->srq_rows };

	vb_nic_publish(neighbors->nic, &mirror);
}

static void publish_sleepers(struct vb_neighbors *neighbors)
{
	struct vb_export_head *head = &neighbors->block->head;

	atomic_store_explicit(&head->sleeper_count, neighbors->sleeper_count, memory_order_relaxed);
	atomic_fetch_add_explicit(&head->sleep_sequence, 1, memory_order_relaxed);
	/*
	 * Pairs with the fence of a peer that writes to a ring, or makes room in one: it sees that
	 * we sleep, or we see what it did.
	 */
	atomic_thread_fence(memory_order_seq_cst);
}

vb_err vb_neighbors_plug_in(struct vb_neighbors *neighbors, struct vb_member *member)
{
	vb_err err = vb_export_create(&neighbors->block, &neighbors->block_fd);

	neighbors->block_err = err;
	if (err)
		return err;
	neighbors->wake_fd = vb_fd_own(vb_sys_result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
	if (neighbors->wake_fd < 0) {
		vb_neighbors_unplug(neighbors);
		return neighbors->block_err = VB_EMFILE;
	}
	neighbors->member = member;
	neighbors->pid = getpid();
	publish_rows(neighbors);
	vb_neighbors_publish_groups(neighbors);
	publish_sleepers(neighbors);
	offer_links_again(neighbors);
	return VB_OK;
}

/*
 * Peers that have the block mapped must stop using its rows. A forked child has the block of its
 * parent, which goes on using it.
 */
void vb_neighbors_close_memory(struct vb_neighbors *neighbors)
{
	if (!neighbors->block || neighbors->pid != getpid())
		return;
	atomic_store_explicit(&neighbors->block->head.is_closed, 1, memory_order_relaxed);
	vb_neighbors_await(neighbors);
}

void vb_neighbors_open_memory(struct vb_neighbors *neighbors)
{
	if (neighbors->block && neighbors->pid == getpid())
		atomic_store_explicit(&neighbors->block->head.is_closed, 0, memory_order_release);
}

void vb_neighbors_unplug(struct vb_neighbors *neighbors)
{
	vb_nic_publish(neighbors->nic, NULL);
	vb_neighbors_close_memory(neighbors);
	for (uint32_t i = 0; i < VB_MEMBER_COUNT; i++)
		vb_neighbor_close(neighbors, i);
	if (neighbors->block) {
		vb_export_drop_mark(neighbors->block);
		vb_export_unmap(neighbors->block);
	}
	vb_fd_close(neighbors->block_fd);
	vb_fd_close(neighbors->wake_fd);
	if (neighbors->pid != getpid())
		neighbors->sleeper_count = 0; /* threads of the parent */
	neighbors->block = NULL;
	neighbors->block_fd = -1;
	neighbors->wake_fd = -1;
	neighbors->member = NULL;
}

bool vb_neighbors_are_intact(const struct vb_neighbors *neighbors)
{
	if (!neighbors->block) /* it could not be created: all packets take the wire */
		return true;
	if (!vb_fd_is_ours(neighbors->block_fd) || !vb_fd_is_ours(neighbors->wake_fd))
		return false;
	for (uint32_t i = 0; i < neighbors->open_count; i++) {
		uint32_t number = neighbors->open[i];

		if (!vb_fd_is_ours(neighbors->table[number].wake_fd))
			return false;
	}
	return true;
}

void vb_neighbors_hold_mark(struct vb_neighbors *neighbors)
{
	if (neighbors->block)
		vb_export_hold_mark(neighbors->block);
}

const struct vb_neighbor_counts *vb_neighbor_counts(const struct vb_neighbors *neighbors)
{
	return &neighbors->counts;
}

/* --- sleeping --- */

int vb_neighbors_fd(const struct vb_neighbors *neighbors)
{
	return neighbors->wake_fd;
}

void vb_neighbors_take_wake(struct vb_neighbors *neighbors)
{
	uint64_t count;

	if (vb_fd_is_ours(neighbors->wake_fd))
		syscall(SYS_read, neighbors->wake_fd, &count, sizeof(count));
}

/* From now on, a peer that makes room wakes us. */
static bool ask_for_room(struct vb_neighbors *neighbors)
{
	for (uint32_t i = 0; i < neighbors->open_count; i++) {
		struct vb_ring_memory *ring = neighbors->table[neighbors->open[i]].out_memory;

		if (ring)
			atomic_store_explicit(&ring->wants_room, 1, memory_order_relaxed);
	}
	atomic_thread_fence(memory_order_seq_cst);
	vb_neighbors_flush(neighbors);
	return vb_nic_has_work(neighbors->nic);
}

static bool has_news(const struct vb_neighbors *neighbors)
{
	for (uint32_t i = 0; i < neighbors->open_count; i++)
		if (vb_ring_has_news(&neighbors->table[neighbors->open[i]].in))
			return true;
	return false;
}

bool vb_neighbors_begin_sleep(struct vb_neighbors *neighbors)
{
	neighbors->sleeper_count++;
	if (!neighbors->block)
		return true;
	publish_sleepers(neighbors);
	if (vb_nic_has_qps_without_room(neighbors->nic) && ask_for_room(neighbors))
		return false;
	return !has_news(neighbors);
}

/*
 * Other threads may still sleep. Packets that arrived for us without a wake, since we were about to
 * look, must wake them.
 */
void vb_neighbors_end_sleep(struct vb_neighbors *neighbors)
{
	neighbors->sleeper_count--;
	if (neighbors->block)
		publish_sleepers(neighbors);
}
