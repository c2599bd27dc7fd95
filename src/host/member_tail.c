/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that nobody needs any more. The kernel moves the last socket of a port to the place of one that is closed, so a
 * member that is gone leaves a socket behind, for the next that comes. Only the last one can be closed without moving another: it is let
 * go of by each of the others, and gone when all have done so. Nobody joins meanwhile, and nobody can take its number.
 */
#include "host/member_priv.h"

#include "host/name_lock.h"
#include "link/udp.h"

/* `box` is empty. */
static bool is_last_gone(const struct vb_member *member, int box)
{
	struct vb_mail_name name;
	uint32_t last;

	if (!vb_receivers_find_last(&last) || last == member->number)
		return false;
	name = vb_member_name(member->user, last);
	return !vb_mail_is_claimed(box, &name);
}

/* False if it is not the last one of the port, or somebody has its number. */
static bool let_go_of_last(const struct vb_member *member)
{
	struct vb_mail_name name;
	bool is_gone = false;
	uint32_t last;
	int box;

	if (!vb_receivers_find_last(&last) || vb_udp_receivers_on(vb_receivers_port()) != last + 1)
		return false;
	box = vb_mail_open();
	if (box < 0)
		return false;
	name = vb_member_name(member->user, last);
	is_gone = vb_mail_claim(box, &name);
	if (is_gone)
		vb_receivers_drop(last);
	vb_mail_close(box);
	return is_gone;
}

/* Where somebody joins at this moment, it is done the next time. */
static void let_go(const struct vb_member *member)
{
	struct vb_mail_name name = vb_member_joining_name(member->user);
	int lock = vb_name_lock_try(&name);

	if (lock < 0)
		return;
	while (let_go_of_last(member))
		;
	vb_name_lock_release(lock);
}

void vb_member_let_go(const struct vb_member *member)
{
	int box = vb_mail_open();
	bool is_gone = box >= 0 && is_last_gone(member, box);

	if (box >= 0)
		vb_mail_close(box);
	if (is_gone)
		let_go(member);
}
