/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One thing goes wrong between two ends of an RC connection, and each end prints what is reported
 * to it: its completions in their order, and the state of its QP. Two runs on different
 * implementations are the same if they print the same.
 *
 *     mishap -k <kind> [options]           the server, to which it happens
 *     mishap -k <kind> [options] <host>    the client, which causes it
 *
 * The client posts the request that goes wrong, and behind it an empty SEND. The server has two
 * short receives, unless the kind is about having none.
 */
#include "interop/support_side.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECEIVE_ID 1000u
#define RECEIVE_LENGTH 100u
#define SILENCE_NS 400000000ull
#define ALL_NS 20000000000ull

/* How the request goes wrong, if its operands alone do not make it fail. */
enum trick {
	TRICK_NONE,
	TRICK_WRONG_KEY,
	TRICK_BEHIND_END,
	TRICK_WRONG_LOCAL_KEY,
	TRICK_SHORT_OF_RECEIVES,
	TRICK_DEREGISTERED,
	TRICK_PEER_LEAVES, /* the peer destroys its QP */
	TRICK_PEER_DIES, /* the peer's process ends */
	TRICK_QP_RESET, /* the other end's */
};

struct mishap {
	const char *name;
	enum ibv_wr_opcode opcode;
	enum area from, to; /* at the client; at the server */
	uint32_t length;
	enum trick trick;
	unsigned denied_access; /* rights that the server's QP lacks */
};

/* clang-format off */
static const struct mishap mishaps[] = {
	{ "nothing", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_NONE, 0 },
	{ "write-wrong-key", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_WRONG_KEY, 0 },
	{ "read-wrong-key", IBV_WR_RDMA_READ, AREA_FETCHED, AREA_SERVED, 5000, TRICK_WRONG_KEY, 0 },
	{ "atomic-wrong-key", IBV_WR_ATOMIC_FETCH_AND_ADD, AREA_FETCHED, AREA_COUNTER, 8, TRICK_WRONG_KEY, 0 },
	{ "write-no-right", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_SERVED, 5000, TRICK_NONE, 0 },
	{ "read-no-right", IBV_WR_RDMA_READ, AREA_FETCHED, AREA_LANDING, 5000, TRICK_NONE, 0 },
	{ "atomic-no-right", IBV_WR_ATOMIC_CMP_AND_SWP, AREA_FETCHED, AREA_LANDING, 8, TRICK_NONE, 0 },
	{ "write-behind-end", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_BEHIND_END, 0 },
	{ "read-behind-end", IBV_WR_RDMA_READ, AREA_FETCHED, AREA_SERVED, 5000, TRICK_BEHIND_END, 0 },
	{ "write-deregistered", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_DEREGISTERED, 0 },
	{ "write-denied-by-qp", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_NONE, IBV_ACCESS_REMOTE_WRITE },
	{ "read-denied-by-qp", IBV_WR_RDMA_READ, AREA_FETCHED, AREA_SERVED, 5000, TRICK_NONE, IBV_ACCESS_REMOTE_READ },
	{ "atomic-denied-by-qp", IBV_WR_ATOMIC_FETCH_AND_ADD, AREA_FETCHED, AREA_COUNTER, 8, TRICK_NONE, IBV_ACCESS_REMOTE_ATOMIC },
	{ "send-too-long", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 200, TRICK_NONE, 0 },
	{ "send-too-long-in-packets", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 5000, TRICK_NONE, 0 },
	{ "send-no-receive", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 100, TRICK_SHORT_OF_RECEIVES, 0 },
	{ "immediate-no-receive", IBV_WR_RDMA_WRITE_WITH_IMM, AREA_SOURCE, AREA_LANDING, 5000, TRICK_SHORT_OF_RECEIVES, 0 },
	{ "send-wrong-local-key", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 50, TRICK_WRONG_LOCAL_KEY, 0 },
	{ "read-to-read-only", IBV_WR_RDMA_READ, AREA_SOURCE, AREA_SERVED, 5000, TRICK_NONE, 0 },
	{ "peer-leaves", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 50, TRICK_PEER_LEAVES, 0 },
	{ "peer-dies", IBV_WR_SEND, AREA_SOURCE, AREA_LANDING, 50, TRICK_PEER_DIES, 0 },
	{ "peer-resets", IBV_WR_RDMA_WRITE, AREA_SOURCE, AREA_LANDING, 5000, TRICK_QP_RESET, 0 },
};
/* clang-format on */

static const struct mishap *find(const char *name)
{
	for (size_t i = 0; i < sizeof(mishaps) / sizeof(mishaps[0]); i++)
		if (!strcmp(mishaps[i].name, name))
			return &mishaps[i];
	give_up("there is no mishap %s", name);
}

/* --- both ------------------------------------------------------------------------------------- */

static void print_completion(const struct ibv_wc *wc)
{
	if (wc->wr_id >= RECEIVE_ID)
		printf("receive %llu: ", (unsigned long long)wc->wr_id - RECEIVE_ID);
	else
		printf("request %llu: ", (unsigned long long)wc->wr_id);
	printf("%s\n", ibv_wc_status_str(wc->status));
}

/* Prints until `wanted` completions have arrived, or none has for a while. */
static void print_completions(struct side *side, uint32_t wanted)
{
	uint64_t wait_ns = wanted ? ALL_NS : SILENCE_NS, end_ns = now_ns() + wait_ns;
	struct ibv_wc wc;

	for (uint32_t count = 0; !wanted || count < wanted;) {
		if (ibv_poll_cq(side->cq, 1, &wc) > 0) {
			print_completion(&wc);
			end_ns = now_ns() + wait_ns;
			count++;
		} else if (now_ns() > end_ns) {
			return;
		}
	}
}

static void print_state(struct side *side)
{
	static const char *const names[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(side->qp, &attr, IBV_QP_STATE, &init))
		give_up("ibv_query_qp failed");
	printf("QP %s\n", names[attr.qp_state]);
}

/* --- the server ------------------------------------------------------------------------------- */

static void post_receives(struct side *side)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)side->area[AREA_LANDING] + i * RECEIVE_LENGTH,
			.length = RECEIVE_LENGTH,
			.lkey = side->mr[AREA_LANDING]->lkey,
		};
		struct ibv_recv_wr wr = { .wr_id = RECEIVE_ID + i, .sg_list = &sge, .num_sge = 1 };
		struct ibv_recv_wr *bad;

		if (ibv_post_recv(side->qp, &wr, &bad))
			give_up("ibv_post_recv failed");
	}
}

/* The server's preparations before the client begins. */
static void set_up(struct side *side, enum trick trick)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	if (trick != TRICK_SHORT_OF_RECEIVES && trick != TRICK_DEREGISTERED)
		post_receives(side);
	if (trick == TRICK_PEER_DIES)
		_exit(0);
	if (trick == TRICK_QP_RESET && ibv_modify_qp(side->qp, &reset, IBV_QP_STATE))
		give_up("the QP cannot be reset");
	if (trick == TRICK_DEREGISTERED) {
		if (ibv_dereg_mr(side->mr[AREA_LANDING]))
			give_up("ibv_dereg_mr failed");
		side->mr[AREA_LANDING] = NULL;
	}
	if (trick == TRICK_PEER_LEAVES) {
		if (ibv_destroy_qp(side->qp))
			give_up("ibv_destroy_qp failed");
		side->qp = NULL;
	}
}

static void suffer(struct side *side, const struct mishap *mishap)
{
	set_up(side, mishap->trick);
	side_meet(side, false);
	side_meet(side, false);
	print_completions(side, 0);
	if (side->qp)
		print_state(side);
	side_meet(side, false);
}

/* --- the client ------------------------------------------------------------------------------- */

static void aim(const struct side *side, const struct mishap *mishap, struct ibv_send_wr *wr)
{
	uint64_t address = side->other.address[mishap->to];
	uint32_t key = side->other.rkey[mishap->to];

	if (mishap->trick == TRICK_BEHIND_END)
		address += side->area_length[mishap->to] - mishap->length + 1;
	if (mishap->trick == TRICK_WRONG_KEY)
		key ^= 0x5a5a00;
	if (mishap->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    mishap->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr->wr.atomic.remote_addr = (mishap->to == AREA_COUNTER) ? address
									 : (address & ~7ull) + 8;
		wr->wr.atomic.rkey = key;
	} else {
		wr->wr.rdma.remote_addr = address;
		wr->wr.rdma.rkey = key;
	}
}

static void do_it(struct side *side, const struct mishap *mishap)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)side->area[mishap->from],
		.length = mishap->length,
		.lkey = side->mr[mishap->from]->lkey,
	};
	/*
	 * With the fence, this SEND is never sent if a READ fails here. Without it, that would
	 * depend on which end is faster.
	 */
	struct ibv_send_wr next = { .wr_id = 1,
				    .opcode = IBV_WR_SEND,
				    .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
	struct ibv_send_wr wr = { .next = &next,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = mishap->opcode,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	if (mishap->trick == TRICK_WRONG_LOCAL_KEY)
		sge.lkey ^= 0x5a5a00;
	aim(side, mishap, &wr);
	if (mishap->trick == TRICK_PEER_DIES)
		side_await_end(side);
	else
		side_meet(side, false);
	if (ibv_post_send(side->qp, &wr, &bad))
		give_up("ibv_post_send failed");
	print_completions(side, 2);
	print_state(side);
	if (mishap->trick == TRICK_PEER_DIES)
		return;
	side_meet(side, false);
	side_meet(side, false);
}

/* --- */

static const struct mishap *parse(int argc, char **argv, struct settings *settings)
{
	const struct mishap *mishap = NULL;
	int option;

	while ((option = getopt(argc, argv, SIDE_OPTIONS "k:")) != -1) {
		if (settings_take(settings, option, optarg))
			continue;
		if (option == 'k')
			mishap = find(optarg);
		else
			give_up("usage: mishap -k kind [-d device] [-g GID index] [-p TCP port] [host]");
	}
	if (!mishap)
		give_up("-k says which mishap");
	settings->server = argv[optind];
	if (!settings->server)
		settings->denied_access = mishap->denied_access;
	return mishap;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.gid_index = 1,
		.port = 18515,
		.limits = { .mtu = 1024, .length_max = 20000 },
		.patience = { .ack_timeout = 16, .retry_count = 2, .rnr_retry = 1 },
	};
	const struct mishap *mishap = parse(argc, argv, &settings);
	struct side side;

	side_open(&side, &settings);
	side_connect(&side);
	if (settings.server)
		do_it(&side, mishap);
	else
		suffer(&side, mishap);
	side_check_surroundings(&side);
	side_close(&side);
	return 0;
}
