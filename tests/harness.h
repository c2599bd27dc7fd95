/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The test harness. A file with TEST() functions becomes a program that runs each of them in a
 * process of its own, so that a crash, a leak or an endless loop fails one test and not the rest.
 * The first failed expectation ends its test.
 */
#ifndef VB_TESTS_HARNESS_H
#define VB_TESTS_HARNESS_H

#include <stdbool.h>
#include <stddef.h>

struct test {
	const char *name;
	void (*run)(void);
	struct test *next;
};

void test_register(struct test *test);
/* The name of the running test. */
const char *test_name(void);
/* True under `make test-all`: loop further, try more. */
bool test_is_thorough(void);

/*
 * Functions that the macros call, with the caller's file and line. Those marked noreturn do not
 * return.
 */
__attribute__((noreturn, format(printf, 3, 4))) void test_fail(const char *file, int line,
							       const char *format, ...);
__attribute__((noreturn, format(printf, 3, 4))) void test_skip(const char *file, int line,
							       const char *format, ...);
void test_expect_eq(const char *file, int line, const char *text_a, const char *text_b,
		    unsigned long long a, unsigned long long b);
void test_expect_str(const char *file, int line, const char *text_a, const char *text_b,
		     const char *a, const char *b);
void test_expect_mem(const char *file, int line, const char *text_a, const char *text_b,
		     const void *a, const void *b, size_t size);

/* TEST(the_rule_that_holds) { ... } */
#define TEST(title)                                                                      \
	static void test_##title(void);                                                  \
	static struct test test_entry_##title = { .name = #title, .run = test_##title }; \
	__attribute__((constructor)) static void test_register_##title(void)             \
	{                                                                                \
		test_register(&test_entry_##title);                                      \
	}                                                                                \
	static void test_##title(void)

#define EXPECT(condition) \
	((condition) ? (void)0 : test_fail(__FILE__, __LINE__, "expected: %s", #condition))
/* Compares integers, enums and bools of any width; prints both values when they differ. */
#define EXPECT_EQ(a, b) \
	test_expect_eq(__FILE__, __LINE__, #a, #b, (unsigned long long)(a), (unsigned long long)(b))
#define EXPECT_STR(a, b) test_expect_str(__FILE__, __LINE__, #a, #b, a, b)
#define EXPECT_MEM(a, b, size) test_expect_mem(__FILE__, __LINE__, #a, #b, a, b, size)
#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...) test_skip(__FILE__, __LINE__, __VA_ARGS__)

#endif
