/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The work of a port member while it is one: it hands packets to their owners, and answers members
 * that join.
 */
#include "host/registry/port_member_priv.h"

#include "host/sys/sealed.h"
#include "link/fd.h"
#include "link/udp.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PARTS_MAX 512
#define MESSAGE_BATCH 8u /* messages that bring no packets */

/* What precedes the bytes of each packet. */
struct handed {
	struct vb_flow flow;
	uint32_t length;
	uint16_t ip_id;
};

uint32_t vb_port_member_number(const struct vb_port_member *member)
{
	return member->number;
}

uint32_t vb_port_member_of_qpn(vb_qpn qpn)
{
	return qpn.v >> VB_PORT_MEMBER_QPN_SHIFT;
}

uint32_t vb_port_member_of_frame(const struct vb_port_member *member, const struct vb_frame *frame)
{
	vb_qpn qpn;
	uint32_t owner;

	if (frame->head.length < VB_BTH_SIZE)
		return member->number;
	qpn = vb_bth_load(frame->head.data).destination;
	owner = vb_port_member_of_qpn(qpn);
	return owner < VB_PORT_MEMBER_COUNT && qpn.v > 1 ? owner : member->number;
}

const int *vb_port_member_receiver(const struct vb_port_member *member)
{
	return &member->receiver;
}

bool vb_port_member_has_roce_port(const struct vb_port_member *member)
{
	return vb_udp_receiver_port(member->receiver) == VB_ROCE_PORT;
}

bool vb_port_member_is_alone(const struct vb_port_member *member)
{
	(void)member;
	return vb_receivers_count() == 1;
}

void vb_port_member_steer(struct vb_udp *udp, uint32_t qp1_to)
{
	(void)!vb_udp_steer(udp, VB_PORT_MEMBER_QPN_SHIFT, VB_PORT_MEMBER_QPN_MASK, qp1_to);
}

static void read_held(struct vb_port_member *member, struct vb_udp *udp)
{
	struct vb_receivers_set held = vb_receivers_held();

	for (uint32_t i = 0; i < VB_RECEIVERS_MAX; i++)
		if (i != member->number && vb_receivers_set_has(&held, i) &&
		    !vb_receivers_set_has(&member->read_also, i) &&
		    !vb_udp_read_also(udp, vb_receivers_fd(i)))
			vb_receivers_set_add(&member->read_also, i);
}

void vb_port_member_read_all(struct vb_port_member *member, struct vb_udp *udp)
{
	if (vb_receivers_are_out_of_order())
		read_held(member, udp);
}

void vb_port_member_set_taker(struct vb_port_member *member, vb_port_member_take_mail *take,
			      void *owner)
{
	member->take = take;
	member->owner = owner;
}

int vb_port_member_send(struct vb_port_member *member, uint32_t to, const struct iovec *part,
			const int *fds, uint32_t fd_count)
{
	struct vb_mail_name name = vb_port_member_name(&member->user, to);

	return vb_mail_send_fds(member->box, &name, part, fds, fd_count);
}

void vb_port_member_reply(const struct vb_port_member *member, const struct vb_mail *mail,
			  const struct iovec *part)
{
	(void)vb_mail_answer(member->box, mail->connection, part, 1, NULL, 0);
}

bool vb_port_member_is_same_user(const struct vb_port_member *member)
{
	return geteuid() == member->user.uid;
}

int vb_port_member_fd(const struct vb_port_member *member)
{
	return vb_mail_fd(member->box);
}

const struct vb_port_member_counts *vb_port_member_counts(const struct vb_port_member *member)
{
	return &member->counts;
}

static struct iovec make_iovec_of(const void *bytes, size_t length)
{
	return (struct iovec){ (void *)(uintptr_t)bytes, length };
}

static uint32_t length_of(const struct vb_frame *frame)
{
	uint32_t length = frame->head.length;

	for (uint32_t i = 0; i < frame->rest_count; i++)
		length += frame->rest[i].length;
	return length;
}

static bool send_packets(struct vb_port_member *member, uint32_t to, const struct vb_frame *frames,
			 uint32_t count)
{
	uint32_t kind = VB_PORT_MEMBER_PACKETS;
	struct handed handed[VB_PORT_MEMBER_BATCH];
	struct iovec parts[PARTS_MAX] = { make_iovec_of(&kind, sizeof(kind)) };
	uint32_t part_count = 1;
	struct vb_mail_name name = vb_port_member_name(&member->user, to);

	for (uint32_t i = 0; i < count; i++) {
		const struct vb_frame *frame = &frames[i];

		if (part_count + 2 + frame->rest_count > PARTS_MAX)
			return false;
		handed[i] = (struct handed){ frame->path.ip, length_of(frame), frame->ip_id };
		parts[part_count++] = make_iovec_of(&handed[i], sizeof(handed[i]));
		parts[part_count++] = make_iovec_of(frame->head.data, frame->head.length);
		for (uint32_t k = 0; k < frame->rest_count; k++)
			parts[part_count++] =
				make_iovec_of(frame->rest[k].data, frame->rest[k].length);
	}
	return vb_mail_send(member->box, &name, parts, part_count) == 0;
}

bool vb_port_member_hand_over(struct vb_port_member *member, uint32_t to,
			      const struct vb_frame *frames, uint32_t count)
{
	bool is_sent = send_packets(member, to, frames, count);

	if (is_sent)
		member->counts.handed_over += count;
	else
		member->counts.lost += count;
	return is_sent;
}

static uint32_t load_packets(const uint8_t *next, size_t left,
			     struct vb_frame frames[VB_PORT_MEMBER_BATCH])
{
	uint32_t count = 0;

	while (count < VB_PORT_MEMBER_BATCH && left >= sizeof(struct handed)) {
		struct handed handed;

		memcpy(&handed, next, sizeof(handed));
		next += sizeof(handed);
		left -= sizeof(handed);
		if (handed.length > left)
			break;
		frames[count++] = (struct vb_frame){
			.path.ip = handed.flow,
			.ip_id = handed.ip_id,
			.head = { next, handed.length },
		};
		next += handed.length;
		left -= handed.length;
	}
	return count;
}

/* Only one asker is remembered. One that asks meanwhile must ask again, or does without. */
static void note_asker(struct vb_port_member *member, const struct vb_mail *mail,
		       enum vb_port_member_question question)
{
	member->asker = mail->connection;
	member->question = question;
}

enum vb_port_member_question vb_port_member_question(const struct vb_port_member *member)
{
	return member->question;
}

void vb_port_member_answer_state(struct vb_port_member *member, const char *text, uint32_t length)
{
	struct vb_port_member_state head = { VB_PORT_MEMBER_STATE, member->number };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)(uintptr_t)text, length } };

	member->question = VB_PORT_MEMBER_NOT_ASKED;
	(void)vb_mail_answer(member->box, member->asker, parts, 2, NULL, 0);
}

static int store_in_memory(const char *text, uint64_t length)
{
	int fd = length ? vb_sealed_open("verbatim-report", length) : -1;
	char *bytes = fd < 0 ? NULL : vb_sealed_map(fd, length, PROT_READ | PROT_WRITE);

	if (!bytes) {
		vb_fd_close(fd);
		return -1;
	}
	memcpy(bytes, text, length);
	munmap(bytes, length);
	return fd;
}

void vb_port_member_answer_report(struct vb_port_member *member, const char *text, uint64_t length)
{
	int fd = store_in_memory(text, length);
	struct vb_port_member_report head = { VB_PORT_MEMBER_REPORT, member->number,
					      fd < 0 ? 0 : length };
	struct iovec part = { &head, sizeof(head) };

	member->question = VB_PORT_MEMBER_NOT_ASKED;
	(void)vb_mail_answer(member->box, member->asker, &part, 1, &fd, fd >= 0);
	vb_fd_close(fd);
}

static void note_observer(struct vb_port_member *member, const struct vb_mail *mail)
{
	struct vb_port_member_recording_query query;

	if (mail->length != sizeof(query))
		return;
	memcpy(&query, member->message, sizeof(query));
	member->wish = query.wish;
	note_asker(member, mail, VB_PORT_MEMBER_ASKED_RECORDING);
}

const struct vb_recording_wish *vb_port_member_wish(const struct vb_port_member *member)
{
	return &member->wish;
}

void vb_port_member_answer_recording(struct vb_port_member *member, int fd)
{
	struct vb_port_member_recording head = { VB_PORT_MEMBER_RECORDING, member->number };
	struct iovec part = { &head, sizeof(head) };

	member->question = VB_PORT_MEMBER_NOT_ASKED;
	(void)vb_mail_answer(member->box, member->asker, &part, 1, &fd, fd >= 0);
}

bool vb_port_member_offer_recording(struct vb_port_member *member, const char *observer, int fd)
{
	struct vb_port_member_recording head = { VB_PORT_MEMBER_RECORDING, member->number };
	struct vb_mail_name name = vb_mail_name(&member->user, observer);
	struct iovec part = { &head, sizeof(head) };

	vb_mail_refresh_list(member->box);
	return vb_mail_send_fds(member->box, &name, &part, &fd, 1) == 0;
}

uint32_t vb_port_member_take(struct vb_port_member *member,
			     struct vb_frame frames[VB_PORT_MEMBER_BATCH])
{
	struct vb_mail mail;

	vb_port_member_give_more(member);
	for (uint32_t i = 0; i < MESSAGE_BATCH; i++) {
		uint32_t kind = 0;
		uint32_t count = 0;

		if (!vb_mail_receive(member->box, member->message, sizeof(member->message), &mail))
			break;
		if (mail.length >= sizeof(kind))
			memcpy(&kind, member->message, sizeof(kind));
		if (kind == VB_PORT_MEMBER_PACKETS)
			count = load_packets(member->message + sizeof(kind),
					     mail.length - sizeof(kind), frames);
		else if (kind == VB_PORT_MEMBER_SOCKETS_QUERY)
			vb_port_member_answer(member, &mail);
		else if (kind == VB_PORT_MEMBER_SOCKETS)
			vb_port_member_on_sockets(member, &mail);
		else if (kind == VB_PORT_MEMBER_STATE_QUERY)
			note_asker(member, &mail, VB_PORT_MEMBER_ASKED_STATE);
		else if (kind == VB_PORT_MEMBER_REPORT_QUERY)
			note_asker(member, &mail, VB_PORT_MEMBER_ASKED_REPORT);
		else if (kind == VB_PORT_MEMBER_METER_QUERY)
			note_asker(member, &mail, VB_PORT_MEMBER_ASKED_METER);
		else if (kind == VB_PORT_MEMBER_RECORDING_QUERY)
			note_observer(member, &mail);
		else if (member->take)
			member->take(member->owner, member, kind, member->message, &mail);
		vb_mail_close_fds(&mail);
		member->counts.taken += count;
		if (count)
			return count;
	}
	return 0;
}
