/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory of another adapter on this host, reached by the initiator itself. What it may reach the target's rows say, which
 * it is shown (vb_nic_show()). The functions vb_dma_reach_*() are fixed at link time like those of base/dma.h. Each may refuse for any reason,
 * and then the request takes the way of all others; so none of them reports what is wrong.
 */
#ifndef VB_NIC_REACH_H
#define VB_NIC_REACH_H

#include "nic/frame.h"
#include "nic/request.h"
#include "nic/tables.h"

struct vb_nic;
struct vb_qp;
struct vb_reach; /* whoever implements vb_dma_reach_*() knows what it is */

/* The rows of a target. The counts are powers of two; SRQs have VB_SRQ_ROWS. */
struct vb_reach_tables {
	const struct vb_key_row *key_rows;
	const struct vb_qp_row *qp_rows;
	const struct vb_srq_row *srq_rows;
	uint32_t key_row_count;
	uint32_t qp_row_count;
	uint32_t epoch; /* another one for other rows, though they lie where those lay */
};

/* What rows said to a request, which they say again while they are the same. */
struct vb_reach_memo {
	uint32_t right; /* one of enum vb_access that was granted; 0: nothing is remembered */
	uint32_t epoch;
	uint32_t qp_generation;
	const struct vb_qp_row *qp_row; /* the target's, to see whether they are the same … */
	const struct vb_key_row *key_row;
	struct vb_key_row key; /* … and what was found there */
};

/* The QP that asks. */
struct vb_reach_asker {
	uint32_t service; /* enum vb_service */
	vb_qpn target;
	vb_qpn initiator;
	const struct vb_gid *target_gid;
	const struct vb_gid *initiator_gid;
	struct vb_reach_memo memo;
};

/* One WRITE, READ or atomic, and the part of it that is to be executed now. */
struct vb_reach_request {
	struct vb_reach_asker *asker;
	uint32_t srqn; /* XRC */
	uint32_t right; /* one of enum vb_access */
	uint32_t rkey;
	uint64_t address; /* of the whole request … */
	uint32_t length;
	uint32_t offset; /* … and this part of it */
	uint32_t part_length;
	const uint8_t *bytes; /* inline data of this part; NULL: it is in the spans */
	const struct vb_span *spans; /* memory of the initiator */
	uint32_t span_count;
};

/* An atomic operation on 64 bits in the CPU's byte order. */
struct vb_reach_atomic {
	bool is_compare;
	uint64_t compare;
	uint64_t swap_or_add;
};

/*
 * The row of the request's key, until the QP asks again; NULL if the rows do not permit it. One of length 0 needs no key, and gets an empty row. They
 * may hold anything, and change at any time: whoever acts on the answer has announced himself before he asked, and the target waits for him.
 */
const struct vb_key_row *vb_reach_check(const struct vb_reach_tables *tables,
					const struct vb_reach_request *request);

#define VB_REACH_WRITES_MAX 32

/*
 * WRITEs of one QP, up to VB_REACH_WRITES_MAX, in this order; returns how many of them, from the first on, are executed. Of the next one some may have been
 * done, and doing it again harms nothing.
 */
uint32_t vb_dma_reach_write(struct vb_reach *reach, const struct vb_reach_request *requests,
			    uint32_t count);
/* True: the part is executed. False: nothing, or some of it, has been done. */
bool vb_dma_reach_read(struct vb_reach *reach, const struct vb_reach_request *request);
/* False: nothing was done. */
bool vb_dma_reach_atomic(struct vb_reach *reach, const struct vb_reach_request *request,
			 const struct vb_reach_atomic *atomic, uint64_t *old_out);

/*
 * How far the line to the target is written, with all packets of earlier calls into the engine; and whether the target has read and executed what is
 * before that place, or never will. Places of one reach can be compared for as long as it is lent.
 */
uint64_t vb_dma_reach_line_end(const struct vb_reach *reach);
bool vb_dma_reach_has_read(const struct vb_reach *reach, uint64_t line_end);

/*
 * Whether the asker's peer is connected to it and sends by the wire, though there is a line. Its row says so before its first packet is out. If nothing can be
 * known it does not.
 */
bool vb_dma_reach_is_on_wire(const struct vb_reach *reach, const struct vb_reach_asker *asker);
/* The same, for who has the rows. */
bool vb_reach_is_on_wire(const struct vb_reach_tables *tables, const struct vb_reach_asker *asker);

/* Rows that others read: all zero at first, and as many as the engine's own tables have. */
struct vb_shown {
	struct vb_key_row *key_rows;
	struct vb_qp_row *qp_rows;
	struct vb_srq_row *srq_rows; /* VB_SRQ_ROWS */
};

/* From now on the rows are also kept here; or no longer, if NULL. */
void vb_nic_show(struct vb_nic *nic, const struct vb_shown *shown);

/*
 * Executes what was posted to the QP, if that is little, reaches the memory of its peer, and nothing else is to be done for anybody. False: it needs
 * a doorbell and vb_nic_transmit(), as ever.
 */
bool vb_qp_execute_at_once(struct vb_qp *qp, uint64_t now_ns);

/*
 * The same for a WRITE that is about to be posted, by whoever may post to the QP: it is as if it had been posted, executed and completed, but no slot is
 * written for it. False: it is to be posted.
 */
bool vb_qp_write_at_once(struct vb_qp *qp, uint64_t now_ns, const struct vb_send_request *request);
/* Whether that is worth a try; to be asked by anybody. */
bool vb_qp_may_write_at_once(const struct vb_qp *qp, const struct vb_send_request *request);

/* True if the last vb_nic_transmit() ended because so much was moved directly: there is more, but others may want a turn, too. */
bool vb_nic_has_moved_enough(const struct vb_nic *nic);

/* --- lines -------------------------------------------------------------------------------------- */

/*
 * A line is a way to a peer on this host that loses and damages nothing: its packets have no ICRC. The caller numbers them from 1 on. It says how many
 * packets of the longest kind each has room for; QPs whose line has none wait.
 */
#define VB_LINE_COUNT 256

/*
 * The QP's packets go this way from now on, 0 for the wire. For a connected QP that has sent nothing yet. `reach`, or NULL, is for
 * what it may execute itself; it is lent for as long as the QP has it.
 */
void vb_qp_set_line(struct vb_qp *qp, uint32_t line, struct vb_reach *reach);
/* The QP's packets take the wire, but its peer on this host may have chosen that line. */
void vb_qp_expect_line(struct vb_qp *qp, uint32_t line);
uint32_t vb_qp_line(const struct vb_qp *qp);
void vb_nic_set_line_room(struct vb_nic *nic, uint32_t line, uint32_t packets);
/* What is left of that. */
uint32_t vb_nic_line_room(const struct vb_nic *nic, uint32_t line);
/* Whether QPs wait for room. */
bool vb_nic_has_waiting_lines(const struct vb_nic *nic);
/* The line and what it reaches are gone: its QPs take the wire. */
void vb_nic_drop_line(struct vb_nic *nic, uint32_t line);

#endif
