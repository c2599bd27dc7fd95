/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: picks the subcommand. */
#include "verbatim.h"

#include <stdio.h>
#include <string.h>

#ifndef VB_VERSION
#define VB_VERSION "development"
#endif

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "demo", command_demo,
	  "two adapters exchange every operation over a lossy link, drawn as a ladder" },
	{ "devices", command_devices, "show the RDMA devices that programs will see" },
	{ "run", command_run, "run a verbs program, such as ib_write_bw, on these devices" },
	{ "stat", command_stat, "show the QPs of running programs, and which way each takes" },
	{ "top", command_top,
	  "watch the QPs of running programs: rates, latencies, reasons to wait" },
	{ "trace", command_trace, "record the packets of programs for Wireshark" },
	{ "sim", command_sim, "run simulated worlds with random faults and check every rule" },
};

static void print_help(FILE *to)
{
	fprintf(to, "verbatim: an RDMA adapter in user space\n\n"
		    "usage: verbatim <command> [options]\n\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(to, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(to,
		"\n  verbatim <command> --help says more; verbatim --version says which one this is.\n");
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		print_help(stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		print_help(stdout);
		return 0;
	}
	if (!strcmp(argv[1], "--version")) {
		puts("verbatim " VB_VERSION);
		return 0;
	}
	if (is_extcap(argv[1]))
		return command_extcap(argc, argv);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "verbatim: there is no command '%s'; try: verbatim --help\n", argv[1]);
	return 2;
}
