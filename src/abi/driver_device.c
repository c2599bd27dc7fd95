/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices that programs get, and the queries for their attributes. */
#include "abi/refuse_priv.h"

#include "abi/returns.h"
#include "base/heap.h"
#include "host/sys/config.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/*
 * Locally administered, so assigned to no vendor; neither 0 nor 0xffffff, which have a meaning to
 * some programs.
 */
#define VENDOR_ID 0x02f5d0
#define VENDOR_PART_ID 1
/* Physical states of a port, by the numbers and names that sysfs also shows. */
#define PHYS_STATE_DISABLED 3
#define PHYS_STATE_LINK_UP 5
#define CAPABILITIES                                                                            \
	(IBV_DEVICE_BAD_PKEY_CNTR | IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_CURR_QP_STATE_MOD |   \
	 IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN | \
	 IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |        \
	 IBV_DEVICE_XRC | IBV_DEVICE_MEM_MGT_EXTENSIONS)

struct listed_device {
	struct vb_abi_device device;
	struct vb_device description;
	int index;
	struct listed_device *next;
};

/* Every device ever listed. They are never freed, so that programs may compare pointers. */
static struct listed_device *all_listed_devices;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

/* Loaded once, by load_config(), which also sets the log's destination. */
static struct vb_config config;
static pthread_once_t config_once = PTHREAD_ONCE_INIT;

static void lock_list(void)
{
	pthread_mutex_lock(&list_lock);
}

static void unlock_list(void)
{
	pthread_mutex_unlock(&list_lock);
}

static void load_config(void)
{
	vb_config_load(&config);
	/* A forked child also lists devices: the lock must not be held when it begins. */
	pthread_atfork(lock_list, unlock_list, unlock_list);
}

const struct vb_config *vb_abi_config(void)
{
	pthread_once(&config_once, load_config);
	return &config;
}

static struct listed_device *listed_device_of(const struct ibv_device *device)
{
	return (struct listed_device *)(uintptr_t)device;
}

static struct listed_device *find_listed_device(const struct vb_device *description)
{
	struct listed_device *listed = all_listed_devices;

	while (listed && (listed->description.ifindex != description->ifindex ||
			  strcmp(listed->description.name, description->name)))
		listed = listed->next;
	return listed;
}

static struct listed_device *add_listed_device(const struct vb_device *description)
{
	struct listed_device *listed = vb_heap_alloc(1, sizeof(*listed));
	struct ibv_device *verbs;

	if (!listed)
		return NULL;
	verbs = &listed->device.verbs;
	listed->index = (int)description->ifindex;
	verbs->node_type = IBV_NODE_CA;
	verbs->transport_type = IBV_TRANSPORT_IB;
	snprintf(verbs->name, sizeof(verbs->name), "%s", description->name);
	snprintf(verbs->dev_name, sizeof(verbs->dev_name), "uverbs%d", listed->index);
	snprintf(verbs->dev_path, sizeof(verbs->dev_path), "/sys/class/infiniband_verbs/uverbs%d",
		 listed->index);
	snprintf(verbs->ibdev_path, sizeof(verbs->ibdev_path), "/sys/class/infiniband/%s",
		 description->name);
	listed->next = all_listed_devices;
	all_listed_devices = listed;
	return listed;
}

static int fill_list(const struct vb_device *devices, uint32_t count, struct ibv_device **list)
{
	for (uint32_t i = 0; i < count; i++) {
		struct listed_device *listed = find_listed_device(&devices[i]);

		if (!listed)
			listed = add_listed_device(&devices[i]);
		if (!listed)
			return ENOMEM;
		listed->description = devices[i];
		list[i] = &listed->device.verbs;
	}
	return 0;
}

int vb_abi_device_list(struct ibv_device ***list_out, int *count_out)
{
	struct vb_device *devices;
	struct ibv_device **list;
	uint32_t count;
	vb_err err = vb_device_list(vb_abi_config(), &devices, &count);
	int error;

	if (err)
		return err == VB_EOPNOTSUPP ? ENOSYS : vb_abi_errno(err);
	list = vb_heap_alloc((size_t)count + 1, sizeof(struct ibv_device *));
	if (!list) {
		vb_device_list_free(devices);
		return ENOMEM;
	}
	pthread_mutex_lock(&list_lock);
	error = fill_list(devices, count, list);
	pthread_mutex_unlock(&list_lock);
	vb_device_list_free(devices);
	if (error) {
		vb_heap_free(list);
		return error;
	}
	if (!count)
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "devices"),
			"there are no devices: no network interface is up, has an address and is among devices = %s",
			*vb_abi_config()->devices ? vb_abi_config()->devices : "all");
	*list_out = list;
	*count_out = (int)count;
	return 0;
}

void vb_abi_device_list_free(struct ibv_device **list)
{
	vb_heap_free(list);
}

int vb_abi_device_index(const struct ibv_device *device)
{
	return listed_device_of(device)->index;
}

struct vb_device vb_abi_device_description(const struct ibv_device *device)
{
	struct vb_device description;

	pthread_mutex_lock(&list_lock);
	description = listed_device_of(device)->description;
	pthread_mutex_unlock(&list_lock);
	return description;
}

__be64 vb_abi_device_guid(const struct ibv_device *device)
{
	return htobe64(vb_abi_device_description(device).guid);
}

/* --- queries --- */

static void fill_odp(struct ibv_odp_caps *odp)
{
	const uint32_t reliable = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
				  IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
				  IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV;

	odp->general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
	odp->per_transport_caps.rc_odp_caps = reliable;
	odp->per_transport_caps.uc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
					      IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_SRQ_RECV;
	odp->per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
					      IBV_ODP_SUPPORT_SRQ_RECV;
}

int vb_abi_query_device(struct ibv_context *context, struct ibv_device_attr_ex *attr_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_nic_limits limits = vb_nic_limits(vb_adapter_nic(own->adapter));
	__be64 guid = vb_abi_device_guid(context->device);

	*attr_out = (struct ibv_device_attr_ex){
		.orig_attr = {
			.fw_ver = VB_DEVICE_FIRMWARE,
			.node_guid = guid,
			.sys_image_guid = guid,
			.max_mr_size = UINT64_MAX,
			.page_size_cap = 0xfffff000,
			.vendor_id = VENDOR_ID,
			.vendor_part_id = VENDOR_PART_ID,
			.hw_ver = VB_DEVICE_HARDWARE,
			.max_qp = (int)limits.qp_count,
			.max_qp_wr = (int)limits.qp_depth,
			.device_cap_flags = CAPABILITIES,
			.max_sge = (int)limits.sge,
			.max_sge_rd = (int)limits.sge,
			.max_cq = 1 << 16,
			.max_cqe = (int)limits.cq_depth,
			.max_mr = (int)limits.key_count,
			.max_pd = 1 << 16,
			.max_qp_rd_atom = (int)limits.reads,
			.max_res_rd_atom = (int)(limits.reads * limits.qp_count),
			.max_qp_init_rd_atom = (int)limits.reads,
			.atomic_cap = IBV_ATOMIC_GLOB,
			.max_mw = (int)limits.key_count,
			.max_mcast_grp = 1024,
			.max_mcast_qp_attach = 56,
			.max_total_mcast_qp_attach = 1024 * 56,
			.max_ah = 1 << 20,
			.max_srq = 1 << 16,
			.max_srq_wr = (int)limits.srq_depth,
			.max_srq_sge = (int)limits.sge,
			.max_pkeys = 1,
			.local_ca_ack_delay = 15,
			.phys_port_cnt = 1,
		},
		.completion_timestamp_mask = UINT64_MAX,
		.hca_core_clock = 1000000, /* kHz: timestamps are nanoseconds */
		.device_cap_flags_ex = 0,
		.max_dm_size = vb_adapter_device_memory(own->adapter),
		.phys_port_cnt_ex = 1,
		.tm_caps = {
			.max_rndv_hdr_size = limits.rendezvous_length,
			.max_num_tags = limits.tags,
			.flags = IBV_TM_CAP_RC,
			.max_ops = limits.tag_depth,
			.max_sge = limits.tag_sge,
		},
		.cq_mod_caps = { .max_cq_count = UINT16_MAX, .max_cq_period = UINT16_MAX },
	};
	attr_out->device_cap_flags_ex = attr_out->orig_attr.device_cap_flags;
	fill_odp(&attr_out->odp_caps);
	attr_out->xrc_odp_caps = attr_out->odp_caps.per_transport_caps.rc_odp_caps;
	return 0;
}

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	return bytes ? (enum ibv_mtu)(__builtin_ctz(bytes) - 7) : IBV_MTU_256;
}

static int refuse_port(const struct ibv_context *context, uint32_t port)
{
	return vb_abi_refuse_at(EINVAL, context, "%s has no port %" PRIu32 ", only port 1",
				vb_abi_device_name(context), port);
}

int vb_abi_query_port(struct ibv_context *context, uint32_t port, struct ibv_port_attr *attr_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_counters counters;
	const struct vb_device_rate *rate;
	struct vb_device device;
	bool is_active;

	if (port != 1)
		return refuse_port(context, port);
	vb_adapter_device_with_link_state(own->adapter, &device);
	is_active = vb_device_is_active(&device);
	vb_adapter_enter(own->adapter);
	vb_nic_counted(vb_adapter_nic(own->adapter), &counters);
	*attr_out = (struct ibv_port_attr){
		.state = is_active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = mtu_code(device.path_mtu),
		.gid_tbl_len = VB_GID_COUNT,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = VB_MESSAGE_LENGTH_MAX,
		.bad_pkey_cntr = (uint32_t)counters.counts[VB_COUNTER_PKEY_VIOLATIONS],
		.qkey_viol_cntr = (uint32_t)counters.counts[VB_COUNTER_QKEY_VIOLATIONS],
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.phys_state = is_active ? PHYS_STATE_LINK_UP : PHYS_STATE_DISABLED,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED,
	};
	vb_adapter_leave(own->adapter);
	rate = vb_device_rate(&device);
	attr_out->active_width = rate->width;
	attr_out->active_speed = rate->speed;
	return 0;
}

static void store_gid(const struct vb_device *device, uint32_t index, struct ibv_gid_entry *entry)
{
	*entry = (struct ibv_gid_entry){
		.gid_index = index,
		.port_num = 1,
		.gid_type = IBV_GID_TYPE_ROCE_V2,
		.ndev_ifindex = device->ifindex,
	};
	memcpy(entry->gid.raw, device->gids[index].gid.raw, sizeof(entry->gid.raw));
}

int vb_abi_query_gid(struct ibv_context *context, uint32_t port, uint32_t index,
		     struct ibv_gid_entry *entry_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_device device;

	if (port != 1)
		return refuse_port(context, port);
	if (index >= VB_GID_COUNT)
		return vb_abi_refuse_at(EINVAL, context, "%s has no GID %" PRIu32 ", at most %u",
					vb_abi_device_name(context), index, VB_GID_COUNT - 1);
	vb_adapter_device(own->adapter, &device);
	if (vb_device_gid_is_empty(&device.gids[index]))
		return ENODATA;
	store_gid(&device, index, entry_out);
	return 0;
}

int vb_abi_query_gids(struct ibv_context *context, uint32_t port,
		      struct ibv_gid_entry entries[VB_GID_COUNT], uint32_t *count_out)
{
	struct vb_abi_context *own = vb_abi_context_of(context);
	struct vb_device device;

	*count_out = 0;
	if (port != 1)
		return refuse_port(context, port);
	vb_adapter_device(own->adapter, &device);
	for (uint32_t i = 0; i < VB_GID_COUNT; i++)
		if (!vb_device_gid_is_empty(&device.gids[i]))
			store_gid(&device, i, &entries[(*count_out)++]);
	return 0;
}

int vb_abi_query_pkey(struct ibv_context *context, uint32_t port, uint32_t index, __be16 *pkey_out)
{
	if (port != 1)
		return refuse_port(context, port);
	if (index)
		return vb_abi_refuse_at(EINVAL, context, "%s has no P_Key %" PRIu32 ", only 0",
					vb_abi_device_name(context), index);
	*pkey_out = htobe16(VB_PKEY_DEFAULT);
	return 0;
}

int vb_abi_query_clock(struct ibv_context *context, struct ibv_values_ex *values)
{
	struct timespec now;

	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return vb_abi_refuse_at(
			EOPNOTSUPP, context,
			"ibv_query_rt_values_ex: %s: comp_mask 0x%x: bits outside 0x%x",
			vb_abi_device_name(context), values->comp_mask, IBV_VALUES_MASK_RAW_CLOCK);
	if (!values->comp_mask)
		return 0;
	clock_gettime(CLOCK_MONOTONIC, &now);
	/* Programs expect the whole count in tv_nsec, where mlx5 puts it. */
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = now.tv_sec * 1000000000l + now.tv_nsec;
	return 0;
}
