/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the adapters of this user answer, and the rates between two answers. Asking makes an adapter
 * measure; it stops a few seconds after the last question (host/port/meter.h).
 */
#include "top.h"

#include "host/registry/state_query.h"

#include <stdlib.h>
#include <string.h>

/* What an adapter has answered, kept for the next difference. */
struct top_answer {
	pid_t pid;
	uint32_t number; /* of the adapter */
	struct vb_meter_report *report;
};

/* --- answers --- */

/* The text of an answer comes from another process. It may be of another version. */
static struct vb_meter_report *copy_report(const struct vb_state_report_answer *answer)
{
	const size_t head = sizeof(struct vb_meter_report);
	struct vb_meter_report *report;

	if (answer->length < head)
		return NULL;
	report = malloc(answer->length);
	if (!report)
		return NULL;
	memcpy(report, answer->text, answer->length);
	if (report->layout != VB_METER_LAYOUT || report->hold_count > VB_METER_HOLDS ||
	    (answer->length - head) / sizeof(report->rows[0]) < report->row_count) {
		free(report);
		return NULL;
	}
	report->device[sizeof(report->device) - 1] = 0;
	return report;
}

static void free_answers(struct top_answer *answers, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(answers[i].report);
	free(answers);
}

static int compare_answers(const void *a, const void *b)
{
	const struct top_answer *one = a, *other = b;

	return one->pid != other->pid	     ? (one->pid < other->pid ? -1 : 1)
	       : one->number < other->number ? -1
					     : one->number > other->number;
}

/* --- rates --- */

static const struct vb_meter_report *find_before(const struct top_model *model,
						 const struct top_answer *now)
{
	for (uint32_t i = 0; i < model->answer_count; i++)
		if (model->answers[i].pid == now->pid && model->answers[i].number == now->number)
			return model->answers[i].report;
	return NULL;
}

static const struct vb_meter_row *find_row(const struct vb_meter_report *report,
					   const struct vb_meter_row *now)
{
	for (uint32_t i = 0; report && i < report->row_count; i++)
		if (report->rows[i].qpn == now->qpn)
			return &report->rows[i];
	return NULL;
}

/* A QP that was reset counts from 0 again. */
static double rate(uint64_t before, uint64_t now, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

/* The time that `part` of the measured latencies do not exceed: the end of a bucket. */
static double percentile(const uint32_t counts[VB_METER_BUCKETS], uint64_t total, double part)
{
	uint64_t wanted = (uint64_t)((double)total * part);
	uint64_t seen = 0;

	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++) {
		seen += counts[i];
		if (counts[i] && seen > wanted)
			return (double)(vb_meter_bucket_ns(i) + vb_meter_bucket_ns(i + 1)) / 2;
	}
	return 0;
}

static void add_latencies(struct top_qp *qp, const struct vb_meter_row *before)
{
	uint32_t counts[VB_METER_BUCKETS];
	uint64_t total = 0;

	for (uint32_t i = 0; i < VB_METER_BUCKETS; i++) {
		counts[i] = qp->row.latencies[i] - before->latencies[i];
		if (qp->row.latencies[i] < before->latencies[i])
			counts[i] = 0;
		total += counts[i];
	}
	qp->latency_count = total;
	if (!total)
		return;
	qp->p50_ns = percentile(counts, total, 0.5);
	qp->p99_ns = percentile(counts, total, 0.99);
	qp->p999_ns = percentile(counts, total, 0.999);
}

static void add_rates(struct top_qp *qp, const struct vb_meter_row *before, double seconds)
{
	const struct vb_meter_row *now = &qp->row;

	qp->has_rates = true;
	qp->sent_messages = rate(before->sent_messages, now->sent_messages, seconds);
	qp->received_messages = rate(before->received_messages, now->received_messages, seconds);
	qp->sent_bytes = rate(before->sent_bytes, now->sent_bytes, seconds);
	qp->received_bytes = rate(before->received_bytes, now->received_bytes, seconds);
	qp->sent_packets = rate(before->sent_packets, now->sent_packets, seconds);
	qp->received_packets = rate(before->received_packets, now->received_packets, seconds);
	qp->repeated_packets = rate(before->repeated_packets, now->repeated_packets, seconds);
	qp->executed_messages = rate(before->executed_messages, now->executed_messages, seconds);
	for (uint32_t i = 0; i < VB_METER_HOLDS; i++)
		qp->held[i] = rate(before->held_ns[i], now->held_ns[i], seconds) / 1e9;
	add_latencies(qp, before);
}

static void terminate_texts(struct vb_meter_row *row)
{
	row->type[sizeof(row->type) - 1] = row->state[sizeof(row->state) - 1] = 0;
	row->carrier[sizeof(row->carrier) - 1] = row->peer[sizeof(row->peer) - 1] = 0;
	row->path_reason[sizeof(row->path_reason) - 1] = 0;
}

static void add_qps(struct top_model *model, const struct top_answer *answer)
{
	const struct vb_meter_report *before = find_before(model, answer);
	const struct vb_meter_report *now = answer->report;

	for (uint32_t i = 0; i < now->row_count; i++) {
		struct top_qp *qp = &model->qps[model->count++];
		const struct vb_meter_row *row_before = find_row(before, &now->rows[i]);

		*qp = (struct top_qp){ .pid = answer->pid, .row = now->rows[i] };
		terminate_texts(&qp->row);
		stat_comm(answer->pid, qp->comm);
		memcpy(qp->device, now->device, sizeof(qp->device));
		if (row_before && now->now_ns > before->now_ns)
			add_rates(qp, row_before, (double)(now->now_ns - before->now_ns) / 1e9);
	}
}

static void make_qps(struct top_model *model, const struct top_answer *answers, uint32_t count)
{
	size_t total = 1;

	for (uint32_t i = 0; i < count; i++)
		total += answers[i].report->row_count;
	free(model->qps);
	model->qps = calloc(total, sizeof(*model->qps));
	model->count = model->process_count = 0;
	for (uint32_t i = 0; model->qps && i < count; i++) {
		model->process_count += !i || answers[i].pid != answers[i - 1].pid;
		add_qps(model, &answers[i]);
	}
	if (count) {
		model->hold_count = answers[0].report->hold_count;
		memcpy(model->hold_names, answers[0].report->hold_names, sizeof(model->hold_names));
		for (uint32_t i = 0; i < VB_METER_HOLDS; i++)
			model->hold_names[i][VB_METER_NAME_MAX - 1] = 0;
	}
}

/* --- asking --- */

static uint32_t take_answers(struct top_model *model, struct vb_mail_box *box, pid_t pid,
			     struct top_answer *answers)
{
	struct vb_state_report_answer answer;
	uint32_t count = 0;

	model->answered = model->misunderstood = 0;
	while (model->answered < model->asked && vb_state_take_report(box, STAT_WAIT_MS, &answer)) {
		struct vb_meter_report *report = copy_report(&answer);

		vb_state_end_report(&answer);
		model->answered++;
		if (!report)
			model->misunderstood++;
		else if (pid && answer.pid != pid)
			free(report);
		else
			answers[count++] = (struct top_answer){ answer.pid, answer.number, report };
	}
	return count;
}

bool top_model_refresh(struct top_model *model, pid_t pid)
{
	struct vb_mail_box *box = vb_state_ask(VB_STATE_METER, &model->asked);
	struct top_answer *answers;
	uint32_t count;

	if (!box)
		return false;
	answers = calloc(model->asked + 1, sizeof(*answers));
	count = answers ? take_answers(model, box, pid, answers) : 0;
	vb_state_close(box);
	if (count)
		qsort(answers, count, sizeof(*answers), compare_answers);
	make_qps(model, answers, count);
	free_answers(model->answers, model->answer_count);
	model->answers = answers;
	model->answer_count = count;
	return true;
}

void top_model_fini(struct top_model *model)
{
	free_answers(model->answers, model->answer_count);
	free(model->qps);
}

/* --- order --- */

static enum top_order order_now;

static double value_of(const struct top_qp *qp)
{
	switch (order_now) {
	case TOP_BY_THROUGHPUT:
		return qp->sent_bytes + qp->received_bytes;
	case TOP_BY_MESSAGES:
		return qp->sent_messages + qp->received_messages;
	case TOP_BY_RETRANSMISSIONS:
		return qp->repeated_packets;
	case TOP_BY_LATENCY:
		return qp->p99_ns;
	case TOP_BY_PROCESS:
	case TOP_ORDER_COUNT:
		break;
	}
	return 0;
}

/* The largest first; among equals the order of processes and QPs. */
static int compare_qps(const void *a, const void *b)
{
	const struct top_qp *one = a, *other = b;
	double difference = value_of(other) - value_of(one);

	if (difference < 0 || difference > 0)
		return difference < 0 ? -1 : 1;
	if (one->pid != other->pid)
		return one->pid < other->pid ? -1 : 1;
	return one->row.qpn < other->row.qpn ? -1 : one->row.qpn > other->row.qpn;
}

void top_model_sort(struct top_model *model, enum top_order order)
{
	order_now = order;
	if (model->count)
		qsort(model->qps, model->count, sizeof(*model->qps), compare_qps);
}
