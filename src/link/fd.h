/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our descriptors in a process that is not ours. A program may close every descriptor it does not
 * know, and the kernel may then give the number to a file of the program. So we remember the file
 * behind each of our descriptors, and use a descriptor only while it still refers to that file.
 * They have high numbers, which no program gets by accident, and the shim keeps the program from
 * closing them (fd_table.h). In a forked child they are all closed together. Between its creation
 * and vb_fd_own() nothing protects a descriptor, so we create as few as possible.
 */
#ifndef VB_LINK_FD_H
#define VB_LINK_FD_H

#include <stdbool.h>

/*
 * Makes a new descriptor ours: returns its new number, which is a high one if possible and is then
 * closed on exec. A negative one is an error, and is returned unchanged.
 */
int vb_fd_own(int fd);

/* Like vb_fd_own(), for a descriptor that the program knows: it keeps its number. */
void vb_fd_own_in_place(int fd);

/*
 * Whether the kernel has refused this thread a descriptor since the last vb_fd_forget_refusal().
 * vb_fd_own() notes this when it is passed -EMFILE or -ENFILE, because the code that reports the
 * failure no longer sees the errno.
 */
bool vb_fd_was_refused(void);
void vb_fd_forget_refusal(void);

/*
 * Whether the same file is behind it as when it became ours. For descriptors without a file, such
 * as those of epoll and eventfd, the kernel reports only the kind. Numbers from 8192 on are not
 * tracked: the answer is whether the descriptor is open.
 */
bool vb_fd_is_ours(int fd);

/* Closes the descriptor, unless it is no longer ours. */
void vb_fd_close(int fd);

/*
 * To be called in a forked child: closes all of our descriptors except those that became ours with
 * vb_fd_own_in_place().
 * The parent's stay open.
 */
void vb_fd_close_inherited(void);

#endif
