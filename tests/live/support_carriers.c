/* SPDX-License-Identifier: BSD-2-Clause */
/* Two engines with ports, and the traffic between them. */
#include "support_carriers.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum {
	DEPTH = 2 * CARRIER_REQUESTS,
	AREA = CARRIER_REQUESTS * CARRIER_LENGTH_MAX,
	TURNS_MAX = 3000000,
	SENDS = 42, /* of the requests: rows of 6 SENDs, 6 WRITEs and 6 READs in turn */
	RIGHTS = VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ,
};

static void create_engine(struct carrier_end *end)
{
	struct vb_mr_init region = { .length = 2 * (uint64_t)AREA, .access = RIGHTS };

	MUST(vb_nic_create(&end->config, &end->nic));
	MUST(vb_nic_set_gid(end->nic, 0, &end->gid));
	MUST(vb_nic_set_pkey(end->nic, 0, VB_PKEY_DEFAULT));
	MUST(vb_pd_create(end->nic, &end->pd));
	MUST(vb_cq_create(end->nic, 2 * DEPTH, NULL, &end->cq));
	end->source = calloc(2, AREA);
	EXPECT(end->source);
	end->target = end->source + AREA;
	region.iova = region.address = (uintptr_t)end->source;
	MUST(vb_mr_create(end->pd, &region, &end->mr));
	end->parts.nic = end->nic;
}

static void create_qps(struct carrier_end *end)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.send_depth = DEPTH,
		.recv_depth = DEPTH,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};

	for (uint32_t i = 0; i < CARRIER_QPS; i++)
		MUST(vb_qp_create(end->pd, &init, &end->qps[i]));
}

static void modify(struct vb_qp *qp, struct vb_qp_attr *attr, enum vb_qp_state state, uint32_t mask)
{
	attr->state = state;
	MUST(vb_qp_modify(qp, attr, VB_ATTR_STATE | mask));
}

static void connect(struct carrier_end *end, const struct carrier_end *other)
{
	for (uint32_t i = 0; i < CARRIER_QPS; i++) {
		struct vb_qp_attr attr = {
			.port = 1,
			.access = RIGHTS,
			.address = { .destination = other->gid },
			.path_mtu = 1024,
			.destination = vb_qp_number(other->qps[i]),
			.reads_in = 4,
			.reads_out = 4,
			.min_rnr_timer = 12,
			.timeout = 10,
			.retry_count = 7,
			.rnr_retry = 7,
		};

		modify(end->qps[i], &attr, VB_STATE_INIT,
		       VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS);
		modify(end->qps[i], &attr, VB_STATE_RTR,
		       VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION | VB_ATTR_RQ_PSN |
			       VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER);
		modify(end->qps[i], &attr, VB_STATE_RTS,
		       VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT | VB_ATTR_RNR_RETRY | VB_ATTR_SQ_PSN |
			       VB_ATTR_READS_OUT);
	}
}

/* Made for the end `index`, with an address that is only a name unless the row says otherwise. */
static void init_end(struct carrier_end *end, uint32_t index, uint64_t seed)
{
	end->gid = (struct vb_gid){ { [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(1 + index) } };
	end->config = (struct vb_nic_config){
		.key_rows = end->key_rows,
		.key_row_count = CARRIER_ROWS,
		.qp_rows = end->qp_rows,
		.qp_row_count = CARRIER_ROWS,
		.seed = seed + index,
		.qpn_first = 2 + (index << 16),
		.qpn_count = 1000,
		.framing.icrc_mode = VB_ICRC_STRICT,
		.framing.batch_segments_max = 16,
	};
}

struct carrier_ends *carrier_ends_open(const struct carrier_row *row, uint64_t seed)
{
	struct carrier_ends *ends = calloc(1, sizeof(*ends));

	EXPECT(ends);
	ends->seed = seed;
	ends->now_ns = CARRIER_TURN_NS;
	for (uint32_t i = 0; i < 2; i++)
		init_end(&ends->end[i], i, seed);
	if (row->prepare)
		row->prepare(ends);
	for (uint32_t i = 0; i < 2; i++)
		create_engine(&ends->end[i]);
	row->open(ends);
	for (uint32_t i = 0; i < 2; i++) {
		MUST(vb_port_create(&ends->end[i].parts, &ends->end[i].port));
		create_qps(&ends->end[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		connect(&ends->end[i], &ends->end[!i]);
	if (row->attach)
		row->attach(ends);
	return ends;
}

void carrier_ends_close(const struct carrier_row *row, struct carrier_ends *ends)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct carrier_end *end = &ends->end[i];

		for (uint32_t k = 0; k < CARRIER_QPS; k++)
			MUST(vb_qp_destroy(end->qps[k]));
		vb_port_destroy(end->port);
	}
	row->close(ends);
	for (uint32_t i = 0; i < 2; i++) {
		struct carrier_end *end = &ends->end[i];

		MUST(vb_mr_destroy(end->mr));
		MUST(vb_cq_destroy(end->cq));
		MUST(vb_pd_destroy(end->pd));
		MUST(vb_nic_destroy(end->nic));
		free(end->source);
	}
	free(ends);
}

void carrier_ends_turn(struct carrier_ends *ends)
{
	ends->now_ns += CARRIER_TURN_NS;
	for (uint32_t i = 0; i < 2; i++)
		(void)vb_port_turn(ends->end[i].port, ends->now_ns);
}

/* --- traffic --- */

static uint32_t length_of(uint32_t request)
{
	return request * 2711 % (CARRIER_LENGTH_MAX + 1);
}

static void fill(uint8_t *place, uint32_t request)
{
	for (uint32_t i = 0; i < length_of(request); i++)
		place[i] = (uint8_t)(request * 31 + i * 7 + (i >> 8));
}

static void post(struct carrier_ends *ends, uint32_t request)
{
	struct carrier_end *from = &ends->end[request & 1];
	struct carrier_end *to = &ends->end[!(request & 1)];
	uint32_t qp = request / 2 % CARRIER_QPS;
	uint64_t place = (uint64_t)request * CARRIER_LENGTH_MAX;
	struct vb_sge local = { (uintptr_t)from->source + place, length_of(request),
				vb_mr_key(from->mr) };
	struct vb_sge remote = { (uintptr_t)to->target + place, length_of(request),
				 vb_mr_key(to->mr) };
	struct vb_send_request send = { .wr_id = request, .sges = &local, .sge_count = 1 };
	struct vb_recv_request receive = { .wr_id = request, .sges = &remote, .sge_count = 1 };

	send.rkey = vb_mr_key(to->mr);
	switch (request / 6 % 3) {
	case 0:
		fill(from->source + place, request);
		send.opcode = VB_WR_SEND;
		MUST(vb_qp_post_recv(to->qps[qp], &receive));
		break;
	case 1:
		fill(from->source + place, request);
		send.opcode = VB_WR_WRITE;
		send.remote_address = remote.address;
		break;
	default:
		fill(to->source + place, request);
		send.opcode = VB_WR_READ;
		send.remote_address = (uintptr_t)to->source + place;
		local.address = (uintptr_t)from->target + place;
		break;
	}
	MUST(vb_qp_post_send(from->qps[qp], &send));
	if (vb_qp_publish_sends(from->qps[qp]))
		vb_qp_ring_doorbell(from->qps[qp]);
}

static void take_completions(struct carrier_end *end)
{
	const struct vb_completion *completion;

	while ((completion = vb_cq_peek(end->cq))) {
		EXPECT_EQ(completion->status, VB_STATUS_SUCCESS);
		if (completion->is_receive)
			end->receives_done++;
		else
			end->sends_done++;
		vb_cq_take(end->cq);
	}
}

static void check(const struct carrier_ends *ends, uint32_t request)
{
	bool is_read = request / 6 % 3 == 2;
	const struct carrier_end *end = &ends->end[is_read ? request & 1 : !(request & 1)];
	const uint8_t *got = end->target + (uint64_t)request * CARRIER_LENGTH_MAX;
	uint8_t *wanted = calloc(1, CARRIER_LENGTH_MAX);

	EXPECT(wanted);
	fill(wanted, request);
	EXPECT(!memcmp(got, wanted, length_of(request)));
	free(wanted);
}

void carrier_ends_post(struct carrier_ends *ends)
{
	for (uint32_t i = 0; i < CARRIER_REQUESTS; i++)
		post(ends, i);
}

void carrier_ends_complete(const struct carrier_row *row, struct carrier_ends *ends)
{
	uint32_t turns = 0;

	while (ends->end[0].sends_done + ends->end[1].sends_done < CARRIER_REQUESTS) {
		EXPECT(++turns < TURNS_MAX);
		if (row->disturb)
			row->disturb(ends);
		carrier_ends_turn(ends);
		take_completions(&ends->end[0]);
		take_completions(&ends->end[1]);
	}
	EXPECT_EQ(ends->end[0].receives_done + ends->end[1].receives_done, SENDS);
	for (uint32_t i = 0; i < CARRIER_REQUESTS; i++)
		check(ends, i);
}

void carrier_ends_scribble(struct carrier_ends *ends)
{
	for (uint32_t i = 0; i < 2; i++)
		memset(ends->end[i].source, 0xee, AREA);
}

void carrier_ends_exchange(const struct carrier_row *row, struct carrier_ends *ends)
{
	carrier_ends_post(ends);
	carrier_ends_complete(row, ends);
}

uint64_t carrier_ends_repetitions(const struct carrier_ends *ends)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t *counts = vb_nic_counters(ends->end[i].nic)->counts;

		sum += counts[VB_COUNTER_OUT_OF_SEQUENCE] + counts[VB_COUNTER_DUPLICATE_REQUEST] +
		       counts[VB_COUNTER_PACKET_SEQ_ERR] + counts[VB_COUNTER_IMPLIED_NAK_SEQ_ERR] +
		       counts[VB_COUNTER_LOCAL_ACK_TIMEOUT_ERR];
	}
	return sum;
}
