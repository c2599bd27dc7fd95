/* SPDX-License-Identifier: BSD-2-Clause */
/* What a program posts next: drawn from everything that the channel's type can do. */
#ifndef VB_SIM_CHOICE_H
#define VB_SIM_CHOICE_H

#include "sim/draft.h"

struct vb_draft vb_choice_request(struct vb_world *world, struct vb_channel *channel,
				  uint32_t side);

#endif
