/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inlet of an iWARP stream: bytes that are cut anywhere go in, whole ULPDUs come out, each
 * after its CRC was found right. An FPDU that is whole in the caller's bytes stays there. Only one
 * that is cut is copied. After an error nothing comes out any more (RFC 5044, 8).
 */
#ifndef VB_STREAM_INLET_H
#define VB_STREAM_INLET_H

#include "wire/mpa.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_INLET_BUFFER_SIZE (VB_MPA_LENGTH_SIZE + VB_MPA_ULPDU_MAX + VB_MPA_TRAILER_MAX)

struct vb_inlet {
	uint8_t *buffer; /* the owner's, VB_INLET_BUFFER_SIZE bytes */
	uint32_t held; /* bytes of a part of an FPDU */
	bool has_crc;
	bool is_broken;
};

enum vb_inlet_result {
	VB_INLET_EMPTY, /* all bytes are taken, and there is no whole FPDU */
	VB_INLET_ULPDU,
	VB_INLET_BAD_CRC, /* once */
};

/* The buffer is lent for as long as the inlet is used. */
void vb_inlet_init(struct vb_inlet *inlet, uint8_t *buffer, bool has_crc);

/*
 * Takes bytes, and moves *bytes and *length behind them. With VB_INLET_ULPDU there is one, valid
 * until the next call and as long as the bytes are; then it is to be called again.
 */
enum vb_inlet_result vb_inlet_take(struct vb_inlet *inlet, const uint8_t **bytes, uint32_t *length,
				   const uint8_t **ulpdu, uint32_t *ulpdu_length);

/* Whether the stream may end here: no part of an FPDU has come. */
bool vb_inlet_is_between_fpdus(const struct vb_inlet *inlet);

#endif
