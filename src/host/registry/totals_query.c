/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The query for the totals. It is the question of a process that joins and has all sockets already:
 * the answer then has no descriptor but that of the totals. One member is enough.
 */
#include "host/registry/totals_query.h"

#include "host/registry/mail.h"
#include "host/registry/port_member_priv.h"
#include "host/sys/clock.h"
#include "host/sys/sealed.h"
#include "link/fd.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MILLISECOND 1000000ull
#define ANSWER_PATIENCE_NS (10 * MILLISECOND) /* before the next member is asked as well */
#define ANSWERS_PATIENCE_NS (1000 * MILLISECOND) /* for all of them */

struct query {
	struct vb_mail_user user;
	struct vb_mail_box *box;
	uint32_t next; /* the next member to ask */
	uint32_t asked_count;
	uint32_t answered_count; /* also by members that have no totals */
	bool is_any_there;
};

/* False when all were asked. A member that does not keep up is not asked again. */
static bool ask_next(struct query *query)
{
	struct vb_port_member_asks asks = { .kind = VB_PORT_MEMBER_SOCKETS_QUERY };
	struct iovec part = { &asks, sizeof(asks) };

	memset(&asks.held, 0xff, sizeof(asks.held));
	while (query->next < VB_PORT_MEMBER_COUNT) {
		struct vb_mail_name name = vb_port_member_name(&query->user, query->next++);
		int result;

		if (!vb_mail_is_listed(query->box, &name))
			continue;
		result = vb_mail_send(query->box, &name, &part, 1);
		query->is_any_there |= !result || result == -EAGAIN;
		if (result)
			continue;
		query->asked_count++;
		return true;
	}
	return false;
}

static const struct vb_totals *map(int fd)
{
	struct vb_totals *totals = vb_sealed_map(fd, sizeof(*totals), PROT_READ);

	if (totals && totals->layout != VB_TOTALS_LAYOUT) {
		munmap(totals, sizeof(*totals));
		totals = NULL;
	}
	return totals;
}

static const struct vb_totals *take_answer(struct query *query)
{
	struct vb_port_member_sockets answer;
	const struct vb_totals *totals = NULL;
	struct vb_mail mail;

	while (!totals && vb_mail_receive(query->box, &answer, sizeof(answer), &mail)) {
		bool is_answer = mail.length == sizeof(answer) &&
				 answer.kind == VB_PORT_MEMBER_SOCKETS;

		query->answered_count += is_answer;
		if (is_answer && mail.fd_count && answer.numbers[0] == VB_PORT_MEMBER_TOTALS_NUMBER)
			totals = map(mail.fds[0]);
		vb_mail_close_fds(&mail);
	}
	return totals;
}

static void wait_for_mail(const struct query *query, uint64_t ns)
{
	struct pollfd fd = { .fd = vb_mail_fd(query->box), .events = POLLIN };
	struct timespec patience = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	syscall(SYS_ppoll, &fd, 1, &patience, NULL, 0);
}

static const struct vb_totals *ask(struct query *query)
{
	uint64_t end_ns = vb_clock_now() + ANSWERS_PATIENCE_NS;
	const struct vb_totals *totals = NULL;
	uint64_t now_ns;

	while (!totals && (now_ns = vb_clock_now()) < end_ns) {
		bool is_asked = ask_next(query);

		if (!is_asked && query->answered_count == query->asked_count)
			break;
		wait_for_mail(query, is_asked ? ANSWER_PATIENCE_NS : end_ns - now_ns);
		totals = take_answer(query);
	}
	return totals;
}

const struct vb_totals *vb_totals_query(int *error_out)
{
	struct query query = { .user = vb_mail_user() };
	const struct vb_totals *totals;

	if (query.user.is_overflow) {
		*error_out = EOPNOTSUPP;
		return NULL;
	}
	query.box = vb_mail_open(&query.user, VB_PORT_MEMBER_COUNT);
	if (!query.box) {
		*error_out = EMFILE;
		return NULL;
	}
	vb_mail_refresh_list(query.box);
	totals = ask(&query);
	vb_mail_close(query.box);
	*error_out = !totals && query.is_any_there ? EAGAIN : 0;
	return totals;
}

void vb_totals_end_query(const struct vb_totals *totals)
{
	if (totals)
		munmap((void *)(uintptr_t)totals, sizeof(*totals));
}

/* --- the sum --- */

/* Their owners go on counting meanwhile. */
static uint64_t load(const uint64_t *count)
{
	return __atomic_load_n(count, __ATOMIC_RELAXED);
}

static void add(uint64_t *sums, const uint64_t *counts, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		sums[i] += load(&counts[i]);
}

static void add_direct(struct vb_totals_direct *sum, const struct vb_totals_direct *direct)
{
	sum->ops += load(&direct->ops);
	sum->written += load(&direct->written);
	sum->read += load(&direct->read);
}

/* A row has a place for each device; those of the devices themselves need not be known. */
static void add_row(const struct vb_totals *totals, const struct vb_totals_row *row,
		    uint32_t ifindex, struct vb_totals_sum *sum)
{
	bool is_of_device = row->key >> 32 == ifindex;

	if (is_of_device) {
		add(sum->counters.counts, row->counters.counts, VB_COUNTER_COUNT);
		add(sum->counters.drops, row->counters.drops, VB_DROP_COUNT);
		add(sum->udp, row->udp, VB_UDP_COUNTER_COUNT);
	}
	for (uint32_t i = 0; i < VB_TOTALS_DEVICES && totals->devices[i]; i++) {
		if (is_of_device)
			add_direct(&sum->initiated, &row->direct[i]);
		if (totals->devices[i] == ifindex)
			add_direct(&sum->targeted, &row->direct[i]);
	}
}

void vb_totals_add_up(const struct vb_totals *totals, uint32_t ifindex,
		      struct vb_totals_sum *sum_out)
{
	*sum_out = (struct vb_totals_sum){ 0 };
	for (uint32_t i = 0; totals && i < VB_TOTALS_ROWS && totals->rows[i].key; i++)
		add_row(totals, &totals->rows[i], ifindex, sum_out);
}
