/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's list of abstract names below one prefix: those that a process listens on, or all. If
 * the kernel reports the owners (sock_diag), names of other users are counted and left out. If it
 * does not (/proc/net/unix), they are in the list.
 */
#ifndef VB_HOST_REGISTRY_MAIL_LIST_H
#define VB_HOST_REGISTRY_MAIL_LIST_H

#include "host/registry/mail.h"

#define VB_MAIL_STRANGERS_MAX 8

struct vb_mail_stranger {
	uid_t uid;
	uint32_t count; /* number of names */
	struct vb_mail_name name; /* one of them */
};

struct vb_mail_list {
	struct vb_mail_name *names; /* sorted */
	uint32_t count;
	uint32_t capacity;
	bool has_uids; /* all names belong to our user */
	struct vb_mail_stranger strangers[VB_MAIL_STRANGERS_MAX];
	uint32_t stranger_count;
};

enum vb_mail_list_of { VB_MAIL_LISTENERS, VB_MAIL_ALL_NAMES };

/* The list is empty if the kernel provides none. The caller frees it with vb_mail_list_clear(). */
void vb_mail_list_fill(struct vb_mail_list *list, const struct vb_mail_user *user,
		       enum vb_mail_list_of of);
void vb_mail_list_clear(struct vb_mail_list *list);

bool vb_mail_list_has(const struct vb_mail_list *list, const char *text);
/* The index of the first name that begins with `text` and "~", and the end of those names. */
uint32_t vb_mail_list_first(const struct vb_mail_list *list, const char *text, uint32_t *end_out);

#endif
