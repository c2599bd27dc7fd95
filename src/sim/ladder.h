/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A conversation drawn as a ladder: node 0 on the left, node 1 on the right, a rung for each
 * packet. Repeated packets and lost packets are marked. The nodes are two machines of a world, or,
 * for `verbatim trace`, the QPs of two programs.
 */
#ifndef VB_SIM_LADDER_H
#define VB_SIM_LADDER_H

#include "sim/trace.h"

#define VB_LADDER_TEXT_MAX 400
#define VB_LADDER_SEEN_MAX 1024

struct vb_ladder {
	uint64_t seen[VB_LADDER_SEEN_MAX]; /* sender, QPN and PSN of requests */
	uint32_t seen_count;
	bool is_real; /* no simulator knows why nothing happened for a while */
	uint64_t previous_ns;
	uint64_t packets;
	uint64_t lost;
	uint64_t repeated;
};

/* The two lines above the first rung, with the names of both nodes. */
void vb_ladder_describe_head(const char *left, const char *right, char text[VB_LADDER_TEXT_MAX]);

/*
 * Describes one entry in one line, or in two after a long pause, without a final line feed; "" if
 * it is not shown.
 */
void vb_ladder_describe(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			char text[VB_LADDER_TEXT_MAX]);

/* The same for a packet that is known to be no repetition; the remark stands beside it. */
void vb_ladder_describe_packet(struct vb_ladder *ladder, const struct vb_trace_entry *entry,
			       const char *remark, char text[VB_LADDER_TEXT_MAX]);

#endif
