/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of DDP and RDMAP that need no memory. */
#include "stream/arrivals.h"

#include "base/err.h"

/* The words of each rule (RFC 5041, 7.2; RFC 5040, 4.8). */
static const struct vb_rdmap_error no_read_buffer = { VB_LAYER_DDP, 2, 2 };
static const struct vb_rdmap_error bad_msn = { VB_LAYER_DDP, 2, 3 };
static const struct vb_rdmap_error bad_offset = { VB_LAYER_DDP, 2, 4 };
static const struct vb_rdmap_error too_long = { VB_LAYER_DDP, 2, 5 };
static const struct vb_rdmap_error bad_stag = { VB_LAYER_DDP, 1, 0 };
static const struct vb_rdmap_error out_of_bounds = { VB_LAYER_DDP, 1, 1 };
static const struct vb_rdmap_error bad_opcode = { VB_LAYER_RDMAP, 2, 6 };
static const struct vb_rdmap_error unspecified = { VB_LAYER_RDMAP, 2, 0xff };

void vb_arrivals_init(struct vb_arrivals *arrivals, uint16_t ird, uint16_t ord,
		      struct vb_awaited_read *awaited)
{
	*arrivals = (struct vb_arrivals){
		.ird = ird, .ord = ord, .send_msn = 1, .read_msn = 1, .awaited = awaited
	};
}

void vb_arrivals_end(struct vb_arrivals *arrivals)
{
	arrivals->is_over = true;
}

static void refuse(struct vb_arrivals *arrivals, struct vb_arrival *arrival,
		   struct vb_rdmap_error error)
{
	arrival->kind = VB_ARRIVAL_REFUSED;
	arrival->error = error;
	arrivals->is_over = true;
}

/* --- untagged --------------------------------------------------------------------------------- */

static void take_send(struct vb_arrivals *arrivals, struct vb_arrival *arrival)
{
	const struct vb_rdmap *segment = &arrival->segment;
	uint64_t end = segment->ddp.offset + segment->payload_length;

	if (segment->ddp.msn != arrivals->send_msn) {
		refuse(arrivals, arrival, bad_msn);
		return;
	}
	if (segment->ddp.offset != arrivals->send_offset) {
		refuse(arrivals, arrival, bad_offset);
		return;
	}
	if (arrivals->has_begun_send && segment->ddp.opcode != arrivals->send_opcode) {
		refuse(arrivals, arrival, bad_opcode);
		return;
	}
	if (end > UINT32_MAX) { /* a message has less than 2^32 bytes */
		refuse(arrivals, arrival, too_long);
		return;
	}
	arrival->kind = VB_ARRIVAL_SEND;
	arrival->is_first = !arrivals->has_begun_send;
	arrival->is_last = segment->ddp.is_last;
	arrivals->has_begun_send = !arrival->is_last;
	arrivals->send_opcode = segment->ddp.opcode;
	arrivals->send_offset = arrival->is_last ? 0 : (uint32_t)end;
	arrivals->send_msn += arrival->is_last;
}

/* The queue of READ requests has as many buffers as the IRD says. */
static void take_read_request(struct vb_arrivals *arrivals, struct vb_arrival *arrival)
{
	const struct vb_ddp *ddp = &arrival->segment.ddp;

	if (ddp->msn != arrivals->read_msn) {
		refuse(arrivals, arrival, bad_msn);
		return;
	}
	if (ddp->offset) {
		refuse(arrivals, arrival, bad_offset);
		return;
	}
	if (arrivals->reads_in == arrivals->ird) {
		refuse(arrivals, arrival, no_read_buffer);
		return;
	}
	arrival->kind = VB_ARRIVAL_READ_REQUEST;
	arrivals->read_msn++;
	arrivals->reads_in++;
}

void vb_arrivals_on_answered(struct vb_arrivals *arrivals)
{
	VB_CHECK(arrivals->reads_in);
	arrivals->reads_in--;
}

/* --- tagged ----------------------------------------------------------------------------------- */

bool vb_arrivals_can_await(const struct vb_arrivals *arrivals)
{
	return arrivals->awaited_end - arrivals->awaited_first < arrivals->ord;
}

void vb_arrivals_await(struct vb_arrivals *arrivals, const struct vb_rdmap_read *read)
{
	VB_CHECK(vb_arrivals_can_await(arrivals));
	arrivals->awaited[arrivals->awaited_end++ % arrivals->ord] = (struct vb_awaited_read){
		.stag = read->sink_stag, .offset = read->sink_offset, .length = read->length
	};
}

/* Responses come in the order of the requests (RFC 5040, 5.2.2), and go where these said. */
static bool is_response_right(const struct vb_arrivals *arrivals, const struct vb_rdmap *segment,
			      struct vb_rdmap_error *error)
{
	const struct vb_awaited_read *read =
		&arrivals->awaited[arrivals->awaited_first % arrivals->ord];
	uint32_t left = read->length - arrivals->response_offset;

	/* Without data neither is checked (RFC 5041, 5.2). */
	if (segment->payload_length && segment->ddp.stag != read->stag) {
		*error = bad_stag;
		return false;
	}
	if (segment->payload_length > left ||
	    (segment->payload_length &&
	     segment->ddp.offset != read->offset + arrivals->response_offset)) {
		*error = out_of_bounds;
		return false;
	}
	*error = unspecified; /* it ends too early */
	return !segment->ddp.is_last || segment->payload_length == left;
}

static void take_response(struct vb_arrivals *arrivals, struct vb_arrival *arrival)
{
	struct vb_rdmap_error error = bad_stag; /* nobody has asked */

	if (arrivals->awaited_end == arrivals->awaited_first ||
	    !is_response_right(arrivals, &arrival->segment, &error)) {
		refuse(arrivals, arrival, error);
		return;
	}
	arrival->kind = VB_ARRIVAL_READ_RESPONSE;
	arrival->is_last = arrival->segment.ddp.is_last;
	arrivals->response_offset += arrival->segment.payload_length;
	if (!arrival->is_last)
		return;
	arrivals->response_offset = 0;
	arrivals->awaited_first++;
}

/* --- all -------------------------------------------------------------------------------------- */

static void take_segment(struct vb_arrivals *arrivals, struct vb_arrival *arrival)
{
	switch ((enum vb_rdmap_opcode)arrival->segment.ddp.opcode) {
	case VB_RDMAP_WRITE:
		if (arrival->segment.payload_length)
			arrival->kind = VB_ARRIVAL_WRITE;
		break;
	case VB_RDMAP_READ_REQUEST:
		take_read_request(arrivals, arrival);
		break;
	case VB_RDMAP_READ_RESPONSE:
		take_response(arrivals, arrival);
		break;
	case VB_RDMAP_SEND:
	case VB_RDMAP_SEND_INV:
	case VB_RDMAP_SEND_SE:
	case VB_RDMAP_SEND_SE_INV:
		take_send(arrivals, arrival);
		break;
	case VB_RDMAP_TERMINATE: /* whatever its number is: nothing can be said about it */
		arrival->kind = VB_ARRIVAL_TERMINATE;
		arrivals->is_over = true;
		break;
	}
}

void vb_arrivals_take(struct vb_arrivals *arrivals, const uint8_t *ulpdu, uint32_t length,
		      struct vb_arrival *arrival)
{
	enum vb_rdmap_parsing parsing;

	*arrival = (struct vb_arrival){ .kind = VB_ARRIVAL_NOTHING };
	if (arrivals->is_over)
		return;
	parsing = vb_rdmap_parse(ulpdu, length, &arrival->segment);
	if (parsing == VB_RDMAP_PARSED)
		take_segment(arrivals, arrival);
	else
		refuse(arrivals, arrival, vb_rdmap_parsing_error(parsing, length ? ulpdu[0] : 0));
}
