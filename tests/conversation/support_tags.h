/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A pair whose B has an SRQ for tag matching. A writes the headers of its messages to LOCAL; the
 * data of eager messages follows there. The data of a rendezvous lies at A's TARGET. The buffer of
 * a tag is that of the receive with the same number.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_TAGS_H
#define VB_TESTS_CONVERSATION_SUPPORT_TAGS_H

#include "support_pair.h"

#include "wire/tag_header.h"

enum { TAGS = 4, TAG_DEPTH = 8, CONTEXT = 0xc0de };

struct setup tag_setup(uint32_t mtu);
struct pair *pair_connect_tags(uint32_t mtu);

/* Operations; those that take a wr_id are signaled, and wr_id is also the message's. */
struct vb_tag_request add_request(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length);
vb_err try_tag(struct pair *p, struct vb_tag_request request, uint32_t *handle_out);
/* Adds a tag and expects its completion. Returns its handle. */
uint32_t add_tag(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length);
void delete_tag(struct pair *p, uint64_t wr_id, uint32_t handle);
void sync_tags(struct pair *p, uint64_t wr_id, uint32_t count);

/* Headers in A's memory. */
void write_tmh(struct pair *p, enum vb_tmh_opcode opcode, uint64_t tag);
void write_rvh(struct pair *p, uint32_t rkey, uint32_t length);

/* A sends an eager message with that much data after its header. */
void post_eager(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length);
/* A asks for a rendezvous of that much data. */
void post_rendezvous(struct pair *p, uint64_t wr_id, uint64_t tag, uint32_t length);

#endif
