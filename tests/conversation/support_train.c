/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_train.h"

enum { ROWS = 1 << 15 };

struct vb_peer_memory train_peer_memory;
_Atomic uint32_t train_busy;

static struct vb_key_row key_rows[ROWS]; /* what A publishes */
static struct vb_qp_row qp_rows[ROWS];
static struct vb_srq_row srq_rows[VB_SRQ_ROWS];

struct setup train_setup(enum vb_qp_type type)
{
	struct setup setup = setup_of(type, 1024);

	setup.train_length_min = TRAIN_MIN;
	setup.train_length_max = TRAIN_MAX;
	return setup;
}

struct pair *connect_for_trains_as(struct setup setup)
{
	struct pair *p = connect_directly_as(setup);
	struct vb_row_mirror mirror = { key_rows, qp_rows, srq_rows };

	vb_nic_publish(node_of(p, A)->nic, &mirror);
	train_peer_memory = (struct vb_peer_memory){
		.method = VB_PEER_MEMORY_OWN,
		.busy = &train_busy,
		.tables = { key_rows, qp_rows, srq_rows, ROWS, ROWS, 1 },
	};
	vb_qp_set_link(node_of(p, B)->qp, SHM_LINK, &train_peer_memory);
	vb_nic_set_link_room(node_of(p, B)->nic, SHM_LINK, ROOM);
	return p;
}

struct pair *connect_for_trains(enum vb_qp_type type)
{
	return connect_for_trains_as(train_setup(type));
}

void forbid_fetching(bool is_forbidden)
{
	train_peer_memory.method = is_forbidden ? VB_PEER_MEMORY_MAPPED : VB_PEER_MEMORY_OWN;
}

void post_long_recv(struct pair *p, uint64_t wr_id, uint32_t length)
{
	EXPECT(length <= MEMORY_LENGTH - recv_at(wr_id));
	post_recv(p, B, wr_id, length);
}
