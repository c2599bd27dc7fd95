/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table on standard output: one line per figure, with a verdict on each figure that has a
 * requirement.
 */
#include "support_report.h"

#include <time.h>

#define QUICK_REPEATS 3
#define QUICK_DIVISOR 8

static uint64_t read_clock(clockid_t clock)
{
	struct timespec time;

	BENCH_CHECK(!clock_gettime(clock, &time));
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t clock_now_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_used_ns(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static int compare(const void *a, const void *b)
{
	double left = *(const double *)a;
	double right = *(const double *)b;

	return (left > right) - (left < right);
}

double median(double *values, uint32_t count)
{
	BENCH_CHECK(count);
	qsort(values, count, sizeof(*values), compare);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

uint32_t report_repeats(const struct report *report, uint32_t normal)
{
	BENCH_CHECK(normal <= REPEATS_MAX);
	return report->is_quick ? QUICK_REPEATS : normal;
}

uint32_t report_work(const struct report *report, uint32_t normal)
{
	return report->is_quick ? normal / QUICK_DIVISOR : normal;
}

void report_print_heading(const struct report *report)
{
	printf("engine: one thread, two adapters face to face in memory, ICRC on%s\n",
	       report->is_quick ? " (quick: rough figures)" : "");
}

void report_group(const char *name, const char *what)
{
	printf("\n%s: %s\n", name, what);
}

static void print_figure(const char *what, double figure, const char *unit)
{
	printf("  %-52s %9.3f %-8s", what, figure, unit);
}

void report_figure(const char *what, double figure, const char *unit)
{
	print_figure(what, figure, unit);
	putchar('\n');
	fflush(stdout);
}

static void judge(struct report *report, const char *relation, double required, bool is_met)
{
	printf(" %s %6.2f  %s\n", relation, required, is_met ? "ok" : "MISS");
	fflush(stdout);
	report->requirement_count++;
	report->met_count += is_met;
}

void report_at_least(struct report *report, const char *what, double figure, const char *unit,
		     double required)
{
	print_figure(what, figure, unit);
	judge(report, ">=", required, figure >= required);
}

void report_at_most(struct report *report, const char *what, double figure, const char *unit,
		    double required)
{
	print_figure(what, figure, unit);
	judge(report, "<=", required, figure <= required);
}

void report_print_summary(const struct report *report)
{
	printf("\n%u of %u requirements met\n", report->met_count, report->requirement_count);
}
