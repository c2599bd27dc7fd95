/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_direct.h"

#include "nic/peer_memory.h"

enum { ROWS = 1 << 15, RECORD = 64, LONG = 0x40000 };

struct vb_peer_memory direct_peer_memory;
_Atomic uint32_t direct_busy;

static struct vb_key_row key_rows[2][ROWS]; /* what B publishes, at first and later */
static struct vb_qp_row qp_rows[2][ROWS];
static struct vb_srq_row srq_rows[2][VB_SRQ_ROWS];
static struct vb_ring_memory shm_link_memory;
static struct vb_ring_writer shm_link = { .memory = &shm_link_memory };

static void show(struct pair *p, uint32_t time)
{
	static uint32_t epoch;
	struct vb_row_mirror mirror = { key_rows[time], qp_rows[time], srq_rows[time] };

	vb_nic_publish(node_of(p, B)->nic, &mirror);
	direct_peer_memory.tables = (struct vb_peer_memory_tables){
		mirror.key_rows, mirror.qp_rows, mirror.srq_rows, ROWS, ROWS, ++epoch,
	};
}

void publish_again(struct pair *p)
{
	show(p, 1);
}

struct pair *connect_directly_as(struct setup setup)
{
	struct pair *p;

	setup.icrc_mode = VB_ICRC_OFF; /* packets on a shared-memory link have none */
	p = pair_connect(&setup);
	direct_peer_memory = (struct vb_peer_memory){
		.method = VB_PEER_MEMORY_OWN,
		.shm_link = &shm_link,
		.busy = &direct_busy,
	};
	show(p, 0);
	vb_qp_set_link(node_of(p, A)->qp, SHM_LINK, &direct_peer_memory);
	vb_nic_set_link_room(node_of(p, A)->nic, SHM_LINK, ROOM);
	vb_qp_expect_link(node_of(p, B)->qp, SHM_LINK);
	return p;
}

struct pair *connect_directly(enum vb_qp_type type)
{
	return connect_directly_as(setup_of(type, 1024));
}

struct pair *connect_directly_to_rtr(enum vb_qp_type type)
{
	struct setup setup = setup_of(type, 1024);

	setup.state[B] = VB_STATE_RTR;
	return connect_directly_as(setup);
}

void write_shm_link(void)
{
	shm_link.produced += RECORD;
}

void read_shm_link(void)
{
	atomic_store(&shm_link_memory.consumed, shm_link.produced);
}

void renew_shm_link(void)
{
	direct_peer_memory.shm_link_before += shm_link.produced;
	shm_link.produced = 0;
	atomic_store(&shm_link_memory.consumed, 0);
}

struct vb_send_request write_to_window(struct pair *p, uint64_t wr_id, uint32_t length)
{
	struct vb_mw *mw = make_mw(p, B, VB_MW_TYPE_2);
	struct vb_send_request request = write_request(p, A, wr_id, length);

	post(p, B, bind_request(p, B, 1, mw, TARGET, 4096, VB_ACCESS_REMOTE_WRITE));
	expect_silence(p, B);
	request.rkey = vb_mw_key(mw);
	return request;
}

struct vb_send_request write_to_region(struct pair *p, uint64_t wr_id, uint32_t length,
				       struct vb_mr **mr_out)
{
	struct vb_mr_init init = mr_init_at(p, B, TARGET, LONG, RIGHTS_ALL);
	struct vb_send_request request = write_request(p, A, wr_id, length);

	*mr_out = make_mr(p, B, &init);
	request.rkey = vb_mr_key(*mr_out);
	return request;
}

struct vb_send_request write_to_dropped_region(struct pair *p)
{
	struct vb_mr *mr;
	struct vb_send_request request = write_to_region(p, 1, 10, &mr);

	post(p, A, request);
	expect_executed(p, "wr=1 SUCCESS WRITE");
	set_bytes(p, B, TARGET, 0x55, 10);
	EXPECT_EQ(drop_mr(p, B, mr), VB_OK);
	return request;
}

void begin_long_write(struct pair *p, struct vb_send_request request)
{
	struct vb_slot slot;

	post(p, A, request);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, &slot, 1), 0);
	expect_counter(p, A, DIRECT_PARTS, 1);
	expect_no_completion(p, A);
}
