/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of `verbatim top`. */
#ifndef VB_TOOLS_TOP_H
#define VB_TOOLS_TOP_H

#include "stat.h"

#include "host/registry/meter_report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TOP_LINE_MAX 256
#define TOP_FILTER_MAX 64
#define TOP_DETAIL_LINES 40

/* --- top_model.c: what the adapters answer --- */

/* A QP between two answers. Rates are per second. */
struct top_qp {
	pid_t pid;
	char comm[STAT_COMM_MAX];
	char device[64];
	struct vb_meter_row row; /* as it is now */
	bool has_rates; /* it was in the answer before as well */
	double sent_messages, received_messages;
	double sent_bytes, received_bytes;
	double sent_packets, received_packets;
	double repeated_packets;
	double executed_messages;
	uint64_t latency_count; /* of latencies that were measured in between */
	double p50_ns, p99_ns, p999_ns; /* 0: none was measured */
	double held[VB_METER_HOLDS]; /* parts of the time */
};

enum top_order {
	TOP_BY_THROUGHPUT,
	TOP_BY_MESSAGES,
	TOP_BY_RETRANSMISSIONS,
	TOP_BY_LATENCY,
	TOP_BY_PROCESS,
	TOP_ORDER_COUNT
};

struct top_model {
	struct top_qp *qps; /* those of the last answers, in the order asked for */
	uint32_t count;
	uint32_t process_count;
	uint32_t asked, answered; /* adapters */
	uint32_t misunderstood; /* their layout is another one */
	char hold_names[VB_METER_HOLDS][VB_METER_NAME_MAX];
	uint32_t hold_count;
	struct top_answer *answers; /* the answers before */
	uint32_t answer_count;
};

/* Asks all adapters, or those of one process. False if there is no socket to ask with. */
bool top_model_refresh(struct top_model *model, pid_t pid);
void top_model_sort(struct top_model *model, enum top_order order);
void top_model_fini(struct top_model *model);

/* --- top_format.c: lines of text --- */

const char *top_order_name(enum top_order order);
/* The heading of the table, and a QP in it. */
void top_format_heading(char line[TOP_LINE_MAX]);
void top_format_qp(const struct top_model *model, const struct top_qp *qp, char line[TOP_LINE_MAX]);
/* All that is known of one QP. Returns the number of lines. */
uint32_t top_format_detail(const struct top_model *model, const struct top_qp *qp,
			   char lines[TOP_DETAIL_LINES][TOP_LINE_MAX]);
/* Whether the line of the QP contains the text, in any case of letters. */
bool top_format_matches(const struct top_model *model, const struct top_qp *qp, const char *filter);

/* --- top_screen.c --- */

struct top_options {
	pid_t pid; /* 0: all */
	uint32_t interval_ms;
	enum top_order order;
	char filter[TOP_FILTER_MAX];
};

/* Draws until a key ends it. Returns the exit status. */
int top_screen_run(struct top_options *options);

#endif
