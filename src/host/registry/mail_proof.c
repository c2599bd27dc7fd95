/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finding the process of our user that has a name. A connection, and what the kernel reports about
 * its other end, prove it. If a process of another user has the name, the kernel's list shows the
 * names that its rightful owner may have taken instead. A box keeps that list, because taking it is
 * slow; a look-up may use one that is slightly old.
 */
#include "host/registry/mail_priv.h"

#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "link/fd.h"
#include "link/sys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define LIST_LASTS_NS 100000000u
#define LISTS_APART_NS 1000000u /* at least, if another process has the name … */
#define LIST_FACTOR 25u /* … and this many times what the last one took */
#define CANDIDATES_MAX 64u /* tried if the kernel does not report the owners */

static void report_stranger(const char *text, uid_t uid)
{
	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join", .error = EACCES),
		     "uid %u holds the name %s: it is skipped", uid, text);
}

int vb_mail_connect_to(const struct vb_mail_box *box, const char *text, int *fd_out,
		       struct ucred *peer)
{
	struct sockaddr_un address;
	socklen_t length = vb_mail_store_address(text, &address);
	int fd = vb_mail_open_socket();
	int result;

	if (fd < 0)
		return fd;
	result = vb_sys_connect(fd, &address, length);
	if (!result && (!vb_mail_ask_peer(fd, peer) || peer->uid != box->user.uid)) {
		report_stranger(text, peer->uid);
		result = -EACCES;
	}
	if (!result) {
		*fd_out = fd;
		return 0;
	}
	vb_fd_close(fd);
	return result == -EAGAIN || result == -EACCES ? result : -ECONNREFUSED;
}

void vb_mail_refresh_list(struct vb_mail_box *box)
{
	uint64_t begin_ns = vb_clock_now();

	if (box->user.is_overflow)
		return;
	vb_mail_list_fill(&box->list, &box->user, VB_MAIL_LISTENERS);
	box->listed_ns = vb_clock_now();
	box->listing_ns = box->listed_ns - begin_ns;
}

/*
 * If a process of another user has the name, the owner's other name may be newer than the list.
 * Returns false if that cannot be decided now.
 */
static bool refresh_list_if_old(struct vb_mail_box *box, const struct vb_mail_name *name,
				int result)
{
	uint64_t age_ns = vb_clock_now() - box->listed_ns;
	bool is_in_doubt = result != -ECONNREFUSED ||
			   (age_ns >= LISTS_APART_NS && !vb_mail_is_unused(name));

	if (age_ns < (is_in_doubt ? LISTS_APART_NS : LIST_LASTS_NS) ||
	    age_ns < box->listing_ns * LIST_FACTOR)
		return !is_in_doubt;
	vb_mail_refresh_list(box);
	return true;
}

bool vb_mail_is_listed(const struct vb_mail_box *box, const struct vb_mail_name *name)
{
	uint32_t end;

	return !box->list.has_uids || vb_mail_list_has(&box->list, name->text) ||
	       vb_mail_list_first(&box->list, name->text, &end) < end;
}

bool vb_mail_list_is_exact(const struct vb_mail_box *box)
{
	return box->list.has_uids;
}

int vb_mail_connect_to_others(const struct vb_mail_box *box, const char *text, int *fd_out,
			      struct ucred *peer)
{
	uint32_t end;
	uint32_t first = vb_mail_list_first(&box->list, text, &end);
	uint32_t count = end - first;
	uint32_t begin = 0;
	int result = -ECONNREFUSED;

	if (!count)
		return result;
	if (!box->list.has_uids)
		(void)!getrandom(&begin, sizeof(begin), 0);
	for (uint32_t i = 0; i < count && i < CANDIDATES_MAX && result; i++) {
		const char *other = box->list.names[first + (begin + i) % count].text;

		if (strcmp(other, box->name.text) != 0)
			result = vb_mail_connect_to(box, other, fd_out, peer);
	}
	return result == -EACCES ? -ECONNREFUSED : result;
}

int vb_mail_find_fellow(struct vb_mail_box *box, const struct vb_mail_name *name, int *fd_out,
			struct ucred *peer)
{
	int result, others;
	bool is_certain;

	if (box->user.is_overflow)
		return -ECONNREFUSED;
	result = vb_mail_connect_to(box, name->text, fd_out, peer);
	if (result != -EACCES && result != -EAGAIN && result != -ECONNREFUSED)
		return result;
	is_certain = refresh_list_if_old(box, name, result);
	others = vb_mail_connect_to_others(box, name->text, fd_out, peer);
	if (others != -ECONNREFUSED)
		return others;
	if (!is_certain)
		return -EAGAIN;
	/* The listener that does not keep up may also belong to another user. */
	if (result == -EAGAIN && box->list.has_uids && !vb_mail_list_has(&box->list, name->text))
		return -ECONNREFUSED;
	return result == -EACCES ? -ECONNREFUSED : result;
}

bool vb_mail_find_holder(struct vb_mail_box *box, const struct vb_mail_name *name, pid_t *pid_out)
{
	struct ucred peer = { 0 };
	int fd = -1;
	int result = vb_mail_find_fellow(box, name, &fd, &peer);

	vb_fd_close(fd);
	*pid_out = peer.pid;
	return !result || result == -EAGAIN;
}

bool vb_mail_is_unused(const struct vb_mail_name *name)
{
	struct sockaddr_un address;
	socklen_t length = vb_mail_store_address(name->text, &address);
	int fd = vb_mail_open_socket();
	bool is_unused = fd >= 0 && vb_sys_bind(fd, &address, length) == 0;

	vb_fd_close(fd);
	return is_unused;
}

void vb_mail_describe_strangers(const struct vb_mail_user *user, char *text, size_t size)
{
	struct vb_mail_list list = { 0 };
	size_t length = 0;

	*text = 0;
	vb_mail_list_fill(&list, user, VB_MAIL_ALL_NAMES);
	for (uint32_t i = 0; i < list.stranger_count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length,
					   "%suid %u holds %u (such as %s)", i ? ", " : "",
					   list.strangers[i].uid, list.strangers[i].count,
					   list.strangers[i].name.text);
	vb_mail_list_clear(&list);
}
