/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tag matching against a sender that writes what it likes into the headers of its messages. Two QPs
 * of one adapter are connected: the sender, and the receiver with an SRQ that has tags. The input
 * is a sequence of steps: tags added and deleted, counts reported, receives posted, messages of
 * chosen or arbitrary bytes, packets delivered or lost, requests of the receiver's own, QPs that
 * fail or begin again, time.
 *
 * After every step: only buffers of tags and receives that are not complete have changed, and no
 * byte of the receiver's secret is in them; each tag ends exactly once, with at most one match
 * before that; the receiver's own requests complete in order. At the end no tag is left under way,
 * and as many can be added as at the beginning.
 */
#include "fuzz.h"
#include "support_tags.h"

#include "wire/tag_header.h"

#include <string.h>

static bool take_buffer(uint8_t *buffer)
{
	for (uint32_t i = 0; i < BUFFER_COUNT && tag_rig.use_count < USES_MAX; i++) {
		if (tag_rig.is_taken[i])
			continue;
		*buffer = (uint8_t)i;
		return true;
	}
	return false;
}

static struct vb_sge sge_of(uint8_t buffer, uint32_t length)
{
	return (struct vb_sge){ IOVA + BUFFERS + (uint64_t)buffer * BUFFER_STEP, length,
				vb_mr_key(tag_rig.all) };
}

static uint32_t input_length(struct input *input)
{
	return input_8(input) & 1 ? input_below(input, 80) : input_16(input) % (BUFFER_LENGTH + 1);
}

static void add_tag(struct input *input)
{
	struct vb_sge sge;
	struct vb_tag_request request = {
		.wr_id = tag_rig.use_count,
		.opcode = VB_TAG_ADD,
		.flags = VB_TAG_SIGNALED,
		.unexpected_count = tag_rig.unexpected,
		.recv_wr_id = tag_rig.use_count,
		.sges = &sge,
		.sge_count = 1,
	};
	struct use use = { .is_tag = true, .is_open = true };

	request.flags |= input_8(input) & VB_TAG_HAS_COUNT;
	request.tag = input_below(input, 4);
	request.mask = input_below(input, 4);
	if (!take_buffer(&use.buffer))
		return;
	sge = sge_of(use.buffer, input_length(input));
	if (vb_srq_post_tag(tag_rig.srq, &request, &use.handle))
		return;
	tag_rig.uses[tag_rig.use_count++] = use;
	tag_rig.is_taken[use.buffer] = true;
	vb_srq_ring_doorbell(tag_rig.srq);
}

static void delete_tag(struct input *input)
{
	uint32_t index = input_8(input);
	struct vb_tag_request request = { .wr_id = index, .opcode = VB_TAG_DELETE };

	if (index >= tag_rig.use_count || !tag_rig.uses[index].is_tag) {
		request.handle = input_16(input); /* no tag ever has such a handle */
	} else {
		request.handle = tag_rig.uses[index].handle;
		request.flags = VB_TAG_SIGNALED;
	}
	(void)!vb_srq_post_tag(tag_rig.srq, &request, NULL);
	vb_srq_ring_doorbell(tag_rig.srq);
}

static void report_count(struct input *input)
{
	struct vb_tag_request request = {
		.opcode = VB_TAG_SYNC,
		.unexpected_count = tag_rig.unexpected,
	};

	request.flags = input_8(input) & 3;
	request.unexpected_count += input_8(input) == 0xff;
	(void)!vb_srq_post_tag(tag_rig.srq, &request, NULL);
	vb_srq_ring_doorbell(tag_rig.srq);
}

static void post_plain(struct input *input)
{
	struct vb_sge sge;
	struct vb_recv_request request = { .wr_id = tag_rig.use_count,
					   .sges = &sge,
					   .sge_count = 1 };
	struct use use = { .is_open = true };

	if (!take_buffer(&use.buffer))
		return;
	sge = sge_of(use.buffer, input_length(input));
	if (vb_srq_post_recv(tag_rig.srq, &request))
		return;
	tag_rig.uses[tag_rig.use_count++] = use;
	tag_rig.is_taken[use.buffer] = true;
}

/* Headers near what is right, with a key and an address of either side, or arbitrary ones. */
static void write_headers(struct input *input, uint8_t *to)
{
	uint8_t opcode = (uint8_t)input_below(input, 5);
	uint64_t tag = input_below(input, 8);
	const struct vb_tmh tmh = { opcode, 0xc0de, tag };
	uint32_t style = input_8(input);
	struct vb_rvh rvh = {
		.address = IOVA + (style & 1 ? SECRET : MESSAGES) + (style & 2 ? 0x1f80 : 0),
		.rkey = vb_mr_key(style & 4 ? tag_rig.all : tag_rig.messages),
		.length = style & 8 ? input_32(input) : input_16(input) % BUFFER_LENGTH,
	};

	if (style & 16)
		rvh.address = input_64(input);
	if (style & 32)
		rvh.rkey = input_32(input);
	vb_tmh_store(to, &tmh);
	vb_rvh_store(to + VB_TMH_SIZE, &rvh);
}

static void send_message(struct input *input)
{
	uint32_t style = input_8(input);
	uint32_t at = (style & 7) * 0x400;
	struct vb_sge sge = { IOVA + MESSAGES + at, 0, vb_mr_key(tag_rig.messages) };
	struct vb_send_request request = {
		.opcode = style & 0x40 ? VB_WR_SEND_IMM : VB_WR_SEND,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
	};

	if (style & 0x80) {
		size_t length;
		const uint8_t *bytes = input_bytes(input, input_8(input), &length);

		for (size_t i = 0; i < length; i++)
			tag_area[at + i] = bytes[i] == SECRET_BYTE ? 0 : bytes[i];
		sge.length = (uint32_t)length;
	} else {
		write_headers(input, tag_area + at);
		for (uint32_t i = 0; i < VB_TMH_SIZE + VB_RVH_SIZE; i++)
			if (tag_area[at + i] == SECRET_BYTE)
				tag_area[at + i] = 0; /* that would look like the receiver's */
		sge.length = style & 0x20 ? input_length(input) : VB_TMH_SIZE + VB_RVH_SIZE;
	}
	if (!vb_qp_post_send(tag_rig.qps[SENDER], &request))
		vb_qp_publish_and_ring(tag_rig.qps[SENDER]);
}

static void post_sender_receive(void)
{
	const struct vb_sge sge = { IOVA + MESSAGES + 0x1c00, 0x100, vb_mr_key(tag_rig.messages) };
	const struct vb_recv_request request = { .sges = &sge, .sge_count = 1 };

	(void)!vb_qp_post_recv(tag_rig.qps[SENDER], &request);
}

static void post_own(struct input *input)
{
	struct vb_sge sge = { IOVA + MESSAGES, input_below(input, 300), vb_mr_key(tag_rig.all) };
	struct vb_send_request request = {
		.wr_id = OWN_ID + tag_rig.own_posted,
		.opcode = VB_WR_SEND,
		.flags = VB_SEND_SIGNALED,
		.sges = &sge,
		.sge_count = 1,
	};

	if (vb_qp_post_send(tag_rig.qps[RECEIVER], &request))
		return;
	tag_rig.own_posted++;
	vb_qp_publish_and_ring(tag_rig.qps[RECEIVER]);
}

static void transmit(uint32_t capacity)
{
	static struct vb_slot slots[8];
	uint32_t count = vb_nic_transmit(tag_rig.nic, tag_rig.now_ns, slots, capacity);

	for (uint32_t i = 0; i < count && tag_rig.held_count < HELD_MAX; i++) {
		struct held *held = &tag_rig.held[tag_rig.held_count++];

		REQUIRE(slots[i].length <= sizeof(held->bytes));
		MUST(!vb_slot_gather(&slots[i], held->bytes));
		held->flow = slots[i].path.ip;
		held->ip_id = slots[i].ip_id;
		held->length = slots[i].length;
	}
}

static void deliver(bool is_lost)
{
	struct vb_frame frame = {
		.path.ip = tag_rig.held[0].flow,
		.ip_id = tag_rig.held[0].ip_id,
		.head = { tag_rig.held[0].bytes, tag_rig.held[0].length },
	};

	if (!tag_rig.held_count)
		return;
	if (!is_lost)
		vb_nic_receive(tag_rig.nic, tag_rig.now_ns, &frame, 1);
	memmove(&tag_rig.held[0], &tag_rig.held[1], --tag_rig.held_count * sizeof(tag_rig.held[0]));
}

static void settle(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		transmit(8);
		if (!tag_rig.held_count)
			return;
		deliver(false);
		tag_rig_check();
	}
}

static void wait(uint32_t style)
{
	uint64_t deadline = vb_nic_deadline(tag_rig.nic);

	tag_rig.now_ns += style & 0x7f;
	if (style & 0x80 && deadline != VB_NEVER && deadline > tag_rig.now_ns)
		tag_rig.now_ns = deadline;
	vb_nic_fire_timers(tag_rig.nic, tag_rig.now_ns);
}

static void set_state(uint32_t index, enum vb_qp_state state)
{
	const struct vb_qp_attr attr = { .state = state };

	MUST(vb_qp_modify(tag_rig.qps[index], &attr, VB_ATTR_STATE));
	if (state == VB_STATE_RESET && index == RECEIVER)
		tag_rig.own_done = tag_rig.own_posted; /* discarded */
}

/* Both begin again, or one of them fails. */
static void move_qps(uint32_t style)
{
	tag_rig_check();
	if (style & 1) {
		set_state(style >> 1 & 1, VB_STATE_ERR);
		return;
	}
	set_state(SENDER, VB_STATE_RESET);
	set_state(RECEIVER, VB_STATE_RESET);
	tag_rig.held_count = 0;
	tag_rig_bring_up(SENDER);
	tag_rig_bring_up(RECEIVER);
}

static void step(struct input *input)
{
	switch (input_below(input, 16)) {
	case 0:
	case 1:
	case 2:
		add_tag(input);
		break;
	case 3:
		delete_tag(input);
		break;
	case 4:
		report_count(input);
		break;
	case 5:
		post_plain(input);
		break;
	case 6:
	case 7:
	case 8:
		send_message(input);
		break;
	case 9:
		post_sender_receive();
		break;
	case 10:
		post_own(input);
		break;
	case 11:
		transmit(1 + input_below(input, 8));
		break;
	case 12:
		deliver(input_8(input) == 0xff);
		break;
	case 13:
		settle(input_below(input, 64));
		break;
	case 14:
		wait(input_8(input));
		break;
	case 15:
		move_qps(input_8(input));
		break;
	}
}

/* Everything ends; then the list is as it was at first. */
static void finish(void)
{
	set_state(SENDER, VB_STATE_ERR);
	set_state(RECEIVER, VB_STATE_ERR);
	transmit(1);
	tag_rig_check();
	for (uint32_t i = 0; i < tag_rig.use_count; i++) {
		struct vb_tag_request request = {
			.wr_id = i,
			.opcode = VB_TAG_DELETE,
			.flags = VB_TAG_SIGNALED,
			.handle = tag_rig.uses[i].handle,
		};

		if (!tag_rig.uses[i].is_open || !tag_rig.uses[i].is_tag)
			continue;
		REQUIRE(!tag_rig.uses[i].is_matched);
		MUST(vb_srq_post_tag(tag_rig.srq, &request, NULL));
		vb_srq_ring_doorbell(tag_rig.srq);
		transmit(1);
		tag_rig_check();
		REQUIRE(!tag_rig.uses[i].is_open);
	}
	for (uint32_t i = 0; i < TAGS; i++) {
		const struct vb_tag_request request = { .opcode = VB_TAG_ADD };
		uint32_t handle;

		MUST(vb_srq_post_tag(tag_rig.srq, &request, &handle));
		vb_srq_ring_doorbell(tag_rig.srq);
		transmit(1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	tag_rig_create(input_8(&input) & 1 ? SEND_DEPTH : 0);
	while (input_has_more(&input)) {
		step(&input);
		tag_rig_check();
	}
	finish();
	tag_rig_destroy();
	return 0;
}
