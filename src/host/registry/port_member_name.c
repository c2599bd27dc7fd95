/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of port members. A program that only writes to their mailboxes needs nothing else. */
#include "host/registry/port_member_priv.h"

#include <stdio.h>

struct vb_mail_name vb_port_member_name(const struct vb_mail_user *user, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	return vb_mail_name(user, text);
}

struct vb_mail_name vb_port_member_joining_name(const struct vb_mail_user *user)
{
	return vb_mail_name(user, "joining");
}
