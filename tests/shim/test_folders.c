/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Folders of the tree: listing them through every function of the C library, and paths relative to
 * them.
 */
#include "harness.h"
#include "shim/support_shim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SYSTEM_FILES = 400 };

char *__getcwd_chk(char *path, size_t size, size_t room);

/* The names in a row, each with the letter of its kind. */
static const char *list(DIR *stream)
{
	static char text[8192];
	struct dirent *entry;
	size_t length = 0;

	text[0] = 0;
	EXPECT(stream);
	while ((entry = readdir(stream)))
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%c",
					   length ? " " : "", entry->d_name,
					   entry->d_type == DT_DIR   ? '/'
					   : entry->d_type == DT_LNK ? '@'
					   : entry->d_type == DT_CHR ? '%'
								     : '=');
	return text;
}

static const char *list_at(const char *path)
{
	DIR *stream = opendir(path);
	const char *text = list(stream);

	EXPECT_EQ(closedir(stream), 0);
	return text;
}

TEST(folders_list_what_is_in_them)
{
	char expected[128];

	EXPECT_STR(list_at(CLASS), "./ ../ vb_lo@");
	EXPECT_STR(list_at(CLASS "/"), "./ ../ vb_lo@");
	EXPECT_STR(list_at(DEVICE "/device/net"), "./ ../ lo@");
	EXPECT_STR(list_at(DEVICE "/ports"), "./ ../ 1/");
	EXPECT_STR(list_at(DEVICE "/ports/1/pkeys"), "./ ../ 0=");
	snprintf(expected, sizeof(expected), "./ ../ uverbs%u%% rdma_cm%%", loopback().ifindex);
	EXPECT_STR(list_at("/dev/infiniband"), expected);
	EXPECT(!opendir(NODE_TYPE));
	EXPECT_EQ(errno, ENOTDIR);
	EXPECT(!opendir(CLASS "/nothing"));
	EXPECT_EQ(errno, ENOENT);
}

TEST(every_way_of_listing_says_the_same)
{
	DIR *stream = opendir(DEVICE "/ports/1/gids");
	struct dirent64 *large, *large_out;
	struct dirent entry, *entry_out;
	struct stat status;
	long place;
	int count = 0;

	while ((large = readdir64(stream)))
		count++;
	EXPECT_EQ(count, 2 + VB_GID_COUNT);
	rewinddir(stream);
	EXPECT_STR(readdir64(stream)->d_name, ".");
	EXPECT_STR(readdir(stream)->d_name, "..");
	place = telldir(stream);
	EXPECT_STR(readdir(stream)->d_name, "0");
	seekdir(stream, place);
	EXPECT_STR(readdir(stream)->d_name, "0");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	EXPECT_EQ(readdir_r(stream, &entry, &entry_out), 0);
	EXPECT_STR(entry_out->d_name, "1");
	large = malloc(sizeof(*large));
	EXPECT_EQ(readdir64_r(stream, large, &large_out), 0);
	EXPECT_STR(large_out->d_name, "2");
#pragma GCC diagnostic pop
	EXPECT_EQ(stat(DEVICE "/ports/1/gids/2", &status), 0);
	EXPECT_EQ(large->d_ino, status.st_ino);
	free(large);
	EXPECT_EQ(closedir(stream), 0);
}

TEST(a_folder_of_the_system_is_listed_as_ever)
{
	DIR *stream = opendir("/proc/self/task");
	struct dirent *entry;
	int count = 0;

	EXPECT(dirfd(stream) >= 0);
	while ((entry = readdir(stream)))
		count++;
	EXPECT(count >= 3);
	rewinddir(stream);
	EXPECT_STR(readdir(stream)->d_name, ".");
	EXPECT_EQ(closedir(stream), 0);
}

TEST(a_folders_descriptor_is_a_place_to_start_from)
{
	int before = open_descriptor_count(), fd = open(DEVICE, O_RDONLY | O_DIRECTORY), copy;
	struct stat status, other;
	DIR *stream;

	EXPECT(fd >= 0);
	EXPECT_STR(text_of(openat(fd, "node_type", O_RDONLY)), "1: CA\n");
	EXPECT_STR(text_of(openat(fd, "ports/1/../1/lid", O_RDONLY)), "0x0\n");
	EXPECT_STR(text_of(openat(fd, "../../net/lo/ifindex", O_RDONLY)), "1\n");
	EXPECT_EQ(fstatat(fd, "device", &status, AT_SYMLINK_NOFOLLOW), 0);
	EXPECT(S_ISLNK(status.st_mode));
	EXPECT_EQ(faccessat(fd, "ports", R_OK, 0), 0);
	EXPECT_EQ(fstatat(fd, "nothing", &status, 0), -1);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(fstat(fd, &status), 0);
	EXPECT(S_ISDIR(status.st_mode));
	EXPECT_EQ(stat(DEVICE, &other), 0);
	EXPECT_EQ(status.st_ino, other.st_ino);
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 20);
	EXPECT_STR(text_of(openat(copy, "node_type", O_RDONLY)), "1: CA\n");
	stream = fdopendir(copy);
	EXPECT_EQ(dirfd(stream), copy);
	EXPECT(strstr(list(stream), "node_guid= "));
	EXPECT_EQ(closedir(stream), 0);
	close(fd);
	EXPECT_EQ(open_descriptor_count(), before);
}

TEST(the_way_there_may_be_relative)
{
	int root = open("/", O_RDONLY | O_DIRECTORY), class = open("/sys/class", O_PATH);

	EXPECT_STR(text_of(openat(root, "sys/class/infiniband/vb_lo/node_type", O_RDONLY)),
		   "1: CA\n");
	EXPECT_STR(text_of(openat(class, "infiniband/vb_lo/node_type", O_RDONLY)), "1: CA\n");
	EXPECT_EQ(openat(root, "infiniband", O_RDONLY), -1);
	EXPECT_EQ(chdir("/sys/class"), 0);
	EXPECT_STR(text_at("infiniband/vb_lo/node_type"), "1: CA\n");
	EXPECT_STR(text_at("net/lo/ifindex"), "1\n");
	close(root);
	close(class);
}

TEST(the_working_folder_may_be_in_the_tree)
{
	char path[PATH_MAX], *allocated;
	struct stat status, other;
	int fd = open(CLASS, O_RDONLY);

	EXPECT_EQ(chdir(DEVICE), 0);
	EXPECT_STR(getcwd(path, sizeof(path)), TARGET);
	EXPECT_STR(__getcwd_chk(path, sizeof(path), sizeof(path)), TARGET);
	EXPECT(!getcwd(path, 5));
	EXPECT_EQ(errno, ERANGE);
	allocated = get_current_dir_name();
	EXPECT_STR(allocated, TARGET);
	free(allocated);
	allocated = getcwd(NULL, 0);
	EXPECT_STR(allocated, TARGET);
	free(allocated);
	EXPECT_STR(text_at("node_type"), "1: CA\n");
	EXPECT_STR(text_at("./ports/1/lid"), "0x0\n");
	EXPECT(strstr(list_at("."), "node_guid="));
	EXPECT_EQ(stat(".", &status), 0);
	EXPECT_EQ(stat(DEVICE, &other), 0);
	EXPECT_EQ(status.st_ino, other.st_ino);
	EXPECT_EQ(chdir(".."), 0);
	EXPECT_STR(getcwd(path, sizeof(path)), FOLDER "/infiniband");
	EXPECT_EQ(fchdir(fd), 0);
	EXPECT_STR(getcwd(path, sizeof(path)), CLASS);
	EXPECT_EQ(chdir("../net"), 0);
	EXPECT_STR(getcwd(path, sizeof(path)), "/sys/class/net");
	EXPECT_EQ(access("lo/mtu", R_OK), 0);
	EXPECT_EQ(chdir(NODE_TYPE), -1);
	EXPECT_EQ(errno, ENOTDIR);
	EXPECT_STR(getcwd(path, sizeof(path)), "/sys/class/net");
	close(fd);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int is_visible64(const struct dirent64 *entry)
{
	return entry->d_name[0] != '.';
}

TEST(scandir_chooses_and_sorts)
{
	struct dirent64 **large;
	struct dirent **entries;
	int fd = open(DEVICE, O_RDONLY);

	EXPECT_EQ(scandir(DEVICE "/ports/1/gid_attrs", &entries, is_visible, alphasort), 2);
	EXPECT_STR(entries[0]->d_name, "ndevs");
	EXPECT_STR(entries[1]->d_name, "types");
	free(entries[0]);
	free(entries[1]);
	free(entries);
	EXPECT_EQ(scandir64(CLASS, &large, is_visible64, alphasort64), 1);
	EXPECT_STR(large[0]->d_name, "vb_lo");
	free(large[0]);
	free(large);
	EXPECT_EQ(scandirat(fd, "ports", &entries, is_visible, NULL), 1);
	EXPECT_STR(entries[0]->d_name, "1");
	free(entries[0]);
	free(entries);
	EXPECT_EQ(scandirat64(fd, "ports/1/pkeys", &large, NULL, alphasort64), 3);
	for (int i = 0; i < 3; i++)
		free(large[i]);
	free(large);
	EXPECT_EQ(scandir(NODE_TYPE, &entries, NULL, NULL), -1);
	EXPECT_EQ(errno, ENOTDIR);
	close(fd);
}

/*
 * A folder of the system whose name might lead to the tree, so that the C library's scandir() is
 * not asked. It is larger than what the C library reads at a time. The test is in the folder above.
 */
static const char *make_system_folder(char above[])
{
	char path[160];

	EXPECT(mkdtemp(above));
	EXPECT_EQ(chdir(above), 0);
	EXPECT_EQ(mkdir("dev", 0700), 0);
	for (int i = 0; i < SYSTEM_FILES; i++) {
		snprintf(path, sizeof(path), "dev/%0100d", i);
		EXPECT_EQ(mknod(path, S_IFREG | 0600, 0), 0);
	}
	return "dev";
}

static void remove_system_folder(const char *above)
{
	char path[160];

	for (int i = 0; i < SYSTEM_FILES; i++) {
		snprintf(path, sizeof(path), "dev/%0100d", i);
		EXPECT_EQ(unlink(path), 0);
	}
	EXPECT_EQ(rmdir("dev"), 0);
	EXPECT_EQ(rmdir(above), 0);
}

TEST(scandir_lists_a_folder_of_the_system)
{
	char above[] = "/tmp/verbatim_scandir_XXXXXX", name[128];
	struct dirent **entries;

	errno = 7;
	EXPECT_EQ(scandir(make_system_folder(above), &entries, is_visible, alphasort),
		  SYSTEM_FILES);
	EXPECT_EQ(errno, 7);
	for (int i = 0; i < SYSTEM_FILES; i++) {
		snprintf(name, sizeof(name), "%0100d", i);
		EXPECT_STR(entries[i]->d_name, name);
		free(entries[i]);
	}
	free(entries);
	remove_system_folder(above);
}

static int folder_fd;

static int close_folder(const struct dirent *entry)
{
	close(folder_fd);
	return is_visible(entry);
}

TEST(scandir_fails_if_the_folder_cannot_be_read_to_its_end)
{
	char above[] = "/tmp/verbatim_scandir_XXXXXX";
	const char *folder = make_system_folder(above);
	struct dirent **entries;
	int count, error;

	folder_fd = dup(0); /* scandir() opens the folder at the same number */
	close(folder_fd);
	count = scandir(folder, &entries, close_folder, NULL);
	error = errno;
	remove_system_folder(above);
	EXPECT_EQ(count, -1);
	EXPECT_EQ(error, EBADF);
}

TEST(glob_matches_in_the_tree_and_elsewhere)
{
	glob_t matches;
	glob64_t large;

	EXPECT_EQ(glob(CLASS "/*/ports/*/st[a]te", 0, NULL, &matches), 0);
	EXPECT_EQ(matches.gl_pathc, 1);
	EXPECT_STR(matches.gl_pathv[0], DEVICE "/ports/1/state");
	EXPECT_EQ(matches.gl_flags & GLOB_ALTDIRFUNC, 0);
	EXPECT_EQ(glob("/sys/class/net/l[o]", GLOB_APPEND, NULL, &matches), 0);
	EXPECT_STR(matches.gl_pathv[1], "/sys/class/net/lo");
	globfree(&matches);
	EXPECT_EQ(glob64(DEVICE "/device/net/*", GLOB_MARK, NULL, &large), 0);
	EXPECT_STR(large.gl_pathv[0], DEVICE "/device/net/lo/");
	globfree64(&large);
	EXPECT_EQ(glob(CLASS "/mlx*", 0, NULL, &matches), GLOB_NOMATCH);
	EXPECT_EQ(glob(NODE_TYPE, 0, NULL, &matches), 0);
	globfree(&matches);
}
