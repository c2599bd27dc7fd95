/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two instances of this program, on any two implementations of verbs, do every kind of operation to
 * each other at the same time. They check every byte, length, immediate and counter on both sides,
 * and that nothing else has changed.
 *
 *     exchange [options]           the server
 *     exchange [options] <host>    its client; the same options
 *
 * With -x, a third party is expected to send packets in the other end's name. Then operations may
 * fail and data be wrong; both ends connect again and continue. Memory that the other end has no
 * right to write must not change even so.
 */
#include "interop/support_side.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROUND_NS 20000000000ull
#define HOSTILE_ROUND_NS 500000000ull
#define LATE_US 30000
#define RECEIVE_ID 1000u
#define GRH 40u
#define BLANK 0xb1a2cull /* the pattern of bytes that were not written in this round */

struct round {
	struct side *side;
	struct plan own, other;
	uint64_t results[OPERATIONS]; /* the results that this end's atomics must return */
	bool is_broken;
};

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
	(void)number;
	is_stopped = 1;
}

/* Something is not as planned: fatal, unless that is allowed. */
__attribute__((format(printf, 2, 3))) static void break_off(struct round *round, const char *format,
							    ...)
{
	va_list arguments;

	round->is_broken = true;
	if (round->side->settings->is_hostile)
		return;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* --- before ----------------------------------------------------------------------------------- */

static uint64_t counter_after(const struct plan *plan, uint32_t count, uint64_t *results)
{
	uint64_t counter = plan->counter;

	for (uint32_t i = 0; i < count; i++) {
		const struct operation *operation = &plan->operations[i];

		if (results)
			results[i] = counter;
		if (operation->kind == KIND_FETCH_ADD)
			counter += operation->operand;
		if (operation->kind == KIND_COMPARE_SWAP && operation->compare == counter)
			counter = operation->operand;
	}
	return counter;
}

static void prepare_memory(struct round *round)
{
	struct side *side = round->side;

	pattern_fill(side->area[AREA_SOURCE], side->area_length[AREA_SOURCE], round->own.pattern,
		     0);
	pattern_fill(side->area[AREA_SERVED], side->area_length[AREA_SERVED], ~round->own.pattern,
		     0);
	pattern_fill(side->area[AREA_LANDING], side->area_length[AREA_LANDING], BLANK, 0);
	pattern_fill(side->area[AREA_FETCHED], side->area_length[AREA_FETCHED], BLANK, 0);
	memcpy(side->area[AREA_COUNTER], &round->other.counter, sizeof(round->other.counter));
	counter_after(&round->own, OPERATIONS, round->results);
}

static void begin_round(struct round *round, struct side *side, uint64_t seed, uint32_t number)
{
	const struct settings *settings = side->settings;
	bool is_client = settings->server != NULL;

	*round = (struct round){ .side = side };
	plan_make(&round->own, &settings->limits, seed, number, is_client);
	plan_make(&round->other, &settings->limits, seed, number, !is_client);
	prepare_memory(round);
}

/* --- during ----------------------------------------------------------------------------------- */

static struct ibv_sge sge_of(const struct side *side, enum area area, uint32_t index,
			     uint32_t length)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)side->area[area] + slot_offset(side->settings, index),
		.length = length,
		.lkey = side->mr[area]->lkey,
	};
}

static void post_receives(struct round *round)
{
	struct side *side = round->side;

	for (uint32_t i = 0; i < OPERATIONS; i++) {
		struct ibv_sge sge = sge_of(side, AREA_LANDING, i, slot_length(side->settings));
		struct ibv_recv_wr wr = { .wr_id = RECEIVE_ID + i, .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;
		int error;

		if (!kind_has_receive(round->other.operations[i].kind))
			continue;
		error = ibv_post_recv(side->qp, &wr, &bad);
		if (error)
			break_off(round, "ibv_post_recv: %s", strerror(error));
	}
}

static void aim(const struct side *side, struct ibv_send_wr *wr, enum area area, uint64_t offset)
{
	wr->wr.rdma.remote_addr = side->other.address[area] + offset;
	wr->wr.rdma.rkey = side->other.rkey[area];
}

static void aim_atomic(const struct side *side, struct ibv_send_wr *wr,
		       const struct operation *operation)
{
	wr->wr.atomic.remote_addr = side->other.address[AREA_COUNTER];
	wr->wr.atomic.rkey = side->other.rkey[AREA_COUNTER];
	wr->wr.atomic.compare_add = operation->kind == KIND_FETCH_ADD ? operation->operand
								      : operation->compare;
	wr->wr.atomic.swap = operation->operand;
}

static void aim_datagram(const struct side *side, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = side->ah;
	wr->wr.ud.remote_qpn = side->other.qpn;
	wr->wr.ud.remote_qkey = 0x11223344;
}

static void post_operation(struct round *round, uint32_t index)
{
	static const enum ibv_wr_opcode opcodes[KIND_COUNT] = {
		[KIND_SEND] = IBV_WR_SEND,
		[KIND_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[KIND_WRITE] = IBV_WR_RDMA_WRITE,
		[KIND_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[KIND_READ] = IBV_WR_RDMA_READ,
		[KIND_FETCH_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[KIND_COMPARE_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	struct side *side = round->side;
	const struct operation *operation = &round->own.operations[index];
	bool is_fetching = operation->kind == KIND_READ || kind_is_atomic(operation->kind);
	struct ibv_sge sge =
		sge_of(side, is_fetching ? AREA_FETCHED : AREA_SOURCE, index, operation->length);
	struct ibv_send_wr wr = {
		.wr_id = index,
		.sg_list = &sge,
		.num_sge = operation->length != 0,
		.opcode = opcodes[operation->kind],
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htonl(operation->immediate),
	};
	struct ibv_send_wr *bad;
	int error;

	if (kind_is_atomic(operation->kind))
		aim_atomic(side, &wr, operation);
	else if (operation->kind == KIND_READ)
		aim(side, &wr, AREA_SERVED, slot_offset(side->settings, index));
	else if (side->settings->limits.transport == TRANSPORT_UD)
		aim_datagram(side, &wr);
	else
		aim(side, &wr, AREA_LANDING, slot_offset(side->settings, index));
	error = ibv_post_send(side->qp, &wr, &bad);
	if (error)
		break_off(round, "ibv_post_send: %s", strerror(error));
}

static void check_received(struct round *round, uint32_t index, const struct ibv_wc *wc)
{
	const struct operation *operation = &round->other.operations[index];
	uint32_t grh = round->side->settings->limits.transport == TRANSPORT_UD ? GRH : 0;

	if (wc->byte_len != operation->length + grh)
		break_off(round, "received %u bytes instead of %u", wc->byte_len,
			  operation->length + grh);
	if (operation->kind == KIND_SEND)
		return;
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || ntohl(wc->imm_data) != operation->immediate)
		break_off(round, "the immediate is %08x instead of %08x", ntohl(wc->imm_data),
			  operation->immediate);
}

static uint32_t expected_completions(const struct round *round)
{
	uint32_t count = OPERATIONS;

	for (uint32_t i = 0; i < OPERATIONS; i++)
		count += kind_has_receive(round->other.operations[i].kind);
	return count;
}

static void await_completions(struct round *round)
{
	const struct settings *settings = round->side->settings;
	uint64_t end_ns = now_ns() + (settings->is_hostile ? HOSTILE_ROUND_NS : ROUND_NS);
	uint32_t missing = expected_completions(round);
	struct ibv_wc wc;

	while (missing && !round->is_broken) {
		int count = ibv_poll_cq(round->side->cq, 1, &wc);

		if (count < 0)
			give_up("ibv_poll_cq failed");
		if (count == 0) {
			if (now_ns() > end_ns)
				break_off(round, "%u completions are missing", missing);
			continue;
		}
		missing--;
		if (wc.status)
			break_off(round, "%s of operation %llu", ibv_wc_status_str(wc.status),
				  (unsigned long long)wc.wr_id);
		else if (wc.wr_id >= RECEIVE_ID)
			check_received(round, (uint32_t)(wc.wr_id - RECEIVE_ID) % OPERATIONS, &wc);
	}
}

/* --- after ------------------------------------------------------------------------------------ */

/*
 * `length` bytes of the pattern from the slot's beginning or behind a GRH, and the rest of the slot
 * untouched.
 */
static void check_slot(struct round *round, enum area area, uint32_t index, uint32_t grh,
		       uint32_t length, uint64_t pattern)
{
	const struct side *side = round->side;
	uint64_t begin = slot_offset(side->settings, index);
	const uint8_t *slot = side->area[area] + begin;
	uint32_t end = grh + length;

	if (pattern_check(slot + grh, length, pattern, begin) < length)
		break_off(round, "operation %u: byte %llu of %u is wrong", index,
			  (unsigned long long)pattern_check(slot + grh, length, pattern, begin),
			  length);
	if (pattern_check(slot + end, slot_length(side->settings) - end, BLANK, begin + end) <
	    slot_length(side->settings) - end)
		break_off(round, "operation %u: something is behind its %u bytes", index, length);
}

static void check_landed(struct round *round)
{
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		const struct operation *operation = &round->other.operations[i];
		bool has_landed = operation->kind <= KIND_WRITE_IMM;
		uint32_t grh = round->side->settings->limits.transport == TRANSPORT_UD ? GRH : 0;

		check_slot(round, AREA_LANDING, i, has_landed ? grh : 0,
			   has_landed ? operation->length : 0, round->other.pattern);
	}
}

static void check_fetched(struct round *round)
{
	struct side *side = round->side;

	for (uint32_t i = 0; i < OPERATIONS; i++) {
		const struct operation *operation = &round->own.operations[i];
		uint64_t result;

		if (operation->kind == KIND_READ)
			check_slot(round, AREA_FETCHED, i, 0, operation->length,
				   ~round->other.pattern);
		if (!kind_is_atomic(operation->kind))
			continue;
		memcpy(&result, side->area[AREA_FETCHED] + slot_offset(side->settings, i),
		       sizeof(result));
		if (result != round->results[i])
			break_off(round, "the atomic operation %u returned %llx instead of %llx", i,
				  (unsigned long long)result,
				  (unsigned long long)round->results[i]);
	}
}

static void check_counter(struct round *round)
{
	uint64_t should_be = counter_after(&round->other, OPERATIONS, NULL), is;

	memcpy(&is, round->side->area[AREA_COUNTER], sizeof(is));
	if (is != should_be)
		break_off(round, "the counter is %llx instead of %llx", (unsigned long long)is,
			  (unsigned long long)should_be);
}

/* Memory that no one may write is unchanged, whatever was sent. */
static void check_untouchable(const struct round *round)
{
	const struct side *side = round->side;

	side_check_surroundings(side);
	if (pattern_check(side->area[AREA_SOURCE], side->area_length[AREA_SOURCE],
			  round->own.pattern, 0) < side->area_length[AREA_SOURCE] ||
	    pattern_check(side->area[AREA_SERVED], side->area_length[AREA_SERVED],
			  ~round->own.pattern, 0) < side->area_length[AREA_SERVED])
		give_up("memory that the other end may not write has changed");
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* True if the round went as planned at both ends. */
static bool do_round(struct round *round)
{
	struct side *side = round->side;

	if (!side->settings->is_late)
		post_receives(round);
	side_meet(side, false);
	for (uint32_t i = 0; i < OPERATIONS && !round->is_broken; i++)
		post_operation(round, i);
	if (side->settings->is_late) {
		usleep(LATE_US);
		post_receives(round);
	}
	await_completions(round);
	if (side_meet(side, round->is_broken)) {
		check_untouchable(round);
		return false;
	}
	check_untouchable(round);
	check_landed(round);
	check_fetched(round);
	check_counter(round);
	return !side_meet(side, round->is_broken);
}

static void do_rounds(struct side *side)
{
	const struct settings *settings = side->settings;
	uint64_t seed = side->own.seed ^ side->other.seed;
	uint32_t number = 0, failed = 0;
	struct round round;

	while (!side_meet(side, is_stopped || (settings->round_count &&
					       number >= settings->round_count))) {
		begin_round(&round, side, seed, number++);
		if (do_round(&round))
			continue;
		failed++;
		side_connect(side);
	}
	printf("%u rounds of %d operations each way, %u broken off\n", number, OPERATIONS, failed);
}

static enum transport parse_transport(const char *name)
{
	static const char *const names[] = { "rc", "uc", "ud" };

	for (int i = 0; i < 3; i++)
		if (!strcmp(name, names[i]))
			return (enum transport)i;
	give_up("the transport is rc, uc or ud");
}

static void parse(int argc, char **argv, struct settings *settings)
{
	int option;

	while ((option = getopt(argc, argv, SIDE_OPTIONS "c:m:n:s:r:lx")) != -1) {
		if (settings_take(settings, option, optarg))
			continue;
		switch (option) {
		case 'c':
			settings->limits.transport = parse_transport(optarg);
			break;
		case 'm':
			settings->limits.mtu = (uint32_t)atoi(optarg);
			break;
		case 'n':
			settings->round_count = (uint32_t)atoi(optarg);
			break;
		case 's':
			settings->limits.length_max = (uint32_t)atoi(optarg);
			break;
		case 'r':
			settings->seed = (uint64_t)atoll(optarg);
			break;
		case 'l':
			settings->is_late = true;
			break;
		case 'x':
			settings->is_hostile = true;
			break;
		default:
			give_up("usage: exchange [-d device] [-g GID index] [-p TCP port] [-c rc|uc|ud] "
				"[-m MTU] [-n rounds, 0 until a signal] [-s longest] [-r seed] "
				"[-l late receives] [-x hostile] [host]");
		}
	}
	settings->server = argv[optind];
	if (settings->limits.transport == TRANSPORT_UD)
		settings->limits.length_max = settings->limits.mtu;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.gid_index = 1,
		.port = 18515,
		.round_count = 10,
		.limits = { .mtu = 1024, .length_max = 20000 },
		.patience = PATIENT,
	};
	struct side side;

	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	parse(argc, argv, &settings);
	side_open(&side, &settings);
	side_connect(&side);
	printf("QPN %06x, the other end's %06x\n", side.own.qpn, side.other.qpn);
	fflush(stdout);
	do_rounds(&side);
	side_close(&side);
	return 0;
}
