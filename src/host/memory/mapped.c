/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A check whether memory is mapped. It reads the kernel's list of this process's mappings instead
 * of the memory itself: a range of many gigabytes is one line of the list. The list is in ascending
 * order, and reading stops after the range.
 */
#include "host/memory/dma.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT_SIZE = 4096 }; /* what the kernel returns at a time */

/* A file that is read character by character. */
struct text {
	int file;
	size_t at, end;
	char bytes[TEXT_SIZE];
};

/* One line of the list: the addresses [begin, end), and whether they are readable and writable. */
struct mapping {
	uint64_t begin, end;
	bool is_readable, is_writable;
};

/* The next character, or -1 at the end. */
static int next(struct text *text)
{
	long count;

	if (text->at == text->end) {
		count = syscall(SYS_read, text->file, text->bytes, sizeof(text->bytes));
		if (count <= 0)
			return -1;
		text->at = 0;
		text->end = (size_t)count;
	}
	return (unsigned char)text->bytes[text->at++];
}

/* Reads a hexadecimal number and the character after it. */
static uint64_t next_number(struct text *text)
{
	static const char digits[] = "0123456789abcdef";
	uint64_t number = 0;

	for (int c = next(text); c > 0; c = next(text)) {
		const char *digit = strchr(digits, c);

		if (!digit)
			break;
		number = number << 4 | (uint64_t)(digit - digits);
	}
	return number;
}

/* False at the end of the list. */
static bool next_mapping(struct text *text, struct mapping *mapping)
{
	int c;

	mapping->begin = next_number(text);
	mapping->end = next_number(text);
	mapping->is_readable = next(text) == 'r';
	mapping->is_writable = next(text) == 'w';
	do {
		c = next(text);
	} while (c >= 0 && c != '\n');
	return c >= 0;
}

static bool covers(struct text *text, uint64_t from, uint64_t last, bool for_writing)
{
	struct mapping mapping;

	while (next_mapping(text, &mapping)) {
		if (mapping.end <= from)
			continue;
		if (mapping.begin > from)
			return false; /* a hole */
		if (for_writing ? !mapping.is_writable : !mapping.is_readable)
			return false;
		if (mapping.end > last)
			return true;
		from = mapping.end;
	}
	return false;
}

bool vb_dma_is_mapped(vb_dma_addr from, size_t length, bool for_writing)
{
	struct text text = { .at = 0, .end = 0 };
	bool result;

	if (!length)
		return true;
	if (from + (length - 1) < from)
		return false;
	text.file = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (text.file < 0)
		return true;
	result = covers(&text, from, from + (length - 1), for_writing);
	syscall(SYS_close, text.file);
	return result;
}
