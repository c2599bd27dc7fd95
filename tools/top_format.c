/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines that `verbatim top` shows. Values without a measurement are "-". */
#include "top.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CELL_MAX 16

const char *top_order_name(enum top_order order)
{
	static const char *const names[] = {
		[TOP_BY_THROUGHPUT] = "throughput",
		[TOP_BY_MESSAGES] = "messages",
		[TOP_BY_RETRANSMISSIONS] = "retransmissions",
		[TOP_BY_LATENCY] = "latency",
		[TOP_BY_PROCESS] = "process",
	};

	return names[order];
}

/* "1234", "12.3k", "1.23M": four characters and a unit. */
static const char *show_number(double value, char cell[CELL_MAX])
{
	static const char units[] = " kMGTP";
	uint32_t unit = 0;

	while (value >= 9999.5 && unit < sizeof(units) - 2) {
		value /= 1000;
		unit++;
	}
	if (!unit)
		snprintf(cell, CELL_MAX, value && value < 10 ? "%.1f" : "%.0f", value);
	else
		snprintf(cell, CELL_MAX, value < 100 ? "%.1f%c" : "%.0f%c", value, units[unit]);
	return cell;
}

static const char *show_rate(const struct top_qp *qp, double value, char cell[CELL_MAX])
{
	return qp->has_rates ? show_number(value, cell) : strcpy(cell, "-");
}

static const char *show_us(double ns, char cell[CELL_MAX])
{
	if (ns <= 0)
		strcpy(cell, "-");
	else
		snprintf(cell, CELL_MAX, ns < 1e5 ? "%.1f" : "%.0f", ns / 1e3);
	return cell;
}

/* The reason for which the QP was held longest, and for which part of the time. */
static const char *show_hold(const struct top_model *model, const struct top_qp *qp,
			     char cell[2 * CELL_MAX])
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < model->hold_count; i++)
		if (qp->held[i] > qp->held[longest])
			longest = i;
	if (qp->has_rates && qp->held[longest] >= 0.005)
		snprintf(cell, 2 * CELL_MAX, "%s %.0f%%", model->hold_names[longest],
			 100 * (qp->held[longest] < 1 ? qp->held[longest] : 1));
	else
		strcpy(cell, "-");
	return cell;
}

#define COLUMNS \
	"%7s %-15.15s %-10.10s %-8s %-4.4s %-5.5s %-4.4s %7s %7s %7s %7s %6s %7s %7s %7s  %s"

void top_format_heading(char line[TOP_LINE_MAX])
{
	snprintf(line, TOP_LINE_MAX, COLUMNS, "PID", "PROGRAM", "DEVICE", "QP", "TYPE", "STATE",
		 "PATH", "OUT/s", "OUT B/s", "IN/s", "IN B/s", "REXM/s", "P50 us", "P99 us",
		 "P99.9", "HELD");
}

void top_format_qp(const struct top_model *model, const struct top_qp *qp, char line[TOP_LINE_MAX])
{
	char cells[8][CELL_MAX], hold[2 * CELL_MAX], pid[CELL_MAX], qpn[CELL_MAX];

	snprintf(pid, sizeof(pid), "%d", (int)qp->pid);
	snprintf(qpn, sizeof(qpn), "0x%06x", qp->row.qpn);
	snprintf(line, TOP_LINE_MAX, COLUMNS, pid, qp->comm, qp->device, qpn, qp->row.type,
		 qp->row.state, *qp->row.carrier ? qp->row.carrier : "-",
		 show_rate(qp, qp->sent_messages, cells[0]),
		 show_rate(qp, qp->sent_bytes, cells[1]),
		 show_rate(qp, qp->received_messages, cells[2]),
		 show_rate(qp, qp->received_bytes, cells[3]),
		 show_rate(qp, qp->repeated_packets, cells[4]), show_us(qp->p50_ns, cells[5]),
		 show_us(qp->p99_ns, cells[6]), show_us(qp->p999_ns, cells[7]),
		 show_hold(model, qp, hold));
}

bool top_format_matches(const struct top_model *model, const struct top_qp *qp, const char *filter)
{
	char line[TOP_LINE_MAX];

	top_format_qp(model, qp, line);
	return strcasestr(line, filter);
}

/* --- one QP --- */

struct lines {
	char (*lines)[TOP_LINE_MAX];
	uint32_t count;
};

__attribute__((format(printf, 2, 3))) static void add(struct lines *lines, const char *format, ...)
{
	va_list arguments;

	if (lines->count == TOP_DETAIL_LINES)
		return;
	va_start(arguments, format);
	vsnprintf(lines->lines[lines->count++], TOP_LINE_MAX, format, arguments);
	va_end(arguments);
}

static void add_traffic(struct lines *lines, const struct top_qp *qp)
{
	const struct vb_meter_row *row = &qp->row;
	char cells[2][CELL_MAX];

	add(lines, "%-20s %12s %12s %16s %16s", "", "sent/s", "received/s", "sent in all",
	    "received in all");
#define LINE(title, field)                                                                        \
	add(lines, "%-20s %12s %12s %16llu %16llu", title,                                        \
	    show_rate(qp, qp->sent_##field, cells[0]),                                            \
	    show_rate(qp, qp->received_##field, cells[1]), (unsigned long long)row->sent_##field, \
	    (unsigned long long)row->received_##field)
	LINE("messages", messages);
	LINE("payload bytes", bytes);
	LINE("packets", packets);
#undef LINE
	add(lines, "%-20s %12s %12s %16llu", "  sent again",
	    show_rate(qp, qp->repeated_packets, cells[0]), "",
	    (unsigned long long)row->repeated_packets);
	add(lines, "%-20s %12s %12s %16llu", "executed here",
	    show_rate(qp, qp->executed_messages, cells[0]), "",
	    (unsigned long long)row->executed_messages);
}

static void add_holds(struct lines *lines, const struct top_model *model, const struct top_qp *qp)
{
	add(lines, "%-20s %12s %16s", "held by", "of the time", "ms in all");
	for (uint32_t i = 1; i < model->hold_count; i++)
		if (qp->row.held_ns[i])
			add(lines, "%-20s %11.1f%% %16.1f", model->hold_names[i],
			    100 * (qp->held[i] < 1 ? qp->held[i] : 1),
			    (double)qp->row.held_ns[i] / 1e6);
}

uint32_t top_format_detail(const struct top_model *model, const struct top_qp *qp,
			   char texts[TOP_DETAIL_LINES][TOP_LINE_MAX])
{
	const struct vb_meter_row *row = &qp->row;
	struct lines lines = { texts, 0 };
	char cells[3][CELL_MAX];

	add(&lines, "QP 0x%06x  %s %s  of process %d (%s), device %s", row->qpn, row->type,
	    row->state, (int)qp->pid, qp->comm, qp->device);
	if (row->peer_qpn)
		add(&lines, "peer: %s QP 0x%06x", row->peer, row->peer_qpn);
	if (*row->path_reason)
		add(&lines, "path: %s", row->path_reason);
	add(&lines, "send queue: %u of %u used   receive queue: %u of %u used", row->sq_used,
	    row->sq_depth, row->rq_used, row->rq_depth);
	add(&lines, "%s", "");
	add_traffic(&lines, qp);
	add(&lines, "went back to send packets again: %u times", row->repeat_count);
	add(&lines, "%s", "");
	add(&lines, "latency (%llu messages): p50 %s us, p99 %s us, p99.9 %s us",
	    (unsigned long long)qp->latency_count, show_us(qp->p50_ns, cells[0]),
	    show_us(qp->p99_ns, cells[1]), show_us(qp->p999_ns, cells[2]));
	add(&lines, "%s", "");
	add_holds(&lines, model, qp);
	return lines.count;
}
