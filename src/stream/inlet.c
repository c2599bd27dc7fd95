/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole FPDUs where they lie, and parts of them in the buffer. */
#include "stream/inlet.h"

#include <string.h>

void vb_inlet_init(struct vb_inlet *inlet, uint8_t *buffer, bool has_crc)
{
	*inlet = (struct vb_inlet){ .buffer = buffer, .has_crc = has_crc };
}

bool vb_inlet_is_between_fpdus(const struct vb_inlet *inlet)
{
	return !inlet->held;
}

/* Adds bytes to the buffer until it has so many. False: there are not enough. */
static bool fill(struct vb_inlet *inlet, const uint8_t **bytes, uint32_t *length, uint32_t wanted)
{
	uint32_t part = min32(*length, wanted - inlet->held);

	memcpy(inlet->buffer + inlet->held, *bytes, part);
	inlet->held += part;
	*bytes += part;
	*length -= part;
	return inlet->held == wanted;
}

static uint32_t size_of(const uint8_t *fpdu)
{
	return vb_mpa_fpdu_size(load16(fpdu));
}

/* The next whole FPDU, or NULL. */
static const uint8_t *next_fpdu(struct vb_inlet *inlet, const uint8_t **bytes, uint32_t *length)
{
	const uint8_t *fpdu = *bytes;

	if (!inlet->held && *length >= VB_MPA_LENGTH_SIZE && *length >= size_of(fpdu)) {
		*bytes += size_of(fpdu);
		*length -= size_of(fpdu);
		return fpdu;
	}
	if (inlet->held < VB_MPA_LENGTH_SIZE && !fill(inlet, bytes, length, VB_MPA_LENGTH_SIZE))
		return NULL;
	if (!fill(inlet, bytes, length, size_of(inlet->buffer)))
		return NULL;
	inlet->held = 0; /* but it stays there until the next call */
	return inlet->buffer;
}

enum vb_inlet_result vb_inlet_take(struct vb_inlet *inlet, const uint8_t **bytes, uint32_t *length,
				   const uint8_t **ulpdu, uint32_t *ulpdu_length)
{
	const uint8_t *fpdu;

	if (inlet->is_broken || !*length) {
		*bytes += *length;
		*length = 0;
		return VB_INLET_EMPTY;
	}
	fpdu = next_fpdu(inlet, bytes, length);
	if (!fpdu)
		return VB_INLET_EMPTY;
	if (inlet->has_crc && !vb_mpa_fpdu_check_crc(fpdu)) {
		inlet->is_broken = true;
		return VB_INLET_BAD_CRC;
	}
	*ulpdu = fpdu + VB_MPA_LENGTH_SIZE;
	*ulpdu_length = load16(fpdu);
	return VB_INLET_ULPDU;
}
