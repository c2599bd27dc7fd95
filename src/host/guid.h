/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CA GUID of a host, as far as connections go: that of all processes of one user in one network namespace, and of no others.
 * It is random, so that nobody can say it who was not told: the first member makes it, and newcomers get it from the members that
 * there are. It is kept when an adapter loses its descriptors, and by a forked child.
 */
#ifndef VB_HOST_GUID_H
#define VB_HOST_GUID_H

#include "base/err.h"

#include <stdint.h>

/* 0: not known yet. */
uint64_t vb_guid(void);

/* Only the first of these counts. */
VB_MUST_USE vb_err vb_guid_make(void);
void vb_guid_learn(uint64_t guid);

/* The process has no adapter: others may have made one since it had. If there are none, it makes the same again. */
void vb_guid_forget(void);

#endif
