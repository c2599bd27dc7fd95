/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Published rows: copies of the engine's own rows (nic/tables.h), in memory that other processes of
 * this host read at any time. Each word is copied in one piece, between an odd generation and the
 * next even one.
 */
#ifndef VB_NIC_ROW_MIRROR_PRIV_H
#define VB_NIC_ROW_MIRROR_PRIV_H

#include "nic/tables.h"

/*
 * Begins a change: from now on no reader takes the row for stable. `mirror` is NULL if nothing is
 * published.
 */
void vb_row_mirror_begin_change(void *mirror, uint32_t *generation);
/* Ends a change: copies `row`, of `size` bytes, to `mirror`; the generation is even again. */
void vb_row_mirror_end_change(void *mirror, const void *row, uint32_t size);

#endif
