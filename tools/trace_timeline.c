/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A trace as a timeline for Perfetto (the trace event format of Chrome): a track for each QP, with
 * posts, doorbells, packets, ACKs and polls, and each request as a span with its phases. The
 * latencies of the phases follow as histograms.
 */
#include "trace.h"

#include "host/registry/meter_report.h"
#include "host/sys/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define POSTS_MAX 65536u /* under way on a QP; a power of two */

enum phase { PHASE_SEND, PHASE_FLIGHT, PHASE_POLL, PHASE_ALL, PHASE_COUNT };

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_SEND] = "post to first packet",
	[PHASE_FLIGHT] = "first packet to completion",
	[PHASE_POLL] = "completion to poll",
	[PHASE_ALL] = "post to poll",
};

struct post {
	uint64_t wr_id;
	uint64_t posted_ns;
	uint64_t sent_ns; /* 0: no packet yet */
	uint32_t opcode, length;
};

struct trace_track {
	struct trace_track *next;
	const struct trace_source *source;
	uint32_t qpn;
	uint64_t span; /* number of the last one */
	uint32_t first, end; /* the posts under way, modulo POSTS_MAX */
	struct post posts[POSTS_MAX];
	uint32_t latencies[PHASE_COUNT][VB_METER_BUCKETS];
};

/* --- events --- */

static void begin_event(struct trace_timeline *timeline, const struct trace_track *track,
			const char *type, const char *category, uint64_t time_ns)
{
	uint64_t ns = time_ns > timeline->begin_ns ? time_ns - timeline->begin_ns : 0;

	fprintf(timeline->file,
		",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":%" PRIu64
		".%03" PRIu64,
		type, category, (int)track->source->pid, track->qpn, ns / 1000, ns % 1000);
}

/* `text` has no characters that JSON does not take as they are. */
static void add_instant(struct trace_timeline *timeline, const struct trace_track *track,
			const char *category, uint64_t time_ns, const char *text)
{
	begin_event(timeline, track, "i", category, time_ns);
	fprintf(timeline->file, ",\"s\":\"t\",\"name\":\"%s\"}", text);
}

static void add_span(struct trace_timeline *timeline, const struct trace_track *track,
		     const char *name, uint64_t begin_ns, uint64_t end_ns)
{
	const struct {
		const char *type;
		uint64_t time_ns;
	} ends[] = { { "b", begin_ns }, { "e", end_ns } };

	for (uint32_t i = 0; i < 2; i++) {
		begin_event(timeline, track, ends[i].type, "request", ends[i].time_ns);
		fprintf(timeline->file, ",\"id\":\"%d.%" PRIx32 ".%" PRIu64 "\",\"name\":\"%s\"}",
			(int)track->source->pid, track->qpn, track->span, name);
	}
}

/* --- tracks --- */

static void name_track(struct trace_timeline *timeline, const struct trace_track *track)
{
	struct vb_text name = { 0 };

	vb_text_add_json(&name, track->source->program);
	fprintf(timeline->file,
		",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"args\":{\"name\":%s}}"
		",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%" PRIu32
		",\"args\":{\"name\":\"QP 0x%06" PRIx32 "\"}}",
		(int)track->source->pid, name.bytes ? name.bytes : "\"\"", (int)track->source->pid,
		track->qpn, track->qpn);
	vb_text_fini(&name);
}

static struct trace_track *track_of(struct trace_timeline *timeline,
				    const struct trace_source *source, uint32_t qpn)
{
	struct trace_track *track = timeline->tracks;

	while (track && (track->source != source || track->qpn != qpn))
		track = track->next;
	if (track)
		return track;
	track = calloc(1, sizeof(*track));
	if (!track)
		return NULL;
	track->source = source;
	track->qpn = qpn;
	track->next = timeline->tracks;
	timeline->tracks = track;
	name_track(timeline, track);
	return track;
}

/* --- requests --- */

static struct post *post_at(struct trace_track *track, uint32_t index)
{
	return &track->posts[index & (POSTS_MAX - 1)];
}

static void on_post(struct trace_timeline *timeline, struct trace_track *track,
		    const struct vb_record *record, const struct vb_record_post *from)
{
	char text[96];

	(void)snprintf(text, sizeof(text), "post %s, %" PRIu32 " bytes, request %" PRIu64,
		       vb_wr_opcode_describe((uint8_t)from->opcode), from->length, record->wr_id);
	add_instant(timeline, track, "post", record->time_ns, text);
	if (track->end - track->first == POSTS_MAX)
		track->first++;
	*post_at(track, track->end++) = (struct post){ .wr_id = record->wr_id,
						       .posted_ns = record->time_ns,
						       .opcode = from->opcode,
						       .length = from->length };
}

static void on_first_packet(struct trace_track *track, uint64_t wr_id, uint64_t time_ns)
{
	for (uint32_t i = track->first; i != track->end; i++) {
		struct post *post = post_at(track, i);

		if (post->sent_ns)
			continue;
		if (post->wr_id == wr_id)
			post->sent_ns = time_ns;
		return;
	}
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void add_phase(struct trace_timeline *timeline, struct trace_track *track, enum phase phase,
		      uint64_t begin_ns, uint64_t end_ns)
{
	track->latencies[phase][vb_meter_bucket(end_ns - begin_ns)]++;
	if (phase != PHASE_ALL)
		add_span(timeline, track, phase_names[phase], begin_ns, end_ns);
}

/* The engine's clock is a little behind the program's: the order of the phases is known. */
static void finish(struct trace_timeline *timeline, struct trace_track *track,
		   const struct post *post, uint64_t completed_ns, uint64_t polled_ns)
{
	uint64_t sent_ns = later(post->sent_ns, post->posted_ns);
	uint64_t done_ns = later(completed_ns, sent_ns);
	uint64_t end_ns = later(polled_ns, done_ns);
	char name[64];

	track->span++;
	(void)snprintf(name, sizeof(name), "%s, %" PRIu32 " bytes",
		       vb_wr_opcode_describe((uint8_t)post->opcode), post->length);
	add_span(timeline, track, name, post->posted_ns, end_ns);
	if (post->sent_ns) {
		add_phase(timeline, track, PHASE_SEND, post->posted_ns, sent_ns);
		add_phase(timeline, track, PHASE_FLIGHT, sent_ns, done_ns);
	}
	add_phase(timeline, track, PHASE_POLL, done_ns, end_ns);
	add_phase(timeline, track, PHASE_ALL, post->posted_ns, end_ns);
}

/* A completion also ends the requests before it that asked for none. */
static void on_poll(struct trace_timeline *timeline, struct trace_track *track,
		    const struct vb_record *record, const struct vb_record_poll *poll)
{
	uint32_t index = track->first;
	char text[128];

	(void)snprintf(text, sizeof(text), "completion of %s, request %" PRIu64 ": %s",
		       poll->is_receive ? "a receive" : "a request", record->wr_id,
		       vb_status_describe(poll->status));
	add_instant(timeline, track, "completion", poll->completed_ns, text);
	(void)snprintf(text, sizeof(text), "poll, request %" PRIu64, record->wr_id);
	add_instant(timeline, track, "poll", record->time_ns, text);
	if (poll->is_receive)
		return;
	while (index != track->end && post_at(track, index)->wr_id != record->wr_id)
		index++;
	if (index == track->end)
		return;
	finish(timeline, track, post_at(track, index), poll->completed_ns, record->time_ns);
	track->first = index + 1;
}

void trace_timeline_add_event(struct trace_timeline *timeline, const struct trace_source *source,
			      const struct vb_record *record)
{
	const struct vb_record_post *post = vb_record_view(record, sizeof(*post));
	const struct vb_record_poll *poll = vb_record_view(record, sizeof(*poll));
	struct trace_track *track = track_of(timeline, source, record->qpn);

	if (!track)
		return;
	if (record->kind == VB_RECORD_POST && post)
		on_post(timeline, track, record, post);
	else if (record->kind == VB_RECORD_DOORBELL)
		add_instant(timeline, track, "doorbell", record->time_ns, "doorbell");
	else if (record->kind == VB_RECORD_POLL && poll)
		on_poll(timeline, track, record, poll);
}

void trace_timeline_add(struct trace_timeline *timeline, const struct trace_packet *packet)
{
	struct trace_track *track = track_of(timeline, packet->source, packet->qpn);
	uint32_t traits;
	struct vb_bth bth;
	char text[128];

	if (!track || packet->captured < VB_BTH_SIZE)
		return;
	bth = vb_bth_load(packet->bytes);
	traits = vb_opcode_traits(bth.opcode);
	(void)snprintf(text, sizeof(text), "%s %s, PSN %" PRIu32 ", %" PRIu32 " bytes%s",
		       packet->is_sent ? "out:" : "in:", vb_opcode_describe(bth.opcode), bth.psn.v,
		       packet->length, packet->is_executed ? ", executed" : "");
	add_instant(timeline, track, traits & VB_IS_RESPONSE ? "ack" : "packet", packet->time_ns,
		    text);
	if (packet->is_sent && packet->has_request)
		on_first_packet(track, packet->wr_id, packet->time_ns);
}

/* --- the file --- */

bool trace_timeline_open(struct trace_timeline *timeline, const char *path, uint64_t begin_ns)
{
	timeline->begin_ns = begin_ns;
	timeline->file = fopen(path, "w");
	if (!timeline->file) {
		fprintf(stderr, "verbatim trace: cannot write '%s': %s\n", path, strerror(errno));
		return false;
	}
	fprintf(timeline->file,
		"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"trace\",\"pid\":0,\"args\":{\"by\":\"verbatim trace\"}}");
	return true;
}

static uint64_t count_all(const uint32_t buckets[VB_METER_BUCKETS])
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++)
		count += buckets[i];
	return count;
}

static uint64_t percentile(const uint32_t buckets[VB_METER_BUCKETS], uint64_t count,
			   uint32_t of_1000)
{
	uint64_t wanted = (count * of_1000 + 999) / 1000, sum = 0;

	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++) {
		sum += buckets[i];
		if (sum >= wanted)
			return vb_meter_bucket_ns(i);
	}
	return 0;
}

/* A bucket is the shortest time that it counts, and how many there were. */
static void write_latencies(FILE *file, const struct trace_track *track, enum phase phase,
			    bool *is_first)
{
	const uint32_t *buckets = track->latencies[phase];
	uint64_t count = count_all(buckets);
	const char *separator = "";

	if (!count)
		return;
	fprintf(file,
		"%s\n{\"pid\":%d,\"qp\":\"0x%06" PRIx32 "\",\"phase\":\"%s\",\"count\":%" PRIu64
		",\"p50_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 ",\"buckets\":[",
		*is_first ? "" : ",", (int)track->source->pid, track->qpn, phase_names[phase],
		count, percentile(buckets, count, 500), percentile(buckets, count, 990));
	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++) {
		if (!buckets[i])
			continue;
		fprintf(file, "%s[%" PRIu64 ",%" PRIu32 "]", separator, vb_meter_bucket_ns(i),
			buckets[i]);
		separator = ",";
	}
	fprintf(file, "]}");
	*is_first = false;
}

bool trace_timeline_close(struct trace_timeline *timeline)
{
	struct trace_track *next;
	bool is_first = true, is_right;

	fprintf(timeline->file, "\n],\n\"latencies\":[");
	for (struct trace_track *track = timeline->tracks; track; track = next) {
		for (uint32_t phase = 0; phase < PHASE_COUNT; phase++)
			write_latencies(timeline->file, track, (enum phase)phase, &is_first);
		next = track->next;
		free(track);
	}
	timeline->tracks = NULL;
	fprintf(timeline->file, "\n]}\n");
	is_right = !ferror(timeline->file);
	is_right &= !fclose(timeline->file);
	if (!is_right)
		fprintf(stderr, "verbatim trace: the timeline could not be written\n");
	return is_right;
}
