/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A short SEND on the wire that takes no turn of the engine has the same results as one sent by
 * doorbell and turns. (Shared-memory links: test_shm_link.c.)
 */
#include "support_pair.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CAPACITY = 4 };

static void post_quietly(struct pair *p, uint64_t wr_id, uint32_t length)
{
	struct vb_send_request request = send_request(p, A, wr_id, length);

	EXPECT(vb_qp_post_send(node_of(p, A)->qp, &request) == VB_OK);
	EXPECT(vb_qp_publish_sends(node_of(p, A)->qp));
}

static uint32_t send_at_once(struct pair *p, struct vb_slot slots[2])
{
	uint32_t count;

	(void)vb_qp_start_now(node_of(p, A)->qp, p->now_ns, slots, &count);
	return count;
}

static uint32_t send_by_turns(struct pair *p, struct vb_slot slots[CAPACITY])
{
	vb_qp_ring_doorbell(node_of(p, A)->qp);
	return vb_nic_transmit(node_of(p, A)->nic, p->now_ns, slots, CAPACITY);
}

/* A owes an ACK for a request of B if `owes_ack`. */
static struct pair *connect_and_owe(bool owes_ack)
{
	struct setup setup = setup_of(VB_QP_RC, 1024);
	struct pair *p;

	setup.batch_segments_max = 4;
	setup.has_one_source_port = true;
	p = pair_connect(&setup);
	post_recv(p, B, 2, 100);
	if (!owes_ack)
		return p;
	post_recv(p, A, 1, 100);
	post_send(p, B, 3, 8);
	expect_sent(p, B, "SEND_ONLY psn=5000 len=8 ack");
	deliver(p);
	expect_completions(p, A, "wr=1 SUCCESS RECV len=8");
	return p;
}

static void expect_same_slot(const struct vb_slot *a, const struct vb_slot *b)
{
	uint8_t bytes[2][256];

	EXPECT_EQ(a->length, b->length);
	EXPECT_EQ(a->ip_id, b->ip_id);
	EXPECT_EQ(a->continues, b->continues);
	EXPECT_EQ(a->is_numbered, b->is_numbered);
	EXPECT(!memcmp(&a->path.ip, &b->path.ip, sizeof(a->path.ip)));
	EXPECT(vb_slot_gather(a, bytes[0]) && vb_slot_gather(b, bytes[1]));
	EXPECT(!memcmp(bytes[0], bytes[1], a->length));
}

struct outcome {
	uint32_t count;
	struct vb_slot slots[CAPACITY];
	uint64_t tx_packets;
	uint64_t tx_bytes;
	uint64_t deadline_ns;
	bool has_work;
};

static struct outcome send_and_look(uint32_t length, bool owes_ack, bool goes_at_once)
{
	struct pair *p = connect_and_owe(owes_ack);
	struct vb_nic *nic = node_of(p, A)->nic;
	const uint64_t *counts = vb_nic_counters(nic)->counts;
	struct outcome outcome;

	post_quietly(p, 4, length);
	outcome.count = goes_at_once ? send_at_once(p, outcome.slots)
				     : send_by_turns(p, outcome.slots);
	outcome.tx_packets = counts[VB_COUNTER_TX_PACKETS];
	outcome.tx_bytes = counts[VB_COUNTER_TX_BYTES];
	outcome.deadline_ns = vb_nic_deadline(nic);
	outcome.has_work = vb_nic_has_work(nic);
	expect_silence(p, A);
	return outcome;
}

/* Two processes do the same: one sends in a turn of the engine, the other sends immediately. */
static void expect_same_packets(uint32_t length, bool owes_ack)
{
	struct outcome *by_turns = mmap(NULL, sizeof(*by_turns), PROT_READ | PROT_WRITE,
					MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct outcome at_once;
	int status;

	EXPECT(by_turns != MAP_FAILED);
	if (!fork()) {
		*by_turns = send_and_look(length, owes_ack, false);
		_exit(0);
	}
	EXPECT(wait(&status) > 0 && !status);
	at_once = send_and_look(length, owes_ack, true);
	EXPECT_EQ(at_once.count, 1 + owes_ack);
	EXPECT_EQ(at_once.count, by_turns->count);
	for (uint32_t i = 0; i < at_once.count; i++)
		expect_same_slot(&at_once.slots[i], &by_turns->slots[i]);
	EXPECT_EQ(at_once.tx_packets, by_turns->tx_packets);
	EXPECT_EQ(at_once.tx_bytes, by_turns->tx_bytes);
	EXPECT_EQ(at_once.deadline_ns, by_turns->deadline_ns);
	EXPECT_EQ(at_once.has_work, by_turns->has_work);
	munmap(by_turns, sizeof(*by_turns));
}

TEST(a_send_at_once_is_the_packet_that_it_would_be_by_turns)
{
	expect_same_packets(8, false);
}

TEST(a_send_at_once_with_a_pad_is_the_same_packet)
{
	expect_same_packets(5, false);
}

TEST(a_send_at_once_of_no_bytes_is_the_same_packet)
{
	expect_same_packets(0, false);
}

TEST(an_ack_that_is_owed_follows_it)
{
	expect_same_packets(8, true);
}

TEST(an_ack_that_is_longer_than_it_follows_it_too)
{
	expect_same_packets(0, true);
}

TEST(what_went_at_once_comes_again_without_an_answer)
{
	struct pair *p = connect_and_owe(false);
	struct vb_slot slots[2];

	post_quietly(p, 4, 8);
	EXPECT_EQ(send_at_once(p, slots), 1);
	wait_ns(p, ACK_TIMEOUT_NS);
	expect_sent(p, A, "SEND_ONLY psn=0 len=8 ack");
	deliver(p);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=8");
	expect_sent(p, B, "ACKNOWLEDGE psn=0 msn=1");
	deliver(p);
	expect_completions(p, A, "wr=4 SUCCESS SEND");
}

/* Of two posted requests, the second takes its turn. */
TEST(what_is_posted_behind_it_is_not_forgotten)
{
	struct pair *p = connect_and_owe(false);
	struct vb_slot slots[2];

	post_quietly(p, 4, 8);
	post_quietly(p, 5, 8);
	EXPECT_EQ(send_at_once(p, slots), 1);
	EXPECT(vb_nic_has_work(node_of(p, A)->nic));
	expect_sent(p, A, "SEND_ONLY psn=1 len=8 ack");
}

TEST(what_goes_at_once_continues_no_batch_of_an_earlier_turn)
{
	struct pair *p = connect_and_owe(false);
	struct vb_send_request request = send_request(p, A, 9, 8);
	struct vb_qp *other = make_qp(p, A);
	struct vb_slot slots[2], before[CAPACITY];

	bring_up(p, A, other, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	EXPECT(vb_qp_post_send(other, &request) == VB_OK);
	vb_qp_publish_and_ring(other);
	EXPECT_EQ(vb_nic_transmit(node_of(p, A)->nic, p->now_ns, before, CAPACITY), 1);
	post_quietly(p, 4, 8);
	EXPECT_EQ(send_at_once(p, slots), 1);
	EXPECT(!memcmp(&slots[0].path.ip, &before[0].path.ip, sizeof(slots[0].path.ip)));
	EXPECT(!slots[0].continues);
}
