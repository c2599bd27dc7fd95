/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * glob() queries the kernel without the interposed names, but accepts other functions to query
 * with. It gets ours if the pattern may match something in the tree.
 */
#include "shim/next.h"
#include "shim/tree_entry_priv.h"

#include <string.h>

_Static_assert(sizeof(glob_t) == sizeof(glob64_t), "one function fills both");

/* True if the pattern, up to its first special character, leads to a root or inside one. */
static bool may_match(const char *pattern)
{
	size_t length = strcspn(pattern, "*?[{~\\");

	if (length && *pattern != '/')
		return false;
	for (uint32_t i = 0; i < VB_TREE_ROOT_COUNT; i++) {
		size_t root_length = strlen(vb_tree_roots[i].path);

		if (!strncmp(pattern, vb_tree_roots[i].path,
			     length < root_length ? length : root_length))
			return true;
	}
	return false;
}

static void *open_folder(const char *path)
{
	return opendir(path);
}

static struct dirent *read_folder(void *stream)
{
	return readdir(stream); /* NOLINT(concurrency-mt-unsafe): glob() has its own stream */
}

static struct dirent64 *read_folder64(void *stream)
{
	return readdir64(stream);
}

static void close_folder(void *stream)
{
	closedir(stream);
}

VB_EXPORT int glob(const char *pattern, int flags, int (*on_error)(const char *, int),
		   glob_t *matches)
{
	int result;

	if (vb_next_is_null(pattern) || flags & GLOB_ALTDIRFUNC || !may_match(pattern))
		return vb_next()->glob(pattern, flags, on_error, matches);
	matches->gl_opendir = open_folder;
	matches->gl_readdir = read_folder;
	matches->gl_closedir = close_folder;
	matches->gl_stat = stat;
	matches->gl_lstat = lstat;
	result = vb_next()->glob(pattern, flags | GLOB_ALTDIRFUNC, on_error, matches);
	matches->gl_flags &= ~GLOB_ALTDIRFUNC;
	return result;
}

VB_EXPORT int glob64(const char *pattern, int flags, int (*on_error)(const char *, int),
		     glob64_t *matches)
{
	int result;

	if (vb_next_is_null(pattern) || flags & GLOB_ALTDIRFUNC || !may_match(pattern))
		return vb_next()->glob64(pattern, flags, on_error, matches);
	matches->gl_opendir = open_folder;
	matches->gl_readdir = read_folder64;
	matches->gl_closedir = close_folder;
	matches->gl_stat = stat64;
	matches->gl_lstat = lstat64;
	result = vb_next()->glob64(pattern, flags | GLOB_ALTDIRFUNC, on_error, matches);
	matches->gl_flags &= ~GLOB_ALTDIRFUNC;
	return result;
}
