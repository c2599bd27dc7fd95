/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC-32 of Ethernet (reflected, polynomial 0x04C11DB7), which the ICRC uses, and CRC32c
 * (reflected, polynomial 0x1EDC6F41), which MPA has in common with iSCSI. Two methods give the same
 * results: isa-l picks the fastest instructions of the CPU at run time; tables are faster where
 * those instructions are slow or missing. A caller that has a clock may measure and choose
 * (host/sys/measure.h).
 */
#ifndef VB_BASE_CRC_H
#define VB_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

enum vb_crc_method { VB_CRC_INSTRUCTIONS, VB_CRC_TABLES };

/* Starts with crc = 0 and continues with the previous result; the usual inversions are inside. */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length);
uint32_t vb_crc32c(uint32_t crc, const void *bytes, size_t length);

/*
 * Sets the method for the whole process, at any time. The default is VB_CRC_INSTRUCTIONS. One
 * thread at a time.
 */
void vb_crc_choose(enum vb_crc_method method);

#endif
