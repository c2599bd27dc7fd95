/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that describe files: stat and the like, their 64-bit forms, which are the same
 * here, and the forms with a version that older programs call. A descriptor of the tree reports the
 * same as the path it was opened by.
 */
#include "shim/handle.h"
#include "shim/next.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "one function fills both");

#define DEVICE_ID makedev(0, 0xfb) /* used by no file system */

/* --- a node's description --------------------------------------------------------------------- */

static const mode_t modes[] = {
	[VB_TREE_FOLDER] = S_IFDIR | 0755,
	[VB_TREE_FILE] = S_IFREG | 0444,
	[VB_TREE_LINK] = S_IFLNK | 0777,
	[VB_TREE_DEVICE] = S_IFCHR | 0666,
};

/* A folder has one link from itself, one from its parent, and one from each folder in it. */
static nlink_t count_links(const struct vb_tree *tree, const struct vb_tree_node *node)
{
	char name[VB_TREE_NAME_MAX];
	struct vb_tree_node child;
	nlink_t count = 2;

	if (vb_tree_kind(node) != VB_TREE_FOLDER)
		return 1;
	for (uint32_t i = 0; vb_tree_child(tree, node, i, &child, name); i++)
		count += vb_tree_kind(&child) == VB_TREE_FOLDER;
	return count;
}

/*
 * sysfs reports 4096 for every file, but files behind our descriptors have their real length:
 * programs that copy them need it.
 */
static off_t measure(const struct vb_tree_node *node)
{
	char text[VB_TREE_TEXT_MAX];
	int length = 0;

	if (vb_tree_kind(node) == VB_TREE_FILE || vb_tree_kind(node) == VB_TREE_LINK)
		length = vb_tree_read(node, text);
	return length < 0 ? 0 : length;
}

static void describe(const struct vb_route *route, struct stat *status)
{
	const struct vb_tree_node *node = &route->node;
	uint64_t number = vb_tree_device_number(node);
	struct stat above = { 0 };

	/* The times of the system's own files. */
	(void)syscall(SYS_newfstatat, AT_FDCWD, "/sys", &above, 0);
	memset(status, 0, sizeof(*status));
	status->st_dev = DEVICE_ID;
	status->st_ino = vb_tree_inode(route->path);
	status->st_mode = modes[vb_tree_kind(node)];
	status->st_nlink = count_links(&route->tree, node);
	status->st_blksize = 4096;
	status->st_atim = status->st_mtim = status->st_ctim = above.st_ctim;
	status->st_size = measure(node);
	status->st_blocks = (status->st_size + 511) / 512;
	if (vb_tree_kind(node) == VB_TREE_DEVICE)
		status->st_rdev = makedev((unsigned)(number >> 32), (unsigned)number);
}

/* For paths that may lead into the tree. */
static int stat_route(int folder_fd, const char *path, struct stat *status, int flags)
{
	struct vb_route route;
	int result = -1;

	vb_route_init(&route, folder_fd, path, !(flags & AT_SYMLINK_NOFOLLOW));
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		result = vb_next()->fstatat(folder_fd, path, status, flags);
		break;
	case VB_ROUTE_NODE:
		describe(&route, status);
		result = 0;
		break;
	case VB_ROUTE_OUT:
		result = vb_next()->fstatat(AT_FDCWD, route.path, status, flags);
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return result;
}

/*
 * False if the descriptor does not belong to the tree. If its device is gone, describes what is
 * left: an empty file.
 */
static bool stat_handle(int fd, struct stat *status)
{
	struct vb_route route;
	char path[PATH_MAX];
	bool is_node;

	if (!vb_handle_path(fd, path))
		return false;
	vb_route_init(&route, AT_FDCWD, path, false);
	is_node = route.end == VB_ROUTE_NODE;
	if (is_node)
		describe(&route, status);
	vb_route_fini(&route);
	return is_node;
}

static struct stat *as_stat(struct stat64 *status)
{
	return (struct stat *)(void *)status;
}

/* --- stat and the like ------------------------------------------------------------------------ */

VB_EXPORT int stat(const char *path, struct stat *status)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->stat(path, status);
	return stat_route(AT_FDCWD, path, status, 0);
}

VB_EXPORT int stat64(const char *path, struct stat64 *status)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->stat64(path, status);
	return stat_route(AT_FDCWD, path, as_stat(status), 0);
}

VB_EXPORT int lstat(const char *path, struct stat *status)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->lstat(path, status);
	return stat_route(AT_FDCWD, path, status, AT_SYMLINK_NOFOLLOW);
}

VB_EXPORT int lstat64(const char *path, struct stat64 *status)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->lstat64(path, status);
	return stat_route(AT_FDCWD, path, as_stat(status), AT_SYMLINK_NOFOLLOW);
}

VB_EXPORT int fstat(int fd, struct stat *status)
{
	if (vb_handle_may_have_any() && stat_handle(fd, status))
		return 0;
	return vb_next()->fstat(fd, status);
}

VB_EXPORT int fstat64(int fd, struct stat64 *status)
{
	if (vb_handle_may_have_any() && stat_handle(fd, as_stat(status)))
		return 0;
	return vb_next()->fstat64(fd, status);
}

static bool is_about_descriptor(int fd, const char *path, int flags)
{
	return (flags & AT_EMPTY_PATH) && !vb_next_is_null(path) && !*path && fd >= 0 &&
	       vb_handle_may_have_any();
}

VB_EXPORT int fstatat(int folder_fd, const char *path, struct stat *status, int flags)
{
	if (is_about_descriptor(folder_fd, path, flags) && stat_handle(folder_fd, status))
		return 0;
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->fstatat(folder_fd, path, status, flags);
	return stat_route(folder_fd, path, status, flags);
}

VB_EXPORT int fstatat64(int folder_fd, const char *path, struct stat64 *status, int flags)
{
	if (is_about_descriptor(folder_fd, path, flags) && stat_handle(folder_fd, as_stat(status)))
		return 0;
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->fstatat64(folder_fd, path, status, flags);
	return stat_route(folder_fd, path, as_stat(status), flags);
}

/* --- with a version, which is the same for all programs that still run --- */

VB_EXPORT int __xstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return stat(path, status);
}

VB_EXPORT int __xstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return stat64(path, status);
}

VB_EXPORT int __lxstat(int version, const char *path, struct stat *status)
{
	(void)version;
	return lstat(path, status);
}

VB_EXPORT int __lxstat64(int version, const char *path, struct stat64 *status)
{
	(void)version;
	return lstat64(path, status);
}

VB_EXPORT int __fxstat(int version, int fd, struct stat *status)
{
	(void)version;
	return fstat(fd, status);
}

VB_EXPORT int __fxstat64(int version, int fd, struct stat64 *status)
{
	(void)version;
	return fstat64(fd, status);
}

VB_EXPORT int __fxstatat(int version, int folder_fd, const char *path, struct stat *status,
			 int flags)
{
	(void)version;
	return fstatat(folder_fd, path, status, flags);
}

VB_EXPORT int __fxstatat64(int version, int folder_fd, const char *path, struct stat64 *status,
			   int flags)
{
	(void)version;
	return fstatat64(folder_fd, path, status, flags);
}

/* --- statx ------------------------------------------------------------------------------------ */

static struct statx_timestamp timestamp_of(struct timespec time)
{
	return (struct statx_timestamp){ .tv_sec = time.tv_sec, .tv_nsec = (uint32_t)time.tv_nsec };
}

static void extend(const struct stat *status, struct statx *extended)
{
	*extended = (struct statx){
		.stx_mask = STATX_BASIC_STATS,
		.stx_blksize = (uint32_t)status->st_blksize,
		.stx_nlink = (uint32_t)status->st_nlink,
		.stx_mode = (uint16_t)status->st_mode,
		.stx_ino = status->st_ino,
		.stx_size = (uint64_t)status->st_size,
		.stx_atime = timestamp_of(status->st_atim),
		.stx_ctime = timestamp_of(status->st_ctim),
		.stx_mtime = timestamp_of(status->st_mtim),
		.stx_rdev_major = major(status->st_rdev),
		.stx_rdev_minor = minor(status->st_rdev),
		.stx_dev_major = major(status->st_dev),
		.stx_dev_minor = minor(status->st_dev),
	};
}

/* For paths that may lead into the tree. */
static int statx_route(int folder_fd, const char *path, int flags, unsigned mask,
		       struct statx *extended)
{
	struct vb_route route;
	struct stat status;
	int result = -1;

	vb_route_init(&route, folder_fd, path, !(flags & AT_SYMLINK_NOFOLLOW));
	switch (route.end) {
	case VB_ROUTE_ELSEWHERE:
		result = vb_next()->statx(folder_fd, path, flags, mask, extended);
		break;
	case VB_ROUTE_NODE:
		describe(&route, &status);
		extend(&status, extended);
		result = 0;
		break;
	case VB_ROUTE_OUT:
		result = vb_next()->statx(AT_FDCWD, route.path, flags, mask, extended);
		break;
	case VB_ROUTE_ERROR:
		errno = route.error;
		break;
	}
	vb_route_fini(&route);
	return result;
}

VB_EXPORT int statx(int folder_fd, const char *path, int flags, unsigned mask,
		    struct statx *extended)
{
	struct stat status;

	if (is_about_descriptor(folder_fd, path, flags) && stat_handle(folder_fd, &status)) {
		extend(&status, extended);
		return 0;
	}
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->statx(folder_fd, path, flags, mask, extended);
	return statx_route(folder_fd, path, flags, mask, extended);
}

/* --- the file system: that of the system folder above --- */

/* The path to query instead; NULL with errno if there is none. */
static const char *find_ground(struct vb_route *route, const char *path)
{
	vb_route_init(route, AT_FDCWD, path, true);
	vb_route_fini(route);
	switch (route->end) {
	case VB_ROUTE_ELSEWHERE:
		return path;
	case VB_ROUTE_NODE:
		return vb_tree_ground(route->path);
	case VB_ROUTE_OUT:
		return route->path;
	case VB_ROUTE_ERROR:
		break;
	}
	errno = route->error;
	return NULL;
}

VB_EXPORT int statfs(const char *path, struct statfs *system)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->statfs(path, system);
	path = find_ground(&route, path);
	return path ? vb_next()->statfs(path, system) : -1;
}

VB_EXPORT int statfs64(const char *path, struct statfs64 *system)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->statfs64(path, system);
	path = find_ground(&route, path);
	return path ? vb_next()->statfs64(path, system) : -1;
}

VB_EXPORT int statvfs(const char *path, struct statvfs *system)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->statvfs(path, system);
	path = find_ground(&route, path);
	return path ? vb_next()->statvfs(path, system) : -1;
}

VB_EXPORT int statvfs64(const char *path, struct statvfs64 *system)
{
	struct vb_route route;

	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->statvfs64(path, system);
	path = find_ground(&route, path);
	return path ? vb_next()->statvfs64(path, system) : -1;
}
