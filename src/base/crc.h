/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CRC-32 of Ethernet (reflected, polynomial 0x04C11DB7), which the ICRC uses. isa-l picks the fastest
 * instructions of the CPU at run time.
 */
#ifndef VB_BASE_CRC_H
#define VB_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Starts with crc = 0 and continues with the previous result; the usual inversions are inside. */
uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length);

#endif
