/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * QP 1 for librdmacm (host/qp1/qp1_user.h): each function enters the adapter of a context, does its
 * work and leaves.
 */
#include "abi/export_priv.h"
#include "abi/objects_priv.h"
#include "abi/refuse_priv.h"
#include "base/heap.h"
#include "host/qp1/qp1.h"
#include "host/qp1/qp1_user.h"
#include "host/sys/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LAST_MADS_NS 200000000u /* the longest time that the last MADs of a user may take */
#define PAUSE_NS 100000

struct vb_abi_qp1_name {
	struct vb_adapter *adapter;
	struct vb_qp1_name *name;
};

/* The adapter that the user of this process is attached to, or NULL. */
static pthread_mutex_t home_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_adapter *home_adapter;

static void set_home(struct vb_adapter *adapter)
{
	pthread_mutex_lock(&home_lock);
	home_adapter = adapter;
	pthread_mutex_unlock(&home_lock);
}

void vb_abi_report_removal(const struct ibv_device *device)
{
	pthread_mutex_lock(&home_lock);
	if (home_adapter) {
		vb_adapter_enter(home_adapter);
		vb_qp1_on_removal(vb_adapter_qp1(home_adapter), device);
		vb_adapter_leave(home_adapter);
	}
	pthread_mutex_unlock(&home_lock);
}

static struct vb_adapter *adapter_of(struct ibv_context *context)
{
	return vb_abi_context_of(context)->adapter;
}

VB_ABI_EXPORT int vb_abi_qp1_attach(struct ibv_context *home, const struct vb_qp1_user *user,
				    struct vb_qp1_config *place_out)
{
	struct vb_adapter *adapter = adapter_of(home);
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	vb_adapter_enter(adapter);
	err = vb_qp1_attach(vb_adapter_qp1(adapter), user, place_out);
	vb_adapter_leave(adapter);
	if (err)
		return vb_abi_refuse(vb_abi_errno(err), "QP 1 of %s: %s", home->device->name,
				     err == VB_EBUSY ? "the process has a user of it already"
						     : "no room for its connections");
	set_home(adapter);
	return 0;
}

VB_ABI_EXPORT void vb_abi_qp1_kick(struct ibv_context *home)
{
	struct vb_adapter *adapter = adapter_of(home);

	vb_adapter_enter(adapter);
	vb_qp1_kick(vb_adapter_qp1(adapter));
	vb_adapter_leave(adapter);
}

/* False if some MADs could not be sent yet. */
static bool try_detach(struct vb_adapter *adapter, bool is_patient)
{
	struct vb_qp1 *qp1 = vb_adapter_qp1(adapter);
	bool is_done;

	vb_adapter_enter(adapter);
	is_done = !is_patient || !vb_qp1_has_user(qp1) || !vb_qp1_is_sending(qp1);
	if (is_done)
		vb_qp1_detach(qp1);
	vb_adapter_leave(adapter);
	return is_done;
}

VB_ABI_EXPORT void vb_abi_qp1_detach(struct ibv_context *home)
{
	uint64_t begin_ns = vb_clock_now();

	set_home(NULL);
	vb_abi_qp1_kick(home);
	while (!try_detach(adapter_of(home), vb_clock_now() - begin_ns < LAST_MADS_NS))
		syscall(SYS_nanosleep, &(struct timespec){ 0, PAUSE_NS }, NULL);
}

VB_ABI_EXPORT int vb_abi_qp1_listen(struct ibv_context *home, uint64_t service,
				    const struct vb_gid *address, uint32_t families,
				    struct vb_abi_qp1_name **name_out)
{
	static const struct vb_gid any;
	struct vb_adapter *adapter = adapter_of(home);
	struct vb_abi_qp1_name *name;
	vb_err err;

	if (!vb_adapter_ensure_usable(adapter))
		return EIO;
	name = vb_heap_alloc(1, sizeof(*name));
	if (!name)
		return ENOMEM;
	name->adapter = adapter;
	vb_adapter_enter(adapter);
	err = vb_qp1_listen(vb_adapter_qp1(adapter), service, address ? address : &any, families,
			    &name->name);
	vb_adapter_leave(adapter);
	if (err) {
		vb_heap_free(name);
		return err == VB_EBUSY ? EADDRINUSE : vb_abi_errno(err);
	}
	*name_out = name;
	return 0;
}

VB_ABI_EXPORT void vb_abi_qp1_unlisten(struct vb_abi_qp1_name *name)
{
	vb_adapter_enter(name->adapter);
	vb_qp1_unlisten(vb_adapter_qp1(name->adapter), vb_clock_now(), name->name);
	vb_adapter_leave(name->adapter);
	vb_heap_free(name);
}

VB_ABI_EXPORT int vb_abi_qp1_wait(struct ibv_context *home, int fd)
{
	return vb_abi_wait(adapter_of(home), fd);
}

VB_ABI_EXPORT void vb_abi_log_line(enum vb_log_level level, const struct vb_log_about *about,
				   const char *line)
{
	vb_log_about(level, about, "%s", line);
}

VB_ABI_EXPORT void *vb_abi_heap_alloc(size_t count, size_t size)
{
	return vb_heap_alloc(count, size);
}

VB_ABI_EXPORT void vb_abi_heap_free(void *memory)
{
	vb_heap_free(memory);
}
