/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange of receiving sockets, and of the totals, between port members. */
#include "host/registry/port_member_priv.h"

#include "host/registry/guid.h"
#include "host/registry/totals.h"
#include "host/sys/clock.h"

#include <errno.h>
#include <string.h>

#define GIVE_AGAIN_NS 1000000u

static void send_sockets(const struct vb_port_member *member, uint64_t connection,
			 const struct vb_port_member_sockets *sockets, const int *fds)
{
	struct iovec part = { (void *)(uintptr_t)sockets, sizeof(*sockets) };

	/* An asker that does not get them asks the next member, or does without. */
	(void)vb_mail_answer(member->box, connection, &part, 1, fds, sockets->count);
}

static void send_those_missing(const struct vb_port_member *member, uint64_t connection,
			       const struct vb_receivers_set *has)
{
	struct vb_port_member_sockets sockets = { .kind = VB_PORT_MEMBER_SOCKETS,
						  .from = (uint8_t)member->number,
						  .is_out_of_order =
							  vb_receivers_are_out_of_order(),
						  .guid = vb_guid() };
	struct vb_receivers_set held = vb_receivers_held();
	int fds[VB_MAIL_FDS_MAX] = { vb_totals_fd() };

	if (fds[0] >= 0)
		sockets.numbers[sockets.count++] = VB_PORT_MEMBER_TOTALS_NUMBER;
	for (uint32_t i = 0; i < VB_RECEIVERS_MAX; i++) {
		if (!vb_receivers_set_has(&held, i) || vb_receivers_set_has(has, i))
			continue;
		if (sockets.count == VB_MAIL_FDS_MAX) {
			send_sockets(member, connection, &sockets, fds);
			sockets.count = 0;
		}
		fds[sockets.count] = vb_receivers_fd(i);
		sockets.numbers[sockets.count++] = (uint8_t)i;
	}
	sockets.is_last = true;
	send_sockets(member, connection, &sockets, fds);
}

void vb_port_member_answer(const struct vb_port_member *member, const struct vb_mail *ask)
{
	struct vb_port_member_asks asks;

	if (ask->length != sizeof(asks))
		return;
	memcpy(&asks, member->message, sizeof(asks));
	vb_receivers_lock();
	send_those_missing(member, ask->connection, &asks.held);
	vb_receivers_unlock();
}

bool vb_port_member_take_sockets(const void *bytes, struct vb_mail *mail,
				 struct vb_port_member_sockets *head_out)
{
	if (mail->length != sizeof(*head_out))
		return false;
	memcpy(head_out, bytes, sizeof(*head_out));
	vb_guid_learn(head_out->guid);
	if (head_out->is_out_of_order)
		vb_receivers_declare_disorder();
	/* Fewer descriptors may arrive, if this process is at its limit. */
	for (uint32_t i = 0; i < mail->fd_count; i++) {
		if (head_out->numbers[i] == VB_PORT_MEMBER_TOTALS_NUMBER)
			vb_totals_learn(mail->fds[i]);
		else
			(void)vb_receivers_add(head_out->numbers[i], mail->fds[i]);
	}
	mail->fd_count = 0;
	return head_out->from < VB_PORT_MEMBER_COUNT;
}

void vb_port_member_on_sockets(struct vb_port_member *member, struct vb_mail *mail)
{
	struct vb_port_member_sockets head;

	if (!vb_port_member_take_sockets(member->message, mail, &head) || head.is_out_of_order ||
	    !vb_receivers_are_out_of_order())
		return;
	vb_mail_refresh_list(member->box);
	vb_receivers_set_add(&member->ungiven, head.from);
	member->next_ungiven = 0;
}

/* False if the other member's mailbox is full. */
static bool give_to(const struct vb_port_member *member, uint32_t to)
{
	struct vb_port_member_sockets sockets = {
		.kind = VB_PORT_MEMBER_SOCKETS,
		.count = 1,
		.from = (uint8_t)member->number,
		.is_out_of_order = vb_receivers_are_out_of_order(),
		.guid = vb_guid(),
		.numbers = { (uint8_t)member->number },
	};
	struct iovec part = { &sockets, sizeof(sockets) };
	struct vb_mail_name name = vb_port_member_name(&member->user, to);

	return !vb_mail_is_listed(member->box, &name) ||
	       vb_mail_send_fds(member->box, &name, &part, &member->receiver, 1) != -EAGAIN;
}

void vb_port_member_give_to_all(struct vb_port_member *member)
{
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++)
		if (i != member->number && !give_to(member, i))
			vb_receivers_set_add(&member->ungiven, i);
	member->next_ungiven = 0;
}

void vb_port_member_declare_disorder(struct vb_port_member *member)
{
	vb_receivers_declare_disorder();
	vb_mail_refresh_list(member->box);
	vb_port_member_give_to_all(member);
}

void vb_port_member_give_more(struct vb_port_member *member)
{
	uint64_t now_ns;

	if (member->next_ungiven == VB_PORT_MEMBER_COUNT)
		return;
	now_ns = vb_clock_now();
	if (now_ns < member->give_ns)
		return;
	member->give_ns = now_ns + GIVE_AGAIN_NS;
	while (member->next_ungiven < VB_PORT_MEMBER_COUNT) {
		if (vb_receivers_set_has(&member->ungiven, member->next_ungiven) &&
		    !give_to(member, member->next_ungiven))
			return;
		member->next_ungiven++;
	}
}
