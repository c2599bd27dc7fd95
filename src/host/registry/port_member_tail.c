/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The closing of sockets that no member needs. When a socket of a port is closed, the kernel moves
 * the last one to its place. So a member that is gone leaves its socket behind, for the next
 * process that joins. Only the last socket can be closed without moving another: each of the other
 * members closes its copy, and the socket is gone when all have done so. Meanwhile no process can
 * join, and none can take its number.
 */
#include "host/registry/port_member_priv.h"

#include "host/registry/name_lock.h"
#include "link/udp.h"

/* If a process of another user has the name, the socket stays. */
static bool is_gone(const struct vb_port_member *member, uint32_t number)
{
	struct vb_mail_name name = vb_port_member_name(&member->user, number);

	return vb_mail_is_unused(&name);
}

/* False if it is not the last one of the port, or a process has its number. */
static bool drop_last(const struct vb_port_member *member)
{
	struct vb_mail_name name;
	struct vb_mail_box *box;
	bool is_dropped;
	uint32_t last;

	if (!vb_receivers_find_last(&last) ||
	    vb_udp_count_receivers(vb_receivers_port()) != last + 1)
		return false;
	box = vb_mail_open(&member->user, 0);
	if (!box)
		return false;
	name = vb_port_member_name(&member->user, last);
	is_dropped = vb_mail_claim(box, &name) && vb_receivers_drop(last);
	vb_mail_close(box);
	return is_dropped;
}

/* If a process joins at this moment, the sockets are closed the next time. */
static void drop_tail(const struct vb_port_member *member)
{
	struct vb_mail_name name = vb_port_member_joining_name(&member->user);
	int lock = vb_name_lock_try(&name, &member->user);

	if (lock < 0)
		return;
	while (drop_last(member))
		;
	vb_name_lock_release(lock);
}

/* Whether a socket must have moved, because it cannot be the last of so few. */
static bool has_any_moved(uint32_t count)
{
	struct vb_receivers_set held = vb_receivers_held();

	for (uint32_t i = count; i < VB_RECEIVERS_MAX; i++)
		if (vb_receivers_set_has(&held, i))
			return true;
	return false;
}

void vb_port_member_resolve_doubt(struct vb_port_member *member)
{
	uint32_t count, last;

	if (!member->is_place_in_doubt || vb_receivers_are_out_of_order())
		return;
	count = vb_udp_count_receivers(vb_receivers_port());
	if (count && has_any_moved(count))
		vb_port_member_declare_disorder(member);
	else if (vb_receivers_find_last(&last) && count == last + 1)
		member->is_place_in_doubt = false;
}

void vb_port_member_drop_tail(struct vb_port_member *member)
{
	uint32_t last;

	vb_port_member_resolve_doubt(member);
	if (vb_receivers_are_out_of_order())
		vb_receivers_end_retirements();
	else if (vb_receivers_find_last(&last) && last != member->number && is_gone(member, last))
		drop_tail(member);
}
