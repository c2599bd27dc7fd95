/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of fuzz_shm_link. Their names in the kernel begin with the number of this process, so
 * that several processes can run at the same time.
 */
#include "support_local_peer.h"

#include "support_input.h"

#include "base/bytes.h"
#include "host/memory/dma.h"
#include "host/registry/port_member_priv.h"
#include "host/sys/sealed.h"
#include "link/fd.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/peer_memory.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "wire/header.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(call) REQUIRE((call) == VB_OK)
#define RIGHTS                                                                    \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC)
#define PEER_QPN (LOCAL_PEER_PEER << VB_PORT_MEMBER_QPN_SHIFT | 9u)
#define PEER_KEY 0x00123400u
#define PSN 100u

enum { GUARD = 4096, REGION = 16384, FRAMES = 32, SLOTS = 32, UNTOUCHED = 0x5a };

/*
 * Rows of our engine. There are fewer than a block can publish: the engine is made from scratch for
 * each input, and checks every row when it begins.
 */
enum { ROWS = 256 };

static struct {
	struct vb_nic *nic;
	struct vb_pd *pd;
	struct vb_cq *cq;
	struct vb_qp *qp;
	struct vb_mr *mr;
	struct vb_port_member *member;
	struct vb_local_peers *peers;
	uint8_t *memory; /* GUARD, REGION, GUARD */
	uint8_t *tables;
	uint64_t now_ns;
	struct vb_frame frames[FRAMES];
	struct vb_slot slots[SLOTS];
} ours;

static struct {
	struct vb_mail_box *box;
	struct vb_export *block;
	int block_fd, ring_fd, wake_fd, segment_fd;
	struct vb_ring_memory *ring;
	struct vb_ring_writer writer;
	struct vb_ring_memory *their_ring;
	uint64_t answer;
} peer;

static const struct vb_gid gid = { .raw = { [10] = 0xff, 0xff, 10, 0, 0, 1 } };

/* --- ours --- */

static size_t tables_size(void)
{
	return ROWS * (sizeof(struct vb_key_row) + sizeof(struct vb_qp_row)) + GUARD;
}

static void make_engine(void)
{
	struct vb_nic_config config = {
		.key_row_count = ROWS,
		.qp_row_count = ROWS,
		.seed = 1,
		.qpn_first = LOCAL_PEER_SELF << VB_PORT_MEMBER_QPN_SHIFT,
		.qpn_count = 1u << VB_PORT_MEMBER_QPN_SHIFT,
		.train_length_min = 4096,
		.train_length_max = 8192,
	};

	ours.tables = mmap(NULL, tables_size(), PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(ours.tables != MAP_FAILED);
	config.key_rows = (void *)ours.tables;
	config.qp_rows = (void *)(config.key_rows + ROWS);
	config.zero_page = (uintptr_t)(config.qp_rows + ROWS);
	MUST(vb_nic_create(&config, &ours.nic));
	MUST(vb_nic_set_gid(ours.nic, 0, &gid));
	MUST(vb_pd_create(ours.nic, &ours.pd));
	MUST(vb_cq_create(ours.nic, 256, NULL, &ours.cq));
}

static void make_region(void)
{
	struct vb_mr_init init = { .length = REGION, .access = RIGHTS };

	ours.memory = malloc(REGION + 2 * GUARD);
	REQUIRE(ours.memory);
	memset(ours.memory, UNTOUCHED, REGION + 2 * GUARD);
	init.address = init.iova = (uintptr_t)ours.memory + GUARD;
	MUST(vb_mr_create(ours.pd, &init, &ours.mr));
}

static void make_qp(void)
{
	struct vb_qp_init init = {
		.type = VB_QP_RC,
		.send_cq = ours.cq,
		.recv_cq = ours.cq,
		.send_depth = 64,
		.recv_depth = 64,
		.send_sge_max = 1,
		.recv_sge_max = 1,
		.signal_all = true,
	};
	struct vb_qp_attr attr = {
		.state = VB_STATE_INIT,
		.port = 1,
		.access = RIGHTS,
		.address = { .destination = gid },
		.path_mtu = 1024,
		.destination = { PEER_QPN },
		.rq_psn = { PSN },
		.sq_psn = { PSN },
		.reads_in = 4,
		.reads_out = 4,
		.timeout = 14,
		.retry_count = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
	};

	MUST(vb_qp_create(ours.pd, &init, &ours.qp));
	MUST(vb_qp_modify(ours.qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS));
	attr.state = VB_STATE_RTR;
	MUST(vb_qp_modify(ours.qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				  VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER));
	attr.state = VB_STATE_RTS;
	MUST(vb_qp_modify(ours.qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_SQ_PSN | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				  VB_ATTR_RNR_RETRY | VB_ATTR_READS_OUT));
	for (uint32_t i = 0; i < 8; i++) {
		struct vb_sge sge = { (uintptr_t)ours.memory + GUARD + i * 1024,
				      1024 + i % 4 * 1536, vb_mr_key(ours.mr) };
		struct vb_recv_request request = { .wr_id = i, .sges = &sge, .sge_count = 1 };

		MUST(vb_qp_post_recv(ours.qp, &request));
	}
}

/* --- the peer --- */

static const struct vb_mail_user *user(void)
{
	static struct vb_mail_user user;

	user = (struct vb_mail_user){ .uid = geteuid(), .name_uid = (uid_t)getpid() | 0x80000000u };
	return &user;
}

static void make_peer(void)
{
	struct vb_mail_name name = vb_port_member_name(user(), LOCAL_PEER_PEER);

	peer.box = vb_mail_open(user(), VB_MAIL_CONNECTIONS);
	REQUIRE(peer.box && vb_mail_claim(peer.box, &name));
	MUST(vb_export_create(&peer.block, &peer.block_fd));
	peer.ring_fd = vb_sealed_open("ring", sizeof(struct vb_ring_memory));
	peer.ring = vb_sealed_map(peer.ring_fd, sizeof(*peer.ring), PROT_READ | PROT_WRITE);
	REQUIRE(peer.ring);
	vb_ring_writer_init(&peer.writer, peer.ring);
	peer.wake_fd = vb_fd_own(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	peer.segment_fd = vb_sealed_open("segment", LOCAL_PEER_LENGTH);
	REQUIRE(peer.wake_fd >= 0 && peer.segment_fd >= 0);
	atomic_store((_Atomic uint32_t *)(void *)&peer.block->head.mark, 1); /* the peer is alive */
}

static void end_peer(void)
{
	if (peer.their_ring)
		munmap(peer.their_ring, sizeof(*peer.their_ring));
	munmap(peer.ring, sizeof(*peer.ring));
	vb_export_unmap(peer.block);
	vb_fd_close(peer.block_fd);
	vb_fd_close(peer.ring_fd);
	vb_fd_close(peer.wake_fd);
	vb_fd_close(peer.segment_fd);
	vb_mail_close(peer.box);
	memset(&peer, 0, sizeof(peer));
}

int local_peer_block_fd(void)
{
	return peer.block_fd;
}

int local_peer_ring_fd(void)
{
	return peer.ring_fd;
}

int local_peer_wake_fd(void)
{
	return peer.wake_fd;
}

int local_peer_segment_fd(void)
{
	return peer.segment_fd;
}

uint64_t local_peer_incarnation(void)
{
	return peer.block->head.incarnation;
}

struct vb_ring_memory *local_peer_ring(void)
{
	return peer.ring;
}

uint32_t local_peer_ring_next(void)
{
	return (uint32_t)peer.writer.produced;
}

struct vb_ring_memory *local_peer_their_ring(void)
{
	return peer.their_ring;
}

struct vb_export_head *local_peer_head(void)
{
	return &peer.block->head;
}

struct vb_key_row *local_peer_key_row(void)
{
	return &peer.block->key_rows[PEER_KEY >> 8 & (VB_EXPORT_KEY_ROWS - 1)];
}

struct vb_qp_row *local_peer_qp_row(void)
{
	return &peer.block->qp_rows[PEER_QPN & (VB_EXPORT_QP_ROWS - 1)];
}

void local_peer_make_rows(void)
{
	*local_peer_key_row() = (struct vb_key_row){
		.key = PEER_KEY,
		.kind = VB_KEY_REGION,
		.access = RIGHTS,
		.pd = 1,
		.iova = LOCAL_PEER_ADDRESS,
		.length = LOCAL_PEER_LENGTH,
		.address = LOCAL_PEER_ADDRESS,
		.segment = LOCAL_PEER_SEGMENT,
	};
	*local_peer_qp_row() = (struct vb_qp_row){
		.qpn = PEER_QPN,
		.domain = 1,
		.access = RIGHTS,
		.peer_qpn = vb_qp_number(ours.qp).v,
		.accepts = 1,
		.peer = gid,
		.local = gid,
		.is_direct = 1,
		.reads_in = 4,
	};
}

/* Reads an offer of ours, from which the peer takes the ring. */
static void read_offer(const uint8_t *bytes, const struct vb_mail *mail)
{
	struct vb_local_peer_offer offer;
	struct vb_ring_memory *ring;

	if (mail->length != sizeof(offer) || mail->fd_count != VB_OFFER_FDS)
		return;
	memcpy(&offer, bytes, sizeof(offer));
	peer.answer = offer.ring;
	ring = vb_sealed_map(mail->fds[VB_OFFER_RING], sizeof(*ring), PROT_READ | PROT_WRITE);
	if (!ring)
		return;
	if (peer.their_ring)
		munmap(peer.their_ring, sizeof(*peer.their_ring));
	peer.their_ring = ring;
}

static void empty_box(void)
{
	uint8_t bytes[256];
	struct vb_mail mail;

	while (vb_mail_receive(peer.box, bytes, sizeof(bytes), &mail)) {
		read_offer(bytes, &mail);
		vb_mail_close_fds(&mail);
	}
}

uint64_t local_peer_answer(void)
{
	empty_box();
	return peer.answer;
}

void local_peer_mail(const void *bytes, size_t length, const int *fds, uint32_t fd_count)
{
	uint8_t message[256] = { 0 };
	struct vb_mail mail = { .length = length, .fd_count = fd_count };
	uint32_t kind;

	memcpy(&kind, bytes, sizeof(kind));
	memcpy(message, bytes,
	       length < sizeof(struct vb_local_peer_offer) ? length
							   : sizeof(struct vb_local_peer_offer));
	if (kind != VB_LOCAL_PEER_OFFER)
		memcpy(message, bytes, sizeof(struct vb_local_peer_segment));
	for (uint32_t i = 0; i < fd_count; i++)
		mail.fds[i] = vb_fd_own(fds[i]);
	vb_local_peers_on_mail(ours.peers, kind, message, &mail);
	vb_mail_close_fds(&mail);
	if (vb_local_peer_is_open(ours.peers, LOCAL_PEER_PEER) && !vb_qp_link(ours.qp))
		vb_local_peer_attach_qp(ours.peers, LOCAL_PEER_PEER, ours.qp);
}

uint32_t local_peer_packet(uint8_t *bytes, uint8_t opcode, uint8_t psn, bool has_right_flow)
{
	struct vb_flow flow = { .source = gid, .destination = gid };
	struct vb_bth bth = { .opcode = opcode,
			      .pkey = 0xffff,
			      .destination = vb_qp_number(ours.qp),
			      .ack_request = true,
			      .psn = { PSN + psn - 2u } };
	struct vb_piggyback_ack ack = { .is_there = !(opcode & 1),
					.psn = { PSN + psn },
					.aeth = { .syndrome = psn } };
	struct vb_shm_link_head head = { 0 };

	if (!has_right_flow)
		memset(&flow, opcode, sizeof(flow));
	head.flow_mark = vb_flow_mark(&flow);
	vb_piggyback_ack_store(head.piggyback_ack, &ack);
	memcpy(bytes, &head, sizeof(head));
	vb_bth_store(bytes + sizeof(head), &bth);
	return (uint32_t)sizeof(head) + VB_BTH_SIZE;
}

uint32_t local_peer_train(uint8_t *bytes, const struct vb_train *train,
			  const struct vb_reference *references, uint8_t opcode, uint8_t psn)
{
	struct vb_shm_link_head head;
	uint32_t word;
	uint8_t packet[64];
	uint32_t length = local_peer_packet(packet, opcode, psn, true) - (uint32_t)sizeof(head);
	uint32_t count = train->reference_count < VB_SGE_MAX ? train->reference_count : VB_SGE_MAX;
	uint8_t *to = bytes;

	memcpy(&head, packet, sizeof(head));
	memcpy(&word, head.piggyback_ack, sizeof(word));
	word |= VB_IS_TRAIN;
	memcpy(head.piggyback_ack, &word, sizeof(word));
	memcpy(to, &head, sizeof(head));
	to += sizeof(head);
	memcpy(to, train, sizeof(*train));
	to += sizeof(*train);
	memcpy(to, references, count * sizeof(*references));
	to += count * sizeof(*references);
	memcpy(to, packet + sizeof(head), length);
	to += length;
	memset(to, 0, VB_ICRC_SIZE);
	return (uint32_t)(to + VB_ICRC_SIZE - bytes);
}

uint32_t local_peer_key(void)
{
	return PEER_KEY;
}

void local_peer_put(const uint8_t *bytes, uint32_t length)
{
	uint8_t *to = vb_ring_reserve(&peer.writer, length);

	if (!to)
		return;
	memcpy(to, bytes, length);
	vb_ring_commit(&peer.writer, length);
}

/* --- what our end does --- */

static void poll_all(void)
{
	struct vb_completion completions[16];

	while (vb_cq_poll(ours.cq, completions, 16))
		;
}

void local_peer_receive(void)
{
	uint32_t count;

	while ((count = vb_local_peers_receive(ours.peers, ours.frames, FRAMES))) {
		vb_nic_receive(ours.nic, ours.now_ns += 1000, ours.frames, count);
		vb_local_peers_release(ours.peers);
	}
	poll_all();
}

void local_peer_post(enum vb_wr_opcode opcode, uint64_t offset, uint32_t length)
{
	struct vb_sge sge = { (uintptr_t)ours.memory + GUARD, length, vb_mr_key(ours.mr) };
	struct vb_send_request request = {
		.opcode = opcode,
		.sges = &sge,
		.sge_count = 1,
		.remote_address = LOCAL_PEER_ADDRESS + offset,
		.rkey = PEER_KEY,
		.compare_add = 1,
	};

	if (opcode == VB_WR_FETCH_ADD || opcode == VB_WR_COMPARE_SWAP)
		sge.length = 8;
	/* Every other request is executed while it is posted, if it can be. */
	if (!(offset & 1) && vb_qp_may_write_now(ours.qp, &request) &&
	    vb_qp_write_now(ours.qp, &request)) {
		vb_qp_conclude_write(ours.qp, &request, ours.now_ns);
		return;
	}
	if (vb_qp_post_send(ours.qp, &request) == VB_OK)
		vb_qp_publish_and_ring(ours.qp);
}

void local_peer_transmit(void)
{
	uint32_t count;

	do {
		vb_local_peers_flush(ours.peers);
		count = vb_nic_transmit(ours.nic, ours.now_ns += 1000, ours.slots, SLOTS);
		for (uint32_t i = 0; i < count; i++)
			if (ours.slots[i].path.link)
				(void)vb_local_peer_send(
					ours.peers,
					vb_local_peer_of_shm_link(ours.slots[i].path.link),
					&ours.slots[i]);
	} while (count);
	vb_local_peers_flush(ours.peers);
	vb_nic_fire_timers(ours.nic, ours.now_ns += 100000000);
	(void)vb_local_peers_ask_for_segments(ours.peers);
	poll_all();
}

void local_peer_look(bool buries)
{
	if (buries) {
		vb_local_peers_close_gone(ours.peers);
		return;
	}
	(void)vb_local_peers_begin_sleep(ours.peers);
	vb_local_peers_end_sleep(ours.peers);
	vb_local_peers_take_wake(ours.peers);
	vb_local_peers_offer_again(ours.peers);
}

/* --- beginning and end --- */

void local_peer_begin(void)
{
	MUST(vb_dma_install()); /* a segment may be shorter than it claims */
	make_engine();
	make_region();
	make_qp();
	make_peer();
	ours.member = calloc(1, sizeof(*ours.member));
	REQUIRE(ours.member);
	ours.member->box = vb_mail_open(user(), VB_MAIL_CONNECTIONS);
	REQUIRE(ours.member->box);
	ours.member->number = LOCAL_PEER_SELF;
	ours.member->user = *user();
	MUST(vb_local_peers_create(ours.nic, 0, &ours.peers));
	MUST(vb_local_peers_plug_in(ours.peers, ours.member));
	(void)vb_local_peer_request_link(ours.peers, LOCAL_PEER_PEER);
}

static void check_guards(void)
{
	for (uint32_t i = 0; i < GUARD; i++) {
		REQUIRE(ours.memory[i] == UNTOUCHED);
		REQUIRE(ours.memory[GUARD + REGION + i] == UNTOUCHED);
	}
}

void local_peer_end(void)
{
	check_guards();
	atomic_store(&peer.ring->busy, 0);
	vb_local_peers_destroy(ours.peers);
	vb_mail_close(ours.member->box);
	free(ours.member);
	MUST(vb_qp_destroy(ours.qp));
	MUST(vb_mr_destroy(ours.mr));
	MUST(vb_cq_destroy(ours.cq));
	MUST(vb_pd_destroy(ours.pd));
	MUST(vb_nic_destroy(ours.nic));
	munmap(ours.tables, tables_size());
	free(ours.memory);
	memset(&ours, 0, sizeof(ours));
	end_peer();
}
