/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unmapped memory and access to it; see support_dma.h. Memory is never given back: each test is a
 * process.
 */
#include "support_dma.h"

#include "harness.h"
#include "host/memory/dma.h"

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

void install_dma(void)
{
	if (UNDER_THREAD_SANITIZER)
		SKIP("the thread sanitizer's own locks are lost when an access does not return");
	MUST(vb_dma_install());
}

uint8_t *map_pages(size_t length, int protection)
{
	void *at =
		mmap(NULL, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	EXPECT(at != MAP_FAILED);
	return at;
}

vb_dma_addr dma_address(const void *at)
{
	return (uintptr_t)at;
}

uint8_t *unmapped_address(void)
{
	/* This is far below everything, so that no later mapping is placed there. */
	uint8_t *at = (uint8_t *)(uintptr_t)0x20000000;

	EXPECT(!vb_dma_is_mapped(dma_address(at), 1, false));
	return at;
}

uint8_t *map_truncated_file(void)
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

bool try_access(enum access access, const void *target)
{
	uint8_t ours[LONG_LENGTH] = { 0 };
	uint32_t crc = 7;
	uint64_t old = 7;
	vb_dma_addr at = dma_address(target);

	switch (access) {
	case READ_1:
		return vb_dma_read(ours, at, 1);
	case READ_8:
		return vb_dma_read(ours, at, 8);
	case READ_LONG:
		return vb_dma_read(ours, at, LONG_LENGTH);
	case CRC_8:
		return vb_dma_crc32(&crc, at, 8) || crc != 7;
	case CRC_LONG:
		return vb_dma_crc32(&crc, at, LONG_LENGTH) || crc != 7;
	case CRC32C_8:
		return vb_dma_crc32c(&crc, at, 8) || crc != 7;
	case CRC32C_LONG:
		return vb_dma_crc32c(&crc, at, LONG_LENGTH) || crc != 7;
	case WRITE_1:
		return vb_dma_write(at, ours, 1);
	case WRITE_8:
		return vb_dma_write(at, ours, 8);
	case WRITE_LONG:
		return vb_dma_write(at, ours, LONG_LENGTH);
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

void expect_no_access(const void *target)
{
	for (enum access access = 0; access < ACCESS_COUNT; access++)
		if (try_access(access, target))
			FAIL("access %d to missing memory succeeded", (int)access);
}

void expect_every_access(const void *target)
{
	for (enum access access = 0; access < ACCESS_COUNT; access++)
		if (!try_access(access, target))
			FAIL("access %d to present memory failed", (int)access);
}

int run_in_child(void (*run)(void *), void *argument)
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
void write_byte(void *at)
{
	*(volatile uint8_t *)at = 1;
}

void read_long(void *at)
{
	(void)try_access(READ_LONG, at);
}
