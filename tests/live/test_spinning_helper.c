/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A helper thread that always waits awake must still do all its other work. The .link file replaces
 * the checks whether it may spin and has earned it, so that it spins on any machine.
 */
#include "support_link.h"
#include "support_verbs.h"

#include "host/policy/spin.h"
#include "namespace.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROUNDS 200
#define ADDRESSES 20

static _Atomic unsigned packets;

bool __wrap_vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns);
bool __wrap_vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns)
{
	(void)spin;
	(void)now_ns;
	return true;
}

bool __wrap_vb_spin_has_cpu(const struct vb_spin *spin, uint64_t now_ns);
bool __wrap_vb_spin_has_cpu(const struct vb_spin *spin, uint64_t now_ns)
{
	(void)spin;
	(void)now_ns;
	return true;
}

bool __real_vb_spin_on_look(struct vb_spin *spin, uint64_t now_ns, bool has_moved);
bool __wrap_vb_spin_on_look(struct vb_spin *spin, uint64_t now_ns, bool has_moved);
bool __wrap_vb_spin_on_look(struct vb_spin *spin, uint64_t now_ns, bool has_moved)
{
	if (has_moved)
		atomic_fetch_add(&packets, 1);
	return __real_vb_spin_on_look(spin, now_ns, has_moved);
}

static struct program program;

/* Never polls: the helper thread receives all that is written. */
static void be_target(void *argument)
{
	int exchange = *(int *)argument;

	program_open_with_peer(&program, exchange);
	EXPECT_EQ(read(exchange, &(char){ 0 }, 1), 1);
	EXPECT(atomic_load(&packets) > 0);
	program_close(&program);
}

TEST(one_sided_requests_are_served)
{
	int exchange[2];
	pid_t target;

	program_enter_namespace();
	EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, exchange), 0);
	target = start_process(be_target, &exchange[1]);
	program_open_with_peer(&program, exchange[0]);
	for (unsigned i = 0; i < ROUNDS; i++) {
		program_post(&program);
		EXPECT_STR(program_poll(&program), "success");
	}
	EXPECT_EQ(write(exchange[0], "e", 1), 1);
	join_process(target);
	program_close(&program);
}

TEST(completions_wake_a_thread_that_waits_for_them)
{
	program_enter_namespace();
	program_open(&program);
	for (unsigned i = 0; i < ROUNDS; i++)
		program_round_with_event(&program);
	program_close(&program);
}

TEST(the_interface_is_followed)
{
	struct ibv_async_event event;
	union ibv_gid gid;

	program_enter_namespace();
	program_open(&program);
	for (uint8_t i = 1; i <= ADDRESSES; i++) {
		ip("address add 10.0.1.%u/24 dev d0", i);
		EXPECT_EQ(ibv_query_gid(program.context, 1, 1 + i, &gid), 0);
		EXPECT_EQ(gid.raw[15], i);
		EXPECT_EQ(ibv_get_async_event(program.context, &event), 0);
		EXPECT_EQ(event.event_type, IBV_EVENT_GID_CHANGE);
		ibv_ack_async_event(&event);
	}
	program_close(&program);
}
