/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices that do not exist or cannot be opened: the program gets only an empty list or an errno,
 * so the log names what is missing.
 */
#include "harness.h"
#include "support_device.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static struct ibv_device **list;

static struct ibv_device *list_loopback(void)
{
	int count;

	enter_own_network();
	keep_log();
	setenv("VERBATIM_DEVICES", "lo", 1);
	list = ibv_get_device_list(&count);
	EXPECT(list && count == 1);
	return list[0];
}

TEST(when_no_interface_is_chosen_the_log_says_so)
{
	int count = -1;

	enter_own_network();
	keep_log();
	setenv("VERBATIM_DEVICES", "nosuch0", 1);
	list = ibv_get_device_list(&count);
	EXPECT(list && !list[0]);
	EXPECT_EQ(count, 0);
	EXPECT(strstr(take_log(), "devices = nosuch0"));
	ibv_free_device_list(list);
}

static int count_descriptors(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	EXPECT(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

static const char *read_stderr(void)
{
	static char text[1 << 14];
	ssize_t length = pread(STDERR_FILENO, text, sizeof(text) - 1, 0);

	EXPECT(length >= 0);
	text[length] = 0;
	return text;
}

static struct ibv_context *open_with_descriptor_limit(struct ibv_device *device, rlim_t limit)
{
	const struct rlimit few = { limit, 4096 };
	const struct rlimit enough = { 4096, 4096 };
	struct ibv_context *context;

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
	errno = 0;
	context = ibv_open_device(device);
	EXPECT(context || errno);
	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &enough), 0);
	return context;
}

/* With one descriptor more each time, another part of the device is the first to fail. */
TEST(opening_without_enough_descriptors_fails_with_a_reason_and_leaks_none)
{
	struct ibv_device *device = list_loopback();
	struct ibv_context *context = NULL;
	int before;

	/* Without descriptors the log has no file either, and goes to stderr. */
	EXPECT_EQ(dup2(memfd_create("stderr", 0), STDERR_FILENO), STDERR_FILENO);
	before = count_descriptors();
	for (rlim_t limit = 4; !context; limit++) {
		EXPECT(limit < 256);
		EXPECT_EQ(count_descriptors(), before);
		context = open_with_descriptor_limit(device, limit);
	}
	EXPECT(strstr(read_stderr(), "ibv_open_device: no descriptor for vb_lo"));
	EXPECT(strstr(read_stderr(), "vb_lo cannot be opened: no descriptor is left"));
	EXPECT_EQ(ibv_close_device(context), 0);
	EXPECT_EQ(count_descriptors(), before);
	ibv_free_device_list(list);
}
