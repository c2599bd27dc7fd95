/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our user, and the names of its boxes. In a user namespace, names carry the uid that the parent
 * namespace knows us by, because the same user inside and outside must meet, and because root
 * inside is another user outside. All uids that the namespace does not know look like one, the
 * overflow uid: a process with that uid cannot distinguish its own user from others.
 */
#include "host/registry/mail.h"

#include "host/sys/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USUAL_OVERFLOW_UID 65534u
#define ALL_UIDS UINT32_MAX
#define MAP_TEXT_MAX 16384 /* a namespace has at most 340 lines */

static uid_t overflow_uid(void)
{
	char text[32];

	if (!vb_file_read("/proc/sys/kernel/overflowuid", text, sizeof(text), NULL))
		return USUAL_OVERFLOW_UID;
	return (uid_t)strtoul(text, NULL, 10);
}

/* Each line is "inside outside count". False if the namespace does not know the user. */
static bool map(const char *text, struct vb_mail_user *user, bool *is_whole_out)
{
	bool is_mapped = false;
	char *end;

	*is_whole_out = false;
	for (;;) {
		unsigned long inside = strtoul(text, &end, 10);
		unsigned long outside = strtoul(end, &end, 10);
		unsigned long count = strtoul(end, &end, 10);

		if (end == text || !count)
			return is_mapped;
		if (user->uid >= inside && user->uid - inside < count) {
			user->name_uid = (uid_t)(outside + (user->uid - inside));
			is_mapped = true;
		}
		*is_whole_out |= inside == 0 && outside == 0 && count == ALL_UIDS;
		text = end;
	}
}

struct vb_mail_user vb_mail_user(void)
{
	struct vb_mail_user user = { .uid = geteuid(), .name_uid = geteuid() };
	char text[MAP_TEXT_MAX];
	bool is_whole;
	bool is_mapped;

	if (!vb_file_read("/proc/self/uid_map", text, sizeof(text), NULL)) {
		user.is_overflow = user.uid == USUAL_OVERFLOW_UID;
		return user;
	}
	is_mapped = map(text, &user, &is_whole);
	user.is_overflow = !is_whole && (!is_mapped || user.uid == overflow_uid());
	return user;
}

struct vb_mail_name vb_mail_name(const struct vb_mail_user *user, const char *what)
{
	struct vb_mail_name name;

	snprintf(name.text, sizeof(name.text), "verbatim/%u/%s", user->name_uid, what);
	return name;
}
