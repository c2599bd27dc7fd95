/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets that nobody needs any more. The kernel moves the last socket of a port to the place of one that is closed, so a
 * member that is gone leaves a socket behind, for the next that comes. Only the last one can be closed without moving another: it is let
 * go of by each of the others, and gone when all have done so. Nobody joins meanwhile, and nobody can take its number.
 */
#include "host/member_priv.h"

#include "host/name_lock.h"
#include "link/udp.h"

/* If a stranger has its name, its socket stays. */
static bool is_gone(const struct vb_member *member, uint32_t number)
{
	struct vb_mail_name name = vb_member_name(&member->user, number);

	return vb_mail_is_unused(&name);
}

/* False if it is not the last one of the port, or somebody has its number. */
static bool let_go_of_last(const struct vb_member *member)
{
	struct vb_mail_name name;
	struct vb_mail_box *box;
	bool is_claimed;
	uint32_t last;

	if (!vb_receivers_find_last(&last) || vb_udp_receivers_on(vb_receivers_port()) != last + 1)
		return false;
	box = vb_mail_open(&member->user, 0);
	if (!box)
		return false;
	name = vb_member_name(&member->user, last);
	is_claimed = vb_mail_claim(box, &name);
	if (is_claimed)
		vb_receivers_drop(last);
	vb_mail_close(box);
	return is_claimed;
}

/* Where somebody joins at this moment, it is done the next time. */
static void let_go(const struct vb_member *member)
{
	struct vb_mail_name name = vb_member_joining_name(&member->user);
	int lock = vb_name_lock_try(&name);

	if (lock < 0)
		return;
	while (let_go_of_last(member))
		;
	vb_name_lock_release(lock);
}

void vb_member_let_go(const struct vb_member *member)
{
	uint32_t last;

	if (vb_receivers_find_last(&last) && last != member->number && is_gone(member, last))
		let_go(member);
}
