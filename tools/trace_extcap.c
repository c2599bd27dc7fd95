/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program as an extcap of Wireshark: started by a link in the folder of extcaps, it lists this
 * user's programs that have adapters as interfaces, and traces the one that Wireshark captures on.
 */
#include "trace.h"
#include "verbatim.h"

#include "host/registry/recording_query.h"
#include "stat.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define INTERFACE_PREFIX "verbatim-"

#ifndef VB_VERSION
#define VB_VERSION "development"
#endif

struct options {
	enum { NOTHING, LIST, LINK_TYPES, SETTINGS, CAPTURE } wanted;
	const char *interface, *pipe, *qp;
};

static void list(void)
{
	pid_t pids[TRACE_SOURCES_MAX];
	uint32_t count = vb_recording_query_list(pids, TRACE_SOURCES_MAX);

	puts("extcap {version=" VB_VERSION "}{display=verbatim: RDMA programs}");
	for (uint32_t i = 0; i < count; i++) {
		char comm[STAT_COMM_MAX];

		stat_comm(pids[i], comm);
		comm[strcspn(comm, "{}")] = 0;
		printf("interface {value=" INTERFACE_PREFIX
		       "%d}{display=RDMA packets of %s, process %d}\n",
		       (int)pids[i], comm, (int)pids[i]);
	}
}

static int capture(const struct options *options)
{
	const char *interface = options->interface ? options->interface : "";
	const char *pid = interface + strlen(INTERFACE_PREFIX);
	const char *words[8] = { "trace", "-w", options->pipe, "--pid", pid };
	int count = 5;

	if (!options->pipe || strncmp(interface, INTERFACE_PREFIX, strlen(INTERFACE_PREFIX))) {
		fprintf(stderr, "verbatim: extcap: no interface, or no pipe\n");
		return 2;
	}
	if (options->qp && *options->qp) {
		words[count++] = "--qp";
		words[count++] = options->qp;
	}
	return command_trace(count, (char **)(uintptr_t)words);
}

/* Wireshark may add options that a later version knows. */
static void parse(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "extcap-interfaces", no_argument, NULL, 'l' },
		{ "extcap-dlts", no_argument, NULL, 'd' },
		{ "extcap-config", no_argument, NULL, 's' },
		{ "capture", no_argument, NULL, 'c' },
		{ "extcap-interface", required_argument, NULL, 'i' },
		{ "fifo", required_argument, NULL, 'f' },
		{ "qp", required_argument, NULL, 'q' },
		{ "extcap-version", optional_argument, NULL, 'v' },
		{ "extcap-capture-filter", required_argument, NULL, 'v' },
		{ 0 },
	};
	int option;

	opterr = 0;
	optind = 0;
	while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
		switch (option) {
		case 'l':
			options->wanted = LIST;
			break;
		case 'd':
			options->wanted = LINK_TYPES;
			break;
		case 's':
			options->wanted = SETTINGS;
			break;
		case 'c':
			options->wanted = CAPTURE;
			break;
		case 'i':
			options->interface = optarg;
			break;
		case 'f':
			options->pipe = optarg;
			break;
		case 'q':
			options->qp = optarg;
			break;
		default:
			break;
		}
	}
}

bool is_extcap(const char *argument)
{
	return !strncmp(argument, "--extcap-", 9) || !strcmp(argument, "--capture");
}

int command_extcap(int argc, char **argv)
{
	struct options options = { 0 };

	parse(argc, argv, &options);
	switch (options.wanted) {
	case NOTHING:
		break;
	case LIST:
		list();
		return 0;
	case LINK_TYPES:
		puts("dlt {number=1}{name=EN10MB}{display=Ethernet}");
		return 0;
	case SETTINGS:
		puts("arg {number=0}{call=--qp}{display=QP}"
		     "{tooltip=Only packets from and to the QP of that number}{type=string}");
		return 0;
	case CAPTURE:
		return capture(&options);
	}
	fprintf(stderr, "verbatim: extcap: nothing to do\n");
	return 2;
}
