/* SPDX-License-Identifier: BSD-2-Clause */
/* Stations, their notes, and what their adapters report about themselves. */
#include "support_station.h"

#include "host/registry/state_query.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define REST_US 5000 /* between two questions whether anything has changed */

struct board *board;

void make_network(void)
{
	make_wire();
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	EXPECT(board != MAP_FAILED);
}

/* --- stations --- */

static union ibv_gid gid_of(const char *text)
{
	struct vb_udp_address address = address_of(text);
	union ibv_gid gid;

	memcpy(gid.raw, address.ip, sizeof(gid.raw));
	return gid;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	EXPECT(list);
	for (uint32_t i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	EXPECT(context);
	return context;
}

static uint8_t index_of(struct ibv_context *context, const char *address)
{
	union ibv_gid wanted = gid_of(address);
	union ibv_gid gid;

	for (uint8_t i = 0; !ibv_query_gid(context, 1, i, &gid); i++)
		if (!memcmp(&gid, &wanted, sizeof(gid)))
			return i;
	FAIL("no GID %s", address);
}

static void modify(struct ibv_qp *qp, enum ibv_qp_state state, int mask)
{
	struct ibv_qp_attr attr = { .qp_state = state, .port_num = 1, .qkey = QKEY };

	EXPECT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask), 0);
}

static struct ibv_qp *make_qp(struct station *station, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = station->cq,
		.recv_cq = station->cq,
		.cap = { .max_send_wr = 2 * BURST,
			 .max_recv_wr = RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = 1,
			 .max_inline_data = sizeof(struct note) },
		.qp_type = type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(station->pd, &init);

	EXPECT(qp);
	return qp;
}

/* All QPs begin with PSN 0, so that datagrams of different senders are easily confused. */
static void make_datagram_qp(struct station *station)
{
	station->qp = make_qp(station, IBV_QPT_UD);
	modify(station->qp, IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	modify(station->qp, IBV_QPS_RTR, 0);
	modify(station->qp, IBV_QPS_RTS, IBV_QP_SQ_PSN);
}

struct ibv_ah *make_handle(struct station *station, const char *from, const char *to)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.grh = { .dgid = gid_of(to),
			 .sgid_index = index_of(station->context, from),
			 .hop_limit = 4 },
	};
	struct ibv_ah *ah = ibv_create_ah(station->pd, &attr);

	EXPECT(ah);
	return ah;
}

static void post_receive(struct station *station, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)station->memory + slot * SLOT, SLOT, station->mr->lkey };
	struct ibv_recv_wr request = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	EXPECT_EQ(ibv_post_recv(station->qp, &request, &bad), 0);
}

void open_station(struct station *station, const struct place *place, uint32_t reader)
{
	union ibv_gid group = gid_of(place->group);

	enter_end(place->end);
	setenv("VERBATIM_PATH", place->path, 1);
	station->reader = reader;
	station->context = open_device(place->device);
	station->pd = ibv_alloc_pd(station->context);
	station->cq = ibv_create_cq(station->context, 2 * RECEIVES, NULL, NULL, 0);
	EXPECT(station->pd && station->cq);
	station->mr = ibv_reg_mr(station->pd, station->memory, sizeof(station->memory),
				 IBV_ACCESS_LOCAL_WRITE);
	EXPECT(station->mr);
	make_datagram_qp(station);
	station->ah = make_handle(station, place->address, place->group);
	if (reader == NOBODY)
		return;
	for (uint64_t i = 0; i < RECEIVES; i++)
		post_receive(station, i);
	EXPECT_EQ(ibv_attach_mcast(station->qp, &group, 0), 0);
}

/* --- notes --- */

void serve(struct station *station)
{
	struct ibv_wc completions[BURST];
	struct note note;
	int count = ibv_poll_cq(station->cq, BURST, completions);

	EXPECT(count >= 0);
	for (int i = 0; i < count; i++) {
		EXPECT_STR(ibv_wc_status_str(completions[i].status), "success");
		if (completions[i].opcode != IBV_WC_RECV)
			continue;
		EXPECT_EQ(completions[i].byte_len, GRH + sizeof(note));
		memcpy(&note, station->memory + completions[i].wr_id * SLOT + GRH, sizeof(note));
		EXPECT(note.sender < SENDERS && note.sequence < SEQUENCES);
		atomic_fetch_add(&board->counts[station->reader][note.sender][note.sequence], 1);
		post_receive(station, completions[i].wr_id);
	}
	if (!count)
		sched_yield();
}

void send_note_to(struct station *station, struct ibv_ah *ah, uint32_t qpn, struct note note)
{
	struct ibv_sge sge = { (uintptr_t)&note, sizeof(note), 0 };
	struct ibv_send_wr request = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = { ah, qpn, QKEY },
	};
	struct ibv_send_wr *bad;

	while (ibv_post_send(station->qp, &request, &bad))
		serve(station);
}

void send_note(struct station *station, uint32_t sender, uint32_t sequence)
{
	send_note_to(station, station->ah, 0xffffff, (struct note){ sender, sequence });
}

uint32_t count_of(uint32_t reader, uint32_t sender, uint32_t sequence)
{
	return atomic_load(&board->counts[reader][sender][sequence]);
}

void await_note(struct station *station, uint32_t readers, uint32_t sender, uint32_t sequence)
{
	for (uint32_t i = 0; i < READERS; i++)
		while (readers & 1u << i && !count_of(i, sender, sequence))
			serve(station);
}

void expect_once(uint32_t reader, uint32_t sender, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (count_of(reader, sender, i) != 1)
			FAIL("reader %u got datagram %u of sender %u %u times", reader, i, sender,
			     count_of(reader, sender, i));
}

uint32_t count_all(uint32_t reader)
{
	uint32_t count = 0;

	for (uint32_t sender = 0; sender < SENDERS; sender++)
		for (uint32_t i = 0; i < SEQUENCES; i++)
			count += count_of(reader, sender, i);
	return count;
}

void expect_no_more_than_once(uint32_t reader)
{
	for (uint32_t sender = 0; sender < SENDERS; sender++)
		for (uint32_t i = 0; i < SEQUENCES; i++)
			if (count_of(reader, sender, i) > 1)
				FAIL("reader %u got datagram %u of sender %u %u times", reader, i,
				     sender, count_of(reader, sender, i));
}

/* --- readers --- */

pid_t fork_station(void)
{
	pid_t child = fork();

	EXPECT(child >= 0);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return child;
}

pid_t start_reader(uint32_t reader, struct place place)
{
	static struct station station;
	uint32_t ready_count = atomic_load(&board->ready_count);
	pid_t child = fork_station();

	if (!child) {
		open_station(&station, &place, reader);
		board->qpn[reader] = station.qp->qp_num;
		atomic_fetch_add(&board->ready_count, 1);
		for (;;) {
			serve(&station);
			if (atomic_exchange(&board->shall_close, false))
				EXPECT_EQ(close_range(3, ~0u, 0), 0);
		}
	}
	while (atomic_load(&board->ready_count) == ready_count)
		usleep(1000);
	return child;
}

void end_reader(pid_t child)
{
	int status;

	EXPECT_EQ(kill(child, SIGKILL), 0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	EXPECT(WIFSIGNALED(status)); /* the process has not failed before */
}

/* --- what adapters count --- */

static struct counts counts_in(const char *text)
{
	struct counts counts = { .has_qp_on_shm_link = strstr(text, ": shared memory, ") };
	const char *shm_links = strstr(text, "by shared memory: ");
	const char *copies = strstr(text, "by the wire again: ");

	if (!shm_links)
		return counts;
	counts.has_shm_links = true;
	EXPECT_EQ(sscanf(shm_links, "by shared memory: %lu packets sent, %lu received, %lu lost",
			 &counts.sent, &counts.received, &counts.lost),
		  3);
	EXPECT(!copies || sscanf(copies, "by the wire again: %lu", &counts.copies) == 1);
	return counts;
}

struct counts ask(pid_t pid)
{
	static struct vb_state_answer answer;
	uint32_t asked;

	for (;;) {
		struct vb_mail_box *box = vb_state_ask(VB_STATE_TEXT, &asked);

		EXPECT(box);
		while (vb_state_take(box, 1000, &answer))
			if (answer.pid == pid) {
				vb_state_close(box);
				return counts_in(answer.text);
			}
		vb_state_close(box);
	}
}

struct counts ask_when_quiet(pid_t pid, uint32_t reader)
{
	struct counts counts;

	do {
		counts = ask(pid);
		expect_no_more_than_once(reader);
	} while (counts.received != counts.copies);
	return counts;
}

/*
 * A process that answers has read its socket just before, and would have found a copy there, unless
 * its helper was reading at that moment and then lost its CPU.
 */
void await_rest(pid_t pid, uint32_t reader)
{
	unsigned long last;
	unsigned long now = 0;
	uint32_t unchanged = 0;

	while (unchanged < 10) {
		if (unchanged)
			usleep(REST_US);
		last = now;
		now = ask(pid).copies + count_all(reader);
		unchanged = now == last ? unchanged + 1 : 0;
	}
}

uint32_t send_until_by_shm_link(struct station *station, uint32_t readers, pid_t pid,
				uint32_t sequence)
{
	while (!ask(pid).received) {
		send_note(station, 0, sequence);
		await_note(station, readers, 0, sequence++);
	}
	return sequence;
}

void connect_to(struct station *station, const char *address, uint32_t qpn)
{
	struct ibv_qp *qp = make_qp(station, IBV_QPT_RC);
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .dgid = gid_of(address),
				      .sgid_index = index_of(station->context, "10.9.0.1") } },
	};

	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS),
		  0);
	attr.qp_state = IBV_QPS_RTR;
	EXPECT_EQ(ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER),
		  0);
}
