/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receive path, with an adapter that has QPs of every type in many states, regions and windows
 * of every kind, and outstanding requests. The input is a sequence of steps: packets made of bytes
 * or of fields near what the QP expects, in pieces; the adapter's own packets delivered, lost or
 * damaged; posts; time. QPs are connected to QPs of the same adapter, so that all states can be
 * reached.
 *
 * After every step: only those bytes have changed that a remote right, a posted receive or an
 * outstanding READ or atomic opens, and no byte went out without a right; each completion belongs
 * to a request that was posted and has not completed before, and those of a queue are in order. At
 * the end everything is flushed and can be destroyed.
 */
#include "fuzz.h"
#include "support_receive.h"

#include "base/bytes.h"

#include <string.h>

/* --- posting ---------------------------------------------------------------------------------- */

/* Up to three pieces of a buffer, one of them of length 0. */
static uint32_t split_buffer(uint64_t address, uint32_t length, uint32_t cut, struct vb_sge sges[3])
{
	uint32_t first = length * cut / 8;

	sges[0] = (struct vb_sge){ IOVA + address, first, rig.keys[KEY_LOCAL] };
	sges[1] = (struct vb_sge){ 0, 0, 0 };
	sges[2] = (struct vb_sge){ IOVA + address + first, length - first, rig.keys[KEY_LOCAL] };
	return 3;
}

static void post_recv(struct input *input)
{
	uint32_t index = input_below(input, QP_COUNT + 2);
	uint32_t style = input_8(input);
	uint8_t buffer = rig_find_buffer();
	uint32_t at = BUFFERS + (uint32_t)(buffer - 1) * BUFFER_STEP;
	struct vb_sge sges[3];
	struct vb_recv_request recv = { .wr_id = rig.request_count, .sges = sges };
	struct request *request;
	vb_err err;

	if (!buffer || rig.request_count == REQUESTS_MAX)
		return;
	recv.sge_count = split_buffer(at, style & 0x80 ? 16 : BUFFER_LENGTH, style & 7, sges);
	if (style & 0x40)
		sges[2].lkey = rig.keys[KEY_READABLE]; /* no right to write there */
	request = rig_new_request(index < QP_COUNT ? index : NO_QP, true, true, buffer);
	if (index < QP_COUNT)
		err = vb_qp_post_recv(rig.qps[index], &recv);
	else
		err = vb_srq_post_recv(index == QP_COUNT ? rig.srq : rig.xrc_srq, &recv);
	if (err)
		rig_close_request(request);
}

static uint64_t input_address(struct input *input, uint32_t *rkey)
{
	uint32_t key = input_below(input, KEY_COUNT + 1);

	*rkey = key < KEY_COUNT ? rig.keys[key] : input_32(input);
	if (key == KEY_DEVICE)
		return input_8(input) * 8u;
	return IOVA + key_offsets[key % KEY_COUNT] + input_8(input) * 8u;
}

static void post_send(struct input *input)
{
	static const enum vb_wr_opcode opcodes[] = {
		VB_WR_WRITE,	VB_WR_WRITE_IMM,    VB_WR_SEND,	     VB_WR_SEND_IMM,
		VB_WR_READ,	VB_WR_COMPARE_SWAP, VB_WR_FETCH_ADD, VB_WR_LOCAL_INV,
		VB_WR_SEND_INV, VB_WR_ATOMIC_WRITE,
	};
	uint32_t index = input_below(input, QP_COUNT);
	uint32_t flags = input_8(input);
	uint32_t length = input_16(input) % (BUFFER_LENGTH + 1);
	struct vb_sge sges[3];
	struct vb_send_request send = {
		.wr_id = rig.request_count,
		.opcode = opcodes[input_below(input, COUNT_OF(opcodes))],
		.flags = flags & 0xf,
		.sges = sges,
		.imm = rig.keys[KEY_WINDOW_2],
		.compare_add = 1,
		.swap = 2,
		.remote_srqn = vb_srq_number(rig.xrc_srq),
		.ah = rig.ahs[flags >> 7],
		.remote_qpn = flags >> 7 ? VB_QPN_MULTICAST.v : vb_qp_number(rig.qps[UD_A]).v,
		.remote_qkey = QKEY,
	};
	bool writes = send.opcode == VB_WR_READ || send.opcode == VB_WR_COMPARE_SWAP ||
		      send.opcode == VB_WR_FETCH_ADD;
	uint8_t buffer = writes ? rig_find_buffer() : 0;
	struct request *request;

	send.remote_address = input_address(input, &send.rkey);
	if (rig.request_count == REQUESTS_MAX || (writes && !buffer))
		return;
	if (send.opcode == VB_WR_COMPARE_SWAP || send.opcode == VB_WR_FETCH_ADD ||
	    send.opcode == VB_WR_ATOMIC_WRITE)
		length = 8;
	if (send.opcode == VB_WR_SEND_INV || send.opcode == VB_WR_LOCAL_INV)
		send.imm = flags & 0x40 ? rig.keys[KEY_WINDOW_2] : rig.keys[KEY_WINDOW_1];
	if (send.flags & VB_SEND_INLINE) {
		length %= 64;
		sges[0] = (struct vb_sge){ (uintptr_t)rig.area + LOCAL, length, 0 };
		send.sge_count = 1;
	} else {
		uint32_t at = writes ? BUFFERS + (uint32_t)(buffer - 1) * BUFFER_STEP : LOCAL;

		send.sge_count = split_buffer(at, length, flags >> 4 & 3, sges);
	}
	/* so that the model knows how long its buffer is open */
	if (writes)
		send.flags |= VB_SEND_SIGNALED;
	request = rig_new_request(index, false, send.flags & VB_SEND_SIGNALED, buffer);
	if (vb_qp_post_send(rig.qps[index], &send))
		rig_close_request(request);
	else
		vb_qp_publish_and_ring(rig.qps[index]);
}

/* Binds a window at its place, through the first QP. */
static void post_bind(uint32_t window)
{
	struct vb_send_request send = {
		.wr_id = rig.request_count,
		.opcode = VB_WR_BIND_MW,
		.flags = VB_SEND_SIGNALED,
		.bind = {
			.mw = rig.mws[window],
			.mr = rig.mrs[KEY_WINDOWED],
			.rkey = rig.keys[KEY_WINDOW_1 + window],
			.address = IOVA + (window ? WINDOW_2 : WINDOW_1),
			.length = WINDOW_LENGTH,
			.access = VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
		},
	};
	struct request *request;

	if (rig.request_count == REQUESTS_MAX)
		return;
	request = rig_new_request(RC_A, false, true, 0);
	if (vb_qp_post_send(rig.qps[RC_A], &send))
		rig_close_request(request);
	else
		vb_qp_publish_and_ring(rig.qps[RC_A]);
}

/* --- packets ---------------------------------------------------------------------------------- */

/*
 * Delivers a frame as a head that holds the headers and up to two more pieces, each in its own
 * memory.
 */
static void deliver(const struct vb_flow *flow, uint16_t ip_id, const uint8_t *bytes,
		    uint32_t length, uint32_t cut)
{
	uint32_t head_min = length && vb_opcode_traits(bytes[0]) ? vb_opcode_header_length(bytes[0])
								 : length;
	uint32_t head_length = min32(length, head_min + cut % 64);
	uint32_t first = min32(length - head_length, (cut >> 6) * 8);
	uint8_t *head = malloc(head_length ? head_length : 1);
	uint8_t *rest = malloc(length - head_length ? length - head_length : 1);
	struct vb_bytes parts[2] = { { rest, first },
				     { rest + first, length - head_length - first } };
	struct vb_frame frame = {
		.path.ip = *flow,
		.ip_id = ip_id,
		.head = { head, head_length },
		.rest = parts,
		.rest_count = length == head_length ? 0 : 2,
	};

	memcpy(head, bytes, head_length);
	memcpy(rest, bytes + head_length, length - head_length);
	vb_nic_receive(rig.nic, rig.now_ns, &frame, 1);
	free(rest);
	free(head);
}

static struct vb_flow input_flow(struct input *input)
{
	struct vb_flow flow = { .source = rig.gid, .destination = rig.gid, .source_port = 0xc000 };
	uint32_t choice = input_8(input);

	if (choice == 1)
		flow.destination = rig.group;
	else if (choice == 2)
		flow.source = vb_gid_from_ipv4(0x0a000002);
	else if (choice == 3)
		flow.source.raw[0] = flow.destination.raw[0] = 0xfe;
	return flow;
}

static void receive_bytes(struct input *input)
{
	struct vb_flow flow = input_flow(input);
	uint32_t index = input_below(input, QP_COUNT + 1);
	uint32_t cut = input_8(input);
	size_t length;
	const uint8_t *bytes = input_bytes(input, input_8(input), &length);
	uint8_t copy[UINT8_MAX];

	memcpy(copy, bytes, length);
	if (length >= VB_BTH_SIZE && index < QP_COUNT)
		store24(copy + 5, vb_qp_number(rig.qps[index]).v);
	deliver(&flow, 0, copy, (uint32_t)length, cut);
}

static uint8_t service_of(enum vb_qp_type type)
{
	switch (type) {
	case VB_QP_UC:
		return VB_SERVICE_UC;
	case VB_QP_UD:
		return VB_SERVICE_UD;
	case VB_QP_XRC_SEND:
	case VB_QP_XRC_RECV:
		return VB_SERVICE_XRC;
	case VB_QP_RC:
		break;
	}
	return VB_SERVICE_RC;
}

/* The fields that the opcode has, near what the QP would accept. */
static void input_fields(struct input *input, struct vb_packet *packet)
{
	uint32_t traits = packet->traits;
	uint32_t rkey;
	uint64_t address;

	if (traits & VB_HAS_RETH) {
		uint32_t kind = input_8(input);

		address = input_address(input, &rkey);
		packet->reth = (struct vb_reth){ address, rkey, packet->payload_length };
		if (kind & 1)
			packet->reth.length = input_16(input);
		else if (kind & 2)
			packet->reth.length = input_32(input);
		if (kind == 0xff)
			packet->reth.address = input_64(input);
	}
	if (traits & VB_HAS_ATOMICETH) {
		address = input_address(input, &rkey);
		packet->atomic = (struct vb_atomiceth){ address, rkey, input_8(input), 0 };
	}
	if (traits & VB_HAS_AETH) {
		packet->aeth.syndrome = input_8(input);
		packet->aeth.msn = input_8(input);
	}
	if (traits & VB_HAS_DETH)
		packet->deth = (struct vb_deth){ input_8(input) == 0xff ? 0 : QKEY, { 5 } };
	if (traits & VB_HAS_IETH)
		packet->invalidate_key = rig.keys[input_below(input, KEY_COUNT)];
	if (traits & VB_HAS_XRCETH)
		packet->srqn = vb_srq_number(input_8(input) == 0xff ? rig.srq : rig.xrc_srq);
}

/* PSNs count from what the QP expects (requests) or from the next that it sends (responses). */
static void receive_fields(struct input *input)
{
	static const uint16_t lengths[] = { 0, MTU, 1, 8, 255, 257, 512, 100 };
	struct vb_flow flow = input_flow(input);
	uint32_t index = input_below(input, QP_COUNT + 1);
	enum vb_qp_type type = plans[index % QP_COUNT].type;
	uint32_t opcode = input_8(input);
	uint32_t style = input_8(input);
	int8_t psn_change = (int8_t)input_8(input);
	uint32_t cut = input_8(input);
	struct vb_packet packet = { 0 };
	struct vb_qp_attr attr;
	uint8_t bytes[VB_PACKET_HEADERS_MAX + 512 + 8] = { 0 };
	uint32_t length;

	packet.bth.opcode = VB_OPCODE(service_of(type), opcode & 0x1f);
	packet.traits = vb_opcode_traits(packet.bth.opcode);
	packet.payload_length = packet.traits & VB_HAS_PAYLOAD ? lengths[opcode >> 5] : 0;
	vb_qp_query(rig.qps[index % QP_COUNT], &attr);
	packet.bth.psn = vb_psn_add(packet.traits & VB_IS_RESPONSE ? attr.sq_psn : attr.rq_psn,
				    (uint32_t)(int32_t)psn_change);
	packet.bth.destination = index < QP_COUNT ? vb_qp_number(rig.qps[index]) : VB_QPN_MULTICAST;
	packet.bth.pkey = style & 0x40 ? 0x1234 : VB_PKEY_DEFAULT;
	packet.bth.ack_request = style & 1;
	packet.bth.solicited = style & 2;
	packet.bth.pad = (uint8_t)(-packet.payload_length & 3);
	packet.imm = style;
	input_fields(input, &packet);
	length = vb_packet_store_headers(bytes, &packet);
	memset(bytes + length, (int)style, packet.payload_length);
	length += packet.payload_length + packet.bth.pad + VB_ICRC_SIZE;
	deliver(&flow, 0, bytes, length, cut);
}

/* A READ returns nothing that the peer may not read. */
static void check_secrets(const struct held *held)
{
	struct vb_packet packet;
	const uint8_t *payload;

	REQUIRE(vb_packet_parse(held->bytes, held->length, held->length, &packet) == VB_PARSED);
	if (!(packet.traits & VB_IS_READ_RESPONSE))
		return;
	payload = held->bytes + packet.header_length;
	for (uint32_t i = 0; i + 8 <= packet.payload_length; i++)
		REQUIRE(!rig_is_secret(payload + i));
}

/* Packets that are sent wait in a queue; when the queue is full they are lost. */
static void transmit(uint32_t capacity)
{
	static struct vb_slot slots[8];
	uint32_t count = vb_nic_transmit(rig.nic, rig.now_ns, slots, capacity);

	REQUIRE(count <= capacity);
	for (uint32_t i = 0; i < count; i++) {
		struct held *held = &rig.held[rig.held_count];

		if (rig.held_count == HELD_MAX)
			continue;
		REQUIRE(slots[i].length <= FRAME_MAX);
		MUST(!vb_slot_gather(&slots[i], held->bytes));
		held->flow = slots[i].path.ip;
		held->ip_id = slots[i].ip_id;
		held->length = slots[i].length;
		check_secrets(held);
		rig.held_count++;
	}
}

static void remove_held(uint32_t index)
{
	rig.held_count--;
	memmove(&rig.held[index], &rig.held[index + 1],
		(rig.held_count - index) * sizeof(rig.held[0]));
}

static void deliver_held(struct input *input)
{
	uint32_t style = input_8(input);
	uint32_t index;
	struct held *held;

	if (!rig.held_count)
		return;
	index = (style >> 4) % rig.held_count;
	held = &rig.held[index];
	if (style & 4)
		held->bytes[input_8(input) % held->length] ^= input_8(input);
	if (!(style & 2))
		deliver(&held->flow, held->ip_id, held->bytes, held->length, input_8(input));
	if (!(style & 1))
		remove_held(index);
}

/* Everything that waits arrives in order, with its consequences, for some rounds. */
static void settle(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++) {
		transmit(8);
		if (!rig.held_count)
			return;
		deliver(&rig.held[0].flow, rig.held[0].ip_id, rig.held[0].bytes, rig.held[0].length,
			0);
		remove_held(0);
		rig_check();
	}
}

/* --- the rest --------------------------------------------------------------------------------- */

static void wait(uint32_t style)
{
	uint64_t deadline = vb_nic_deadline(rig.nic);

	REQUIRE(deadline > 0);
	rig.now_ns += style & 0x7f;
	if (style & 0x80 && deadline != VB_NEVER && deadline > rig.now_ns)
		rig.now_ns = deadline;
	vb_nic_fire_timers(rig.nic, rig.now_ns);
	REQUIRE(vb_nic_deadline(rig.nic) > rig.now_ns);
}

static void move_qp(struct input *input)
{
	static const enum vb_qp_state states[] = { VB_STATE_RESET, VB_STATE_ERR, VB_STATE_SQD,
						   VB_STATE_RTS };
	uint32_t index = input_below(input, QP_COUNT);
	struct vb_qp_attr attr = { .state = states[input_below(input, COUNT_OF(states))],
				   .sqd_notify = true };

	if (vb_qp_modify(rig.qps[index], &attr,
			 VB_ATTR_STATE | (attr.state == VB_STATE_SQD ? VB_ATTR_SQD_NOTIFY : 0)))
		return;
	if (attr.state != VB_STATE_RESET)
		return;
	rig_forget_requests(index);
	rig_bring_up(index);
}

static void step(struct input *input)
{
	switch (input_below(input, 16)) {
	case 0:
	case 1:
	case 2:
	case 3:
		receive_fields(input);
		break;
	case 4:
		receive_bytes(input);
		break;
	case 5:
	case 6:
		post_send(input);
		break;
	case 7:
	case 8:
		post_recv(input);
		break;
	case 9:
		post_bind(input_8(input) & 1);
		break;
	case 10:
		transmit(1 + input_below(input, 8));
		break;
	case 11:
		deliver_held(input);
		break;
	case 12:
		settle(input_below(input, 64));
		break;
	case 13:
		wait(input_8(input));
		break;
	case 14:
		move_qp(input);
		break;
	case 15:
		if (input_8(input) == 0)
			rig_renew_region();
		else
			vb_cq_arm(rig.cq, false);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	rig_create(input_8(&input) & 1);
	post_bind(0);
	post_bind(1);
	while (input_has_more(&input)) {
		step(&input);
		rig_check();
	}
	rig_flush();
	rig_destroy();
	return 0;
}
