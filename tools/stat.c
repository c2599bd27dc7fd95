/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim stat`: the state of this user's programs, each queried by mail: their QPs, the path
 * that each takes, and the reason.
 */
#include "stat.h"
#include "verbatim.h"

#include "host/registry/state_query.h"
#include "host/sys/text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
	bool is_json;
	bool is_prometheus;
	bool is_why;
	pid_t pid; /* 0: all */
	unsigned watch_seconds; /* 0: once */
	const char *listen; /* or NULL */
};

static void print_help(void)
{
	puts("usage: verbatim stat [--pid PID] [--why] [--json] [--watch SECONDS]\n"
	     "       verbatim stat --prometheus [--listen ADDRESS:PORT] [--watch SECONDS]\n\n"
	     "Shows the adapters that programs of this user have open in this network namespace: their QPs, and\n"
	     "for each that is connected whether its packets take shared memory or the wire, and why.\n\n"
	     "  --pid PID              only the process with that number\n"
	     "  --why                  how long each RC or XRC QP sent no request, by reason; \"empty\": the program had\n"
	     "                         posted nothing\n"
	     "  --json                 all objects and counters of each adapter, as JSON\n"
	     "  --prometheus           the totals of all devices, for Prometheus\n"
	     "  --listen ADDRESS:PORT  serves them by HTTP until killed\n"
	     "  --watch SECONDS        again and again, until killed\n\n"
	     "The exit status is 0 if all have answered, 1 if one has not, as when its process is stopped.");
}

void stat_comm(pid_t pid, char comm[STAT_COMM_MAX])
{
	char path[32];
	FILE *file;

	snprintf(comm, STAT_COMM_MAX, "?");
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return;
	if (fgets(comm, STAT_COMM_MAX, file))
		comm[strcspn(comm, "\n")] = 0;
	fclose(file);
}

/* --- text --- */

/* Indents each line of the text. */
static void print_answer(const struct options *options, const struct vb_state_answer *answer)
{
	const char *line = answer->text;
	char comm[STAT_COMM_MAX];

	stat_comm(answer->pid, comm);
	printf("process %d (%s), adapter %u\n", (int)answer->pid, comm, answer->number);
	while (*line) {
		int length = (int)strcspn(line, "\n");

		if (options->is_why || strncmp(line, VB_STATE_HELD, strlen(VB_STATE_HELD)) != 0)
			printf("    %.*s\n", length, line);
		line += length;
		line += *line == '\n';
	}
}

static int print_text(const struct options *options)
{
	static struct vb_state_answer answer;
	uint32_t asked, answered = 0, shown = 0;
	struct vb_mail_box *box = vb_state_ask(VB_STATE_TEXT, &asked);

	if (!box) {
		fprintf(stderr, "verbatim stat: no socket to ask with\n");
		return 3;
	}
	while (answered < asked && vb_state_take(box, STAT_WAIT_MS, &answer)) {
		answered++;
		if (options->pid && answer.pid != options->pid)
			continue;
		print_answer(options, &answer);
		shown++;
	}
	vb_state_close(box);
	if (!asked)
		puts("no program of this user has a device open here");
	else if (options->pid && !shown && answered == asked)
		printf("process %d has no device open here\n", (int)options->pid);
	if (answered < asked)
		printf("%u of %u adapters have not answered\n", asked - answered, asked);
	return answered < asked;
}

static int print_metrics(void)
{
	struct vb_text text = { 0 };
	int error = stat_add_metrics(&text);

	if (!error)
		fwrite(text.bytes, 1, text.length, stdout);
	else
		fprintf(stderr, "verbatim stat: the totals are not to be had: %s\n",
			strerror(error));
	vb_text_fini(&text);
	return error ? 1 : 0;
}

/* --- options --- */

static bool parse_number(const char *text, long max, long *number_out)
{
	char *end;

	errno = 0;
	*number_out = strtol(text, &end, 10);
	return !errno && end != text && !*end && *number_out > 0 && *number_out <= max;
}

/* Returns -1, or the exit status. */
static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "verbatim stat: %s '%s'; try --help\n", what, value);
	return 2;
}

static int parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "why", no_argument, NULL, 'w' },
		{ "json", no_argument, NULL, 'j' },
		{ "prometheus", no_argument, NULL, 'P' },
		{ "listen", required_argument, NULL, 'l' },
		{ "watch", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	long number;
	int option;

	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, "+:h", known, NULL)) >= 0) {
		switch (option) {
		case 'p':
			if (!parse_number(optarg, 1 << 30, &number))
				return refuse("no number of a process:", optarg);
			options->pid = (pid_t)number;
			break;
		case 's':
			if (!parse_number(optarg, 1 << 20, &number))
				return refuse("no number of seconds:", optarg);
			options->watch_seconds = (unsigned)number;
			break;
		case 'w':
			options->is_why = true;
			break;
		case 'j':
			options->is_json = true;
			break;
		case 'P':
			options->is_prometheus = true;
			break;
		case 'l':
			options->listen = optarg;
			break;
		case 'h':
			print_help();
			return 0;
		default:
			return refuse("cannot read", argv[optind - 1]);
		}
	}
	if (optind < argc)
		return refuse("cannot read", argv[optind]);
	if (options->is_json && (options->is_prometheus || options->listen))
		return refuse("one form at a time:", "--json");
	if (options->pid && (options->is_prometheus || options->listen))
		return refuse("totals are of devices, not of processes:", "--pid");
	return -1;
}

static int print(const struct options *options)
{
	if (options->is_json)
		return stat_print_json(options->pid);
	return options->is_prometheus ? print_metrics() : print_text(options);
}

int command_stat(int argc, char **argv)
{
	struct options options = { 0 };
	int status = parse(argc, argv, &options);

	if (status >= 0)
		return status;
	if (options.listen)
		return stat_listen(options.listen);
	status = print(&options);
	while (options.watch_seconds && status <= 1) {
		fflush(stdout);
		if (ferror(stdout))
			return 1;
		sleep(options.watch_seconds);
		if (!options.is_json)
			puts("");
		status = print(&options);
	}
	return status;
}
