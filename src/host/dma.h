/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the live adapter needs of application memory beyond base/dma.h: to survive that it vanishes, and
 * to know before it is registered whether it is there at all. docs/adr/0001 says how and why so.
 */
#ifndef VB_HOST_DMA_H
#define VB_HOST_DMA_H

#include "base/dma.h"
#include "base/err.h"

/*
 * From here on the functions of base/dma.h return false where they would have ended the process with
 * SIGSEGV or SIGBUS. To be called by whoever opens an adapter, in any thread, as often as one likes: a
 * later call repairs what a program may have done to our handlers behind our back. VB_EOPNOTSUPP if the
 * system does not let us handle these signals.
 */
VB_MUST_USE vb_err vb_dma_install(void);

/*
 * Around what copies in a thread of the program: it may have blocked SIGSEGV and SIGBUS, and then a fault
 * ends the process in spite of our handlers. The first copy in between unblocks them, which is a system call; the
 * end gives the mask back. A thread that was found without them blocked a moment before `now_ns` is taken at its word
 * (see signals_priv.h). Not to be nested. Copies outside survive only where these signals are not blocked.
 */
void vb_dma_begin(uint64_t now_ns);
void vb_dma_end(void);

/* From one place of application memory to another, the last word last; for ranges only that can be copied so. */
bool vb_dma_can_copy(vb_dma_addr to, size_t length);
bool vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length);

/*
 * Whether every page of a range may be read, or written, at this moment. No page is touched. A file that
 * is shorter than its mapping is not noticed. True also where /proc is missing, as we cannot tell.
 */
bool vb_dma_is_mapped(vb_dma_addr from, size_t length, bool for_writing);

#endif
