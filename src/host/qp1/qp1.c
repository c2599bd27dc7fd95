/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The creation and driving of QP 1. The user's state machine is asked first; what it does not take
 * is dispatched. A state machine of our own, which has no connections, reads and refuses MADs for
 * processes without one.
 */
#include "host/qp1/qp1_priv.h"

#include "base/heap.h"
#include "host/registry/guid.h"
#include "link/fd.h"
#include "link/sys.h"

#include <stdatomic.h>
#include <sys/random.h>
#include <time.h>

/*
 * MADs have no flow control, and a lost one is repeated only after seconds. This many at a time fit
 * the receive buffer of a process that is not looking just now.
 */
#define SEND_BATCH 64u
#define SEND_PAUSE_NS 500000u
/*
 * The MADs of the host come to the member that last had them steered to itself. That member may be
 * stopped. So a member that sends steers them again, and a member that listens does so now and
 * then: both evidently run.
 */
#define CLAIM_WHEN_SENDING_NS 10000000u
#define CLAIM_WHEN_LISTENING_NS 1000000000u
#define ID_PREFIX_BITS 8u
#define MAIL_BATCH 16u
#define SOURCE_BATCH 16u
#define CLAIMS_MAX 1000u
#define CLAIM_PAUSE_NS 1000000

static _Atomic(struct vb_qp1 *) home; /* the one that has the user of this process */

/* --- making and ending ------------------------------------------------------------------------ */

/*
 * Messages sent for a process that died must carry the GUID of that process: it may be all that its
 * peer knows.
 */
static vb_err make_machine(struct vb_qp1 *qp1)
{
	struct vb_cm_config config = { .connection_max = 1, .ca_guid = vb_guid() };

	if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed))
		return VB_EFAULT;
	return vb_cm_create(&config, &qp1->machine);
}

vb_err vb_qp1_create(struct vb_nic *nic, uint32_t number, struct vb_qp1 **qp1_out)
{
	struct vb_qp1 *qp1 = vb_heap_alloc(1, sizeof(*qp1));
	vb_err err = VB_ENOMEM;

	if (!qp1)
		return err;
	*qp1 = (struct vb_qp1){
		.nic = nic,
		.number = number,
		.user_id = vb_mail_user(),
		.epoll = -1,
		.box = { VB_QP1_BOX, -1, NULL },
		.closes_ns = VB_NEVER,
		.farewell_ns = VB_NEVER,
		.user_ns = VB_NEVER,
		.life = { .own_end = -1, .others_end = -1 },
		.dispatch_ns = VB_NEVER,
	};
	vb_list_init(&qp1->names);
	vb_list_init(&qp1->watches);
	qp1->queue = vb_heap_alloc(VB_QP1_QUEUE_MAX, sizeof(*qp1->queue));
	if (qp1->queue)
		err = make_machine(qp1);
	if (err) {
		vb_heap_free(qp1->queue);
		vb_heap_free(qp1);
		return err;
	}
	*qp1_out = qp1;
	return VB_OK;
}

void vb_qp1_destroy(struct vb_qp1 *qp1)
{
	vb_qp1_detach(qp1);
	vb_qp1_unplug(qp1);
	vb_qp1_free_names(qp1);
	vb_cm_destroy(qp1->machine);
	vb_heap_free(qp1->queue);
	vb_heap_free(qp1);
}

/*
 * The process that had our number before us may just be dying: its descriptors are closed one after
 * the other.
 */
static bool claim_box(struct vb_qp1 *qp1)
{
	struct vb_mail_name name = vb_qp1_box_name(&qp1->user_id, qp1->number);

	for (uint32_t i = 0; i < CLAIMS_MAX; i++) {
		if (vb_mail_claim(qp1->box.box, &name))
			return true;
		syscall(SYS_nanosleep, &(struct timespec){ 0, CLAIM_PAUSE_NS }, NULL);
	}
	return false;
}

vb_err vb_qp1_plug_in(struct vb_qp1 *qp1)
{
	qp1->epoll = vb_fd_own(vb_sys_epoll_create(EPOLL_CLOEXEC));
	qp1->box.box = vb_mail_open(&qp1->user_id, VB_MAIL_CONNECTIONS);
	qp1->box.fd = qp1->box.box ? vb_mail_fd(qp1->box.box) : -1;
	if (qp1->epoll < 0 || qp1->box.fd < 0 || !claim_box(qp1) ||
	    !vb_qp1_add_source(qp1, &qp1->box, EPOLLIN) || !vb_qp1_open_liveness(qp1)) {
		vb_qp1_unplug(qp1);
		return VB_ENOMEM;
	}
	vb_qp1_open_names(qp1);
	return VB_OK;
}

void vb_qp1_unplug(struct vb_qp1 *qp1)
{
	vb_qp1_close_liveness(qp1);
	vb_qp1_close_names(qp1);
	vb_qp1_forget_watches(qp1);
	vb_qp1_remove_source(qp1, &qp1->box);
	vb_fd_close(qp1->epoll);
	qp1->epoll = -1;
	qp1->queue_count = 0;
	qp1->dispatch_ns = VB_NEVER;
}

void vb_qp1_drop_lost_connections(struct vb_qp1 *qp1)
{
	if (qp1->box.box)
		vb_mail_drop_lost_connections(qp1->box.box);
}

bool vb_qp1_is_intact(const struct vb_qp1 *qp1)
{
	return vb_fd_is_ours(qp1->epoll) && qp1->box.box && vb_mail_is_intact(qp1->box.box);
}

void vb_qp1_inherit(struct vb_qp1 *qp1)
{
	atomic_store(&home, NULL);
	vb_qp1_forget_user(qp1);
	vb_qp1_forget_rows(qp1);
}

/* --- its user --------------------------------------------------------------------------------- */

vb_err vb_qp1_attach(struct vb_qp1 *qp1, const struct vb_qp1_user *user,
		     struct vb_qp1_config *place_out)
{
	struct vb_qp1 *nobody = NULL;
	vb_err err;

	if (!atomic_compare_exchange_strong(&home, &nobody, qp1))
		return VB_EBUSY;
	err = vb_qp1_open_rows(qp1);
	if (err) {
		atomic_store(&home, NULL);
		return err;
	}
	qp1->user = *user;
	qp1->is_attached = true;
	vb_qp1_open_names(qp1); /* a process that has taken over already has some */
	*place_out = (struct vb_qp1_config){
		.id_prefix = qp1->number,
		.id_prefix_bits = ID_PREFIX_BITS,
		.ca_guid = vb_guid(),
		.rows = qp1->life.rows,
		.row_count = VB_QP1_ROWS,
	};
	return VB_OK;
}

void vb_qp1_detach(struct vb_qp1 *qp1)
{
	if (!qp1->is_attached)
		return;
	vb_qp1_forget_user(qp1);
	vb_qp1_close_rows(qp1);
	atomic_store(&home, NULL);
}

bool vb_qp1_has_user(const struct vb_qp1 *qp1)
{
	return qp1->is_attached;
}

void vb_qp1_forget_user(struct vb_qp1 *qp1)
{
	qp1->is_attached = qp1->has_user = false;
	qp1->user_ns = VB_NEVER;
}

void vb_qp1_kick(struct vb_qp1 *qp1)
{
	qp1->has_user = qp1->is_attached;
	vb_qp1_request_send(qp1);
}

void vb_qp1_request_send(struct vb_qp1 *qp1)
{
	qp1->is_send_requested = true;
}

/* --- what arrives ----------------------------------------------------------------------------- */

bool vb_qp1_interpret(struct vb_qp1 *qp1, const struct vb_qp1_letter *letter,
		      struct vb_cm_addressee *addressee)
{
	return vb_cm_receive(qp1->machine, &letter->flow, letter->source, letter->bytes,
			     VB_MAD_SIZE, letter->arrived_ns, addressee) == VB_CM_NOT_MINE;
}

enum vb_cm_verdict vb_qp1_offer(struct vb_qp1 *qp1, uint64_t now_ns,
				const struct vb_qp1_letter *letter,
				struct vb_cm_addressee *addressee)
{
	enum vb_cm_verdict verdict;

	if (!qp1->has_user)
		return vb_qp1_interpret(qp1, letter, addressee) ? VB_CM_NOT_MINE : VB_CM_MALFORMED;
	verdict = qp1->user.receive(qp1->user.owner, &letter->flow, letter->source, letter->bytes,
				    VB_MAD_SIZE, now_ns, addressee);
	vb_qp1_request_send(qp1);
	return verdict;
}

void vb_qp1_receive(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_frame *frame)
{
	struct vb_qp1_letter letter = { .flow = frame->path.ip, .arrived_ns = now_ns };
	struct vb_cm_addressee addressee;

	if (!vb_nic_receive_mad(qp1->nic, frame, letter.bytes, &letter.source))
		return;
	if (!vb_qp1_interpret(qp1, &letter, &addressee))
		vb_nic_drop_mad(qp1->nic, VB_DROP_INVALID);
	else if (addressee.has_service || !qp1->has_user ||
		 vb_qp1_offer(qp1, now_ns, &letter, &addressee) == VB_CM_NOT_MINE)
		vb_qp1_enqueue(qp1, now_ns, &letter, &addressee, false);
}

static bool is_listening(const struct vb_qp1 *qp1)
{
	return vb_list_is_linked(&qp1->names);
}

static void claim(struct vb_qp1 *qp1, uint64_t now_ns)
{
	qp1->has_steering_claim = true;
	qp1->claimed_ns = now_ns;
}

bool vb_qp1_take_steering_claim(struct vb_qp1 *qp1)
{
	bool has_steering_claim = qp1->has_steering_claim;

	qp1->has_steering_claim = false;
	return has_steering_claim;
}

void vb_qp1_on_unreachable(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_gid *address)
{
	if (!qp1->has_user)
		return;
	qp1->user.on_unreachable(qp1->user.owner, address, now_ns);
	vb_qp1_request_send(qp1);
}

void vb_qp1_on_removal(struct vb_qp1 *qp1, const struct ibv_device *device)
{
	if (qp1->has_user && qp1->user.on_removal)
		qp1->user.on_removal(qp1->user.owner, device);
}

bool vb_qp1_is_waiting(const struct vb_qp1 *qp1)
{
	return qp1->user_ns != VB_NEVER;
}

/* --- what other processes send ---------------------------------------------------------------- */

int vb_qp1_fd(const struct vb_qp1 *qp1)
{
	return qp1->epoll;
}

/* The kind of a message, if it may have come from a process like this one. */
static uint32_t kind_of(const struct vb_qp1 *qp1, const struct vb_mail *mail)
{
	return mail->length >= sizeof(qp1->message.kind) ? qp1->message.kind : 0;
}

static bool is_letters(const struct vb_qp1 *qp1, const struct vb_mail *mail)
{
	const struct vb_qp1_letters *letters = &qp1->message;

	return kind_of(qp1, mail) == VB_QP1_LETTERS &&
	       mail->length >= offsetof(struct vb_qp1_letters, letters) &&
	       letters->count <= VB_QP1_LETTERS_MAX &&
	       mail->length == offsetof(struct vb_qp1_letters, letters) +
				       letters->count * sizeof(letters->letters[0]);
}

bool vb_qp1_receive_from_box(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_mail_box *box,
			     const struct vb_qp1_name *name)
{
	struct vb_mail mail;

	for (uint32_t i = 0; i < MAIL_BATCH; i++) {
		if (!vb_mail_receive(box, &qp1->message, sizeof(qp1->message), &mail))
			return false;
		if (is_letters(qp1, &mail))
			vb_qp1_on_letters(qp1, now_ns, &qp1->message, name);
		else if (kind_of(qp1, &mail) == VB_QP1_PRESENCE && !name)
			vb_qp1_on_presence(qp1, &qp1->message, &mail);
		vb_mail_close_fds(&mail);
	}
	return true;
}

static void serve_source(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_source *source)
{
	switch (source->kind) {
	case VB_QP1_BOX:
		(void)vb_qp1_receive_from_box(qp1, now_ns, source->box, NULL);
		break;
	case VB_QP1_NAME_SOCKET:
		(void)vb_qp1_receive_from_box(
			qp1, now_ns, source->box,
			VB_CONTAINER(source, struct vb_qp1_name_socket, source)->name);
		break;
	case VB_QP1_WATCH:
		vb_qp1_on_watch(qp1, now_ns, VB_CONTAINER(source, struct vb_qp1_watch, source));
		break;
	}
}

void vb_qp1_receive_mail(struct vb_qp1 *qp1, uint64_t now_ns)
{
	struct epoll_event events[SOURCE_BATCH];
	long count;

	if (!vb_fd_is_ours(qp1->epoll))
		return;
	count = syscall(SYS_epoll_pwait, qp1->epoll, events, SOURCE_BATCH, 0, NULL, 0);
	for (long i = 0; i < count; i++)
		serve_source(qp1, now_ns, events[i].data.ptr);
}

/* --- time and sending ------------------------------------------------------------------------- */

VB_COLD void vb_qp1_expire(struct vb_qp1 *qp1, uint64_t now_ns)
{
	if (qp1->has_user && qp1->user_ns <= now_ns) {
		qp1->user.expire(qp1->user.owner, now_ns);
		qp1->user_ns = qp1->user.deadline(qp1->user.owner);
		vb_qp1_request_send(qp1);
	}
	if (is_listening(qp1) && now_ns - qp1->claimed_ns >= CLAIM_WHEN_LISTENING_NS)
		claim(qp1, now_ns);
	if (qp1->closes_ns <= now_ns)
		vb_qp1_end_closed_names(qp1, now_ns);
	if (qp1->farewell_ns <= now_ns)
		vb_qp1_send_farewells(qp1, now_ns);
	if (qp1->dispatch_ns <= now_ns)
		vb_qp1_dispatch(qp1, now_ns);
}

static bool take_mad(struct vb_qp1 *qp1, struct vb_cm_mad *mad)
{
	return vb_cm_take_mad(qp1->machine, mad) ||
	       (qp1->has_user && qp1->user.take_mad(qp1->user.owner, mad));
}

uint32_t vb_qp1_transmit(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_slot *slots,
			 uint32_t capacity)
{
	uint32_t most = capacity < SEND_BATCH ? capacity : SEND_BATCH;
	uint32_t count = 0;
	struct vb_cm_mad mad;

	if (!qp1->is_send_requested || now_ns < qp1->send_ns)
		return 0;
	while (count < most && take_mad(qp1, &mad))
		vb_nic_build_mad(qp1->nic, &mad.flow, mad.qpn, mad.bytes, &slots[count++]);
	if (count == most)
		qp1->send_ns = now_ns + SEND_PAUSE_NS; /* there may be more */
	else
		qp1->is_send_requested = false;
	if (qp1->has_user)
		qp1->user_ns = qp1->user.deadline(qp1->user.owner);
	if (count && now_ns - qp1->claimed_ns >= CLAIM_WHEN_SENDING_NS)
		claim(qp1, now_ns);
	return count;
}

bool vb_qp1_is_sending(const struct vb_qp1 *qp1)
{
	return qp1->is_send_requested || qp1->farewell_ns != VB_NEVER;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t vb_qp1_deadline(const struct vb_qp1 *qp1)
{
	uint64_t deadline = earlier(earlier(qp1->user_ns, qp1->dispatch_ns),
				    earlier(qp1->closes_ns, qp1->farewell_ns));

	if (is_listening(qp1))
		deadline = earlier(deadline, qp1->claimed_ns + CLAIM_WHEN_LISTENING_NS);
	return qp1->is_send_requested ? earlier(deadline, qp1->send_ns) : deadline;
}
