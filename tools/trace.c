/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim trace`: what passes the adapters of a running program, or of one that it starts. The
 * programs write into memory that both map; this process reads, and they never wait for it.
 */
#include "trace.h"
#include "verbatim.h"

#include "host/registry/mail.h"
#include "host/registry/recording_query.h"
#include "host/sys/clock.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOK_MS 5
#define ASK_NS 500000000ull
#define REFUSALS_REPORTED 3u

struct options {
	pid_t pid; /* 0: a command */
	char **command;
	const char *write; /* or NULL */
	const char *timeline; /* or NULL */
	bool is_ladder;
	struct vb_recording_wish wish;
};

struct trace {
	struct options options;
	struct trace_sources sources;
	struct trace_pcapng pcapng;
	struct trace_timeline timeline;
	struct trace_ladder ladder;
	int process; /* of --pid: a descriptor that is readable when it has ended */
	pid_t child; /* 0: it has ended, or there is none */
	int child_status;
	uint64_t ask_ns; /* when to ask again */
	uint64_t packets, executed;
	bool is_broken; /* nobody reads the output */
};

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
	is_stopped = number;
}

static void print_help(void)
{
	puts("usage: verbatim trace --pid PID [options]\n"
	     "       verbatim trace [options] -- [--<setting> <value>]... COMMAND [arguments]\n\n"
	     "Records what passes the adapters of a running program of this user, or of a program that it starts\n"
	     "as `verbatim run` does, with its children and from the first packet.\n\n"
	     "  --pid PID        the process with that number, until it ends or until Ctrl-C\n"
	     "  -w FILE          a capture for Wireshark (pcapng); '-' is the standard output\n"
	     "  --timeline FILE  posts, doorbells, packets, ACKs, completions and polls of each QP, with histograms of\n"
	     "                   latencies: JSON for https://ui.perfetto.dev and chrome://tracing\n"
	     "  --ladder         the conversation of each pair of QPs, drawn as text at the end\n"
	     "  --snaplen BYTES  no more of the UDP payload of each packet\n"
	     "  --qp NUMBER      only packets from and to the QP of that number\n\n"
	     "The programs never wait: packets for which there was no room are counted, and reported.");
}

static int refuse(const char *what, const char *value)
{
	fprintf(stderr, "verbatim trace: %s '%s'; try --help\n", what, value);
	return 2;
}

static bool parse_number(const char *text, unsigned long most, uint32_t *number_out)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 0);
	*number_out = (uint32_t)number;
	return !errno && end != text && !*end && *text != '-' && number > 0 && number <= most;
}

/* Returns -1, or the exit status. */
static int parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "pid", required_argument, NULL, 'p' },
		{ "snaplen", required_argument, NULL, 's' },
		{ "qp", required_argument, NULL, 'q' },
		{ "timeline", required_argument, NULL, 't' },
		{ "ladder", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	uint32_t number;
	int option;

	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, "+:hw:", known, NULL)) >= 0) {
		switch (option) {
		case 'p':
			if (!parse_number(optarg, 1 << 30, &number))
				return refuse("no number of a process:", optarg);
			options->pid = (pid_t)number;
			break;
		case 's':
			if (!parse_number(optarg, UINT32_MAX, &options->wish.packet_length_max))
				return refuse("no number of bytes:", optarg);
			break;
		case 'q':
			if (!parse_number(optarg, 0xffffff, &options->wish.qpn))
				return refuse("no number of a QP:", optarg);
			break;
		case 'w':
			options->write = optarg;
			break;
		case 't':
			options->timeline = optarg;
			break;
		case 'l':
			options->is_ladder = true;
			break;
		case 'h':
			print_help();
			return 0;
		default:
			return refuse("cannot read", argv[optind - 1]);
		}
	}
	options->command = argv + optind;
	if (options->pid ? *options->command != NULL : !*options->command)
		return refuse("either a process or a command:",
			      *options->command ? *options->command : "");
	if (!options->write && !options->timeline && !options->is_ladder)
		return refuse("nothing to write:", "-w, --timeline or --ladder");
	if (options->is_ladder && options->write && !strcmp(options->write, "-"))
		return refuse("the standard output is for the capture:", "--ladder");
	options->wish.has_events = options->timeline || options->is_ladder;
	return -1;
}

/* --- the program --- */

static void start(struct trace *trace, const char *variable)
{
	uint32_t count = 1;

	while (trace->options.command[count - 1])
		count++;
	trace->child = fork();
	if (trace->child)
		return;
	setenv(VB_RECORDING_VARIABLE, variable, 1);
	if (trace->options.write && !strcmp(trace->options.write, "-"))
		(void)dup2(STDERR_FILENO, STDOUT_FILENO); /* the capture has it for itself */
	exit(command_run((int)count, trace->options.command - 1));
}

static void look_at_child(struct trace *trace)
{
	int status;

	if (trace->child > 0 && waitpid(trace->child, &status, WNOHANG) == trace->child) {
		trace->child = 0;
		trace->child_status = WIFEXITED(status) ? WEXITSTATUS(status)
							: 128 + WTERMSIG(status);
	}
}

/* --- what comes --- */

static void begin_source(void *owner, struct trace_source *source)
{
	struct trace *trace = owner;

	if (trace->options.write)
		trace_pcapng_add_source(&trace->pcapng, source);
}

static void take_packet(void *owner, const struct trace_packet *packet)
{
	struct trace *trace = owner;

	trace->packets += !packet->is_executed;
	trace->executed += packet->is_executed;
	if (trace->options.write)
		trace_pcapng_add(&trace->pcapng, packet);
	if (trace->options.timeline)
		trace_timeline_add(&trace->timeline, packet);
	if (trace->options.is_ladder)
		trace_ladder_add(&trace->ladder, packet);
}

static void take_event(struct trace *trace, const struct trace_source *source,
		       const struct vb_record *record)
{
	if (trace->options.timeline)
		trace_timeline_add_event(&trace->timeline, source, record);
	if (trace->options.is_ladder)
		trace_ladder_add_event(&trace->ladder, source, record);
}

static void take_record(struct trace *trace, struct trace_source *source,
			const struct vb_record *record)
{
	if (record->kind == VB_RECORD_PACKET || record->kind == VB_RECORD_EXECUTED)
		trace_packet_expand(source, record, take_packet, trace);
	else
		take_event(trace, source, record);
}

static void drain(struct trace *trace)
{
	const struct vb_record *record;
	struct trace_source *source;

	while ((record = trace_sources_next(&trace->sources, &source))) {
		take_record(trace, source, record);
		vb_recording_reader_release(&source->reader, record);
	}
	if (trace->options.write)
		trace->is_broken |= !trace_pcapng_flush(&trace->pcapng);
}

/* Adapters may be opened at any time. */
static void ask(struct trace *trace)
{
	uint64_t now_ns = vb_clock_now();

	if (!trace->options.pid || now_ns < trace->ask_ns)
		return;
	trace->ask_ns = now_ns + ASK_NS;
	(void)vb_recording_query_ask(trace->sources.box, trace->options.pid, &trace->options.wish);
	if (!trace->sources.count && trace->sources.refused == REFUSALS_REPORTED)
		fprintf(stderr, "verbatim trace: somebody else traces process %d\n",
			(int)trace->options.pid);
}

static bool goes_on(struct trace *trace)
{
	uint32_t going = trace_sources_end_old(&trace->sources);

	look_at_child(trace);
	if (is_stopped || trace->is_broken)
		return false;
	if (trace->options.pid)
		return !trace_has_ended(trace->process, trace->options.pid);
	return trace->child || going;
}

static void run(struct trace *trace)
{
	struct pollfd fd = { .fd = vb_mail_fd(trace->sources.box), .events = POLLIN };

	do {
		ask(trace);
		(void)poll(&fd, 1, LOOK_MS);
		trace_sources_take(&trace->sources, begin_source, trace);
		drain(trace);
	} while (goes_on(trace));
	trace_sources_stop(&trace->sources);
	drain(trace);
}

static void add_skipped(const struct trace_source *source, uint64_t *skipped,
			uint64_t *skipped_events)
{
	*skipped += atomic_load(&source->reader.memory->skipped);
	*skipped_events += atomic_load(&source->reader.memory->skipped_events);
}

static int conclude(struct trace *trace)
{
	uint64_t skipped = 0;
	uint64_t skipped_events = 0;
	bool is_written = true;

	for (uint32_t i = 0; i < trace->sources.count; i++)
		add_skipped(trace->sources.all[i], &skipped, &skipped_events);
	if (trace->options.write)
		is_written = trace_pcapng_close(&trace->pcapng, &trace->sources);
	if (trace->options.timeline)
		is_written &= trace_timeline_close(&trace->timeline);
	if (trace->options.is_ladder)
		trace_ladder_draw(&trace->ladder, stdout);
	fprintf(stderr,
		"verbatim trace: adapters %" PRIu32 ", packets %" PRIu64 ", executed %" PRIu64
		", missing %" PRIu64 "\n",
		trace->sources.count, trace->packets, trace->executed, skipped);
	if (skipped_events)
		fprintf(stderr,
			"verbatim trace: %" PRIu64 " posts, doorbells and polls are missing, too\n",
			skipped_events);
	trace_sources_close(&trace->sources);
	return is_written ? trace->child_status : 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static bool open_files(struct trace *trace)
{
	const struct options *options = &trace->options;

	return (!options->write || trace_pcapng_open(&trace->pcapng, options->write,
						     options->wish.packet_length_max)) &&
	       (!options->timeline ||
		trace_timeline_open(&trace->timeline, options->timeline, vb_clock_now()));
}

int command_trace(int argc, char **argv)
{
	static struct trace trace;
	char variable[VB_RECORDING_TEXT_MAX];
	int status;

	trace.options.wish.packet_length_max = UINT32_MAX;
	status = parse(argc, argv, &trace.options);
	if (status >= 0)
		return status;
	if (trace.options.pid)
		trace.process = trace_open_process(trace.options.pid);
	if (trace.process < 0) {
		fprintf(stderr, "verbatim trace: process %d: %s\n", (int)trace.options.pid,
			strerror(errno));
		return 3;
	}
	if (!trace_sources_open(&trace.sources, &trace.options.wish, variable)) {
		fprintf(stderr, "verbatim trace: no socket to ask with\n");
		return 3;
	}
	if (!open_files(&trace))
		return 3;
	catch_signals();
	if (!trace.options.pid)
		start(&trace, variable);
	run(&trace);
	return conclude(&trace);
}
