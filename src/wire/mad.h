/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Management datagrams of the connection manager (IBA volume 1, chapter 12): the content of a UD
 * packet to QP 1, always 256 bytes. One struct holds any of the eleven messages. Private data has
 * no length on the wire: a message carries all of it, with zeros after what the sender wrote.
 * Loading and storing use one table of fields (mad.c).
 */
#ifndef VB_WIRE_MAD_H
#define VB_WIRE_MAD_H

#include "base/bytes.h"
#include "wire/flow.h"
#include "wire/number.h"

#include <stdint.h>

#define VB_MAD_SIZE 256 /* C13-3 */
#define VB_MAD_HEADER_SIZE 24
#define VB_MAD_PRIVATE_MAX 224
#define VB_MAD_INFO_SIZE 72 /* additional information of REJ, APR and SIDR_REP */
#define VB_MAD_QPN ((vb_qpn){ 1 })
#define VB_MAD_QKEY 0x80010000u /* of QP 1, everywhere */
#define VB_MAD_LID_PERMISSIVE 0xffff

/* The attribute IDs. */
enum vb_mad_kind {
	VB_MAD_REQ = 0x10,
	VB_MAD_MRA,
	VB_MAD_REJ,
	VB_MAD_REP,
	VB_MAD_RTU,
	VB_MAD_DREQ,
	VB_MAD_DREP,
	VB_MAD_SIDR_REQ,
	VB_MAD_SIDR_REP,
	VB_MAD_LAP,
	VB_MAD_APR,
};
#define VB_MAD_KIND_COUNT 11

/* Transport service types of a REQ; XRC is the only extended one. */
enum vb_mad_transport {
	VB_MAD_TRANSPORT_RC,
	VB_MAD_TRANSPORT_UC,
	VB_MAD_TRANSPORT_RD,
	VB_MAD_TRANSPORT_EXTENDED,
};
#define VB_MAD_EXTENDED_XRC 1

/* Which message a REJ refuses or an MRA acknowledges. */
enum vb_mad_about {
	VB_MAD_ABOUT_REQ,
	VB_MAD_ABOUT_REP,
	VB_MAD_ABOUT_OTHER, /* REJ: none in particular; MRA: a LAP */
};

/* Reasons of a REJ (IBA 12.6.7.2). */
enum vb_mad_reason {
	VB_MAD_NO_QP = 1,
	VB_MAD_NO_EEC,
	VB_MAD_NO_RESOURCES,
	VB_MAD_TIMEOUT,
	VB_MAD_UNSUPPORTED,
	VB_MAD_INVALID_COMM_ID,
	VB_MAD_INVALID_COMM_INSTANCE,
	VB_MAD_INVALID_SERVICE_ID,
	VB_MAD_INVALID_TRANSPORT_TYPE,
	VB_MAD_STALE_CONNECTION,
	VB_MAD_NO_RDC,
	VB_MAD_INVALID_GID,
	VB_MAD_INVALID_LID,
	VB_MAD_INVALID_SL,
	VB_MAD_INVALID_TRAFFIC_CLASS,
	VB_MAD_INVALID_HOP_LIMIT,
	VB_MAD_INVALID_PACKET_RATE,
	VB_MAD_INVALID_ALTERNATE_GID,
	VB_MAD_INVALID_ALTERNATE_LID,
	VB_MAD_INVALID_ALTERNATE_SL,
	VB_MAD_INVALID_ALTERNATE_TRAFFIC_CLASS,
	VB_MAD_INVALID_ALTERNATE_HOP_LIMIT,
	VB_MAD_INVALID_ALTERNATE_PACKET_RATE,
	VB_MAD_PORT_CM_REDIRECT,
	VB_MAD_PORT_REDIRECT,
	VB_MAD_INVALID_MTU,
	VB_MAD_INSUFFICIENT_RESPONDER_RESOURCES,
	VB_MAD_CONSUMER_DEFINED,
	VB_MAD_INVALID_RNR_RETRY_COUNT,
	VB_MAD_DUPLICATE_COMM_ID,
	VB_MAD_INVALID_CLASS_VERSION,
	VB_MAD_INVALID_FLOW_LABEL,
	VB_MAD_INVALID_ALTERNATE_FLOW_LABEL,
	VB_MAD_VENDOR_OPTION_NOT_SUPPORTED = 35,
};

/* Status of a SIDR_REP. */
enum vb_mad_sidr_status {
	VB_MAD_SIDR_VALID,
	VB_MAD_SIDR_UNSUPPORTED, /* no such service */
	VB_MAD_SIDR_REJECTED,
	VB_MAD_SIDR_NO_QP,
	VB_MAD_SIDR_REDIRECTED,
	VB_MAD_SIDR_UNSUPPORTED_VERSION,
};

struct vb_mad_path {
	uint16_t local_lid; /* local is the sender of the message */
	uint16_t remote_lid; /* RoCEv2 ignores both (CA17-34) */
	struct vb_gid local_gid;
	struct vb_gid remote_gid;
	uint32_t flow_label;
	uint8_t packet_rate;
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t service_level;
	uint8_t is_subnet_local;
	uint8_t ack_timeout; /* 4.096 us * 2^this */
};

struct vb_mad_req {
	uint8_t vendor[3]; /* ECE: of the sender's adapter */
	uint64_t service;
	uint64_t ca_guid;
	uint32_t qkey;
	vb_qpn qpn;
	uint8_t responder_resources; /* READs and atomics that the sender takes at the same time */
	uint32_t eecn;
	/* READs and atomics that the sender has in flight at the same time. */
	uint8_t initiator_depth;
	uint32_t remote_eecn;
	uint8_t remote_response_timeout; /* for the receiver of this message; 4.096 us * 2^this */
	uint8_t transport; /* enum vb_mad_transport */
	uint8_t has_flow_control;
	vb_psn starting_psn; /* the first PSN that the receiver of this message uses */
	uint8_t local_response_timeout; /* how fast the sender of this message answers */
	uint8_t retry_count;
	uint16_t pkey;
	uint8_t mtu; /* 1 to 5: 256 to 4096 */
	uint8_t has_rdc;
	uint8_t rnr_retry_count;
	uint8_t cm_retries_max;
	uint8_t has_srq;
	uint8_t extended_transport;
	struct vb_mad_path primary;
	struct vb_mad_path alternate;
	uint8_t supports_sap;
};

struct vb_mad_mra {
	uint8_t about; /* enum vb_mad_about */
	uint8_t service_timeout;
};

struct vb_mad_rej {
	uint8_t about; /* enum vb_mad_about */
	uint8_t info_length;
	uint16_t reason; /* enum vb_mad_reason */
	uint8_t info[VB_MAD_INFO_SIZE]; /* the ARI */
};

struct vb_mad_rep {
	uint8_t vendor[3];
	uint32_t qkey;
	vb_qpn qpn;
	uint32_t eecn; /* XRC: holds the QPN instead of qpn */
	vb_psn starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay;
	uint8_t failover;
	uint8_t has_flow_control;
	uint8_t rnr_retry_count;
	uint8_t has_srq;
	uint64_t ca_guid;
};

struct vb_mad_dreq {
	vb_qpn remote_qpn; /* of the receiver of this message */
};

struct vb_mad_sidr_req {
	uint16_t pkey;
	uint64_t service;
};

struct vb_mad_sidr_rep {
	uint8_t vendor[3];
	uint8_t status; /* enum vb_mad_sidr_status */
	uint8_t info_length;
	vb_qpn qpn;
	uint64_t service;
	uint32_t qkey;
	uint8_t info[VB_MAD_INFO_SIZE];
};

struct vb_mad_lap {
	vb_qpn remote_qpn;
	uint8_t remote_response_timeout;
	struct vb_mad_path alternate;
};

struct vb_mad_apr {
	uint8_t info_length;
	uint8_t status;
	uint8_t info[VB_MAD_INFO_SIZE];
};

struct vb_mad {
	enum vb_mad_kind kind;
	uint64_t transaction;
	uint32_t modifier; /* ECE: the options of REQ, REP and SIDR_REP; else 0 */
	uint32_t local_id; /* the sender's communication ID; a SIDR_REP has none */
	uint32_t remote_id; /* the receiver's; REQ and SIDR_REQ have none */
	union {
		struct vb_mad_req req;
		struct vb_mad_mra mra;
		struct vb_mad_rej rej;
		struct vb_mad_rep rep; /* RTU and DREP have nothing more */
		struct vb_mad_dreq dreq;
		struct vb_mad_sidr_req sidr_req;
		struct vb_mad_sidr_rep sidr_rep;
		struct vb_mad_lap lap;
		struct vb_mad_apr apr;
	};
	uint8_t private_data[VB_MAD_PRIVATE_MAX]; /* the first vb_mad_private_size() bytes */
};

enum vb_mad_parsing {
	VB_MAD_PARSED,
	VB_MAD_BAD_LENGTH, /* not 256 bytes */
	VB_MAD_BAD_CLASS, /* base version, class or method of other datagrams */
	VB_MAD_BAD_VERSION, /* another version of this class */
	VB_MAD_BAD_KIND, /* not a message of the connection manager */
};

/* Writes *mad only when it returns VB_MAD_PARSED. Reserved bits are ignored. */
enum vb_mad_parsing vb_mad_parse(const uint8_t *p, uint32_t length, struct vb_mad *mad);
void vb_mad_store(uint8_t p[VB_MAD_SIZE], const struct vb_mad *mad);

/* How many bytes of private data a message of this kind has. */
uint32_t vb_mad_private_size(enum vb_mad_kind kind);

/* The time that an exponent in a message stands for. */
static inline uint64_t vb_mad_timeout_ns(uint8_t exponent)
{
	return (uint64_t)4096 << (exponent & 0x1f);
}

const char *vb_mad_kind_describe(enum vb_mad_kind kind);
const char *vb_mad_reason_describe(uint16_t reason);

/* One line, for logs and traces. Returns the length of the whole line, even if it was truncated. */
int vb_mad_describe(const struct vb_mad *mad, char *text, uint32_t size);

#endif
