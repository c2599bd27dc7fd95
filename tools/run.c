/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim run`: starts a program, and with it all its children, so that their loader takes our libraries in place of
 * the distribution's, and puts the preload shim before the C library. It changes the environment and nothing else;
 * nothing is left behind.
 */
#include "verbatim.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where our libraries lie, seen from the folder of this program: after `make`, and after `make install`. */
static const char *const library_folders[] = { "lib", "../lib/verbatim" };

/* Without its folder: a space in LD_PRELOAD is the end of a name. LD_LIBRARY_PATH leads to it, or else to neither. */
#define SHIM "libverbatim-preload.so"

static const char *const libraries[] = { "libibverbs.so.1", SHIM };

/* Options and the variables that stand for them. */
static const struct option {
	const char *name;
	const char *variable;
	const char *help;
} options[] = {
	{ "--devices", "VERBATIM_DEVICES", "interfaces to use, such as eth0,lo or !docker*" },
	{ "--mtu", "VERBATIM_MTU", "largest path MTU: 256, 512, 1024, 2048 or 4096" },
	{ "--icrc", "VERBATIM_ICRC", "strict, solved or off" },
	{ "--log", "VERBATIM_LOG", "error, warn, info or debug" },
	{ "--log-file", "VERBATIM_LOG_FILE", "where the log goes; else to the standard error" },
	{ "--config", "VERBATIM_CONFIG", "a file of settings" },
};

static void print_help(FILE *to)
{
	fprintf(to,
		"usage: verbatim run [options] <command> [arguments]\n\n"
		"Runs a program written for InfiniBand verbs on the adapters that `verbatim devices` shows. It and the\n"
		"programs that it starts also find these in /sys/class/infiniband and /dev/infiniband; statically\n"
		"linked programs do not.\n\n");
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		fprintf(to, "  %-12s %s (%s)\n", options[i].name, options[i].help,
			options[i].variable);
}

/* "--mtu 1024" or "--mtu=1024" at *argument; moves on behind it. False if it is no option of ours. */
static bool take_option(char ***argument)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t length = strlen(options[i].name);
		const char *value = NULL;

		if (strncmp(**argument, options[i].name, length))
			continue;
		if ((**argument)[length] == '=')
			value = **argument + length + 1;
		else if (!(**argument)[length])
			value = *++*argument;
		else
			continue;
		if (!value) {
			fprintf(stderr, "verbatim run: %s needs a value\n", options[i].name);
			exit(2);
		}
		setenv(options[i].variable, value, 1);
		++*argument;
		return true;
	}
	return false;
}

static bool has_libraries(const char *folder)
{
	char path[3 * PATH_MAX];

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, libraries[i]);
		if (access(path, R_OK))
			return false;
	}
	return true;
}

static bool find_libraries(char folder[PATH_MAX])
{
	char own[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *end;

	if (length < 0)
		return false;
	own[length] = 0;
	end = strrchr(own, '/');
	if (!end)
		return false;
	*end = 0;
	for (size_t i = 0; i < sizeof(library_folders) / sizeof(library_folders[0]); i++) {
		char path[2 * PATH_MAX];

		snprintf(path, sizeof(path), "%s/%s", own, library_folders[i]);
		if (has_libraries(path))
			return realpath(path, folder) != NULL;
	}
	return false;
}

static void put_first(const char *variable, const char *path)
{
	const char *before = getenv(variable);
	size_t length = strlen(path) + (before ? strlen(before) : 0) + 2;
	char *value = malloc(length);

	if (!value) {
		perror("verbatim run");
		exit(1);
	}
	snprintf(value, length, "%s%s%s", path, before && *before ? ":" : "", before ? before : "");
	setenv(variable, value, 1);
	free(value);
}

int command_run(int argc, char **argv)
{
	char **argument = argv + 1;
	char folder[PATH_MAX];

	(void)argc;
	while (*argument && take_option(&argument))
		;
	if (*argument && (!strcmp(*argument, "--help") || !strcmp(*argument, "-h"))) {
		print_help(stdout);
		return 0;
	}
	if (*argument && !strcmp(*argument, "--"))
		argument++;
	if (!*argument || **argument == '-') {
		print_help(stderr);
		return 2;
	}
	if (!find_libraries(folder)) {
		fprintf(stderr, "verbatim run: libibverbs.so.1 and " SHIM
				" are not beside this program; is it installed whole?\n");
		return 1;
	}
	if (strpbrk(folder, ":;")) {
		fprintf(stderr,
			"verbatim run: the loader cannot find libraries in '%s': ':' and ';' separate folders\n",
			folder);
		return 1;
	}
	put_first("LD_LIBRARY_PATH", folder);
	put_first("LD_PRELOAD", SHIM);
	execvp(*argument, argument);
	fprintf(stderr, "verbatim run: %s: %s\n", *argument, strerror(errno));
	return errno == ENOENT ? 127 : 126;
}
