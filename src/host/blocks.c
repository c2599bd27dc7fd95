/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A memory allocator. A chunk is a sequence of blocks. The word before a block's memory holds its
 * size, and bits about it and the block before; a free block also has its size behind its end, so
 * that adjacent free blocks become one. Free blocks are listed by size, eight lists to each power
 * of two. What a chunk has not yet handed out is still zero, and is not touched.
 */
#include "host/blocks.h"

#include "base/err.h"
#include "base/list.h"
#include "host/expanse.h"
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
#define TRIES 8u /* in the list where not all blocks are large enough */
#define LARGE_MIN (128u << 10)
#define CHUNK_MIN (256u << 10)
#define CHUNK_MAX (8u << 20) /* the lists have room for sizes below twice this */
#define CHUNK_SHARE 8u /* a new chunk is this fraction of all chunks */

enum { FREE = 1, BEFORE_FREE = 2, PRISTINE = 4, LARGE = 8, BITS = ALIGNMENT - 1 };

struct block {
	/* The size of the block before, if that is free; else the last bytes of its memory. */
	size_t before;
	size_t size; /* with the bits of the enum above */
	struct vb_list_node node; /* in a list, if free; else the memory begins here */
};

/* At the beginning of a mapping. */
struct mapping {
	struct vb_list_node node;
	size_t length;
	size_t unused[4];
	/* At the place where a block has its size. LARGE for a large block. */
	size_t size;
};

/* The end of a chunk's last block. It looks like a block without bytes that is never free. */
struct end {
	size_t before;
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

static void after_fork_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

/*
 * Registered before any other handler of ours: this lock, which holders of the other locks may
 * want, is thus taken last and released first.
 */
static __attribute__((constructor)) void set_handlers(void)
{
	pthread_atfork(before_fork, after_fork, after_fork_in_child);
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

static void *take_large(size_t size)
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

static struct block *before_of(struct block *block)
{
	return (struct block *)(void *)((char *)block - block->before);
}

/* The first block's header is the end of the chunk's. */
static struct block *first_of(struct mapping *chunk)
{
	return (struct block *)(void *)((char *)(chunk + 1) - ALIGNMENT);
}

static size_t list_of(size_t size)
{
	size_t power;

	if (size < SMALL_MAX)
		return size / ALIGNMENT;
	power = 63u - (size_t)__builtin_clzl(size);
	return SMALL_MAX / ALIGNMENT + ((power - 9u) << LISTS_EACH_BITS) +
	       (size >> (power - LISTS_EACH_BITS) & ((1u << LISTS_EACH_BITS) - 1));
}

static void enlist(struct block *block)
{
	size_t list = list_of(size_of(block));

	if (!lists[list].next)
		vb_list_init(&lists[list]);
	vb_list_append(lists[list].next, &block->node); /* as the first */
	has_some[list / 64] |= 1ull << list % 64;
}

static void delist(struct block *block)
{
	size_t list = list_of(size_of(block));

	vb_list_remove(&block->node);
	if (!vb_list_is_linked(&lists[list]))
		has_some[list / 64] &= ~(1ull << list % 64);
}

static void set_free(struct block *block, size_t size, size_t bits)
{
	struct block *next;

	block->size = size | FREE | bits;
	next = next_of(block);
	next->before = size;
	next->size |= BEFORE_FREE;
	enlist(block);
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

/* In the lists after that of its size, every block is large enough. */
static struct block *find(size_t size)
{
	size_t list = list_of(size);
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
 * Keeps one free chunk, so that a program that makes and destroys the same thing does not call the
 * kernel each time.
 */
static void on_freed(struct block *block)
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
	delist(block);
	if (next->size & PRISTINE)
		delist(next);
	chunked -= chunk->length;
	unmap(chunk);
}

/* --- from outside --- */

static void clear(struct block *block, bool is_pristine)
{
	if (is_pristine) {
		block->node = (struct vb_list_node){ 0 };
		next_of(block)->before = 0;
	} else {
		memset(&block->node, 0, size_of(block) - sizeof(block->before));
	}
}

static void *take(size_t size)
{
	struct block *block = find(size);
	size_t whole, pristine;

	if (!block)
		return NULL;
	delist(block);
	whole = size_of(block);
	pristine = block->size & PRISTINE;
	if (whole - size < SIZE_MIN)
		size = whole;
	block->size = size | (block->size & BEFORE_FREE);
	if (size < whole)
		set_free(next_of(block), whole - size, pristine);
	else
		next_of(block)->size &= ~(size_t)BEFORE_FREE;
	if (spare && !is_all_free(spare))
		spare = NULL;
	clear(block, pristine);
	return &block->node;
}

void *vb_blocks_take(size_t size)
{
	void *memory;

	pthread_mutex_lock(&lock);
	if (size >= LARGE_MIN) {
		memory = take_large(size);
	} else {
		size = (size + sizeof(size_t) + BITS) & ~(size_t)BITS;
		size = size < SIZE_MIN ? SIZE_MIN : size;
		memory = take(size);
		if (!memory && add_chunk())
			memory = take(size);
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

static void give(struct block *block)
{
	size_t size = size_of(block);
	struct block *next = next_of(block);

	VB_CHECK(!(block->size & FREE) && size >= SIZE_MIN);
	if ((next->size & (FREE | PRISTINE)) == FREE) {
		delist(next);
		size += size_of(next);
	}
	if (block->size & BEFORE_FREE) {
		block = before_of(block);
		delist(block);
		size += size_of(block);
	}
	set_free(block, size, 0);
	on_freed(block);
}

void vb_blocks_give(void *memory)
{
	struct block *block;

	if (!memory)
		return;
	block = VB_CONTAINER(memory, struct block, node);
	pthread_mutex_lock(&lock);
	if (block->size & LARGE)
		unmap((struct mapping *)memory - 1);
	else
		give(block);
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
	return mapped;
}
