/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim sim`: runs simulated worlds in several processes. A world that breaks a rule, crashes
 * or hangs costs only its own process a moment; the report is sorted by seed, so that the output
 * does not depend on timing.
 */
#include "verbatim.h"

#include "sim/coverage.h"
#include "sim/trace.h"
#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOBS_MAX 64
#define PACKETS_SHOWN 50
#define WORLD_SECONDS_MAX 60 /* of CPU time */
#define DETAILS_MAX 3 /* violations shown in full */
#define TEXT_MAX 65536

struct options {
	uint64_t from;
	uint64_t count;
	uint32_t jobs;
	bool is_verbose;
	bool shows_coverage;
	bool shows_hashes;
	const char *directory;
};

/* A job's report to its parent: this struct, then `length` bytes of text. */
struct report {
	uint64_t seed;
	uint32_t length; /* 0: the coverage of the whole job */
	uint32_t rule_length; /* the part of the text that is the rule */
};

struct violation {
	uint64_t seed;
	char *text;
	uint32_t rule_length;
};

struct job {
	pid_t pid;
	int pipe;
	uint64_t next; /* the seed to continue with when it is started again */
	char *buffer;
	size_t used;
};

/* Jobs write it; the parent reads it when one of them crashed. */
static volatile uint64_t *current_seeds;

static void write_all(int fd, const void *bytes, size_t length)
{
	const char *p = bytes;

	while (length) {
		ssize_t written = write(fd, p, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			_exit(3);
		p += written;
		length -= (size_t)written;
	}
}

static void write_capture(const struct options *options, const struct vb_world *world)
{
	uint64_t size = vb_trace_store_capture(&world->trace, NULL);
	uint8_t *bytes = malloc(size);
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/verbatim-sim-%" PRIu64 ".pcapng", options->directory,
		 world->options.seed);
	file = fopen(path, "wb");
	if (bytes && file)
		fwrite(bytes, 1, vb_trace_store_capture(&world->trace, bytes), file);
	else
		fprintf(stderr, "verbatim sim: cannot write %s: %s\n", path, strerror(errno));
	if (file)
		fclose(file);
	free(bytes);
}

/* Describes the last packets, and what happened between them. */
static size_t describe_end(const struct vb_world *world, char *text, size_t size)
{
	uint64_t first = world->trace.count, packets = 0;
	size_t used = 0;
	char line[VB_TRACE_TEXT_MAX];

	while (first > 0 && packets < PACKETS_SHOWN && vb_trace_entry(&world->trace, first - 1) &&
	       world->trace.count - first < 3 * PACKETS_SHOWN) {
		first--;
		packets += vb_trace_entry(&world->trace, first)->kind == VB_TRACE_PACKET;
	}
	for (uint64_t i = first; i < world->trace.count && used + VB_TRACE_TEXT_MAX < size; i++) {
		vb_trace_describe(vb_trace_entry(&world->trace, i), line);
		used += (size_t)snprintf(text + used, size - used, "  %s\n", line);
	}
	return used;
}

static void report_violation(const struct options *options, int fd, const struct vb_world *world)
{
	char *text = malloc(TEXT_MAX);
	struct report report = { .seed = world->options.seed };
	size_t used;

	if (!text)
		_exit(3);
	used = (size_t)snprintf(text, TEXT_MAX, "%s", vb_world_violation(world));
	report.rule_length = (uint32_t)used;
	used += (size_t)snprintf(text + used, TEXT_MAX - used,
				 "\n  at %" PRIu64 " ns; the last packets:\n", world->now_ns);
	used += describe_end(world, text + used, TEXT_MAX - used);
	report.length = (uint32_t)used;
	write_all(fd, &report, sizeof(report));
	write_all(fd, text, used);
	free(text);
	write_capture(options, world);
}

static void print_new_entries(const struct vb_world *world, uint64_t *printed)
{
	char line[VB_TRACE_TEXT_MAX];

	for (; *printed < world->trace.count; ++*printed) {
		const struct vb_trace_entry *entry = vb_trace_entry(&world->trace, *printed);

		if (!entry)
			continue;
		vb_trace_describe(entry, line);
		puts(line);
	}
}

static void run_world(const struct options *options, uint64_t seed, int fd,
		      struct vb_coverage *coverage)
{
	struct vb_world *world = vb_world_create(seed);
	uint64_t printed = 0;

	if (options->is_verbose) {
		do
			print_new_entries(world, &printed);
		while (vb_world_step(world));
		print_new_entries(world, &printed);
	}
	vb_world_run(world);
	vb_world_finish(world);
	if (options->is_verbose)
		print_new_entries(world, &printed);
	if (options->shows_hashes)
		printf("seed %" PRIu64 ": %" PRIu64 " packets, %" PRIu64 " ns, trace %016" PRIx64
		       "\n",
		       seed, world->trace.packet_count, world->now_ns, world->trace.hash);
	fflush(stdout);
	if (*vb_world_violation(world))
		report_violation(options, fd, world);
	vb_coverage_add(coverage, &world->coverage);
	vb_world_destroy(world);
}

/*
 * Limits CPU time: a world that hangs computes, while one that only waits for its turn on a busy
 * machine does not.
 */
static void limit_time(void)
{
	const struct itimerval limit = { .it_value.tv_sec = WORLD_SECONDS_MAX };

	(void)setitimer(ITIMER_PROF, &limit, NULL);
}

static void run_job(const struct options *options, uint32_t job, uint64_t from, int fd)
{
	struct vb_coverage coverage = { 0 };
	struct report end = { 0 };

	for (uint64_t seed = from; seed < options->from + options->count; seed += options->jobs) {
		current_seeds[job] = seed;
		limit_time();
		run_world(options, seed, fd, &coverage);
	}
	write_all(fd, &end, sizeof(end));
	write_all(fd, &coverage, sizeof(coverage));
	close(fd);
	exit(0);
}

static bool start_job(const struct options *options, struct job *jobs, uint32_t index)
{
	int fds[2];

	if (pipe(fds))
		return false;
	fflush(stdout);
	jobs[index].pid = fork();
	if (jobs[index].pid < 0)
		return false;
	if (jobs[index].pid == 0) {
		close(fds[0]);
		run_job(options, index, jobs[index].next, fds[1]);
	}
	close(fds[1]);
	jobs[index].pipe = fds[0];
	jobs[index].used = 0;
	return true;
}

/* Takes whole reports out of a job's buffer. */
static void digest(struct job *job, struct violation **violations, size_t *count,
		   struct vb_coverage *coverage)
{
	struct report report;

	while (job->used >= sizeof(report)) {
		size_t length;

		memcpy(&report, job->buffer, sizeof(report));
		length = report.length ? report.length : sizeof(struct vb_coverage);
		if (job->used < sizeof(report) + length)
			return;
		if (report.length) {
			struct violation *grown =
				realloc(*violations, (*count + 1) * sizeof(**violations));

			if (!grown)
				exit(3);
			*violations = grown;
			grown[*count] =
				(struct violation){ report.seed,
						    strndup(job->buffer + sizeof(report), length),
						    report.rule_length };
			++*count;
		} else {
			struct vb_coverage more;

			memcpy(&more, job->buffer + sizeof(report), sizeof(more));
			vb_coverage_add(coverage, &more);
		}
		job->used -= sizeof(report) + length;
		memmove(job->buffer, job->buffer + sizeof(report) + length, job->used);
	}
}

static void add_crash(struct violation **violations, size_t *count, uint64_t seed, int status)
{
	struct violation *grown = realloc(*violations, (*count + 1) * sizeof(**violations));
	char *text = NULL;

	if (!grown ||
	    asprintf(
		    &text,
		    "the engine neither crashes nor hangs, but signal %d ended this world (exit status %d)",
		    WIFSIGNALED(status) ? WTERMSIG(status) : 0,
		    WIFEXITED(status) ? WEXITSTATUS(status) : 0) < 0)
		exit(3);
	*violations = grown;
	grown[*count] = (struct violation){ seed, text, (uint32_t)strlen(text) };
	++*count;
}

static int by_seed(const void *a, const void *b)
{
	const struct violation *x = a, *y = b;

	return x->seed < y->seed ? -1 : x->seed > y->seed;
}

static void print_violations(struct violation *violations, size_t count)
{
	if (count)
		qsort(violations, count, sizeof(*violations), by_seed);
	for (size_t i = 0; i < count; i++) {
		printf("seed %" PRIu64 " violates: ", violations[i].seed);
		if (i < DETAILS_MAX)
			puts(violations[i].text);
		else
			printf("%.*s\n", (int)violations[i].rule_length, violations[i].text);
		free(violations[i].text);
	}
}

static void print_coverage(const struct vb_coverage *coverage)
{
	char line[128];

	for (uint32_t row = 0; vb_coverage_describe(coverage, row, line, sizeof(line)); row++) {
		if (line[0])
			puts(line);
	}
}

/*
 * A job ended: well, or in the middle of a world. Such a world is a violation, and the job
 * continues after it.
 */
static bool finish_job(const struct options *options, struct job *jobs, uint32_t index,
		       struct violation **violations, size_t *count)
{
	int status;

	close(jobs[index].pipe);
	waitpid(jobs[index].pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return false;
	add_crash(violations, count, current_seeds[index], status);
	jobs[index].next = current_seeds[index] + options->jobs;
	return start_job(options, jobs, index);
}

static size_t run_jobs(const struct options *options, struct vb_coverage *coverage)
{
	struct job jobs[JOBS_MAX] = { 0 };
	struct pollfd polls[JOBS_MAX];
	struct violation *violations = NULL;
	size_t count = 0;
	uint32_t running = 0;

	for (uint32_t i = 0; i < options->jobs; i++) {
		jobs[i].next = options->from + i;
		jobs[i].buffer = malloc(4 * TEXT_MAX);
		if (!jobs[i].buffer || !start_job(options, jobs, i)) {
			perror("verbatim sim");
			exit(3);
		}
		polls[i] = (struct pollfd){ .fd = jobs[i].pipe, .events = POLLIN };
		running++;
	}
	while (running && poll(polls, options->jobs, -1) > 0) {
		for (uint32_t i = 0; i < options->jobs; i++) {
			ssize_t got;

			if (polls[i].fd < 0 || !polls[i].revents)
				continue;
			got = read(jobs[i].pipe, jobs[i].buffer + jobs[i].used,
				   4 * TEXT_MAX - jobs[i].used);
			if (got > 0) {
				jobs[i].used += (size_t)got;
				digest(&jobs[i], &violations, &count, coverage);
			} else if (finish_job(options, jobs, i, &violations, &count)) {
				polls[i].fd = jobs[i].pipe;
			} else {
				polls[i].fd = -1;
				running--;
			}
		}
	}
	for (uint32_t i = 0; i < options->jobs; i++)
		free(jobs[i].buffer);
	print_violations(violations, count);
	free(violations);
	return count;
}

static void print_help(void)
{
	puts("usage: verbatim sim [options]\n\n"
	     "Runs worlds of simulated adapters with random faults and workloads; a model checks every completion,\n"
	     "every byte and every atomic. The same seed is the same world, always.\n\n"
	     "  --seeds N      how many worlds (1000)\n"
	     "  --from N       the first seed (1)\n"
	     "  --seed N       this world only\n"
	     "  --verbose      print everything that happens (with --seed)\n"
	     "  --hashes       print a hash of each world's trace\n"
	     "  --coverage     print what was tried and what came of it\n"
	     "  --jobs N       processes (as many as there are CPUs)\n"
	     "  --out DIR      where the captures of violations go (.)");
}

static bool parse(int argc, char **argv, struct options *options)
{
	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--verbose")) {
			options->is_verbose = true;
			continue;
		}
		if (!strcmp(argv[i], "--coverage")) {
			options->shows_coverage = true;
			continue;
		}
		if (!strcmp(argv[i], "--hashes")) {
			options->shows_hashes = true;
			continue;
		}
		if (!strcmp(argv[i], "--out")) {
			options->directory = value;
		} else if (!strcmp(argv[i], "--seeds")) {
			options->count = strtoull(value, NULL, 0);
		} else if (!strcmp(argv[i], "--from")) {
			options->from = strtoull(value, NULL, 0);
		} else if (!strcmp(argv[i], "--seed")) {
			options->from = strtoull(value, NULL, 0);
			options->count = 1;
		} else if (!strcmp(argv[i], "--jobs")) {
			options->jobs = (uint32_t)strtoul(value, NULL, 0);
		} else {
			return false;
		}
		if (!*value)
			return false;
		i++;
	}
	return options->count && options->jobs;
}

int command_sim(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct options options = {
		.from = 1, .count = 1000, .jobs = cpus > 0 ? (uint32_t)cpus : 1, .directory = "."
	};
	struct vb_coverage coverage = { 0 };
	size_t violations;

	if (argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		print_help();
		return 0;
	}
	if (!parse(argc, argv, &options)) {
		print_help();
		return 2;
	}
	if (options.jobs > JOBS_MAX)
		options.jobs = JOBS_MAX;
	if (options.jobs > options.count)
		options.jobs = (uint32_t)options.count;
	current_seeds = mmap(NULL, JOBS_MAX * sizeof(*current_seeds), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (current_seeds == MAP_FAILED) {
		perror("verbatim sim");
		return 3;
	}
	violations = run_jobs(&options, &coverage);
	if (options.shows_coverage)
		print_coverage(&coverage);
	printf("%" PRIu64 " worlds, %zu violations\n", options.count, violations);
	return violations ? 1 : 0;
}
