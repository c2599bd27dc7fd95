/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking all adapters how they are. */
#include "host/state.h"

#include "host/mail.h"
#include "host/member_priv.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

int vb_state_ask(uint32_t *asked_count_out)
{
	uint32_t kind = VB_MEMBER_ASKS_STATE;
	struct iovec part = { &kind, sizeof(kind) };
	int fd = vb_mail_open();

	*asked_count_out = 0;
	if (fd < 0)
		return fd;
	if (!vb_mail_claim_any(fd)) {
		vb_mail_close(fd);
		return -EADDRNOTAVAIL;
	}
	for (uint32_t number = 0; number < VB_MEMBER_COUNT; number++) {
		struct vb_mail_name name = vb_member_name(geteuid(), number);

		*asked_count_out += vb_mail_send(fd, &name, &part, 1) == 0;
	}
	return fd;
}

bool vb_state_take(int fd, uint32_t wait_ms, struct vb_state_answer *answer)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	uint8_t bytes[sizeof(struct vb_member_state) + VB_STATE_TEXT_MAX];
	struct vb_member_state head = { 0 };
	struct vb_mail mail;

	do {
		if (poll(&poll_fd, 1, (int)wait_ms) <= 0 ||
		    !vb_mail_receive(fd, geteuid(), bytes, sizeof(bytes), &mail))
			return false;
		vb_mail_close_fds(&mail);
		if (mail.length >= sizeof(head))
			memcpy(&head, bytes, sizeof(head));
	} while (head.kind != VB_MEMBER_STATE);
	answer->number = head.number;
	answer->pid = mail.pid;
	memcpy(answer->text, bytes + sizeof(head), mail.length - sizeof(head));
	answer->text[mail.length - sizeof(head)] = 0;
	return true;
}

void vb_state_close(int fd)
{
	vb_mail_close(fd);
}
