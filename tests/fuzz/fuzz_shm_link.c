/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A local peer that writes anything wherever it may: offers with wrong numbers and descriptors,
 * bytes and words of the rings, the rows and words of its export block, and invalid segments. Our
 * end meets it, receives, sends, executes requests by its rows, and sleeps. No byte of ours changes
 * outside the regions, and nothing is read outside of what was mapped. The input is a sequence of
 * such steps.
 */
#include "fuzz.h"
#include "support_input.h"
#include "support_local_peer.h"
#include "host/sys/sealed.h"

#include "link/fd.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

enum { STEPS_MAX = 200 };

/* --- what the peer does --- */

/* A descriptor that may be the right one or a wrong one. */
static int choose_fd(struct input *input, int right)
{
	switch (input_below(input, 12)) {
	case 0:
		return eventfd(0, EFD_CLOEXEC);
	case 1:
		return memfd_create("small", MFD_CLOEXEC);
	case 2:
		return vb_sealed_open("other", input_16(input));
	case 3:
		return dup(local_peer_block_fd());
	default:
		return dup(right);
	}
}

static void offer(struct input *input)
{
	struct vb_local_peer_offer message = {
		.kind = VB_LOCAL_PEER_OFFER,
		.number = input_below(input, 8) ? LOCAL_PEER_PEER : input_8(input),
		.incarnation = input_below(input, 8) ? local_peer_incarnation() : input_64(input),
		.ring = input_below(input, 8) ? LOCAL_PEER_RING : input_64(input),
		.answered = input_below(input, 8) ? local_peer_answer() : input_64(input),
	};
	int fds[VB_OFFER_FDS + 1];
	uint32_t count = input_below(input, 8) ? VB_OFFER_FDS
					       : input_below(input, VB_OFFER_FDS + 2);

	for (uint32_t i = 0; i < count; i++)
		fds[i] = choose_fd(input, i == VB_OFFER_BLOCK  ? local_peer_block_fd()
					  : i == VB_OFFER_RING ? local_peer_ring_fd()
							       : local_peer_wake_fd());
	local_peer_mail(&message, input_below(input, 16) ? sizeof(message) : input_8(input), fds,
			count);
}

static void segment(struct input *input)
{
	static const uint32_t kinds[] = { VB_LOCAL_PEER_SEGMENT, VB_LOCAL_PEER_SEGMENT_QUERY,
					  VB_LOCAL_PEER_FORGET };
	struct vb_local_peer_segment message = {
		.kind = kinds[input_below(input, 3)],
		.number = input_below(input, 8) ? LOCAL_PEER_PEER : input_8(input),
		.incarnation = local_peer_incarnation(),
		.segment = input_below(input, 4) ? LOCAL_PEER_SEGMENT : input_8(input),
		.address = input_below(input, 4) ? LOCAL_PEER_ADDRESS : input_64(input),
		.length = input_below(input, 2) ? LOCAL_PEER_LENGTH : input_32(input),
		.offset = input_below(input, 4) ? 0 : input_64(input),
	};
	int fd = choose_fd(input, local_peer_segment_fd());

	local_peer_mail(&message, sizeof(message), &fd, 1);
}

/* A well-formed record around a packet that nearly is. */
static void record(struct input *input)
{
	uint8_t bytes[256] = { 0 };
	size_t taken;
	uint32_t length =
		local_peer_packet(bytes, input_8(input), input_8(input), input_bool(input));
	const uint8_t *more = input_bytes(input, input_below(input, 100), &taken);

	memcpy(bytes + length, more, taken);
	length += (uint32_t)(taken + sizeof(struct vb_flow));
	local_peer_put(bytes, length + input_below(input, 4));
}

/* A train that nearly is one. */
static void train(struct input *input)
{
	static const uint8_t opcodes[] = { VB_OP_SEND_ONLY, VB_OP_SEND_FIRST, VB_OP_SEND_MIDDLE,
					   VB_OP_SEND_LAST };
	struct vb_reference references[VB_SGE_MAX] = { 0 };
	uint8_t bytes[1024 + sizeof(struct vb_flow) + 256] = { 0 };
	uint8_t opcode = input_below(input, 8) ? opcodes[input_below(input, 4)] : input_8(input);
	uint8_t psn = input_8(input);
	struct vb_train train = {
		.packet_count = input_below(input, 8) ? input_8(input) : input_16(input),
		.reference_count = input_below(input, 8) ? input_below(input, VB_SGE_MAX + 1)
							 : input_16(input),
		.byte_count = input_8(input),
	};
	uint32_t length;

	for (uint32_t i = 0; i < train.reference_count && i < VB_SGE_MAX; i++)
		references[i] = (struct vb_reference){
			.address = input_below(input, 8) ? LOCAL_PEER_ADDRESS + input_16(input)
							 : input_64(input),
			.length = input_below(input, 8) ? input_16(input) : input_32(input),
			.key = input_below(input, 8) ? local_peer_key() : input_32(input),
		};
	length = local_peer_train(bytes, &train, references, opcode, psn);
	local_peer_put(bytes, length + (uint32_t)sizeof(struct vb_flow) - input_below(input, 8));
}

static void scribble(struct input *input)
{
	struct vb_ring_memory *ring = local_peer_ring();
	uint32_t at = input_bool(input) ? local_peer_ring_next() + input_8(input) : input_32(input);
	size_t taken;
	const uint8_t *bytes = input_bytes(input, input_below(input, 64), &taken);

	for (size_t i = 0; i < taken; i++)
		ring->data[(at + i) % VB_RING_SIZE] = bytes[i];
}

/* A busy word stays even: an odd one means an access in progress, which our end would wait for. */
static void set_words(struct input *input)
{
	struct vb_ring_memory *theirs = local_peer_their_ring();

	atomic_store(&local_peer_ring()->busy, input_32(input) & ~1u);
	atomic_store(&local_peer_ring()->wants_room, input_8(input));
	if (theirs)
		atomic_store(&theirs->consumed,
			     input_bool(input) ? input_64(input) : input_8(input) * 64u);
}

static void change_rows(struct input *input)
{
	struct vb_key_row *key = local_peer_key_row();
	struct vb_qp_row *qp = local_peer_qp_row();
	uint8_t *row = input_bool(input) ? (uint8_t *)key : (uint8_t *)qp;
	size_t taken;
	const uint8_t *bytes;
	uint32_t at = input_below(input, sizeof(*key));

	if (input_bool(input)) {
		local_peer_make_rows();
		key->segment = input_below(input, 4) ? LOCAL_PEER_SEGMENT : input_8(input);
		return;
	}
	bytes = input_bytes(input, input_below(input, (uint32_t)sizeof(*key) - at + 1), &taken);
	memcpy(row + at, bytes, taken);
}

static void change_head(struct input *input)
{
	struct vb_export_head *head = local_peer_head();
	_Atomic uint32_t *mark = (_Atomic uint32_t *)(void *)&head->mark;

	switch (input_below(input, 4)) {
	case 0:
		atomic_store(mark, input_32(input));
		break;
	case 1:
		atomic_store(&head->is_closed, input_8(input));
		break;
	default:
		atomic_store(&head->sleeper_count, input_8(input));
		atomic_store(&head->sleep_sequence, input_32(input));
	}
}

/* --- what our end does --- */

static void post(struct input *input)
{
	static const enum vb_wr_opcode opcodes[] = { VB_WR_WRITE, VB_WR_READ, VB_WR_FETCH_ADD,
						     VB_WR_COMPARE_SWAP, VB_WR_SEND };
	enum vb_wr_opcode opcode = opcodes[input_below(input, 5)];
	uint64_t offset = input_16(input);
	uint32_t length = input_bool(input) ? 8 : input_16(input) % LOCAL_PEER_LENGTH;

	local_peer_post(opcode, offset, length);
}

static void step(struct input *input)
{
	switch (input_below(input, 13)) {
	case 0:
	case 1:
		offer(input);
		break;
	case 2:
		segment(input);
		break;
	case 3:
		record(input);
		break;
	case 4:
		train(input);
		break;
	case 5:
		scribble(input);
		break;
	case 6:
		set_words(input);
		break;
	case 7:
		change_rows(input);
		break;
	case 8:
		change_head(input);
		break;
	case 9:
		local_peer_receive();
		break;
	case 10:
		post(input);
		break;
	case 11:
		local_peer_transmit();
		break;
	default:
		local_peer_look(input_bool(input));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size };

	local_peer_begin();
	for (uint32_t i = 0; i < STEPS_MAX && input_has_more(&input); i++)
		step(&input);
	local_peer_receive();
	local_peer_transmit();
	local_peer_end();
	return 0;
}
