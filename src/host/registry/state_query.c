/* SPDX-License-Identifier: BSD-2-Clause */
/* The query of all adapters for their state. */
#include "host/registry/state_query.h"

#include "host/registry/mail.h"
#include "host/registry/port_member_priv.h"
#include "host/sys/clock.h"

#include <poll.h>
#include <string.h>

struct vb_mail_box *vb_state_ask(uint32_t *asked_count_out)
{
	uint32_t kind = VB_PORT_MEMBER_STATE_QUERY;
	struct iovec part = { &kind, sizeof(kind) };
	struct vb_mail_user user = vb_mail_user();
	struct vb_mail_box *box = vb_mail_open(&user, VB_PORT_MEMBER_COUNT);

	*asked_count_out = 0;
	if (!box)
		return NULL;
	vb_mail_refresh_list(box);
	for (uint32_t number = 0; number < VB_PORT_MEMBER_COUNT; number++) {
		struct vb_mail_name name = vb_port_member_name(&user, number);

		*asked_count_out += vb_mail_is_listed(box, &name) &&
				    vb_mail_send(box, &name, &part, 1) == 0;
	}
	return box;
}

/* A connection that ends also wakes us. */
static bool await_mail(struct vb_mail_box *box, uint64_t end_ns, void *bytes, size_t size,
		       struct vb_mail *mail)
{
	struct pollfd fd = { .fd = vb_mail_fd(box), .events = POLLIN };

	while (!vb_mail_receive(box, bytes, size, mail)) {
		uint64_t now_ns = vb_clock_now();

		if (now_ns >= end_ns || poll(&fd, 1, (int)((end_ns - now_ns) / 1000000 + 1)) < 0)
			return false;
	}
	return true;
}

bool vb_state_take(struct vb_mail_box *box, uint32_t wait_ms, struct vb_state_answer *answer)
{
	uint8_t bytes[sizeof(struct vb_port_member_state) + VB_STATE_TEXT_MAX];
	struct vb_port_member_state head = { 0 };
	uint64_t end_ns = vb_clock_now() + wait_ms * 1000000ull;
	struct vb_mail mail;

	do {
		if (!await_mail(box, end_ns, bytes, sizeof(bytes), &mail))
			return false;
		vb_mail_close_fds(&mail);
		if (mail.length >= sizeof(head))
			memcpy(&head, bytes, sizeof(head));
	} while (head.kind != VB_PORT_MEMBER_STATE);
	answer->number = head.number;
	answer->pid = mail.pid;
	memcpy(answer->text, bytes + sizeof(head), mail.length - sizeof(head));
	answer->text[mail.length - sizeof(head)] = 0;
	return true;
}

void vb_state_close(struct vb_mail_box *box)
{
	vb_mail_close(box);
}
