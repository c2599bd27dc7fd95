/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that list folders. The C library hides the contents of a DIR, so streams of the
 * tree are separate objects. They are told apart by a mark in their first eight bytes, where a
 * stream of the C library has its descriptor and its lock. All functions that take a DIR are here,
 * so no function of the C library ever sees a stream of ours.
 */
#include "shim/handle.h"
#include "shim/next.h"

#include <errno.h>
#include <string.h>

_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "one function fills both");

#define MARK 0xfeed76657262ffffull /* its low 32 bits are far too large for a descriptor */

struct folder {
	uint64_t mark;
	int fd;
	uint32_t position; /* of the next entry: "." and ".." come first */
	struct vb_route route; /* the folder as it was at the open */
	struct dirent64 entry;
};

static const unsigned char types[] = {
	[VB_TREE_FOLDER] = DT_DIR,
	[VB_TREE_FILE] = DT_REG,
	[VB_TREE_LINK] = DT_LNK,
	[VB_TREE_DEVICE] = DT_CHR,
};

/* NULL if the stream belongs to the C library. */
static struct folder *folder_of(DIR *stream)
{
	struct folder *folder = (struct folder *)(void *)stream;
	uint64_t mark;

	if (vb_next_is_null(stream))
		return NULL;
	memcpy(&mark, stream, sizeof(mark));
	return mark == MARK ? folder : NULL;
}

/* --- opening and closing ---------------------------------------------------------------------- */

/* On success the stream owns the descriptor. */
static DIR *make_stream(int fd, const char *path)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	int error;

	if (!folder)
		return NULL;
	folder->mark = MARK;
	folder->fd = fd;
	vb_route_init(&folder->route, AT_FDCWD, path, false);
	if (folder->route.end == VB_ROUTE_NODE &&
	    vb_tree_kind(&folder->route.node) == VB_TREE_FOLDER)
		return (DIR *)(void *)folder;
	error = folder->route.end == VB_ROUTE_ERROR ? folder->route.error : ENOTDIR;
	vb_route_fini(&folder->route);
	free(folder);
	errno = error;
	return NULL;
}

static DIR *open_folder(int folder_fd, const char *path)
{
	int fd = openat(folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *stream;
	int error;

	if (fd < 0)
		return NULL;
	stream = fdopendir(fd);
	if (!stream) {
		error = errno;
		close(fd);
		errno = error;
	}
	return stream;
}

VB_EXPORT DIR *opendir(const char *path)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->opendir(path);
	return open_folder(AT_FDCWD, path);
}

VB_EXPORT DIR *fdopendir(int fd)
{
	char path[PATH_MAX];

	if (vb_handle_may_have_any() && vb_handle_path(fd, path))
		return make_stream(fd, path);
	return vb_next()->fdopendir(fd);
}

VB_EXPORT int closedir(DIR *stream)
{
	struct folder *folder = folder_of(stream);
	int fd;

	if (!folder)
		return vb_next()->closedir(stream);
	fd = folder->fd;
	folder->mark = 0;
	vb_route_fini(&folder->route);
	free(folder);
	return close(fd);
}

VB_EXPORT int dirfd(DIR *stream)
{
	struct folder *folder = folder_of(stream);

	return folder ? folder->fd : vb_next()->dirfd(stream);
}

/* --- reading ---------------------------------------------------------------------------------- */

static uint64_t inode_of_child(const struct folder *folder, const char *name)
{
	char path[PATH_MAX + VB_TREE_NAME_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder->route.path, name);
	return vb_tree_inode(path);
}

static void fill_entry(const struct folder *folder, struct dirent64 *entry, const char *name,
		       enum vb_tree_kind kind, uint64_t inode)
{
	*entry = (struct dirent64){
		.d_ino = inode,
		.d_off = folder->position,
		.d_reclen = sizeof(*entry),
		.d_type = types[kind],
	};
	snprintf(entry->d_name, sizeof(entry->d_name), "%s", name);
}

/* False at the end. */
static bool read_entry(struct folder *folder, struct dirent64 *entry)
{
	const struct vb_route *route = &folder->route;
	uint32_t position = folder->position;
	char name[VB_TREE_NAME_MAX];
	struct vb_tree_node child;

	if (position < 2) {
		folder->position++;
		fill_entry(folder, entry, position ? ".." : ".", VB_TREE_FOLDER,
			   position ? 1 /* any but 0 */ : vb_tree_inode(route->path));
		return true;
	}
	if (!vb_tree_child(&route->tree, &route->node, position - 2, &child, name))
		return false;
	folder->position++;
	fill_entry(folder, entry, name, vb_tree_kind(&child), inode_of_child(folder, name));
	return true;
}

VB_EXPORT struct dirent *readdir(DIR *stream)
{
	struct folder *folder = folder_of(stream);

	if (!folder)
		return vb_next()->readdir(stream);
	return read_entry(folder, &folder->entry) ? (struct dirent *)(void *)&folder->entry : NULL;
}

VB_EXPORT struct dirent64 *readdir64(DIR *stream)
{
	struct folder *folder = folder_of(stream);

	if (!folder)
		return vb_next()->readdir64(stream);
	return read_entry(folder, &folder->entry) ? &folder->entry : NULL;
}

VB_EXPORT int readdir_r(DIR *stream, struct dirent *entry, struct dirent **entry_out)
{
	struct folder *folder = folder_of(stream);

	if (!folder)
		return vb_next()->readdir_r(stream, entry, entry_out);
	*entry_out = read_entry(folder, (struct dirent64 *)(void *)entry) ? entry : NULL;
	return 0;
}

VB_EXPORT int readdir64_r(DIR *stream, struct dirent64 *entry, struct dirent64 **entry_out)
{
	struct folder *folder = folder_of(stream);

	if (!folder)
		return vb_next()->readdir64_r(stream, entry, entry_out);
	*entry_out = read_entry(folder, entry) ? entry : NULL;
	return 0;
}

VB_EXPORT void rewinddir(DIR *stream)
{
	struct folder *folder = folder_of(stream);

	if (folder)
		folder->position = 0;
	else
		vb_next()->rewinddir(stream);
}

VB_EXPORT long telldir(DIR *stream)
{
	struct folder *folder = folder_of(stream);

	return folder ? (long)folder->position : vb_next()->telldir(stream);
}

VB_EXPORT void seekdir(DIR *stream, long position)
{
	struct folder *folder = folder_of(stream);

	if (folder)
		folder->position = (uint32_t)position;
	else
		vb_next()->seekdir(stream, position);
}

/* --- scandir: the C library's would not call our readdir() --- */

typedef int filter_function(const struct dirent64 *);
typedef int comparison_function(const struct dirent64 **, const struct dirent64 **);

static void free_entries(struct dirent64 **list, int count)
{
	while (count > 0)
		free(list[--count]);
	free(list);
}

/* Appends a copy. An entry of the C library ends after its name; the rest is not its memory. */
static bool add_entry(struct dirent64 ***list, int count, const struct dirent64 *entry)
{
	struct dirent64 **longer = realloc(*list, ((size_t)count + 1) * sizeof(**list));

	if (!longer)
		return false;
	*list = longer;
	longer[count] = malloc(entry->d_reclen);
	if (longer[count])
		memcpy(longer[count], entry, entry->d_reclen);
	return longer[count];
}

/* NULL at the end with errno 0, and on errors. */
static const struct dirent64 *read_next(DIR *stream)
{
	errno = 0;
	return readdir64(stream);
}

static int scan(DIR *stream, struct dirent64 ***list_out, filter_function *filter,
		comparison_function *compare)
{
	/* An empty list must also be freeable. */
	struct dirent64 **list = malloc(sizeof(*list));
	const struct dirent64 *entry;
	int errno_before = errno, count = 0;

	if (!list)
		return -1;
	while ((entry = read_next(stream))) {
		if (filter && !filter(entry))
			continue;
		if (!add_entry(&list, count, entry))
			break;
		count++;
	}
	if (entry || errno) {
		free_entries(list, count);
		return -1;
	}
	errno = errno_before;
	if (compare)
		qsort(list, (size_t)count, sizeof(*list),
		      (int (*)(const void *, const void *))(void *)compare);
	*list_out = list;
	return count;
}

static int scan_at(int folder_fd, const char *path, struct dirent64 ***list_out,
		   filter_function *filter, comparison_function *compare)
{
	DIR *stream = open_folder(folder_fd, path);
	int count, error;

	if (!stream)
		return -1;
	count = scan(stream, list_out, filter, compare);
	error = errno;
	closedir(stream);
	errno = error;
	return count;
}

VB_EXPORT int scandirat64(int folder_fd, const char *path, struct dirent64 ***list_out,
			  filter_function *filter, comparison_function *compare)
{
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->scandirat64(folder_fd, path, list_out, filter, compare);
	return scan_at(folder_fd, path, list_out, filter, compare);
}

VB_EXPORT int scandir64(const char *path, struct dirent64 ***list_out, filter_function *filter,
			comparison_function *compare)
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->scandir64(path, list_out, filter, compare);
	return scan_at(AT_FDCWD, path, list_out, filter, compare);
}

VB_EXPORT int scandirat(int folder_fd, const char *path, struct dirent ***list_out,
			int (*filter)(const struct dirent *),
			int (*compare)(const struct dirent **, const struct dirent **))
{
	if (vb_route_is_elsewhere(folder_fd, path))
		return vb_next()->scandirat(folder_fd, path, list_out, filter, compare);
	return scan_at(folder_fd, path, (struct dirent64 ***)(void *)list_out,
		       (filter_function *)(void *)filter, (comparison_function *)(void *)compare);
}

VB_EXPORT int scandir(const char *path, struct dirent ***list_out,
		      int (*filter)(const struct dirent *),
		      int (*compare)(const struct dirent **, const struct dirent **))
{
	if (vb_route_is_elsewhere(AT_FDCWD, path))
		return vb_next()->scandir(path, list_out, filter, compare);
	return scan_at(AT_FDCWD, path, (struct dirent64 ***)(void *)list_out,
		       (filter_function *)(void *)filter, (comparison_function *)(void *)compare);
}
