/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replays inputs of a fuzz target without libFuzzer: each file named on the command line, and each
 * file of each directory named there, in the order of their names. Any compiler and any sanitizer
 * can build it. It names the file before running it, in case that run is the last.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_SIZE = 4096 };

static unsigned replayed_count;

__attribute__((noreturn)) static void give_up(const char *path)
{
	perror(path);
	exit(2);
}

static void replay_file(const char *path, size_t size)
{
	/* Exactly as large as the input, so that the sanitizer detects a read beyond its end. */
	uint8_t *data = malloc(size ? size : 1);
	FILE *file = fopen(path, "rb");

	if (!file || !data || fread(data, 1, size, file) != size)
		give_up(path);
	fclose(file);
	fprintf(stderr, "%s\n", path);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
	replayed_count++;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void replay(const char *path)
{
	struct dirent **entries;
	struct stat status;
	int count;

	if (stat(path, &status) < 0)
		give_up(path);
	if (!S_ISDIR(status.st_mode)) {
		replay_file(path, (size_t)status.st_size);
		return;
	}
	count = scandir(path, &entries, is_visible, alphasort);
	if (count < 0)
		give_up(path);
	for (int i = 0; i < count; i++) {
		char inner[PATH_SIZE];
		int length = snprintf(inner, sizeof(inner), "%s/%s", path, entries[i]->d_name);

		if (length < 0 || length >= PATH_SIZE)
			give_up(path);
		replay(inner);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: %s <file or directory>...\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%u inputs replayed\n", replayed_count);
	return replayed_count == 0;
}
