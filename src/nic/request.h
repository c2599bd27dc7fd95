/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests and completions: what a program hands to the adapter and gets back. The numbers are
 * those of the verbs API, so that the ABI library translates by assignment.
 */
#ifndef VB_NIC_REQUEST_H
#define VB_NIC_REQUEST_H

#include "base/dma.h"

#include <stdbool.h>
#include <stdint.h>

struct vb_ah;
struct vb_mr;
struct vb_mw;
struct vb_qp;

#define VB_MESSAGE_LENGTH_MAX 0x80000000u /* C9-94 */

enum vb_wr_opcode {
	VB_WR_WRITE = 0,
	VB_WR_WRITE_IMM = 1,
	VB_WR_SEND = 2,
	VB_WR_SEND_IMM = 3,
	VB_WR_READ = 4,
	VB_WR_COMPARE_SWAP = 5,
	VB_WR_FETCH_ADD = 6,
	VB_WR_LOCAL_INV = 7,
	VB_WR_BIND_MW = 8,
	VB_WR_SEND_INV = 9,
	VB_WR_ATOMIC_WRITE = 15,
};

enum vb_send_flag {
	VB_SEND_FENCE = 1 << 0,
	VB_SEND_SIGNALED = 1 << 1,
	VB_SEND_SOLICITED = 1 << 2,
	VB_SEND_INLINE = 1 << 3,
};

/* Rights of a region, a window or a QP. */
enum vb_access {
	VB_ACCESS_LOCAL_WRITE = 1 << 0,
	VB_ACCESS_REMOTE_WRITE = 1 << 1,
	VB_ACCESS_REMOTE_READ = 1 << 2,
	VB_ACCESS_REMOTE_ATOMIC = 1 << 3,
	VB_ACCESS_MW_BIND = 1 << 4,
	VB_ACCESS_ZERO_BASED = 1 << 5,
	VB_ACCESS_ON_DEMAND = 1 << 6,
	VB_ACCESS_HUGETLB = 1 << 7,
	/* Hints such as relaxed ordering: accepted and without effect. */
	VB_ACCESS_OPTIONAL = 0x3ff00000,
};

struct vb_sge {
	/* In the key's address space (the iova); with INLINE the program's own address. */
	uint64_t address;
	uint32_t length; /* 0 means 0 */
	uint32_t lkey;
};

struct vb_bind {
	struct vb_mw *mw;
	struct vb_mr *mr; /* NULL with length 0: unbind (type 1) */
	uint32_t rkey; /* The key that the window is to have; only its low 8 bits may be new. */
	uint64_t address; /* in the region's address space */
	uint64_t length;
	uint32_t access;
};

struct vb_send_request {
	uint64_t wr_id;
	enum vb_wr_opcode opcode;
	uint32_t flags;
	const struct vb_sge *sges;
	uint32_t sge_count;
	uint32_t imm; /* the immediate (in the CPU's byte order), or the key to invalidate */
	uint64_t remote_address;
	uint32_t rkey;
	uint64_t compare_add; /* COMPARE_SWAP: what to compare with; FETCH_ADD: what to add */
	uint64_t swap;
	uint32_t remote_srqn; /* XRC_SEND */
	const struct vb_ah *ah; /* UD, with the next two */
	uint32_t remote_qpn;
	uint32_t remote_qkey; /* with its high bit set: the QP's own Q_Key is sent instead */
	struct vb_bind bind;
};

struct vb_recv_request {
	uint64_t wr_id;
	const struct vb_sge *sges;
	uint32_t sge_count;
};

/* Operations on the tag list of an SRQ. The numbers are those of the verbs API. */
enum vb_tag_opcode {
	VB_TAG_ADD = 0,
	VB_TAG_DELETE = 1,
	VB_TAG_SYNC = 2, /* changes nothing but the count */
};

enum vb_tag_flag {
	VB_TAG_SIGNALED = 1 << 0,
	VB_TAG_HAS_COUNT = 1 << 1, /* unexpected_count is valid */
};

struct vb_tag_request {
	uint64_t wr_id;
	enum vb_tag_opcode opcode;
	uint32_t flags;
	/* unexpected messages that the program has taken so far; its low 16 bits count */
	uint32_t unexpected_count;
	uint32_t handle; /* DELETE */
	uint64_t recv_wr_id; /* ADD, with the rest: of the message that matches */
	const struct vb_sge *sges;
	uint32_t sge_count;
	uint64_t tag;
	uint64_t mask; /* a message matches if the tag in its header, masked, is `tag` */
};

enum vb_status {
	VB_STATUS_SUCCESS = 0,
	VB_STATUS_LOC_LEN_ERR = 1,
	VB_STATUS_LOC_QP_OP_ERR = 2,
	VB_STATUS_LOC_PROT_ERR = 4,
	VB_STATUS_WR_FLUSH_ERR = 5,
	VB_STATUS_MW_BIND_ERR = 6,
	VB_STATUS_BAD_RESP_ERR = 7,
	VB_STATUS_LOC_ACCESS_ERR = 8,
	VB_STATUS_REM_INV_REQ_ERR = 9,
	VB_STATUS_REM_ACCESS_ERR = 10,
	VB_STATUS_REM_OP_ERR = 11,
	VB_STATUS_RETRY_EXC_ERR = 12,
	VB_STATUS_RNR_RETRY_EXC_ERR = 13,
	VB_STATUS_REM_INV_RD_REQ_ERR = 15,
	VB_STATUS_FATAL_ERR = 19,
	VB_STATUS_TM_ERR = 22, /* the tag is no longer in the list */
	VB_STATUS_TM_RNDV_INCOMPLETE = 23, /* the program must read the data of a rendezvous */
};

enum vb_completion_opcode {
	VB_COMPLETION_SEND = 0,
	VB_COMPLETION_WRITE = 1,
	VB_COMPLETION_READ = 2,
	VB_COMPLETION_COMPARE_SWAP = 3,
	VB_COMPLETION_FETCH_ADD = 4,
	VB_COMPLETION_BIND_MW = 5,
	VB_COMPLETION_LOCAL_INV = 6,
	VB_COMPLETION_ATOMIC_WRITE = 9,
	VB_COMPLETION_RECV = 128,
	VB_COMPLETION_RECV_WRITE_IMM = 129,
	VB_COMPLETION_TM_ADD = 130,
	VB_COMPLETION_TM_DEL = 131,
	VB_COMPLETION_TM_SYNC = 132,
	VB_COMPLETION_TM_RECV = 133,
	VB_COMPLETION_TM_NO_TAG = 134,
};

enum vb_completion_flag {
	VB_COMPLETION_HAS_GRH = 1 << 0,
	VB_COMPLETION_HAS_IMM = 1 << 1,
	VB_COMPLETION_HAS_INV = 1 << 3,
	VB_COMPLETION_TM_SYNC_REQ = 1 << 4, /* the adapter waits for a new count */
	VB_COMPLETION_TM_MATCH = 1 << 5, /* tag and tag_context are valid */
	VB_COMPLETION_TM_DATA_VALID = 1
				      << 6, /* the buffer has the data, and byte_length is valid */
};

/*
 * RoCE has no service level. In the completion of a receive, RoCE adapters use that field to report
 * the headers of the message: the type of the network header in the two low bits, and whether UDP
 * follows. Programs read from it which IP version carried a datagram.
 */
enum vb_headers {
	VB_HEADERS_IPV6 = 1,
	VB_HEADERS_IPV4 = 2,
	VB_HEADERS_UDP = 8,
};

/* With a status other than SUCCESS only wr_id, status, qpn and vendor_error are meaningful. */
struct vb_completion {
	uint64_t wr_id;
	uint64_t timestamp_ns; /* the engine's time when it completed */
	uint32_t byte_length;
	uint32_t imm; /* the immediate, or the key that was invalidated */
	uint32_t qpn;
	uint32_t source_qpn; /* UD receives */
	uint8_t status; /* enum vb_status */
	uint8_t opcode; /* enum vb_completion_opcode */
	uint8_t flags; /* enum vb_completion_flag */
	uint8_t vendor_error;
	uint16_t pkey_index;
	uint8_t service_level; /* receives: enum vb_headers */
	bool is_receive;
	/* For vb_cq_poll() itself: the QP that owns the ring slot to free. */
	struct vb_qp *qp;
	union {
		uint32_t slot_end; /* frees_slot: ring index after that of the request */
		uint32_t tag_context; /* TM_MATCH: app_context of the message's header */
	};
	bool frees_slot;
	uint64_t tag; /* TM_MATCH: of the message's header */
};

/* "SEND", "RETRY_EXC_ERR", …; "?" for an unknown number. */
const char *vb_wr_opcode_describe(uint8_t opcode);
const char *vb_status_describe(uint8_t status);
const char *vb_completion_opcode_describe(uint8_t opcode);

#endif
