/* SPDX-License-Identifier: BSD-2-Clause */
/* Building requests with the usual operands, and posting them. */
#include "support_pair.h"

#define MUST(call) EXPECT_EQ(call, VB_OK)

struct vb_sge sge_at(struct pair *p, enum side side, uint32_t offset, uint32_t length)
{
	return (struct vb_sge){ p->node[side].iova + offset, length, key_of(p, side) };
}

/*
 * The SGE stays valid until 64 more requests are built: long enough to change and post the request.
 */
static const struct vb_sge *keep_sge(struct pair *p, struct vb_sge sge)
{
	struct vb_sge *kept = &p->sges[p->sge_next++ % 64];

	*kept = sge;
	return kept;
}

static struct vb_send_request request_of(struct pair *p, enum side side, uint64_t wr_id,
					 enum vb_wr_opcode opcode, uint32_t offset, uint32_t length)
{
	return (struct vb_send_request){
		.wr_id = wr_id,
		.opcode = opcode,
		.flags = VB_SEND_SIGNALED,
		.sges = keep_sge(p, sge_at(p, side, offset, length)),
		.sge_count = 1,
		.remote_address = p->node[!side].iova + TARGET,
		.rkey = key_of(p, !side),
		.remote_srqn = p->node[!side].srq ? vb_srq_number(p->node[!side].srq) : 0,
	};
}

struct vb_send_request send_request(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	return request_of(p, side, wr_id, VB_WR_SEND, LOCAL, length);
}

struct vb_send_request write_request(struct pair *p, enum side side, uint64_t wr_id,
				     uint32_t length)
{
	return request_of(p, side, wr_id, VB_WR_WRITE, LOCAL, length);
}

struct vb_send_request read_request(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	return request_of(p, side, wr_id, VB_WR_READ, SINK, length);
}

struct vb_send_request fetch_add_request(struct pair *p, enum side side, uint64_t wr_id,
					 uint64_t add)
{
	struct vb_send_request request = request_of(p, side, wr_id, VB_WR_FETCH_ADD, SINK, 8);

	request.compare_add = add;
	return request;
}

struct vb_send_request compare_swap_request(struct pair *p, enum side side, uint64_t wr_id,
					    uint64_t compare, uint64_t swap)
{
	struct vb_send_request request = request_of(p, side, wr_id, VB_WR_COMPARE_SWAP, SINK, 8);

	request.compare_add = compare;
	request.swap = swap;
	return request;
}

struct vb_send_request atomic_write_request(struct pair *p, enum side side, uint64_t wr_id)
{
	return request_of(p, side, wr_id, VB_WR_ATOMIC_WRITE, LOCAL, 8);
}

struct vb_send_request datagram_request(struct pair *p, enum side side, uint64_t wr_id,
					uint32_t length)
{
	struct vb_send_request request = request_of(p, side, wr_id, VB_WR_SEND, LOCAL, length);
	struct node *node = &p->node[side];

	request.ah = node->ahs[0] ? node->ahs[0] : make_ah(p, side, &p->node[!side].gid);
	request.remote_qpn = vb_qp_number(p->node[!side].qp).v;
	request.remote_qkey = QKEY;
	return request;
}

struct vb_send_request bind_request(struct pair *p, enum side side, uint64_t wr_id,
				    struct vb_mw *mw, uint32_t offset, uint32_t length,
				    uint32_t access)
{
	struct node *node = &p->node[side];

	return (struct vb_send_request){
		.wr_id = wr_id,
		.opcode = VB_WR_BIND_MW,
		.flags = VB_SEND_SIGNALED,
		.bind = {
			.mw = mw,
			.mr = node->mr,
			.rkey = vb_mw_key(mw) ^ 1,
			.address = node->iova + offset,
			.length = length,
			.access = access,
		},
	};
}

struct vb_send_request invalidate_request(uint64_t wr_id, uint32_t key)
{
	return (struct vb_send_request){
		.wr_id = wr_id, .opcode = VB_WR_LOCAL_INV, .flags = VB_SEND_SIGNALED, .imm = key
	};
}

struct vb_send_request with_wrong_lkey(struct pair *p, struct vb_send_request request)
{
	struct vb_sge sge = *request.sges;

	sge.lkey ^= 0x100;
	request.sges = keep_sge(p, sge);
	return request;
}

/* Posting */

vb_err try_post(struct pair *p, enum side side, struct vb_send_request request)
{
	vb_err err = vb_qp_post_send(p->node[side].qp, &request);

	if (!err)
		vb_qp_publish_and_ring(p->node[side].qp);
	return err;
}

void post(struct pair *p, enum side side, struct vb_send_request request)
{
	MUST(try_post(p, side, request));
}

void post_send(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	post(p, side, send_request(p, side, wr_id, length));
}

void post_send_unsignaled(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	struct vb_send_request request = send_request(p, side, wr_id, length);

	request.flags = 0;
	post(p, side, request);
}

void post_write(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	post(p, side, write_request(p, side, wr_id, length));
}

void post_write_imm(struct pair *p, enum side side, uint64_t wr_id, uint32_t length, uint32_t imm)
{
	struct vb_send_request request = write_request(p, side, wr_id, length);

	request.opcode = VB_WR_WRITE_IMM;
	request.imm = imm;
	post(p, side, request);
}

void post_read(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	post(p, side, read_request(p, side, wr_id, length));
}

void post_fetch_add(struct pair *p, enum side side, uint64_t wr_id, uint64_t add)
{
	post(p, side, fetch_add_request(p, side, wr_id, add));
}

void post_compare_swap(struct pair *p, enum side side, uint64_t wr_id, uint64_t compare,
		       uint64_t swap)
{
	post(p, side, compare_swap_request(p, side, wr_id, compare, swap));
}

void post_datagram(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	post(p, side, datagram_request(p, side, wr_id, length));
}

vb_err try_post_recv_sges(struct pair *p, enum side side, uint64_t wr_id, const struct vb_sge *sges,
			  uint32_t count)
{
	struct vb_recv_request request = { .wr_id = wr_id, .sges = sges, .sge_count = count };
	struct node *node = &p->node[side];

	return node->srq ? vb_srq_post_recv(node->srq, &request)
			 : vb_qp_post_recv(node->qp, &request);
}

vb_err try_post_recv(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	struct vb_sge sge = sge_at(p, side, recv_at(wr_id), length);

	return try_post_recv_sges(p, side, wr_id, &sge, 1);
}

void post_recv(struct pair *p, enum side side, uint64_t wr_id, uint32_t length)
{
	MUST(try_post_recv(p, side, wr_id, length));
}
