/* SPDX-License-Identifier: BSD-2-Clause */
/* What orders mean, for each actor that executes them. */
#include "drill/actor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE 4096

_Alignas(PAGE) uint8_t region[REGION_LENGTH];

static bool is_open;
static enum ibv_qp_type service;
static char answer[ORDER_MAX];

/* --- the QP ----------------------------------------------------------------------------------- */

/* The attributes that are required on the way to each state. */
static int attributes_towards(enum ibv_qp_state state)
{
	enum {
		BASE = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		PEER = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		SEND = IBV_QP_STATE | IBV_QP_SQ_PSN,
		RELIABLY_IN = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		RELIABLY_OUT = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			       IBV_QP_MAX_QP_RD_ATOMIC,
	};
	static const int masks[][IBV_QPS_RTS + 1] = {
		[IBV_QPT_RC] = { 0, BASE | IBV_QP_ACCESS_FLAGS, PEER | RELIABLY_IN,
				 SEND | RELIABLY_OUT },
		[IBV_QPT_UC] = { 0, BASE | IBV_QP_ACCESS_FLAGS, PEER, SEND },
		[IBV_QPT_UD] = { 0, BASE | IBV_QP_QKEY, IBV_QP_STATE, SEND },
	};

	return masks[service][state];
}

static const char *connect_qp(const char *order)
{
	struct order_attr attr = order_attr(order);

	for (enum ibv_qp_state state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		if (!actor_modify(state, &attr, attributes_towards(state))) {
			snprintf(answer, sizeof(answer), "no: the QP does not go to state %d",
				 state);
			return answer;
		}
	}
	return "done";
}

static const char *open_qp(const char *order)
{
	uint32_t qpn, rkey;
	const char *said;

	if (is_open)
		return "no: it is open";
	for (uint32_t i = 0; i < REGION_LENGTH; i++)
		region[i] = pattern_byte(i);
	service = order_attr(order).service;
	actor_create(service, &qpn, &rkey);
	is_open = true;
	said = connect_qp(order);
	if (strcmp(said, "done") != 0)
		return said;
	snprintf(answer, sizeof(answer), "qpn=0x%x address=0x%" PRIxPTR " rkey=0x%x", qpn,
		 (uintptr_t)region, rkey);
	return answer;
}

void obey_no_more(void)
{
	if (is_open)
		actor_destroy();
	is_open = false;
}

static const char *reset_qp(void)
{
	struct order_attr nothing = { 0 };

	return actor_modify(IBV_QPS_RESET, &nothing, IBV_QP_STATE) ? "done" : "no: not to RESET";
}

static const char *state_of_qp(void)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	enum ibv_qp_state state = actor_state();

	return state <= IBV_QPS_ERR ? names[state] : "no: it is in none";
}

/* --- requests and completions ----------------------------------------------------------------- */

static const char *post(const char *order)
{
	struct order_post wanted = order_post(order);

	if (!wanted.is_known)
		return "no: what is to be posted?";
	if (!(wanted.is_receive ? actor_post_recv(&wanted) : actor_post_send(&wanted)))
		return "no: posting was refused";
	return "done";
}

static const char *status_name(enum ibv_wc_status status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
		[IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
		[IBV_WC_FATAL_ERR] = "FATAL_ERR",
	};
	bool is_known = (size_t)status < sizeof(names) / sizeof(names[0]) && names[status];

	return is_known ? names[status] : "?";
}

static const char *opcode_name(enum ibv_wc_opcode opcode)
{
	static const char *const sent[] = {
		[IBV_WC_SEND] = "SEND",		  [IBV_WC_RDMA_WRITE] = "WRITE",
		[IBV_WC_RDMA_READ] = "READ",	  [IBV_WC_COMP_SWAP] = "COMPARE_SWAP",
		[IBV_WC_FETCH_ADD] = "FETCH_ADD",
	};

	if (opcode == IBV_WC_RECV)
		return "RECV";
	if (opcode == IBV_WC_RECV_RDMA_WITH_IMM)
		return "RECV_WRITE_IMM";
	return (size_t)opcode < sizeof(sent) / sizeof(sent[0]) ? sent[opcode] : "?";
}

static const char *poll_one(void)
{
	struct ibv_wc done;
	FILE *line;

	if (!actor_poll(&done))
		return "none";
	line = fmemopen(answer, sizeof(answer), "w");
	fprintf(line, "wr=%" PRIu64 " %s", done.wr_id, status_name(done.status));
	if (done.status == IBV_WC_SUCCESS)
		fprintf(line, " %s", opcode_name(done.opcode));
	if (done.status == IBV_WC_SUCCESS && done.opcode & IBV_WC_RECV) {
		fprintf(line, " len=%u", done.byte_len);
		if (done.wc_flags & IBV_WC_WITH_IMM)
			fprintf(line, " imm=0x%x", done.imm_data);
		if (service == IBV_QPT_UD)
			fprintf(line, " srcqp=0x%x%s", done.src_qp,
				done.wc_flags & IBV_WC_GRH ? " grh" : "");
	}
	fclose(line);
	return answer;
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Where an order's bytes lie; NULL if there are fewer than `length`. */
static uint8_t *bytes_of(const char *order, uint64_t length)
{
	uint64_t offset = order_value(order, "offset", 0);

	return offset <= REGION_LENGTH && length <= REGION_LENGTH - offset ? region + offset : NULL;
}

static const char *store_word(const char *order)
{
	uint64_t word = order_value(order, "word", 0);
	uint8_t *bytes = bytes_of(order, sizeof(word));

	if (!bytes)
		return "no: that is outside of the region";
	memcpy(bytes, &word, sizeof(word));
	return "done";
}

static const char *load_bytes(const char *order)
{
	uint64_t length = order_value(order, "len", 0);
	const uint8_t *bytes = bytes_of(order, length);

	if (!bytes || length > LOAD_MAX)
		return "no: that is outside of the region, or too much";
	for (uint32_t i = 0; i < length; i++)
		sprintf(answer + 2 * i, "%02x", bytes[i]);
	answer[2 * length] = '\0';
	return answer;
}

const char *obey(const char *order)
{
	if (order_begins(order, "open"))
		return open_qp(order);
	if (!is_open)
		return "no: open comes first";
	if (order_begins(order, "post"))
		return post(order);
	if (order_begins(order, "poll"))
		return poll_one();
	if (order_begins(order, "state"))
		return state_of_qp();
	if (order_begins(order, "store"))
		return store_word(order);
	if (order_begins(order, "load"))
		return load_bytes(order);
	if (order_begins(order, "reset"))
		return reset_qp();
	if (order_begins(order, "connect"))
		return connect_qp(order);
	return "no: there is no such order";
}
