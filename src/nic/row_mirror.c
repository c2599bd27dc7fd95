/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishing rows to other processes, and reading theirs. Every row consists of words and begins
 * with its generation.
 */
#include "nic/row_mirror_priv.h"

#include "nic/peer_memory.h"
#include "nic/qp_priv.h"

#define ROW_WORDS_MAX (sizeof(struct vb_qp_row) / sizeof(uint64_t))
#define READ_TRIES 64u /* a peer that changes a row without end is not worth waiting for */

void vb_row_mirror_begin_change(void *mirror, uint32_t *generation)
{
	++*generation;
	if (!mirror)
		return;
	__atomic_store_n((uint32_t *)mirror, *generation, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* The first word holds the generation and is written last. */
VB_NOINLINE void vb_row_mirror_end_change(void *mirror, const void *row, uint32_t size)
{
	uint64_t *to = mirror;
	uint64_t words[ROW_WORDS_MAX];
	uint32_t halves[2];

	if (!mirror)
		return;
	memcpy(words, row, size);
	memcpy(halves, row, sizeof(halves));
	for (uint32_t i = 1; i < size / sizeof(words[0]); i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n((uint32_t *)mirror + 1, halves[1], __ATOMIC_RELAXED);
	__atomic_store_n((uint32_t *)mirror, halves[0], __ATOMIC_RELEASE);
}

/* False if the row does not become stable; its content is then undefined. */
static inline bool read_row(void *row_out, const void *mirror, uint32_t size)
{
	const uint64_t *from = mirror;
	const uint32_t *from_halves = mirror;
	uint64_t *to = row_out; /* aligned to words */
	uint32_t halves[2];

	for (uint32_t tries = 0; tries < READ_TRIES; tries++) {
		halves[0] = __atomic_load_n(from_halves, __ATOMIC_ACQUIRE);
		halves[1] = __atomic_load_n(from_halves + 1, __ATOMIC_RELAXED);
		memcpy(to, halves, sizeof(halves));
#pragma GCC unroll 8
		for (uint32_t i = 1; i < size / sizeof(from[0]); i++) {
			uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);

			memcpy(&to[i], &word, sizeof(word));
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!(halves[0] & 1) && __atomic_load_n(from_halves, __ATOMIC_RELAXED) == halves[0])
			return true;
	}
	return false;
}

/* Whether this is the row of the initiator's peer. */
static bool is_peer(const struct vb_qp_row *row, const struct vb_peer_memory_initiator *initiator)
{
	return row->qpn == initiator->target.v && row->peer_qpn == initiator->initiator.v &&
	       row->service == initiator->service &&
	       vb_gid_equal(&row->peer, initiator->initiator_gid) &&
	       vb_gid_equal(&row->local, initiator->target_gid);
}

static const struct vb_qp_row *row_of(const struct vb_peer_memory_tables *tables,
				      const struct vb_peer_memory_initiator *initiator)
{
	return &tables->qp_rows[initiator->target.v & (tables->qp_row_count - 1)];
}

static bool is_qp_right(const struct vb_qp_row *row, const struct vb_peer_memory_request *request)
{
	if (!is_peer(row, request->initiator) || !row->is_direct)
		return false;
	if (request->right != VB_ACCESS_REMOTE_WRITE && !row->reads_in)
		return false;
	return row->access & request->right;
}

static bool is_key_right(const struct vb_key_row *row, const struct vb_peer_memory_request *request,
			 uint32_t pd)
{
	return row->key == request->rkey && row->kind == VB_KEY_REGION && row->pd == pd &&
	       row->access & request->right;
}

static bool is_within(const struct vb_key_row *row, uint64_t address, uint32_t length)
{
	uint64_t offset = address - row->iova;

	return offset <= row->length && length <= row->length - offset;
}

static bool is_range_right(const struct vb_key_row *row,
			   const struct vb_peer_memory_request *request)
{
	return is_within(row, request->address, request->length);
}

/* The PD that the request may access: the QP's own, or that of the SRQ that the request names. */
static bool find_pd(const struct vb_peer_memory_tables *tables,
		    const struct vb_peer_memory_request *request, uint32_t domain, uint32_t *pd_out)
{
	struct vb_srq_row srq;

	*pd_out = domain;
	if (request->initiator->service != VB_SERVICE_XRC)
		return true;
	if (!read_row(&srq, &tables->srq_rows[request->srqn % VB_SRQ_ROWS], sizeof(srq)))
		return false;
	*pd_out = srq.pd;
	return srq.number && srq.number == request->srqn && srq.domain == domain;
}

/* Checks the rows and fills in the memo, as far as it stays valid. */
VB_COLD static bool ask(const struct vb_peer_memory_tables *tables,
			const struct vb_peer_memory_request *request)
{
	const struct vb_peer_memory_initiator *initiator = request->initiator;
	struct vb_peer_memory_memo *memo = &request->initiator->memo;
	struct vb_qp_row qp;
	uint32_t pd;

	memo->right = 0;
	memo->epoch = tables->epoch;
	memo->qp_row = row_of(tables, initiator);
	memo->key_row = &tables->key_rows[request->rkey >> 8 & (tables->key_row_count - 1)];
	if (!read_row(&qp, memo->qp_row, sizeof(qp)) || !is_qp_right(&qp, request) ||
	    !find_pd(tables, request, qp.domain, &pd))
		return false;
	memo->qp_generation = qp.generation;
	if (!request->length) {
		memo->key = (struct vb_key_row){ 0 };
		return true;
	}
	if (!read_row(&memo->key, memo->key_row, sizeof(memo->key)) ||
	    !is_key_right(&memo->key, request, pd))
		return false;
	if (initiator->service != VB_SERVICE_XRC) /* with XRC an SRQ's row also counts */
		memo->right = request->right;
	return true;
}

static bool is_same(const uint32_t *mirror, uint32_t generation)
{
	return __atomic_load_n(mirror, __ATOMIC_ACQUIRE) == generation;
}

static bool is_remembered(const struct vb_peer_memory_tables *tables,
			  const struct vb_peer_memory_request *request)
{
	const struct vb_peer_memory_memo *memo = &request->initiator->memo;

	return memo->right == request->right && memo->key.key == request->rkey &&
	       memo->epoch == tables->epoch && request->length &&
	       is_same(&memo->qp_row->generation, memo->qp_generation) &&
	       is_same(&memo->key_row->generation, memo->key.generation);
}

const struct vb_key_row *vb_peer_memory_check(const struct vb_peer_memory_tables *tables,
					      const struct vb_peer_memory_request *request)
{
	const struct vb_key_row *row = &request->initiator->memo.key;

	if (!is_remembered(tables, request) && !ask(tables, request))
		return NULL;
	return !request->length || is_range_right(row, request) ? row : NULL;
}

bool vb_peer_memory_open_offer(const struct vb_peer_memory_tables *tables,
			       const struct vb_peer_memory_initiator *initiator,
			       struct vb_peer_memory_offer *offer_out)
{
	struct vb_qp_row qp;

	offer_out->row = row_of(tables, initiator);
	if (!read_row(&qp, offer_out->row, sizeof(qp)) || !is_peer(&qp, initiator) || !qp.is_direct)
		return false;
	offer_out->generation = qp.generation;
	offer_out->pd = qp.domain;
	return true;
}

bool vb_peer_memory_find_offered(const struct vb_peer_memory_tables *tables,
				 const struct vb_peer_memory_offer *offer,
				 const struct vb_reference *reference, struct vb_key_row *row_out)
{
	uint32_t index = reference->key >> 8 & (tables->key_row_count - 1);

	return read_row(row_out, &tables->key_rows[index], sizeof(*row_out)) &&
	       row_out->key == reference->key && row_out->kind == VB_KEY_REGION &&
	       row_out->pd == offer->pd &&
	       is_within(row_out, reference->address, reference->length);
}

bool vb_peer_memory_is_offer_kept(const struct vb_peer_memory_offer *offer)
{
	/* Pairs with the change of the row, which comes before the program learns of the end. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return is_same(&offer->row->generation, offer->generation);
}

bool vb_peer_memory_is_on_wire(const struct vb_peer_memory_tables *tables,
			       const struct vb_peer_memory_initiator *initiator)
{
	struct vb_qp_row row;

	return tables->qp_rows && read_row(&row, row_of(tables, initiator), sizeof(row)) &&
	       is_peer(&row, initiator) && row.is_on_wire;
}

static void publish_all(const struct vb_nic *nic)
{
	for (uint32_t i = 0; i < nic->config.key_row_count; i++) {
		if (!nic->key_owners[i])
			continue;
		vb_key_row_change_begin(nic, &nic->config.key_rows[i]);
		vb_key_row_change_end(nic, &nic->config.key_rows[i]);
	}
	for (uint32_t i = 0; i < nic->config.qp_row_count; i++)
		if (nic->qps[i])
			vb_qp_publish_row(nic->qps[i]);
	for (uint32_t i = 0; i < VB_SRQ_ROWS; i++)
		if (nic->srqs[i])
			vb_srq_publish_row(nic->srqs[i]);
}

void vb_nic_publish(struct vb_nic *nic, const struct vb_row_mirror *mirror)
{
	nic->mirror = mirror ? *mirror : (struct vb_row_mirror){ 0 };
	if (mirror)
		publish_all(nic);
}
