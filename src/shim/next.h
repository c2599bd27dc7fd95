/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions that this library interposes: those of the C library, or of another preloaded
 * library that has taken the same names. All are looked up when the shim is loaded, or when the
 * first of them is needed earlier: constructors of other libraries may run before ours.
 */
#ifndef VB_SHIM_NEXT_H
#define VB_SHIM_NEXT_H

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#define VB_EXPORT __attribute__((visibility("default")))

/* clang-format off */
#define VB_NEXT_NAMES(X) \
	X(open) X(open64) X(openat) X(openat64) X(creat) X(creat64) \
	X(fopen) X(fopen64) X(freopen) X(freopen64) \
	X(stat) X(stat64) X(lstat) X(lstat64) X(fstat) X(fstat64) X(fstatat) X(fstatat64) X(statx) \
	X(statfs) X(statfs64) X(statvfs) X(statvfs64) \
	X(access) X(faccessat) X(euidaccess) X(eaccess) \
	X(getxattr) X(lgetxattr) X(listxattr) X(llistxattr) \
	X(readlink) X(readlinkat) X(realpath) X(canonicalize_file_name) \
	X(opendir) X(fdopendir) X(closedir) X(readdir) X(readdir64) X(rewinddir) X(telldir) X(seekdir) \
	X(dirfd) X(scandir) X(scandir64) X(scandirat) X(scandirat64) X(glob) X(glob64) \
	X(chdir) X(fchdir) X(getcwd) X(get_current_dir_name) \
	X(close) X(close_range) X(closefrom) X(dup2) X(dup3) \
	X(sigprocmask) X(pthread_sigmask) \
	X(munmap) X(mmap) X(mmap64) X(mremap) X(madvise) X(mprotect) X(pkey_mprotect) X(mlock) X(mlock2) X(mlockall) \
	X(_Fork) X(clone)

#define VB_NEXT_FIELD(name) __typeof__(name) *name;
struct vb_next {
	VB_NEXT_NAMES(VB_NEXT_FIELD)
	int (*readdir_r)(DIR *, struct dirent *, struct dirent **); /* marked as deprecated */
	int (*readdir64_r)(DIR *, struct dirent64 *, struct dirent64 **);
};
/* clang-format on */

const struct vb_next *vb_next(void);

/*
 * Programs pass NULL although the headers of the C library forbid it. The compiler assumes that
 * they do not, so the pointer is hidden from it.
 */
static inline bool vb_next_is_null(const void *pointer)
{
	__asm__("" : "+r"(pointer));
	return !pointer;
}

#endif
