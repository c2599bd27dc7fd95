/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens while the receiver copies the data of a train. The test interrupts the copy: its
 * vb_dma_copy() and vb_dma_read() first let the sender do something.
 */
#include "support_train.h"

#include "host/memory/dma.h"

#include <string.h>

enum { LONG = 3 * 1024 + 500 };

static struct pair *interrupted; /* NULL: no copy is interrupted */
static void (*interrupt)(struct pair *p);

bool __real_vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length);
bool __wrap_vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length);
bool __real_vb_dma_read(void *to, vb_dma_addr from, size_t length);
bool __wrap_vb_dma_read(void *to, vb_dma_addr from, size_t length);

static void interrupt_once(void)
{
	struct pair *p = interrupted;

	interrupted = NULL;
	if (p)
		interrupt(p);
}

bool __wrap_vb_dma_copy(vb_dma_addr to, vb_dma_addr from, size_t length)
{
	interrupt_once();
	return __real_vb_dma_copy(to, from, length);
}

bool __wrap_vb_dma_read(void *to, vb_dma_addr from, size_t length)
{
	interrupt_once();
	return __real_vb_dma_read(to, from, length);
}

/* A's SEND 1 has come as a train; A acts while B copies the data. */
static struct pair *act_during_copy(void (*act)(struct pair *p))
{
	struct pair *p = connect_for_trains(VB_QP_RC);

	post_long_recv(p, 2, LONG);
	post_send(p, A, 1, LONG);
	send_all(p, A);
	interrupt = act;
	interrupted = p;
	deliver(p);
	EXPECT(!interrupted);
	return p;
}

static void do_nothing(struct pair *p)
{
	EXPECT_EQ(train_busy % 2, 1); /* a thread that deregisters would wait for this */
	expect_no_completion(p, B);
}

TEST(a_copy_is_announced)
{
	struct pair *p = act_during_copy(do_nothing);

	EXPECT_EQ(train_busy % 2, 0);
	expect_completions(p, B, "wr=2 SUCCESS RECV len=3572");
}

/* The program has its buffer back, and uses it for something else. */
static void end_qp(struct pair *p)
{
	modify_state(p, A, VB_STATE_ERR);
	expect_completions(p, A, "wr=1 WR_FLUSH_ERR");
	set_bytes(p, A, LOCAL, 0x77, LONG);
}

TEST(data_of_a_send_that_was_flushed_meanwhile_is_not_received)
{
	struct pair *p = act_during_copy(end_qp);

	expect_no_completion(p, B);
	expect_state(p, B, VB_STATE_RTS);
}

/* A has waited long enough for B. */
static void run_out_of_retries(struct pair *p)
{
	for (uint32_t i = 0; i < p->setup.retry_count; i++) {
		wait_until_work(p, A);
		send_all(p, A);
	}
	wait_until_completion(p, A);
	expect_completions(p, A, "wr=1 RETRY_EXC_ERR");
	set_bytes(p, A, LOCAL, 0x77, LONG);
}

TEST(data_of_a_send_that_failed_meanwhile_is_not_received)
{
	struct pair *p = act_during_copy(run_out_of_retries);

	expect_no_completion(p, B);
}

/* The same numbers, but another connection. */
static void connect_again(struct pair *p)
{
	modify_state(p, A, VB_STATE_RESET);
	bring_up(p, A, node_of(p, A)->qp, vb_qp_number(node_of(p, B)->qp), VB_STATE_RTS);
	set_bytes(p, A, LOCAL, 0x77, LONG);
}

TEST(data_of_an_earlier_connection_is_not_received)
{
	struct pair *p = act_during_copy(connect_again);

	expect_no_completion(p, B);
}
