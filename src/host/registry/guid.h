/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CA GUID that connection managers see: one for all processes of a user in a network namespace,
 * and different from everyone else's. It is random, so that other users cannot guess it: the first
 * port member makes it, and newcomers get it from the port members that exist. It is kept when an
 * adapter loses its descriptors, and by a forked child.
 */
#ifndef VB_HOST_REGISTRY_GUID_H
#define VB_HOST_REGISTRY_GUID_H

#include "base/err.h"

#include <stdint.h>

/* 0: not known yet. */
uint64_t vb_guid(void);

/* Without effect if the GUID is already known. */
VB_MUST_USE vb_err vb_guid_make(void);
void vb_guid_learn(uint64_t guid);

/*
 * For a process that joins again after a time without adapters: other processes may have made
 * another GUID meanwhile. If there are no others, vb_guid_make() restores the old one.
 */
void vb_guid_forget(void);

#endif
