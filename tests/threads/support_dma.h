/* SPDX-License-Identifier: BSD-2-Clause */
/* Unmapped memory, every kind of access to it, and child processes that may crash. */
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

enum { PAGE = 4096, LONG_LENGTH = 1000 };

/* Calls vb_dma_install(), or ends a test that the thread sanitizer cannot run. */
void install_dma(void);

uint8_t *map_pages(size_t length, int protection);
vb_dma_addr dma_address(const void *at);

/* An address where nothing is mapped. */
uint8_t *unmapped_address(void);

/* One page of a file that no longer has any bytes. */
uint8_t *map_truncated_file(void);

enum access {
	READ_1,
	READ_8,
	READ_LONG,
	CRC_8,
	CRC_LONG,
	CRC32C_8,
	CRC32C_LONG,
	WRITE_1, /* from here on the accesses write */
	WRITE_8,
	WRITE_LONG,
	STORE_8,
	COMPARE_SWAP,
	FETCH_ADD,
	ACCESS_COUNT,
};

/*
 * False if the access failed and changed nothing. So if nothing is mapped there, true means that
 * the access is wrong.
 */
bool try_access(enum access access, const void *target);
void expect_no_access(const void *target);
void expect_every_access(const void *target);

/*
 * Runs a function in a child process. Returns the signal that ended the child; otherwise 0, or
 * minus its exit status.
 */
int run_in_child(void (*run)(void *), void *argument);

/*
 * For run_in_child(): a copy by the adapter, and an access as the program itself would make it.
 */
void read_long(void *at);
void write_byte(void *at);

#endif
