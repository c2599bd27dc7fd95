/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast datagrams that are expected a second time. A datagram is identified by the socket and
 * QP of its sender and by its PSN. The QP alone would not do: the next process may have the same
 * numbers. The datagrams of one sender go through the rows in order, so that the last 16,384 of one
 * sender, or of several together, are remembered. The rings of eight senders hold fewer. A process
 * that reads the wire so late that it still finds older datagrams there gets those twice.
 */
#include "nic/multicast_dedup_priv.h"

#include "base/err.h"
#include "base/heap.h"

#define ROW_COUNT 1024u /* a power of two */
#define ROW_LENGTH 16u

struct copy {
	struct vb_gid source;
	uint64_t number; /* UDP port, QPN and PSN; 0: none */
};

struct row {
	struct copy copies[ROW_LENGTH]; /* newest first */
};

struct vb_multicast_dedup {
	struct row rows[ROW_COUNT];
};

struct vb_multicast_dedup *vb_multicast_dedup_create(void)
{
	return vb_heap_alloc(1, sizeof(struct vb_multicast_dedup));
}

void vb_multicast_dedup_destroy(struct vb_multicast_dedup *dedup)
{
	vb_heap_free(dedup);
}

static struct copy copy_of(const struct vb_flow *flow, const struct vb_packet *packet)
{
	return (struct copy){
		.source = flow->source,
		.number = (uint64_t)flow->source_port << 48 |
			  (uint64_t)packet->deth.source.v << 24 | packet->bth.psn.v,
	};
}

static struct row *row_of(struct vb_multicast_dedup *dedup, const struct vb_packet *packet)
{
	uint32_t sender = packet->deth.source.v * 0x9e3779b1u >> 22; /* most begin with PSN 0 */

	return &dedup->rows[(packet->bth.psn.v + sender) % ROW_COUNT];
}

void vb_multicast_dedup_expect(struct vb_multicast_dedup *dedup, const struct vb_flow *flow,
			       const struct vb_packet *packet)
{
	struct row *row = row_of(dedup, packet);

	memmove(&row->copies[1], &row->copies[0], sizeof(row->copies) - sizeof(row->copies[0]));
	row->copies[0] = copy_of(flow, packet);
}

VB_NOINLINE bool vb_multicast_dedup_take(struct vb_multicast_dedup *dedup,
					 const struct vb_flow *flow, const struct vb_packet *packet)
{
	struct row *row = row_of(dedup, packet);
	struct copy wanted = copy_of(flow, packet);

	for (uint32_t i = 0; i < ROW_LENGTH; i++) {
		struct copy *copy = &row->copies[i];

		if (copy->number == wanted.number && vb_gid_equal(&copy->source, &wanted.source)) {
			*copy = (struct copy){ 0 };
			return true;
		}
	}
	return false;
}
