/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pollables: descriptors that programs poll for events. Each has a count, and is
 * readable while the count is above 0. Programs know them by number, so they keep the number that
 * the kernel gave them. If a program closes one all the same and opens a file of its own under that
 * number, the file is left alone, unless it is an eventfd as well (link/fd.h).
 */
#ifndef VB_HOST_SYS_POLLABLE_H
#define VB_HOST_SYS_POLLABLE_H

/* Returns a new descriptor, or a negative errno. It is closed on exec. */
int vb_pollable_open(void);
void vb_pollable_close(int fd);

void vb_pollable_up(int fd);
void vb_pollable_down(int fd); /* the count must be above 0 */

#endif
