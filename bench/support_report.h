/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the measurements share: the clock, the median, the table for the reader, and the exit on
 * errors.
 */
#ifndef BENCH_SUPPORT_REPORT_H
#define BENCH_SUPPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REPEATS_MAX 64

/*
 * For errors of the engine or of this program, not for slowness: prints the condition, and exits
 * with 1.
 */
#define BENCH_CHECK(condition)                                                                    \
	do {                                                                                      \
		if (!(condition)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			exit(1);                                                                  \
		}                                                                                 \
	} while (0)

struct report {
	bool is_quick; /* fewer repetitions and less work each: for a first look */
	const char *only; /* name of the only group to run; NULL: all */
	uint32_t requirement_count;
	uint32_t met_count; /* of these requirements */
};

uint64_t clock_now_ns(void); /* the time, for the engines */

/* The CPU time of this thread, for the figures, so that other programs do not distort them. */
uint64_t clock_used_ns(void);

/* The value in the middle; sorts the array. */
double median(double *values, uint32_t count);

/* `normal`, or less in a quick run: repetitions of a measurement, and the work of each. */
uint32_t report_repeats(const struct report *report, uint32_t normal);
uint32_t report_work(const struct report *report, uint32_t normal);

void report_print_heading(const struct report *report);
void report_group(const char *name, const char *what);
/* A figure without a requirement, and figures with one. */
void report_figure(const char *what, double figure, const char *unit);
void report_at_least(struct report *report, const char *what, double figure, const char *unit,
		     double required);
void report_at_most(struct report *report, const char *what, double figure, const char *unit,
		    double required);
void report_print_summary(const struct report *report);

#endif
