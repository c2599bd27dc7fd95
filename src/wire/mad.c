/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages as tables of fields (IBA tables 106 to 120): where each field lies in the message
 * and where in its struct. Connections are made a few thousand times a second, not millions: one
 * loop over a table is fast enough, and loading cannot differ from storing. Offsets count from the
 * end of the common header.
 */
#include "wire/mad.h"

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

#define BASE_VERSION 1
#define CLASS_CM 0x07
#define CLASS_VERSION 2
#define METHOD_SEND 0x03

struct field {
	uint16_t byte;
	uint8_t bit; /* from the most significant one */
	uint8_t width; /* in bits; 0: `size` bytes as they are */
	uint16_t offset; /* in struct vb_mad */
	uint16_t size;
};

struct layout {
	const struct field *fields;
	uint32_t field_count;
	uint32_t private_byte;
	uint32_t private_size;
};

#define PLACE(member) \
	.offset = offsetof(struct vb_mad, member), .size = sizeof(((struct vb_mad *)0)->member)
#define BITS(at, from, bits, member)                                        \
	{                                                                   \
		.byte = (at), .bit = (from), .width = (bits), PLACE(member) \
	}
#define BYTES(at, member)                   \
	{                                   \
		.byte = (at), PLACE(member) \
	}
#define LAYOUT(table, at, length)                                                     \
	{                                                                             \
		.fields = (table), .field_count = sizeof(table) / sizeof((table)[0]), \
		.private_byte = (at), .private_size = (length)                        \
	}

/* clang-format off */
#define PATH(at, path) \
	BITS((at), 0, 16, path.local_lid), \
	BITS((at) + 2, 0, 16, path.remote_lid), \
	BYTES((at) + 4, path.local_gid), \
	BYTES((at) + 20, path.remote_gid), \
	BITS((at) + 36, 0, 20, path.flow_label)

static const struct field req_fields[] = {
	BITS(0, 0, 32, local_id),
	BYTES(5, req.vendor),
	BITS(8, 0, 64, req.service),
	BITS(16, 0, 64, req.ca_guid),
	BITS(28, 0, 32, req.qkey),
	BITS(32, 0, 24, req.qpn.v),
	BITS(35, 0, 8, req.responder_resources),
	BITS(36, 0, 24, req.eecn),
	BITS(39, 0, 8, req.initiator_depth),
	BITS(40, 0, 24, req.remote_eecn),
	BITS(43, 0, 5, req.remote_response_timeout),
	BITS(43, 5, 2, req.transport),
	BITS(43, 7, 1, req.has_flow_control),
	BITS(44, 0, 24, req.starting_psn.v),
	BITS(47, 0, 5, req.local_response_timeout),
	BITS(47, 5, 3, req.retry_count),
	BITS(48, 0, 16, req.pkey),
	BITS(50, 0, 4, req.mtu),
	BITS(50, 4, 1, req.has_rdc),
	BITS(50, 5, 3, req.rnr_retry_count),
	BITS(51, 0, 4, req.cm_retries_max),
	BITS(51, 4, 1, req.has_srq),
	BITS(51, 5, 3, req.extended_transport),
	PATH(52, req.primary),
	BITS(91, 2, 6, req.primary.packet_rate),
	BITS(92, 0, 8, req.primary.traffic_class),
	BITS(93, 0, 8, req.primary.hop_limit),
	BITS(94, 0, 4, req.primary.service_level),
	BITS(94, 4, 1, req.primary.is_subnet_local),
	BITS(95, 0, 5, req.primary.ack_timeout),
	PATH(96, req.alternate),
	BITS(135, 2, 6, req.alternate.packet_rate),
	BITS(136, 0, 8, req.alternate.traffic_class),
	BITS(137, 0, 8, req.alternate.hop_limit),
	BITS(138, 0, 4, req.alternate.service_level),
	BITS(138, 4, 1, req.alternate.is_subnet_local),
	BITS(139, 0, 5, req.alternate.ack_timeout),
	BITS(139, 5, 1, req.supports_sap),
};

#define BOTH_IDS BITS(0, 0, 32, local_id), BITS(4, 0, 32, remote_id)

static const struct field mra_fields[] = {
	BOTH_IDS,
	BITS(8, 0, 2, mra.about),
	BITS(9, 0, 5, mra.service_timeout),
};

static const struct field rej_fields[] = {
	BOTH_IDS,
	BITS(8, 0, 2, rej.about),
	BITS(9, 0, 7, rej.info_length),
	BITS(10, 0, 16, rej.reason),
	BYTES(12, rej.info),
};

static const struct field rep_fields[] = {
	BOTH_IDS,
	BITS(8, 0, 32, rep.qkey),
	BITS(12, 0, 24, rep.qpn.v),
	BYTES(15, rep.vendor[0]),
	BITS(16, 0, 24, rep.eecn),
	BYTES(19, rep.vendor[1]),
	BITS(20, 0, 24, rep.starting_psn.v),
	BYTES(23, rep.vendor[2]),
	BITS(24, 0, 8, rep.responder_resources),
	BITS(25, 0, 8, rep.initiator_depth),
	BITS(26, 0, 5, rep.target_ack_delay),
	BITS(26, 5, 2, rep.failover),
	BITS(26, 7, 1, rep.has_flow_control),
	BITS(27, 0, 3, rep.rnr_retry_count),
	BITS(27, 3, 1, rep.has_srq),
	BITS(28, 0, 64, rep.ca_guid),
};

static const struct field id_fields[] = { BOTH_IDS };

static const struct field dreq_fields[] = {
	BOTH_IDS,
	BITS(8, 0, 24, dreq.remote_qpn.v),
};

static const struct field sidr_req_fields[] = {
	BITS(0, 0, 32, local_id),
	BITS(4, 0, 16, sidr_req.pkey),
	BITS(8, 0, 64, sidr_req.service),
};

static const struct field sidr_rep_fields[] = {
	BITS(0, 0, 32, remote_id),
	BITS(4, 0, 8, sidr_rep.status),
	BITS(5, 0, 8, sidr_rep.info_length),
	BYTES(6, sidr_rep.vendor[0]),
	BYTES(7, sidr_rep.vendor[1]),
	BITS(8, 0, 24, sidr_rep.qpn.v),
	BYTES(11, sidr_rep.vendor[2]),
	BITS(12, 0, 64, sidr_rep.service),
	BITS(20, 0, 32, sidr_rep.qkey),
	BYTES(24, sidr_rep.info),
};

static const struct field lap_fields[] = {
	BOTH_IDS,
	BITS(12, 0, 24, lap.remote_qpn.v),
	BITS(15, 0, 5, lap.remote_response_timeout),
	PATH(20, lap.alternate),
	BITS(59, 0, 8, lap.alternate.traffic_class),
	BITS(60, 0, 8, lap.alternate.hop_limit),
	BITS(61, 2, 6, lap.alternate.packet_rate),
	BITS(62, 0, 4, lap.alternate.service_level),
	BITS(62, 4, 1, lap.alternate.is_subnet_local),
	BITS(63, 0, 5, lap.alternate.ack_timeout),
};

static const struct field apr_fields[] = {
	BOTH_IDS,
	BITS(8, 0, 8, apr.info_length),
	BITS(9, 0, 8, apr.status),
	BYTES(12, apr.info),
};

static const struct layout layouts[VB_MAD_KIND_COUNT] = {
	/* NOLINTNEXTLINE(misc-redundant-expression): like the other rows */
	[VB_MAD_REQ - VB_MAD_REQ] = LAYOUT(req_fields, 140, 92),
	[VB_MAD_MRA - VB_MAD_REQ] = LAYOUT(mra_fields, 10, 222),
	[VB_MAD_REJ - VB_MAD_REQ] = LAYOUT(rej_fields, 84, 148),
	[VB_MAD_REP - VB_MAD_REQ] = LAYOUT(rep_fields, 36, 196),
	[VB_MAD_RTU - VB_MAD_REQ] = LAYOUT(id_fields, 8, 224),
	[VB_MAD_DREQ - VB_MAD_REQ] = LAYOUT(dreq_fields, 12, 220),
	[VB_MAD_DREP - VB_MAD_REQ] = LAYOUT(id_fields, 8, 224),
	[VB_MAD_SIDR_REQ - VB_MAD_REQ] = LAYOUT(sidr_req_fields, 16, 216),
	[VB_MAD_SIDR_REP - VB_MAD_REQ] = LAYOUT(sidr_rep_fields, 96, 136),
	[VB_MAD_LAP - VB_MAD_REQ] = LAYOUT(lap_fields, 64, 168),
	[VB_MAD_APR - VB_MAD_REQ] = LAYOUT(apr_fields, 84, 148),
};
/* clang-format on */

static const struct layout *layout_of(enum vb_mad_kind kind)
{
	VB_CHECK(kind >= VB_MAD_REQ && kind <= VB_MAD_APR);
	return &layouts[kind - VB_MAD_REQ];
}

uint32_t vb_mad_private_size(enum vb_mad_kind kind)
{
	return layout_of(kind)->private_size;
}

/* The distance of the field from the right end of its last byte, and how many bytes it occupies. */
static uint32_t shift_of(const struct field *field, uint32_t *byte_count)
{
	uint32_t end = field->bit + field->width;

	*byte_count = (end + 7) / 8;
	return *byte_count * 8 - end;
}

static uint64_t mask_of(const struct field *field)
{
	return field->width == 64 ? UINT64_MAX : (UINT64_C(1) << field->width) - 1;
}

static uint64_t load_bytes(const uint8_t *p, uint32_t count)
{
	uint64_t value = 0;

	for (uint32_t i = 0; i < count; i++)
		value = value << 8 | p[i];
	return value;
}

/* A member of struct vb_mad as a number, whatever its size. */
static uint64_t get_member(const uint8_t *member, uint32_t size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		return *member;
	case 2:
		memcpy(&v16, member, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, member, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, member, sizeof(v64));
		return v64;
	}
}

static void set_member(uint8_t *member, uint32_t size, uint64_t value)
{
	uint16_t v16 = (uint16_t)value;
	uint32_t v32 = (uint32_t)value;

	switch (size) {
	case 1:
		*member = (uint8_t)value;
		break;
	case 2:
		memcpy(member, &v16, sizeof(v16));
		break;
	case 4:
		memcpy(member, &v32, sizeof(v32));
		break;
	default:
		memcpy(member, &value, sizeof(value));
		break;
	}
}

static void load_field(const uint8_t *message, const struct field *field, struct vb_mad *mad)
{
	uint8_t *member = (uint8_t *)mad + field->offset;
	uint32_t byte_count, shift;

	if (!field->width) {
		memcpy(member, message + field->byte, field->size);
		return;
	}
	shift = shift_of(field, &byte_count);
	set_member(member, field->size,
		   load_bytes(message + field->byte, byte_count) >> shift & mask_of(field));
}

static void store_field(uint8_t *message, const struct field *field, const struct vb_mad *mad)
{
	const uint8_t *member = (const uint8_t *)mad + field->offset;
	uint32_t byte_count, shift;
	uint64_t value;

	if (!field->width) {
		memcpy(message + field->byte, member, field->size);
		return;
	}
	shift = shift_of(field, &byte_count);
	value = (get_member(member, field->size) & mask_of(field)) << shift;
	for (uint32_t i = byte_count; i > 0; i--) {
		message[field->byte + i - 1] |= (uint8_t)value;
		value >>= 8;
	}
}

static bool is_for_cm(const uint8_t *p)
{
	return p[0] == BASE_VERSION && p[1] == CLASS_CM && p[3] == METHOD_SEND;
}

enum vb_mad_parsing vb_mad_parse(const uint8_t *p, uint32_t length, struct vb_mad *mad)
{
	const struct layout *layout;
	uint16_t kind;

	if (length != VB_MAD_SIZE)
		return VB_MAD_BAD_LENGTH;
	if (!is_for_cm(p))
		return VB_MAD_BAD_CLASS;
	if (p[2] != CLASS_VERSION)
		return VB_MAD_BAD_VERSION;
	kind = load16(p + 16);
	if (kind < VB_MAD_REQ || kind > VB_MAD_APR)
		return VB_MAD_BAD_KIND;
	*mad = (struct vb_mad){
		.kind = (enum vb_mad_kind)kind,
		.transaction = load64(p + 8),
		.modifier = load32(p + 20),
	};
	layout = layout_of(mad->kind);
	p += VB_MAD_HEADER_SIZE;
	for (uint32_t i = 0; i < layout->field_count; i++)
		load_field(p, &layout->fields[i], mad);
	memcpy(mad->private_data, p + layout->private_byte, layout->private_size);
	return VB_MAD_PARSED;
}

void vb_mad_store(uint8_t p[VB_MAD_SIZE], const struct vb_mad *mad)
{
	const struct layout *layout = layout_of(mad->kind);

	memset(p, 0, VB_MAD_SIZE);
	p[0] = BASE_VERSION;
	p[1] = CLASS_CM;
	p[2] = CLASS_VERSION;
	p[3] = METHOD_SEND;
	store64(p + 8, mad->transaction);
	store16(p + 16, (uint16_t)mad->kind);
	store32(p + 20, mad->modifier);
	p += VB_MAD_HEADER_SIZE;
	for (uint32_t i = 0; i < layout->field_count; i++)
		store_field(p, &layout->fields[i], mad);
	memcpy(p + layout->private_byte, mad->private_data, layout->private_size);
}
