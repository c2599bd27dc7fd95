/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock made of an abstract socket name. Binding the name takes the lock. A waiting process
 * connects to it and polls the connection, which no process accepts and which therefore ends when
 * the holder closes its socket.
 *
 * If a process of another user has the name, a process binds the name with a random suffix, which
 * nobody can hold in advance. Several processes can do so at once, so each then looks in the
 * kernel's list for a rival: another process of its user with the plain name or one with a suffix.
 * Both have bound before they look, so at least one of them sees the other. A process that sees a
 * rival gives its own name back and waits.
 */
#include "host/registry/name_lock.h"

#include "host/registry/mail_list.h"
#include "host/sys/clock.h"
#include "host/sys/stopped.h"
#include "link/fd.h"
#include "link/sys.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/un.h>
#include <time.h>

#define WAITING_MAX 4096
#define PATIENCE_NS 10000000000u
#define CHECK_MS 100 /* between checks whether the holder is stopped */
#define PAUSE_MS 1 /* before another try, if the holder cannot be connected to */
#define PAUSES_PER_CHECK 10u /* the holder of the name is looked up at every tenth pause */
#define RIVALS_ASKED 64u /* if the kernel does not report the owners of names */
#define BACKOFF_LOG_MAX 6u /* rivals that withdraw try again within 1 to 64 ms */

/* What the caller does next, because of the process that holds the name. */
enum advice { RETRY, AVOID_NAME, GIVE_UP };

static int open_socket(void)
{
	return vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static socklen_t store_address(const char *text, struct sockaddr_un *address)
{
	char *path = address->sun_path + 1;
	int length = snprintf(path, sizeof(address->sun_path) - 1, "%s", text);

	address->sun_family = AF_UNIX;
	address->sun_path[0] = 0;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void wait_for(int fd, short events, int ms)
{
	struct pollfd wait = { .fd = fd, .events = events };
	struct timespec time = { ms / 1000, ms % 1000 * 1000000l };

	syscall(SYS_ppoll, &wait, fd >= 0, &time, NULL, 0);
}

/*
 * The holder of the name cannot be connected to: it is gone or just beginning, other users'
 * processes fill its queue, or it is itself a process of another user. Pauses, and finds out at
 * every tenth pause whether it is the last of these. If the kernel does not report owners, it
 * counts as that, or strangers could delay everyone. If it is one of ours that is slow to listen,
 * two processes hold the lock, which is as if there were none.
 */
static enum advice judge_holder(const char *text, const struct vb_mail_user *user, uint32_t *pauses)
{
	struct vb_mail_list list = { 0 };
	bool is_same_user;

	wait_for(-1, 0, PAUSE_MS);
	if (++*pauses % PAUSES_PER_CHECK)
		return RETRY;
	vb_mail_list_fill(&list, user, VB_MAIL_ALL_NAMES);
	is_same_user = list.has_uids && vb_mail_list_has(&list, text);
	vb_mail_list_clear(&list);
	return is_same_user ? RETRY : AVOID_NAME;
}

/* A connection to the process that has the name, if that is one of our user; otherwise -1. */
static int connect_to_fellow(const char *text, const struct vb_mail_user *user,
			     struct ucred *holder, bool *is_answered)
{
	struct sockaddr_un address = { 0 };
	socklen_t length = store_address(text, &address);
	socklen_t size = sizeof(*holder);
	int fd = open_socket();

	*is_answered = fd >= 0 && vb_sys_connect(fd, &address, length) == 0;
	if (*is_answered && vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, holder, &size) == 0 &&
	    holder->uid == user->uid)
		return fd;
	vb_fd_close(fd);
	return -1;
}

/* Waits until the lock may be free, or it is clear that it will not be. */
static enum advice wait_until_released(const char *text, const struct vb_mail_user *user,
				       uint32_t *pauses)
{
	struct ucred holder;
	bool is_answered;
	int fd = connect_to_fellow(text, user, &holder, &is_answered);

	if (fd < 0)
		return is_answered ? AVOID_NAME : judge_holder(text, user, pauses);
	wait_for(fd, POLLIN, CHECK_MS);
	vb_fd_close(fd);
	return vb_process_is_stopped(holder.pid) ? GIVE_UP : RETRY;
}

static bool take(int fd, const char *text)
{
	struct sockaddr_un address = { 0 };
	socklen_t length = store_address(text, &address);

	if (vb_sys_bind(fd, &address, length) < 0)
		return false;
	(void)syscall(SYS_listen, fd, WAITING_MAX);
	return true;
}

static bool take_beside(int fd, const struct vb_mail_name *name, struct vb_mail_name *own)
{
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return false;
	snprintf(own->text, sizeof(own->text), "%.86s~%016" PRIx64, name->text, random);
	return take(fd, own->text);
}

/* --- rivals --- */

static bool is_rival(const struct vb_mail_list *list, const char *text, const char *own,
		     const struct vb_mail_user *user)
{
	struct ucred holder;
	bool is_answered;
	int fd;

	if (!strcmp(text, own))
		return false;
	if (list->has_uids)
		return true;
	fd = connect_to_fellow(text, user, &holder, &is_answered);
	vb_fd_close(fd);
	return fd >= 0;
}

/* Whether another process of our user has the plain name, or one with a suffix; stores that. */
static bool find_rival(const struct vb_mail_name *name, const char *own,
		       const struct vb_mail_user *user, struct vb_mail_name *rival)
{
	struct vb_mail_list list = { 0 };
	bool is_found;
	uint32_t first, end;

	vb_mail_list_fill(&list, user, VB_MAIL_ALL_NAMES);
	is_found = vb_mail_list_has(&list, name->text) && is_rival(&list, name->text, own, user);
	*rival = *name;
	first = vb_mail_list_first(&list, name->text, &end);
	if (!list.has_uids && end - first > RIVALS_ASKED)
		end = first + RIVALS_ASKED;
	for (uint32_t i = first; i < end && !is_found; i++) {
		*rival = list.names[i];
		is_found = is_rival(&list, rival->text, own, user);
	}
	vb_mail_list_clear(&list);
	return is_found;
}

/* The more often rivals have met, the longer they may wait. */
static void back_off(uint32_t *meetings)
{
	uint16_t random = 0;

	(void)getrandom(&random, sizeof(random), 0);
	wait_for(-1, 0, random % (1 << *meetings) + 1);
	*meetings += *meetings < BACKOFF_LOG_MAX;
}

/* --- the lock --- */

int vb_name_lock_try(const struct vb_mail_name *name, const struct vb_mail_user *user)
{
	struct vb_mail_name rival;
	int fd = open_socket();

	if (fd >= 0 && take(fd, name->text) && !find_rival(name, name->text, user, &rival))
		return fd;
	vb_fd_close(fd);
	return -1;
}

struct attempt {
	const struct vb_mail_name *name;
	const struct vb_mail_user *user;
	uint32_t pauses, meetings;
	int lock; /* -1: not yet */
};

static enum advice try_once(struct attempt *attempt)
{
	struct vb_mail_name own = *attempt->name;
	struct vb_mail_name rival;
	enum advice advice = RETRY;
	int fd = open_socket();

	if (fd < 0)
		return GIVE_UP;
	if (!take(fd, own.text)) {
		advice = wait_until_released(own.text, attempt->user, &attempt->pauses);
		if (advice != AVOID_NAME || !take_beside(fd, attempt->name, &own)) {
			vb_fd_close(fd);
			return advice == AVOID_NAME ? GIVE_UP : advice;
		}
	}
	if (!find_rival(attempt->name, own.text, attempt->user, &rival)) {
		attempt->lock = fd;
		return RETRY;
	}
	vb_fd_close(fd);
	advice = wait_until_released(rival.text, attempt->user, &attempt->pauses);
	back_off(&attempt->meetings);
	return advice == GIVE_UP ? GIVE_UP : RETRY;
}

int vb_name_lock_take(const struct vb_mail_name *name, const struct vb_mail_user *user)
{
	uint64_t end_ns = vb_clock_now() + PATIENCE_NS;
	struct attempt attempt = { .name = name, .user = user, .lock = -1 };

	if (user->is_overflow)
		return -1;
	while (attempt.lock < 0 && vb_clock_now() < end_ns && try_once(&attempt) != GIVE_UP)
		;
	return attempt.lock;
}

void vb_name_lock_release(int lock)
{
	vb_fd_close(lock);
}
