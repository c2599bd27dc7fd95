/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembers multicast datagrams that arrived over a shared-memory link, because the wire will bring
 * them again. A datagram is identified by the socket and QP of its sender and by its PSN. The QPN
 * alone is not enough: a later process may get the same QPN and begin with the same PSN. The
 * datagrams of one sender go through the rows in order, so that the last 16,384 of one sender, or
 * of several together, are remembered. This is enough, since even the full rings of eight senders
 * hold fewer. If a process reads the wire so late that older datagrams are still queued there, it
 * receives those twice.
 */
#include "nic/multicast_dedup_priv.h"

#include "base/err.h"
#include "base/heap.h"

#define ROW_COUNT 1024u /* a power of two */
#define ROW_LENGTH 16u

struct datagram_id {
	struct vb_gid source;
	uint64_t number; /* UDP port, QPN and PSN; 0: none */
};

struct row {
	struct datagram_id ids[ROW_LENGTH]; /* newest first */
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

static struct datagram_id id_of(const struct vb_flow *flow, const struct vb_packet *packet)
{
	return (struct datagram_id){
		.source = flow->source,
		.number = (uint64_t)flow->source_port << 48 |
			  (uint64_t)packet->deth.source.v << 24 | packet->bth.psn.v,
	};
}

static struct row *row_of(struct vb_multicast_dedup *dedup, const struct vb_packet *packet)
{
	/* Spreads the senders over the rows: most of them begin with PSN 0. */
	uint32_t sender = packet->deth.source.v * 0x9e3779b1u >> 22;

	return &dedup->rows[(packet->bth.psn.v + sender) % ROW_COUNT];
}

void vb_multicast_dedup_expect(struct vb_multicast_dedup *dedup, const struct vb_flow *flow,
			       const struct vb_packet *packet)
{
	struct row *row = row_of(dedup, packet);

	memmove(&row->ids[1], &row->ids[0], sizeof(row->ids) - sizeof(row->ids[0]));
	row->ids[0] = id_of(flow, packet);
}

VB_NOINLINE bool vb_multicast_dedup_forget_if_expected(struct vb_multicast_dedup *dedup,
						       const struct vb_flow *flow,
						       const struct vb_packet *packet)
{
	struct row *row = row_of(dedup, packet);
	struct datagram_id wanted = id_of(flow, packet);

	for (uint32_t i = 0; i < ROW_LENGTH; i++) {
		struct datagram_id *id = &row->ids[i];

		if (id->number == wanted.number && vb_gid_equal(&id->source, &wanted.source)) {
			*id = (struct datagram_id){ 0 };
			return true;
		}
	}
	return false;
}
