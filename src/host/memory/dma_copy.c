/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies from application memory to application memory, without a buffer of ours in between, where
 * one or two instructions can do it.
 */
#include "host/memory/dma.h"

#include "host/memory/faultable_copy.h"
#include "host/memory/guard_priv.h"
#include "host/memory/signals_priv.h"

bool vb_dma_can_copy(vb_dma_addr to, size_t length)
{
	return vb_faultable_can_write_long((const uint8_t *)(uintptr_t)to, length);
}

bool vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length)
{
	vb_guard_expect_fault();
	return vb_faultable_copy_long((uint8_t *)(uintptr_t)to, (const uint8_t *)(uintptr_t)from,
				      length);
}

VB_INLINE bool vb_dma_can_copy_word(vb_dma_addr to, size_t length)
{
	return vb_faultable_can_copy_word((const uint8_t *)(uintptr_t)to, length);
}

VB_INLINE bool vb_dma_copy_word(vb_dma_addr to, vb_dma_addr from)
{
	vb_guard_expect_fault();
	return vb_faultable_copy_word((uint8_t *)(uintptr_t)to, (const uint8_t *)(uintptr_t)from);
}
