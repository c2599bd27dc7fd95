/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock among the processes of one user in one network namespace: whoever has the abstract name has it. It vanishes
 * with its holder. Those who wait are connected to it, so that they learn at once when it is free, and who holds it.
 */
#ifndef VB_HOST_NAME_LOCK_H
#define VB_HOST_NAME_LOCK_H

#include "host/mail.h"

/*
 * Waits for the lock; returns what vb_name_lock_release() takes. If a stranger has the name, one of a few others is the lock. It does
 * not wait for a holder that is stopped, or for more than ten seconds: -1 then, and also when strangers have all the names. The
 * caller must get along without.
 */
int vb_name_lock_take(const struct vb_mail_name *name, const struct vb_mail_user *user);
/* The same without waiting: -1 if anybody has it. */
int vb_name_lock_try(const struct vb_mail_name *name);
void vb_name_lock_release(int lock);

#endif
