/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The open devices. A lookup for an address that no open device has opens devices in the order of
 * the list, so that a program that uses one interface opens as few others as possible. Devices stay
 * open to the end of the process. The lock of this file is held during verbs, and never together
 * with the lock of the connection manager.
 */
#include "cma/cma_priv.h"

#include "base/bytes.h"
#include "base/err.h"
#include "base/heap.h"

#include <pthread.h>
#include <string.h>

#define GIDS_MAX 1024

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vb_list_node devices = { &devices, &devices };
static struct vb_list_node set_aside = { &set_aside, &set_aside };

static uint8_t clamp_depth(int count)
{
	return (uint8_t)min32(count > 0 ? (uint32_t)count : 0, RDMA_MAX_INIT_DEPTH - 1);
}

static int open_device(struct ibv_device *device, struct vb_cma_device **device_out)
{
	struct vb_cma_device *opened = vb_heap_alloc(1, sizeof(*opened));
	struct ibv_device_attr attr;
	int error = ENOMEM;

	if (!opened)
		return ENOMEM;
	opened->verbs = ibv_open_device(device);
	if (!opened->verbs) {
		error = errno;
		goto free_device;
	}
	error = ibv_query_device(opened->verbs, &attr);
	if (error)
		goto close_device;
	opened->pd = ibv_alloc_pd(opened->verbs);
	if (!opened->pd) {
		error = errno;
		goto close_device;
	}
	opened->responder_resources_max = clamp_depth(attr.max_qp_rd_atom);
	opened->initiator_depth_max = clamp_depth(attr.max_qp_init_rd_atom);
	opened->ack_delay = attr.local_ca_ack_delay;
	vb_list_append(&devices, &opened->node);
	*device_out = opened;
	return 0;

close_device:
	ibv_close_device(opened->verbs);
free_device:
	vb_heap_free(opened);
	VB_CHECK(error);
	return error;
}

static struct vb_cma_device *find_open(const struct ibv_device *device)
{
	for (struct vb_list_node *node = devices.next; node != &devices; node = node->next) {
		struct vb_cma_device *opened = VB_CONTAINER(node, struct vb_cma_device, node);

		if (opened->verbs->device == device)
			return opened;
	}
	return NULL;
}

/* --- where an address is ---------------------------------------------------------------------- */

static bool is_entry_of_gid(const struct ibv_gid_entry *entry, const struct vb_gid *gid,
			    uint32_t scope)
{
	return !memcmp(entry->gid.raw, gid->raw, sizeof(gid->raw)) &&
	       (!scope || !entry->ndev_ifindex || entry->ndev_ifindex == scope);
}

static bool find_gid(struct vb_cma_device *device, const struct vb_gid *gid, uint32_t scope,
		     struct vb_cma_place *place)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	ssize_t count = ibv_query_gid_table(device->verbs, entries, GIDS_MAX, 0);

	for (ssize_t i = 0; i < count; i++) {
		if (!is_entry_of_gid(&entries[i], gid, scope))
			continue;
		*place = (struct vb_cma_place){
			.device = device,
			.gid_index = (uint8_t)entries[i].gid_index,
			.ifindex = entries[i].ndev_ifindex,
		};
		return true;
	}
	return false;
}

static bool find_in_open(const struct vb_gid *gid, uint32_t scope, struct vb_cma_place *place)
{
	for (struct vb_list_node *node = devices.next; node != &devices; node = node->next) {
		struct vb_cma_device *opened = VB_CONTAINER(node, struct vb_cma_device, node);

		if (find_gid(opened, gid, scope, place))
			return true;
	}
	return false;
}

static bool find_in_others(const struct vb_gid *gid, uint32_t scope, struct vb_cma_place *place)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	bool is_found = false;

	for (size_t i = 0; list && list[i] && !is_found; i++) {
		struct vb_cma_device *opened = NULL;

		if (!find_open(list[i]) && !open_device(list[i], &opened))
			is_found = find_gid(opened, gid, scope, place);
	}
	if (list)
		ibv_free_device_list(list);
	return is_found;
}

int vb_cma_device_find(const struct vb_gid *gid, uint32_t scope, struct vb_cma_place *place_out)
{
	bool is_found;

	pthread_mutex_lock(&lock);
	is_found = find_in_open(gid, scope, place_out) || find_in_others(gid, scope, place_out);
	pthread_mutex_unlock(&lock);
	return is_found ? 0 : ENODEV;
}

int vb_cma_device_count(void)
{
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);

	if (list)
		ibv_free_device_list(list);
	return count;
}

/* --- other functions -------------------------------------------------------------------------- */

static int open_first(struct vb_cma_device **device_out)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int error = ENODEV;

	for (size_t i = 0; list && list[i] && error; i++)
		error = open_device(list[i], device_out);
	if (list)
		ibv_free_device_list(list);
	return error;
}

int vb_cma_device_first(struct vb_cma_device **device_out)
{
	int error = 0;

	pthread_mutex_lock(&lock);
	if (vb_list_is_linked(&devices))
		*device_out = VB_CONTAINER(devices.next, struct vb_cma_device, node);
	else
		error = open_first(device_out);
	pthread_mutex_unlock(&lock);
	return error;
}

int vb_cma_device_open_xrcd(struct vb_cma_device *device, struct ibv_xrcd **xrcd_out)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = 0100, /* O_CREAT */
	};
	int error = 0;

	pthread_mutex_lock(&lock);
	if (!device->xrcd)
		device->xrcd = ibv_open_xrcd(device->verbs, &attr);
	if (!device->xrcd)
		error = errno;
	*xrcd_out = device->xrcd;
	pthread_mutex_unlock(&lock);
	return error;
}

void vb_cma_device_set_aside(void)
{
	pthread_mutex_init(&lock, NULL);
	vb_list_append_all(&set_aside, &devices);
}

void vb_cma_device_take_back(void)
{
	pthread_mutex_lock(&lock);
	vb_list_append_all(&devices, &set_aside);
	pthread_mutex_unlock(&lock);
}

/* Opens all devices that can be opened, in the order of the list. */
static struct ibv_context **open_all(struct ibv_device **list, int count, int *opened_count)
{
	struct ibv_context **contexts = vb_heap_alloc((size_t)count + 1, sizeof(*contexts));

	*opened_count = 0;
	for (int i = 0; contexts && i < count; i++) {
		struct vb_cma_device *device = find_open(list[i]);

		if (device || !open_device(list[i], &device))
			contexts[(*opened_count)++] = device->verbs;
	}
	return contexts;
}

VB_CMA_EXPORT struct ibv_context **rdma_get_devices(int *num_devices)
{
	int count, opened_count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context **contexts = NULL;

	if (num_devices)
		*num_devices = 0;
	if (!list)
		return NULL;
	pthread_mutex_lock(&lock);
	contexts = open_all(list, count, &opened_count);
	pthread_mutex_unlock(&lock);
	ibv_free_device_list(list);
	if (num_devices)
		*num_devices = opened_count;
	if (contexts && opened_count)
		return contexts;
	errno = contexts ? ENODEV : ENOMEM;
	vb_heap_free(contexts);
	return NULL;
}

VB_CMA_EXPORT void rdma_free_devices(struct ibv_context **list)
{
	vb_heap_free(list);
}
