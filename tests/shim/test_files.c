/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the tree through every function of the C library that opens or describes a file, and
 * where else such paths lead.
 */
#include "harness.h"
#include "shim/support_shim.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TYPE_TEXT "1: CA\n"

#ifdef VB_TESTING
#define IS_SANITIZED true
#else
#define IS_SANITIZED false
#endif

/* The functions that _FORTIFY_SOURCE and older programs call. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int folder, const char *path, int flags);
int __openat64_2(int folder, const char *path, int flags);
int __xstat(int version, const char *path, struct stat *status);
int __xstat64(int version, const char *path, struct stat64 *status);
int __lxstat(int version, const char *path, struct stat *status);
int __lxstat64(int version, const char *path, struct stat64 *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstat64(int version, int fd, struct stat64 *status);
int __fxstatat(int version, int folder, const char *path, struct stat *status, int flags);
int __fxstatat64(int version, int folder, const char *path, struct stat64 *status, int flags);
ssize_t __readlink_chk(const char *path, char *text, size_t size, size_t room);
ssize_t __readlinkat_chk(int folder, const char *path, char *text, size_t size, size_t room);
char *__realpath_chk(const char *path, char *resolved, size_t room);

/*
 * Without the attributes that the headers give their arguments: programs do pass NULL to find out
 * what the kernel can do.
 */
static int (*volatile open_any)(const char *, int, ...) = open;
static int (*volatile access_any)(const char *, int) = access;
static int (*volatile stat_any)(const char *, struct stat *) = stat;
static int (*volatile statx_any)(int, const char *, int, unsigned, struct statx *) = statx;
static char *(*volatile realpath_any)(const char *, char *) = realpath;

static int errno_of(long result)
{
	return result < 0 ? errno : 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

TEST(every_open_reads_the_same)
{
	int before = open_descriptor_count();

	errno = 7;
	EXPECT_STR(text_of(open(NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(open64(NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(openat(AT_FDCWD, NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(openat64(-5, NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(__open_2(NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(__open64_2(NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(__openat_2(AT_FDCWD, NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_STR(text_of(__openat64_2(AT_FDCWD, NODE_TYPE, O_RDONLY)), TYPE_TEXT);
	EXPECT_EQ(errno, 7);
	EXPECT_EQ(open_descriptor_count(), before);
}

static const char *text_of_stream(FILE *stream)
{
	static char line[256];

	EXPECT(stream);
	EXPECT(fgets(line, sizeof(line), stream));
	EXPECT_EQ(fclose(stream), 0);
	return line;
}

TEST(every_stream_reads_the_same)
{
	EXPECT_STR(text_of_stream(fopen(NODE_TYPE, "r")), TYPE_TEXT);
	EXPECT_STR(text_of_stream(fopen64(NODE_TYPE, "re")), TYPE_TEXT);
	EXPECT_STR(text_of_stream(freopen(NODE_TYPE, "r", fopen("/dev/null", "r"))), TYPE_TEXT);
	EXPECT_STR(text_of_stream(freopen64(NODE_TYPE, "r", fopen64("/dev/null", "r"))), TYPE_TEXT);
	EXPECT(!fopen(NODE_TYPE, "w"));
	EXPECT_EQ(errno, EACCES);
	EXPECT(!fopen(DEVICE "/nothing", "r"));
	EXPECT_EQ(errno, ENOENT);
	EXPECT(!freopen(DEVICE "/nothing", "r", fopen("/dev/null", "r")));
	EXPECT_EQ(errno, ENOENT);
}

TEST(a_descriptor_is_a_real_one)
{
	int fd = open(NODE_TYPE, O_RDONLY | O_CLOEXEC), copy;
	char byte, *mapped;

	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(lseek(fd, 3, SEEK_SET), 3);
	EXPECT_EQ(read(fd, &byte, 1), 1);
	EXPECT_EQ(byte, 'C');
	EXPECT_EQ(pread(fd, &byte, 1, 0), 1);
	EXPECT_EQ(byte, '1');
	mapped = mmap(NULL, 6, PROT_READ, MAP_PRIVATE, fd, 0);
	EXPECT(mapped != MAP_FAILED && !memcmp(mapped, TYPE_TEXT, 6));
	munmap(mapped, 6);
	copy = dup(fd);
	EXPECT(write(fd, "x", 1) < 0);
	close(fd);
	lseek(copy, 0, SEEK_SET);
	EXPECT_STR(text_of(copy), TYPE_TEXT);
}

TEST(what_cannot_be_opened_says_why)
{
	EXPECT_EQ(errno_of(open(NODE_TYPE, O_WRONLY)), EACCES);
	EXPECT_EQ(errno_of(open(NODE_TYPE, O_RDWR)), EACCES);
	EXPECT_EQ(errno_of(creat(NODE_TYPE, 0666)), EACCES);
	EXPECT_EQ(errno_of(creat64(DEVICE "/new", 0666)), EACCES);
	EXPECT_EQ(errno_of(open(NODE_TYPE, O_CREAT | O_EXCL | O_WRONLY, 0666)), EEXIST);
	EXPECT_EQ(errno_of(open(NODE_TYPE, O_DIRECTORY)), ENOTDIR);
	EXPECT_EQ(errno_of(open(NODE_TYPE "/", O_RDONLY)), ENOTDIR);
	EXPECT_EQ(errno_of(open(NODE_TYPE "/x", O_RDONLY)), ENOTDIR);
	EXPECT_EQ(errno_of(open(NODE_TYPE, O_RDONLY | O_TRUNC)), EACCES);
	EXPECT_EQ(errno_of(open(CLASS, O_WRONLY)), EISDIR);
	EXPECT_EQ(errno_of(open(CLASS, O_RDONLY | O_TRUNC)), EISDIR);
	EXPECT_EQ(errno_of(open(CLASS, O_RDONLY | O_CREAT, 0666)), EISDIR);
	EXPECT_EQ(errno_of(open(CLASS, O_RDONLY | O_CREAT | O_EXCL, 0666)), EEXIST);
	EXPECT_EQ(errno_of(open(DEVICE, O_RDONLY | O_NOFOLLOW)), ELOOP);
	EXPECT_EQ(errno_of(open(DEVICE, O_RDONLY | O_NOFOLLOW | O_DIRECTORY)), ENOTDIR);
	EXPECT_EQ(errno_of(open(CLASS "/vb_l", O_RDONLY)), ENOENT);
	EXPECT_EQ(errno_of(open(CLASS "/vb_lo0", O_RDONLY)), ENOENT);
	EXPECT_EQ(errno_of(open(CLASS "x", O_RDONLY)), ENOENT);
}

TEST(flags_that_write_nothing_are_allowed)
{
	static const int flags[] = { O_APPEND, O_PATH | O_CREAT | O_EXCL,
				     O_PATH | O_TRUNC | O_WRONLY };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		EXPECT_EQ(close(open(NODE_TYPE, flags[i], 0666)), 0);
		EXPECT_EQ(close(open(CLASS, flags[i], 0666)), 0);
	}
	EXPECT_STR(text_of(open(NODE_TYPE, O_RDONLY | O_CREAT, 0666)), TYPE_TEXT);
}

TEST(a_file_that_may_not_be_as_large_is_not_opened_and_ends_nobody)
{
	struct rlimit limit = { 0, RLIM_INFINITY };

	EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	EXPECT_EQ(open(NODE_TYPE, O_RDONLY), -1);
	EXPECT_EQ(errno, EFBIG);
}

TEST(entries_of_the_gid_table_are_the_devices)
{
	struct vb_device device = loopback();
	struct in6_addr address;
	char path[PATH_MAX], text[64];

	for (unsigned i = 0; i < VB_GID_COUNT; i++) {
		bool is_empty = vb_device_gid_is_empty(&device.gids[i]);

		snprintf(path, sizeof(path), DEVICE "/ports/1/gids/%u", i);
		snprintf(text, sizeof(text), "%s", text_at(path));
		EXPECT_EQ(strlen(text), 40);
		text[39] = 0;
		EXPECT_EQ(inet_pton(AF_INET6, text, &address), 1);
		EXPECT_MEM(&address, device.gids[i].gid.raw, 16);
		snprintf(path, sizeof(path), DEVICE "/ports/1/gid_attrs/types/%u", i);
		EXPECT_EQ(errno_of(open(path, O_RDONLY)), is_empty ? EINVAL : 0);
		EXPECT_STR(is_empty ? "RoCE v2\n" : text_at(path), "RoCE v2\n");
		snprintf(path, sizeof(path), DEVICE "/ports/1/gid_attrs/ndevs/%u", i);
		EXPECT_STR(is_empty ? "lo\n" : text_at(path), "lo\n");
	}
	snprintf(path, sizeof(path), DEVICE "/ports/1/gids/%u", VB_GID_COUNT);
	EXPECT_EQ(errno_of(open(path, O_RDONLY)), ENOENT);
}

/* --- describing ------------------------------------------------------------------------------- */

static void expect_same(const struct stat *a, const void *b)
{
	EXPECT_MEM(a, b, sizeof(*a));
}

TEST(every_stat_says_the_same)
{
	int fd = open(NODE_TYPE, O_RDONLY);
	struct stat status, other;
	struct stat64 large;
	struct statx extended;

	errno = 7;
	EXPECT_EQ(stat(NODE_TYPE, &status), 0);
	EXPECT_EQ(status.st_mode, S_IFREG | 0444);
	EXPECT_EQ(stat64(NODE_TYPE, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(lstat(NODE_TYPE, &other), 0);
	expect_same(&status, &other);
	EXPECT_EQ(lstat64(NODE_TYPE, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(fstat(fd, &other), 0);
	expect_same(&status, &other);
	EXPECT_EQ(fstat64(fd, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(fstatat(AT_FDCWD, NODE_TYPE, &other, 0), 0);
	expect_same(&status, &other);
	EXPECT_EQ(fstatat64(fd, "", &large, AT_EMPTY_PATH), 0);
	expect_same(&status, &large);
	EXPECT_EQ(__xstat(1, NODE_TYPE, &other), 0);
	expect_same(&status, &other);
	EXPECT_EQ(__xstat64(1, NODE_TYPE, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(__lxstat(1, NODE_TYPE, &other), 0);
	expect_same(&status, &other);
	EXPECT_EQ(__lxstat64(1, NODE_TYPE, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(__fxstat(1, fd, &other), 0);
	expect_same(&status, &other);
	EXPECT_EQ(__fxstat64(1, fd, &large), 0);
	expect_same(&status, &large);
	EXPECT_EQ(__fxstatat(1, AT_FDCWD, NODE_TYPE, &other, 0), 0);
	expect_same(&status, &other);
	EXPECT_EQ(__fxstatat64(1, AT_FDCWD, NODE_TYPE, &large, 0), 0);
	expect_same(&status, &large);
	EXPECT_EQ(statx(AT_FDCWD, NODE_TYPE, 0, STATX_BASIC_STATS, &extended), 0);
	EXPECT_EQ(extended.stx_mode, status.st_mode);
	EXPECT_EQ(extended.stx_ino, status.st_ino);
	EXPECT_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
	EXPECT_EQ(extended.stx_ino, status.st_ino);
	EXPECT_EQ(errno, 7);
	EXPECT_EQ(errno_of(stat(DEVICE "/nothing", &status)), ENOENT);
	EXPECT_EQ(errno_of(statx(AT_FDCWD, DEVICE "/nothing", 0, 0, &extended)), ENOENT);
	close(fd);
}

TEST(kinds_of_nodes_are_as_in_sysfs)
{
	struct stat status, target;
	struct statfs system;

	EXPECT_EQ(stat(CLASS, &status), 0);
	EXPECT(S_ISDIR(status.st_mode));
	EXPECT_EQ(lstat(DEVICE, &status), 0);
	EXPECT(S_ISLNK(status.st_mode));
	EXPECT_EQ(stat(DEVICE, &status), 0);
	EXPECT(S_ISDIR(status.st_mode));
	EXPECT_EQ(lstat(TARGET, &target), 0);
	expect_same(&status, &target);
	EXPECT_EQ(stat(FOLDER, &status), 0);
	/* the subfolders are infiniband, infiniband_verbs and net */
	EXPECT_EQ(status.st_nlink, 2 + 3);
	EXPECT_EQ(statfs(DEVICE, &system), 0);
	EXPECT_EQ(getxattr(NODE_TYPE, "user.x", NULL, 0), -1);
	EXPECT_EQ(errno, ENOTSUP);
	EXPECT_EQ(errno_of(listxattr(CLASS, NULL, 0)), ENOTSUP);
	EXPECT_EQ(errno_of(llistxattr(DEVICE, NULL, 0)), ENOTSUP);
	EXPECT_EQ(errno_of(lgetxattr(DEVICE, "user.x", NULL, 0)), ENOTSUP);
}

TEST(a_verbs_device_is_a_character_device_that_programs_may_open)
{
	char path[PATH_MAX], number[64];
	struct stat status, opened;
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/uverbs%u", loopback().ifindex);
	EXPECT_EQ(stat(path, &status), 0);
	EXPECT(S_ISCHR(status.st_mode));
	EXPECT_EQ(access(path, R_OK | W_OK), 0);
	fd = open(path, O_RDWR);
	EXPECT(fd >= 0);
	EXPECT_EQ(errno_of(ioctl(fd, TIOCGWINSZ, path)), ENOTTY);
	EXPECT_EQ(errno_of(write(fd, path, 8)), EPERM);
	EXPECT_EQ(fstat(fd, &opened), 0);
	expect_same(&status, &opened);
	close(fd);
	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%u/dev",
		 loopback().ifindex);
	snprintf(number, sizeof(number), "%u:%u\n", major(status.st_rdev), minor(status.st_rdev));
	EXPECT_STR(text_at(path), number);
	snprintf(path, sizeof(path), "/sys/class/infiniband_verbs/uverbs%u/ibdev",
		 loopback().ifindex);
	EXPECT_STR(text_at(path), "vb_lo\n");
	EXPECT_STR(text_at("/sys/class/infiniband_verbs/abi_version"), "6\n");
	EXPECT_EQ(stat("/dev/infiniband/rdma_cm", &status), 0);
	EXPECT(S_ISCHR(status.st_mode));
}

TEST(access_is_for_reading)
{
	EXPECT_EQ(access(NODE_TYPE, F_OK), 0);
	EXPECT_EQ(access(NODE_TYPE, R_OK), 0);
	EXPECT_EQ(errno_of(access(NODE_TYPE, W_OK)), EACCES);
	EXPECT_EQ(errno_of(access(NODE_TYPE, X_OK)), EACCES);
	EXPECT_EQ(access(DEVICE, R_OK | X_OK), 0);
	EXPECT_EQ(faccessat(AT_FDCWD, NODE_TYPE, R_OK, 0), 0);
	EXPECT_EQ(euidaccess(NODE_TYPE, R_OK), 0);
	EXPECT_EQ(eaccess(NODE_TYPE, R_OK), 0);
	EXPECT_EQ(errno_of(access(CLASS "/mlx5_0", F_OK)), ENOENT);
	EXPECT_EQ(faccessat(AT_FDCWD, NODE_TYPE, R_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW), 0);
	EXPECT_EQ(errno_of(faccessat(AT_FDCWD, NODE_TYPE, R_OK, 0x40000000)), EINVAL);
	EXPECT_EQ(errno_of(faccessat(AT_FDCWD, "/sys/class", R_OK, 0x40000000)), EINVAL);
}

/* --- links ------------------------------------------------------------------------------------ */

TEST(links_lead_where_they_say)
{
	char text[PATH_MAX], small[4] = "xxx", *allocated;

	EXPECT_EQ(readlink(DEVICE, text, sizeof(text)), 53);
	EXPECT_MEM(text, "../../devices/virtual/verbatim/vb_lo/infiniband/vb_lo", 53);
	EXPECT_EQ(readlink(DEVICE, small, 2), 2);
	EXPECT_STR(small, "..x");
	EXPECT_EQ(__readlink_chk(DEVICE, text, sizeof(text), sizeof(text)), 53);
	EXPECT_EQ(readlinkat(AT_FDCWD, DEVICE, text, sizeof(text)), 53);
	EXPECT_EQ(__readlinkat_chk(AT_FDCWD, DEVICE, text, sizeof(text), sizeof(text)), 53);
	EXPECT_EQ(errno_of(readlink(NODE_TYPE, text, sizeof(text))), EINVAL);
	EXPECT_STR(realpath(NODE_TYPE, text), TARGET "/node_type");
	EXPECT_STR(__realpath_chk(DEVICE "/device", text, sizeof(text)), FOLDER);
	EXPECT_STR(realpath(DEVICE "/device/net/lo", text), "/sys/devices/virtual/net/lo");
	EXPECT_STR(realpath(DEVICE "/subsystem", text), CLASS);
	EXPECT(!realpath(DEVICE "/nothing", text));
	EXPECT_EQ(errno, ENOENT);
	allocated = realpath(DEVICE "/../vb_lo/..", NULL);
	EXPECT_STR(allocated, "/sys/devices/virtual/verbatim/vb_lo/infiniband");
	free(allocated);
	allocated = canonicalize_file_name(DEVICE);
	EXPECT_STR(allocated, TARGET);
	free(allocated);
}

TEST(odd_spellings_lead_to_the_same)
{
	EXPECT_STR(text_at("/sys//class/./infiniband///vb_lo/./node_type"), TYPE_TEXT);
	EXPECT_STR(text_at("//sys/class/infiniband/../infiniband/vb_lo/node_type"), TYPE_TEXT);
	EXPECT_STR(text_at("/sys/class/infiniband/vb_lo/../../infiniband/vb_lo/node_type"),
		   TYPE_TEXT);
	EXPECT_STR(text_at("/../sys/class/infiniband/vb_lo/node_type"), TYPE_TEXT);
}

/* --- beyond the tree -------------------------------------------------------------------------- */

TEST(a_path_through_the_tree_reaches_the_system)
{
	struct stat status, other;
	char mtu[64];

	snprintf(mtu, sizeof(mtu), "%s", text_at("/sys/class/net/lo/mtu"));
	EXPECT_STR(text_at(DEVICE "/device/net/lo/mtu"), mtu);
	EXPECT_STR(text_at(CLASS "/../net/lo/mtu"), mtu);
	EXPECT_EQ(stat(CLASS "/..", &status), 0);
	EXPECT_EQ(stat("/sys/class", &other), 0);
	EXPECT_EQ(status.st_ino, other.st_ino);
	EXPECT_EQ(stat("/dev/infiniband/../null", &status), 0);
	EXPECT_EQ(status.st_rdev, makedev(1, 3));
	EXPECT_EQ(access(DEVICE "/device/net/lo/mtu", R_OK), 0);
}

TEST(everything_else_is_the_systems)
{
	char path[PATH_MAX + 100];
	struct stat status, raw;
	struct statx extended;

	EXPECT_EQ(stat("/dev/null", &status), 0);
	EXPECT_EQ(syscall(SYS_newfstatat, AT_FDCWD, "/dev/null", &raw, 0), 0);
	EXPECT_MEM(&status, &raw, sizeof(raw));
	memset(path, '/', sizeof(path) - 1);
	path[sizeof(path) - 1] = 0;
	EXPECT_EQ(errno_of(open(path, O_RDONLY)), ENAMETOOLONG);
	EXPECT_EQ(errno_of(open("/sys/class/infiniband_nothing", O_RDONLY)), ENOENT);
	EXPECT_EQ(errno_of(open("", O_RDONLY)), ENOENT);
	EXPECT_EQ(errno_of(openat(-5, "sys", O_RDONLY)), EBADF);
	EXPECT_EQ(errno_of(fstat(-1, &status)), EBADF);
	EXPECT_EQ(errno_of(open_any(NULL, O_RDONLY)), EFAULT);
	EXPECT_EQ(errno_of(access_any(NULL, R_OK)), EFAULT);
	/* the sanitizer's own functions read the path before ours do */
	if (IS_SANITIZED)
		return;
	EXPECT_EQ(errno_of(stat_any(NULL, &status)), EFAULT);
	EXPECT(errno_of(statx_any(AT_FDCWD, NULL, 0, 0, &extended)));
	EXPECT(!realpath_any(NULL, NULL));
	EXPECT_EQ(errno, EINVAL);
}

/* --- processes and threads -------------------------------------------------------------------- */

/* Runs a program with its output in a pipe. */
static const char *output_of(const char *const *arguments)
{
	posix_spawn_file_actions_t actions;
	char *copies[8] = { NULL };
	int ends[2], status;
	static char text[4096];
	ssize_t length;
	pid_t child;

	for (int i = 0; arguments[i]; i++)
		copies[i] = strdup(arguments[i]);
	EXPECT_EQ(pipe(ends), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	EXPECT_EQ(posix_spawnp(&child, copies[0], &actions, NULL, copies, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	length = read(ends[0], text, sizeof(text) - 1);
	text[length > 0 ? length : 0] = 0;
	close(ends[0]);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	for (int i = 0; copies[i]; i++)
		free(copies[i]);
	return text;
}

/* The test's own program is a child that has the same sanitizer as the shim. */
__attribute__((constructor)) static void be_the_child(int argc, char **argv, char **environment)
{
	(void)environment;
	if (argc < 2 || strcmp(argv[1], "--print") || !getenv("LD_PRELOAD"))
		return;
	printf("%s", argc > 3	? text_of(openat(atoi(argv[2]), argv[3], O_RDONLY))
		     : argc > 2 ? text_at(argv[2])
				: text_of(dup(9)));
	exit(0);
}

TEST(child_processes_see_it)
{
	EXPECT_STR(output_of((const char *[]){ "/proc/self/exe", "--print", NODE_TYPE, NULL }),
		   TYPE_TEXT);
}

TEST(descriptors_are_inherited)
{
	EXPECT_EQ(dup2(open(NODE_TYPE, O_RDONLY), 9), 9);
	EXPECT_STR(output_of((const char *[]){ "/proc/self/exe", "--print", NULL }), TYPE_TEXT);
}

TEST(folders_are_inherited)
{
	static const char *const arguments[] = { "/proc/self/exe", "--print", "9", "node_type",
						 NULL };

	EXPECT_EQ(dup2(open(DEVICE, O_RDONLY | O_DIRECTORY), 9), 9);
	EXPECT_STR(output_of(arguments), TYPE_TEXT);
}

static void *open_often(void *unused)
{
	char text[64];

	for (int i = 0; i < 50; i++) {
		int fd = open(NODE_TYPE, O_RDONLY);
		ssize_t length = read(fd, text, sizeof(text));

		if (length != 6 || memcmp(text, TYPE_TEXT, 6))
			return unused;
		close(fd);
	}
	return NULL;
}

TEST(threads_may_open_at_the_same_time)
{
	pthread_t threads[4];
	void *result;

	for (int i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, open_often, threads), 0);
	for (int i = 0; i < 4; i++) {
		EXPECT_EQ(pthread_join(threads[i], &result), 0);
		EXPECT(!result);
	}
}
