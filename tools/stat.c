/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim stat`: the state of this user's programs, each queried by mail: their QPs, the path
 * that each takes, and the reason.
 */
#include "verbatim.h"

#include "host/registry/state_query.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WAIT_MS 1000

static void print_help(void)
{
	puts("usage: verbatim stat\n\n"
	     "Shows the adapters that programs of this user have open in this network namespace: their QPs, and\n"
	     "for each that is connected whether its packets take shared memory or the wire, and why.\n"
	     "The exit status is 0 if all have answered, 1 if one has not, as when its process is stopped.");
}

static void print_name(pid_t pid)
{
	char path[32], name[64] = "?";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	file = fopen(path, "r");
	if (file) {
		if (fgets(name, sizeof(name), file))
			name[strcspn(name, "\n")] = 0;
		fclose(file);
	}
	printf("process %d (%s)", (int)pid, name);
}

/* Indents each line of the text. */
static void print_answer(const struct vb_state_answer *answer)
{
	const char *line = answer->text;

	print_name(answer->pid);
	printf(", adapter %u\n", answer->number);
	while (*line) {
		int length = (int)strcspn(line, "\n");

		printf("    %.*s\n", length, line);
		line += length;
		line += *line == '\n';
	}
}

int command_stat(int argc, char **argv)
{
	static struct vb_state_answer answer;
	uint32_t asked, answered = 0;
	struct vb_mail_box *box;

	if (argc > 1) {
		bool is_help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		if (is_help)
			print_help();
		else
			fprintf(stderr, "verbatim stat: cannot read '%s'; try --help\n", argv[1]);
		return is_help ? 0 : 2;
	}
	box = vb_state_ask(&asked);
	if (!box) {
		fprintf(stderr, "verbatim stat: no socket to ask with\n");
		return 3;
	}
	while (answered < asked && vb_state_take(box, WAIT_MS, &answer)) {
		print_answer(&answer);
		answered++;
	}
	vb_state_close(box);
	if (!asked)
		puts("no program of this user has a device open here");
	if (answered < asked)
		printf("%u of %u adapters have not answered\n", asked - answered, asked);
	return answered < asked;
}
