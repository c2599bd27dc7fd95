/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that is missing, every kind of access to it, and children that may crash. */
#ifndef VB_TESTS_SUPPORT_DMA_H
#define VB_TESTS_SUPPORT_DMA_H

#include "base/dma.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define UNDER_SANITIZER 1
#endif
#endif
#ifndef UNDER_SANITIZER
#define UNDER_SANITIZER 0
#endif

#define MUST(call) EXPECT_EQ(call, VB_OK)

enum { PAGE = 4096, LONG = 1000 };

/* Calls vb_dma_install(), or ends a test that the thread sanitizer cannot run. */
void install(void);

uint8_t *map(size_t length, int protection);
vb_dma_addr address(const void *at);

/* An address where nothing is mapped. */
uint8_t *missing(void);

/* One page of a file that no longer has any bytes. */
uint8_t *truncated(void);

enum access {
	READ_1,
	READ_8,
	READ_LONG,
	CRC_8,
	CRC_LONG,
	WRITE_1, /* from here on the accesses write */
	WRITE_8,
	WRITE_LONG,
	STORE_8,
	COMPARE_SWAP,
	FETCH_ADD,
	ACCESS_COUNT,
};

/* Returns true if the access succeeded, or failed but changed what it should have left alone. */
bool try_access(enum access access, const uint8_t *to);
void expect_no_access(const uint8_t *to);
void expect_every_access(const uint8_t *to);

/* Runs a function in a child. Returns the signal that ended the child, or 0 if it ended well. */
int signal_that_ends(void (*run)(void *), void *argument);

/* A copy, and the program's own access, for such a child. */
void copy(void *at);
void touch(void *at);

#endif
