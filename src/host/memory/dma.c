/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vb_dma_* on the memory of this process, which the program may unmap, protect or truncate while we
 * copy. Each access runs under a guard (host/memory/guard_priv.h); host/memory/guard.c returns a
 * fault to it. Before vb_dma_install(), a fault ends the process, as in any other code.
 */
#include "host/memory/dma.h"

#include "base/copy.h"
#include "base/crc.h"
#include "host/memory/faultable_copy.h"
#include "host/memory/guard_priv.h"
#include "host/memory/signals_priv.h"

#include <string.h>

vb_err vb_dma_install(void)
{
	return vb_signal_install();
}

void vb_dma_begin(uint64_t now_ns)
{
	vb_guard_is_untried = vb_signal_begin(now_ns);
}

bool vb_dma_needs_exact_time(void)
{
	return !vb_signal_is_watched();
}

void vb_dma_end(void)
{
	vb_guard_is_untried = false;
	vb_signal_dismiss_faults();
}

static void *pointer(vb_dma_addr address)
{
	return (void *)(uintptr_t)address;
}

static __attribute__((noinline)) bool read_long(void *to, vb_dma_addr from, size_t length)
{
	struct vb_guard guard;

	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, from, length);
	memcpy(to, pointer(from), length);
	return vb_guard_close(&guard);
}

static __attribute__((noinline)) bool write_long(vb_dma_addr to, const void *from, size_t length)
{
	struct vb_guard guard;

	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, to, length);
	vb_copy_last_byte_last(pointer(to), from, length);
	return vb_guard_close(&guard);
}

bool vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	vb_guard_expect_fault();
	if (length > VB_TOUCH_MAX)
		return read_long(to, from, length);
	return vb_faultable_read(to, pointer(from), length);
}

bool vb_dma_write(vb_dma_addr to, const void *from, size_t length)
{
	vb_guard_expect_fault();
	if (length <= VB_TOUCH_MAX)
		return vb_faultable_write(pointer(to), from, length);
	if (vb_faultable_can_write_long(pointer(to), length))
		return vb_faultable_write_long(pointer(to), from, length);
	return write_long(to, from, length);
}

bool vb_dma_crc32(uint32_t *crc, vb_dma_addr from, size_t length)
{
	struct vb_guard guard;
	uint32_t result;

	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, from, length);
	result = vb_crc32(*crc, pointer(from), length);
	vb_guard_close(&guard);
	*crc = result;
	return true;
}

bool vb_dma_crc32c(uint32_t *crc, vb_dma_addr from, size_t length)
{
	struct vb_guard guard;
	uint32_t result;

	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, from, length);
	result = vb_crc32c(*crc, pointer(from), length);
	vb_guard_close(&guard);
	*crc = result;
	return true;
}

bool vb_dma_compare_swap(vb_dma_addr at, uint64_t compare, uint64_t swap, uint64_t *old)
{
	struct vb_guard guard;
	uint64_t expected;

	if (VB_GUARD_MARK(&guard))
		return false;
	expected = compare;
	vb_guard_open(&guard, at, sizeof(expected));
	__atomic_compare_exchange_n((uint64_t *)pointer(at), &expected, swap, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	vb_guard_close(&guard);
	*old = expected;
	return true;
}

bool vb_dma_fetch_add(vb_dma_addr at, uint64_t add, uint64_t *old)
{
	struct vb_guard guard;
	uint64_t before;

	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, at, sizeof(before));
	before = __atomic_fetch_add((uint64_t *)pointer(at), add, __ATOMIC_SEQ_CST);
	vb_guard_close(&guard);
	*old = before;
	return true;
}

bool vb_dma_atomic_store(vb_dma_addr at, const uint8_t bytes[8])
{
	struct vb_guard guard;
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	if (VB_GUARD_MARK(&guard))
		return false;
	vb_guard_open(&guard, at, sizeof(word));
	__atomic_store_n((uint64_t *)pointer(at), word, __ATOMIC_RELEASE);
	return vb_guard_close(&guard);
}
