/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Our descriptors in a process that is not ours. A program may close every descriptor it does not know, and get their numbers
 * for its own files: so we remember what is behind each of ours and touch it only as long as that is still there. They
 * have high numbers, which nobody gets by accident, and the shim keeps the program from closing them (descriptor.h). In a
 * forked child they are closed all at once. Between its creation and vb_fd_own() nothing protects one: we create none that we can do without.
 */
#ifndef VB_LINK_FD_H
#define VB_LINK_FD_H

#include <stdbool.h>

/*
 * Makes a new descriptor ours: returns the high number that it has from now on, which is closed on exec. A negative one is
 * an error, and is returned as it is.
 */
int vb_fd_own(int fd);

/*
 * Whether the kernel had no descriptor left for this thread since it last forgot about that: those who report that something cannot be made are told less. A
 * descriptor is made known to us by vb_fd_own(), the errors too.
 */
bool vb_fd_was_refused(void);
void vb_fd_forget_refusal(void);

/* The same for one that programs know: it keeps its number. */
void vb_fd_own_in_place(int fd);

/*
 * Is the same thing behind it as when it became ours? Of descriptors without a file, such as those of epoll and eventfd, the
 * kernel tells only the kind.
 */
bool vb_fd_is_ours(int fd);

/* Closes it, unless it is no longer ours. */
void vb_fd_close(int fd);

/* In a forked child: closes all of them but those that keep their number. The parent's stay open. */
void vb_fd_close_inherited(void);

#endif
