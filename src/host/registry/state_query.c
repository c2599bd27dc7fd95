/* SPDX-License-Identifier: BSD-2-Clause */
/* The query of all adapters for their state. */
#include "host/registry/state_query.h"

#include "host/registry/mail.h"
#include "host/registry/port_member_priv.h"
#include "host/sys/clock.h"
#include "host/sys/sealed.h"

#include <poll.h>
#include <string.h>
#include <sys/mman.h>

struct vb_mail_box *vb_state_ask(enum vb_state_form form, uint32_t *asked_count_out)
{
	static const uint32_t kinds[] = {
		[VB_STATE_TEXT] = VB_PORT_MEMBER_STATE_QUERY,
		[VB_STATE_REPORT] = VB_PORT_MEMBER_REPORT_QUERY,
		[VB_STATE_METER] = VB_PORT_MEMBER_METER_QUERY,
	};
	uint32_t kind = kinds[form];
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

/* False if the memory is not what the sender says it is. */
static bool map_report(const struct vb_port_member_report *head, const struct vb_mail *mail,
		       struct vb_state_report_answer *answer)
{
	*answer = (struct vb_state_report_answer){
		.number = head->number,
		.pid = mail->pid,
		.length = head->length,
	};
	if (head->length && mail->fd_count == 1)
		answer->text = vb_sealed_map(mail->fds[0], head->length, PROT_READ);
	return answer->text;
}

bool vb_state_take_report(struct vb_mail_box *box, uint32_t wait_ms,
			  struct vb_state_report_answer *answer)
{
	uint64_t end_ns = vb_clock_now() + wait_ms * 1000000ull;
	bool is_taken = false;

	while (!is_taken) {
		struct vb_port_member_report head = { 0 };
		struct vb_mail mail;

		if (!await_mail(box, end_ns, &head, sizeof(head), &mail))
			return false;
		is_taken = mail.length == sizeof(head) && head.kind == VB_PORT_MEMBER_REPORT &&
			   map_report(&head, &mail, answer);
		vb_mail_close_fds(&mail);
	}
	return true;
}

void vb_state_end_report(const struct vb_state_report_answer *answer)
{
	munmap((void *)(uintptr_t)answer->text, answer->length);
}

void vb_state_close(struct vb_mail_box *box)
{
	vb_mail_close(box);
}
