/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The abstract names below one prefix that somebody listens on, or has, as the kernel lists them. Where it says whose they are
 * (sock_diag), those of strangers are counted and left out; where it does not (/proc/net/unix), they are among the others.
 */
#ifndef VB_HOST_MAIL_LIST_H
#define VB_HOST_MAIL_LIST_H

#include "host/mail.h"

#define VB_MAIL_STRANGERS_MAX 8

struct vb_mail_stranger {
	uid_t uid;
	uint32_t count; /* of names */
	struct vb_mail_name name; /* one of them */
};

struct vb_mail_list {
	struct vb_mail_name *names; /* in order */
	uint32_t count;
	uint32_t capacity;
	bool has_uids; /* all of them are fellows' */
	struct vb_mail_stranger strangers[VB_MAIL_STRANGERS_MAX];
	uint32_t stranger_count;
};

enum vb_mail_list_of { VB_MAIL_LISTENERS, VB_MAIL_ALL_NAMES };

/* Empty where there is no list to be had. The caller gives it back by vb_mail_list_clear(). */
void vb_mail_list_fill(struct vb_mail_list *list, const struct vb_mail_user *user,
		       enum vb_mail_list_of of);
void vb_mail_list_clear(struct vb_mail_list *list);

bool vb_mail_list_has(const struct vb_mail_list *list, const char *text);
/* The first name that begins with `text` and "~", and where those end. */
uint32_t vb_mail_list_first(const struct vb_mail_list *list, const char *text, uint32_t *end_out);

#endif
