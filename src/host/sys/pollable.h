/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pollables: descriptors that programs poll for events. They are readable while the count is
 * above 0. A program owns them in every respect but this: if it closes one, the number may return
 * as a file of the program, and that file is left alone.
 */
#ifndef VB_HOST_SYS_POLLABLE_H
#define VB_HOST_SYS_POLLABLE_H

/* Returns a new descriptor, or a negative errno. It is closed on exec. */
int vb_pollable_open(void);
void vb_pollable_close(int fd);

void vb_pollable_up(int fd);
void vb_pollable_down(int fd); /* the count must be above 0 */

#endif
