/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of an exchange. Its areas lie in one mapping, at odd addresses. The pages between them
 * are filled with a pattern and unused: whatever is written there came from outside.
 */
#include "interop/support_side.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SURROUNDING 8192u
#define SURROUNDING_PATTERN 0x5ca1ab1e
#define QKEY 0x11223344u
#define GRH 40u
#define AFTERLIFE_US 300000

void give_up(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

bool settings_take(struct settings *settings, int option, const char *value)
{
	switch (option) {
	case 'd':
		settings->device = value;
		return true;
	case 'g':
		settings->gid_index = (uint32_t)atoi(value);
		return true;
	case 'p':
		settings->port = (uint32_t)atoi(value);
		return true;
	default:
		return false;
	}
}

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- the other end ---------------------------------------------------------------------------- */

static int connect_to(const char *host, uint32_t port)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char service[16];
	int fd;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(host, service, &hints, &found))
		give_up("there is no host %s", host);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		give_up("cannot connect to %s port %u: %m", host, port);
	freeaddrinfo(found);
	return fd;
}

static int accept_on(uint32_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 1))
		give_up("cannot listen on port %u: %m", port);
	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		give_up("nobody came: %m");
	close(listener);
	return fd;
}

static void trade(struct side *side, const void *own, void *other, size_t length)
{
	size_t done = 0;

	if (write(side->talk, own, length) != (ssize_t)length)
		give_up("the other end is gone: %m");
	while (done < length) {
		ssize_t result = read(side->talk, (char *)other + done, length - done);

		if (result <= 0)
			give_up("the other end is gone");
		done += (size_t)result;
	}
}

bool side_meet(struct side *side, bool flag)
{
	uint8_t own = flag, other;

	trade(side, &own, &other, 1);
	return own || other;
}

/* The connection may be the first thing that the other end's kernel closes. */
void side_await_end(struct side *side)
{
	uint8_t byte;

	if (read(side->talk, &byte, 1) > 0)
		give_up("the other end is still there");
	usleep(AFTERLIFE_US);
}

/* --- memory ----------------------------------------------------------------------------------- */

uint32_t slot_length(const struct settings *settings)
{
	return (settings->limits.length_max + GRH + 63) / 64 * 64 + 64;
}

uint64_t slot_offset(const struct settings *settings, uint32_t index)
{
	return (uint64_t)index * slot_length(settings);
}

static void fill_surroundings(struct side *side)
{
	pattern_fill(side->arena, side->arena_length, SURROUNDING_PATTERN, 0);
}

static void check_surrounding(const struct side *side, uint64_t from, uint64_t to)
{
	uint64_t right = pattern_check(side->arena + from, to - from, SURROUNDING_PATTERN, from);

	if (right < to - from)
		give_up("a byte that was never registered has changed, at offset %llu",
			(unsigned long long)from + right);
}

void side_check_surroundings(const struct side *side)
{
	uint64_t from = 0;

	for (int area = 0; area < AREA_COUNT; area++) {
		uint64_t begin = (uint64_t)(side->area[area] - side->arena);

		check_surrounding(side, from, begin);
		from = begin + side->area_length[area];
	}
	check_surrounding(side, from, side->arena_length);
}

/* All areas but the counter begin at odd addresses. */
static void lay_out(struct side *side)
{
	uint64_t slots = slot_offset(side->settings, OPERATIONS), at = SURROUNDING;

	for (int area = 0; area < AREA_COUNT; area++) {
		side->area_length[area] = area == AREA_COUNTER ? 8 : slots;
		side->arena_length += side->area_length[area] + SURROUNDING;
	}
	side->arena_length += SURROUNDING;
	side->arena = mmap(NULL, side->arena_length, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (side->arena == MAP_FAILED)
		give_up("no memory: %m");
	for (int area = 0; area < AREA_COUNT; area++) {
		side->area[area] = side->arena + at + (area == AREA_COUNTER ? 0 : 13);
		at += side->area_length[area] + SURROUNDING;
	}
	fill_surroundings(side);
}

static void register_areas(struct side *side)
{
	static const int rights[AREA_COUNT] = {
		[AREA_LANDING] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
		[AREA_SERVED] = IBV_ACCESS_REMOTE_READ,
		[AREA_FETCHED] = IBV_ACCESS_LOCAL_WRITE,
		[AREA_COUNTER] = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};

	for (int area = 0; area < AREA_COUNT; area++) {
		side->mr[area] = ibv_reg_mr(side->pd, side->area[area], side->area_length[area],
					    rights[area]);
		if (!side->mr[area])
			give_up("ibv_reg_mr: %m");
		side->own.address[area] = (uintptr_t)side->area[area];
		side->own.rkey[area] = side->mr[area]->rkey;
	}
}

/* --- verbs ------------------------------------------------------------------------------------ */

static void open_device(struct side *side)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *wanted = side->settings->device;

	for (int i = 0; list && list[i] && !side->context; i++)
		if (!wanted || !strcmp(ibv_get_device_name(list[i]), wanted))
			side->context = ibv_open_device(list[i]);
	if (!side->context)
		give_up("cannot open the device %s: %m", wanted ? wanted : "");
	ibv_free_device_list(list);
}

static void make_qp(struct side *side)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2 * OPERATIONS,
			 .max_recv_wr = 2 * OPERATIONS,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.qp_type = types[side->settings->limits.transport],
	};

	side->pd = ibv_alloc_pd(side->context);
	side->cq = ibv_create_cq(side->context, 8 * OPERATIONS, NULL, NULL, 0);
	if (!side->pd || !side->cq)
		give_up("no PD or CQ: %m");
	attr.send_cq = attr.recv_cq = side->cq;
	side->qp = ibv_create_qp(side->pd, &attr);
	if (!side->qp)
		give_up("ibv_create_qp: %m");
	side->own.qpn = side->qp->qp_num;
	if (ibv_query_gid(side->context, 1, (int)side->settings->gid_index, &side->own.gid))
		give_up("there is no GID %u: %m", side->settings->gid_index);
}

void side_open(struct side *side, const struct settings *settings)
{
	int one = 1;

	*side = (struct side){ .settings = settings };
	open_device(side);
	make_qp(side);
	lay_out(side);
	register_areas(side);
	side->talk = settings->server ? connect_to(settings->server, settings->port)
				      : accept_on(settings->port);
	setsockopt(side->talk, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	side->own.seed = settings->seed;
}

static void must_end(int error, const char *what)
{
	if (error)
		give_up("%s cannot be ended: %s", what, strerror(error));
}

void side_close(struct side *side)
{
	if (side->qp)
		must_end(ibv_destroy_qp(side->qp), "the QP");
	if (side->ah)
		must_end(ibv_destroy_ah(side->ah), "the address handle");
	for (int area = 0; area < AREA_COUNT; area++)
		if (side->mr[area])
			must_end(ibv_dereg_mr(side->mr[area]), "a region");
	must_end(ibv_destroy_cq(side->cq), "the CQ");
	must_end(ibv_dealloc_pd(side->pd), "the PD");
	must_end(ibv_close_device(side->context), "the device");
	munmap(side->arena, side->arena_length);
	close(side->talk);
}

static void modify(struct side *side, struct ibv_qp_attr *attr, int mask)
{
	int error = ibv_modify_qp(side->qp, attr, mask);

	if (error)
		give_up("ibv_modify_qp to state %d: %s", attr->qp_state, strerror(error));
}

static struct ibv_ah_attr way_to_other(const struct side *side)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = side->other.gid,
			 .sgid_index = (uint8_t)side->settings->gid_index,
			 .hop_limit = 64 },
	};
}

static void to_init(struct side *side)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int mask = IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX;

	modify(side, &reset, IBV_QP_STATE);
	if (side->settings->limits.transport == TRANSPORT_RC)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	attr.qp_access_flags &= ~side->settings->denied_access;
	mask |= side->settings->limits.transport == TRANSPORT_UD ? IBV_QP_QKEY
								 : IBV_QP_ACCESS_FLAGS;
	modify(side, &attr, mask);
}

static enum ibv_mtu mtu_code(uint32_t mtu)
{
	enum ibv_mtu code = IBV_MTU_256;

	while ((128u << code) < mtu)
		code++;
	return code;
}

static void to_rtr(struct side *side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu_code(side->settings->limits.mtu),
		.dest_qp_num = side->other.qpn,
		.rq_psn = side->other.psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = way_to_other(side),
	};
	int mask = IBV_QP_STATE;

	if (side->settings->limits.transport != TRANSPORT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (side->settings->limits.transport == TRANSPORT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	modify(side, &attr, mask);
}

static void to_rts(struct side *side)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = side->own.psn,
		.timeout = side->settings->patience.ack_timeout,
		.retry_cnt = side->settings->patience.retry_count,
		.rnr_retry = side->settings->patience.rnr_retry,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (side->settings->limits.transport == TRANSPORT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	modify(side, &attr, mask);
}

static void forget_completions(struct side *side)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(side->cq, 1, &wc) > 0)
		;
}

void side_connect(struct side *side)
{
	side->own.psn = (uint32_t)now_ns() & 0xffffff;
	to_init(side);
	forget_completions(side);
	trade(side, &side->own, &side->other, sizeof(side->own));
	to_rtr(side);
	to_rts(side);
	if (side->settings->limits.transport == TRANSPORT_UD && !side->ah) {
		struct ibv_ah_attr way = way_to_other(side);

		side->ah = ibv_create_ah(side->pd, &way);
		if (!side->ah)
			give_up("ibv_create_ah: %m");
	}
	side_meet(side, false);
}
