/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking for recordings, and taking them. */
#include "host/registry/recording_query.h"

#include "host/registry/mail.h"
#include "host/registry/port_member_priv.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct vb_mail_box *vb_recording_query_open(const struct vb_recording_wish *wish,
					    char variable[VB_RECORDING_TEXT_MAX])
{
	struct vb_mail_user user = vb_mail_user();
	struct vb_mail_box *box = vb_mail_open(&user, VB_PORT_MEMBER_COUNT);
	struct vb_mail_name name;
	char own[32];

	snprintf(own, sizeof(own), "trace-%d", (int)getpid());
	name = vb_mail_name(&user, own);
	if (!box || !vb_mail_claim(box, &name)) {
		vb_mail_close(box);
		return NULL;
	}
	snprintf(variable, VB_RECORDING_TEXT_MAX, "%s:%" PRIu32 ":%" PRIu32 ":%" PRIu32, own,
		 wish->packet_length_max, wish->qpn, wish->has_events);
	return box;
}

void vb_recording_query_close(struct vb_mail_box *box)
{
	vb_mail_close(box);
}

uint32_t vb_recording_query_ask(struct vb_mail_box *box, pid_t pid,
				const struct vb_recording_wish *wish)
{
	struct vb_port_member_recording_query query = { VB_PORT_MEMBER_RECORDING_QUERY, *wish };
	struct iovec part = { &query, sizeof(query) };
	struct vb_mail_user user = vb_mail_user();
	uint32_t count = 0;

	vb_mail_refresh_list(box);
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT; number++) {
		struct vb_mail_name name = vb_port_member_name(&user, number);
		pid_t holder;

		count += vb_mail_is_listed(box, &name) &&
			 vb_mail_find_holder(box, &name, &holder) && holder == pid &&
			 vb_mail_send(box, &name, &part, 1) == 0;
	}
	return count;
}

static bool is_among(pid_t pid, const pid_t *pids, uint32_t count)
{
	while (count && pids[count - 1] != pid)
		count--;
	return count;
}

uint32_t vb_recording_query_list(pid_t *pids, uint32_t capacity)
{
	struct vb_mail_user user = vb_mail_user();
	struct vb_mail_box *box = vb_mail_open(&user, VB_PORT_MEMBER_COUNT);
	uint32_t count = 0;

	if (!box)
		return 0;
	vb_mail_refresh_list(box);
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT && count < capacity; number++) {
		struct vb_mail_name name = vb_port_member_name(&user, number);
		pid_t holder;

		if (vb_mail_is_listed(box, &name) && vb_mail_find_holder(box, &name, &holder) &&
		    !is_among(holder, pids, count))
			pids[count++] = holder;
	}
	vb_mail_close(box);
	return count;
}

bool vb_recording_query_take(struct vb_mail_box *box, struct vb_recording_answer *answer)
{
	struct vb_port_member_recording head;
	struct vb_mail mail;

	while (vb_mail_receive(box, &head, sizeof(head), &mail)) {
		bool is_answer = mail.length == sizeof(head) &&
				 head.kind == VB_PORT_MEMBER_RECORDING;

		if (is_answer) {
			*answer = (struct vb_recording_answer){ .pid = mail.pid,
								.number = head.number };
			answer->is_refused =
				mail.fd_count != 1 ||
				!vb_recording_reader_open(&answer->reader, mail.fds[0]);
		}
		vb_mail_close_fds(&mail);
		if (is_answer)
			return true;
	}
	return false;
}
