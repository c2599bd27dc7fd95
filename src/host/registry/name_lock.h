/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock between the processes of one user in one network namespace: the process that holds the
 * abstract name holds the lock. It vanishes with its holder. Waiting processes are connected to the
 * holder, so that they learn immediately when the lock is free, and which process holds it.
 */
#ifndef VB_HOST_REGISTRY_NAME_LOCK_H
#define VB_HOST_REGISTRY_NAME_LOCK_H

#include "host/registry/mail.h"

/*
 * Waits for the lock; returns what vb_name_lock_release() takes. If a process of another user has
 * the name, the lock is that name with a random suffix. It does not wait for a stopped holder, nor
 * for more than ten seconds: then it returns -1, and the caller must do without the lock.
 */
int vb_name_lock_take(const struct vb_mail_name *name, const struct vb_mail_user *user);
/* The same without waiting: -1 if any process has the name or the lock. */
int vb_name_lock_try(const struct vb_mail_name *name, const struct vb_mail_user *user);
void vb_name_lock_release(int lock);

#endif
