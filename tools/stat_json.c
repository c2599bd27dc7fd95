/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim stat --json`. Each adapter reports its device as one object. Here the devices of a
 * process are put together.
 */
#include "stat.h"

#include "host/registry/port_member.h"
#include "host/registry/state_query.h"
#include "host/sys/text.h"

#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	const struct vb_state_report_answer *first = a;
	const struct vb_state_report_answer *second = b;

	if (first->pid != second->pid)
		return first->pid < second->pid ? -1 : 1;
	return first->number < second->number ? -1 : first->number > second->number;
}

static void begin_process(struct vb_text *text, pid_t pid, bool is_first)
{
	char comm[STAT_COMM_MAX];

	stat_comm(pid, comm);
	vb_text_add(text, "%s{\"pid\":%d,\"comm\":", is_first ? "" : "]},", (int)pid);
	vb_text_add_json(text, comm);
	vb_text_add(text, ",\"devices\":[");
}

static void print(const struct vb_state_report_answer *answers, uint32_t count)
{
	struct vb_text text = { 0 };

	vb_text_add(&text, "{\"version\":1,\"processes\":[");
	for (uint32_t i = 0; i < count; i++) {
		bool is_new = !i || answers[i].pid != answers[i - 1].pid;

		if (is_new)
			begin_process(&text, answers[i].pid, !i);
		vb_text_add(&text, "%s%.*s", is_new ? "" : ",", (int)answers[i].length,
			    answers[i].text);
	}
	vb_text_add(&text, "%s]}\n", count ? "]}" : "");
	fwrite(text.bytes, 1, text.length, stdout);
	vb_text_fini(&text);
}

int stat_print_json(pid_t pid)
{
	static struct vb_state_report_answer answers[VB_PORT_MEMBER_COUNT];
	uint32_t asked, answered = 0, count = 0;
	struct vb_mail_box *box = vb_state_ask(VB_STATE_REPORT, &asked);

	if (!box) {
		fprintf(stderr, "verbatim stat: no socket to ask with\n");
		return 3;
	}
	while (answered < asked && vb_state_take_report(box, STAT_WAIT_MS, &answers[count])) {
		answered++;
		if (pid && answers[count].pid != pid)
			vb_state_end_report(&answers[count]);
		else
			count++;
	}
	vb_state_close(box);
	qsort(answers, count, sizeof(answers[0]), compare);
	print(answers, count);
	for (uint32_t i = 0; i < count; i++)
		vb_state_end_report(&answers[i]);
	if (answered < asked)
		fprintf(stderr, "verbatim stat: %u of %u adapters have not answered\n",
			asked - answered, asked);
	return answered < asked;
}
