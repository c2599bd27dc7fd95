/* SPDX-License-Identifier: BSD-2-Clause */
/* The making of an open device from its parts, and its end. */
#include "host/adapter/adapter_priv.h"

#include "base/heap.h"
#include "host/port/port.h"
#include "host/local/export.h"
#include "host/local/local_peer.h"
#include "host/memory/blocks.h"
#include "host/memory/dma.h"
#include "host/qp1/qp1.h"
#include "host/registry/port_holders.h"
#include "host/registry/port_member.h"
#include "host/registry/totals.h"
#include "host/sys/config.h"
#include "host/sys/limit.h"
#include "host/sys/log.h"
#include "host/sys/measure.h"
#include "link/fd.h"
#include "link/udp.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>

#define KEY_ROWS VB_EXPORT_KEY_ROWS
#define QP_ROWS VB_EXPORT_QP_ROWS
#define DEVICE_MEMORY (1u << 20)
#define ZERO_PAGE 4096u
#define SOURCE_PORTS 4u
#define RECEIVE_BUFFER (4u << 20)
/* Per QP. What all QPs together have in flight is bounded by the receive buffer. */
#define WINDOW_PACKETS 256u
#define WINDOW_BYTES (256u << 10)
#define TRAIN_MAX (128u << 10) /* a window holds two, so that both ends work at the same time */
#define TRAIN_SAMPLE (2u << 20) /* many windows, and less time than a thread is interrupted for */

static vb_err make_tables(struct vb_adapter *adapter, struct vb_nic_config *config)
{
	size_t keys = KEY_ROWS * sizeof(struct vb_key_row);
	size_t qps = QP_ROWS * sizeof(struct vb_qp_row);
	uint8_t *tables = vb_blocks_alloc(keys + qps + 2 * ZERO_PAGE + DEVICE_MEMORY);

	if (!tables)
		return VB_ENOMEM;
	adapter->tables = tables;
	tables += -(uintptr_t)tables % ZERO_PAGE;
	config->key_rows = (struct vb_key_row *)(void *)tables;
	config->key_row_count = KEY_ROWS;
	config->qp_rows = (struct vb_qp_row *)(void *)(tables + keys);
	config->qp_row_count = QP_ROWS;
	config->zero_page = (vb_dma_addr)(uintptr_t)(tables + keys + qps);
	config->device_memory = config->zero_page + ZERO_PAGE;
	config->device_memory_length = DEVICE_MEMORY;
	return VB_OK;
}

static vb_err seed(uint64_t *seed_out)
{
	return getrandom(seed_out, sizeof(*seed_out), 0) == sizeof(*seed_out) ? VB_OK : VB_EFAULT;
}

uint32_t vb_adapter_receive_buffer(const struct vb_adapter *adapter)
{
	uint32_t wish = adapter->init.config->receive_buffer;

	return wish ? wish : RECEIVE_BUFFER;
}

void vb_adapter_take_row(struct vb_adapter *adapter)
{
	struct vb_totals_row *row =
		vb_totals_take_row(adapter->device.ifindex, vb_port_member_number(adapter->member));

	if (!row)
		return;
	if (!adapter->row)
		memcpy(adapter->udp_before, row->udp, sizeof(adapter->udp_before));
	if (adapter->nic)
		vb_nic_set_counters(adapter->nic, &row->counters);
	vb_totals_give_row(adapter->row); /* perhaps the same, which was taken twice then */
	adapter->row = row;
}

vb_err vb_adapter_open_link(struct vb_adapter *adapter)
{
	struct vb_udp_config udp = {
		.receiver = vb_port_member_receiver(adapter->member),
		.ifindex = adapter->device.ifindex,
		.source_count = SOURCE_PORTS,
		.receive_buffer_length = vb_adapter_receive_buffer(adapter),
		.is_segmenting = true,
		.is_connected_tx_wanted = adapter->init.config->icrc != VB_ICRC_STRICT,
		.is_host_only = !vb_port_member_has_roce_port(adapter->member),
		.counters = adapter->row ? adapter->row->udp : NULL,
	};
	vb_err err;

	memcpy(udp.source_ports, adapter->source_ports, sizeof(adapter->source_ports));
	err = vb_udp_open(&udp, &adapter->udp);
	if (err)
		return err;
	vb_port_member_steer(adapter->udp, vb_port_member_number(adapter->member));
	for (uint32_t i = 0; i < SOURCE_PORTS; i++)
		adapter->source_ports[i] = vb_udp_source_port(adapter->udp, i);
	return VB_OK;
}

static vb_err make_engine(struct vb_adapter *adapter, struct vb_nic_config *config)
{
	const struct vb_device *device = &adapter->device;
	vb_err err = seed(&config->seed);

	if (err)
		return err;
	config->framing.icrc_mode = adapter->init.config->icrc;
	config->qp_depth_max = adapter->init.config->qp_depth;
	config->cq_depth_max = adapter->init.config->cq_depth;
	config->srq_depth_max = adapter->init.config->srq_depth;
	config->reads_max = adapter->init.config->reads;
	config->port_mtu = device->path_mtu;
	config->window_packets_max = WINDOW_PACKETS;
	config->window_bytes_max = WINDOW_BYTES;
	config->train_length_min = VB_ADAPTER_TRAIN_MIN;
	config->train_length_max = TRAIN_MAX;
	config->train_sample_bytes = TRAIN_SAMPLE;
	config->source_port_count = SOURCE_PORTS;
	memcpy(config->source_ports, adapter->source_ports, sizeof(config->source_ports));
	config->framing.batch_segments_max = vb_udp_segments_max(adapter->udp);
	config->flight_bytes_max = vb_udp_receive_buffer_length(adapter->udp) / 4 * 3;
	config->framing.batch_qpn_mask = VB_PORT_MEMBER_QPN_MASK << VB_PORT_MEMBER_QPN_SHIFT;
	adapter->number = vb_port_member_number(adapter->member);
	config->qpn_first = adapter->number << VB_PORT_MEMBER_QPN_SHIFT;
	config->qpn_count = 1u << VB_PORT_MEMBER_QPN_SHIFT;
	if (!config->qpn_first) { /* QPN 0 and 1 are special */
		config->qpn_first = 2;
		config->qpn_count -= 2;
	}
	err = vb_nic_create(config, &adapter->nic);
	if (!err && adapter->row)
		vb_nic_set_counters(adapter->nic, &adapter->row->counters);
	for (uint32_t i = 0; !err && i < VB_GID_COUNT; i++)
		err = vb_nic_set_gid(adapter->nic, i, &device->gids[i].gid);
	return err;
}

void vb_adapter_set_host_gid(struct vb_adapter *adapter, const struct vb_device *device)
{
	const struct vb_device_gid *first = &device->gids[0];

	adapter->host_gid = first->is_host_only ? first->gid : (struct vb_gid){ 0 };
}

/* `verbatim devices` reports the same. A loopback device has no other hosts to reach. */
static void warn_of_held_port(const struct vb_adapter *adapter)
{
	struct vb_port_holders holders;
	char text[256];

	if (vb_port_member_has_roce_port(adapter->member) || adapter->device.is_loopback)
		return;
	vb_port_holders_find(VB_ROCE_PORT, &holders);
	vb_port_holders_describe(&holders, text, sizeof(text));
	vb_log_about(
		VB_LOG_WARN, VB_LOG_ABOUT(.phase = "open", .device = adapter->device.name),
		"%s: UDP port %d is %s%s: this program reaches only programs of its user on this host",
		adapter->device.name, VB_ROCE_PORT, text,
		vb_port_holders_are_in_the_way(&holders)
			? ""
			: " now, but was not when the first of this user's programs that run came");
}

/* From here on no change is missed. The list that the device comes from may be out of date. */
static void begin_following(struct vb_adapter *adapter)
{
	struct vb_device_changes changes;

	adapter->device = *adapter->init.device;
	memcpy(adapter->name, adapter->device.name, sizeof(adapter->name));
	adapter->init.device = NULL;
	vb_adapter_open_watch(adapter);
	if (!vb_device_refresh(&adapter->device, adapter->init.config, &changes))
		adapter->is_gone = changes.what & VB_DEVICE_GONE;
	vb_adapter_set_host_gid(adapter, &adapter->device);
}

/*
 * The program gets no more than an errno, so the reason goes to the log. The verb itself reports
 * the limits that may be the cause.
 */
static vb_err report(const struct vb_adapter *adapter, vb_err err, const char *what_is_missing)
{
	if (err && vb_fd_was_refused())
		err = VB_EMFILE;
	if (err)
		vb_log_about(VB_LOG_ERROR,
			     VB_LOG_ABOUT(.phase = "open", .device = adapter->device.name,
					  .error = err == VB_EMFILE ? EMFILE : 0),
			     "%s cannot be opened: %s", adapter->device.name,
			     err == VB_EMFILE ? "no descriptor is left" : what_is_missing);
	return err;
}

void vb_adapter_plug_in_local_peers(struct vb_adapter *adapter)
{
	char limits[VB_LIMIT_TEXT_MAX];
	vb_err err;

	vb_port_member_set_taker(adapter->member, vb_local_peers_take_member_mail, NULL);
	if (!adapter->peers)
		return;
	vb_local_peers_count_in(adapter->peers, adapter->row);
	err = vb_local_peers_plug_in(adapter->peers, adapter->member);
	if (err)
		vb_log_about(
			VB_LOG_WARN, VB_LOG_ABOUT(.phase = "open", .device = adapter->device.name),
			"%s: no shared memory to be had%s: peers on this host are reached by packets",
			adapter->device.name, vb_limit_describe(err, limits));
	else
		vb_port_member_set_taker(adapter->member, vb_local_peers_take_member_mail,
					 adapter->peers);
}

/* Makes the parts in order. vb_adapter_close() ends those that exist in reverse order. */
static vb_err make_parts(struct vb_adapter *adapter)
{
	struct vb_nic_config config = { 0 };
	vb_err err = report(adapter, vb_dma_install(), "no handlers of SIGSEGV and SIGBUS");

	if (!err)
		err = report(adapter, make_tables(adapter, &config), "no room for its tables");
	if (!err)
		err = report(
			adapter,
			vb_port_member_join(vb_adapter_receive_buffer(adapter), &adapter->member),
			"no socket to receive on; `verbatim devices` says whether others hold the port");
	if (!err)
		vb_adapter_take_row(adapter);
	if (!err)
		err = report(adapter, vb_adapter_open_link(adapter), "no sockets to send from");
	if (!err)
		err = report(adapter, make_engine(adapter, &config), "no memory for its engine");
	if (!err)
		err = report(adapter, vb_qp1_create(adapter->nic, adapter->number, &adapter->qp1),
			     "no memory for its QP 1");
	if (!err)
		err = report(adapter, vb_qp1_plug_in(adapter->qp1),
			     "no sockets for what other processes have for its QP 1");
	if (!err && adapter->init.config->path != VB_PATH_WIRE)
		err = report(adapter,
			     vb_local_peers_create(adapter->nic, adapter->device.ifindex,
						   &adapter->peers),
			     "no memory for its local peers");
	if (!err)
		vb_adapter_plug_in_local_peers(adapter);
	if (!err)
		err = report(adapter, vb_adapter_make_port(adapter), "no memory for its packets");
	return err;
}

static void end_parts(struct vb_adapter *adapter)
{
	vb_adapter_unplug(adapter);
	vb_heap_free(adapter->groups);
	if (adapter->qp1)
		vb_qp1_destroy(adapter->qp1);
	if (adapter->peers)
		vb_local_peers_destroy(adapter->peers);
	if (adapter->nic)
		vb_nic_destroy(adapter->nic);
	vb_totals_give_row(adapter->row);
	vb_blocks_free(adapter->tables);
	vb_fd_close(adapter->wake_fd);
	vb_alarm_close(&adapter->alarm);
	vb_device_watch_close(adapter->watch_fd);
	pthread_mutex_destroy(&adapter->device_lock);
	pthread_cond_destroy(&adapter->has_answered);
	vb_heap_free(adapter);
}

void vb_adapter_init_locks(struct vb_adapter *adapter)
{
	pthread_condattr_t by_our_clock;

	vb_lock_init(&adapter->owner);
	pthread_mutex_init(&adapter->device_lock, NULL);
	pthread_condattr_init(&by_our_clock);
	pthread_condattr_setclock(&by_our_clock, CLOCK_MONOTONIC);
	pthread_cond_init(&adapter->has_answered, &by_our_clock);
	pthread_condattr_destroy(&by_our_clock);
}

/* What has arrived so far is still processed. */
void vb_adapter_give_up_qp1(struct vb_adapter *adapter)
{
	uint32_t successor;

	if (adapter->udp && vb_port_member_find_other(adapter->member, &successor))
		vb_port_member_steer(adapter->udp, successor);
	if (!adapter->port)
		return;
	vb_qp1_release_held(adapter->qp1);
	vb_adapter_move_packets(adapter);
}

vb_err vb_adapter_open(const struct vb_adapter_init *init, struct vb_adapter **adapter_out)
{
	struct vb_adapter *adapter = vb_heap_alloc(1, sizeof(*adapter));
	vb_err err;

	if (!adapter)
		return VB_ENOMEM;
	vb_measure_crc();
	vb_fd_forget_refusal();
	adapter->init = *init;
	vb_adapter_init_locks(adapter);
	vb_drive_policy_init(&adapter->policy);
	vb_async_log_init(&adapter->events);
	vb_alarm_forget(&adapter->alarm);
	begin_following(adapter);
	err = report(adapter, vb_adapter_open_wake_fd(adapter), "no descriptor is left");
	if (!err)
		err = make_parts(adapter);
	if (!err)
		err = report(adapter, vb_adapter_start_helper(adapter),
			     "no helper thread can be started");
	if (err) {
		vb_adapter_give_up_qp1(adapter);
		end_parts(adapter);
		return err;
	}
	warn_of_held_port(adapter);
	vb_adapter_enlist(adapter);
	*adapter_out = adapter;
	return VB_OK;
}

static void log_shm_links(const struct vb_adapter *adapter)
{
	const struct vb_local_peer_counts *counts = vb_local_peer_counts(adapter->peers);

	vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "close", .device = adapter->device.name),
		     "%s: by shared memory sent %" PRIu64 " received %" PRIu64 " lost %" PRIu64
		     " wakes %" PRIu64,
		     adapter->device.name, counts->sent, counts->received, counts->lost,
		     counts->wakes);
}

/* Logs the facts that help to find the cause of a problem. */
static void log_counters(const struct vb_adapter *adapter)
{
	struct vb_counters counters;
	const uint64_t *udp = vb_udp_counters(adapter->udp);
	const struct vb_port_member_counts *member = vb_port_member_counts(adapter->member);
	const char *name = adapter->device.name;

	vb_nic_counted(adapter->nic, &counters);
	for (uint32_t i = 0; i < VB_COUNTER_COUNT; i++)
		if (counters.counts[i])
			vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "close", .device = name),
				     "%s: %s %" PRIu64, name, vb_counter_name(i),
				     counters.counts[i]);
	for (uint32_t i = 0; i < VB_DROP_COUNT; i++)
		if (counters.drops[i])
			vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "close", .device = name),
				     "%s: dropped %s %" PRIu64, name, vb_drop_name(i),
				     counters.drops[i]);
	for (uint32_t i = 0; i < VB_UDP_COUNTER_COUNT; i++)
		if (udp[i] != adapter->udp_before[i])
			vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "close", .device = name),
				     "%s: %s %" PRIu64, name, vb_udp_counter_name(i),
				     udp[i] - adapter->udp_before[i]);
	if (adapter->peers)
		log_shm_links(adapter);
	vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "close", .device = name),
		     "%s: member %u handed_over %" PRIu64 " taken %" PRIu64 " lost %" PRIu64, name,
		     vb_port_member_number(adapter->member), member->handed_over, member->taken,
		     member->lost);
}

void vb_adapter_close(struct vb_adapter *adapter)
{
	vb_adapter_delist(adapter);
	if (!adapter->is_inherited) {
		vb_adapter_stop_helper(adapter);
		vb_lock_take(&adapter->owner);
		vb_adapter_give_up_qp1(adapter);
		vb_lock_give(&adapter->owner);
	}
	if (adapter->udp)
		log_counters(adapter);
	end_parts(adapter);
}

struct vb_recorder *vb_adapter_recorder(struct vb_adapter *adapter)
{
	return &adapter->recorder;
}

struct vb_nic *vb_adapter_nic(const struct vb_adapter *adapter)
{
	return adapter->nic;
}

struct vb_udp *vb_adapter_link(const struct vb_adapter *adapter)
{
	return adapter->udp;
}

struct vb_qp1 *vb_adapter_qp1(const struct vb_adapter *adapter)
{
	return adapter->qp1;
}

uint64_t vb_adapter_device_memory(const struct vb_adapter *adapter)
{
	(void)adapter;
	return DEVICE_MEMORY;
}
