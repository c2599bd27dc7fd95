/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floors of one host: two processes hand each other the turn, by a word in shared memory that
 * both read without pause, or by eventfds on which both sleep. Prints the median of half a round
 * trip, in microseconds.
 *
 *	handoff words|eventfds <cpu> <other cpu>
 */
#include "support_report.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define WARMUP 1000u
#define ROUNDS 20000u
/* Rounds between two reads of the clock: a round is hardly longer than a read. */
#define ROUND_BATCH 50u

/* One word for each process, in a cache line of its own. */
static struct shared {
	_Alignas(64) _Atomic uint32_t words[2][16];
} * shared;
static int wakes[2];

static void pin(const char *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(atoi(cpu), &set);
	BENCH_CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

static void give_word(int to, uint32_t turn)
{
	atomic_store_explicit(&shared->words[to][0], turn, memory_order_release);
}

static void await_word(int self, uint32_t turn)
{
	while (atomic_load_explicit(&shared->words[self][0], memory_order_acquire) != turn)
		;
}

static void give_wake(int to)
{
	uint64_t one = 1;

	BENCH_CHECK(write(wakes[to], &one, sizeof(one)) == sizeof(one));
}

static void await_wake(int self)
{
	uint64_t count;

	BENCH_CHECK(read(wakes[self], &count, sizeof(count)) == sizeof(count));
}

static void take_turn(bool is_word, int self, uint32_t turn)
{
	if (self == 0) {
		is_word ? give_word(1, turn) : give_wake(1);
		is_word ? await_word(0, turn) : await_wake(0);
	} else {
		is_word ? await_word(1, turn) : await_wake(1);
		is_word ? give_word(0, turn) : give_wake(0);
	}
}

static double measure(bool is_word)
{
	static double half_us[ROUNDS / ROUND_BATCH];
	uint32_t turn = 0;

	while (turn < WARMUP)
		take_turn(is_word, 0, ++turn);
	for (uint32_t i = 0; i < ROUNDS / ROUND_BATCH; i++) {
		uint64_t begin_ns = clock_now_ns();

		for (uint32_t k = 0; k < ROUND_BATCH; k++)
			take_turn(is_word, 0, ++turn);
		half_us[i] = (double)(clock_now_ns() - begin_ns) / 2000.0 / ROUND_BATCH;
	}
	return median(half_us, ROUNDS / ROUND_BATCH);
}

static void answer(bool is_word)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t turn = 1;; turn++)
		take_turn(is_word, 1, turn);
}

int main(int argc, char **argv)
{
	bool is_word = argc == 4 && !strcmp(argv[1], "words");
	pid_t other;

	if (argc != 4 || (!is_word && strcmp(argv[1], "eventfds") != 0)) {
		fprintf(stderr, "usage: handoff words|eventfds <cpu> <other cpu>\n");
		return 2;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	wakes[0] = eventfd(0, 0);
	wakes[1] = eventfd(0, 0);
	BENCH_CHECK(shared != MAP_FAILED && wakes[0] >= 0 && wakes[1] >= 0);
	other = fork();
	BENCH_CHECK(other >= 0);
	pin(argv[other ? 2 : 3]);
	if (!other)
		answer(is_word);
	printf("%.4f\n", measure(is_word));
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	return 0;
}
