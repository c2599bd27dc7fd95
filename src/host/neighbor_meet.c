/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How local peers meet. Each gives the other its export block, its eventfd and a ring, in an offer
 * that also names the ring of the other's that it has. So it takes three messages: A's offer; B's
 * offer, which confirms A's ring; and A's confirmation of B's ring. Offers may cross, and may be
 * sent more often than needed: each contains the complete state, and they arrive in order. A peer
 * that has the other's ring, and knows that the other has its own, sends by the link; receiving
 * begins earlier. An offer that does not fit the other's mailbox is sent again.
 */
#include "host/neighbor_priv.h"

#include "base/heap.h"
#include "host/clock.h"
#include "host/limit.h"
#include "host/log.h"
#include "host/mail.h"
#include "host/member_priv.h"
#include "link/fd.h"
#include "link/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define ANSWER_NS 1000000000u /* a peer that has not answered by then is absent … */
#define ASK_AGAIN_NS 5000000000u /* … and is asked again after that */
#define SEND_AGAIN_NS 1000000u /* retry delay if the peer could not be asked */

static void remove_open(struct vb_neighbors *neighbors, uint32_t number)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < neighbors->open_count; i++)
		if (neighbors->open[i] != number)
			neighbors->open[kept++] = neighbors->open[i];
	neighbors->open_count = kept;
	neighbors->next = 0;
}

static void unmap_ring(struct vb_ring_memory *memory)
{
	if (memory)
		vb_sys_munmap(memory, sizeof(*memory));
}

void vb_neighbor_close(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];

	vb_neighbor_forget_segments(neighbor);
	neighbor->peer_memory = (struct vb_peer_memory){ .method = VB_PEER_MEMORY_MAPPED };
	if (neighbor->in_memory != neighbor->out_memory)
		unmap_ring(neighbor->in_memory);
	unmap_ring(neighbor->out_memory);
	if (neighbor->block != neighbors->block)
		vb_export_unmap(neighbor->block);
	if (neighbor->wake_fd != neighbors->wake_fd)
		vb_fd_close(neighbor->wake_fd);
	vb_fd_close(neighbor->out_fd);
	vb_fd_close(neighbor->pid_fd);
	neighbors->unsent_count -= neighbor->is_unsent;
	remove_open(neighbors, number);
	*neighbor = (struct vb_neighbor){
		.why = neighbor->why,
		.is_known = neighbor->is_known,
		.is_touched = neighbor->is_touched,
		.asked_ns = neighbor->asked_ns,
		.out_before = neighbor->out_before + neighbor->out.produced,
		.wake_fd = -1,
		.pid_fd = -1,
		.out_fd = -1,
	};
	if (neighbor->is_known)
		vb_neighbor_update_room(neighbors, number);
}

/* --- ours --- */

static void drop_ring(struct vb_neighbor *neighbor)
{
	neighbor->peer_memory.busy = NULL;
	unmap_ring(neighbor->out_memory);
	vb_fd_close(neighbor->out_fd);
	neighbor->out_memory = NULL;
	neighbor->out_fd = -1;
	neighbor->out_ring = 0;
	neighbor->out_before += neighbor->out.produced;
	neighbor->out = (struct vb_ring_writer){ 0 };
}

static void log_limit(vb_err err)
{
	char limits[VB_LIMIT_TEXT_MAX];

	vb_log(VB_LOG_WARN, "no shared memory with a peer on this host%s: it is reached by packets",
	       vb_limit_describe(err, limits));
}

static bool make_ring(struct vb_neighbor *neighbor)
{
	if (neighbor->out_ring)
		return true;
	neighbor->out_fd = vb_export_open_memory("verbatim-ring", sizeof(struct vb_ring_memory));
	if (neighbor->out_fd < 0) {
		log_limit(vb_limit_err(neighbor->out_fd));
		return false;
	}
	neighbor->out_memory = vb_export_map_memory(neighbor->out_fd, sizeof(struct vb_ring_memory),
						    PROT_READ | PROT_WRITE);
	if (!neighbor->out_memory || getrandom(&neighbor->out_ring, sizeof(neighbor->out_ring),
					       0) != sizeof(neighbor->out_ring)) {
		drop_ring(neighbor);
		log_limit(VB_ENOMEM);
		return false;
	}
	vb_ring_writer_init(&neighbor->out, neighbor->out_memory);
	return true;
}

static int send_offer(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];
	struct vb_neighbor_offer message = {
		.kind = VB_NEIGHBOR_OFFER,
		.number = vb_member_number(neighbors->member),
		.incarnation = neighbors->block->head.incarnation,
		.ring = neighbor->out_ring,
		.answered = neighbor->in_ring,
	};
	struct iovec part = { &message, sizeof(message) };
	/* A peer that already has our ring does not need it again: any descriptor will do. */
	int ring_fd = neighbor->out_fd >= 0 ? neighbor->out_fd : neighbors->block_fd;
	int fds[VB_OFFER_FDS] = { neighbors->block_fd, neighbors->wake_fd, ring_fd };
	struct vb_mail_name name = vb_member_name(&neighbors->member->user, number);

	return vb_mail_send_fds(neighbors->member->box, &name, &part, fds, VB_OFFER_FDS);
}

/* False if no process takes the offer, or there is nothing to offer. */
static bool offer(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];
	int error;

	neighbor->asked_ns = vb_clock_now();
	if (!make_ring(neighbor))
		return false;
	error = send_offer(neighbors, number);
	if (error && error != -EAGAIN)
		return false;
	neighbors->unsent_count += (error == -EAGAIN) - neighbor->is_unsent;
	neighbor->is_unsent = error == -EAGAIN;
	if (!error)
		neighbor->confirmed_ring = neighbor->in_ring;
	return true;
}

/* We may have become another user since we joined: our own offers would no longer be accepted. */
static bool has_changed_user(const struct vb_member *member)
{
	return geteuid() != member->user.uid;
}

/* Waits for the peer that was made an offer, even if that peer made the first one. */
static bool ask(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];
	bool has_changed = has_changed_user(neighbors->member);

	if (has_changed || !offer(neighbors, number)) {
		enum vb_neighbor_why why = has_changed		? VB_NEIGHBOR_ANOTHER_USER
					   : neighbor->out_ring ? VB_NEIGHBOR_NOBODY
								: VB_NEIGHBOR_LIMITED;

		vb_neighbor_close(neighbors, number);
		neighbor->why = why;
		return false;
	}
	if (neighbor->state == VB_NEIGHBOR_ABSENT)
		neighbor->state = VB_NEIGHBOR_ASKED;
	neighbor->why = VB_NEIGHBOR_SILENT;
	return true;
}

void vb_neighbors_offer_again(struct vb_neighbors *neighbors)
{
	uint64_t now = neighbors->unsent_count ? vb_clock_now() : 0;

	for (uint32_t i = 0; neighbors->unsent_count && i < VB_MEMBER_COUNT; i++) {
		struct vb_neighbor *neighbor = &neighbors->table[i];

		if (neighbor->is_unsent && now - neighbor->asked_ns > SEND_AGAIN_NS &&
		    !offer(neighbors, i)) {
			vb_neighbor_close(neighbors, i);
			neighbor->why = VB_NEIGHBOR_NOBODY;
		}
	}
}

/* --- theirs --- */

static void add_open(struct vb_neighbors *neighbors, uint32_t number)
{
	remove_open(neighbors, number);
	neighbors->open[neighbors->open_count++] = (uint8_t)number;
	neighbors->table[number].is_known = true;
}

static void init_peer_memory(struct vb_neighbors *neighbors, struct vb_neighbor *neighbor,
			     pid_t pid)
{
	const struct vb_export_head *head = &neighbor->block->head;

	neighbor->peer_memory = (struct vb_peer_memory){
		.pid = pid,
		.tables = { neighbor->block->key_rows, neighbor->block->qp_rows,
			    neighbor->block->srq_rows, VB_EXPORT_KEY_ROWS, VB_EXPORT_QP_ROWS,
			    ++neighbors->epoch },
		.shm_link = &neighbor->out,
		.shm_link_before = neighbor->out_before,
		.busy = &neighbor->out_memory->busy,
		.mark = vb_export_mark(neighbor->block),
		.is_closed = &head->is_closed,
		.wants_segment = &neighbors->wants_segment,
		/* Without memory for the table, there are no segments. */
		.segments = vb_heap_alloc(VB_PEER_MEMORY_SEGMENTS,
					  sizeof(struct vb_peer_memory_segment)),
	};
	if (pid == getpid())
		neighbor->peer_memory.method = VB_PEER_MEMORY_OWN;
	else if (vb_dma_peer_probe(pid, head->address, head->incarnation))
		neighbor->peer_memory.method = VB_PEER_MEMORY_PROCESS;
	else
		neighbor->peer_memory.method = VB_PEER_MEMORY_MAPPED;
}

/*
 * Mail outlives its sender: without this check, a ring of a dead sender that we have released would
 * be read once more.
 */
static bool is_over(const struct vb_export *block)
{
	return vb_export_is_dead(block) ||
	       atomic_load_explicit(&block->head.is_closed, memory_order_relaxed);
}

/* Takes the block and the eventfd. False if they are unusable. */
static bool take_block(struct vb_neighbor *neighbor, struct vb_mail *mail, uint64_t incarnation)
{
	neighbor->block = vb_export_map(mail->fds[VB_OFFER_BLOCK]);
	if (!neighbor->block || neighbor->block->head.incarnation != incarnation ||
	    is_over(neighbor->block))
		return false;
	neighbor->wake_fd = mail->fds[VB_OFFER_WAKE];
	mail->fds[VB_OFFER_WAKE] = -1;
	neighbor->pid = mail->pid;
	neighbor->pid_fd = vb_fd_own(vb_sys_result(syscall(SYS_pidfd_open, (long)mail->pid, 0l)));
	neighbor->incarnation = incarnation;
	return true;
}

static bool take_ring(struct vb_neighbor *neighbor, const struct vb_mail *mail, uint64_t ring)
{
	struct vb_ring_memory *memory = vb_export_map_memory(
		mail->fds[VB_OFFER_RING], sizeof(struct vb_ring_memory), PROT_READ | PROT_WRITE);

	if (!memory)
		return false;
	unmap_ring(neighbor->in_memory);
	neighbor->in_memory = memory;
	neighbor->in_ring = ring;
	vb_ring_reader_init(&neighbor->in, memory);
	return true;
}

/* False if the offer is unusable. */
static bool take(struct vb_neighbors *neighbors, const struct vb_neighbor_offer *message,
		 struct vb_mail *mail)
{
	struct vb_neighbor *neighbor = &neighbors->table[message->number];
	uint32_t number = message->number;

	if (neighbor->incarnation && neighbor->incarnation != message->incarnation)
		vb_neighbor_close(neighbors, number); /* what we gave went to an earlier peer */
	if (!neighbor->incarnation && !take_block(neighbor, mail, message->incarnation))
		return false;
	if (neighbor->in_ring == message->ring)
		return true;
	if (!take_ring(neighbor, mail, message->ring))
		return false;
	add_open(neighbors, number);
	return true;
}

/* Opens the link: both peers have what they need. */
static void open_shm_link(struct vb_neighbors *neighbors, uint32_t number, pid_t pid)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];

	if (neighbor->state == VB_NEIGHBOR_OPEN)
		return;
	neighbor->state = VB_NEIGHBOR_OPEN;
	vb_fd_close(neighbor->out_fd);
	neighbor->out_fd = -1;
	init_peer_memory(neighbors, neighbor, pid);
	vb_neighbor_update_room(neighbors, number);
	vb_log(VB_LOG_DEBUG, "shared memory with adapter %u, process %d: %s", number, (int)pid,
	       vb_neighbor_describe(neighbors, number));
}

/*
 * The peer had our ring and no longer has it. It gets a new one, because it is unknown how far the
 * old one was read.
 */
static void renew_shm_link(struct vb_neighbor *neighbor)
{
	if (neighbor->state != VB_NEIGHBOR_OPEN)
		return;
	neighbor->state = VB_NEIGHBOR_ASKED;
	vb_neighbor_forget_segments(neighbor);
	neighbor->peer_memory = (struct vb_peer_memory){ .method = VB_PEER_MEMORY_MAPPED };
	drop_ring(neighbor);
	neighbor->confirmed_ring = 0;
}

void vb_neighbor_refuse(const struct vb_member *member, uint32_t kind, const struct vb_mail *mail)
{
	struct vb_neighbor_offer message = {
		.kind = VB_NEIGHBOR_REFUSES,
		.number = vb_member_number(member),
		.incarnation = has_changed_user(member) ? VB_REFUSAL_USER : VB_REFUSAL_PATH,
	};
	struct iovec part = { &message, sizeof(message) };

	if (kind == VB_NEIGHBOR_OFFER)
		(void)vb_mail_answer(member->box, mail->link, &part, 1, NULL, 0);
}

/* Notifies the peer that it need not wait for us. */
static void turn_down(struct vb_neighbors *neighbors, uint32_t number, const struct vb_mail *mail,
		      vb_err err)
{
	log_limit(err);
	vb_neighbor_refuse(neighbors->member, VB_NEIGHBOR_OFFER, mail);
	vb_neighbor_close(neighbors, number);
	neighbors->table[number].why = VB_NEIGHBOR_LIMITED;
}

/* Whether an offer was unusable because its memory could not be mapped. */
static bool is_out_of_memory(const struct vb_neighbor *neighbor)
{
	return !neighbor->block || (neighbor->incarnation && !neighbor->in_memory);
}

void vb_neighbors_take_refusal(struct vb_neighbors *neighbors, const void *bytes,
			       const struct vb_mail *mail)
{
	struct vb_neighbor_offer message;

	if (!neighbors->block || mail->length != sizeof(message))
		return;
	memcpy(&message, bytes, sizeof(message));
	if (message.number >= VB_MEMBER_COUNT ||
	    neighbors->table[message.number].state == VB_NEIGHBOR_OPEN)
		return;
	vb_neighbor_close(neighbors, message.number);
	neighbors->table[message.number].why = message.incarnation == VB_REFUSAL_USER
						       ? VB_NEIGHBOR_ANOTHER_USER
						       : VB_NEIGHBOR_REFUSED;
}

void vb_neighbors_take_offer(struct vb_neighbors *neighbors, const void *bytes,
			     struct vb_mail *mail)
{
	struct vb_neighbor_offer message;
	struct vb_neighbor *neighbor;

	if (!neighbors->block || has_changed_user(neighbors->member)) {
		if (neighbors->member)
			vb_neighbor_refuse(neighbors->member, VB_NEIGHBOR_OFFER, mail);
		return;
	}
	if (mail->length != sizeof(message) || mail->fd_count > VB_OFFER_FDS)
		return;
	memcpy(&message, bytes, sizeof(message));
	if (message.number >= VB_MEMBER_COUNT || !message.incarnation || !message.ring ||
	    message.number == vb_member_number(neighbors->member))
		return;
	neighbor = &neighbors->table[message.number];
	if (mail->fd_count < VB_OFFER_FDS &&
	    (neighbor->incarnation != message.incarnation || neighbor->in_ring != message.ring)) {
		/* The kernel had no room for the descriptors in our table. */
		turn_down(neighbors, message.number, mail, VB_EMFILE);
		return;
	}
	if (!take(neighbors, &message, mail)) {
		if (is_out_of_memory(neighbor))
			turn_down(neighbors, message.number, mail, VB_ENOMEM);
		else
			vb_neighbor_close(neighbors, message.number);
		return;
	}
	if (!neighbor->out_ring || message.answered != neighbor->out_ring)
		renew_shm_link(neighbor);
	if (neighbor->confirmed_ring != neighbor->in_ring && !ask(neighbors, message.number)) {
		if (neighbor->why == VB_NEIGHBOR_LIMITED)
			vb_neighbor_refuse(neighbors->member, VB_NEIGHBOR_OFFER, mail);
		return;
	}
	if (neighbor->out_ring && message.answered == neighbor->out_ring)
		open_shm_link(neighbors, message.number, mail->pid);
}

/* --- meeting --- */

/* Opens the link to ourselves: one ring, which we write and read. */
static void open_own(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];

	if (!make_ring(neighbor)) {
		vb_neighbor_close(neighbors, number);
		return;
	}
	neighbor->in_memory = neighbor->out_memory;
	neighbor->in_ring = neighbor->out_ring;
	vb_ring_reader_init(&neighbor->in, neighbor->in_memory);
	neighbor->block = neighbors->block;
	neighbor->wake_fd = neighbors->wake_fd;
	neighbor->incarnation = neighbors->block->head.incarnation;
	add_open(neighbors, number);
	open_shm_link(neighbors, number, getpid());
	/* the thread that closes a row is the one that would be busy */
	neighbor->peer_memory.busy = NULL;
	neighbor->peer_memory.mark = NULL;
}

enum vb_neighbor_state vb_neighbor_meet(struct vb_neighbors *neighbors, uint32_t number)
{
	struct vb_neighbor *neighbor = &neighbors->table[number];
	uint64_t now = vb_clock_now();

	if (!neighbors->block)
		return VB_NEIGHBOR_ABSENT;
	if (neighbor->block && vb_neighbor_is_gone(neighbor)) {
		vb_neighbor_close(neighbors, number);
		neighbor->asked_ns = 0;
	}
	if (neighbor->state == VB_NEIGHBOR_OPEN)
		return VB_NEIGHBOR_OPEN;
	if (number == vb_member_number(neighbors->member)) {
		open_own(neighbors, number);
		return neighbor->state;
	}
	if (neighbor->asked_ns && now - neighbor->asked_ns < ANSWER_NS)
		return neighbor->state;
	if (neighbor->asked_ns && now - neighbor->asked_ns < ASK_AGAIN_NS)
		return VB_NEIGHBOR_ABSENT;
	(void)ask(neighbors, number);
	return neighbor->state;
}

void vb_neighbors_close_gone(struct vb_neighbors *neighbors)
{
	for (uint32_t i = neighbors->open_count; i--;) {
		uint32_t number = neighbors->open[i];
		struct vb_neighbor *neighbor = &neighbors->table[number];

		if (vb_neighbor_is_gone(neighbor) && !vb_ring_has_news(&neighbor->in)) {
			vb_neighbor_close(neighbors, number);
			neighbor->asked_ns = 0;
		}
	}
}

void vb_neighbor_connect(struct vb_neighbors *neighbors, uint32_t number, struct vb_qp *qp)
{
	if (vb_neighbor_is_open(neighbors, number))
		vb_qp_set_shm_link(qp, vb_neighbor_shm_link(number),
				   &neighbors->table[number].peer_memory);
}

static const char *describe_absence(enum vb_neighbor_why why)
{
	switch (why) {
	case VB_NEIGHBOR_UNASKED:
		break;
	case VB_NEIGHBOR_NOBODY:
		return "wire: the peer is not of this user and network namespace, or gone";
	case VB_NEIGHBOR_SILENT:
		return "wire: the peer has not answered";
	case VB_NEIGHBOR_REFUSED:
		return "wire: the peer wants packets (its path is wire, or it has no shared memory)";
	case VB_NEIGHBOR_LIMITED:
		return "wire: no memory or descriptor is left here for shared memory (ulimit -n, -v, -l, -f)";
	case VB_NEIGHBOR_ANOTHER_USER:
		return "wire: the peer, or this process, has become another user since it opened its device";
	}
	return "wire: the peer was not asked";
}

static const char *describe_lack(vb_err err)
{
	if (err == VB_EFBIG)
		return "wire: no shared memory here: files may not be as large (ulimit -f)";
	if (err == VB_EMFILE)
		return "wire: no shared memory here: no descriptor was left (ulimit -n)";
	return "wire: no shared memory here: no memory was left (ulimit -v, -l)";
}

bool vb_neighbor_is_nobody(const struct vb_neighbors *neighbors, uint32_t number)
{
	const struct vb_neighbor *neighbor = &neighbors->table[number];

	return neighbor->state == VB_NEIGHBOR_ABSENT && neighbor->why == VB_NEIGHBOR_NOBODY;
}

const char *vb_neighbor_describe(const struct vb_neighbors *neighbors, uint32_t number)
{
	const struct vb_neighbor *neighbor = &neighbors->table[number];

	if (!neighbors->block)
		return describe_lack(neighbors->block_err);
	if (neighbor->state != VB_NEIGHBOR_OPEN)
		return describe_absence(neighbor->why);
	switch (neighbor->peer_memory.method) {
	case VB_PEER_MEMORY_OWN:
		return "shared memory, both ends in this process";
	case VB_PEER_MEMORY_PROCESS:
		return "shared memory, data by mappings and process_vm_writev";
	case VB_PEER_MEMORY_MAPPED:
		break;
	}
	return "shared memory, data by mappings only: the kernel does not let us reach other memory (Yama, or a container)";
}
