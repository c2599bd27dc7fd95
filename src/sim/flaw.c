/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests that must be refused: their flaws, and the status that each must end with. */
#include "sim/dice.h"
#include "sim/draft_priv.h"

/* Expects the other side to refuse the request, and nothing to change there. */
static void expect_remote_refusal(struct vb_draft_build *b, uint32_t statuses)
{
	b->model.opens_remote = false;
	b->model.owns_remote = false;
	b->model.series = VB_MODEL_NONE;
	b->model.deliveries_max = 0;
	if (!vb_draft_is_reliable(b->channel))
		return; /* the sender never learns it */
	b->model.allowed = statuses;
	b->model.opens_local = false;
	vb_channel_expect(b->world, b->end, VB_CAUSE_OWN);
	vb_channel_expect(b->world, b->peer, VB_CAUSE_RESPONDER);
}

static void expect_local_failure(struct vb_draft_build *b, uint32_t statuses)
{
	b->model.allowed = statuses;
	if (b->channel->options.type == VB_QP_UD || b->channel->options.type == VB_QP_UC)
		b->model.deliveries_max = 0;
	vb_channel_expect(b->world, b->end, VB_CAUSE_OWN);
}

/* Spoils one SGE that is not empty; its memory must not change. */
static void spoil_sge(struct vb_draft_build *b, enum vb_flaw flaw)
{
	const struct vb_node_region *region = &b->node->regions[b->draft->local_region];
	const struct vb_node_region *other = &b->node->regions[VB_REGION_OTHER_PD];
	uint32_t i = 0;

	while (i + 1 < b->model.piece_count && !b->sges[i].length)
		i++;
	if (flaw == VB_FLAW_WRONG_LKEY) {
		b->sges[i].lkey ^= 0x00a5a500;
	} else if (flaw == VB_FLAW_LOCAL_OTHER_PD) {
		b->sges[i].lkey = other->key;
		b->sges[i].address = other->iova;
	} else {
		b->sges[i].address = region->iova + region->length - b->sges[i].length + 1;
	}
	if (b->model.opens_local && flaw != VB_FLAW_LOCAL_RIGHT)
		b->model.pieces[i] =
			(struct vb_model_piece){ b->model.pieces[i].address, 0, false };
}

void vb_draft_spoil(struct vb_draft_build *b)
{
	const uint32_t refused = VB_STATUS_BIT(VB_STATUS_REM_ACCESS_ERR);
	const uint32_t invalid = VB_STATUS_BIT(VB_STATUS_REM_INV_REQ_ERR);
	const uint32_t protection = VB_STATUS_BIT(VB_STATUS_LOC_PROT_ERR);
	const struct vb_node_region *region = &b->far->regions[b->draft->remote_region];

	switch (b->draft->flaw) {
	case VB_FLAW_WRONG_RKEY:
		b->request.rkey ^= vb_dice_chance(&b->world->prng, 1, 2) ? 0x55u : 0x00a5a500u;
		expect_remote_refusal(b, refused);
		break;
	case VB_FLAW_FOREIGN_WINDOW:
		b->request.rkey = b->draft->foreign_key;
		b->request.remote_address = 0;
		expect_remote_refusal(b, refused);
		break;
	case VB_FLAW_OTHER_PD:
	case VB_FLAW_REGION_RIGHT:
	case VB_FLAW_DEAD_WINDOW:
		expect_remote_refusal(b, refused);
		break;
	case VB_FLAW_REMOTE_RANGE:
		b->request.remote_address = vb_draft_is_word(b->draft->opcode)
						    ? region->iova + region->length
						    : region->iova + region->length -
							      b->draft->length + 1;
		expect_remote_refusal(b, refused);
		break;
	case VB_FLAW_REMOTE_OVERFLOW: /* begins before the region, whose address may be 0 */
		b->request.remote_address = region->iova - (vb_draft_is_word(b->draft->opcode)
								    ? 8
								    : b->draft->length / 2 + 1);
		expect_remote_refusal(b, refused);
		break;
	case VB_FLAW_QP_RIGHT:
		expect_remote_refusal(b, refused | invalid);
		break;
	case VB_FLAW_MISALIGNED:
		b->request.remote_address += 4;
		expect_remote_refusal(b, refused | invalid);
		break;
	case VB_FLAW_WRONG_INVALIDATE:
		b->request.imm ^= 0x00777700;
		b->model.imm = b->request.imm;
		expect_remote_refusal(b, refused | invalid | VB_STATUS_BIT(VB_STATUS_REM_OP_ERR));
		break;
	case VB_FLAW_WRONG_LKEY:
	case VB_FLAW_LOCAL_OTHER_PD:
	case VB_FLAW_LOCAL_RANGE:
		spoil_sge(b, b->draft->flaw);
		expect_local_failure(b, protection);
		break;
	case VB_FLAW_LOCAL_RIGHT:
		b->model.opens_local = false;
		expect_local_failure(b, protection | VB_STATUS_BIT(VB_STATUS_LOC_ACCESS_ERR));
		break;
	case VB_FLAW_WRONG_LOCAL_INVALIDATE:
		b->request.imm ^= 0x00777700;
		expect_local_failure(b, protection | VB_STATUS_BIT(VB_STATUS_LOC_QP_OP_ERR) |
						VB_STATUS_BIT(VB_STATUS_MW_BIND_ERR));
		break;
	case VB_FLAW_WRONG_BIND:
		expect_local_failure(b, VB_STATUS_BIT(VB_STATUS_MW_BIND_ERR));
		break;
	case VB_FLAW_WRONG_QKEY:
		b->request.remote_qkey = VB_CHANNEL_QKEY + 1;
		b->model.deliveries_max = 0;
		break;
	default:
		break;
	}
}
