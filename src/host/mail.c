/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mailboxes of processes of one user. A box is a listener and connections with proven other ends.
 * One epoll descriptor holds them all, so a box is one descriptor to its user. Connections carry
 * messages in both directions. A box keeps the connections it made for the next message, and those
 * that its peers made for as long as the peers want. When there are too many of one kind, the box
 * closes the least recently used one; a peer that needs it connects again. Processes of other users
 * can connect to a listener as fast as they like: after each round in which it met some, the
 * listener rests for two hundred times as long as they took.
 */
#include "host/mail.h"

#include "base/heap.h"
#include "host/clock.h"
#include "host/log.h"
#include "host/mail_list.h"
#include "link/fd.h"
#include "link/sys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>

#define BACKLOG 256 /* Other users' processes may fill it, so emptying it must be worth the look. */
#define ACCEPTED_MAX 16u /* connections that peers made */
#define MESSAGES_IN_A_ROW 64u /* from one connection, before others are looked at */
#define LOOK_BATCH 64u
#define ROUND_NS 1000000u /* spent on processes of other users … */
#define REST_MIN_NS 10000000u /* … after which the listener rests at least this long … */
#define REST_MAX_NS 200000000u
#define REST_FACTOR 200u /* … and this many times as long as the round took */
#define LIST_LASTS_NS 100000000u
#define LISTS_APART_NS 1000000u /* at least, if another process has the name … */
#define LIST_FACTOR 25u /* … and this many times what the last one took */
#define CLAIMS 4u
#define CLAIM_PAUSE_NS 50000
#define CANDIDATES_MAX 64u /* tried if the kernel does not report the owners */

struct vb_mail_connection {
	struct vb_mail_connection *next;
	int fd;
	bool is_made; /* by us */
	bool is_shut; /* its remaining messages are still read */
	pid_t pid;
	uint64_t id;
	uint64_t used; /* the more recent, the higher */
	struct vb_mail_name to; /* if we made it */
};

struct vb_mail_box {
	struct vb_mail_user user;
	int epoll;
	int listener; /* or -1 */
	int timer; /* for the end of a rest, or -1 */
	bool is_shut;
	bool is_resting; /* the listener is */
	uint32_t connections_max;
	struct vb_mail_name name; /* the name it listens on, with its suffix */
	struct vb_mail_connection *connections;
	struct vb_mail_connection *current; /* the one that mail last came from, or NULL */
	uint32_t in_a_row;
	uint64_t last_id;
	uint64_t uses;
	struct vb_mail_list list;
	uint64_t listed_ns; /* when the list was taken … */
	uint64_t listing_ns; /* … and how long that took */
};

/* --- connections ------------------------------------------------------------------------------ */

static socklen_t store_address(const char *text, struct sockaddr_un *address)
{
	size_t length = strlen(text);

	/* The first byte stays 0: an abstract name. */
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (length > sizeof(address->sun_path) - 1)
		length = sizeof(address->sun_path) - 1;
	memcpy(address->sun_path + 1, text, length);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

static int open_socket(void)
{
	return vb_fd_own(vb_sys_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

static bool ask_peer(int fd, struct ucred *peer)
{
	socklen_t length = sizeof(*peer);

	return vb_sys_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, peer, &length) == 0;
}

static void watch(struct vb_mail_box *box, int operation, int fd, void *what, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	(void)vb_sys_epoll_ctl(box->epoll, operation, fd, &event);
}

/* Other processes may hold copies of the open file, and epoll would go on reporting its events. */
static void close_watched(struct vb_mail_box *box, int fd)
{
	if (fd >= 0 && vb_fd_is_ours(fd) && vb_fd_is_ours(box->epoll))
		watch(box, EPOLL_CTL_DEL, fd, NULL, 0);
	vb_fd_close(fd);
}

static void drop(struct vb_mail_box *box, struct vb_mail_connection *connection)
{
	struct vb_mail_connection **place = &box->connections;

	while (*place != connection)
		place = &(*place)->next;
	*place = connection->next;
	if (box->current == connection)
		box->current = NULL;
	close_watched(box, connection->fd);
	vb_heap_free(connection);
}

static void shut(struct vb_mail_connection *connection)
{
	connection->is_shut = true;
	(void)syscall(SYS_shutdown, connection->fd, SHUT_RD);
}

/*
 * A connection that we made is closed: the peer will still read what we sent. A connection that a
 * peer made is shut: the peer learns of it when it sends, and everything it sent before is read.
 */
static void make_room(struct vb_mail_box *box, bool is_made)
{
	uint32_t most = is_made ? box->connections_max : ACCEPTED_MAX;
	struct vb_mail_connection *least = NULL;
	uint32_t count = 0;

	for (struct vb_mail_connection *each = box->connections; each; each = each->next) {
		if (each->is_made != is_made || each->is_shut)
			continue;
		count++;
		if (!least || each->used < least->used)
			least = each;
	}
	if (count < most)
		return;
	if (is_made)
		drop(box, least);
	else
		shut(least);
}

/* Takes ownership of the descriptor. */
static struct vb_mail_connection *add_connection(struct vb_mail_box *box, int fd, pid_t pid,
						 const struct vb_mail_name *to)
{
	struct vb_mail_connection *connection = NULL;

	if (fd >= 0)
		connection = vb_heap_alloc(1, sizeof(*connection));
	if (!connection) {
		vb_fd_close(fd);
		return NULL;
	}
	make_room(box, to);
	*connection = (struct vb_mail_connection){
		.next = box->connections,
		.fd = fd,
		.is_made = to,
		.pid = pid,
		.id = ++box->last_id,
		.used = ++box->uses,
	};
	if (to)
		connection->to = *to;
	box->connections = connection;
	watch(box, EPOLL_CTL_ADD, fd, connection, EPOLLIN);
	return connection;
}

/*
 * --- rest
 * -----------------------------------------------------------------------------------------
 */

static void set_timer(struct vb_mail_box *box, uint64_t ns)
{
	struct itimerspec time = { .it_value = { (time_t)(ns / 1000000000u),
						 (long)(ns % 1000000000u) } };

	(void)syscall(SYS_timerfd_settime, box->timer, 0, &time, NULL);
}

static void end_rest(struct vb_mail_box *box)
{
	box->is_resting = false;
	if (box->timer >= 0)
		set_timer(box, 0); /* and it is no longer readable */
	watch(box, EPOLL_CTL_MOD, box->listener, &box->listener, EPOLLIN);
}

/* If no timer descriptor is available, the listener rests until vb_mail_drop_lost_connections(). */
static void rest(struct vb_mail_box *box, uint64_t spent_ns)
{
	uint64_t ns = spent_ns * REST_FACTOR;

	if (box->timer < 0) {
		box->timer = vb_fd_own(vb_sys_result(
			syscall(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
		if (box->timer >= 0)
			watch(box, EPOLL_CTL_ADD, box->timer, &box->timer, EPOLLIN);
	}
	if (ns < REST_MIN_NS)
		ns = REST_MIN_NS;
	if (box->timer >= 0)
		set_timer(box, ns < REST_MAX_NS ? ns : REST_MAX_NS);
	box->is_resting = true;
	watch(box, EPOLL_CTL_MOD, box->listener, &box->listener, 0);
}

/* --- boxes ------------------------------------------------------------------------------------ */

struct vb_mail_box *vb_mail_open(const struct vb_mail_user *user, uint32_t connections_max)
{
	struct vb_mail_box *box = vb_heap_alloc(1, sizeof(*box));

	if (!box)
		return NULL;
	box->user = *user;
	box->connections_max = connections_max;
	box->listener = box->timer = -1;
	box->epoll = vb_fd_own(vb_sys_epoll_create(EPOLL_CLOEXEC));
	if (box->epoll >= 0)
		return box;
	vb_heap_free(box);
	return NULL;
}

void vb_mail_close(struct vb_mail_box *box)
{
	if (!box)
		return;
	while (box->connections)
		drop(box, box->connections);
	vb_fd_close(box->listener);
	vb_fd_close(box->timer);
	vb_fd_close(box->epoll);
	vb_mail_list_clear(&box->list);
	vb_heap_free(box);
}

bool vb_mail_is_intact(const struct vb_mail_box *box)
{
	return vb_fd_is_ours(box->epoll) && (box->listener < 0 || vb_fd_is_ours(box->listener)) &&
	       (box->timer < 0 || vb_fd_is_ours(box->timer));
}

void vb_mail_drop_lost_connections(struct vb_mail_box *box)
{
	struct vb_mail_connection *next;

	for (struct vb_mail_connection *each = box->connections; each; each = next) {
		next = each->next;
		if (!vb_fd_is_ours(each->fd))
			drop(box, each);
	}
	if (box->is_resting && box->timer < 0)
		end_rest(box);
}

int vb_mail_fd(const struct vb_mail_box *box)
{
	return box->epoll;
}

void vb_mail_shut(struct vb_mail_box *box)
{
	box->is_shut = true;
	if (vb_fd_is_ours(box->listener))
		(void)syscall(SYS_shutdown, box->listener, SHUT_RD);
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (vb_fd_is_ours(each->fd))
			shut(each);
	if (box->is_resting)
		end_rest(box);
}

/* --- proof ------------------------------------------------------------------------------------ */

static void report_stranger(const char *text, uid_t uid)
{
	vb_log(VB_LOG_WARN, "uid %u holds the name %s: it is skipped", uid, text);
}

/*
 * Connects to a name. Returns 0 if a process of our user is there, -EACCES if a process of another
 * user is, -EAGAIN if the listener does not keep up, -ECONNREFUSED if no process listens.
 */
static int connect_to(const struct vb_mail_box *box, const char *text, int *fd_out,
		      struct ucred *peer)
{
	struct sockaddr_un address;
	socklen_t length = store_address(text, &address);
	int fd = open_socket();
	int result;

	if (fd < 0)
		return fd;
	result = vb_sys_connect(fd, &address, length);
	if (!result && (!ask_peer(fd, peer) || peer->uid != box->user.uid)) {
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

/*
 * Tries the names that processes of our user took because another user had the first one. Skips our
 * own name.
 */
static int connect_to_others(const struct vb_mail_box *box, const char *text, int *fd_out,
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
			result = connect_to(box, other, fd_out, peer);
	}
	return result == -EACCES ? -ECONNREFUSED : result;
}

/* Connects to the process of our user that has that name. A slightly old list will do. */
static int find_fellow(struct vb_mail_box *box, const struct vb_mail_name *name, int *fd_out,
		       struct ucred *peer)
{
	int result, others;
	bool is_certain;

	if (box->user.is_overflow)
		return -ECONNREFUSED;
	result = connect_to(box, name->text, fd_out, peer);
	if (result != -EACCES && result != -EAGAIN && result != -ECONNREFUSED)
		return result;
	is_certain = refresh_list_if_old(box, name, result);
	others = connect_to_others(box, name->text, fd_out, peer);
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
	int result = find_fellow(box, name, &fd, &peer);

	vb_fd_close(fd);
	*pid_out = peer.pid;
	return !result || result == -EAGAIN;
}

bool vb_mail_is_unused(const struct vb_mail_name *name)
{
	struct sockaddr_un address;
	socklen_t length = store_address(name->text, &address);
	int fd = open_socket();
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

/* --- claiming --------------------------------------------------------------------------------- */

static bool listen_on(struct vb_mail_box *box, const char *text)
{
	struct sockaddr_un address;
	socklen_t length = store_address(text, &address);
	int fd = open_socket();

	if (fd < 0)
		return false;
	if (vb_sys_bind(fd, &address, length) < 0 || syscall(SYS_listen, fd, BACKLOG) < 0) {
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
	int result = connect_to(box, text, &fd, &peer);

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
		result = connect_to(box, name->text, &fd, &peer);
	if (result)
		result = connect_to_others(box, name->text, &fd, &peer);
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
	watch(box, EPOLL_CTL_ADD, box->listener, &box->listener, EPOLLIN);
	return true;
}

/* --- sending ---------------------------------------------------------------------------------- */

static struct vb_mail_connection *find_connection(struct vb_mail_box *box,
						  const struct vb_mail_name *to)
{
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (each->is_made && !strcmp(each->to.text, to->text))
			return each;
	return NULL;
}

static bool is_over(int result)
{
	return result == -EPIPE || result == -ECONNRESET || result == -ENOTCONN ||
	       result == -EBADF || result == -ENOTSOCK;
}

static int make_connection(struct vb_mail_box *box, const struct vb_mail_name *to,
			   struct vb_mail_connection **connection_out)
{
	struct ucred peer;
	int fd = -1;
	int result = find_fellow(box, to, &fd, &peer);

	if (result)
		return result;
	*connection_out = add_connection(box, fd, peer.pid, to);
	return *connection_out ? 0 : -ENOMEM;
}

/*
 * A closed connection led to a process that is gone, or was unused for long. Another process may
 * have the name by now.
 */
static int send_message(struct vb_mail_box *box, const struct vb_mail_name *to,
			const struct iovec *parts, uint32_t count, const int *fds,
			uint32_t fd_count)
{
	struct vb_mail_connection *connection = find_connection(box, to);
	int result;

	for (uint32_t i = 0; i < 2; i++) {
		if (!connection) {
			result = make_connection(box, to, &connection);
			if (result)
				return result;
		}
		result = vb_mail_write(connection->fd, parts, count, fds, fd_count);
		if (!is_over(result)) {
			connection->used = ++box->uses;
			return result;
		}
		drop(box, connection);
		connection = NULL;
	}
	return -ECONNREFUSED;
}

int vb_mail_send(struct vb_mail_box *box, const struct vb_mail_name *to, const struct iovec *parts,
		 uint32_t count)
{
	return send_message(box, to, parts, count, NULL, 0);
}

int vb_mail_send_fds(struct vb_mail_box *box, const struct vb_mail_name *to,
		     const struct iovec *part, const int *fds, uint32_t fd_count)
{
	return send_message(box, to, part, 1, fds, fd_count);
}

int vb_mail_answer(struct vb_mail_box *box, uint64_t connection, const struct iovec *parts,
		   uint32_t count, const int *fds, uint32_t fd_count)
{
	for (struct vb_mail_connection *each = box->connections; each; each = each->next)
		if (each->id == connection)
			return vb_mail_write(each->fd, parts, count, fds, fd_count);
	return -ECONNREFUSED;
}

/* --- receiving -------------------------------------------------------------------------------- */

static void add_fellow(struct vb_mail_box *box, int fd, pid_t pid)
{
	struct vb_mail_connection *connection = add_connection(box, vb_fd_own(fd), pid, NULL);

	if (connection && box->is_shut)
		shut(connection);
}

static void on_accept_error(struct vb_mail_box *box, int error)
{
	if (box->is_shut) /* all were accepted */
		watch(box, EPOLL_CTL_DEL, box->listener, NULL, 0);
	else if (error != -EAGAIN) /* such as no descriptor available */
		rest(box, ROUND_NS);
}

/*
 * Accepts new connections. Those of other users are closed immediately, and all that they sent is
 * discarded.
 */
static void accept_some(struct vb_mail_box *box)
{
	uint64_t begin_ns = vb_clock_now();
	uint64_t spent_ns = 0;
	uint32_t strangers = 0;
	struct ucred peer = { 0 };

	while (spent_ns < ROUND_NS && strangers < BACKLOG) {
		int fd = vb_sys_result(syscall(SYS_accept4, box->listener, NULL, NULL,
					       SOCK_CLOEXEC | SOCK_NONBLOCK));

		if (fd < 0) {
			on_accept_error(box, fd);
			break;
		}
		if (ask_peer(fd, &peer) && peer.uid == box->user.uid) {
			add_fellow(box, fd, peer.pid);
			break;
		}
		vb_sys_close(fd);
		strangers++;
		spent_ns = vb_clock_now() - begin_ns;
	}
	if (!strangers)
		return;
	vb_log(VB_LOG_WARN, "uid %u connects to %s: it is let go", peer.uid, box->name.text);
	if (!box->is_shut)
		rest(box, spent_ns);
}

/*
 * Finds a connection that may have mail. Returns false if there is none. *connection_out is NULL if
 * the caller should look again.
 */
static bool find_ready(struct vb_mail_box *box, struct vb_mail_connection **connection_out)
{
	struct epoll_event event;

	*connection_out = NULL;
	if (syscall(SYS_epoll_pwait, box->epoll, &event, 1, 0, NULL, 0) != 1)
		return false;
	if (event.data.ptr == &box->listener)
		accept_some(box);
	else if (event.data.ptr == &box->timer)
		end_rest(box);
	else
		*connection_out = event.data.ptr;
	return true;
}

/* Receives one message from the current connection; false if there is none. */
static bool receive_by(struct vb_mail_box *box, struct vb_mail_connection *connection, void *bytes,
		       size_t size, struct vb_mail *mail)
{
	int result = vb_mail_read(connection->fd, bytes, size, mail);

	if (result == 1) {
		mail->connection = connection->id;
		mail->pid = connection->pid;
		connection->used = ++box->uses;
		if (++box->in_a_row >= MESSAGES_IN_A_ROW)
			box->current = NULL;
		return true;
	}
	/*
	 * A peer that closed with mail unread resets the connection; what it sent is still there.
	 */
	if (result == -EAGAIN)
		box->current = NULL;
	else if (result != -ECONNRESET && result != -EMSGSIZE)
		drop(box, connection);
	return false;
}

bool vb_mail_receive(struct vb_mail_box *box, void *bytes, size_t size, struct vb_mail *mail)
{
	for (uint32_t i = 0; i < LOOK_BATCH; i++) {
		if (!box->current) {
			box->in_a_row = 0;
			if (!find_ready(box, &box->current))
				return false;
			if (!box->current)
				continue;
		}
		if (receive_by(box, box->current, bytes, size, mail))
			return true;
	}
	return false;
}
