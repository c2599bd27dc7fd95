/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dispatch of MADs that the receiving process does not want. MADs next to each other in the
 * queue with one destination go together. A process that gets a MAD from another process never
 * forwards it: it takes the MAD, refuses it or, if the MAD was for a service that it listens on or
 * listened on, holds it for a while.
 */
#include "host/qp1/qp1_priv.h"

#include "host/registry/port_member.h"
#include "wire/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RETRY_NS 2000000u
#define ID_PREFIX_SHIFT 24

enum fate { SENT, FULL, NOBODY, OURS, NO_LONGER_OURS };

struct vb_mail_name vb_qp1_box_name(const struct vb_mail_user *user_id, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "qp1/%u", number);
	return vb_mail_name(user_id, text);
}

static void try_next(struct vb_qp1 *qp1, uint64_t time_ns)
{
	if (time_ns < qp1->dispatch_ns)
		qp1->dispatch_ns = time_ns;
}

/* For a held MAD, the listener was asked just now. */
void vb_qp1_enqueue(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letter *letter,
		    const struct vb_cm_addressee *addressee, bool is_held)
{
	if (qp1->queue_count == VB_QP1_QUEUE_MAX) {
		vb_nic_drop_mad(qp1->nic, VB_DROP_NO_RECEIVE);
		return;
	}
	qp1->queue[qp1->queue_count++] = (struct vb_qp1_queued){ *letter, *addressee, is_held };
	try_next(qp1, is_held ? now_ns + RETRY_NS : now_ns);
}

/* --- sending to another process --------------------------------------------------------------- */

static enum fate fate_of(int result)
{
	if (!result)
		return SENT;
	/* A socket that is about to be closed takes no more messages. */
	return result == -ECONNREFUSED || result == -EPIPE ? NOBODY : FULL;
}

static enum fate send_letters(struct vb_qp1 *qp1, const struct vb_mail_name *to,
			      const struct vb_qp1_queued *run, uint32_t count)
{
	struct vb_qp1_letters *message = &qp1->message;
	struct iovec part = { message, offsetof(struct vb_qp1_letters, letters) +
					       count * sizeof(message->letters[0]) };

	message->kind = VB_QP1_LETTERS;
	message->count = count;
	for (uint32_t i = 0; i < count; i++)
		message->letters[i] = run[i].letter;
	return fate_of(vb_mail_send(qp1->box.box, to, &part, 1));
}

static uint32_t family_of(const struct vb_cm_addressee *addressee)
{
	if (!vb_service_is_ip(addressee->service))
		return VB_CM_RAW;
	return vb_gid_is_ipv4(&addressee->address) ? VB_CM_IPV4 : VB_CM_IPV6;
}

static enum fate send_to_name(struct vb_qp1 *qp1, const struct vb_qp1_name *name, uint32_t family,
			      const struct vb_qp1_queued *run, uint32_t count)
{
	struct vb_mail_name to = vb_qp1_service_name(&qp1->user_id, name, family, name->is_closed);

	if (vb_qp1_has_name(qp1, name, family))
		return name->is_closed ? NO_LONGER_OURS : OURS;
	return send_letters(qp1, &to, run, count);
}

/*
 * Sends to the process that listens on that address, else to one that listens on any address, else
 * to one that did so a moment ago.
 */
static enum fate send_to_listener(struct vb_qp1 *qp1, const struct vb_qp1_queued *run,
				  uint32_t count)
{
	const struct vb_cm_addressee *addressee = &run->addressee;
	uint32_t family = family_of(addressee);
	enum fate fate = NOBODY;

	for (uint32_t is_closed = 0; is_closed <= !run->is_held && fate == NOBODY; is_closed++) {
		struct vb_qp1_name name = { .service = is_closed ? vb_qp1_closed_service(
									   addressee->service)
								 : addressee->service,
					    .address = addressee->address,
					    .is_closed = is_closed };

		fate = send_to_name(qp1, &name, family, run, count);
		if (fate != NOBODY || vb_gid_is_zero(&addressee->address))
			continue;
		name.address = (struct vb_gid){ 0 };
		fate = send_to_name(qp1, &name, family, run, count);
	}
	return fate;
}

static uint32_t owner_of(const struct vb_cm_addressee *addressee)
{
	return addressee->comm_id >> ID_PREFIX_SHIFT;
}

static enum fate send_to_owner(struct vb_qp1 *qp1, const struct vb_qp1_queued *run, uint32_t count)
{
	uint32_t owner = owner_of(&run->addressee);
	struct vb_mail_name to = vb_qp1_box_name(&qp1->user_id, owner);

	if (owner == qp1->number || owner >= VB_PORT_MEMBER_COUNT)
		return NOBODY;
	return send_letters(qp1, &to, run, count);
}

/* The MAD does not name its target: the process that knows its sender takes it. */
static enum fate send_to_all(struct vb_qp1 *qp1, const struct vb_qp1_queued *run, uint32_t count)
{
	vb_mail_refresh_list(qp1->box.box);
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT; number++) {
		struct vb_mail_name to = vb_qp1_box_name(&qp1->user_id, number);

		if (number != qp1->number && vb_mail_is_listed(qp1->box.box, &to))
			(void)send_letters(qp1, &to, run, count);
	}
	return SENT;
}

static bool is_for_all(const struct vb_cm_addressee *addressee)
{
	return addressee->kind == VB_MAD_REJ && !addressee->comm_id;
}

static enum fate send_run(struct vb_qp1 *qp1, const struct vb_qp1_queued *run, uint32_t count)
{
	if (run->addressee.has_service)
		return send_to_listener(qp1, run, count);
	if (is_for_all(&run->addressee))
		return send_to_all(qp1, run, count);
	return send_to_owner(qp1, run, count);
}

/* --- the queue -------------------------------------------------------------------------------- */

static bool has_same_route(const struct vb_qp1_queued *a, const struct vb_qp1_queued *b)
{
	if (a->is_held != b->is_held || a->addressee.has_service != b->addressee.has_service)
		return false;
	if (a->addressee.has_service)
		return a->addressee.service == b->addressee.service &&
		       vb_gid_equal(&a->addressee.address, &b->addressee.address);
	return is_for_all(&a->addressee) == is_for_all(&b->addressee) &&
	       owner_of(&a->addressee) == owner_of(&b->addressee);
}

static uint32_t count_run(const struct vb_qp1 *qp1, uint32_t first)
{
	uint32_t count = 1;

	while (count < VB_QP1_LETTERS_MAX && first + count < qp1->queue_count &&
	       has_same_route(&qp1->queue[first], &qp1->queue[first + count]))
		count++;
	return count;
}

static void refuse(struct vb_qp1 *qp1, const struct vb_qp1_letter *letter)
{
	vb_cm_refuse(qp1->machine, &letter->flow, letter->source, letter->bytes, VB_MAD_SIZE);
	vb_qp1_request_send(qp1);
}

/*
 * Takes a MAD for a service of our own. False if the user does not want it: it will listen in a
 * moment, or has just ceased to.
 */
static bool take_in(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_queued *queued,
		    enum fate fate)
{
	queued->is_held = true;
	return fate == OURS &&
	       vb_qp1_offer(qp1, now_ns, &queued->letter, &queued->addressee) != VB_CM_NOT_MINE;
}

/* Decides about a MAD that was not sent. True if it stays in the queue. */
static bool decide_fate(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_queued *queued,
			enum fate fate)
{
	bool is_old = now_ns - queued->letter.arrived_ns >= VB_QP1_PATIENCE_NS;

	if (fate >= OURS && take_in(qp1, now_ns, queued, fate))
		return false;
	if (!is_old && (fate == FULL || queued->is_held))
		return true;
	if (fate == FULL)
		vb_nic_drop_mad(qp1->nic, VB_DROP_NO_RECEIVE);
	else
		refuse(qp1, &queued->letter);
	return false;
}

void vb_qp1_dispatch(struct vb_qp1 *qp1, uint64_t now_ns)
{
	uint32_t kept = 0;
	uint32_t count;

	for (uint32_t first = 0; first < qp1->queue_count; first += count) {
		enum fate fate;

		count = count_run(qp1, first);
		fate = send_run(qp1, &qp1->queue[first], count);
		for (uint32_t i = first; i < first + count && fate != SENT; i++)
			if (decide_fate(qp1, now_ns, &qp1->queue[i], fate))
				qp1->queue[kept++] = qp1->queue[i];
	}
	qp1->queue_count = kept;
	qp1->dispatch_ns = kept ? now_ns + RETRY_NS : VB_NEVER;
}

void vb_qp1_release_held(struct vb_qp1 *qp1)
{
	vb_qp1_close_names(qp1);
	for (uint32_t i = 0; i < qp1->queue_count; i++)
		qp1->queue[i].is_held = false;
	if (qp1->queue_count)
		qp1->dispatch_ns = 0;
}

/* --- what other processes have sent ----------------------------------------------------------- */

/* A MAD for one of our communication IDs. */
static void on_letter(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letter *letter)
{
	struct vb_cm_addressee addressee;

	if (vb_qp1_offer(qp1, now_ns, letter, &addressee) == VB_CM_NOT_MINE &&
	    !addressee.has_service && !is_for_all(&addressee) &&
	    owner_of(&addressee) == qp1->number)
		refuse(qp1, letter);
}

/* A MAD for a service. If no process listens on it now, one may soon. */
static void on_request(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letter *letter,
		       const struct vb_qp1_name *name)
{
	struct vb_cm_addressee addressee = { 0 };
	bool is_request = name->is_closed
				  ? vb_qp1_interpret(qp1, letter, &addressee)
				  : vb_qp1_offer(qp1, now_ns, letter, &addressee) == VB_CM_NOT_MINE;

	if (is_request && addressee.has_service)
		vb_qp1_enqueue(qp1, now_ns, letter, &addressee, true);
}

void vb_qp1_on_letters(struct vb_qp1 *qp1, uint64_t now_ns, const struct vb_qp1_letters *letters,
		       const struct vb_qp1_name *name)
{
	for (uint32_t i = 0; i < letters->count; i++) {
		if (name)
			on_request(qp1, now_ns, &letters->letters[i], name);
		else
			on_letter(qp1, now_ns, &letters->letters[i]);
	}
}
