/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CA GUID of a host, for connections: all processes of one user in one network namespace have
 * the same GUID, and no others have it. It is random, so that only a process that was given it can
 * know it: the first port member makes it, and newcomers get it from the port members that exist.
 * It is kept when an adapter loses its descriptors, and by a forked child.
 */
#ifndef VB_HOST_GUID_H
#define VB_HOST_GUID_H

#include "base/err.h"

#include <stdint.h>

/* 0: not known yet. */
uint64_t vb_guid(void);

/* Only the first of these calls counts. */
VB_MUST_USE vb_err vb_guid_make(void);
void vb_guid_learn(uint64_t guid);

/*
 * The process has no adapter any more: other processes may have made a GUID since. If there are
 * none, this process makes the same GUID again.
 */
void vb_guid_forget(void);

#endif
