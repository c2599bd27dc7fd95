/* SPDX-License-Identifier: BSD-2-Clause */
/* What this CPU does fastest, found out by trying, once a process. */
#ifndef VB_HOST_MEASURE_H
#define VB_HOST_MEASURE_H

/* Chooses the CRC (base/crc.h). Takes less than a tenth of a millisecond. */
void vb_measure_crc(void);

#endif
