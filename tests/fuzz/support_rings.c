/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The objects of fuzz_rings, how they are made and destroyed, and the model of its requests.
 */
#include "support_rings.h"

#include <string.h>

static _Alignas(4096) uint8_t area[AREA_LENGTH];
static _Alignas(4096) uint8_t device_memory[DEVICE_LENGTH];
static uint8_t zero_page[4096];

struct model model;

void model_finish_request(struct request *request)
{
	if (request->state == POSTED && request->srq)
		request->srq->open_count--;
	request->state = DONE;
}

void model_forget_from(struct queue *queue, uint32_t from)
{
	for (uint32_t i = from; i != queue->staged; i++)
		if (model.requests[queue->ids[i]].state != DONE)
			model_finish_request(&model.requests[queue->ids[i]]);
	queue->staged = from;
}

void model_forget_queues(struct qp *qp)
{
	model_forget_from(&qp->send, 0);
	model_forget_from(&qp->recv, 0);
	qp->send.posted = qp->send.done = 0;
	qp->recv.posted = qp->recv.done = 0;
}

static struct qp *qp_of(uint32_t number)
{
	for (uint32_t i = 0; i < QP_MAX; i++)
		if (model.qps[i].qp && vb_qp_number(model.qps[i].qp).v == number)
			return &model.qps[i];
	return NULL;
}

static void check_send(struct queue *queue, const struct request *request)
{
	REQUIRE(request->sequence >= queue->done && request->sequence < queue->posted);
	for (; queue->done < request->sequence; queue->done++) {
		struct request *passed = &model.requests[queue->ids[queue->done]];

		REQUIRE(!passed->is_signaled);
		model_finish_request(passed);
	}
	queue->done++;
}

static void check_completion(const struct cq *cq, const struct vb_completion *completion)
{
	struct qp *qp = qp_of(completion->qpn);
	struct request *request;

	REQUIRE(completion->wr_id < model.request_count);
	request = &model.requests[completion->wr_id];
	REQUIRE(request->state == POSTED && request->is_receive == completion->is_receive);
	if (request->srq) {
		/* The QP of an XRC completion may be gone while its SRQ still exists. */
		REQUIRE(request->srq->cq ? cq == request->srq->cq : qp && cq == qp->recv_cq);
	} else if (request->is_receive) {
		REQUIRE(qp == request->qp && cq == qp->recv_cq);
		REQUIRE(request->sequence == qp->recv.done);
		qp->recv.done++;
	} else {
		REQUIRE(qp == request->qp && cq == qp->send_cq);
		check_send(&qp->send, request);
	}
	model_finish_request(request);
}

void model_poll_cq(struct cq *cq, uint32_t limit)
{
	struct vb_completion completion;

	while (limit-- && vb_cq_poll(cq->cq, &completion, 1))
		check_completion(cq, &completion);
}

void model_poll_all(void)
{
	for (uint32_t i = 0; i < CQ_MAX; i++)
		if (model.cqs[i].cq)
			model_poll_cq(&model.cqs[i], UINT32_MAX);
}

void model_take_events(void)
{
	struct vb_event event;

	while (vb_nic_take_events(model.nic, &event, 1)) {
		struct cq *cq = event.owner_context;

		REQUIRE(vb_event_describe(event.kind)[0] != '?');
		if (event.kind != VB_EVENT_COMPLETION)
			continue;
		REQUIRE(event.cq == cq->cq);
		REQUIRE(cq->event_count++ < cq->arm_count); /* at most one for each arming */
	}
}

static void create_pd(struct pd *pd)
{
	MUST(vb_pd_create(model.nic, &pd->pd));
}

static void create_xrcd(struct xrcd *xrcd)
{
	MUST(vb_xrcd_create(model.nic, &xrcd->xrcd));
}

static void create_cq(struct input *input, struct cq *cq)
{
	uint32_t depth = input_8(input) % (CQ_DEPTH_MAX + 2);
	vb_err err = vb_cq_create(model.nic, depth, cq, &cq->cq);

	REQUIRE(err == (depth && depth <= CQ_DEPTH_MAX ? VB_OK : VB_EINVAL));
}

static void create_srq(struct input *input, struct srq *srq)
{
	struct pd *pd = PICK(input, model.pds, pd);
	struct xrcd *xrcd = PICK(input, model.xrcds, xrcd);
	struct cq *cq = PICK(input, model.cqs, cq);
	uint32_t style = input_8(input);
	bool is_xrc = style & 1 && xrcd && cq;
	struct vb_srq_init init = {
		.depth = style >> 1 & 0xf,
		.sge_max = style >> 5 & 3,
		.limit = style >> 7,
		.xrcd = is_xrc ? xrcd->xrcd : NULL,
		.cq = is_xrc ? cq->cq : NULL,
	};
	vb_err err;

	if (!pd)
		return;
	err = vb_srq_create(pd->pd, &init, &srq->srq);
	REQUIRE(err == (init.depth && init.depth <= DEPTH_MAX ? VB_OK : VB_EINVAL));
	if (err)
		return;
	srq->pd = pd;
	pd->user_count++;
	if (is_xrc) {
		srq->xrcd = xrcd;
		srq->cq = cq;
		xrcd->user_count++;
		cq->user_count++;
	}
}

struct vb_mr_init model_draw_region(struct input *input)
{
	struct vb_mr_init init = { .iova = 0x1000 };

	init.address = (uintptr_t)area + input_8(input);
	init.length = input_16(input) % (AREA_LENGTH - UINT8_MAX);
	init.access = input_8(input);
	return init;
}

static void create_mr(struct input *input, struct mr *mr)
{
	struct pd *pd = PICK(input, model.pds, pd);
	struct dm *dm = PICK(input, model.dms, dm);
	uint32_t style = input_8(input);
	struct vb_mr_init init = model_draw_region(input);
	vb_err err;

	if (!pd)
		return;
	if (style == 1) {
		err = vb_mr_create_null(pd->pd, &mr->mr);
	} else if (style == 2 && dm) {
		init.address = style & 7;
		init.access |= VB_ACCESS_ZERO_BASED;
		err = vb_mr_create_on_dm(pd->pd, dm->dm, &init, &mr->mr);
		mr->dm = err ? NULL : dm;
	} else {
		err = vb_mr_create(pd->pd, &init, &mr->mr);
	}
	REQUIRE(err == VB_OK || err == VB_EINVAL || err == VB_ENOSPC);
	if (err)
		return;
	mr->pd = pd;
	pd->user_count++;
	if (mr->dm)
		mr->dm->user_count++;
}

static void create_mw(struct input *input, struct mw *mw)
{
	struct pd *pd = PICK(input, model.pds, pd);
	vb_err err;

	if (!pd)
		return;
	err = vb_mw_create(pd->pd, input_bool(input) ? VB_MW_TYPE_1 : VB_MW_TYPE_2, &mw->mw);
	REQUIRE(err == VB_OK || err == VB_ENOSPC);
	if (err)
		return;
	mw->pd = pd;
	pd->user_count++;
}

static void create_ah(struct input *input, struct ah *ah)
{
	struct pd *pd = PICK(input, model.pds, pd);
	struct vb_address address = { .destination = input_bool(input) ? model.gid : GROUP };
	vb_err err;

	address.source_index = input_8(input) == 0xff;
	if (!pd)
		return;
	err = vb_ah_create(pd->pd, &address, &ah->ah);
	REQUIRE(err == (address.source_index ? VB_EINVAL : VB_OK));
	if (err)
		return;
	ah->pd = pd;
	pd->user_count++;
}

static void create_dm(struct input *input, struct dm *dm)
{
	dm->length = input_8(input);
	if (vb_dm_create(model.nic, dm->length, input_below(input, 8), &dm->dm))
		dm->dm = NULL;
}

static void count_users(const struct qp *qp, uint32_t change)
{
	qp->pd->user_count += change;
	if (qp->send_cq)
		qp->send_cq->user_count += change;
	if (qp->recv_cq)
		qp->recv_cq->user_count += change;
	if (qp->srq)
		qp->srq->user_count += change;
	if (qp->xrcd)
		qp->xrcd->user_count += change;
}

static void create_qp(struct input *input, struct qp *qp)
{
	static const enum vb_qp_type types[] = {
		VB_QP_RC, VB_QP_UC, VB_QP_UD, VB_QP_XRC_SEND, VB_QP_XRC_RECV, (enum vb_qp_type)5
	};
	struct pd *pd = PICK(input, model.pds, pd);
	struct cq *send_cq = PICK(input, model.cqs, cq);
	struct cq *recv_cq = PICK(input, model.cqs, cq);
	struct srq *srq = PICK(input, model.srqs, srq);
	struct xrcd *xrcd = PICK(input, model.xrcds, xrcd);
	enum vb_qp_type type = types[input_below(input, COUNT_OF(types))];
	uint32_t style = input_8(input);
	bool has_srq = style & 1 && srq && !srq->xrcd;
	bool has_recv = type == VB_QP_RC || type == VB_QP_UC || type == VB_QP_UD;
	struct vb_qp_init init = {
		.type = type,
		.send_cq = send_cq ? send_cq->cq : NULL,
		.recv_cq = recv_cq ? recv_cq->cq : NULL,
		.srq = has_srq ? srq->srq : NULL,
		.xrcd = type == VB_QP_XRC_RECV && xrcd ? xrcd->xrcd : NULL,
		.send_depth = style >> 1 & 0xf,
		.recv_depth = style >> 4,
		.send_sge_max = 2,
		.recv_sge_max = 2,
		.inline_max = 16,
		.signal_all = style & 2,
		.qpn = { input_8(input) == 0xff },
	};

	if (!pd || vb_qp_create(pd->pd, &init, &qp->qp))
		return;
	qp->type = type;
	qp->pd = pd;
	qp->send_cq = type == VB_QP_XRC_RECV ? NULL : send_cq;
	qp->recv_cq = has_recv ? recv_cq : NULL;
	qp->srq = has_srq ? srq : NULL;
	qp->xrcd = type == VB_QP_XRC_RECV ? xrcd : NULL;
	qp->send.depth = type == VB_QP_XRC_RECV ? 0 : init.send_depth;
	qp->recv.depth = has_recv && !has_srq ? init.recv_depth : 0;
	count_users(qp, 1);
}

static void destroy_pd(struct pd *pd)
{
	vb_err err = vb_pd_destroy(pd->pd);

	REQUIRE(err == (pd->user_count ? VB_EBUSY : VB_OK));
	if (!err)
		*pd = (struct pd){ 0 };
}

static void destroy_xrcd(struct xrcd *xrcd)
{
	vb_err err = vb_xrcd_destroy(xrcd->xrcd);

	REQUIRE(err == (xrcd->user_count ? VB_EBUSY : VB_OK));
	if (!err)
		*xrcd = (struct xrcd){ 0 };
}

static void destroy_cq(struct cq *cq)
{
	vb_err err;

	/* completions that SRQs left there */
	if (!cq->user_count)
		model_poll_cq(cq, UINT32_MAX);
	err = vb_cq_destroy(cq->cq);
	REQUIRE(err == (cq->user_count ? VB_EBUSY : VB_OK));
	if (!err)
		*cq = (struct cq){ 0 };
}

static void destroy_srq(struct srq *srq)
{
	vb_err err = vb_srq_destroy(srq->srq);

	REQUIRE(err == (srq->user_count ? VB_EBUSY : VB_OK));
	if (err)
		return;
	model_poll_all(); /* its completions remain */
	for (uint32_t i = 0; i < model.request_count; i++)
		if (model.requests[i].srq == srq && model.requests[i].state != DONE)
			model_finish_request(&model.requests[i]);
	srq->pd->user_count--;
	if (srq->xrcd) {
		srq->xrcd->user_count--;
		srq->cq->user_count--;
	}
	*srq = (struct srq){ 0 };
}

static void destroy_mr(struct mr *mr)
{
	vb_err err = vb_mr_destroy(mr->mr);

	REQUIRE(err == VB_OK || err == VB_EBUSY); /* the engine binds windows */
	if (err)
		return;
	mr->pd->user_count--;
	if (mr->dm)
		mr->dm->user_count--;
	*mr = (struct mr){ 0 };
}

static void destroy_mw(struct mw *mw)
{
	MUST(vb_mw_destroy(mw->mw));
	mw->pd->user_count--;
	*mw = (struct mw){ 0 };
}

static void destroy_ah(struct ah *ah)
{
	MUST(vb_ah_destroy(ah->ah));
	ah->pd->user_count--;
	*ah = (struct ah){ 0 };
}

static void destroy_dm(struct dm *dm)
{
	vb_err err = vb_dm_destroy(dm->dm);

	REQUIRE(err == (dm->user_count ? VB_EBUSY : VB_OK));
	if (!err)
		*dm = (struct dm){ 0 };
}

static void destroy_qp(struct qp *qp)
{
	vb_err err = vb_qp_destroy(qp->qp);

	REQUIRE(err == (qp->is_in_group ? VB_EBUSY : VB_OK));
	if (err)
		return;
	model_forget_queues(qp);
	count_users(qp, UINT32_MAX);
	*qp = (struct qp){ 0 };
}

#define TOGGLE(object, member, create, destroy) \
	do {                                    \
		if ((object)->member)           \
			destroy;                \
		else                            \
			create;                 \
	} while (0)

void model_toggle(struct input *input)
{
	uint32_t choice = input_8(input);
	uint32_t which = choice >> 4;

	switch (choice & 0xf) {
	case 0:
		TOGGLE(&model.pds[which % PD_MAX], pd, create_pd(&model.pds[which % PD_MAX]),
		       destroy_pd(&model.pds[which % PD_MAX]));
		break;
	case 1:
		TOGGLE(&model.xrcds[which % XRCD_MAX], xrcd,
		       create_xrcd(&model.xrcds[which % XRCD_MAX]),
		       destroy_xrcd(&model.xrcds[which % XRCD_MAX]));
		break;
	case 2:
	case 3:
		TOGGLE(&model.cqs[which % CQ_MAX], cq, create_cq(input, &model.cqs[which % CQ_MAX]),
		       destroy_cq(&model.cqs[which % CQ_MAX]));
		break;
	case 4:
		TOGGLE(&model.srqs[which % SRQ_MAX], srq,
		       create_srq(input, &model.srqs[which % SRQ_MAX]),
		       destroy_srq(&model.srqs[which % SRQ_MAX]));
		break;
	case 5:
	case 6:
		TOGGLE(&model.mrs[which % MR_MAX], mr, create_mr(input, &model.mrs[which % MR_MAX]),
		       destroy_mr(&model.mrs[which % MR_MAX]));
		break;
	case 7:
		TOGGLE(&model.mws[which % MW_MAX], mw, create_mw(input, &model.mws[which % MW_MAX]),
		       destroy_mw(&model.mws[which % MW_MAX]));
		break;
	case 8:
		TOGGLE(&model.ahs[which % AH_MAX], ah, create_ah(input, &model.ahs[which % AH_MAX]),
		       destroy_ah(&model.ahs[which % AH_MAX]));
		break;
	case 9:
		TOGGLE(&model.dms[which % DM_MAX], dm, create_dm(input, &model.dms[which % DM_MAX]),
		       destroy_dm(&model.dms[which % DM_MAX]));
		break;
	default:
		TOGGLE(&model.qps[which % QP_MAX], qp, create_qp(input, &model.qps[which % QP_MAX]),
		       destroy_qp(&model.qps[which % QP_MAX]));
		break;
	}
}

void model_destroy(void)
{
	struct vb_gid group = GROUP;

	for (uint32_t i = 0; i < QP_MAX; i++) {
		if (model.qps[i].is_in_group)
			MUST(vb_qp_detach(model.qps[i].qp, &group));
		model.qps[i].is_in_group = false;
		if (model.qps[i].qp)
			destroy_qp(&model.qps[i]);
	}
	for (uint32_t i = 0; i < MW_MAX; i++)
		if (model.mws[i].mw)
			destroy_mw(&model.mws[i]);
	for (uint32_t i = 0; i < MR_MAX; i++)
		if (model.mrs[i].mr)
			destroy_mr(&model.mrs[i]);
	for (uint32_t i = 0; i < AH_MAX; i++)
		if (model.ahs[i].ah)
			destroy_ah(&model.ahs[i]);
	for (uint32_t i = 0; i < DM_MAX; i++)
		if (model.dms[i].dm)
			destroy_dm(&model.dms[i]);
	for (uint32_t i = 0; i < SRQ_MAX; i++)
		if (model.srqs[i].srq)
			destroy_srq(&model.srqs[i]);
	for (uint32_t i = 0; i < CQ_MAX; i++)
		if (model.cqs[i].cq)
			destroy_cq(&model.cqs[i]);
	for (uint32_t i = 0; i < XRCD_MAX; i++)
		if (model.xrcds[i].xrcd)
			destroy_xrcd(&model.xrcds[i]);
	for (uint32_t i = 0; i < PD_MAX; i++)
		if (model.pds[i].pd)
			destroy_pd(&model.pds[i]);
	MUST(vb_nic_destroy(model.nic));
}

void model_create(void)
{
	static struct vb_key_row key_rows[KEY_ROWS];
	static struct vb_qp_row qp_rows[QP_ROWS];
	struct vb_nic_config config = {
		.key_rows = memset(key_rows, 0, sizeof(key_rows)),
		.key_row_count = KEY_ROWS,
		.qp_rows = memset(qp_rows, 0, sizeof(qp_rows)),
		.qp_row_count = QP_ROWS,
		.seed = 5,
		.zero_page = (uintptr_t)zero_page,
		.device_memory = (uintptr_t)device_memory,
		.device_memory_length = DEVICE_LENGTH,
		.qp_depth_max = DEPTH_MAX,
		.cq_depth_max = CQ_DEPTH_MAX,
		.srq_depth_max = DEPTH_MAX,
		.reads_max = 4,
	};

	memset(&model, 0, sizeof(model));
	model.area = area;
	model.gid = vb_gid_from_ipv4(0x0a000001);
	MUST(vb_nic_create(&config, &model.nic));
	MUST(vb_nic_set_gid(model.nic, 0, &model.gid));
	/* Most inputs want these. */
	create_pd(&model.pds[0]);
	create_xrcd(&model.xrcds[0]);
	REQUIRE(vb_nic_destroy(model.nic) == VB_EBUSY);
}
