/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notification of peers when a process dies: a surviving process on this host sends it. Each
 * adapter has a pair of connected sockets: one end is its own, the other is given to all other
 * adapters. When its own end closes, the others wake, and make sure that one of them gets the MADs
 * of the host. If the adapter has a user, a message with the descriptor of the user's rows lies
 * between the ends. The first survivor that takes it notifies the peers, so only one does, without
 * any lock. A user that leaves takes the message back.
 */
#include "host/qp1/qp1_priv.h"

#include "base/heap.h"
#include "host/memory/expanse.h"
#include "host/registry/port_member.h"
#include "host/sys/limit.h"
#include "host/sys/log.h"
#include "host/sys/quiet.h"
#include "link/fd.h"
#include "link/sys.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define ROWS_BYTES (VB_QP1_ROWS * sizeof(struct vb_cm_row))
/* the most that may have last messages in one batch: see SEND_BATCH in qp1.c */
#define ROW_BATCH 32u
#define ROUND_BATCH 64u
#define FAREWELL_PAUSE_NS 500000u
#define FILE_CLOSE_ON_EXEC 1u /* MFD_CLOEXEC */

/* --- our own life ----------------------------------------------------------------------------- */

static void send_presence(const struct vb_qp1 *qp1, uint32_t number, bool is_new)
{
	struct vb_mail_name to = vb_qp1_box_name(&qp1->user_id, number);
	struct vb_qp1_presence lives = { .kind = VB_QP1_PRESENCE,
					 .is_new = is_new,
					 .number = qp1->number,
					 .token = qp1->life.token };
	struct iovec part = { &lives, sizeof(lives) };

	if (vb_fd_is_ours(qp1->life.others_end))
		(void)vb_mail_send_fds(qp1->box.box, &to, &part, &qp1->life.others_end, 1);
}

bool vb_qp1_open_liveness(struct vb_qp1 *qp1)
{
	struct vb_qp1_liveness *life = &qp1->life;
	int ends[2];

	if (getrandom(&life->token, sizeof(life->token), 0) != sizeof(life->token))
		return false;
	if (syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		    ends))
		return vb_fd_own(-errno) >= 0;
	life->own_end = vb_fd_own(ends[0]);
	life->others_end = vb_fd_own(ends[1]);
	vb_mail_refresh_list(qp1->box.box);
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT; number++) {
		struct vb_mail_name to = vb_qp1_box_name(&qp1->user_id, number);

		if (number != qp1->number && vb_mail_is_listed(qp1->box.box, &to))
			send_presence(qp1, number, true);
	}
	return true;
}

void vb_qp1_close_liveness(struct vb_qp1 *qp1)
{
	vb_fd_close(qp1->life.own_end);
	vb_fd_close(qp1->life.others_end);
	qp1->life.own_end = qp1->life.others_end = -1;
}

/* Leaves the message that waits at the others' end. */
static bool leave_message(const struct vb_qp1_liveness *life, int rows_fd)
{
	struct vb_qp1_rows_of rows = { VB_QP1_ROWS_OF, sizeof(struct vb_cm_row), VB_QP1_ROWS };
	struct iovec part = { &rows, sizeof(rows) };
	int fds[2] = { rows_fd, vb_fd_own(vb_sys_result(syscall(SYS_pidfd_open, getpid(), 0))) };
	bool is_left = vb_mail_write(life->own_end, &part, 1, fds, fds[1] < 0 ? 1 : 2) == 0;

	vb_fd_close(fds[1]);
	return is_left;
}

static bool map_rows(struct vb_qp1_liveness *life, int rows_fd)
{
	life->rows = vb_expanse_map(rows_fd, ROWS_BYTES, PROT_READ | PROT_WRITE, 0);
	return life->rows;
}

/* Files may not be that large: no other process has the rows. */
static bool keep_rows_to_ourselves(struct vb_qp1_liveness *life)
{
	char limits[VB_LIMIT_TEXT_MAX];

	vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "connect"),
		     "if this process is killed, peers of its connections are not told%s",
		     vb_limit_describe(VB_EFBIG, limits));
	return map_rows(life, -1);
}

vb_err vb_qp1_open_rows(struct vb_qp1 *qp1)
{
	int rows_fd = vb_fd_own(
		vb_sys_result(syscall(SYS_memfd_create, "verbatim-rows", FILE_CLOSE_ON_EXEC)));
	bool is_open;
	int error;

	if (rows_fd < 0)
		return vb_limit_err(rows_fd);
	error = vb_quiet_ftruncate(rows_fd, ROWS_BYTES);
	if (error == -EFBIG)
		is_open = keep_rows_to_ourselves(&qp1->life);
	else
		is_open = !error && map_rows(&qp1->life, rows_fd) &&
			  leave_message(&qp1->life, rows_fd);
	vb_fd_close(rows_fd);
	if (is_open)
		return VB_OK;
	vb_qp1_close_rows(qp1);
	return VB_ENOMEM;
}

/*
 * Processes that already have the message, because the program has closed our end, find nothing in
 * the rows.
 */
void vb_qp1_close_rows(struct vb_qp1 *qp1)
{
	struct vb_qp1_liveness *life = &qp1->life;
	struct vb_qp1_rows_of rows;
	struct vb_mail mail;

	if (vb_fd_is_ours(life->others_end) &&
	    vb_mail_read(life->others_end, &rows, sizeof(rows), &mail) == 1)
		vb_mail_close_fds(&mail);
	if (life->rows) {
		(void)!syscall(SYS_madvise, life->rows, ROWS_BYTES, MADV_REMOVE);
		vb_sys_munmap(life->rows, ROWS_BYTES);
	}
	life->rows = NULL;
}

void vb_qp1_forget_rows(struct vb_qp1 *qp1)
{
	struct vb_qp1_liveness *life = &qp1->life;

	if (life->rows &&
	    mmap(life->rows, ROWS_BYTES, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) == MAP_FAILED)
		vb_sys_munmap(life->rows, ROWS_BYTES);
	life->rows = NULL;
}

/* --- other adapters --------------------------------------------------------------------------- */

static bool is_watched(const struct vb_qp1 *qp1, uint64_t token)
{
	for (struct vb_list_node *node = qp1->watches.next; node != &qp1->watches;
	     node = node->next)
		if (VB_CONTAINER(node, struct vb_qp1_watch, node)->token == token)
			return true;
	return false;
}

static struct vb_qp1_watch *add_watch(struct vb_qp1 *qp1, int fd)
{
	struct vb_qp1_watch *watch = vb_heap_alloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->source = (struct vb_qp1_source){ VB_QP1_WATCH, fd, NULL };
	watch->rows_fd = -1;
	vb_list_append(&qp1->watches, &watch->node);
	return watch;
}

static void end_watch(struct vb_qp1 *qp1, struct vb_qp1_watch *watch)
{
	vb_qp1_remove_source(qp1, &watch->source);
	vb_fd_close(watch->rows_fd);
	vb_list_remove(&watch->node);
	vb_heap_free(watch);
}

void vb_qp1_forget_watches(struct vb_qp1 *qp1)
{
	while (vb_list_is_linked(&qp1->watches))
		end_watch(qp1, VB_CONTAINER(qp1->watches.next, struct vb_qp1_watch, node));
	qp1->farewell_ns = VB_NEVER;
}

/* At this end there is always something to read: only the closing of the other end counts. */
void vb_qp1_on_presence(struct vb_qp1 *qp1, const void *bytes, struct vb_mail *mail)
{
	struct vb_qp1_watch *watch;
	struct vb_qp1_presence lives;

	if (mail->length != sizeof(lives) || mail->fd_count != 1)
		return;
	memcpy(&lives, bytes, sizeof(lives));
	if (lives.is_new && lives.number < VB_PORT_MEMBER_COUNT && lives.number != qp1->number)
		send_presence(qp1, lives.number, false);
	if (is_watched(qp1, lives.token))
		return;
	watch = add_watch(qp1, mail->fds[0]);
	if (!watch)
		return;
	mail->fd_count = 0;
	watch->token = lives.token;
	if (!vb_qp1_add_source(qp1, &watch->source, 0))
		end_watch(qp1, watch);
}

/* --- a death ---------------------------------------------------------------------------------- */

static void begin_farewell(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_watch *watch)
{
	vb_qp1_remove_source(qp1, &watch->source);
	watch->is_dead = true;
	qp1->farewell_ns = now_ns;
	vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "connect"),
		     "a process has died: its connections are ended for it");
}

/* False if there is no message: another process has it, or the user has left. */
static bool take_message(struct vb_qp1_watch *watch, int *process_fd_out)
{
	struct vb_mail mail;

	*process_fd_out = -1;
	if (vb_mail_read(watch->source.fd, &watch->rows, sizeof(watch->rows), &mail) != 1)
		return false;
	if (mail.length != sizeof(watch->rows) || watch->rows.kind != VB_QP1_ROWS_OF ||
	    watch->rows.row_size != sizeof(struct vb_cm_row) || !mail.fd_count) {
		vb_mail_close_fds(&mail);
		return false;
	}
	if (mail.fd_count > 1)
		*process_fd_out = mail.fds[1];
	watch->rows_fd = mail.fds[0];
	return true;
}

/*
 * The program may have closed the descriptor. A dying process closes its descriptors before it is
 * dead.
 */
static bool await_death(struct vb_qp1 *qp1, struct vb_qp1_watch *watch, int process_fd)
{
	vb_qp1_remove_source(qp1, &watch->source);
	watch->source.fd = process_fd;
	return process_fd >= 0 && vb_qp1_add_source(qp1, &watch->source, EPOLLIN);
}

void vb_qp1_on_watch(struct vb_qp1 *qp1, uint64_t now_ns, struct vb_qp1_watch *watch)
{
	int process_fd;

	qp1->has_steering_claim = true;
	if (watch->rows_fd >= 0)
		begin_farewell(qp1, now_ns, watch);
	else if (!take_message(watch, &process_fd))
		end_watch(qp1, watch);
	else if (!await_death(qp1, watch, process_fd))
		begin_farewell(qp1, now_ns, watch);
}

/* --- last messages ---------------------------------------------------------------------------- */

/*
 * Returns the number of rows read. They are read, not mapped: another process may have made the
 * file shorter.
 */
static uint32_t send_some_farewells(struct vb_qp1 *qp1, struct vb_qp1_watch *watch,
				    bool *has_spoken)
{
	struct vb_cm_row rows[ROW_BATCH];
	static const struct vb_cm_row none;
	long length = syscall(SYS_pread64, watch->rows_fd, rows, sizeof(rows),
			      (off_t)(watch->row_next * sizeof(rows[0])));
	uint32_t count = length > 0 ? (uint32_t)((size_t)length / sizeof(rows[0])) : 0;

	for (uint32_t i = 0; i < count; i++) {
		if (rows[i].state == none.state)
			continue;
		vb_cm_send_farewell(qp1->machine, &rows[i]);
		vb_qp1_request_send(qp1);
		*has_spoken = true;
	}
	watch->row_next += count;
	return count;
}

/* True when all messages are sent. */
static bool continue_farewells(struct vb_qp1 *qp1, struct vb_qp1_watch *watch)
{
	bool has_spoken = false;

	for (uint32_t i = 0; i < ROUND_BATCH && !has_spoken; i++)
		if (!send_some_farewells(qp1, watch, &has_spoken))
			return true;
	return false;
}

void vb_qp1_send_farewells(struct vb_qp1 *qp1, uint64_t now_ns)
{
	qp1->farewell_ns = VB_NEVER;
	for (struct vb_list_node *node = qp1->watches.next; node != &qp1->watches;
	     node = node->next) {
		struct vb_qp1_watch *watch = VB_CONTAINER(node, struct vb_qp1_watch, node);

		if (!watch->is_dead)
			continue;
		/* For the rest of it, or the next one. */
		qp1->farewell_ns = now_ns + FAREWELL_PAUSE_NS;
		if (continue_farewells(qp1, watch))
			end_watch(qp1, watch);
		return;
	}
}

/* At the end of the process we do for ourselves what other processes would do for us. */
void vb_qp1_begin_own_farewells(struct vb_qp1 *qp1, uint64_t now_ns)
{
	struct vb_qp1_watch *watch;
	int process_fd;

	vb_qp1_forget_user(qp1); /* its functions may no longer be usable */
	if (!vb_fd_is_ours(qp1->life.others_end))
		return;
	watch = add_watch(qp1, qp1->life.others_end);
	if (!watch)
		return;
	qp1->life.others_end = -1;
	if (!take_message(watch, &process_fd)) {
		end_watch(qp1, watch);
		return;
	}
	if (process_fd >= 0)
		vb_fd_close(process_fd);
	begin_farewell(qp1, now_ns, watch);
}
