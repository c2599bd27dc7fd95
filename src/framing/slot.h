/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building a packet in a transmit slot: begin writes the headers (and sets the pad), then payload
 * is added, then vb_framing_finish() adds pad and ICRC.
 */
#ifndef VB_FRAMING_SLOT_H
#define VB_FRAMING_SLOT_H

#include "framing/frame.h"
#include "wire/packet.h"

void vb_slot_begin(struct vb_slot *slot, const struct vb_path *path, struct vb_packet *packet);
void vb_slot_add_bytes(struct vb_slot *slot, const uint8_t *bytes, uint32_t length);
/* Adds application memory, as a copy or as a span. False if it is to be copied and gone. */
bool vb_slot_add_memory(struct vb_slot *slot, vb_dma_addr address, uint32_t length, bool copy);

#endif
