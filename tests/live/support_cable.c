/* SPDX-License-Identifier: BSD-2-Clause */
/* Two rings of frames, one in each direction. */
#include "support_cable.h"

#include "base/list.h"
#include "harness.h"

#include <stdlib.h>

enum { RING = 64, BYTES_MAX = 9622 };

struct carried {
	struct vb_flow flow;
	uint16_t ip_id;
	uint32_t length;
	uint8_t bytes[BYTES_MAX];
};

struct way {
	struct carried ring[RING];
	uint32_t written, taken, released;
};

struct cable_end {
	struct vb_carrier carrier;
	struct cable *cable;
	struct way *out, *in;
	/* of the last frame taken: what continues its batch comes right behind it */
	uint16_t last_ip_id;
	uint32_t last_length;
};

struct cable {
	struct way ways[2];
	struct cable_end ends[2];
	struct vb_prng dice;
	uint64_t refused;
	bool is_shut;
};

static struct cable_end *end_of(struct vb_carrier *carrier)
{
	return VB_CONTAINER(carrier, struct cable_end, carrier);
}

static void check_batch(struct cable_end *end, const struct vb_slot *slot)
{
	if (slot->continues) {
		EXPECT_EQ(slot->ip_id, (uint16_t)(end->last_ip_id + 1));
		EXPECT(slot->length <= end->last_length);
	}
	end->last_ip_id = slot->ip_id;
	end->last_length = slot->length;
}

static uint32_t send_frames(struct vb_carrier *carrier, struct vb_slot *slots, uint32_t count)
{
	struct cable_end *end = end_of(carrier);
	uint32_t taken =
		end->cable->is_shut ? 0 : (uint32_t)vb_prng_below(&end->cable->dice, count + 1);

	for (uint32_t i = 0; i < taken; i++) {
		struct carried *to = &end->out->ring[end->out->written % RING];

		if (end->out->written - end->out->released == RING) {
			taken = i;
			break;
		}
		check_batch(end, &slots[i]);
		if (vb_slot_gather(&slots[i], to->bytes)) {
			to->flow = slots[i].path.ip;
			to->ip_id = slots[i].ip_id;
			to->length = slots[i].length;
			end->out->written++;
		}
	}
	end->cable->refused += count - taken;
	return taken;
}

static uint32_t receive(struct vb_carrier *carrier, uint64_t now_ns, enum vb_carrier_effort effort,
			struct vb_frame *frames, uint32_t capacity)
{
	struct way *in = end_of(carrier)->in;
	uint32_t count = 0;

	(void)now_ns, (void)effort;
	for (; count < capacity && in->taken != in->written; in->taken++) {
		const struct carried *from = &in->ring[in->taken % RING];

		frames[count++] = (struct vb_frame){ .path.ip = from->flow,
						     .ip_id = from->ip_id,
						     .head = { from->bytes, from->length } };
	}
	return count;
}

static void release(struct vb_carrier *carrier)
{
	end_of(carrier)->in->released = end_of(carrier)->in->taken;
}

/* The other end looks in each of its turns. */
static void do_nothing(struct vb_carrier *carrier)
{
	(void)carrier;
}

static uint32_t no_fds(struct vb_carrier *carrier, struct pollfd fds[VB_CARRIER_FDS_MAX])
{
	(void)carrier, (void)fds;
	return 0;
}

static const struct vb_carrier_type type = {
	.name = "cable",
	.frame_length_max = BYTES_MAX,
	.send = send_frames,
	.flush = do_nothing,
	.receive = receive,
	.release = release,
	.fds = no_fds,
	.on_wake = do_nothing,
};

struct cable *cable_open(uint64_t seed, struct vb_carrier *ends_out[2])
{
	struct cable *cable = calloc(1, sizeof(*cable));

	EXPECT(cable);
	vb_prng_init(&cable->dice, seed);
	for (uint32_t i = 0; i < 2; i++) {
		cable->ends[i] = (struct cable_end){
			.carrier = { .type = &type },
			.cable = cable,
			.out = &cable->ways[i],
			.in = &cable->ways[!i],
		};
		ends_out[i] = &cable->ends[i].carrier;
	}
	return cable;
}

void cable_close(struct cable *cable)
{
	free(cable);
}

uint64_t cable_refused(const struct cable *cable)
{
	return cable->refused;
}

void cable_shut(struct cable *cable, bool is_shut)
{
	cable->is_shut = is_shut;
}
