/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the preload shim: the test program starts itself again with the shim in front, on the
 * device of lo alone.
 */
#ifndef VB_TESTS_SHIM_SUPPORT_SHIM_H
#define VB_TESTS_SHIM_SUPPORT_SHIM_H

#include "host/device/device.h"

#define CLASS "/sys/class/infiniband"
#define DEVICE CLASS "/vb_lo"
#define FOLDER "/sys/devices/virtual/verbatim/vb_lo"
#define TARGET FOLDER "/infiniband/vb_lo"
#define NODE_TYPE DEVICE "/node_type"

/* The device as src/host describes it. */
struct vb_device loopback(void);

/* Reads up to the end and closes; the text stays valid until the next call. */
const char *text_of(int fd);
const char *text_at(const char *path);
int open_descriptor_count(void);

#endif
