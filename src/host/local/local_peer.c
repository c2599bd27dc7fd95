/* SPDX-License-Identifier: BSD-2-Clause */
/* The set of local peers: its creation and destruction, and sleeping. */
#include "host/local/local_peer_priv.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"
#include "nic/nic.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

vb_err vb_local_peers_create(struct vb_nic *nic, uint32_t ifindex,
			     struct vb_local_peers **peers_out)
{
	struct vb_local_peers *peers = vb_heap_alloc(1, sizeof(*peers));

	if (!peers)
		return VB_ENOMEM;
	peers->nic = nic;
	peers->ifindex = ifindex;
	peers->block_fd = -1;
	peers->wake_fd = -1;
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++) {
		peers->table[i].wake_fd = -1;
		peers->table[i].pid_fd = -1;
		peers->table[i].out_fd = -1;
	}
	*peers_out = peers;
	return VB_OK;
}

void vb_local_peers_on_mail(struct vb_local_peers *peers, uint32_t kind, const void *bytes,
			    struct vb_mail *mail)
{
	switch ((enum vb_local_peer_mail)kind) {
	case VB_LOCAL_PEER_OFFER:
		vb_local_peers_on_offer(peers, bytes, mail);
		break;
	case VB_LOCAL_PEER_SEGMENT_QUERY:
	case VB_LOCAL_PEER_SEGMENT:
	case VB_LOCAL_PEER_FORGET:
		vb_local_peers_on_segment(peers, bytes, mail);
		break;
	case VB_LOCAL_PEER_REFUSES:
		vb_local_peers_on_refusal(peers, bytes, mail);
		break;
	}
}

void vb_local_peers_take_member_mail(void *owner, const struct vb_port_member *member,
				     uint32_t kind, const void *bytes, struct vb_mail *mail)
{
	struct vb_local_peers *peers = owner;

	if (peers)
		vb_local_peers_on_mail(peers, kind, bytes, mail);
	else
		vb_local_peer_refuse_mail(member, kind, mail);
}

void vb_local_peers_destroy(struct vb_local_peers *peers)
{
	vb_local_peers_unshare_all(peers);
	vb_local_peers_unplug(peers);
	vb_heap_free(peers);
}

void vb_local_peers_count_in(struct vb_local_peers *peers, struct vb_totals_row *row)
{
	peers->row = row;
}

static void offer_links_again(struct vb_local_peers *peers)
{
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++) {
		if (!peers->table[i].is_known)
			continue;
		peers->table[i].asked_ns = 0; /* that was about descriptors we no longer have */
		(void)vb_local_peer_request_link(peers, i);
	}
}

static void publish_rows(struct vb_local_peers *peers)
{
	struct vb_row_mirror mirror = { peers->block->key_rows, peers->block->qp_rows,
					peers->block->srq_rows };

	vb_nic_publish(peers->nic, &mirror);
}

static void publish_sleepers(struct vb_local_peers *peers)
{
	struct vb_export_head *head = &peers->block->head;

	atomic_store_explicit(&head->sleeper_count, peers->sleeper_count, memory_order_relaxed);
	atomic_fetch_add_explicit(&head->sleep_sequence, 1, memory_order_relaxed);
	/*
	 * Pairs with the fence of a peer that writes to a ring, or makes room in one: it sees that
	 * we sleep, or we see what it did.
	 */
	atomic_thread_fence(memory_order_seq_cst);
}

vb_err vb_local_peers_plug_in(struct vb_local_peers *peers, struct vb_port_member *member)
{
	vb_err err = vb_export_create(&peers->block, &peers->block_fd);

	peers->block_err = err;
	if (err)
		return err;
	peers->wake_fd = vb_fd_own(vb_sys_result(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
	if (peers->wake_fd < 0) {
		vb_local_peers_unplug(peers);
		return peers->block_err = VB_EMFILE;
	}
	peers->member = member;
	peers->pid = getpid();
	publish_rows(peers);
	vb_local_peers_publish_groups(peers);
	publish_sleepers(peers);
	offer_links_again(peers);
	return VB_OK;
}

/*
 * Peers that have the block mapped must stop using its rows. A forked child has the block of its
 * parent, which goes on using it.
 */
void vb_local_peers_close_memory(struct vb_local_peers *peers)
{
	if (!peers->block || peers->pid != getpid())
		return;
	atomic_store_explicit(&peers->block->head.is_closed, 1, memory_order_relaxed);
	vb_local_peers_await(peers);
}

void vb_local_peers_open_memory(struct vb_local_peers *peers)
{
	if (peers->block && peers->pid == getpid())
		atomic_store_explicit(&peers->block->head.is_closed, 0, memory_order_release);
}

void vb_local_peers_unplug(struct vb_local_peers *peers)
{
	vb_nic_publish(peers->nic, NULL);
	vb_local_peers_close_memory(peers);
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++)
		vb_local_peer_close(peers, i);
	if (peers->block) {
		vb_export_drop_mark(peers->block);
		vb_export_unmap(peers->block);
	}
	vb_fd_close(peers->block_fd);
	vb_fd_close(peers->wake_fd);
	if (peers->pid != getpid())
		peers->sleeper_count = 0; /* threads of the parent */
	peers->block = NULL;
	peers->block_fd = -1;
	peers->wake_fd = -1;
	peers->member = NULL;
}

bool vb_local_peers_are_intact(const struct vb_local_peers *peers)
{
	if (!peers->block) /* it could not be created: all packets take the wire */
		return true;
	if (!vb_fd_is_ours(peers->block_fd) || !vb_fd_is_ours(peers->wake_fd))
		return false;
	for (uint32_t i = 0; i < peers->readable_count; i++) {
		uint32_t number = peers->readable[i];

		if (!vb_fd_is_ours(peers->table[number].wake_fd))
			return false;
	}
	return true;
}

void vb_local_peers_hold_mark(struct vb_local_peers *peers)
{
	if (peers->block)
		vb_export_hold_mark(peers->block);
}

const struct vb_local_peer_counts *vb_local_peer_counts(const struct vb_local_peers *peers)
{
	return &peers->counts;
}

/* --- sleeping --- */

int vb_local_peers_fd(const struct vb_local_peers *peers)
{
	return peers->wake_fd;
}

void vb_local_peers_take_wake(struct vb_local_peers *peers)
{
	uint64_t count;

	if (vb_fd_is_ours(peers->wake_fd))
		syscall(SYS_read, peers->wake_fd, &count, sizeof(count));
}

/* From now on, a peer that makes room wakes us. */
static bool ask_for_room(struct vb_local_peers *peers)
{
	for (uint32_t i = 0; i < peers->readable_count; i++) {
		struct vb_ring_memory *ring = peers->table[peers->readable[i]].out_memory;

		if (ring)
			atomic_store_explicit(&ring->wants_room, 1, memory_order_relaxed);
	}
	atomic_thread_fence(memory_order_seq_cst);
	vb_local_peers_flush(peers);
	return vb_nic_has_work(peers->nic);
}

static bool has_news(const struct vb_local_peers *peers)
{
	for (uint32_t i = 0; i < peers->readable_count; i++)
		if (vb_ring_has_news(&peers->table[peers->readable[i]].in))
			return true;
	return false;
}

bool vb_local_peers_begin_sleep(struct vb_local_peers *peers)
{
	peers->sleeper_count++;
	if (!peers->block)
		return true;
	publish_sleepers(peers);
	if (vb_nic_has_qps_without_room(peers->nic) && ask_for_room(peers))
		return false;
	return !has_news(peers);
}

/*
 * Other threads may still sleep. Packets that arrived for us without a wake, since we were about to
 * look, must wake them.
 */
void vb_local_peers_end_sleep(struct vb_local_peers *peers)
{
	peers->sleeper_count--;
	if (peers->block)
		publish_sleepers(peers);
}
