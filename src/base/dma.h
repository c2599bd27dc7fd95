/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only access to application memory. The functions are fixed at link time:
 * src/host/memory/dma.c accesses the memory of this process, src/sim/dma.c that of simulated
 * machines. Each may fail, because a program can unmap registered memory at any time. Then nothing
 * or a part has been copied, and the caller ends the operation with a completion error. Only the
 * memory-protection check hands out addresses for these functions.
 */
#ifndef VB_BASE_DMA_H
#define VB_BASE_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * An address in the application's memory. In a live process it is a pointer, but nothing below
 * src/host treats it as one.
 */
typedef uint64_t vb_dma_addr;

/* Copies from application memory to the engine's. */
bool vb_dma_read(void *to, vb_dma_addr from, size_t length);

/*
 * Copies into application memory. The last byte becomes visible to other threads only after all the
 * others: a program may spin on it.
 */
bool vb_dma_write(vb_dma_addr to, const void *from, size_t length);

/* Continue a CRC (see base/crc.h) over application memory. */
bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length);
bool vb_dma_crc32c(uint32_t *crc, vb_dma_addr from, size_t length);

/*
 * One CPU atomic on an aligned 64-bit word in the CPU's own byte order. *old is the previous value.
 */
bool vb_dma_compare_swap(vb_dma_addr at, uint64_t compare, uint64_t swap, uint64_t *old);
bool vb_dma_fetch_add(vb_dma_addr at, uint64_t add, uint64_t *old);

/* Stores 8 bytes, given in memory order, in one piece with release order. */
bool vb_dma_atomic_store(vb_dma_addr at, const uint8_t bytes[8]);

#endif
