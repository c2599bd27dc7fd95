/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading the library: plugins load it and unload it again; qemu and ceph carry it along without
 * ever calling it. It starts nothing, stays mapped, and reports when there is no device.
 */
#include "harness.h"
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

static void *load(void)
{
	void *library = dlopen(VB_LIBIBVERBS, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		FAIL("%s", dlerror());
	return library;
}

static int count_entries(const char *directory)
{
	DIR *list = opendir(directory);
	int count = 0;

	EXPECT(list != NULL);
	while (readdir(list))
		count++;
	closedir(list);
	return count;
}

TEST(loading_starts_no_thread_and_opens_no_file)
{
	int threads = count_entries("/proc/self/task");
	int files = count_entries("/proc/self/fd");

	load();
	EXPECT_EQ(count_entries("/proc/self/task"), threads);
	EXPECT_EQ(count_entries("/proc/self/fd"), files);
}

TEST(the_library_stays_when_it_is_unloaded)
{
	void *library = load();
	int (*fork_init)(void) = (int (*)(void))dlsym(library, "ibv_fork_init");

	EXPECT_EQ(dlclose(library), 0);
	EXPECT_EQ(fork_init(), 0);
	EXPECT(load() == library);
	EXPECT(dlsym(library, "ibv_fork_init") == (void *)fork_init);
}

TEST(fork_needs_no_support)
{
	void *library = load();
	int (*status)(void) = (int (*)(void))dlsym(library, "ibv_is_fork_initialized");

	EXPECT_EQ(status(), IBV_FORK_UNNEEDED);
}

TEST(a_program_of_the_first_version_finds_no_device)
{
	void *library = load();
	void **(*list)(int *) =
		(void **(*)(int *))dlvsym(library, "ibv_get_device_list", "IBVERBS_1.0");
	void (*free_list)(void **) =
		(void (*)(void **))dlvsym(library, "ibv_free_device_list", "IBVERBS_1.0");
	void *(*open)(void *) =
		(void *(*)(void *))dlvsym(library, "ibv_open_device", "IBVERBS_1.0");
	int count = 7;
	void **devices = list(&count);

	EXPECT(devices && !devices[0]);
	EXPECT_EQ(count, 0);
	free_list(devices);
	EXPECT(open(NULL) == NULL);
	EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST(providers_of_hardware_may_register_and_are_refused)
{
	void *library = load();
	void (*announce)(const void *) = (void (*)(const void *))dlvsym(
		library, "verbs_register_driver_34", "IBVERBS_PRIVATE_34");
	int (*command)(void *) =
		(int (*)(void *))dlvsym(library, "ibv_cmd_create_cq", "IBVERBS_PRIVATE_34");
	bool *allow = dlvsym(library, "verbs_allow_disassociate_destroy", "IBVERBS_PRIVATE_34");

	announce(NULL);
	EXPECT_EQ(command(NULL), EOPNOTSUPP);
	EXPECT(!*allow);
}
