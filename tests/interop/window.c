/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows between two ends of an RC connection, and the ways to close one.
 *
 *     window [options]           the server: opens windows in its memory
 *     window [options] <host>    the client: reads and writes through them
 *
 * In each step the server binds a window to a part of its memory and sends the client its key; the
 * client does what the window allows, and both check the bytes. The last step of a connection is an
 * attempt to use a window that was closed, by the server itself or by the client's SEND with
 * invalidate: it must fail with a remote access error.
 */
#include "interop/support_side.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_OFFSET 1001u
#define WINDOW_LENGTH 6000u
#define WAIT_NS 20000000000ull
#define PATTERN 0x817d0ull

enum way {
	WAY_TYPE_1, /* closed by binding it to nothing */
	WAY_TYPE_2_LOCAL, /* closed by the server's own request */
	WAY_TYPE_2_REMOTE, /* closed by the client's SEND with invalidate */
	WAY_COUNT,
};

static struct ibv_wc await_completion(struct side *side)
{
	uint64_t end_ns = now_ns() + WAIT_NS;
	struct ibv_wc wc;

	for (;;) {
		int count = ibv_poll_cq(side->cq, 1, &wc);

		if (count > 0)
			return wc;
		if (count < 0 || now_ns() > end_ns)
			give_up("a completion is missing");
	}
}

static void must_complete(struct side *side, enum ibv_wc_opcode opcode, const char *what)
{
	struct ibv_wc wc = await_completion(side);

	if (wc.status)
		give_up("%s: %s", what, ibv_wc_status_str(wc.status));
	if (wc.opcode != opcode)
		give_up("%s: a completion of another kind, %d", what, wc.opcode);
}

static void post(struct side *side, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int error;

	wr->send_flags = IBV_SEND_SIGNALED;
	error = ibv_post_send(side->qp, wr, &bad);
	if (error)
		give_up("ibv_post_send: %s", strerror(error));
}

/*
 * Sends the key over TCP, bit by bit: before there is a window, the connection itself can carry
 * nothing.
 */
static void tell_key(struct side *side, uint32_t key)
{
	for (int bit = 0; bit < 32; bit++)
		side_meet(side, key >> bit & 1);
}

static uint32_t hear_key(struct side *side)
{
	uint32_t key = 0;

	for (int bit = 0; bit < 32; bit++)
		key |= (uint32_t)side_meet(side, false) << bit;
	return key;
}

/* --- the server ------------------------------------------------------------------------------- */

static struct ibv_mw_bind_info place(const struct side *side, const struct ibv_mr *mr,
				     uint64_t length)
{
	return (struct ibv_mw_bind_info){
		.mr = (struct ibv_mr *)(uintptr_t)mr,
		.addr = (uintptr_t)side->area[AREA_LANDING] + WINDOW_OFFSET,
		.length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
}

static void bind_type_1(struct side *side, struct ibv_mw *mw, const struct ibv_mr *mr,
			uint64_t length)
{
	struct ibv_mw_bind bind = { .wr_id = 7,
				    .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = place(side, mr, length) };

	if (ibv_bind_mw(side->qp, mw, &bind))
		give_up("ibv_bind_mw: %m");
	must_complete(side, IBV_WC_BIND_MW, "binding");
}

static void bind_type_2(struct side *side, struct ibv_mw *mw, const struct ibv_mr *mr)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = mw,
			     .rkey = ibv_inc_rkey(mw->rkey),
			     .bind_info = place(side, mr, WINDOW_LENGTH) },
	};

	post(side, &wr);
	must_complete(side, IBV_WC_BIND_MW, "binding");
	mw->rkey = wr.bind_mw.rkey;
}

static void invalidate(struct side *side, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = key };

	post(side, &wr);
	must_complete(side, IBV_WC_LOCAL_INV, "invalidating");
}

static void post_receive(struct side *side)
{
	struct ibv_recv_wr wr = { .wr_id = 8 }, *bad;

	if (ibv_post_recv(side->qp, &wr, &bad))
		give_up("ibv_post_recv failed");
}

static void await_invalidation(struct side *side, uint32_t key)
{
	struct ibv_wc wc = await_completion(side);

	if (wc.status || !(wc.wc_flags & IBV_WC_WITH_INV) || wc.invalidated_rkey != key)
		give_up("no invalidation of %08x, but %s, flags %x, key %08x", key,
			ibv_wc_status_str(wc.status), wc.wc_flags, wc.invalidated_rkey);
}

static void check_written(const struct side *side)
{
	const uint8_t *window = side->area[AREA_LANDING] + WINDOW_OFFSET;

	if (pattern_check(window, WINDOW_LENGTH, PATTERN, 0) < WINDOW_LENGTH)
		give_up("what the client wrote is not here");
	if (window[-1] != 0xee || window[WINDOW_LENGTH] != 0xee)
		give_up("something was written beside the window");
}

static void serve(struct side *side, enum way way)
{
	struct ibv_mr *mr = ibv_reg_mr(side->pd, side->area[AREA_LANDING],
				       side->area_length[AREA_LANDING],
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw =
		ibv_alloc_mw(side->pd, way == WAY_TYPE_1 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2);

	if (!mr || !mw)
		give_up("no region or window: %m");
	memset(side->area[AREA_LANDING], 0xee, side->area_length[AREA_LANDING]);
	if (way == WAY_TYPE_1)
		bind_type_1(side, mw, mr, WINDOW_LENGTH);
	else
		bind_type_2(side, mw, mr);
	if (way == WAY_TYPE_2_REMOTE)
		post_receive(side);
	tell_key(side, mw->rkey);
	side_meet(side, false); /* the client has written and read */
	check_written(side);
	if (way == WAY_TYPE_1)
		bind_type_1(side, mw, mr, 0);
	else if (way == WAY_TYPE_2_LOCAL)
		invalidate(side, mw->rkey);
	else
		await_invalidation(side, mw->rkey);
	side_meet(side, false); /* the window is closed */
	side_meet(side, false); /* and the client knows that it is */
	if (ibv_dealloc_mw(mw) || ibv_dereg_mr(mr))
		give_up("window or region cannot be ended");
}

/* --- the client ------------------------------------------------------------------------------- */

static void go_through(struct side *side, enum ibv_wr_opcode opcode, enum area area, uint32_t key)
{
	struct ibv_sge sge = { .addr = (uintptr_t)side->area[area],
			       .length = WINDOW_LENGTH,
			       .lkey = side->mr[area]->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.rdma = { .remote_addr = side->other.address[AREA_LANDING] + WINDOW_OFFSET,
			     .rkey = key },
	};

	post(side, &wr);
}

static void send_with_invalidate(struct side *side, uint32_t key)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV, .invalidate_rkey = key };

	post(side, &wr);
	must_complete(side, IBV_WC_SEND, "the send with invalidate");
}

static void use(struct side *side, enum way way)
{
	uint32_t key = hear_key(side);
	struct ibv_wc wc;

	pattern_fill(side->area[AREA_SOURCE], WINDOW_LENGTH, PATTERN, 0);
	go_through(side, IBV_WR_RDMA_WRITE, AREA_SOURCE, key);
	must_complete(side, IBV_WC_RDMA_WRITE, "writing through the window");
	go_through(side, IBV_WR_RDMA_READ, AREA_FETCHED, key);
	must_complete(side, IBV_WC_RDMA_READ, "reading through the window");
	if (pattern_check(side->area[AREA_FETCHED], WINDOW_LENGTH, PATTERN, 0) < WINDOW_LENGTH)
		give_up("what was read is not what was written");
	side_meet(side, false);
	if (way == WAY_TYPE_2_REMOTE)
		send_with_invalidate(side, key);
	side_meet(side, false);
	go_through(side, IBV_WR_RDMA_WRITE, AREA_SOURCE, key);
	wc = await_completion(side);
	if (wc.status != IBV_WC_REM_ACCESS_ERR)
		give_up("writing through a closed window: %s", ibv_wc_status_str(wc.status));
	side_meet(side, false);
}

/* --- */

static enum way parse_way(const char *text)
{
	static const char *const names[WAY_COUNT] = { "1", "2", "2-remote" };

	for (int i = 0; i < WAY_COUNT; i++)
		if (!strcmp(text, names[i]))
			return (enum way)i;
	give_up("the window is of type 1, 2 or 2-remote");
}

static enum way parse(int argc, char **argv, struct settings *settings)
{
	enum way way = WAY_TYPE_2_REMOTE;
	int option;

	while ((option = getopt(argc, argv, SIDE_OPTIONS "t:")) != -1) {
		if (settings_take(settings, option, optarg))
			continue;
		if (option == 't')
			way = parse_way(optarg);
		else
			give_up("usage: window [-d device] [-g GID index] [-p TCP port] "
				"[-t 1|2|2-remote] [host]");
	}
	settings->server = argv[optind];
	return way;
}

int main(int argc, char **argv)
{
	struct settings settings = {
		.gid_index = 1,
		.port = 18515,
		.limits = { .mtu = 1024, .length_max = 20000 },
		.patience = PATIENT,
	};
	enum way way = parse(argc, argv, &settings);
	struct side side;

	side_open(&side, &settings);
	side_connect(&side);
	if (settings.server)
		use(&side, way);
	else
		serve(&side, way);
	side_check_surroundings(&side);
	side_close(&side);
	return 0;
}
