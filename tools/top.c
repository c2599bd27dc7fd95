/* SPDX-License-Identifier: BSD-2-Clause */
/* `verbatim top`: its options, and the table without a terminal. */
#include "top.h"
#include "verbatim.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void print_help(void)
{
	puts("usage: verbatim top [--pid PID] [--interval SECONDS] [--sort ORDER] [--filter TEXT] [--once]\n\n"
	     "Watches the QPs of this user's programs in this network namespace: messages and bytes in both\n"
	     "directions, retransmitted packets, latencies, and for what each QP waits.\n\n"
	     "  --pid PID           only the process with that number\n"
	     "  --interval SECONDS  the time between two looks; 1 by default, 0.1 to 4\n"
	     "  --sort ORDER        throughput, messages, retransmissions, latency or process\n"
	     "  --filter TEXT       only lines that contain the text\n"
	     "  --once              prints the table once, after one interval, and ends\n\n"
	     "Keys: arrows select a QP, Enter opens it, Escape goes back; t, m, r, l and p sort; s is the next\n"
	     "order; / asks for a filter; q quits.\n\n"
	     "While it runs, the programs measure; that costs them a little (docs/OBSERVING.md). They stop\n"
	     "5 seconds after it has ended, however it ends.");
}

static bool parse_seconds(const char *text, uint32_t *milliseconds_out)
{
	char *end;
	double seconds;

	errno = 0;
	seconds = strtod(text, &end);
	if (errno || end == text || *end || !(seconds >= 0.1 && seconds <= 4))
		return false;
	*milliseconds_out = (uint32_t)(seconds * 1000);
	return true;
}

static bool parse_pid(const char *text, pid_t *pid_out)
{
	char *end;
	long number;

	errno = 0;
	number = strtol(text, &end, 10);
	*pid_out = (pid_t)number;
	return !errno && end != text && !*end && number > 0 && number <= 1 << 30;
}

static bool parse_order(const char *text, enum top_order *order_out)
{
	for (uint32_t i = 0; i < TOP_ORDER_COUNT; i++) {
		if (!strcmp(text, top_order_name((enum top_order)i))) {
			*order_out = (enum top_order)i;
			return true;
		}
	}
	return false;
}

static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "verbatim top: %s '%s'; try --help\n", what, value);
	return 2;
}

/* Returns -1, or the exit status. */
static int parse(int argc, char **argv, struct top_options *options, bool *is_once)
{
	static const struct option known[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "interval", required_argument, NULL, 'i' },
		{ "sort", required_argument, NULL, 's' },
		{ "filter", required_argument, NULL, 'f' },
		{ "once", no_argument, NULL, 'o' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int option;

	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, "+:h", known, NULL)) >= 0) {
		switch (option) {
		case 'p':
			if (!parse_pid(optarg, &options->pid))
				return refuse("no number of a process:", optarg);
			break;
		case 'i':
			if (!parse_seconds(optarg, &options->interval_ms))
				return refuse("no number of seconds from 0.1 to 4:", optarg);
			break;
		case 's':
			if (!parse_order(optarg, &options->order))
				return refuse("there is no order", optarg);
			break;
		case 'f':
			if (strlen(optarg) >= sizeof(options->filter))
				return refuse("too long:", optarg);
			strcpy(options->filter, optarg);
			break;
		case 'o':
			*is_once = true;
			break;
		case 'h':
			print_help();
			return 0;
		default:
			return refuse("cannot read", argv[optind - 1]);
		}
	}
	return optind < argc ? refuse("cannot read", argv[optind]) : -1;
}

static int print_once(const struct top_options *options)
{
	struct timespec interval = { options->interval_ms / 1000,
				     options->interval_ms % 1000 * 1000000L };
	struct top_model model = { 0 };
	char line[TOP_LINE_MAX];

	for (int look = 0; look < 2; look++) {
		if (look)
			nanosleep(&interval, NULL);
		if (!top_model_refresh(&model, options->pid)) {
			fprintf(stderr, "verbatim top: no socket to ask with\n");
			return 3;
		}
	}
	top_model_sort(&model, options->order);
	top_format_heading(line);
	puts(line);
	for (uint32_t i = 0; i < model.count; i++) {
		top_format_qp(&model, &model.qps[i], line);
		if (top_format_matches(&model, &model.qps[i], options->filter))
			puts(line);
	}
	top_model_fini(&model);
	return model.answered < model.asked || model.misunderstood;
}

int command_top(int argc, char **argv)
{
	struct top_options options = { .interval_ms = 1000 };
	bool is_once = false;
	int status = parse(argc, argv, &options, &is_once);

	if (status >= 0)
		return status;
	return is_once ? print_once(&options) : top_screen_run(&options);
}
