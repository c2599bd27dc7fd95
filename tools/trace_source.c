/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recordings of a trace. A thread of its own tells the adapters that this process lives, also
 * while it waits for somebody who reads its output.
 */
#include "trace.h"

#include "host/registry/mail.h"
#include "host/registry/recording_query.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BEAT_US 500000u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, for the thread */

int trace_open_process(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* A process may have ended before its descriptor could be opened. */
bool trace_has_ended(int process, pid_t pid)
{
	struct pollfd fd = { .fd = process, .events = POLLIN };

	return process >= 0 ? poll(&fd, 1, 0) > 0 : kill(pid, 0) < 0 && errno == ESRCH;
}

static void *beat(void *argument)
{
	const struct trace_sources *sources = argument;

	for (;;) {
		pthread_mutex_lock(&lock);
		for (uint32_t i = 0; i < sources->count; i++)
			if (!sources->all[i]->is_over)
				atomic_fetch_add(&sources->all[i]->reader.memory->beat, 1);
		pthread_mutex_unlock(&lock);
		usleep(BEAT_US);
	}
	return NULL;
}

bool trace_sources_open(struct trace_sources *sources, const struct vb_recording_wish *wish,
			char *variable)
{
	pthread_t thread;

	*sources = (struct trace_sources){ .wish = *wish };
	sources->box = vb_recording_query_open(wish, variable);
	return sources->box && !pthread_create(&thread, NULL, beat, sources);
}

static struct trace_source *add(struct trace_sources *sources,
				const struct vb_recording_answer *answer)
{
	struct trace_source *source = calloc(1, sizeof(*source));

	if (!source)
		return NULL;
	source->reader = answer->reader;
	source->pid = answer->pid;
	source->process = trace_open_process(answer->pid);
	source->index = sources->count;
	(void)snprintf(source->program, sizeof(source->program), "%.*s",
		       (int)sizeof(source->program) - 1, source->reader.memory->program);
	atomic_fetch_add(&source->reader.memory->beat, 1);
	pthread_mutex_lock(&lock);
	sources->all[sources->count++] = source;
	pthread_mutex_unlock(&lock);
	return source;
}

void trace_sources_take(struct trace_sources *sources,
			void (*begin)(void *owner, struct trace_source *source), void *owner)
{
	struct vb_recording_answer answer;

	while (vb_recording_query_take(sources->box, &answer)) {
		struct trace_source *source;

		if (answer.is_refused) {
			sources->refused++;
			continue;
		}
		source = sources->count < TRACE_SOURCES_MAX ? add(sources, &answer) : NULL;
		if (source) {
			begin(owner, source);
		} else {
			atomic_store(&answer.reader.memory->is_closed, 1);
			vb_recording_reader_close(&answer.reader);
		}
	}
}

const struct vb_record *trace_sources_next(struct trace_sources *sources,
					   struct trace_source **source_out)
{
	const struct vb_record *oldest = NULL;

	for (uint32_t i = 0; i < sources->count; i++) {
		struct trace_source *source = sources->all[i];
		const struct vb_record *record =
			source->is_over ? NULL : vb_recording_reader_take(&source->reader);

		if (!record || (oldest && record->time_ns >= oldest->time_ns))
			continue;
		oldest = record;
		*source_out = source;
	}
	return oldest;
}

/* Whether it has ended is asked before it is read for the last time. */
uint32_t trace_sources_end_old(struct trace_sources *sources)
{
	uint32_t going = 0;

	for (uint32_t i = 0; i < sources->count; i++) {
		struct trace_source *source = sources->all[i];
		bool has_ended = !source->is_over &&
				 (atomic_load(&source->reader.memory->is_ended) ||
				  trace_has_ended(source->process, source->pid));

		if (has_ended && !vb_recording_reader_take(&source->reader))
			source->is_over = true;
		going += !source->is_over;
	}
	return going;
}

void trace_sources_stop(struct trace_sources *sources)
{
	for (uint32_t i = 0; i < sources->count; i++)
		atomic_store(&sources->all[i]->reader.memory->is_closed, 1);
}

void trace_sources_close(struct trace_sources *sources)
{
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < sources->count; i++) {
		struct trace_source *source = sources->all[i];

		vb_recording_reader_close(&source->reader);
		if (source->process >= 0)
			close(source->process);
		trace_packet_forget(source);
		free(source);
	}
	sources->count = 0;
	pthread_mutex_unlock(&lock);
	vb_recording_query_close(sources->box);
}
