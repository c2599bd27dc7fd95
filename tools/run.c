/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim run`: starts a program, and with it all its children, so that their loader takes our
 * libraries in place of the distribution's, and puts the preload shim before the C library. The
 * command changes only the environment; nothing is left behind.
 */
#include "settings.h"
#include "verbatim.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/*
 * The folders of our libraries, relative to the folder of this program: after `make`, and after
 * `make install`.
 */
static const char *const library_folders[] = { "lib", "../lib/verbatim" };

/*
 * Named without its folder: a space in LD_PRELOAD ends a name. LD_LIBRARY_PATH leads to the shim
 * and the libraries, or to neither.
 */
#define SHIM "libverbatim-preload.so"

static const char *const libraries[] = { "libibverbs.so.1", "librdmacm.so.1", SHIM };

static void print_usage(FILE *to)
{
	fputs("usage: verbatim run [--<setting> <value>]... [--] <command> [arguments]\n", to);
}

static void print_help(void)
{
	print_usage(stdout);
	puts("\nRuns a program written for InfiniBand verbs on the adapters that `verbatim devices` shows. It and the\n"
	     "programs that it starts also find these in /sys/class/infiniband and /dev/infiniband. Programs that\n"
	     "are statically linked or setuid go without: the loader takes no other libraries for them.\n");
	settings_print();
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

/* Finds the path of this program. Without /proc, the name it was started by leads there. */
static bool find_self(char own[PATH_MAX])
{
	const char *started = (const char *)getauxval(AT_EXECFN);
	ssize_t length = readlink("/proc/self/exe", own, PATH_MAX - 1);

	if (length < 0)
		return started && realpath(started, own);
	own[length] = 0;
	return true;
}

/* `own` is the path of this program. */
static bool find_libraries(char own[PATH_MAX], char folder[PATH_MAX])
{
	char *end = strrchr(own, '/');

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

/*
 * gcc's AddressSanitizer, a shared library, ends programs if another library, such as ours, is
 * loaded before it. It works all the same.
 */
static void permit_sanitizer(void)
{
	static const char *const option = "verify_asan_link_order";
	const char *before = getenv("ASAN_OPTIONS");
	char value[4096];

	if (before && strstr(before, option))
		return; /* the user has decided */
	if (snprintf(value, sizeof(value), "%s%s%s=0", before ? before : "",
		     before && *before ? ":" : "", option) < (int)sizeof(value))
		setenv("ASAN_OPTIONS", value, 1);
}

/*
 * Takes the options; the rest begins with the command. Returns -1 to continue, otherwise the exit
 * status.
 */
static int parse_options(char ***argument)
{
	enum settings_result result = SETTINGS_TAKEN;

	while (**argument && result == SETTINGS_TAKEN)
		result = settings_take(argument);
	if (result == SETTINGS_WRONG)
		return 2;
	if (**argument && (!strcmp(**argument, "--help") || !strcmp(**argument, "-h"))) {
		print_help();
		return 0;
	}
	if (**argument && !strcmp(**argument, "--"))
		++*argument;
	else if (**argument && ***argument == '-') {
		fprintf(stderr, "verbatim run: there is no option '%s'; try --help\n", **argument);
		return 2;
	}
	if (**argument)
		return -1;
	print_usage(stderr);
	return 2;
}

int command_run(int argc, char **argv)
{
	char **argument = argv + 1;
	char own[PATH_MAX];
	char folder[PATH_MAX];
	int status = parse_options(&argument);
	int error;

	(void)argc;
	if (status >= 0)
		return status;
	if (!find_self(own)) {
		fprintf(stderr,
			"verbatim run: cannot find our libraries: /proc, which says where this program lies, is not mounted, and '%s' leads nowhere\n",
			(const char *)getauxval(AT_EXECFN));
		return 1;
	}
	if (!find_libraries(own, folder)) {
		fprintf(stderr, "verbatim run: libibverbs.so.1, librdmacm.so.1 and " SHIM
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
	permit_sanitizer();
	execvp(*argument, argument);
	error = errno;
	fprintf(stderr, "verbatim run: %s: %s\n", *argument, strerror(error));
	return error == ENOENT ? 127 : 126;
}
