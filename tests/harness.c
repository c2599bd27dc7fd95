/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The runner of the tests of one program: it forks for each test, waits, prints one line, and
 * counts. The child reports its verdict by how it ends, so that a crash needs no special case.
 * tests/run reads the last line of output.
 */
#include "harness.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	EXIT_FAILED = 1,
	EXIT_SKIPPED = 77,
	TIMEOUT_SECONDS = 60,
	TIMEOUT_SECONDS_THOROUGH = 1800,
};

static struct test *first_test;
static struct test **last_link = &first_test;
static const struct test *running;
static bool is_forking = true;

void test_register(struct test *test)
{
	*last_link = test;
	last_link = &test->next;
}

const char *test_name(void)
{
	return running->name;
}

bool test_is_thorough(void)
{
	const char *value = getenv("VB_TEST_ALL");

	return value && *value && strcmp(value, "0") != 0;
}

/*
 * Ends a test early. Uses _exit() rather than exit(): what a failed test did not free is no leak.
 */
__attribute__((noreturn)) static void end_test(int status)
{
	fflush(NULL);
	if (!is_forking && status == EXIT_FAILED)
		abort(); /* a debugger is attached: stop where the test failed */
	_exit(status);
}

void test_fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("    %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	end_test(EXIT_FAILED);
}

void test_skip(const char *file, int line, const char *format, ...)
{
	va_list args;

	printf("    %s:%d: skipped: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	end_test(EXIT_SKIPPED);
}

void test_expect_eq(const char *file, int line, const char *text_a, const char *text_b,
		    unsigned long long a, unsigned long long b)
{
	if (a == b)
		return;
	test_fail(file, line,
		  "expected: %s == %s\n        %s is %lld (0x%llx)\n        %s is %lld (0x%llx)",
		  text_a, text_b, text_a, (long long)a, a, text_b, (long long)b, b);
}

void test_expect_str(const char *file, int line, const char *text_a, const char *text_b,
		     const char *a, const char *b)
{
	if (a && b && strcmp(a, b) == 0)
		return;
	test_fail(file, line, "expected: %s equals %s\n        \"%s\"\n        \"%s\"", text_a,
		  text_b, a ? a : "(NULL)", b ? b : "(NULL)");
}

static void print_bytes(const char *text, const unsigned char *bytes, size_t from, size_t to)
{
	printf("        ");
	for (size_t i = from; i < to; i++)
		printf("%02x ", bytes[i]);
	printf(" %s\n", text);
}

void test_expect_mem(const char *file, int line, const char *text_a, const char *text_b,
		     const void *a, const void *b, size_t size)
{
	const unsigned char *bytes_a = a, *bytes_b = b;
	size_t at = 0, from, to;

	while (at < size && bytes_a[at] == bytes_b[at])
		at++;
	if (at == size)
		return;
	from = at & ~(size_t)15;
	to = size - from < 16 ? size : from + 16;
	printf("    bytes %zu to %zu:\n", from, to - 1);
	print_bytes(text_a, bytes_a, from, to);
	print_bytes(text_b, bytes_b, from, to);
	test_fail(file, line, "expected: the %zu bytes of %s and %s are equal; byte %zu is not",
		  size, text_a, text_b, at);
}

static unsigned timeout_seconds(void)
{
	const char *value = getenv("TEST_TIMEOUT");

	if (value)
		return (unsigned)strtoul(value, NULL, 10);
	return test_is_thorough() ? TIMEOUT_SECONDS_THOROUGH : TIMEOUT_SECONDS;
}

static long long milliseconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Runs a test to its end and returns a status like waitpid(). */
static int run_in_child(const struct test *test)
{
	int status;
	pid_t child = fork();

	if (child < 0) {
		perror("fork");
		exit(2);
	}
	if (child == 0) {
		alarm(timeout_seconds());
		test->run();
		exit(0); /* runs the exit handlers, which include the leak check */
	}
	if (waitpid(child, &status, 0) != child) {
		perror("waitpid");
		exit(2);
	}
	return status;
}

static void describe_end(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		snprintf(text, size, ": no end after %u s", timeout_seconds());
	else if (WIFSIGNALED(status))
		snprintf(text, size, ": killed by signal %d (%s)", WTERMSIG(status),
			 strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status) != EXIT_FAILED)
		snprintf(text, size, ": exit status %d", WEXITSTATUS(status));
	else
		snprintf(text, size, "%s", "");
}

static int usage(const char *program)
{
	fprintf(stderr,
		"usage: %s [--list] [--no-fork] [part of a name]...\n"
		"  --no-fork   run in this process, for a debugger; stops at the first failure\n"
		"  TEST_TIMEOUT=<seconds> in the environment: time for each test, 0 for ever\n",
		program);
	return 2;
}

static bool is_selected(const struct test *test, int part_count, char **parts)
{
	for (int i = 0; i < part_count; i++)
		if (strstr(test->name, parts[i]))
			return true;
	return part_count == 0;
}

int main(int argc, char **argv)
{
	unsigned number = 0, passed = 0, failed = 0, skipped = 0;
	bool is_listing = false;
	int first = 1;

	for (; first < argc && argv[first][0] == '-'; first++) {
		if (strcmp(argv[first], "--list") == 0)
			is_listing = true;
		else if (strcmp(argv[first], "--no-fork") == 0)
			is_forking = false;
		else
			return usage(argv[0]);
	}
	/* Line buffering keeps the child's output and ours in order, also in a pipe. */
	setvbuf(stdout, NULL, _IOLBF, 0);

	for (struct test *test = first_test; test; test = test->next) {
		char end[100];
		long long start;
		int status = 0;

		if (!is_selected(test, argc - first, argv + first))
			continue;
		if (is_listing) {
			printf("%s\n", test->name);
			continue;
		}
		number++;
		running = test;
		start = milliseconds_now();
		if (is_forking)
			status = run_in_child(test);
		else
			test->run();
		describe_end(status, end, sizeof(end));
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			passed++;
			printf("ok %u  %s (%lld ms)\n", number, test->name,
			       milliseconds_now() - start);
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED) {
			skipped++;
			printf("skip %u  %s\n", number, test->name);
		} else {
			failed++;
			printf("FAIL %u  %s (%lld ms)%s\n", number, test->name,
			       milliseconds_now() - start, end);
		}
	}
	if (!is_listing)
		printf("# passed=%u failed=%u skipped=%u\n", passed, failed, skipped);
	return failed > 0;
}
