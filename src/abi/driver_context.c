/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening, importing and closing devices. The cmd_fd of a context is an empty file without a name:
 * a program may pass copies of it around, and the file identifies the device at an import. This
 * works only within one process.
 */
#include "abi/refuse_priv.h"
#include "base/heap.h"
#include "host/sys/config.h"
#include "host/sys/pollable.h"
#include "link/fd.h"

#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COMPLETION_VECTORS 8
#define FILE_CLOSE_ON_EXEC 1u /* MFD_CLOEXEC */

static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list_node all_opened = { &all_opened, &all_opened };
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* Runs in a forked child, which may also open devices. */
static void renew_lock(void)
{
	pthread_mutex_init(&all_lock, NULL);
}

static void set_fork_handler(void)
{
	pthread_atfork(NULL, NULL, renew_lock);
}

/* --- what contexts share --- */

static int open_adapter(struct vb_abi_opened *opened)
{
	struct vb_adapter_init init = {
		.device = &opened->device,
		.config = vb_abi_config(),
		.on_event = vb_abi_on_event,
		.on_change = vb_abi_on_change,
		.owner = opened,
	};
	int error = vb_abi_errno(vb_adapter_open(&init, &opened->adapter));

	if (error)
		return error;
	vb_adapter_enter(opened->adapter);
	error = vb_abi_errno(vb_pd_create(vb_adapter_nic(opened->adapter), &opened->spare_pd));
	vb_adapter_leave(opened->adapter);
	if (error)
		vb_adapter_close(opened->adapter);
	return error;
}

static int open_shared(struct ibv_device *device, const struct stat *file,
		       struct vb_abi_opened **opened_out)
{
	struct vb_abi_opened *opened = vb_heap_alloc(1, sizeof(*opened));
	int error;

	if (!opened)
		return ENOMEM;
	opened->device = vb_abi_device_description(device);
	opened->verbs = device;
	opened->context_count = 1;
	opened->process = getpid();
	opened->file_device = file->st_dev;
	opened->file_inode = file->st_ino;
	pthread_mutex_init(&opened->contexts_lock, NULL);
	vb_list_init(&opened->xrc_domains);
	vb_list_init(&opened->contexts);
	vb_list_init(&opened->pds);
	vb_list_init(&opened->mrs);
	vb_list_init(&opened->dms);
	error = open_adapter(opened);
	if (error) {
		pthread_mutex_destroy(&opened->contexts_lock);
		vb_heap_free(opened);
		return error;
	}
	pthread_once(&fork_once, set_fork_handler);
	pthread_mutex_lock(&all_lock);
	vb_list_append(&all_opened, &opened->node);
	pthread_mutex_unlock(&all_lock);
	*opened_out = opened;
	return 0;
}

static void free_events(struct vb_abi_context *context)
{
	while (vb_list_is_linked(&context->events)) {
		struct vb_list_node *node = context->events.next;

		vb_list_remove(node);
		vb_heap_free(VB_CONTAINER(node, struct vb_abi_async_event, node));
	}
}

static void end_shared(struct vb_abi_opened *opened)
{
	vb_list_remove(&opened->node);
	vb_adapter_close(opened->adapter);
	while (vb_list_is_linked(&opened->contexts)) {
		struct vb_abi_context *context =
			VB_CONTAINER(opened->contexts.next, struct vb_abi_context, node);

		vb_list_remove(&context->node);
		free_events(context);
		pthread_mutex_destroy(&context->events_lock);
		vb_heap_free(context);
	}
	pthread_mutex_destroy(&opened->contexts_lock);
	vb_heap_free(opened);
}

/* Counts the objects that the program made and did not destroy. */
static uint32_t count_left(struct vb_abi_opened *opened)
{
	uint32_t left;

	vb_adapter_enter(opened->adapter);
	left = vb_nic_root_object_count(vb_adapter_nic(opened->adapter)) - 1;
	if (!left)
		vb_pd_destroy(opened->spare_pd);
	vb_adapter_leave(opened->adapter);
	return left;
}

/*
 * Drops one context. Objects refer to their context, and some programs destroy them after closing
 * the context: then everything stays until the process ends.
 */
static void close_shared(struct vb_abi_opened *opened)
{
	uint32_t left = 0;

	pthread_mutex_lock(&all_lock);
	if (!--opened->context_count) {
		left = count_left(opened);
		if (!left)
			end_shared(opened);
	}
	pthread_mutex_unlock(&all_lock);
	if (left)
		vb_log_about(VB_LOG_WARN,
			     VB_LOG_ABOUT(.phase = "ibv_close_device",
					  .device = opened->device.name),
			     "ibv_close_device: %s is closed with %" PRIu32
			     " PDs, CQs, XRC domains or device memories that were not destroyed",
			     opened->device.name, left);
}

/* The device that was opened with this file, with its context count increased, or NULL. */
static struct vb_abi_opened *acquire_opened(const struct stat *file)
{
	struct vb_abi_opened *found = NULL;

	pthread_mutex_lock(&all_lock);
	for (struct vb_list_node *node = all_opened.next; node != &all_opened; node = node->next) {
		struct vb_abi_opened *opened = VB_CONTAINER(node, struct vb_abi_opened, node);

		if (opened->file_device != file->st_dev || opened->file_inode != file->st_ino ||
		    opened->process != getpid())
			continue;
		found = opened;
		found->context_count++;
		break;
	}
	pthread_mutex_unlock(&all_lock);
	return found;
}

/* --- contexts --- */

/* On success takes over `opened` and cmd_fd. */
static int make_context(struct vb_abi_opened *opened, int cmd_fd, struct ibv_context **context_out)
{
	struct vb_abi_context *context = vb_heap_alloc(1, sizeof(*context));
	struct ibv_context *verbs;

	if (!context)
		return ENOMEM;
	verbs = &context->verbs.context;
	vb_abi_context_init(&context->verbs, opened->verbs);
	verbs->async_fd = vb_pollable_open();
	if (verbs->async_fd < 0) {
		int error = -verbs->async_fd;

		vb_heap_free(context);
		return error;
	}
	verbs->cmd_fd = cmd_fd;
	verbs->num_comp_vectors = COMPLETION_VECTORS;
	context->opened = opened;
	context->adapter = opened->adapter;
	pthread_mutex_init(&context->events_lock, NULL);
	vb_list_init(&context->events);
	pthread_mutex_lock(&opened->contexts_lock);
	vb_list_append(&opened->contexts, &context->node);
	pthread_mutex_unlock(&opened->contexts_lock);
	*context_out = verbs;
	return 0;
}

int vb_abi_context_open(struct ibv_device *device, struct ibv_context **context_out)
{
	struct vb_abi_opened *opened = NULL;
	struct stat file;
	int error;
	int fd = (int)syscall(SYS_memfd_create, "verbatim", FILE_CLOSE_ON_EXEC);

	if (fd < 0)
		return vb_abi_refuse(errno, "ibv_open_device: no descriptor for %s", device->name);
	vb_fd_own_in_place(fd);
	if (fstat(fd, &file)) {
		error = errno;
		goto close_fd;
	}
	error = open_shared(device, &file, &opened);
	if (error)
		goto close_fd;
	error = make_context(opened, fd, context_out);
	if (error)
		goto close_shared;
	return 0;
close_shared:
	close_shared(opened);
close_fd:
	vb_fd_close(fd);
	return error;
}

int vb_abi_context_import(int cmd_fd, struct ibv_context **context_out)
{
	struct vb_abi_opened *opened;
	struct stat file;
	int error;

	if (fstat(cmd_fd, &file))
		return vb_abi_refuse(errno, "ibv_import_device: %d is no descriptor", cmd_fd);
	opened = acquire_opened(&file);
	if (!opened)
		return vb_abi_refuse(
			EOPNOTSUPP,
			"ibv_import_device: descriptor %d is not the cmd_fd of a device "
			"that this process opened; others' cannot be imported",
			cmd_fd);
	error = make_context(opened, cmd_fd, context_out);
	if (error)
		close_shared(opened);
	else
		vb_fd_own_in_place(cmd_fd);
	return error;
}

int vb_abi_context_close(struct ibv_context *context)
{
	struct vb_abi_context *own = vb_abi_context_of(context);

	pthread_mutex_lock(&own->events_lock);
	vb_fd_close(context->cmd_fd);
	vb_pollable_close(context->async_fd);
	context->cmd_fd = context->async_fd = -1; /* events of remaining objects are dropped */
	pthread_mutex_unlock(&own->events_lock);
	close_shared(own->opened);
	return 0;
}
