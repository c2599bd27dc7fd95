/* SPDX-License-Identifier: BSD-2-Clause */
/* A measurement of what this CPU does fastest, made once per process. */
#ifndef VB_HOST_SYS_MEASURE_H
#define VB_HOST_SYS_MEASURE_H

/* Chooses the CRC implementation (base/crc.h). Takes less than a tenth of a millisecond. */
void vb_measure_crc(void);

#endif
