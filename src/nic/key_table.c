/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key table and the memory-protection check. A key is 32 random bits of which bits 8 and up
 * choose the row. So the owner of a window may change the low 8 bits (as the verbs API allows), and
 * the row is still found.
 */
#include "nic/memory_priv.h"

#include "nic/nic_priv.h"
#include "nic/row_mirror_priv.h"

#define RANDOM_TRIES 16

struct vb_key_row *vb_key_row_of(const struct vb_nic *nic, uint32_t key)
{
	return &nic->config.key_rows[(key >> 8) & (nic->config.key_row_count - 1)];
}

void vb_key_row_set_owner(struct vb_nic *nic, const struct vb_key_row *row, void *owner)
{
	nic->key_owners[row - nic->config.key_rows] = owner;
}

void *vb_key_row_owner(const struct vb_nic *nic, const struct vb_key_row *row)
{
	return nic->key_owners[row - nic->config.key_rows];
}

static struct vb_key_row *mirror_row(const struct vb_nic *nic, const struct vb_key_row *row)
{
	return nic->mirror.key_rows ? &nic->mirror.key_rows[row - nic->config.key_rows] : NULL;
}

void vb_key_row_change_begin(const struct vb_nic *nic, struct vb_key_row *row)
{
	vb_row_mirror_begin_change(mirror_row(nic, row), &row->generation);
}

void vb_key_row_change_end(const struct vb_nic *nic, struct vb_key_row *row)
{
	row->generation++;
	vb_row_mirror_end_change(mirror_row(nic, row), row, sizeof(*row));
}

void vb_key_row_close(struct vb_key_row *row)
{
	row->access = 0;
	row->pd = 0;
	row->qpn = 0;
	row->iova = 0;
	row->length = 0;
	row->address = 0;
	row->bound_key = 0;
	row->segment = 0;
}

static struct vb_key_row *claim(struct vb_nic *nic, struct vb_key_row *row, uint32_t key,
				uint32_t kind)
{
	vb_key_row_change_begin(nic, row);
	row->key = key;
	row->kind = kind;
	vb_key_row_change_end(nic, row);
	nic->key_count++;
	return row;
}

struct vb_key_row *vb_key_row_claim(struct vb_nic *nic, uint32_t kind)
{
	uint32_t mask = nic->config.key_row_count - 1;
	uint32_t key = 0;

	for (int i = 0; i < RANDOM_TRIES; i++) {
		struct vb_key_row *row;

		key = (uint32_t)(vb_prng_next(&nic->prng) >> 32);
		row = vb_key_row_of(nic, key);
		if (row->kind == VB_KEY_FREE && key && (key ^ row->last_key) >> 8)
			return claim(nic, row, key, kind);
	}
	/* The table is nearly full: take any free row, starting from a random one. */
	for (uint32_t i = 0; i <= mask; i++) {
		struct vb_key_row *row;

		key = (key & ~(mask << 8)) | (((key >> 8) + 1) & mask) << 8;
		row = vb_key_row_of(nic, key);
		if (row->kind != VB_KEY_FREE)
			continue;
		/*
		 * With 2^24 rows the row takes all upper bits, so the low bits must make the
		 * difference.
		 */
		while (!key || key == row->last_key)
			key ^= (uint32_t)(vb_prng_next(&nic->prng) >> 32) & ~(mask << 8);
		return claim(nic, row, key, kind);
	}
	return NULL;
}

void vb_key_row_release(struct vb_nic *nic, struct vb_key_row *row)
{
	vb_key_row_change_begin(nic, row);
	row->last_key = row->key;
	row->key = 0;
	row->kind = VB_KEY_FREE;
	vb_key_row_close(row);
	vb_key_row_change_end(nic, row);
	vb_key_row_set_owner(nic, row, NULL);
	nic->key_count--;
}

VB_INLINE enum vb_verdict vb_memory_resolve(const struct vb_nic *nic,
					    const struct vb_memory_request *request,
					    struct vb_memory *memory)
{
	const struct vb_key_row *row = vb_key_row_of(nic, request->key);
	uint64_t offset = request->address - row->iova;

	if (row->key != request->key || row->pd != request->pd)
		return VB_ACCESS_REFUSED;
	switch ((enum vb_key_kind)row->kind) {
	case VB_KEY_REGION:
		break;
	case VB_KEY_NULL_REGION:
		if (request->qpn)
			return VB_ACCESS_REFUSED; /* an lkey only */
		*memory = (struct vb_memory){ nic->config.zero_page, true };
		return VB_PASS;
	case VB_KEY_WINDOW_1:
		if (!request->qpn)
			return VB_ACCESS_REFUSED; /* the key of a window is no lkey */
		break;
	case VB_KEY_WINDOW_2:
		if (!request->qpn || row->qpn != request->qpn)
			return VB_ACCESS_REFUSED;
		break;
	case VB_KEY_FREE:
		return VB_ACCESS_REFUSED;
	}
	if ((row->access & request->rights) != request->rights)
		return VB_ACCESS_REFUSED;
	/* offset is huge when the address lies before the region: no sum here can wrap. */
	if (offset > row->length || request->length > row->length - offset)
		return VB_ACCESS_REFUSED;
	*memory = (struct vb_memory){ row->address + offset, false };
	return VB_PASS;
}
