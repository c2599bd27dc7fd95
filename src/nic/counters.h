/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the adapter counts, under the names that RDMA users know from hardware, and one reason for
 * every frame that it refuses. Both lists are X macros: enum, name and count come from the same
 * row.
 */
#ifndef VB_NIC_COUNTERS_H
#define VB_NIC_COUNTERS_H

#include <stdint.h>

#define VB_COUNTERS(X)                                                                       \
	X(TX_PACKETS, "tx_packets")                                                          \
	X(TX_BYTES, "tx_bytes")                                                              \
	X(RX_PACKETS, "rx_packets")                                                          \
	X(RX_BYTES, "rx_bytes")                                                              \
	X(TX_MULTICAST_PACKETS, "tx_multicast_packets")                                      \
	X(RX_MULTICAST_PACKETS, "rx_multicast_packets") /* also those without a member */    \
	X(DIRECT_PARTS, "direct_parts") /* executed in a peer's memory by the initiator */   \
	X(TX_TRAINS, "tx_trains") /* packets of SENDs to local peers that went together */   \
	X(RX_TRAINS, "rx_trains")                                                            \
	X(TRAINS_REFUSED, "trains_refused") /* requester: by the peer that was to fetch */   \
	X(RX_WRITE_REQUESTS, "rx_write_requests")                                            \
	X(RX_READ_REQUESTS, "rx_read_requests")                                              \
	X(RX_ATOMIC_REQUESTS, "rx_atomic_requests")                                          \
	X(RX_ICRC_ENCAPSULATED, "rx_icrc_encapsulated") /* refused for a wrong ICRC */       \
	X(OUT_OF_BUFFER, "out_of_buffer") /* no receive was posted */                        \
	X(OUT_OF_SEQUENCE, "out_of_sequence") /* responder: a request packet is missing */   \
	X(DUPLICATE_REQUEST, "duplicate_request")                                            \
	X(PACKET_SEQ_ERR, "packet_seq_err") /* requester: got a NAK sequence */              \
	X(IMPLIED_NAK_SEQ_ERR, "implied_nak_seq_err") /* requester: a response is missing */ \
	X(LOCAL_ACK_TIMEOUT_ERR, "local_ack_timeout_err")                                    \
	X(RNR_NAK_RETRY_ERR, "rnr_nak_retry_err") /* requester: got an RNR NAK */            \
	X(RNR_NAK_SENT, "resp_rnr_nak")                                                      \
	X(RETRY_EXCEEDED_ERR, "req_transport_retries_exceeded")                              \
	X(RNR_RETRY_EXCEEDED_ERR, "req_rnr_retries_exceeded")                                \
	X(REQ_REMOTE_INVALID_REQUEST, "req_remote_invalid_request")                          \
	X(REQ_REMOTE_ACCESS_ERRORS, "req_remote_access_errors")                              \
	X(REQ_REMOTE_OP_ERRORS, "req_remote_op_errors")                                      \
	X(REQ_CQE_ERROR, "req_cqe_error")                                                    \
	X(REQ_CQE_FLUSH_ERROR, "req_cqe_flush_error")                                        \
	X(RESP_CQE_ERROR, "resp_cqe_error")                                                  \
	X(RESP_CQE_FLUSH_ERROR, "resp_cqe_flush_error")                                      \
	X(RESP_LOCAL_LENGTH_ERROR, "resp_local_length_error")                                \
	X(RESP_REMOTE_ACCESS_ERRORS, "resp_remote_access_errors")                            \
	X(RESP_REMOTE_INVALID_REQUEST, "resp_remote_invalid_request")                        \
	X(RESP_REMOTE_OP_ERRORS, "resp_remote_op_errors")                                    \
	X(BAD_RESP_ERR, "bad_resp_err")                                                      \
	X(QKEY_VIOLATIONS, "qkey_viol_cntr")                                                 \
	X(PKEY_VIOLATIONS, "bad_pkey_cntr")

enum vb_counter {
#define X(symbol, name) VB_COUNTER_##symbol,
	VB_COUNTERS(X)
#undef X
		VB_COUNTER_COUNT
};

#define VB_DROPS(X)                                                                             \
	X(TOO_SHORT, "too_short")                                                               \
	X(VERSION, "transport_version")                                                         \
	X(OPCODE, "unknown_opcode")                                                             \
	X(LENGTH, "length")                                                                     \
	X(ICRC, "icrc")                                                                         \
	X(CONGESTION_NOTICE, "congestion_notice") /* a CNP: no part of the engine reacts yet */ \
	X(NO_QP, "no_such_qp")                                                                  \
	X(QP_STATE, "qp_state")                                                                 \
	X(QP_TYPE, "opcode_not_for_qp_type")                                                    \
	X(PKEY, "pkey")                                                                         \
	X(ADDRESS, "not_from_the_peer")                                                         \
	X(WAY, "not_by_the_way_of_the_peer") /* by the wire, though the peer has a link */      \
	X(STRANGER, "from_a_stranger_on_this_host") /* another user's port */                   \
	X(QKEY, "qkey")                                                                         \
	X(NO_MEMBER, "no_multicast_member")                                                     \
	X(COPY, "multicast_came_by_shm") /* and by the wire a second time */                    \
	X(NOT_OUR_RESPONSE, "response_to_nothing") /* ghost or duplicate response */            \
	X(RESPONSE_WHILE_WAITING, "response_out_of_sequence")                                   \
	X(OUT_OF_SEQUENCE, "out_of_sequence") /* after a gap for which a NAK was sent */        \
	X(OLD_DUPLICATE, "duplicate_too_old") /* its reply is no longer kept */                 \
	X(BROKEN_MESSAGE, "broken_message") /* UC: the rest of a message with a gap */          \
	X(NO_RECEIVE, "no_receive_posted") /* UC and UD */                                      \
	X(TOO_LONG, "longer_than_the_receive") /* UC and UD */                                  \
	X(REFUSED, "refused_by_protection") /* UC: a write without the right */                 \
	X(DYING, "qp_about_to_fail") /* a fatal NAK is on its way */                            \
	X(INVALID, "invalid_request") /* UC and UD: not well-formed for the QP */

enum vb_drop {
#define X(symbol, name) VB_DROP_##symbol,
	VB_DROPS(X)
#undef X
		VB_DROP_COUNT
};

struct vb_counters {
	uint64_t counts[VB_COUNTER_COUNT];
	uint64_t drops[VB_DROP_COUNT];
};

const char *vb_counter_name(enum vb_counter counter);
const char *vb_drop_name(enum vb_drop drop);

#endif
