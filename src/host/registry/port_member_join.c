/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joining and leaving the port. Processes join one at a time, because a new receiving socket
 * becomes the last one of its group, and its place there must become its number. A socket keeps its
 * place while those before it are open. So a process that joins first gets all sockets of the port
 * from other members, and then opens its own. Then its place stays, even if others leave or are
 * killed. A process that leaves gives up its number while other members still have its socket; a
 * process that adopts a socket takes the number first.
 */
#include "host/registry/port_member_priv.h"

#include "base/heap.h"
#include "host/registry/guid.h"
#include "host/registry/name_lock.h"
#include "host/registry/port_holders.h"
#include "host/registry/totals.h"
#include "host/sys/clock.h"
#include "host/sys/log.h"
#include "host/sys/stopped.h"
#include "link/fd.h"
#include "link/udp.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000000ull
#define ANSWER_PATIENCE_NS (10 * MILLISECOND) /* before the next member is asked as well */
/* How long a process waits for sockets or the GUID after the last answer … */
#define RUNNING_PATIENCE_NS (1000 * MILLISECOND) /* … if a member that was asked runs … */
#define LEAVING_PATIENCE_NS (100 * MILLISECOND) /* … if all have answered, and one is leaving … */
#define STOPPED_PATIENCE_NS (20 * MILLISECOND) /* … if the others are stopped … */
#define WHOLE_PATIENCE_NS (3000 * MILLISECOND) /* … and in all */
#define DYING_CLAIMS 20u /* a millisecond apart */
#define ASKED_MEMBERS 2u
#define ANSWERS_CONNECTIONS VB_PORT_MEMBER_COUNT

struct joining {
	struct vb_port_member *member;
	struct vb_mail_box *box; /* for questions and their answers */
	struct vb_receivers_set asked; /* members that need not be asked any more */
	struct vb_receivers_set unanswered; /* … that have not answered … */
	uint32_t unanswered_count; /* … and their number */
	bool is_any_busy; /* a member could not be asked just now */
	bool are_all_asked;
	bool is_more_to_ask; /* as far as it has looked */
	bool has_number; /* already, because it joins again */
	bool is_port_foreign; /* the RoCE port is not the group's, which its sockets show */
	uint64_t begin_ns; /* of asking … */
	uint64_t progress_ns; /* … and the last question or answer */
};

static bool is_own(const struct joining *joining, uint32_t number)
{
	return joining->has_number && number == joining->member->number;
}

static bool is_there(const struct joining *joining, uint32_t number)
{
	struct vb_mail_name name = vb_port_member_name(&joining->member->user, number);
	pid_t pid;

	if (!vb_mail_is_listed(joining->box, &name))
		return false;
	return vb_mail_list_is_exact(joining->box) ||
	       vb_mail_find_holder(joining->box, &name, &pid);
}

/* The count of numbers that other members have. */
static uint32_t count_others(const struct joining *joining)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++)
		count += !is_own(joining, i) && is_there(joining, i);
	return count;
}

/* --- asking ----------------------------------------------------------------------------------- */

static int ask(struct vb_mail_box *box, const struct vb_mail_user *user, uint32_t number)
{
	struct vb_port_member_asks asks = { VB_PORT_MEMBER_SOCKETS_QUERY, vb_receivers_held() };
	struct iovec part = { &asks, sizeof(asks) };
	struct vb_mail_name name = vb_port_member_name(user, number);

	return vb_mail_is_listed(box, &name) ? vb_mail_send(box, &name, &part, 1) : -ECONNREFUSED;
}

/* Asks the next member that is there; false when all were asked, or are busy. */
static bool ask_next(struct joining *joining)
{
	joining->is_any_busy = joining->are_all_asked = false;
	joining->is_more_to_ask = true;
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++) {
		int result;

		if (is_own(joining, i) || vb_receivers_set_has(&joining->asked, i))
			continue;
		result = ask(joining->box, &joining->member->user, i);
		if (result == -EAGAIN) {
			joining->is_any_busy = true;
			continue;
		}
		vb_receivers_set_add(&joining->asked, i);
		if (!result) {
			vb_receivers_set_add(&joining->unanswered, i);
			joining->unanswered_count++;
			joining->progress_ns = vb_clock_now();
			return true;
		}
	}
	joining->are_all_asked = !joining->is_any_busy;
	joining->is_more_to_ask = false;
	return false;
}

/*
 * Asks for sockets to hold. Asks several members, in case one is stopped. The answers arrive later.
 */
static void ask_some(struct vb_port_member *member)
{
	uint32_t asked = 0;

	if (vb_receivers_are_complete())
		return;
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT && asked < ASKED_MEMBERS; i++)
		asked += i != member->number && !ask(member->box, &member->user, i);
}

static void expect_no_answer(struct joining *joining, uint32_t number)
{
	if (!vb_receivers_set_has(&joining->unanswered, number))
		return;
	vb_receivers_set_remove(&joining->unanswered, number);
	joining->unanswered_count--;
	joining->progress_ns = vb_clock_now();
}

static void wait_for_answer(struct joining *joining, uint64_t ns)
{
	struct pollfd fd = { .fd = vb_mail_fd(joining->box), .events = POLLIN };
	struct timespec patience = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	struct vb_port_member_sockets head;
	struct vb_mail mail;

	syscall(SYS_ppoll, &fd, 1, &patience, NULL, 0);
	while (vb_mail_receive(joining->box, joining->member->message, VB_PORT_MEMBER_MESSAGE_MAX,
			       &mail)) {
		if (vb_port_member_take_sockets(joining->member->message, &mail, &head) &&
		    head.is_last)
			expect_no_answer(joining, head.from);
		vb_mail_close_fds(&mail);
	}
}

/* Forgets members that are gone. True if another one that has not answered may soon do so. */
static bool check_on_members(struct joining *joining)
{
	bool is_any_running = false;

	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT && joining->unanswered_count; i++) {
		struct vb_mail_name name = vb_port_member_name(&joining->member->user, i);
		pid_t pid;

		if (!vb_receivers_set_has(&joining->unanswered, i))
			continue;
		if (!vb_mail_is_connected(joining->box, &name, &pid))
			expect_no_answer(joining, i);
		else if (!vb_process_is_stopped(pid))
			is_any_running = true;
	}
	return is_any_running;
}

/*
 * A process that got no CPU for a while still asks all members. A busy one may run, or be stopped
 * with a full mailbox.
 */
static bool decide_to_wait(struct joining *joining, uint64_t busy_patience_ns)
{
	uint64_t patience_ns = LEAVING_PATIENCE_NS;
	uint64_t now_ns;

	if (check_on_members(joining))
		patience_ns = RUNNING_PATIENCE_NS;
	else if (joining->is_any_busy)
		patience_ns = busy_patience_ns;
	else if (joining->unanswered_count)
		patience_ns = STOPPED_PATIENCE_NS;
	now_ns = vb_clock_now();
	return (joining->is_more_to_ask || now_ns - joining->progress_ns < patience_ns) &&
	       now_ns - joining->begin_ns < WHOLE_PATIENCE_NS;
}

static void begin_to_ask(struct joining *joining)
{
	joining->begin_ns = joining->progress_ns = vb_clock_now();
	joining->is_more_to_ask = true;
}

static void ask_and_wait(struct joining *joining)
{
	bool is_mail_due = ask_next(joining) || joining->unanswered_count;

	wait_for_answer(joining, is_mail_due ? ANSWER_PATIENCE_NS : MILLISECOND);
}

static uint16_t port_of_group(void)
{
	uint16_t port = vb_receivers_port();

	return port ? port : VB_ROCE_PORT;
}

/*
 * If the kernel reports no sockets of the group, all members are asked, and what they answer has to
 * do.
 */
static bool has_all_sockets(const struct joining *joining)
{
	bool is_port_known = vb_receivers_port() || !joining->is_port_foreign;
	uint32_t count = is_port_known ? vb_udp_count_receivers(port_of_group()) : 0;

	if (count)
		return count <= vb_receivers_count();
	return joining->are_all_asked ? !joining->unanswered_count : !count_others(joining);
}

/* One member is enough, if it knows all sockets that the kernel knows. */
static void collect_sockets(struct joining *joining)
{
	begin_to_ask(joining);
	while (!has_all_sockets(joining) && decide_to_wait(joining, LEAVING_PATIENCE_NS))
		ask_and_wait(joining);
}

/* --- a number and its socket ------------------------------------------------------------------ */

static bool claim(struct vb_port_member *member, uint32_t number)
{
	struct vb_mail_name name = vb_port_member_name(&member->user, number);

	if (number >= VB_PORT_MEMBER_COUNT || !vb_mail_claim(member->box, &name))
		return false;
	member->number = number;
	return true;
}

/* Saves us the attempt, and the member a connection. */
static bool is_surely_taken(const struct joining *joining, uint32_t number)
{
	struct vb_mail_name name = vb_port_member_name(&joining->member->user, number);

	return vb_mail_list_is_exact(joining->box) && vb_mail_is_listed(joining->box, &name);
}

/*
 * Takes the place of a member that is gone. A socket may have moved if another one before it is not
 * known.
 */
static bool adopt(struct joining *joining, uint32_t receive_buffer_length)
{
	struct vb_port_member *member = joining->member;

	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++) {
		int fd = vb_receivers_fd(i);

		member->is_place_in_doubt |= fd < 0;
		if (fd < 0 || is_surely_taken(joining, i) || !claim(member, i))
			continue;
		vb_udp_receiver_adopt(fd, receive_buffer_length);
		member->receiver = fd;
		return true;
	}
	return false;
}

/*
 * If other processes hold the port, the group uses another one: any free port, or the one that its
 * sockets have.
 */
static vb_err open_receiver(struct joining *joining, uint32_t receive_buffer_length, int *fd_out)
{
	struct vb_udp_config config = {
		.port = port_of_group(),
		.receive_buffer_length = receive_buffer_length,
	};
	vb_err err = vb_udp_receiver_open(&config, fd_out);

	if (err != VB_EBUSY)
		return err;
	if (!vb_receivers_port())
		collect_sockets(joining);
	config.port = vb_receivers_port();
	return vb_udp_receiver_open(&config, fd_out);
}

/* The process that had the number may just be dying: its descriptors close one after the other. */
static bool claim_soon(struct vb_port_member *member, uint32_t number)
{
	if (vb_receivers_fd(number) >= 0)
		return false;
	for (uint32_t i = 0; i < DYING_CLAIMS; i++) {
		if (i)
			syscall(SYS_nanosleep, &(struct timespec){ 0, MILLISECOND }, NULL);
		if (claim(member, number))
			return true;
	}
	return false;
}

/*
 * Claims the number of the socket's place, if it is known and free. Otherwise any number: packets
 * then arrive at other members and are handed over.
 */
static bool claim_place(struct vb_port_member *member, bool *is_in_place_out)
{
	uint32_t count = vb_udp_count_receivers(vb_udp_receiver_port(member->receiver));

	if (!count && !member->is_place_in_doubt)
		count = vb_receivers_count() + 1; /* the kernel does not tell */
	*is_in_place_out = count && claim_soon(member, count - 1);
	if (*is_in_place_out)
		return true;
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT; i++)
		if (vb_receivers_fd(i) < 0 && claim(member, i))
			return true;
	return false;
}

/* The other members must also hold our socket, and know whether its number is its place. */
static vb_err publish(struct vb_port_member *member, bool is_in_place)
{
	if (!vb_receivers_add(member->number, member->receiver))
		return VB_EINVAL;
	if (!is_in_place)
		vb_receivers_declare_disorder();
	vb_port_member_give_to_all(member);
	return VB_OK;
}

static vb_err add_place(struct joining *joining, uint32_t receive_buffer_length)
{
	struct vb_port_member *member = joining->member;
	bool is_in_place;
	vb_err err;

	member->is_place_in_doubt = !has_all_sockets(joining);
	err = open_receiver(joining, receive_buffer_length, &member->receiver);
	if (err)
		return err;
	if (!claim_place(member, &is_in_place)) {
		vb_udp_receiver_close(member->receiver);
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "join", .error = ENOSPC),
			     "%u adapters are open in this user's processes: there can be no more",
			     VB_PORT_MEMBER_COUNT);
		return VB_ENOSPC;
	}
	return publish(member, is_in_place);
}

/* --- joining and leaving ---------------------------------------------------------------------- */

/*
 * Members may use another port than the RoCE port, because other processes held it when the first
 * member came. The members' sockets show which port that is.
 */
static void learn_port(struct joining *joining)
{
	struct vb_port_holders holders;

	if (vb_receivers_port())
		return;
	vb_port_holders_find(VB_ROCE_PORT, &holders);
	joining->is_port_foreign = !holders.own_count || vb_port_holders_are_in_the_way(&holders);
}

static vb_err obtain_place(struct joining *joining, uint32_t receive_buffer_length)
{
	learn_port(joining);
	collect_sockets(joining);
	if (!adopt(joining, receive_buffer_length))
		return add_place(joining, receive_buffer_length);
	vb_port_member_resolve_doubt(joining->member);
	vb_port_member_give_to_all(joining->member); /* some may have closed it */
	return VB_OK;
}

/*
 * Gets the socket that the number has always had, if another member still holds it; otherwise a new
 * one. Packets to a new one take a detour.
 */
static vb_err obtain_place_again(struct joining *joining, uint32_t receive_buffer_length)
{
	struct vb_port_member *member = joining->member;
	uint32_t count;
	vb_err err;

	learn_port(joining);
	collect_sockets(joining);
	member->is_place_in_doubt = !has_all_sockets(joining);
	vb_mail_refresh_list(member->box);
	member->receiver = vb_receivers_fd(member->number);
	if (member->receiver >= 0) {
		vb_udp_receiver_adopt(member->receiver, receive_buffer_length);
		vb_port_member_give_to_all(member);
		return VB_OK;
	}
	err = open_receiver(joining, receive_buffer_length, &member->receiver);
	if (err)
		return err;
	count = vb_udp_count_receivers(vb_udp_receiver_port(member->receiver));
	return publish(member, !count || count == member->number + 1);
}

/* Learns the GUID of the host from the other members. The very first member makes it. */
static vb_err learn_guid(struct joining *joining)
{
	joining->has_number = true; /* by now */
	begin_to_ask(joining);
	while (!vb_guid() &&
	       (ask_next(joining) || joining->is_any_busy || check_on_members(joining)) &&
	       decide_to_wait(joining, RUNNING_PATIENCE_NS))
		wait_for_answer(joining, joining->is_any_busy ? MILLISECOND : ANSWER_PATIENCE_NS);
	if (vb_guid())
		return VB_OK;
	vb_mail_refresh_list(joining->box);
	if (count_others(joining))
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join"),
			"none of this user's programs on this host tells its GUID: this one makes another");
	return vb_guid_make();
}

static vb_err join(struct vb_port_member *member, uint32_t receive_buffer_length, bool has_number)
{
	struct vb_mail_name name = vb_port_member_joining_name(&member->user);
	struct joining joining = { .member = member,
				   .box = vb_mail_open(&member->user, ANSWERS_CONNECTIONS),
				   .has_number = has_number };
	int lock;
	vb_err err;

	if (!joining.box)
		return VB_ENOMEM;
	lock = vb_name_lock_take(&name, &member->user);
	vb_mail_refresh_list(joining.box);
	err = has_number ? obtain_place_again(&joining, receive_buffer_length)
			 : obtain_place(&joining, receive_buffer_length);
	vb_name_lock_release(lock);
	if (!err)
		err = learn_guid(&joining);
	vb_mail_close(joining.box);
	if (err)
		return err;
	vb_totals_ensure();
	ask_some(member);
	return VB_OK;
}

/* Creates a member with a mailbox, and nothing else yet. */
static struct vb_port_member *make(void)
{
	struct vb_port_member *member = vb_heap_alloc(1, sizeof(*member));

	if (!member)
		return NULL;
	member->user = vb_mail_user();
	member->box = vb_mail_open(&member->user, VB_MAIL_CONNECTIONS);
	if (member->box)
		return member;
	vb_heap_free(member);
	return NULL;
}

static void unmake(struct vb_port_member *member)
{
	vb_mail_close(member->box);
	vb_heap_free(member);
}

static vb_err finish_joining(struct vb_port_member *member, uint32_t receive_buffer_length,
			     bool has_number, struct vb_port_member **member_out)
{
	vb_err err;

	if (vb_receivers_open() && !has_number)
		vb_guid_forget();
	vb_totals_open();
	err = join(member, receive_buffer_length, has_number);
	if (err) {
		vb_totals_close();
		vb_receivers_close();
		unmake(member);
		return err;
	}
	*member_out = member;
	return VB_OK;
}

vb_err vb_port_member_join(uint32_t receive_buffer_length, struct vb_port_member **member_out)
{
	struct vb_port_member *member = make();

	if (member && member->user.is_overflow)
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "join"),
			"this user has the overflow uid %u of a user namespace: nobody can be told from others, so peers on this host are reached by packets only",
			member->user.uid);
	return member ? finish_joining(member, receive_buffer_length, false, member_out)
		      : VB_ENOMEM;
}

vb_err vb_port_member_rejoin(uint32_t number, uint32_t receive_buffer_length,
			     struct vb_port_member **member_out)
{
	struct vb_port_member *member = make();

	if (!member)
		return VB_ENOMEM;
	if (!claim(member, number)) {
		unmake(member);
		return VB_EBUSY;
	}
	vb_receivers_drop_lost();
	return finish_joining(member, receive_buffer_length, true, member_out);
}

bool vb_port_member_find_other(const struct vb_port_member *member, uint32_t *number_out)
{
	bool is_found = false;

	vb_mail_refresh_list(member->box);
	for (uint32_t i = 0; i < VB_PORT_MEMBER_COUNT && !is_found; i++) {
		struct vb_mail_name name = vb_port_member_name(&member->user, i);
		pid_t pid;

		is_found = i != member->number && vb_mail_is_listed(member->box, &name) &&
			   vb_mail_find_holder(member->box, &name, &pid);
		if (is_found)
			*number_out = i;
	}
	return is_found;
}

void vb_port_member_drop_lost_connections(struct vb_port_member *member)
{
	vb_mail_drop_lost_connections(member->box);
}

bool vb_port_member_is_intact(const struct vb_port_member *member)
{
	return vb_mail_is_intact(member->box) && vb_fd_is_ours(member->receiver);
}

/*
 * Leaves a socket alone that is no longer ours, or is the parent's, or that may get packets of
 * other members: those will find out, and read it.
 */
void vb_port_member_leave(struct vb_port_member *member)
{
	if (vb_fd_is_ours(member->receiver)) {
		vb_port_member_resolve_doubt(member);
		if (!member->is_place_in_doubt && !vb_receivers_are_out_of_order())
			vb_udp_receiver_retire(member->receiver);
	}
	vb_mail_close(member->box);
	vb_totals_close();
	vb_receivers_close();
	vb_heap_free(member);
}
