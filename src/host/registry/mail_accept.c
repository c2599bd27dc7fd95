/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The listener of a box accepts connections of processes of our user. Processes of other users can
 * connect as fast as they like: after each round in which it met some, the listener pauses for two
 * hundred times as long as they took.
 */
#include "host/registry/mail_priv.h"

#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "link/fd.h"
#include "link/sys.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

#define ROUND_NS 1000000u /* spent on processes of other users … */
#define PAUSE_MIN_NS 10000000u /* … after which the listener pauses at least this long … */
#define PAUSE_MAX_NS 200000000u
#define REST_FACTOR 200u /* … and this many times as long as the round took */

static void set_timer(struct vb_mail_box *box, uint64_t ns)
{
	struct itimerspec time = { .it_value = { (time_t)(ns / 1000000000u),
						 (long)(ns % 1000000000u) } };

	(void)syscall(SYS_timerfd_settime, box->timer, 0, &time, NULL);
}

void vb_mail_resume_listener(struct vb_mail_box *box)
{
	box->is_paused = false;
	if (box->timer >= 0)
		set_timer(box, 0); /* and it is no longer readable */
	vb_mail_watch(box, EPOLL_CTL_MOD, box->listener, &box->listener, EPOLLIN);
}

/*
 * If no timer descriptor is available, the listener pauses until vb_mail_drop_lost_connections().
 */
static void pause_listener(struct vb_mail_box *box, uint64_t spent_ns)
{
	uint64_t ns = spent_ns * REST_FACTOR;

	if (box->timer < 0) {
		box->timer = vb_fd_own(vb_sys_result(
			syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
		if (box->timer >= 0)
			vb_mail_watch(box, EPOLL_CTL_ADD, box->timer, &box->timer, EPOLLIN);
	}
	if (ns < PAUSE_MIN_NS)
		ns = PAUSE_MIN_NS;
	if (box->timer >= 0)
		set_timer(box, ns < PAUSE_MAX_NS ? ns : PAUSE_MAX_NS);
	box->is_paused = true;
	vb_mail_watch(box, EPOLL_CTL_MOD, box->listener, &box->listener, 0);
}

static void add_fellow(struct vb_mail_box *box, int fd, pid_t pid)
{
	struct vb_mail_connection *connection =
		vb_mail_add_connection(box, vb_fd_own(fd), pid, NULL);

	if (connection && box->is_shut)
		vb_mail_shut_connection(connection);
}

static void on_accept_error(struct vb_mail_box *box, int error)
{
	if (box->is_shut) /* all were accepted */
		vb_mail_watch(box, EPOLL_CTL_DEL, box->listener, NULL, 0);
	else if (error != -EAGAIN) /* such as no descriptor available */
		pause_listener(box, ROUND_NS);
}

void vb_mail_accept_some(struct vb_mail_box *box)
{
	uint64_t begin_ns = vb_clock_now();
	uint64_t spent_ns = 0;
	uint32_t strangers = 0;
	struct ucred peer = { 0 };

	while (spent_ns < ROUND_NS && strangers < VB_MAIL_BACKLOG) {
		int fd = vb_sys_result(syscall(SYS_accept4, box->listener, NULL, NULL,
					       SOCK_CLOEXEC | SOCK_NONBLOCK));

		if (fd < 0) {
			on_accept_error(box, fd);
			break;
		}
		if (vb_mail_ask_peer(fd, &peer) && peer.uid == box->user.uid) {
			add_fellow(box, fd, peer.pid);
			break;
		}
		vb_sys_close(fd);
		strangers++;
		spent_ns = vb_clock_now() - begin_ns;
	}
	if (!strangers)
		return;
	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join", .error = EACCES),
		     "uid %u connects to %s: it is let go", peer.uid, box->name.text);
	if (!box->is_shut)
		pause_listener(box, spent_ns);
}
