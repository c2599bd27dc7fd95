/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that processes share by its descriptor (memfd). Its size is sealed: a file that shrinks
 * would cause a SIGBUS in a process that maps it.
 */
#ifndef VB_HOST_SYS_SEALED_H
#define VB_HOST_SYS_SEALED_H

#include <stddef.h>

/* A memfd of that size, sealed against any other size; a negative errno if there is none. */
int vb_sealed_open(const char *name, size_t length);
/* Maps a memfd that another process has made; NULL if its size differs or could change. */
void *vb_sealed_map(int fd, size_t length, int protection);

#endif
