/* SPDX-License-Identifier: BSD-2-Clause */
/* The measures. Each makes its own rig, checks what it moved, and adds its lines to the report. */
#ifndef BENCH_SUPPORT_MEASURES_H
#define BENCH_SUPPORT_MEASURES_H

#include "support_report.h"

/* support_small.c */
void measure_writes(struct report *report);
void measure_sends(struct report *report);

/* support_bulk.c */
void measure_bulk(struct report *report);

/* support_scale.c */
void measure_memory(struct report *report);
void measure_scale(struct report *report);

#endif
