/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How fast the engine is, and how much memory it takes, compared with the requirements. A figure
 * that misses its requirement does not fail the run; a wrong completion or wrong data do.
 */
#include "support_measures.h"

#include <string.h>

static const struct {
	const char *name;
	const char *what;
	void (*measure)(struct report *report);
} measures[] = {
	{ "writes", "8-byte writes on one connection, 128 under way", measure_writes },
	{ "sends", "8-byte messages on one connection, 128 under way", measure_sends },
	{ "bulk", "1 MB messages, 8 + 8 buffers, held against memcpy in the same run",
	  measure_bulk },
	{ "memory", "one more QP", measure_memory },
	{ "scale", "an operation among many QPs, held against 10", measure_scale },
};

enum { MEASURE_COUNT = sizeof(measures) / sizeof(measures[0]) };

static int usage(const char *program)
{
	fprintf(stderr, "usage: %s [--quick] [--only NAME]\nNAME is one of:", program);
	for (uint32_t i = 0; i < MEASURE_COUNT; i++)
		fprintf(stderr, " %s", measures[i].name);
	fputc('\n', stderr);
	return 2;
}

static bool is_measure(const char *name)
{
	for (uint32_t i = 0; i < MEASURE_COUNT; i++)
		if (!strcmp(measures[i].name, name))
			return true;
	return false;
}

int main(int argc, char **argv)
{
	struct report report = { 0 };

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick"))
			report.is_quick = true;
		else if (!strcmp(argv[i], "--only") && i + 1 < argc && is_measure(argv[i + 1]))
			report.only = argv[++i];
		else
			return usage(argv[0]);
	}
	report_print_heading(&report);
	for (uint32_t i = 0; i < MEASURE_COUNT; i++) {
		if (report.only && strcmp(report.only, measures[i].name) != 0)
			continue;
		report_group(measures[i].name, measures[i].what);
		measures[i].measure(&report);
	}
	report_print_summary(&report);
	return 0;
}
