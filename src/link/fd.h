/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our descriptors in a process that is not ours. A program may close every descriptor it does not
 * know, and get the number for a file of its own. So we remember the file behind each of ours, and
 * use it only while that file is still there. They have high numbers, which no program gets by
 * accident, and the shim keeps the program from closing them (fd_table.h). In a forked child they
 * are all closed together. Between its creation and vb_fd_own() nothing protects a descriptor: we
 * create none that we can do without.
 */
#ifndef VB_LINK_FD_H
#define VB_LINK_FD_H

#include <stdbool.h>

/*
 * Makes a new descriptor ours: returns its new high number, which is closed on exec. A negative one
 * is an error, and is returned unchanged.
 */
int vb_fd_own(int fd);

/*
 * Whether the kernel has refused this thread a descriptor since the last vb_fd_forget_refusal().
 * Code that reports a failed creation does not learn that reason otherwise. We learn of
 * descriptors, and of errors as well, by vb_fd_own().
 */
bool vb_fd_was_refused(void);
void vb_fd_forget_refusal(void);

/* The same for a descriptor that programs know: it keeps its number. */
void vb_fd_own_in_place(int fd);

/*
 * Whether the same file is behind it as when it became ours. For descriptors without a file, such
 * as those of epoll and eventfd, the kernel reports only the kind.
 */
bool vb_fd_is_ours(int fd);

/* Closes the descriptor, unless it is no longer ours. */
void vb_fd_close(int fd);

/*
 * To be called in a forked child: closes all of our descriptors but those that keep their number.
 * The parent's stay open.
 */
void vb_fd_close_inherited(void);

#endif
