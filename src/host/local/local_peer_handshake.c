/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How local peers meet. Each gives the other its export block, its eventfd and a ring in an offer.
 * The offer also says which of the other's rings the sender already has. So a handshake takes three
 * messages: A's offer; B's offer, which confirms A's ring; and A's confirmation of B's ring. Offers
 * may cross, and may be sent more often than needed: each contains the complete state, and they
 * arrive in order. A peer receives over the link once it has the other's ring. It sends over the
 * link once it also knows that the other has its ring. An offer that finds the other's mailbox full
 * is sent again.
 */
#include "host/local/local_peer_priv.h"

#include "base/heap.h"
#include "host/registry/mail.h"
#include "host/registry/port_member.h"
#include "host/sys/clock.h"
#include "host/sys/limit.h"
#include "host/sys/log.h"
#include "host/registry/totals.h"
#include "host/sys/sealed.h"
#include "link/fd.h"
#include "link/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

/* Times after an offer. */
#define ANSWER_NS 1000000000u /* a peer that has not answered counts as absent */
#define ASK_AGAIN_NS 5000000000u /* such a peer gets another offer */
#define SEND_AGAIN_NS 1000000u /* an offer that found the mailbox full is sent again */

static void remove_readable(struct vb_local_peers *peers, uint32_t number)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < peers->readable_count; i++)
		if (peers->readable[i] != number)
			peers->readable[kept++] = peers->readable[i];
	peers->readable_count = kept;
	peers->next = 0;
}

static void unmap_ring(struct vb_ring_memory *memory)
{
	if (memory)
		vb_sys_munmap(memory, sizeof(*memory));
}

void vb_local_peer_close(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];

	vb_local_peer_forget_segments(peer);
	peer->peer_memory = (struct vb_peer_memory){ .method = VB_PEER_MEMORY_MAPPED };
	if (peer->in_memory != peer->out_memory)
		unmap_ring(peer->in_memory);
	unmap_ring(peer->out_memory);
	if (peer->block != peers->block)
		vb_export_unmap(peer->block);
	if (peer->wake_fd != peers->wake_fd)
		vb_fd_close(peer->wake_fd);
	vb_fd_close(peer->out_fd);
	vb_fd_close(peer->pid_fd);
	peers->unsent_count -= peer->is_unsent;
	remove_readable(peers, number);
	*peer = (struct vb_local_peer){
		.absence_reason = peer->absence_reason,
		.is_known = peer->is_known,
		.is_touched = peer->is_touched,
		.asked_ns = peer->asked_ns,
		.out_before = peer->out_before + peer->out.produced,
		.wake_fd = -1,
		.pid_fd = -1,
		.out_fd = -1,
	};
	if (peer->is_known)
		vb_local_peer_update_room(peers, number);
}

/* --- our ring and our offer --- */

static void drop_ring(struct vb_local_peer *peer)
{
	peer->peer_memory.busy = NULL;
	unmap_ring(peer->out_memory);
	vb_fd_close(peer->out_fd);
	peer->out_memory = NULL;
	peer->out_fd = -1;
	peer->out_ring = 0;
	peer->out_before += peer->out.produced;
	peer->out = (struct vb_ring_writer){ 0 };
}

static void log_no_shared_memory(vb_err err)
{
	char limits[VB_LIMIT_TEXT_MAX];

	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "link"),
		     "no shared memory with a peer on this host%s: it is reached by packets",
		     vb_limit_describe(err, limits));
}

static bool make_ring(struct vb_local_peer *peer)
{
	if (peer->out_ring)
		return true;
	peer->out_fd = vb_sealed_open("verbatim-ring", sizeof(struct vb_ring_memory));
	if (peer->out_fd < 0) {
		log_no_shared_memory(vb_limit_err(peer->out_fd));
		return false;
	}
	peer->out_memory =
		vb_sealed_map(peer->out_fd, sizeof(struct vb_ring_memory), PROT_READ | PROT_WRITE);
	if (!peer->out_memory ||
	    getrandom(&peer->out_ring, sizeof(peer->out_ring), 0) != sizeof(peer->out_ring)) {
		drop_ring(peer);
		log_no_shared_memory(VB_ENOMEM);
		return false;
	}
	vb_ring_writer_init(&peer->out, peer->out_memory);
	return true;
}

static int send_offer_mail(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];
	struct vb_local_peer_offer message = {
		.kind = VB_LOCAL_PEER_OFFER,
		.number = vb_port_member_number(peers->member),
		.incarnation = peers->block->head.incarnation,
		.ring = peer->out_ring,
		.answered = peer->in_ring,
	};
	struct iovec part = { &message, sizeof(message) };
	/* A peer that already has our ring does not need it again: any descriptor will do. */
	int ring_fd = peer->out_fd >= 0 ? peer->out_fd : peers->block_fd;
	int fds[VB_OFFER_FDS] = { peers->block_fd, peers->wake_fd, ring_fd };

	return vb_port_member_send(peers->member, number, &part, fds, VB_OFFER_FDS);
}

/*
 * False if there is no such process, or no ring to offer. A full mailbox is no failure: the offer
 * is sent again.
 */
static bool make_offer(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];
	int error;

	peer->asked_ns = vb_clock_now();
	if (!make_ring(peer))
		return false;
	error = send_offer_mail(peers, number);
	if (error && error != -EAGAIN)
		return false;
	peers->unsent_count += (error == -EAGAIN) - peer->is_unsent;
	peer->is_unsent = error == -EAGAIN;
	if (!error)
		peer->confirmed_ring = peer->in_ring;
	return true;
}

/*
 * Makes the peer an offer and notes that its answer is due, even if the peer made the first offer.
 * False if that is impossible: the peer is then closed.
 */
static bool ask_for_link(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];
	bool has_changed = !vb_port_member_is_same_user(peers->member);

	if (has_changed || !make_offer(peers, number)) {
		enum vb_local_peer_why absence_reason = has_changed ? VB_LOCAL_PEER_ANOTHER_USER
							: peer->out_ring ? VB_LOCAL_PEER_NO_PROCESS
									 : VB_LOCAL_PEER_LIMITED;

		vb_local_peer_close(peers, number);
		peer->absence_reason = absence_reason;
		return false;
	}
	if (peer->state == VB_LOCAL_PEER_ABSENT)
		peer->state = VB_LOCAL_PEER_ASKED;
	peer->absence_reason = VB_LOCAL_PEER_SILENT;
	return true;
}

void vb_local_peers_offer_again(struct vb_local_peers *peers)
{
	uint64_t now = peers->unsent_count ? vb_clock_now() : 0;

	for (uint32_t i = 0; peers->unsent_count && i < VB_PORT_MEMBER_COUNT; i++) {
		struct vb_local_peer *peer = &peers->table[i];

		if (peer->is_unsent && now - peer->asked_ns > SEND_AGAIN_NS &&
		    !make_offer(peers, i)) {
			vb_local_peer_close(peers, i);
			peer->absence_reason = VB_LOCAL_PEER_NO_PROCESS;
		}
	}
}

/* --- the peer's offer --- */

static void add_readable(struct vb_local_peers *peers, uint32_t number)
{
	remove_readable(peers, number);
	peers->readable[peers->readable_count++] = (uint8_t)number;
	peers->table[number].is_known = true;
}

static void init_peer_memory(struct vb_local_peers *peers, struct vb_local_peer *peer, pid_t pid)
{
	const struct vb_export_head *head = &peer->block->head;

	peer->peer_memory = (struct vb_peer_memory){
		.pid = pid,
		.tables = { peer->block->key_rows, peer->block->qp_rows, peer->block->srq_rows,
			    VB_EXPORT_KEY_ROWS, VB_EXPORT_QP_ROWS, ++peers->epoch },
		.shm_link = &peer->out,
		.shm_link_before = peer->out_before,
		.busy = &peer->out_memory->busy,
		.mark = vb_export_mark(peer->block),
		.is_closed = &head->is_closed,
		.wants_segment = &peers->wants_segment,
		.direct = peers->row ? vb_totals_direct(peers->row, head->ifindex) : NULL,
		/* Without memory for the table, there are no segments. */
		.segments = vb_heap_alloc(VB_PEER_MEMORY_SEGMENTS,
					  sizeof(struct vb_peer_memory_segment)),
	};
	if (pid == getpid())
		peer->peer_memory.method = VB_PEER_MEMORY_OWN;
	else if (vb_dma_peer_probe(pid, head->address, head->incarnation))
		peer->peer_memory.method = VB_PEER_MEMORY_PROCESS;
	else
		peer->peer_memory.method = VB_PEER_MEMORY_MAPPED;
}

/*
 * Mail outlives its sender: we may already have released the ring of a dead sender, and must not
 * read it again.
 */
static bool is_sender_gone(const struct vb_export *block)
{
	return vb_export_is_dead(block) ||
	       atomic_load_explicit(&block->head.is_closed, memory_order_relaxed);
}

/* Keeps the block and the eventfd. False if they are unusable. */
static bool accept_block(struct vb_local_peer *peer, struct vb_mail *mail, uint64_t incarnation)
{
	peer->block = vb_export_map(mail->fds[VB_OFFER_BLOCK]);
	if (!peer->block || peer->block->head.incarnation != incarnation ||
	    is_sender_gone(peer->block))
		return false;
	peer->wake_fd = mail->fds[VB_OFFER_WAKE];
	mail->fds[VB_OFFER_WAKE] = -1;
	peer->pid = mail->pid;
	peer->pid_fd = vb_fd_own(vb_sys_result(syscall(SYS_pidfd_open, (long)mail->pid, 0l)));
	peer->incarnation = incarnation;
	return true;
}

static bool accept_ring(struct vb_local_peer *peer, const struct vb_mail *mail, uint64_t ring)
{
	struct vb_ring_memory *memory = vb_sealed_map(
		mail->fds[VB_OFFER_RING], sizeof(struct vb_ring_memory), PROT_READ | PROT_WRITE);

	if (!memory)
		return false;
	unmap_ring(peer->in_memory);
	peer->in_memory = memory;
	peer->in_ring = ring;
	vb_ring_reader_init(&peer->in, memory);
	return true;
}

/* False if the offer is unusable. */
static bool accept_offer(struct vb_local_peers *peers, const struct vb_local_peer_offer *message,
			 struct vb_mail *mail)
{
	struct vb_local_peer *peer = &peers->table[message->number];
	uint32_t number = message->number;

	if (peer->incarnation && peer->incarnation != message->incarnation)
		vb_local_peer_close(peers, number); /* an earlier process got our ring */
	if (!peer->incarnation && !accept_block(peer, mail, message->incarnation))
		return false;
	if (peer->in_ring == message->ring)
		return true;
	if (!accept_ring(peer, mail, message->ring))
		return false;
	add_readable(peers, number);
	return true;
}

/* Opens the link: both peers have what they need. */
static void open_shm_link(struct vb_local_peers *peers, uint32_t number, pid_t pid)
{
	struct vb_local_peer *peer = &peers->table[number];

	if (peer->state == VB_LOCAL_PEER_OPEN)
		return;
	peer->state = VB_LOCAL_PEER_OPEN;
	vb_fd_close(peer->out_fd);
	peer->out_fd = -1;
	init_peer_memory(peers, peer, pid);
	vb_local_peer_update_room(peers, number);
	vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "link"),
		     "shared memory with adapter %u, process %d: %s", number, (int)pid,
		     vb_local_peer_describe(peers, number));
}

/*
 * The peer does not have our ring. If the link was open, drops the ring, so that the next offer
 * brings a new one: it is unknown how far the old one was read.
 */
static void drop_out_link(struct vb_local_peer *peer)
{
	if (peer->state != VB_LOCAL_PEER_OPEN)
		return;
	peer->state = VB_LOCAL_PEER_ASKED;
	vb_local_peer_forget_segments(peer);
	peer->peer_memory = (struct vb_peer_memory){ .method = VB_PEER_MEMORY_MAPPED };
	drop_ring(peer);
	peer->confirmed_ring = 0;
}

static void send_refusal(const struct vb_port_member *member, const struct vb_mail *mail)
{
	struct vb_local_peer_offer message = {
		.kind = VB_LOCAL_PEER_REFUSES,
		.number = vb_port_member_number(member),
		.incarnation = vb_port_member_is_same_user(member) ? VB_REFUSAL_PATH
								   : VB_REFUSAL_USER,
	};
	struct iovec part = { &message, sizeof(message) };

	vb_port_member_reply(member, mail, &part);
}

void vb_local_peer_refuse_mail(const struct vb_port_member *member, uint32_t kind,
			       const struct vb_mail *mail)
{
	if (kind == VB_LOCAL_PEER_OFFER)
		send_refusal(member, mail);
}

/*
 * Refuses the offer for want of memory or descriptors, so that the peer need not wait for us, and
 * closes our side.
 */
static void refuse_offer(struct vb_local_peers *peers, uint32_t number, const struct vb_mail *mail,
			 vb_err err)
{
	log_no_shared_memory(err);
	send_refusal(peers->member, mail);
	vb_local_peer_close(peers, number);
	peers->table[number].absence_reason = VB_LOCAL_PEER_LIMITED;
}

/*
 * Whether an offer was unusable because its memory could not be mapped: the block, or the ring that
 * comes with a block we have.
 */
static bool is_out_of_memory(const struct vb_local_peer *peer)
{
	return !peer->block || peer->incarnation;
}

void vb_local_peers_on_refusal(struct vb_local_peers *peers, const void *bytes,
			       const struct vb_mail *mail)
{
	struct vb_local_peer_offer message;

	if (!peers->block || mail->length != sizeof(message))
		return;
	memcpy(&message, bytes, sizeof(message));
	if (message.number >= VB_PORT_MEMBER_COUNT ||
	    peers->table[message.number].state == VB_LOCAL_PEER_OPEN)
		return;
	vb_local_peer_close(peers, message.number);
	peers->table[message.number].absence_reason = message.incarnation == VB_REFUSAL_USER
							      ? VB_LOCAL_PEER_ANOTHER_USER
							      : VB_LOCAL_PEER_REFUSED;
}

void vb_local_peers_on_offer(struct vb_local_peers *peers, const void *bytes, struct vb_mail *mail)
{
	struct vb_local_peer_offer message;
	struct vb_local_peer *peer;

	if (!peers->block || !vb_port_member_is_same_user(peers->member)) {
		if (peers->member)
			send_refusal(peers->member, mail);
		return;
	}
	if (mail->length != sizeof(message) || mail->fd_count > VB_OFFER_FDS)
		return;
	memcpy(&message, bytes, sizeof(message));
	if (message.number >= VB_PORT_MEMBER_COUNT || !message.incarnation || !message.ring ||
	    message.number == vb_port_member_number(peers->member))
		return;
	peer = &peers->table[message.number];
	if (mail->fd_count < VB_OFFER_FDS &&
	    (peer->incarnation != message.incarnation || peer->in_ring != message.ring)) {
		/* The kernel had no room for the descriptors in our table. */
		refuse_offer(peers, message.number, mail, VB_EMFILE);
		return;
	}
	if (!accept_offer(peers, &message, mail)) {
		if (is_out_of_memory(peer))
			refuse_offer(peers, message.number, mail, VB_ENOMEM);
		else
			vb_local_peer_close(peers, message.number);
		return;
	}
	if (!peer->out_ring || message.answered != peer->out_ring)
		drop_out_link(peer);
	if (peer->confirmed_ring != peer->in_ring && !ask_for_link(peers, message.number)) {
		if (peer->absence_reason == VB_LOCAL_PEER_LIMITED)
			send_refusal(peers->member, mail);
		return;
	}
	if (peer->out_ring && message.answered == peer->out_ring)
		open_shm_link(peers, message.number, mail->pid);
}

/* --- requesting a link --- */

/* Opens the link to ourselves: one ring, which we write and read. */
static void open_own(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];

	if (!make_ring(peer)) {
		vb_local_peer_close(peers, number);
		peer->absence_reason = VB_LOCAL_PEER_LIMITED;
		peer->asked_ns = vb_clock_now();
		return;
	}
	peer->in_memory = peer->out_memory;
	peer->in_ring = peer->out_ring;
	vb_ring_reader_init(&peer->in, peer->in_memory);
	peer->block = peers->block;
	peer->wake_fd = peers->wake_fd;
	peer->incarnation = peers->block->head.incarnation;
	add_readable(peers, number);
	open_shm_link(peers, number, getpid());
	/* No busy word: the thread that waits for it would be the one that has set it. */
	peer->peer_memory.busy = NULL;
	peer->peer_memory.mark = NULL;
}

enum vb_local_peer_state vb_local_peer_request_link(struct vb_local_peers *peers, uint32_t number)
{
	struct vb_local_peer *peer = &peers->table[number];
	uint64_t now = vb_clock_now();

	if (!peers->block)
		return VB_LOCAL_PEER_ABSENT;
	if (peer->block && vb_local_peer_is_gone(peer)) {
		vb_local_peer_close(peers, number);
		peer->asked_ns = 0;
	}
	if (peer->state == VB_LOCAL_PEER_OPEN)
		return VB_LOCAL_PEER_OPEN;
	if (peer->asked_ns && now - peer->asked_ns < ANSWER_NS)
		return peer->state;
	if (peer->asked_ns && now - peer->asked_ns < ASK_AGAIN_NS)
		return VB_LOCAL_PEER_ABSENT;
	if (number == vb_port_member_number(peers->member))
		open_own(peers, number);
	else
		(void)ask_for_link(peers, number);
	return peer->state;
}

void vb_local_peers_close_gone(struct vb_local_peers *peers)
{
	for (uint32_t i = peers->readable_count; i--;) {
		uint32_t number = peers->readable[i];
		struct vb_local_peer *peer = &peers->table[number];

		if (vb_local_peer_is_gone(peer) && !vb_ring_has_news(&peer->in)) {
			vb_local_peer_close(peers, number);
			peer->asked_ns = 0;
		}
	}
}

void vb_local_peer_attach_qp(struct vb_local_peers *peers, uint32_t number, struct vb_qp *qp)
{
	if (vb_local_peer_is_open(peers, number))
		vb_qp_set_link(qp, vb_local_peer_shm_link(number),
			       &peers->table[number].peer_memory);
}

static const char *describe_no_link(enum vb_local_peer_why absence_reason)
{
	switch (absence_reason) {
	case VB_LOCAL_PEER_UNASKED:
		break;
	case VB_LOCAL_PEER_NO_PROCESS:
		return "wire: the peer is not of this user and network namespace, or gone";
	case VB_LOCAL_PEER_SILENT:
		return "wire: the peer has not answered";
	case VB_LOCAL_PEER_REFUSED:
		return "wire: the peer wants packets (its path is wire, or it has no shared memory)";
	case VB_LOCAL_PEER_LIMITED:
		return "wire: no memory or descriptor is left here for shared memory (ulimit -n, -v, -l, -f)";
	case VB_LOCAL_PEER_ANOTHER_USER:
		return "wire: the peer, or this process, has become another user since it opened its device";
	}
	return "wire: the peer was not asked";
}

static const char *describe_no_block(vb_err err)
{
	if (err == VB_EFBIG)
		return "wire: no shared memory here: files may not be as large (ulimit -f)";
	if (err == VB_EMFILE)
		return "wire: no shared memory here: no descriptor was left (ulimit -n)";
	return "wire: no shared memory here: no memory was left (ulimit -v, -l)";
}

bool vb_local_peer_has_no_process(const struct vb_local_peers *peers, uint32_t number)
{
	const struct vb_local_peer *peer = &peers->table[number];

	return peer->state == VB_LOCAL_PEER_ABSENT &&
	       peer->absence_reason == VB_LOCAL_PEER_NO_PROCESS;
}

const char *vb_local_peer_describe(const struct vb_local_peers *peers, uint32_t number)
{
	const struct vb_local_peer *peer = &peers->table[number];

	if (!peers->block)
		return describe_no_block(peers->block_err);
	if (peer->state != VB_LOCAL_PEER_OPEN)
		return describe_no_link(peer->absence_reason);
	switch (peer->peer_memory.method) {
	case VB_PEER_MEMORY_OWN:
		return "shared memory, both ends in this process";
	case VB_PEER_MEMORY_PROCESS:
		return "shared memory, data by mappings and process_vm_writev";
	case VB_PEER_MEMORY_MAPPED:
		break;
	}
	return "shared memory, data by mappings only: the kernel does not let us reach other memory (Yama, or a container)";
}
