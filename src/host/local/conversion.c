/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of all conversions of the process. A conversion is made while the program is stopped in
 * its only thread, or while its other threads are held off. It is undone in the same way. If other
 * threads cannot be held off, its mapping becomes a private one of the same file, in one step: what
 * was stored before is in the file, what is stored later in pages of its own, and nothing is lost.
 * That is undone as soon as the program has a single thread again. The kernel is asked each time
 * where the parts of a conversion lie: the program may have moved or unmapped some.
 */
#include "host/local/conversion.h"

#include "base/heap.h"
#include "host/local/conversion_priv.h"
#include "host/local/export.h"
#include "host/sys/log.h"
#include "host/sys/mapping.h"
#include "host/sys/sealed.h"
#include "link/fd.h"
#include "link/sys.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#define TOTAL_MAX (64u << 20) /* bytes of a process: bounds what can go wrong or take long */
#define PART_BATCH 16u
/* In a row. A program for which conversion never works must not pay for each region. */
#define REFUSALS_MAX 256u

struct vb_conversion {
	struct vb_list_node node;
	uint64_t address;
	uint64_t length;
	int fd;
	dev_t device;
	ino_t inode;
	uint32_t reference_count; /* 0: only parts that could not be undone yet are left */
	bool is_shared; /* a shared mapping; else private parts of its file */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list_node all = { &all, &all };
static struct vb_list_node registrations = { &registrations, &registrations };
static uint32_t refusal_count;
/* The range that holds all of `all`, and what is about to be converted. */
static _Atomic uint64_t lowest = UINT64_MAX, highest;

static struct vb_conversion *conversion_of(struct vb_list_node *node)
{
	return VB_CONTAINER(node, struct vb_conversion, node);
}

static bool do_overlap(uint64_t a, uint64_t a_length, uint64_t b, uint64_t b_length)
{
	return a < b ? b - a < a_length : a - b < b_length;
}

bool vb_conversion_overlaps(const struct vb_conversion *conversion, uint64_t address,
			    uint64_t length)
{
	return do_overlap(conversion->address, conversion->length, address, length);
}

/*
 * From here on no signal handler of the program runs, which could store something or start a
 * thread.
 */
static uint64_t block_signals(void)
{
	uint64_t everything = UINT64_MAX, before = 0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &everything, &before, sizeof(before));
	return before;
}

static void restore_signals(uint64_t mask)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

/* --- registrations --- */

void vb_registration_add(struct vb_registration *registration, uint64_t address, uint64_t length)
{
	registration->address = address;
	registration->length = length;
	pthread_mutex_lock(&lock);
	vb_list_append(&registrations, &registration->node);
	pthread_mutex_unlock(&lock);
}

static bool is_registered(uint64_t address, uint64_t length)
{
	for (struct vb_list_node *node = registrations.next; node != &registrations;
	     node = node->next) {
		const struct vb_registration *registration =
			VB_CONTAINER(node, struct vb_registration, node);

		if (do_overlap(registration->address, registration->length, address, length))
			return true;
	}
	return false;
}

/* --- the list --- */

/* What is about to be converted: other threads that change its mapping wait for that. */
static struct {
	uint64_t begin, end;
} pending = { UINT64_MAX, 0 };

static void note_bounds(void)
{
	uint64_t low = pending.begin, high = pending.end;

	for (struct vb_list_node *node = all.next; node != &all; node = node->next) {
		const struct vb_conversion *conversion = conversion_of(node);

		low = conversion->address < low ? conversion->address : low;
		high = conversion->address + conversion->length > high
			       ? conversion->address + conversion->length
			       : high;
	}
	lowest = low;
	highest = high;
}

static void set_pending(uint64_t begin, uint64_t end)
{
	pending.begin = begin;
	pending.end = end;
	note_bounds();
}

bool vb_conversion_may_overlap(uint64_t address, uint64_t length)
{
	uint64_t low = lowest, high = highest;

	return low < high && do_overlap(low, high - low, address, length);
}

static void forget(struct vb_conversion *conversion)
{
	vb_list_remove(&conversion->node);
	note_bounds();
	vb_fd_close(conversion->fd);
	vb_heap_free(conversion);
}

/* --- there --- */

static struct vb_conversion *convert(uint64_t address, uint64_t length)
{
	struct vb_conversion *conversion = vb_heap_alloc(1, sizeof(*conversion));
	struct stat status = { 0 };

	if (!conversion)
		return NULL;
	conversion->fd = vb_sealed_open("verbatim-memory", length);
	if (conversion->fd >= 0 && !fstat(conversion->fd, &status))
		conversion->length = vb_conversion_move_in(conversion->fd, address, length,
							   vb_conversion_is_alone());
	if (!conversion->length) {
		vb_fd_close(conversion->fd);
		vb_heap_free(conversion);
		return NULL;
	}
	conversion->address = address;
	conversion->device = status.st_dev;
	conversion->inode = status.st_ino;
	conversion->reference_count = 1;
	conversion->is_shared = true;
	vb_list_append(&all, &conversion->node);
	note_bounds();
	return conversion;
}

/* --- and back --- */

/* The descriptor of the file, unless the program has closed it. */
static int fd_of(const struct vb_conversion *conversion)
{
	return vb_fd_is_ours(conversion->fd) ? conversion->fd : -1;
}

struct parts {
	struct vb_mapping list[PART_BATCH]; /* without their texts */
	uint32_t count;
	bool are_known; /* else the kernel has not listed them */
	bool has_requests; /* the kernel may be executing some of them */
};

/* The first mappings of the conversion's file from an address on. */
static void find_parts(const struct vb_conversion *conversion, uint64_t from, struct parts *parts)
{
	struct vb_mapping_list list;
	struct vb_mapping mapping;

	parts->count = 0;
	parts->has_requests = false;
	parts->are_known = vb_mapping_list_open(&list, false);
	if (!parts->are_known)
		return;
	while (vb_mapping_list_next(&list, &mapping)) {
		parts->has_requests |= vb_conversion_is_request_queue(&mapping);
		if (mapping.begin >= from && mapping.inode == conversion->inode &&
		    mapping.device == conversion->device && parts->count < PART_BATCH)
			parts->list[parts->count++] = mapping;
	}
	vb_mapping_list_close(&list);
}

enum way {
	UNDO, /* as it was before, unless another thread prevents that */
	UNDO_BRIEFLY, /* private parts of its file, for the moment */
	/* As it was before, unless the kernel may be executing requests that write there. */
	UNDO_IF_DONE,
};

/* True if the part is as it was before. */
static bool undo_part(int fd, struct vb_mapping *part, bool may_replace, enum way way)
{
	may_replace &= !vb_conversion_is_in_use(part->begin, part->end);
	if (may_replace && vb_conversion_is_alone() && vb_conversion_move_out(fd, part))
		return true;
	if (!vb_conversion_make_private(fd, part)) {
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "deregister"),
			     "the memory at 0x%" PRIx64 " stays shared: it cannot be mapped again",
			     part->begin);
		return false;
	}
	return way != UNDO_BRIEFLY && fd >= 0 && vb_conversion_leave_file(fd, part) &&
	       may_replace && vb_conversion_move_out_held(fd, part);
}

/*
 * True if the whole conversion is as it was before. `is_quiet`: no adapter writes to it meanwhile.
 */
static bool undo(struct vb_conversion *conversion, bool is_quiet, enum way way)
{
	uint64_t mask = block_signals(), from = 0;
	bool may_replace = way != UNDO_BRIEFLY && is_quiet;
	int fd = fd_of(conversion);
	bool is_undone = true;
	struct parts parts;

	do {
		find_parts(conversion, from, &parts);
		if (!parts.are_known ||
		    (parts.count && parts.has_requests && way == UNDO_IF_DONE)) {
			restore_signals(mask);
			return false;
		}
		for (uint32_t i = 0; i < parts.count; i++) {
			from = parts.list[i].end;
			is_undone &= undo_part(fd, &parts.list[i],
					       may_replace && !parts.has_requests, way);
		}
	} while (parts.count == PART_BATCH);
	restore_signals(mask);
	conversion->is_shared = false;
	return is_undone;
}

/* Undoes what could not be undone before. */
static void tidy_up(void)
{
	struct vb_list_node *node = all.next;

	while (node != &all) {
		struct vb_conversion *conversion = conversion_of(node);
		bool is_quiet = !is_registered(conversion->address, conversion->length);

		node = node->next;
		if (!conversion->reference_count &&
		    undo(conversion, is_quiet, is_quiet ? UNDO_IF_DONE : UNDO_BRIEFLY))
			forget(conversion);
	}
}

/* --- from outside --- */

/* Whether anything is left that could not be undone while the region existed. */
static bool has_leftover(uint64_t address, uint64_t length)
{
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		if (!conversion_of(node)->reference_count &&
		    vb_conversion_overlaps(conversion_of(node), address, length))
			return true;
	return false;
}

void vb_registration_remove(struct vb_registration *registration)
{
	pthread_mutex_lock(&lock);
	vb_list_remove(&registration->node);
	if (has_leftover(registration->address, registration->length))
		tidy_up();
	pthread_mutex_unlock(&lock);
}

static struct vb_conversion *find(uint64_t address, uint64_t length)
{
	for (struct vb_list_node *node = all.next; node != &all; node = node->next) {
		struct vb_conversion *conversion = conversion_of(node);

		if (conversion->is_shared && vb_conversion_overlaps(conversion, address, length))
			return conversion;
	}
	return NULL;
}

struct vb_conversion *vb_conversion_acquire(uint64_t address, uint64_t length)
{
	struct vb_conversion *conversion;

	pthread_mutex_lock(&lock);
	conversion = find(address, length);
	if (conversion)
		conversion->reference_count++;
	pthread_mutex_unlock(&lock);
	return conversion;
}

static bool has_room(uint64_t length)
{
	uint64_t room = TOTAL_MAX;

	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		room -= conversion_of(node)->length; /* never more than `room` */
	return length <= room;
}

struct vb_conversion *vb_conversion_make(uint64_t address, uint64_t length)
{
	uint64_t size = vb_conversion_page_size();
	uint64_t begin = (address + size - 1) / size * size;
	uint64_t end = (address + length) / size * size;
	struct vb_conversion *conversion = NULL;
	uint64_t mask;

	if (begin < address || end <= begin)
		return NULL;
	pthread_mutex_lock(&lock);
	tidy_up();
	mask = block_signals();
	if (refusal_count < REFUSALS_MAX && has_room(end - begin) &&
	    !is_registered(begin, end - begin)) {
		set_pending(begin, end);
		if (vb_conversion_is_permitted(begin, end))
			conversion = convert(begin, end - begin);
		refusal_count = conversion ? 0 : refusal_count + 1;
		set_pending(UINT64_MAX, 0);
	}
	restore_signals(mask);
	pthread_mutex_unlock(&lock);
	return conversion;
}

bool vb_conversion_share(const struct vb_conversion *conversion, struct vb_shared *shared_out)
{
	int fd = vb_fd_own(vb_sys_result(syscall(SYS_fcntl, conversion->fd, F_DUPFD_CLOEXEC, 0)));

	if (fd < 0)
		return false;
	*shared_out = (struct vb_shared){
		.fd = fd,
		.address = conversion->address,
		.length = conversion->length,
	};
	return true;
}

void vb_conversion_drop(struct vb_conversion *conversion)
{
	pthread_mutex_lock(&lock);
	if (!--conversion->reference_count)
		tidy_up();
	pthread_mutex_unlock(&lock);
}

/*
 * Parts of the file that could not be made anonymous: empties them as if their pages were given
 * back.
 */
static void empty_parts(const struct vb_conversion *conversion, uint64_t address, uint64_t length)
{
	struct parts parts;
	uint64_t from = 0;

	do {
		find_parts(conversion, from, &parts);
		for (uint32_t i = 0; i < parts.count; i++) {
			uint64_t begin = parts.list[i].begin, end = parts.list[i].end;

			from = end;
			if (!do_overlap(begin, end - begin, address, length))
				continue;
			begin = begin > address ? begin : address;
			end = end - address < length ? end : address + length;
			(void)vb_conversion_empty(begin, end);
		}
	} while (parts.count == PART_BATCH);
}

/*
 * Both cases do without copies for now: a child may end before anything is stored, and memory that
 * will be unmapped is not needed.
 */
static bool is_private_enough(enum vb_conversion_reason reason)
{
	return reason == VB_CONVERSION_COPIES || reason == VB_CONVERSION_UNMAPS;
}

static bool withdraw(struct vb_conversion *conversion, enum vb_conversion_reason reason,
		     uint64_t address, uint64_t length)
{
	if (undo(conversion, true, is_private_enough(reason) ? UNDO_BRIEFLY : UNDO)) {
		if (!conversion->reference_count)
			forget(conversion);
		return true;
	}
	if (reason == VB_CONVERSION_EMPTIES)
		empty_parts(conversion, address, length);
	return reason != VB_CONVERSION_GROWS;
}

void vb_conversion_tidy(void)
{
	pthread_mutex_lock(&lock);
	tidy_up();
	pthread_mutex_unlock(&lock);
}

bool vb_conversion_withdraw(enum vb_conversion_reason reason, uint64_t address, uint64_t length)
{
	bool may_go_on = true;

	pthread_mutex_lock(&lock);
	for (struct vb_list_node *node = all.next; node != &all;) {
		struct vb_conversion *conversion = conversion_of(node);

		node = node->next;
		if (vb_conversion_overlaps(conversion, address, length))
			may_go_on &= withdraw(conversion, reason, address, length);
	}
	pthread_mutex_unlock(&lock);
	return may_go_on;
}

bool vb_conversion_hook_in(vb_conversion_hook *hook)
{
	vb_conversion_hook **place = dlsym(RTLD_DEFAULT, "vb_shim_conversion_hook");

	vb_conversion_find_special();
	if (place)
		__atomic_store_n(place, hook, __ATOMIC_RELEASE);
	return place;
}

/*
 * The parent's conversions were withdrawn before the fork; their files were closed with all others.
 */
void vb_conversion_inherit(void)
{
	vb_conversion_forget_helpers();
	for (struct vb_list_node *node = all.next; node != &all; node = node->next)
		conversion_of(node)->fd = -1;
	pthread_mutex_init(&lock, NULL);
}
