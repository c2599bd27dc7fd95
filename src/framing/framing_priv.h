/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of framing.h that its own files share. */
#ifndef VB_FRAMING_FRAMING_PRIV_H
#define VB_FRAMING_FRAMING_PRIV_H

#include "framing/framing.h"

/* Puts a slot for the wire into the open batch or opens a new one with it, and sets its ID. */
void vb_framing_join_batch(struct vb_framing *framing, struct vb_slot *slot);

/* Takes back the ID of a slot that will not be sent. */
void vb_framing_give_up(struct vb_framing *framing, const struct vb_slot *slot);

#endif
