/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Missing memory and access to it; see support_dma.h. Memory is never given back: each test is a
 * process.
 */
#include "support_dma.h"

#include "harness.h"
#include "host/dma.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
#define UNDER_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_THREAD_SANITIZER 1
#endif
#endif
#ifndef UNDER_THREAD_SANITIZER
#define UNDER_THREAD_SANITIZER 0
#endif

void install(void)
{
	if (UNDER_THREAD_SANITIZER)
		SKIP("the thread sanitizer's own locks are lost when an access does not return");
	MUST(vb_dma_install());
}

uint8_t *map(size_t length, int protection)
{
	void *at =
		mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	EXPECT(at != MAP_FAILED);
	return at;
}

vb_dma_addr address(const void *at)
{
	return (uintptr_t)at;
}

uint8_t *missing(void)
{
	/* This is far below everything, so that no later mapping is placed there. */
	uint8_t *at = (uint8_t *)(uintptr_t)0x20000000;

	EXPECT(!vb_dma_is_mapped(address(at), 1, false));
	return at;
}

uint8_t *truncated(void)
{
	int file = memfd_create("truncated", 0);
	uint8_t *at;

	EXPECT_EQ(ftruncate(file, PAGE), 0);
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	EXPECT(at != MAP_FAILED);
	memset(at, 1, PAGE);
	EXPECT_EQ(ftruncate(file, 0), 0);
	close(file);
	return at;
}

bool try_access(enum access access, const uint8_t *to)
{
	uint8_t ours[LONG] = { 0 };
	uint32_t crc = 7;
	uint64_t old = 7;
	vb_dma_addr at = address(to);

	switch (access) {
	case READ_1:
		return vb_dma_read(ours, at, 1);
	case READ_8:
		return vb_dma_read(ours, at, 8);
	case READ_LONG:
		return vb_dma_read(ours, at, LONG);
	case CRC_8:
		return vb_dma_crc32(&crc, at, 8) || crc != 7;
	case CRC_LONG:
		return vb_dma_crc32(&crc, at, LONG) || crc != 7;
	case WRITE_1:
		return vb_dma_write(at, ours, 1);
	case WRITE_8:
		return vb_dma_write(at, ours, 8);
	case WRITE_LONG:
		return vb_dma_write(at, ours, LONG);
	case STORE_8:
		return vb_dma_atomic_store(at, ours);
	case COMPARE_SWAP:
		return vb_dma_compare_swap(at, 0, 1, &old) || old != 7;
	case FETCH_ADD:
		return vb_dma_fetch_add(at, 1, &old) || old != 7;
	case ACCESS_COUNT:
		break;
	}
	return true;
}

void expect_no_access(const uint8_t *to)
{
	for (enum access access = 0; access < ACCESS_COUNT; access++)
		if (try_access(access, to))
			FAIL("access %d to missing memory succeeded", (int)access);
}

void expect_every_access(const uint8_t *to)
{
	for (enum access access = 0; access < ACCESS_COUNT; access++)
		if (!try_access(access, to))
			FAIL("access %d to present memory failed", (int)access);
}

int signal_that_ends(void (*run)(void *), void *argument)
{
	struct rlimit no_core = { 0, 0 };
	int status;
	pid_t child = fork();

	if (child == 0) {
		alarm(10);
		setrlimit(RLIMIT_CORE, &no_core);
		prctl(PR_SET_DUMPABLE, 0);
		run(argument);
		_exit(0);
	}
	EXPECT_EQ(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

/* The program's own fault. */
void touch(void *at)
{
	*(volatile uint8_t *)at = 1;
}

void copy(void *at)
{
	(void)try_access(READ_LONG, at);
}
