/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Peer memory access: the initiator itself accesses the memory of another adapter on this host. The
 * target's published rows (vb_nic_publish()) say what it may access. The functions vb_dma_peer_*()
 * are fixed at link time like those of base/dma.h. Each may refuse for any reason, and the request
 * then goes out in packets. Hence none of them reports what is wrong.
 */
#ifndef VB_NIC_PEER_MEMORY_H
#define VB_NIC_PEER_MEMORY_H

#include "framing/frame.h"
#include "nic/request.h"
#include "nic/tables.h"

struct vb_nic;
struct vb_qp;
struct vb_peer_memory; /* known only to the implementation of vb_dma_peer_*() */

/* The rows of a target. The counts are powers of two; SRQs have VB_SRQ_ROWS. */
struct vb_peer_memory_tables {
	const struct vb_key_row *key_rows;
	const struct vb_qp_row *qp_rows;
	const struct vb_srq_row *srq_rows;
	uint32_t key_row_count;
	uint32_t qp_row_count;
	uint32_t epoch; /* changes when other rows lie at the same place */
};

/* The outcome of a check against the rows. It holds as long as the rows do not change. */
struct vb_peer_memory_memo {
	uint32_t right; /* the one enum vb_access that was granted; 0: nothing is remembered */
	uint32_t epoch;
	uint32_t qp_generation;
	/* The target's row, to see whether it has changed; so is key_row. */
	const struct vb_qp_row *qp_row;
	const struct vb_key_row *key_row;
	struct vb_key_row key; /* the content of key_row at the check */
};

/* The QP that asks for access. */
struct vb_peer_memory_initiator {
	uint32_t service; /* enum vb_service */
	vb_qpn target;
	vb_qpn initiator;
	const struct vb_gid *target_gid;
	const struct vb_gid *initiator_gid;
	struct vb_peer_memory_memo memo;
	/*
	 * From addresses of requests to those of this process, in the last WRITE to memory that
	 * this process has, too; 0: there was none. vb_dma_peer_write() sets it, for
	 * vb_dma_peer_expect_write().
	 */
	uint64_t shift;
};

/* One WRITE, READ or atomic, and the part of it to execute now. */
struct vb_peer_memory_request {
	struct vb_peer_memory_initiator *initiator;
	uint32_t srqn; /* XRC */
	uint32_t right; /* one of enum vb_access */
	uint32_t rkey;
	uint64_t address; /* of the whole request, as is length */
	uint32_t length;
	uint32_t offset; /* of this part, as is part_length */
	uint32_t part_length;
	const uint8_t *bytes; /* inline data of this part; NULL: the data is in the spans */
	const struct vb_span *spans; /* memory of the initiator */
	uint32_t span_count;
};

/* An atomic operation on 64 bits in the CPU's byte order. */
struct vb_peer_memory_atomic {
	bool is_compare;
	uint64_t compare;
	uint64_t swap_or_add;
};

/*
 * Returns the row of the request's key, valid until the QP asks again; NULL if the rows do not
 * permit the request. A request of length 0 needs no key and gets an empty row. The rows may hold
 * anything and change at any time. A thread that acts on the answer must announce itself before it
 * asks, and the target waits for it.
 */
const struct vb_key_row *vb_peer_memory_check(const struct vb_peer_memory_tables *tables,
					      const struct vb_peer_memory_request *request);

#define VB_PEER_MEMORY_WRITES_MAX 32

/*
 * Executes WRITEs of one QP, up to VB_PEER_MEMORY_WRITES_MAX, in this order. Returns how many of
 * them, from the first on, are executed. The next one may be partly done; executing it again does
 * no harm.
 */
uint32_t vb_dma_peer_write(struct vb_peer_memory *peer_memory,
			   const struct vb_peer_memory_request *requests, uint32_t count);
/*
 * The initiator is about to write to that address of the target. A hint for the CPU, which fetches
 * the cache line while the request is checked: no memory is accessed, and the guess may be wrong.
 */
void vb_dma_peer_expect_write(const struct vb_peer_memory_initiator *initiator, uint64_t address);
/* True: the part is executed. False: nothing or some of it is done. */
bool vb_dma_peer_read(struct vb_peer_memory *peer_memory,
		      const struct vb_peer_memory_request *request);
/* False: nothing was done. */
bool vb_dma_peer_atomic(struct vb_peer_memory *peer_memory,
			const struct vb_peer_memory_request *request,
			const struct vb_peer_memory_atomic *atomic, uint64_t *old_out);

/* The data of a SEND that a peer offers by reference, and where this process wants it. */
struct vb_peer_memory_fetch {
	const struct vb_peer_memory_initiator *initiator;
	const struct vb_reference *references; /* memory of the peer */
	uint32_t reference_count;
	/* memory of this process, as long as the references together */
	const struct vb_span *spans;
	uint32_t span_count;
};

/* An offer as it stood when it was opened. */
struct vb_peer_memory_offer {
	const struct vb_qp_row *row; /* the peer's */
	uint32_t generation;
	uint32_t pd; /* the one that the references' keys must belong to */
};

/*
 * Opens what the initiator's peer offers in its SENDs. False if the peer's QP takes no requests or
 * belongs to another QP. The peer has asked for the access, so no remote right is needed.
 */
bool vb_peer_memory_open_offer(const struct vb_peer_memory_tables *tables,
			       const struct vb_peer_memory_initiator *initiator,
			       struct vb_peer_memory_offer *offer_out);
/* Finds the row of a reference's key. False if the rows do not permit the reference. */
bool vb_peer_memory_find_offered(const struct vb_peer_memory_tables *tables,
				 const struct vb_peer_memory_offer *offer,
				 const struct vb_reference *reference, struct vb_key_row *row_out);
/*
 * To be asked after the copy. False if the peer's QP has ended or changed: its program may have
 * been told, and may have changed the memory before it was copied.
 */
bool vb_peer_memory_is_offer_kept(const struct vb_peer_memory_offer *offer);

/* Copies the data. False: nothing or some of it is done, and the peer must send it in packets. */
bool vb_dma_peer_fetch(struct vb_peer_memory *peer_memory,
		       const struct vb_peer_memory_fetch *fetch);

/*
 * vb_dma_peer_shm_link_end(): how far the shared-memory link to the target is written, with all
 * packets of earlier calls into the engine. vb_dma_peer_has_read(): whether the target has read and
 * executed everything before that place, or never will. Places of one peer memory can be compared
 * for as long as it is lent.
 */
uint64_t vb_dma_peer_shm_link_end(const struct vb_peer_memory *peer_memory);
bool vb_dma_peer_has_read(const struct vb_peer_memory *peer_memory, uint64_t shm_link_end);

/*
 * Whether the initiator's peer is connected to it and sends over the wire although there is a
 * shared-memory link. The peer's row says so before its first packet is out. False if it cannot be
 * known.
 */
bool vb_dma_peer_is_on_wire(const struct vb_peer_memory *peer_memory,
			    const struct vb_peer_memory_initiator *initiator);
/* The same, for a caller that has the rows. */
bool vb_peer_memory_is_on_wire(const struct vb_peer_memory_tables *tables,
			       const struct vb_peer_memory_initiator *initiator);

/* Published rows: all zero at first, and as many as the engine's own tables have. */
struct vb_row_mirror {
	struct vb_key_row *key_rows;
	struct vb_qp_row *qp_rows;
	struct vb_srq_row *srq_rows; /* VB_SRQ_ROWS */
};

/* From now on the rows are also published here; with NULL no longer. */
void vb_nic_publish(struct vb_nic *nic, const struct vb_row_mirror *mirror);

/*
 * True if the last vb_nic_transmit() ended because enough was moved directly: there is more to do,
 * but others may want a turn.
 */
bool vb_nic_has_moved_enough(const struct vb_nic *nic);

/* --- links (framing/path.h) --- */

#define VB_ROOM_UNLIMITED UINT32_MAX

/*
 * From now on the QP's packets take this link, or the wire if 0. For a connected QP that has sent
 * nothing yet. `peer_memory`, or NULL, is for requests that the QP may execute itself; it is lent
 * for as long as the QP has it.
 */
void vb_qp_set_link(struct vb_qp *qp, uint32_t link, struct vb_peer_memory *peer_memory);
/*
 * From now on the packets of an RC QP take a stream, which has the link to itself. They are not
 * checked for addresses, because no other peer can write to the stream.
 */
void vb_qp_set_stream(struct vb_qp *qp, uint32_t link);
/* The QP's packets take the wire, but its local peer may have chosen that link. */
void vb_qp_expect_link(struct vb_qp *qp, uint32_t link);
uint32_t vb_qp_link(const struct vb_qp *qp);
/*
 * Says how many packets of the longest kind the link has room for. QPs whose link has no room wait.
 * The wire has unlimited room until the caller sets it to 0.
 */
void vb_nic_set_link_room(struct vb_nic *nic, uint32_t link, uint32_t packets);
/* The room that is left. */
uint32_t vb_nic_link_room(const struct vb_nic *nic, uint32_t link);
/* Whether QPs wait for room. */
bool vb_nic_has_qps_without_room(const struct vb_nic *nic);
/* The link and its peer memory access are gone: its QPs take the wire. */
void vb_nic_drop_link(struct vb_nic *nic, uint32_t link);

#endif
