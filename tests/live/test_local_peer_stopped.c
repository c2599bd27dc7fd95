/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process is stopped in the middle of an access to its peer's memory: the access is announced but
 * not over. A peer that takes that memory or QP away waits until the process goes on or is dead,
 * since it would continue where it was. Nothing else of the peer's adapter waits.
 */
#include "support_ends.h"

#include "abi/objects_priv.h"
#include "host/adapter/adapter_priv.h"
#include "host/local/local_peer_priv.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOKS = 20, LOOK_US = 5000 };

/* The word that announces accesses to the peer's memory. */
static _Atomic uint32_t *busy_word(const struct end *end)
{
	struct vb_local_peers *peers = vb_abi_context_of(end->context)->adapter->peers;
	struct vb_local_peer *peer =
		&peers->table[vb_port_member_of_qpn((vb_qpn){ end->peer.qpn })];

	EXPECT(peer->peer_memory.busy);
	return peer->peer_memory.busy;
}

/* Starts a child that works, and stops itself as if in the middle of an access. */
static pid_t start_initiator(struct board *board)
{
	pid_t child = fork_end();

	if (child)
		return child;
	struct end end = { 0 };

	meet_as_child(&end, board, private_memory());
	do_at(&end, IBV_WR_RDMA_WRITE, 0, 100);
	atomic_fetch_add(busy_word(&end), 1);
	raise(SIGSTOP);
	memcpy(&board->places[1], "late", 4); /* the end of the access */
	atomic_fetch_add(busy_word(&end), 1);
	for (;;)
		pause();
}

/* What the peer cannot finish, in a thread of its own. */
struct closing {
	struct end *end;
	void (*close)(struct end *);
	_Atomic bool is_over;
};

static void *close_it(void *argument)
{
	struct closing *closing = argument;

	closing->close(closing->end);
	atomic_store(&closing->is_over, true);
	return NULL;
}

static void reregister(struct end *end)
{
	EXPECT_EQ(ibv_rereg_mr(end->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0), 0);
}

static void destroy(struct end *end)
{
	EXPECT_EQ(ibv_destroy_qp(end->qp), 0);
	end->qp = NULL;
}

/* Uses control verbs, and sends data from one QP of this adapter to itself. */
static void go_on(struct end *other, const struct end *end)
{
	other->context = end->context;
	other->pd = end->pd;
	other->cq = ibv_create_cq(end->context, 10, NULL, NULL, 0);
	other->mr = ibv_reg_mr(end->pd, other->memory, LENGTH,
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	EXPECT(other->cq && other->mr);
	other->qp = create_qp(other, IBV_QPT_RC);
	connect_end(other, place_of(other));
	do_at(other, IBV_WR_RDMA_WRITE, 0, 100);
}

static void close_both(struct end *end, struct end *other)
{
	EXPECT_EQ(ibv_destroy_qp(other->qp), 0);
	EXPECT_EQ(ibv_dereg_mr(other->mr), 0);
	EXPECT_EQ(ibv_destroy_cq(other->cq), 0);
	if (!end->qp)
		end->qp = create_qp(end, IBV_QPT_RC);
	close_end(end);
}

static void expect_to_wait(void (*close)(struct end *), int signal)
{
	struct board *board = make_board();
	struct closing closing = { .close = close };
	struct end end = { 0 };
	struct end other = { .type = IBV_QPT_RC, .memory = private_memory() };
	pthread_t thread;
	pid_t child;

	begin();
	child = start_initiator(board);
	meet_as_parent(&end, board, shared_memory());
	EXPECT_EQ(waitpid(child, NULL, WUNTRACED), child);
	closing.end = &end;
	EXPECT_EQ(pthread_create(&thread, NULL, close_it, &closing), 0);
	for (uint32_t i = 0; i < LOOKS; i++) {
		usleep(LOOK_US);
		EXPECT(!atomic_load(&closing.is_over));
	}
	go_on(&other, &end);
	EXPECT(!atomic_load(&closing.is_over));
	EXPECT_EQ(kill(child, signal), 0);
	EXPECT_EQ(pthread_join(thread, NULL), 0);
	EXPECT_EQ(!memcmp(&board->places[1], "late", 4), signal == SIGCONT);
	end_target(child);
	close_both(&end, &other);
}

TEST(deregistering_waits_for_a_peer_that_is_stopped_in_the_middle_of_an_access)
{
	expect_to_wait(deregister, SIGCONT);
}

TEST(deregistering_waits_no_longer_when_a_peer_that_was_stopped_is_killed)
{
	expect_to_wait(deregister, SIGKILL);
}

TEST(reregistering_waits_for_a_peer_that_is_stopped_in_the_middle_of_an_access)
{
	expect_to_wait(reregister, SIGCONT);
}

TEST(resetting_a_qp_waits_for_a_peer_that_is_stopped_in_the_middle_of_an_access)
{
	expect_to_wait(reset, SIGCONT);
}

TEST(destroying_a_qp_waits_for_a_peer_that_is_stopped_in_the_middle_of_an_access)
{
	expect_to_wait(destroy, SIGKILL);
}
