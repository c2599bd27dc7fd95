/* SPDX-License-Identifier: BSD-2-Clause */
#include "shim/support_shim.h"

#include "harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Starts the program again with the environment of `verbatim run`. The sanitizers of gcc want to be
 * the first library; here they need not be.
 */
__attribute__((constructor)) static void start_again(int argc, char **argv, char **environment)
{
	char options[1024];
	const char *before = getenv("ASAN_OPTIONS");

	(void)argc;
	(void)environment;
	if (getenv("LD_PRELOAD"))
		return;
	snprintf(options, sizeof(options), "%s:verify_asan_link_order=0", before ? before : "");
	setenv("ASAN_OPTIONS", options, 1);
	setenv("LD_PRELOAD", VB_PRELOAD, 1);
	setenv("VERBATIM_DEVICES", "lo", 1);
	execv("/proc/self/exe", argv);
	perror("/proc/self/exe");
	_exit(1);
}

struct vb_device loopback(void)
{
	struct vb_device *devices, device;
	struct vb_config config;
	uint32_t count;

	vb_config_load(&config);
	EXPECT(!vb_device_list(&config, &devices, &count));
	EXPECT_EQ(count, 1);
	device = devices[0];
	vb_device_list_free(devices);
	return device;
}

const char *text_of(int fd)
{
	static char text[4096];
	ssize_t length;

	EXPECT(fd >= 0);
	length = read(fd, text, sizeof(text) - 1);
	EXPECT(length >= 0);
	text[length] = 0;
	EXPECT_EQ(close(fd), 0);
	return text;
}

const char *text_at(const char *path)
{
	return text_of(open(path, O_RDONLY));
}

int open_descriptor_count(void)
{
	int count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	return count;
}
