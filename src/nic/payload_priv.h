/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The payload of a received packet, which may lie in several pieces, and the movement of payload
 * between packets and application memory: gather for sending, scatter for receiving.
 */
#ifndef VB_NIC_PAYLOAD_PRIV_H
#define VB_NIC_PAYLOAD_PRIV_H

#include "framing/slot.h"
#include "nic/qp_priv.h"

/* Up to this size a copy into the slot is cheaper than another span for the link and the CRC. */
#define VB_COPY_MAX 256

/* The unread rest of a payload. Copy the struct to read the payload twice. */
struct vb_payload {
	struct vb_bytes piece;
	const struct vb_bytes *rest;
	uint32_t rest_count;
};

struct vb_payload vb_payload_of(const struct vb_frame *frame, const struct vb_packet *packet);

/* Consumes `length` bytes into resolved memory. False if the memory was gone. */
bool vb_payload_place(struct vb_payload *payload, const struct vb_memory *memory, uint32_t length);

/* Consumes `length` bytes. */
void vb_payload_skip(struct vb_payload *payload, uint32_t length);

/* Consumes `length` bytes into the engine's own memory. */
void vb_payload_read(struct vb_payload *payload, uint8_t *to, uint32_t length);

/*
 * A list of buffers, and the protection domain of the keys it may use: for an SRQ the SRQ's, not
 * the QP's.
 */
struct vb_sgl {
	const struct vb_sge *sges;
	uint32_t count;
	uint32_t pd;
};

static inline struct vb_sgl vb_wqe_sgl(const struct vb_qp *qp, const struct vb_wqe *wqe)
{
	return (struct vb_sgl){ vb_wqe_sges(wqe), wqe->sge_count, qp->pd_number };
}

static inline struct vb_sgl vb_receive_sgl(const struct vb_receive *receive)
{
	return (struct vb_sgl){ receive->sges, receive->sge_count, receive->pd };
}

/* The cursor for a byte offset into a list of SGEs. */
struct vb_cursor vb_cursor_at(const struct vb_sgl *sgl, uint64_t offset);

/*
 * Consumes `length` bytes into the buffers of an SGL from the cursor on, and advances the cursor.
 * VB_ACCESS_REFUSED for a bad lkey, VB_OPERATION_FAILED for memory that is gone. The caller has
 * checked that the SGL has room.
 */
enum vb_verdict vb_scatter(const struct vb_nic *nic, const struct vb_sgl *sgl,
			   struct vb_cursor *cursor, struct vb_payload *payload, uint32_t length);

/*
 * Resolves the memory of `length` bytes from the cursor on; returns the number of spans. 0: a key
 * or a range is wrong, or it is a null region.
 */
uint32_t vb_sgl_resolve(const struct vb_nic *nic, const struct vb_sgl *sgl,
			struct vb_cursor *cursor, uint32_t length, uint32_t rights,
			struct vb_span spans[VB_SGE_MAX]);

/*
 * Names the memory of `length` bytes from the cursor on by keys, for a local peer; returns the
 * number of references. 0 in the same cases.
 */
uint32_t vb_sgl_refer(const struct vb_nic *nic, const struct vb_sgl *sgl, struct vb_cursor *cursor,
		      uint32_t length, struct vb_reference references[VB_SGE_MAX]);

/*
 * The opposite of vb_scatter(): adds `length` bytes of the SGL to the slot, as a span or, if short,
 * as a copy.
 */
enum vb_verdict vb_gather(const struct vb_nic *nic, const struct vb_sgl *sgl,
			  struct vb_cursor *cursor, uint32_t length, struct vb_slot *slot);

#endif
