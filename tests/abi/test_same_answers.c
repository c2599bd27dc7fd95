/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that need no device give the same answers as the installed library's, for all values:
 * both libraries are loaded into this process, ours and the distribution's, each by its path.
 */
#include "harness.h"
#include <dlfcn.h>
#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <stdlib.h>

#define INSTALLED "/usr/lib/x86_64-linux-gnu/libibverbs.so.1"

static void *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		FAIL("%s", dlerror());
	return library;
}

/* The function of both libraries, as type `kind`. */
struct both {
	void *ours, *theirs;
};

static struct both find(const char *name)
{
	struct both both = { dlsym(load(VB_LIBIBVERBS), name), dlsym(load(INSTALLED), name) };

	EXPECT(both.ours && both.theirs && both.ours != both.theirs);
	return both;
}

static void compare_names(const char *function)
{
	struct both both = find(function);
	const char *(*ours)(int) = (const char *(*)(int))both.ours;
	const char *(*theirs)(int) = (const char *(*)(int))both.theirs;

	for (int i = -300; i <= 300; i++)
		EXPECT_STR(ours(i), theirs(i));
}

static void compare_numbers(const char *function, int from, int to)
{
	struct both both = find(function);
	int (*ours)(int) = (int (*)(int))both.ours;
	int (*theirs)(int) = (int (*)(int))both.theirs;

	for (int i = from; i <= to; i++)
		EXPECT_EQ(ours(i), theirs(i));
}

TEST(node_types_have_the_same_names)
{
	compare_names("ibv_node_type_str");
}

TEST(port_states_have_the_same_names)
{
	compare_names("ibv_port_state_str");
}

TEST(events_have_the_same_names)
{
	compare_names("ibv_event_type_str");
}

TEST(completion_statuses_have_the_same_names)
{
	compare_names("ibv_wc_status_str");
}

TEST(rates_are_the_same_numbers)
{
	compare_numbers("ibv_rate_to_mult", -300, 300);
	compare_numbers("ibv_rate_to_mbps", -300, 300);
}

TEST(numbers_are_the_same_rates)
{
	compare_numbers("mult_to_ibv_rate", -10, 2000);
	compare_numbers("mbps_to_ibv_rate", -10, 2000000);
}

/* Converts bytes that are all different, into memory that shows which bytes stay unchanged. */
static void compare_conversion(const char *function, size_t from_size, size_t to_size)
{
	struct both both = find(function);
	unsigned char from[512], ours[512], theirs[512];

	for (size_t i = 0; i < from_size; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	memset(ours, 0xa5, sizeof(ours));
	memset(theirs, 0xa5, sizeof(theirs));
	((void (*)(void *, void *))both.ours)(ours, from);
	((void (*)(void *, void *))both.theirs)(theirs, from);
	EXPECT_MEM(ours, theirs, to_size);
}

TEST(structs_of_the_kernel_are_converted_alike)
{
	compare_conversion("ibv_copy_ah_attr_from_kern", sizeof(struct ib_uverbs_ah_attr),
			   sizeof(struct ibv_ah_attr));
	compare_conversion("ibv_copy_qp_attr_from_kern", sizeof(struct ib_uverbs_qp_attr),
			   sizeof(struct ibv_qp_attr));
	compare_conversion("ibv_copy_path_rec_from_kern", sizeof(struct ib_user_path_rec),
			   sizeof(struct ibv_sa_path_rec));
	compare_conversion("ibv_copy_path_rec_to_kern", sizeof(struct ibv_sa_path_rec),
			   sizeof(struct ib_user_path_rec));
}

TEST(sysfs_is_where_the_environment_says)
{
	struct both both;
	const char *(*ours)(void);
	const char *(*theirs)(void);

	setenv("SYSFS_PATH", "/tmp/some/where///", 1);
	both = find("ibv_get_sysfs_path");
	ours = (const char *(*)(void))both.ours;
	theirs = (const char *(*)(void))both.theirs;
	EXPECT_STR(ours(), theirs());
	EXPECT_STR(ours(), "/tmp/some/where");
}

TEST(small_files_are_read_alike)
{
	struct both both = find("ibv_read_sysfs_file");
	int (*ours)(const char *, const char *, char *, size_t) =
		(int (*)(const char *, const char *, char *, size_t))both.ours;
	int (*theirs)(const char *, const char *, char *, size_t) =
		(int (*)(const char *, const char *, char *, size_t))both.theirs;
	char a[256] = "", b[256] = "";

	EXPECT_EQ(ours("/proc/sys/kernel", "ostype", a, sizeof(a)), strlen("Linux"));
	EXPECT_EQ(theirs("/proc/sys/kernel", "ostype", b, sizeof(b)), strlen("Linux"));
	EXPECT_STR(a, b);
	EXPECT_EQ(ours("/proc/sys/kernel", "ostype", a, 3),
		  theirs("/proc/sys/kernel", "ostype", b, 3));
	EXPECT_EQ(ours("/proc/sys/kernel", "none", a, sizeof(a)), -1);
	EXPECT_EQ(theirs("/proc/sys/kernel", "none", b, sizeof(b)), -1);
}
