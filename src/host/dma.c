/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vb_dma_* on the memory of this very process, for tests and benchmarks of the engine. It does not survive
 * memory that vanished: the live adapter's version will.
 */
#include "base/dma.h"

#include "base/copy.h"
#include "base/crc.h"

#include <string.h>

static void *pointer(vb_dma_addr address)
{
	return (void *)(uintptr_t)address;
}

bool vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	memcpy(to, pointer(from), length);
	return true;
}

bool vb_dma_write(vb_dma_addr to, const void *from, size_t length)
{
	vb_copy_last_byte_last(pointer(to), from, length);
	return true;
}

bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length)
{
	*crc = vb_crc32(*crc, pointer(from), length);
	return true;
}

bool vb_dma_compare_swap(vb_dma_addr at, uint64_t compare, uint64_t swap, uint64_t *old)
{
	uint64_t expected = compare;

	__atomic_compare_exchange_n((uint64_t *)pointer(at), &expected, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	*old = expected;
	return true;
}

bool vb_dma_fetch_add(vb_dma_addr at, uint64_t add, uint64_t *old)
{
	*old = __atomic_fetch_add((uint64_t *)pointer(at), add, __ATOMIC_SEQ_CST);
	return true;
}

bool vb_dma_atomic_store(vb_dma_addr at, const uint8_t bytes[8])
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	__atomic_store_n((uint64_t *)pointer(at), word, __ATOMIC_RELEASE);
	return true;
}
