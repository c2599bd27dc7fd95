/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared mappings that memory regions lie in, or that private memory was converted to. Local peers
 * map them as well. A region's row holds the number of such a segment. A peer that meets a segment
 * it does not have asks for it, once, and does without it meanwhile. Numbers are never used again,
 * so that a mapping is never mistaken for another. When a region goes, the peers that asked for its
 * segment are notified to release it.
 */
#include "host/local/local_peer_priv.h"

#include "base/heap.h"
#include "host/local/conversion.h"
#include "host/local/kept.h"
#include "host/local/shared.h"
#include "host/memory/expanse.h"
#include "host/registry/mail.h"
#include "host/registry/port_member.h"
#include "link/fd.h"
#include "link/sys.h"
#include "nic/memory.h"

#include <string.h>
#include <sys/mman.h>

/*
 * A program may find each of its requests complete when it looks, and never wait: then no thread
 * would look into the mailbox.
 */
#define SEGMENT_LOOKS 100000u
#define LOOK_INTERVAL 32u

/* --- ours --- */

static struct vb_own_segment *find_own(struct vb_local_peers *peers, uint32_t number)
{
	for (uint32_t i = 0; i < VB_OWN_SEGMENTS_MAX; i++)
		if (peers->segments[i].number == number)
			return &peers->segments[i];
	return NULL;
}

static bool share_conversion(struct vb_own_segment *segment, struct vb_conversion *conversion)
{
	if (!conversion)
		return false;
	if (!vb_conversion_share(conversion, &segment->shared)) {
		vb_conversion_drop(conversion);
		return false;
	}
	segment->conversion = conversion;
	return true;
}

bool vb_local_peers_has_spare_segments(const struct vb_local_peers *peers)
{
	uint32_t free_count = 0;

	for (uint32_t i = 0; i < VB_OWN_SEGMENTS_MAX; i++)
		free_count += !peers->segments[i].number;
	return free_count > VB_OWN_SEGMENTS_MAX / 2;
}

uint32_t vb_local_peers_share(struct vb_local_peers *peers, uint64_t address, uint64_t length,
			      bool may_convert)
{
	struct vb_own_segment *segment = find_own(peers, 0);

	if (!segment ||
	    (!share_conversion(segment, vb_conversion_acquire(address, length)) &&
	     !vb_shared_find(address, length, &segment->shared) &&
	     (!may_convert || !share_conversion(segment, vb_conversion_make(address, length)))))
		return 0;
	do
		segment->number = ++peers->last_segment;
	while (!segment->number);
	return segment->number;
}

static void send_mail(struct vb_local_peers *peers, uint32_t number,
		      struct vb_local_peer_segment *message, int fd)
{
	struct iovec part = { message, sizeof(*message) };

	if (!peers->member)
		return;
	message->number = vb_port_member_number(peers->member);
	message->incarnation = peers->block->head.incarnation;
	/* A peer that does not get it does without. */
	(void)vb_port_member_send(peers->member, number, &part, &fd, fd >= 0);
}

void vb_local_peers_unshare(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_own_segment *segment = number ? find_own(peers, number) : NULL;

	if (!segment)
		return;
	for (uint32_t i = 0; i < peers->readable_count; i++) {
		struct vb_local_peer_segment message = { .kind = VB_LOCAL_PEER_FORGET,
							 .segment = number };
		uint32_t to = peers->readable[i];

		if (segment->given[to / 8] >> to % 8 & 1)
			send_mail(peers, to, &message, -1);
	}
	vb_fd_close(segment->shared.fd);
	vb_kept_close(&segment->shared.kept);
	if (segment->conversion)
		vb_conversion_drop(segment->conversion);
	*segment = (struct vb_own_segment){ 0 };
}

void vb_local_peers_unshare_conversions(struct vb_local_peers *peers, uint64_t address,
					uint64_t length)
{
	for (uint32_t i = 0; i < VB_OWN_SEGMENTS_MAX; i++) {
		struct vb_own_segment *segment = &peers->segments[i];

		if (!segment->conversion ||
		    !vb_conversion_overlaps(segment->conversion, address, length))
			continue;
		vb_nic_forget_segment(peers->nic, segment->number);
		vb_local_peers_unshare(peers, segment->number);
	}
}

void vb_local_peers_unshare_all(struct vb_local_peers *peers)
{
	for (uint32_t i = 0; i < VB_OWN_SEGMENTS_MAX; i++)
		vb_local_peers_unshare(peers, peers->segments[i].number);
}

static void give(struct vb_local_peers *peers, uint32_t to, uint32_t number)
{
	struct vb_own_segment *segment = number ? find_own(peers, number) : NULL;
	struct vb_local_peer_segment message;
	bool is_sealed = segment && segment->shared.kept.keeper;
	int fd;

	if (!segment)
		return;
	fd = is_sealed ? vb_kept_seal(&segment->shared.kept) : segment->shared.fd;
	if (!vb_fd_is_ours(fd))
		return;
	message = (struct vb_local_peer_segment){
		.kind = VB_LOCAL_PEER_SEGMENT,
		.segment = number,
		.is_sealed = is_sealed,
		.address = segment->shared.address,
		.length = segment->shared.length,
		.offset = segment->shared.offset,
	};
	segment->given[to / 8] |= (uint8_t)(1u << to % 8);
	send_mail(peers, to, &message, fd);
	if (is_sealed)
		vb_fd_close(fd);
}

/* --- theirs --- */

static void forget(struct vb_peer_memory_segment *segment)
{
	if (segment->bytes)
		vb_sys_munmap(segment->bytes, segment->length);
	*segment = (struct vb_peer_memory_segment){ 0 };
}

void vb_local_peer_forget_segments(struct vb_local_peer *peer)
{
	for (uint32_t i = 0; peer->peer_memory.segments && i < VB_PEER_MEMORY_SEGMENTS; i++)
		forget(&peer->peer_memory.segments[i]);
	vb_heap_free(peer->peer_memory.segments);
	peer->peer_memory.segments = NULL;
}

static void take(struct vb_local_peers *peers, struct vb_local_peer *peer,
		 const struct vb_local_peer_segment *message, const struct vb_mail *mail)
{
	struct vb_peer_memory_segment *segment =
		vb_dma_peer_segment_of(&peer->peer_memory, message->segment);
	void *bytes;

	if (segment->number != message->segment || segment->bytes || mail->fd_count != 1 ||
	    message->address + message->length < message->address)
		return;
	bytes = message->is_sealed
			? vb_kept_map_sealed(mail->fds[0], message->length, message->offset)
			: vb_expanse_map(mail->fds[0], message->length, PROT_READ | PROT_WRITE,
					 message->offset);
	if (!bytes)
		return;
	peers->segment_looks = 0;
	segment->bytes = bytes;
	segment->address = message->address;
	segment->length = message->length;
}

static void ask(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_peer_memory *peer_memory = &peers->table[number].peer_memory;
	struct vb_local_peer_segment message = { .kind = VB_LOCAL_PEER_SEGMENT_QUERY,
						 .segment = peer_memory->wanted_segment };
	struct vb_peer_memory_segment *segment =
		vb_dma_peer_segment_of(peer_memory, peer_memory->wanted_segment);

	peer_memory->wanted_segment = 0;
	forget(segment); /* another segment may have had its place */
	segment->number = message.segment;
	send_mail(peers, number, &message, -1);
}

static void ask_all(struct vb_local_peers *peers)
{
	peers->wants_segment = false;
	for (uint32_t i = 0; i < peers->readable_count; i++)
		if (peers->table[peers->readable[i]].peer_memory.wanted_segment)
			ask(peers, peers->readable[i]);
	peers->segment_looks = SEGMENT_LOOKS;
}

bool vb_local_peers_has_wanted_segments(const struct vb_local_peers *peers)
{
	return peers->wants_segment || peers->segment_looks;
}

bool vb_local_peers_ask_for_segments(struct vb_local_peers *peers)
{
	if (peers->wants_segment)
		ask_all(peers);
	return peers->segment_looks && --peers->segment_looks % LOOK_INTERVAL == 0;
}

void vb_local_peers_on_segment(struct vb_local_peers *peers, const void *bytes,
			       const struct vb_mail *mail)
{
	struct vb_local_peer_segment message;
	struct vb_local_peer *peer;

	if (mail->length != sizeof(message))
		return;
	memcpy(&message, bytes, sizeof(message));
	if (message.number >= VB_PORT_MEMBER_COUNT)
		return;
	peer = &peers->table[message.number];
	if (!peer->incarnation || peer->incarnation != message.incarnation)
		return;
	if (message.kind == VB_LOCAL_PEER_SEGMENT_QUERY)
		give(peers, message.number, message.segment);
	else if (!peer->peer_memory.segments)
		return;
	else if (message.kind == VB_LOCAL_PEER_SEGMENT)
		take(peers, peer, &message, mail);
	else if (vb_dma_peer_segment_of(&peer->peer_memory, message.segment)->number ==
		 message.segment)
		forget(vb_dma_peer_segment_of(&peer->peer_memory, message.segment));
}
