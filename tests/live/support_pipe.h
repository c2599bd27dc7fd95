/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Byte pipes inside one process, as a carrier for tests: one pipe for each link, so for each QP. A
 * pipe takes and delivers any number of bytes, by dice, without regard to where frames begin. It
 * may be cut at any byte: what is in it is lost, and it begins anew.
 */
#ifndef VB_TESTS_LIVE_SUPPORT_PIPE_H
#define VB_TESTS_LIVE_SUPPORT_PIPE_H

#include "host/port/carrier.h"

struct vb_nic;
struct pipes;

/* Both ends of pipes that do not exist yet. The caller ends them with pipes_close(). */
struct pipes *pipes_create(uint64_t seed, struct vb_nic *const nics[2],
			   struct vb_carrier *ends_out[2]);
void pipes_destroy(struct pipes *pipes);

/* Opens and closes the pipe with that number, from 1 on. */
void pipes_open(struct pipes *pipes, uint32_t link);
void pipes_close(struct pipes *pipes, uint32_t link);

/* Frames of which only a part was in a pipe when it was closed. */
uint64_t pipes_torn(const struct pipes *pipes);
/* Frames that went through in more than one piece. */
uint64_t pipes_pieced(const struct pipes *pipes);

#endif
