/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_mapping.h"

#include "harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Works without stdio, whose buffer is heap memory, which a test may just have registered. */
size_t read_mappings(struct mapping *mappings, size_t max)
{
	static char text[1 << 20];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t length = 0, count = 0;
	ssize_t got;

	EXPECT(fd >= 0);
	while ((got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = 0;
	for (char *line = text; count < max && *line; line = strchr(line, '\n') + 1)
		if (sscanf(line, "%lx-%lx %7s %*x %*x:%*x %lu", &mappings[count].begin,
			   &mappings[count].end, mappings[count].rights,
			   &mappings[count].inode) == 4)
			count++;
	return count;
}

struct mapping mapping_at(const void *address)
{
	static struct mapping mappings[4096];
	size_t count = read_mappings(mappings, 4096);

	for (size_t i = 0; i < count; i++)
		if (mappings[i].begin <= (uintptr_t)address && mappings[i].end > (uintptr_t)address)
			return mappings[i];
	EXPECT(!"the address is mapped");
	return (struct mapping){ 0 };
}

bool is_shared(const void *address)
{
	return mapping_at(address).rights[3] == 's';
}

bool is_anonymous(const void *address)
{
	struct mapping mapping = mapping_at(address);

	return mapping.rights[3] == 'p' && !mapping.inode;
}

uint32_t count_files(uint64_t *bytes_out)
{
	static const char name[] = "/memfd:verbatim-memory";
	DIR *folder = opendir("/proc/self/fd");
	const struct dirent *entry;
	uint32_t count = 0;

	EXPECT(folder);
	*bytes_out = 0;
	while ((entry = readdir(folder))) {
		char path[300], target[300] = { 0 };
		struct stat status;

		snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
		if (readlink(path, target, sizeof(target) - 1) < 0 ||
		    strncmp(target, name, sizeof(name) - 1) || stat(path, &status))
			continue;
		*bytes_out += (uint64_t)status.st_blocks * 512;
		count++;
	}
	closedir(folder);
	return count;
}

bool has_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
	return true;
#elif defined(__has_feature)
	return __has_feature(address_sanitizer);
#else
	return false;
#endif
}
