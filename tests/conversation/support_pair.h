/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two adapters, A and B, in the memory of this process; the test controls the wire between them.
 * What is sent is pulled out, compared with lines of vb_packet_describe() and held in flight until
 * the test delivers or loses it. inject() plays packets in the same words at an adapter. Time
 * stands still unless the test moves it. Everything is destroyed, with checks, when the test's
 * process ends.
 */
#ifndef VB_TESTS_CONVERSATION_SUPPORT_PAIR_H
#define VB_TESTS_CONVERSATION_SUPPORT_PAIR_H

#include "harness.h"
#include "nic/cq.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pd.h"
#include "nic/qp.h"
#include "nic/rings.h"
#include "nic/srq.h"
#include "packet_words.h"
#include "wire/packet.h"
#include "wire/syndrome.h"

enum side { A, B };

/* Offsets in each node's region. The whole region is filled with a pattern at first. */
enum {
	LOCAL = 0x00000, /* what requests send */
	SINK = 0x40000, /* where READs and atomics put their results */
	TARGET = 0x80000, /* the target of the peer's WRITEs, READs and atomics */
	RECV = 0xc0000, /* receive number n uses RECV + n * RECV_STEP */
	RECV_STEP = 0x1000,
	MEMORY_LENGTH = 0x100000,
};

#define IOVA_A 0x1000000ull
#define IOVA_B 0x2000000ull
#define QKEY 0x11111111u
#define MS 1000000ull /* in ns */
#define ACK_TIMEOUT_NS (4096ull << 14) /* of setup.timeout 14 */
#define RIGHTS_ALL                                                                \
	(VB_ACCESS_LOCAL_WRITE | VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | \
	 VB_ACCESS_REMOTE_ATOMIC | VB_ACCESS_MW_BIND)
#define RIGHTS_REMOTE (VB_ACCESS_REMOTE_WRITE | VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC)

struct setup {
	enum vb_qp_type type; /* A's; B's is the same, or XRC_RECV for XRC_SEND */
	uint32_t mtu;
	uint32_t send_depth;
	uint32_t recv_depth;
	uint32_t sge_max;
	uint32_t inline_max;
	uint32_t cq_depth;
	bool signal_all;
	bool has_srq; /* B has a shared receive queue (XRC: always) */
	uint32_t srq_limit;
	uint32_t tag_count; /* of B's SRQ, which is then for tag matching */
	uint32_t tag_depth;
	bool is_ipv6;
	uint8_t timeout;
	uint8_t retry_count;
	uint8_t rnr_retry;
	uint8_t min_rnr_timer;
	uint32_t reads_out;
	uint32_t reads_in;
	uint32_t qp_access;
	uint32_t mr_access;
	uint32_t psn[2]; /* the first PSN that each side sends */
	enum vb_qp_state state[2]; /* how far to bring each QP */
	uint64_t mr_length; /* of the main region; 0: all of it */
	uint32_t window_packets_max; /* 0: the adapter's default */
	uint32_t window_bytes_max; /* 0: no bound */
	uint32_t batch_qpn_mask;
	uint32_t flight_bytes_max;
	uint32_t train_length_min; /* 0: no trains */
	uint32_t train_length_max;
	uint32_t train_sample_bytes; /* 0: always trains */
	bool has_one_source_port;
	uint32_t batch_segments_max;
	enum vb_icrc_mode icrc_mode;
};

enum { OBJECTS_MAX = 64, HELD_MAX = 128 };

struct node {
	struct vb_nic *nic;
	struct vb_key_row *key_rows;
	struct vb_qp_row *qp_rows;
	uint8_t *zero_page;
	uint8_t *device_memory;
	struct vb_gid gid;
	struct vb_pd *pd;
	struct vb_pd *other_pd;
	struct vb_cq *send_cq;
	struct vb_cq *recv_cq;
	struct vb_srq *srq;
	struct vb_xrcd *xrcd;
	struct vb_mr *mr;
	struct vb_qp *qp;
	uint8_t *memory; /* MEMORY_LENGTH bytes */
	uint64_t iova; /* of memory[0] */
	/* Objects that tests made in addition; destroyed at the end in the right order. */
	struct vb_qp *qps[OBJECTS_MAX];
	struct vb_mr *mrs[OBJECTS_MAX];
	struct vb_mw *mws[OBJECTS_MAX];
	struct vb_ah *ahs[OBJECTS_MAX];
};

struct held {
	enum side from;
	struct vb_flow flow;
	uint16_t ip_id;
	uint16_t shm_link; /* the link that the packet takes; 0: the wire */
	struct vb_train train;
	struct vb_reference references[VB_SGE_MAX];
	uint32_t length;
	uint8_t bytes[4096 + 128];
	char text[256];
};

struct pair {
	struct setup setup;
	struct node node[2];
	uint64_t now_ns;
	struct held held[HELD_MAX]; /* packets in flight, oldest first */
	uint32_t held_count;
	struct held early[2]; /* pulled by wait_until_work(); the next packet that the side sends */
	bool has_early[2];
	struct vb_sge sges[64]; /* of requests being built */
	uint32_t sge_next;
};

/* Setting up */

/* RC, UC, UD or XRC_SEND with the usual attributes; a test changes those it is about. */
struct setup setup_of(enum vb_qp_type type, uint32_t mtu);
struct pair *pair_connect(const struct setup *setup);
struct pair *pair_connect_rc(uint32_t mtu);
struct pair *pair_connect_uc(uint32_t mtu);
struct pair *pair_connect_ud(uint32_t mtu);
struct pair *pair_connect_xrc(uint32_t mtu);

/* Attributes that bring one side's QP to `state` from the state before it, and their mask. */
struct vb_qp_attr attr_towards(struct pair *p, enum side side, enum vb_qp_state state,
			       uint32_t *mask);
/* Brings a QP of one side, fresh or in RESET, up to `state`. */
void bring_up(struct pair *p, enum side side, struct vb_qp *qp, vb_qpn peer,
	      enum vb_qp_state state);
/* Changes only the state, as for RESET, ERR, SQD, and back to RTS from SQD and SQE. */
void modify_state(struct pair *p, enum side side, enum vb_qp_state state);
void expect_state(struct pair *p, enum side side, enum vb_qp_state state);

struct vb_qp *make_qp(struct pair *p, enum side side); /* like the main one, same CQs; in RESET */
struct vb_mr *make_mr(struct pair *p, enum side side, const struct vb_mr_init *init);
struct vb_mr *make_mr_in(struct pair *p, enum side side, struct vb_pd *pd,
			 const struct vb_mr_init *init);
struct vb_mr_init mr_init_at(struct pair *p, enum side side, uint32_t offset, uint32_t length,
			     uint32_t access);
struct vb_mw *make_mw(struct pair *p, enum side side, enum vb_mw_type type);
struct vb_ah *make_ah(struct pair *p, enum side side, const struct vb_gid *destination);
vb_err drop_qp(struct pair *p, enum side side, struct vb_qp *qp);
vb_err drop_mr(struct pair *p, enum side side, struct vb_mr *mr);
vb_err drop_mw(struct pair *p, enum side side, struct vb_mw *mw);

static inline struct node *node_of(struct pair *p, enum side side)
{
	return &p->node[side];
}

static inline uint32_t key_of(struct pair *p, enum side side)
{
	return vb_mr_key(p->node[side].mr);
}

static inline uint32_t recv_at(uint64_t wr_id)
{
	return (uint32_t)(RECV + wr_id * RECV_STEP);
}

/*
 * Posting. Requests are signaled; a `request` function only builds one, for the test to change and
 * post.
 */

struct vb_sge sge_at(struct pair *p, enum side side, uint32_t offset, uint32_t length);
struct vb_send_request send_request(struct pair *p, enum side side, uint64_t wr_id,
				    uint32_t length);
struct vb_send_request write_request(struct pair *p, enum side side, uint64_t wr_id,
				     uint32_t length);
struct vb_send_request read_request(struct pair *p, enum side side, uint64_t wr_id,
				    uint32_t length);
struct vb_send_request fetch_add_request(struct pair *p, enum side side, uint64_t wr_id,
					 uint64_t add);
struct vb_send_request compare_swap_request(struct pair *p, enum side side, uint64_t wr_id,
					    uint64_t compare, uint64_t swap);
struct vb_send_request atomic_write_request(struct pair *p, enum side side, uint64_t wr_id);
/* UD: to the other side's QP. */
struct vb_send_request datagram_request(struct pair *p, enum side side, uint64_t wr_id,
					uint32_t length);
struct vb_send_request bind_request(struct pair *p, enum side side, uint64_t wr_id,
				    struct vb_mw *mw, uint32_t offset, uint32_t length,
				    uint32_t access);
struct vb_send_request invalidate_request(uint64_t wr_id, uint32_t key);
/* The same from one buffer, whose lkey opens no memory. */
struct vb_send_request with_wrong_lkey(struct pair *p, struct vb_send_request request);

void post(struct pair *p, enum side side, struct vb_send_request request);
vb_err try_post(struct pair *p, enum side side, struct vb_send_request request);
void post_send(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
void post_send_unsignaled(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
void post_write(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
void post_write_imm(struct pair *p, enum side side, uint64_t wr_id, uint32_t length, uint32_t imm);
void post_read(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
void post_fetch_add(struct pair *p, enum side side, uint64_t wr_id, uint64_t add);
void post_compare_swap(struct pair *p, enum side side, uint64_t wr_id, uint64_t compare,
		       uint64_t swap);
void post_datagram(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
/* Posts to B's SRQ if there is one. The buffer is recv_at(wr_id). */
void post_recv(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
vb_err try_post_recv(struct pair *p, enum side side, uint64_t wr_id, uint32_t length);
vb_err try_post_recv_sges(struct pair *p, enum side side, uint64_t wr_id, const struct vb_sge *sges,
			  uint32_t count);

/* The wire */

/*
 * `side` now sends exactly these packets; they are then in flight. Lines are compared by
 * words_match(). A train has two more words: "packets=" and "data=", the bytes that it refers to.
 */
#define expect_sent(p, side, ...) \
	pair_expect_sent(__FILE__, __LINE__, p, side, (const char *[]){ __VA_ARGS__, NULL })
#define expect_silence(p, side) \
	pair_expect_sent(__FILE__, __LINE__, p, side, (const char *[]){ NULL })
void pair_expect_sent(const char *file, int line, struct pair *p, enum side side,
		      const char *const *expected);

void send_all(struct pair *p, enum side side); /* puts in flight whatever the side has to send */
void deliver(struct pair *p); /* everything in flight, in order, in one batch a side */
void deliver_one_by_one(struct pair *p); /* the same, each packet in a call of its own */
/* leaves it in flight, so this can also duplicate */
void deliver_nth(struct pair *p, uint32_t index);
void lose(struct pair *p); /* everything in flight */
void corrupt_nth(struct pair *p, uint32_t index); /* flips one bit of the last payload byte */
/* a perfect wire until neither side has anything to send; time stands still */
void settle(struct pair *p);

/*
 * Delivers a hand-made packet from the other side, in the words of packet_words.h. The defaults are
 * the TARGET, the main region, the peer's QP and Q_Key, and the SRQ.
 */
void inject(struct pair *p, enum side to, const char *line);

/* Time */

bool pair_has_packet(struct pair *p, enum side side);
void wait_ns(struct pair *p, uint64_t ns); /* timers fire on the way, each at its deadline */
/* until the side has a packet to send; returns how long */
uint64_t wait_until_work(struct pair *p, enum side side);
uint64_t wait_until_completion(struct pair *p, enum side side);

/* Nothing more happens, however long the test waits. */
void expect_rest(struct pair *p, enum side side);

/* Results */

/* All completions that are there: first those of the send CQ, then those of the receive CQ. */
#define expect_completions(p, side, ...) \
	pair_expect_completions(__FILE__, __LINE__, p, side, (const char *[]){ __VA_ARGS__, NULL })
#define expect_no_completion(p, side) \
	pair_expect_completions(__FILE__, __LINE__, p, side, (const char *[]){ NULL })
void pair_expect_completions(const char *file, int line, struct pair *p, enum side side,
			     const char *const *expected);
#define expect_completions_of(cq, ...) \
	pair_expect_completions_of(__FILE__, __LINE__, cq, (const char *[]){ __VA_ARGS__, NULL })
void pair_expect_completions_of(const char *file, int line, struct vb_cq *cq,
				const char *const *expected);

#define expect_events(p, side, ...) \
	pair_expect_events(__FILE__, __LINE__, p, side, (const char *[]){ __VA_ARGS__, NULL })
#define expect_no_event(p, side) \
	pair_expect_events(__FILE__, __LINE__, p, side, (const char *[]){ NULL })
void pair_expect_events(const char *file, int line, struct pair *p, enum side side,
			const char *const *expected);

#define expect_counter(p, side, name, value) \
	EXPECT_EQ(vb_nic_counters((p)->node[side].nic)->counts[VB_COUNTER_##name], value)
#define expect_dropped(p, side, name, value) \
	EXPECT_EQ(vb_nic_counters((p)->node[side].nic)->drops[VB_DROP_##name], value)

/*
 * expect_copied(): `length` bytes at one place are the original ones of the other place.
 * expect_untouched(): the pattern is not overwritten. expect_injected(): all bytes are the injected
 * one.
 */
#define expect_copied(p, from_side, from, to_side, to, length) \
	pair_expect_copied(__FILE__, __LINE__, p, from_side, from, to_side, to, length)
void pair_expect_copied(const char *file, int line, struct pair *p, enum side from_side,
			uint32_t from, enum side to_side, uint32_t to, uint32_t length);
#define expect_untouched(p, side, offset, length) \
	pair_expect_copied(__FILE__, __LINE__, p, side, offset, side, offset, length)
#define expect_injected(p, side, offset, length) \
	pair_expect_injected(__FILE__, __LINE__, p, side, offset, length)
void pair_expect_injected(const char *file, int line, struct pair *p, enum side side,
			  uint32_t offset, uint32_t length);
uint64_t word_at(struct pair *p, enum side side, uint32_t offset);
void set_word(struct pair *p, enum side side, uint32_t offset, uint64_t value);
void set_bytes(struct pair *p, enum side side, uint32_t offset, uint8_t value, uint32_t length);

#endif
