/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies to and from application memory that may fault and take only a few instructions, so that
 * even a guard would cost too much: short ones, and long ones that the CPU's string copy makes. One
 * of the instructions may fault. A row of a table in the executable (struct vb_faultable_row) names
 * that instruction and where to continue, and the signal handler looks the faulting address up
 * there. So a copy that succeeds pays nothing. Only x86-64 has this. Elsewhere, and for sanitizers,
 * which must see every access, no copy is of this kind.
 */
#ifndef VB_HOST_MEMORY_FAULTABLE_COPY_H
#define VB_HOST_MEMORY_FAULTABLE_COPY_H

#include "host/memory/guard_priv.h"

/* Both are relative to their own position, so that the table needs no relocation. */
struct vb_faultable_row {
	int32_t instruction;
	int32_t landing;
};

#ifdef VB_GUARD_IS_PLAIN

enum { VB_TOUCH_MAX = 0 };

static inline bool vb_faultable_can_write_long(const uint8_t *to, size_t length)
{
	(void)to, (void)length;
	return false;
}

static inline bool vb_faultable_write_long(uint8_t *to, const uint8_t *from, size_t length)
{
	(void)to, (void)from, (void)length;
	return true;
}

static inline bool vb_faultable_copy_long(uint8_t *to, const uint8_t *from, size_t length)
{
	(void)to, (void)from, (void)length;
	return true;
}

static inline bool vb_faultable_can_copy_word(const uint8_t *to, size_t length)
{
	(void)to, (void)length;
	return false;
}

static inline bool vb_faultable_copy_word(uint8_t *to, const uint8_t *from)
{
	(void)to, (void)from;
	return true;
}

static inline bool vb_faultable_read(uint8_t *to, const uint8_t *from, size_t length)
{
	(void)to, (void)from, (void)length;
	return true;
}

static inline bool vb_faultable_write(uint8_t *to, const uint8_t *from, size_t length)
{
	(void)to, (void)from, (void)length;
	return true;
}

#else

enum { VB_TOUCH_MAX = 64 };

/* The row of the instruction at a local label. */
#define VB_TOUCH_ROW_OF(label)                 \
	"\n\t.pushsection vb_faultable, \"a\"" \
	"\n\t.balign 4"                        \
	"\n\t.long " label "b - ."             \
	"\n\t.long %l[fault] - ."              \
	"\n\t.popsection"
#define VB_TOUCH_ROW VB_TOUCH_ROW_OF("1")

/*
 * For each size, one load from application memory and its store into ours, and the reverse. The
 * instruction at the label is the one that may fault. The functions return false if it did.
 */
#define VB_TOUCH_SIZE(size, move, via, clobbered)                                                  \
	static inline bool vb_faultable_load_##size(uint8_t *to, const uint8_t *from)              \
	{                                                                                          \
		__asm__ goto("1:\t" move "\t(%1), " via "\n\t" move "\t" via ", (%0)" VB_TOUCH_ROW \
			     :                                                                     \
			     : "r"(to), "r"(from)                                                  \
			     : clobbered, "memory"                                                 \
			     : fault);                                                             \
		return true;                                                                       \
fault:                                                                                             \
		return false;                                                                      \
	}                                                                                          \
                                                                                                   \
	static inline bool vb_faultable_store_##size(uint8_t *to, const uint8_t *from)             \
	{                                                                                          \
		__asm__ goto("\t" move "\t(%1), " via "\n1:\t" move "\t" via ", (%0)" VB_TOUCH_ROW \
			     :                                                                     \
			     : "r"(to), "r"(from)                                                  \
			     : clobbered, "memory"                                                 \
			     : fault);                                                             \
		return true;                                                                       \
fault:                                                                                             \
		return false;                                                                      \
	}

VB_TOUCH_SIZE(1, "movb", "%%al", "rax")
VB_TOUCH_SIZE(2, "movw", "%%ax", "rax")
VB_TOUCH_SIZE(4, "movl", "%%eax", "rax")
VB_TOUCH_SIZE(8, "movq", "%%rax", "rax")
VB_TOUCH_SIZE(16, "movups", "%%xmm0", "xmm0")

/* The pieces overlap, so that they need not be counted. */
static inline bool vb_faultable_read(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length >= 16) {
		if (length > 32 && !(vb_faultable_load_16(to + 16, from + 16) &&
				     vb_faultable_load_16(to + length - 32, from + length - 32)))
			return false;
		return vb_faultable_load_16(to, from) &&
		       vb_faultable_load_16(to + length - 16, from + length - 16);
	}
	if (length == 8)
		return vb_faultable_load_8(to, from);
	if (length > 8)
		return vb_faultable_load_8(to, from) &&
		       vb_faultable_load_8(to + length - 8, from + length - 8);
	if (length >= 4)
		return vb_faultable_load_4(to, from) &&
		       vb_faultable_load_4(to + length - 4, from + length - 4);
	if (length >= 2)
		return vb_faultable_load_2(to, from) &&
		       vb_faultable_load_2(to + length - 2, from + length - 2);
	return !length || vb_faultable_load_1(to, from);
}

/* Writes in ascending order, without a guarantee about the last byte. */
static inline bool vb_faultable_write_any(uint8_t *to, const uint8_t *from, size_t length)
{
	if (length >= 16) {
		if (!vb_faultable_store_16(to, from))
			return false;
		if (length > 32 && !(vb_faultable_store_16(to + 16, from + 16) &&
				     vb_faultable_store_16(to + length - 32, from + length - 32)))
			return false;
		return vb_faultable_store_16(to + length - 16, from + length - 16);
	}
	if (length >= 8)
		return vb_faultable_store_8(to, from) &&
		       vb_faultable_store_8(to + length - 8, from + length - 8);
	if (length >= 4)
		return vb_faultable_store_4(to, from) &&
		       vb_faultable_store_4(to + length - 4, from + length - 4);
	if (length >= 2)
		return vb_faultable_store_2(to, from) &&
		       vb_faultable_store_2(to + length - 2, from + length - 2);
	return !length || vb_faultable_store_1(to, from);
}

/*
 * The last byte is written by the largest aligned store that ends with it. This CPU makes stores
 * visible in program order and an aligned one as a whole, so a thread that sees that byte sees the
 * others.
 */
static inline bool vb_faultable_write(uint8_t *to, const uint8_t *from, size_t length)
{
	uintptr_t end = (uintptr_t)to + length;

	if (length >= 8 && end % 8 == 0)
		return (length == 8 || vb_faultable_write_any(to, from, length - 8)) &&
		       vb_faultable_store_8(to + length - 8, from + length - 8);
	if (length >= 4 && end % 4 == 0)
		return vb_faultable_write_any(to, from, length - 4) &&
		       vb_faultable_store_4(to + length - 4, from + length - 4);
	if (length >= 2 && end % 2 == 0)
		return vb_faultable_write_any(to, from, length - 2) &&
		       vb_faultable_store_2(to + length - 2, from + length - 2);
	return !length || (vb_faultable_write_any(to, from, length - 1) &&
			   vb_faultable_store_1(to + length - 1, from + length - 1));
}

/*
 * From this length on, the string copy is faster than memcpy: it need not read the cache lines that
 * it overwrites.
 */
enum { VB_TOUCH_LONG_MIN = 2048 };

static inline bool vb_faultable_can_write_long(const uint8_t *to, size_t length)
{
	return length >= VB_TOUCH_LONG_MIN && ((uintptr_t)to + length) % 8 == 0 && length % 8 == 0;
}

/* The row catches faults at either end. */
static inline bool vb_faultable_copy_words(uint8_t *to, const uint8_t *from, size_t count)
{
	__asm__ goto(
		"movq\t%0, %%rdi\n\tmovq\t%1, %%rsi\n\tmovq\t%2, %%rcx\n1:\trep movsq" VB_TOUCH_ROW
		:
		: "r"(to), "r"(from), "r"(count)
		: "rdi", "rsi", "rcx", "memory"
		: fault);
	return true;
fault:
	return false;
}

/*
 * The string copy makes its words visible in any order, but all of them before the last one, which
 * is stored after it.
 */
static inline bool vb_faultable_write_long(uint8_t *to, const uint8_t *from, size_t length)
{
	return vb_faultable_copy_words(to, from, length / 8 - 1) &&
	       vb_faultable_store_8(to + length - 8, from + length - 8);
}

/* Counters, flags and words of a ring: what a program writes most often. */
static inline bool vb_faultable_can_copy_word(const uint8_t *to, size_t length)
{
	return length == 8 && (uintptr_t)to % 8 == 0;
}

/* Both are application memory. The destination is aligned, so the word is visible as a whole. */
static inline bool vb_faultable_copy_word(uint8_t *to, const uint8_t *from)
{
	__asm__ goto("1:\tmovq\t(%1), %%rax\n2:\tmovq\t%%rax, (%0)" VB_TOUCH_ROW_OF("1")
			     VB_TOUCH_ROW_OF("2")
		     :
		     : "r"(to), "r"(from)
		     : "rax", "memory"
		     : fault);
	return true;
fault:
	return false;
}

/* The same as vb_faultable_write_long() if both are application memory. */
static inline bool vb_faultable_copy_long(uint8_t *to, const uint8_t *from, size_t length)
{
	uint8_t last[8];

	return vb_faultable_copy_words(to, from, length / 8 - 1) &&
	       vb_faultable_load_8(last, from + length - 8) &&
	       vb_faultable_store_8(to + length - 8, last);
}

#endif

#endif
