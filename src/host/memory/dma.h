/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the live adapter needs of application memory beyond base/dma.h: to survive when it vanishes,
 * and to know before it is registered whether it exists at all. docs/adr/0001 explains how and why.
 */
#ifndef VB_HOST_MEMORY_DMA_H
#define VB_HOST_MEMORY_DMA_H

#include "base/dma.h"
#include "base/err.h"

/*
 * From here on the functions of base/dma.h return false where they would have ended the process
 * with SIGSEGV or SIGBUS. For each caller that opens an adapter, in any thread, as often as it
 * likes: a later call repairs what a program may have done to our handlers in the meantime.
 * VB_EOPNOTSUPP if the system does not let us handle these signals.
 */
VB_MUST_USE vb_err vb_dma_install(void);

/*
 * These two calls enclose code that copies in a thread of the program. The thread may have blocked
 * SIGSEGV and SIGBUS, and then a fault ends the process in spite of our handlers. The first copy in
 * between unblocks them, which is a system call; vb_dma_end() restores the mask. A thread that did
 * not have them blocked shortly before `now_ns` is assumed not to have them blocked now (see
 * signals_priv.h). Do not nest these calls. Copies outside survive a fault only where these signals
 * are not blocked.
 */
void vb_dma_begin(uint64_t now_ns);
/* False: `now_ns` may also be the time at the kernel's last tick. */
bool vb_dma_needs_exact_time(void);
void vb_dma_end(void);

/*
 * Copies from one place of application memory to another, the last word last. Only for ranges for
 * which vb_dma_can_copy() is true.
 */
bool vb_dma_can_copy(vb_dma_addr to, size_t length);
bool vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length);

/* The same for a single word, in two instructions. */
bool vb_dma_can_copy_word(vb_dma_addr to, size_t length);
bool vb_dma_copy_word(vb_dma_addr to, vb_dma_addr from);

/*
 * Whether every page of a range may be read, or written, at this moment. No page is touched. A file
 * that is shorter than its mapping is not noticed. True also where /proc is missing, because then
 * the answer is unknown.
 */
bool vb_dma_is_mapped(vb_dma_addr from, size_t length, bool for_writing);

#endif
