/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory allocator. A chunk is a sequence of blocks. The word before a block's memory holds its
 * size, and flags about it and about the block before it; a free block also has its size behind its
 * end, so that adjacent free blocks can be merged. Free blocks are listed by size, eight lists to
 * each power of two. The part of a chunk that was never handed out (PRISTINE) is still zero, so a
 * block taken from it is not cleared.
 */
#include "host/memory/blocks.h"

#include "base/err.h"
#include "base/list.h"
#include "host/memory/expanse.h"
#include "link/sys.h"

#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#define ALIGNMENT 16u
#define SIZE_MIN 32u /* of a block with its header: a free block holds its links */
#define SMALL_MAX 512u /* below this, each size has its own list */
#define LISTS_EACH_BITS 3u
#define LISTS (SMALL_MAX / ALIGNMENT + (15u << LISTS_EACH_BITS))
#define TRIES 8u /* blocks looked at in the list of the wanted size: some may be too small */
#define LARGE_MIN (128u << 10)
#define CHUNK_MIN (256u << 10)
#define CHUNK_MAX (8u << 20) /* the lists have room for sizes below twice this */
#define CHUNK_SHARE 8u /* a new chunk has one such part of the bytes in all chunks */

enum {
	FREE = 1,
	PREVIOUS_FREE = 2, /* the block before this one is free */
	PRISTINE = 4, /* free, and never handed out: all zero but for its links and size */
	LARGE = 8, /* a block with a mapping of its own */
	BITS = ALIGNMENT - 1
};

struct block {
	/* The size of the block before, if that is free; else the last bytes of its memory. */
	size_t previous_size;
	size_t size; /* with the bits of the enum above */
	struct vb_list_node node; /* in a list, if free; else the memory begins here */
};

/* At the beginning of a mapping. */
struct mapping {
	struct vb_list_node node;
	size_t length;
	size_t unused[4];
	/* At the place of the size of the first block. LARGE if the mapping is one large block. */
	size_t size;
};

/* Behind the last block of a chunk. Looks like a block of size 0 that is never free. */
struct end {
	size_t previous_size;
	size_t size;
	struct mapping *chunk;
	size_t unused;
};

_Static_assert(sizeof(struct mapping) % ALIGNMENT == 0 && sizeof(struct end) % ALIGNMENT == 0,
	       "blocks are aligned");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list_node mappings = { &mappings, &mappings };
static size_t mapped; /* bytes */
static size_t chunked; /* bytes in chunks */
static struct mapping *spare; /* an entirely free chunk, or NULL */
static struct vb_list_node lists[LISTS]; /* a list that was never used is all NULL */
static uint64_t has_some[(LISTS + 63) / 64];

/* --- fork --- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}

/*
 * A thread may hold another lock of ours when it takes this one, so fork() must take this lock last
 * and release it first. Its handlers are therefore registered before any others of ours: by a
 * constructor.
 */
static __attribute__((constructor)) void set_handlers(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* --- mappings --- */

static struct mapping *map(size_t length)
{
	struct mapping *mapping = vb_expanse_map(-1, length, PROT_READ | PROT_WRITE, 0);

	if (!mapping)
		return NULL;
	/* Names the mapping in /proc/PID/maps. Some kernels lack this call. */
	syscall(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, mapping, length, "verbatim");
	mapping->length = length;
	vb_list_append(&mappings, &mapping->node);
	mapped += length;
	return mapping;
}

static void unmap(struct mapping *mapping)
{
	vb_list_remove(&mapping->node);
	mapped -= mapping->length;
	/*
	 * The mapping may have been the stack of a thread that a forked child does not have:
	 * nothing else unpoisons its frames.
	 */
	ASAN_UNPOISON_MEMORY_REGION(mapping, mapping->length);
	syscall(SYS_munmap, mapping, mapping->length);
}

static void *alloc_large(size_t size)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct mapping *mapping;

	if (size > PTRDIFF_MAX - 2 * page)
		return NULL;
	mapping = map((sizeof(*mapping) + size + page - 1) / page * page);
	if (!mapping)
		return NULL;
	mapping->size = LARGE;
	return mapping + 1;
}

/* --- blocks --- */

static size_t size_of(const struct block *block)
{
	return block->size & ~(size_t)BITS;
}

static struct block *next_of(struct block *block)
{
	return (struct block *)(void *)((char *)block + size_of(block));
}

static struct block *previous_of(struct block *block)
{
	return (struct block *)(void *)((char *)block - block->previous_size);
}

/* The header of the first block overlaps the end of struct mapping. */
static struct block *first_of(struct mapping *chunk)
{
	return (struct block *)(void *)((char *)(chunk + 1) - ALIGNMENT);
}

static size_t list_index(size_t size)
{
	size_t power;

	if (size < SMALL_MAX)
		return size / ALIGNMENT;
	power = 63u - (size_t)__builtin_clzl(size);
	return SMALL_MAX / ALIGNMENT + ((power - 9u) << LISTS_EACH_BITS) +
	       (size >> (power - LISTS_EACH_BITS) & ((1u << LISTS_EACH_BITS) - 1));
}

static void add_to_list(struct block *block)
{
	size_t list = list_index(size_of(block));

	if (!lists[list].next)
		vb_list_init(&lists[list]);
	vb_list_append(lists[list].next, &block->node); /* as the first */
	has_some[list / 64] |= 1ull << list % 64;
}

static void remove_from_list(struct block *block)
{
	size_t list = list_index(size_of(block));

	vb_list_remove(&block->node);
	if (!vb_list_is_linked(&lists[list]))
		has_some[list / 64] &= ~(1ull << list % 64);
}

static void set_free(struct block *block, size_t size, size_t bits)
{
	struct block *next;

	block->size = size | FREE | bits;
	next = next_of(block);
	next->previous_size = size;
	next->size |= PREVIOUS_FREE;
	add_to_list(block);
}

static struct block *find_in(size_t list, size_t size)
{
	struct vb_list_node *node = lists[list].next;

	for (uint32_t i = 0; i < TRIES && node != &lists[list]; i++, node = node->next) {
		struct block *block = VB_CONTAINER(node, struct block, node);

		if (size_of(block) >= size)
			return block;
	}
	return NULL;
}

/* In the lists behind that of `size`, every block is large enough. */
static struct block *find(size_t size)
{
	size_t list = list_index(size);
	struct block *block = has_some[list / 64] >> list % 64 & 1 ? find_in(list, size) : NULL;

	while (!block && ++list < LISTS) {
		uint64_t rest = has_some[list / 64] >> list % 64;

		if (rest) {
			list += (size_t)__builtin_ctzll(rest);
			block = VB_CONTAINER(lists[list].next, struct block, node);
		} else {
			list |= 63;
		}
	}
	return block;
}

/* --- chunks --- */

static bool is_all_free(struct mapping *chunk)
{
	struct block *block = first_of(chunk);

	if (block->size & FREE)
		block = next_of(block);
	if (block->size & PRISTINE)
		block = next_of(block);
	return !size_of(block);
}

static bool add_chunk(void)
{
	size_t length = chunked / CHUNK_SHARE / CHUNK_MIN * CHUNK_MIN;
	struct mapping *chunk;
	struct block *block;
	struct end *end;

	length = length < CHUNK_MIN ? CHUNK_MIN : length > CHUNK_MAX ? CHUNK_MAX : length;
	chunk = map(length);
	if (!chunk)
		return false;
	chunked += length;
	end = (struct end *)(void *)((char *)chunk + length - sizeof(*end));
	end->chunk = chunk;
	block = first_of(chunk);
	set_free(block, (size_t)((char *)end - (char *)block), PRISTINE);
	return true;
}

/*
 * Unmaps the chunk of a block if all of it is free. Keeps one such chunk, so that a program that
 * makes and destroys the same thing does not call the kernel each time.
 */
static void unmap_if_unused(struct block *block)
{
	struct block *next = next_of(block);
	struct mapping *chunk;

	if (next->size & PRISTINE)
		next = next_of(next);
	if (size_of(next))
		return;
	chunk = ((struct end *)(void *)next)->chunk;
	if (chunk == spare || !is_all_free(chunk))
		return;
	if (!spare) {
		spare = chunk;
		return;
	}
	block = first_of(chunk);
	next = next_of(block);
	remove_from_list(block);
	if (next->size & PRISTINE)
		remove_from_list(next);
	chunked -= chunk->length;
	unmap(chunk);
}

/* --- from outside --- */

static void clear(struct block *block, bool is_pristine)
{
	if (is_pristine) {
		block->node = (struct vb_list_node){ 0 };
		next_of(block)->previous_size = 0;
	} else {
		memset(&block->node, 0, size_of(block) - sizeof(block->previous_size));
	}
}

static void *alloc_block(size_t size)
{
	struct block *block = find(size);
	size_t whole, pristine;

	if (!block)
		return NULL;
	remove_from_list(block);
	whole = size_of(block);
	pristine = block->size & PRISTINE;
	if (whole - size < SIZE_MIN)
		size = whole;
	block->size = size | (block->size & PREVIOUS_FREE);
	if (size < whole)
		set_free(next_of(block), whole - size, pristine);
	else
		next_of(block)->size &= ~(size_t)PREVIOUS_FREE;
	if (spare && !is_all_free(spare))
		spare = NULL;
	clear(block, pristine);
	return &block->node;
}

void *vb_blocks_alloc(size_t size)
{
	void *memory;

	pthread_mutex_lock(&lock);
	if (size >= LARGE_MIN) {
		memory = alloc_large(size);
	} else {
		size = (size + sizeof(size_t) + BITS) & ~(size_t)BITS;
		size = size < SIZE_MIN ? SIZE_MIN : size;
		memory = alloc_block(size);
		if (!memory && add_chunk())
			memory = alloc_block(size);
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

static void free_block(struct block *block)
{
	size_t size = size_of(block);
	struct block *next = next_of(block);

	VB_CHECK(!(block->size & FREE) && size >= SIZE_MIN);
	if ((next->size & (FREE | PRISTINE)) == FREE) {
		remove_from_list(next);
		size += size_of(next);
	}
	if (block->size & PREVIOUS_FREE) {
		block = previous_of(block);
		remove_from_list(block);
		size += size_of(block);
	}
	set_free(block, size, 0);
	unmap_if_unused(block);
}

void vb_blocks_free(void *memory)
{
	struct block *block;

	if (!memory)
		return;
	block = VB_CONTAINER(memory, struct block, node);
	pthread_mutex_lock(&lock);
	if (block->size & LARGE)
		unmap((struct mapping *)memory - 1);
	else
		free_block(block);
	pthread_mutex_unlock(&lock);
}

bool vb_blocks_overlap(uint64_t address, uint64_t length)
{
	bool does_overlap = false;

	pthread_mutex_lock(&lock);
	for (struct vb_list_node *node = mappings.next; node != &mappings && !does_overlap;
	     node = node->next) {
		uint64_t begin = (uintptr_t)node; /* a mapping begins with its list node */

		does_overlap = begin < address ? address - begin < ((struct mapping *)node)->length
					       : begin - address < length;
	}
	pthread_mutex_unlock(&lock);
	return does_overlap;
}

size_t vb_blocks_mapped(void)
{
	size_t length;

	pthread_mutex_lock(&lock);
	length = mapped;
	pthread_mutex_unlock(&lock);
	return length;
}
