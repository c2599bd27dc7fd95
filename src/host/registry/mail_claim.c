/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Claiming a name for a box. If a process of another user has it, the box gets the same name with a
 * random suffix. So two processes could get one name, one by each method: a process that claims a
 * name listens first, then looks for a rival, and gives the name back if there is one.
 */
#include "host/registry/mail_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define CLAIMS 4u
#define CLAIM_PAUSE_NS 50000

static bool listen_on(struct vb_mail_box *box, const char *text)
{
	struct sockaddr_un address;
	socklen_t length = vb_mail_store_address(text, &address);
	int fd = vb_mail_open_socket();

	if (fd < 0)
		return false;
	if (vb_sys_bind(fd, &address, length) < 0 || syscall(SYS_listen, fd, VB_MAIL_BACKLOG) < 0) {
		vb_fd_close(fd);
		return false;
	}
	box->listener = fd;
	snprintf(box->name.text, sizeof(box->name.text), "%s", text);
	return true;
}

/*
 * Finds the holder of a name that is in use: 0 for a process of our user, -EACCES for one of
 * another user, -ECONNREFUSED for one that does not listen. A holder that listens but does not keep
 * up counts as our user's, unless the kernel reports otherwise.
 */
static int ask_holder(struct vb_mail_box *box, const char *text)
{
	struct ucred peer;
	int fd = -1;
	int result = vb_mail_connect_to(box, text, &fd, &peer);

	vb_fd_close(fd);
	if (result != -EAGAIN)
		return result;
	vb_mail_refresh_list(box);
	return !box->list.has_uids || vb_mail_list_has(&box->list, text) ? 0 : -EACCES;
}

/*
 * A process of our user that begins to listen, or checks whether a name is in use
 * (vb_mail_is_unused()), holds it only for a moment.
 */
static int listen_on_plain(struct vb_mail_box *box, const char *text)
{
	int holder = -ECONNREFUSED;

	for (uint32_t i = 0; i < CLAIMS && holder == -ECONNREFUSED; i++) {
		if (i)
			syscall(SYS_nanosleep, &(struct timespec){ 0, CLAIM_PAUSE_NS }, NULL);
		if (listen_on(box, text))
			return 1;
		holder = ask_holder(box, text);
	}
	return holder;
}

/* Every process can see this name, but none can predict it. */
static bool listen_beside(struct vb_mail_box *box, const char *text)
{
	char other[VB_MAIL_NAME_MAX];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(other, sizeof(other), "%.86s~%016" PRIx64, text, random);
	return listen_on(box, other);
}

/*
 * A rival may have claimed the name in the other form (plain or with a suffix). By now one of the
 * two has been listed, and sees the other.
 */
static bool look_for_rival(struct vb_mail_box *box, const struct vb_mail_name *name)
{
	bool has_plain_name = !strcmp(box->name.text, name->text);
	struct ucred peer;
	int fd = -1;
	int result = -ECONNREFUSED;

	vb_mail_refresh_list(box);
	if (!has_plain_name && (!box->list.has_uids || vb_mail_list_has(&box->list, name->text)))
		result = vb_mail_connect_to(box, name->text, &fd, &peer);
	if (result)
		result = vb_mail_connect_to_others(box, name->text, &fd, &peer);
	vb_fd_close(fd);
	return !result || result == -EAGAIN;
}

bool vb_mail_claim(struct vb_mail_box *box, const struct vb_mail_name *name)
{
	int holder;

	if (box->user.is_overflow)
		return true;
	holder = listen_on_plain(box, name->text);
	if (!holder || (holder < 0 && !listen_beside(box, name->text)))
		return false;
	if (look_for_rival(box, name)) {
		vb_fd_close(box->listener);
		box->listener = -1;
		return false;
	}
	vb_mail_watch(box, EPOLL_CTL_ADD, box->listener, &box->listener, EPOLLIN);
	return true;
}
