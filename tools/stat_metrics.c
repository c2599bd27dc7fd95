/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim stat --prometheus`: totals of devices. Those that the node exporter of Prometheus reads
 * in sysfs have its names, so that dashboards for it show our devices. The rest have our own.
 */
#include "stat.h"

#include "base/heap.h"
#include "host/device/device.h"
#include "host/registry/totals_shown.h"
#include "host/sys/config.h"
#include "host/sys/text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define DROP "drop_"

/* Counters of sysfs as the node exporter calls them, after "node_infiniband_". */
static const struct known {
	const char *name;
	const char *metric;
	uint32_t factor;
} known[] = {
	{ "port_xmit_data", "port_data_transmitted_bytes_total", 4 },
	{ "port_rcv_data", "port_data_received_bytes_total", 4 },
	{ "port_xmit_packets", "port_packets_transmitted_total", 1 },
	{ "port_rcv_packets", "port_packets_received_total", 1 },
	{ "unicast_xmit_packets", "unicast_packets_transmitted_total", 1 },
	{ "unicast_rcv_packets", "unicast_packets_received_total", 1 },
	{ "multicast_xmit_packets", "multicast_packets_transmitted_total", 1 },
	{ "multicast_rcv_packets", "multicast_packets_received_total", 1 },
	{ "port_rcv_errors", "port_errors_received_total", 1 },
	{ "port_xmit_discards", "port_discards_transmitted_total", 1 },
};

struct devices {
	struct vb_device *list;
	struct vb_totals_sum *sums; /* of each */
	uint32_t count;
};

/* All samples of a metric stand together, under its type. */
static void begin_metric(struct vb_text *text, const char *prefix, const char *metric,
			 const char *type)
{
	vb_text_add(text, "# TYPE %s%s %s\n", prefix, metric, type);
}

static void add_states(struct vb_text *text, const struct devices *devices)
{
	begin_metric(text, "node_infiniband_", "state_id", "gauge");
	for (uint32_t i = 0; i < devices->count; i++)
		vb_text_add(text, "node_infiniband_state_id{device=\"%s\",port=\"1\"} %d\n",
			    devices->list[i].name, vb_device_is_active(&devices->list[i]) ? 4 : 1);
	begin_metric(text, "node_infiniband_", "physical_state_id", "gauge");
	for (uint32_t i = 0; i < devices->count; i++)
		vb_text_add(text,
			    "node_infiniband_physical_state_id{device=\"%s\",port=\"1\"} %d\n",
			    devices->list[i].name, vb_device_is_active(&devices->list[i]) ? 5 : 3);
}

static void add_counter(struct vb_text *text, const struct devices *devices, uint32_t index,
			const struct known *row)
{
	char name[VB_TOTALS_NAME_MAX];
	uint64_t value;

	begin_metric(text, "node_infiniband_", row->metric, "counter");
	for (uint32_t i = 0; i < devices->count; i++) {
		(void)vb_totals_shown(&devices->sums[i], VB_TOTALS_COUNTERS, index, name, &value);
		vb_text_add(text, "node_infiniband_%s{device=\"%s\",port=\"1\"} %" PRIu64 "\n",
			    row->metric, devices->list[i].name, value * row->factor);
	}
}

static void add_counters(struct vb_text *text, const struct devices *devices)
{
	static const struct vb_totals_sum nothing;
	char name[VB_TOTALS_NAME_MAX];
	uint64_t value;

	for (uint32_t i = 0; vb_totals_shown(&nothing, VB_TOTALS_COUNTERS, i, name, &value); i++)
		for (uint32_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
			if (!strcmp(known[k].name, name))
				add_counter(text, devices, i, &known[k]);
}

/* Drops are one metric, with the reason as a label. */
static void add_own(struct vb_text *text, const struct devices *devices, bool is_drop)
{
	char name[VB_TOTALS_NAME_MAX];
	static const struct vb_totals_sum nothing;
	uint64_t value;

	if (is_drop)
		begin_metric(text, "verbatim_", "drops_total", "counter");
	for (uint32_t i = 0; vb_totals_shown(&nothing, VB_TOTALS_HW_COUNTERS, i, name, &value);
	     i++) {
		if (is_drop != !strncmp(name, DROP, strlen(DROP)) || !strcmp(name, "lifespan"))
			continue;
		if (!is_drop)
			vb_text_add(text, "# TYPE verbatim_%s_total counter\n", name);
		for (uint32_t k = 0; k < devices->count; k++) {
			(void)vb_totals_shown(&devices->sums[k], VB_TOTALS_HW_COUNTERS, i, name,
					      &value);
			if (is_drop)
				vb_text_add(text,
					    "verbatim_drops_total{device=\"%s\",port=\"1\","
					    "reason=\"%s\"} %" PRIu64 "\n",
					    devices->list[k].name, name + strlen(DROP), value);
			else
				vb_text_add(text,
					    "verbatim_%s_total{device=\"%s\",port=\"1\"} %" PRIu64
					    "\n",
					    name, devices->list[k].name, value);
		}
	}
}

static int add_up(struct devices *devices)
{
	int error;
	const struct vb_totals *totals = vb_totals_query(&error);

	if (error)
		return error;
	for (uint32_t i = 0; i < devices->count; i++)
		vb_totals_add_up(totals, devices->list[i].ifindex, &devices->sums[i]);
	vb_totals_end_query(totals);
	return 0;
}

int stat_add_metrics(struct vb_text *text)
{
	struct devices devices = { 0 };
	struct vb_config config;
	int error;

	vb_config_load(&config);
	if (vb_device_list(&config, &devices.list, &devices.count))
		return ENODEV;
	devices.sums = vb_heap_alloc(devices.count + 1, sizeof(*devices.sums));
	error = devices.sums ? add_up(&devices) : ENOMEM;
	if (!error) {
		add_states(text, &devices);
		add_counters(text, &devices);
		add_own(text, &devices, false);
		add_own(text, &devices, true);
	}
	vb_heap_free(devices.sums);
	vb_device_list_free(devices.list);
	return error ? error : text->is_incomplete ? ENOMEM : 0;
}
