/* SPDX-License-Identifier: BSD-2-Clause */
#include "support_adapter.h"

#include "harness.h"
#include "namespace.h"

#include "host/device/device.h"
#include "host/sys/config.h"

#include <string.h>

#define MUST(call) EXPECT_EQ(call, VB_OK)

static struct vb_config config;
static struct vb_device *devices;

void adapter_begin(void (*on_event)(void *owner, const struct vb_event *event),
		   struct vb_adapter **adapter_out, struct vb_pd **pd_out)
{
	uint32_t count;

	namespace_enter();
	namespace_add_dummy("d0");
	ip("link set lo up");
	ip("address add 10.0.0.1/24 dev d0");
	vb_config_load(&config);
	config.path = VB_PATH_AUTO;
	strcpy(config.devices, "d0");
	MUST(vb_device_list(&config, &devices, &count));
	EXPECT_EQ(count, 1);
	MUST(vb_adapter_open(
		&(struct vb_adapter_init){
			.device = &devices[0],
			.config = &config,
			.on_event = on_event,
		},
		adapter_out));
	vb_adapter_enter(*adapter_out);
	MUST(vb_pd_create(vb_adapter_nic(*adapter_out), pd_out));
	vb_adapter_leave(*adapter_out);
}

void adapter_end(struct vb_adapter *adapter, struct vb_pd *pd)
{
	vb_adapter_enter(adapter);
	MUST(vb_pd_destroy(pd));
	vb_adapter_leave(adapter);
	vb_adapter_close(adapter);
	vb_device_list_free(devices);
}

void adapter_raise_qp(struct vb_adapter *adapter, struct vb_qp *qp, struct vb_qp_attr attr)
{
	attr.state = VB_STATE_INIT;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_PKEY_INDEX | VB_ATTR_PORT | VB_ATTR_ACCESS));
	attr.state = VB_STATE_RTR;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_ADDRESS | VB_ATTR_PATH_MTU | VB_ATTR_DESTINATION |
				  VB_ATTR_RQ_PSN | VB_ATTR_READS_IN | VB_ATTR_MIN_RNR_TIMER));
	if (adapter)
		vb_adapter_choose_path(adapter, qp);
	attr.state = VB_STATE_RTS;
	MUST(vb_qp_modify(qp, &attr,
			  VB_ATTR_STATE | VB_ATTR_TIMEOUT | VB_ATTR_RETRY_COUNT |
				  VB_ATTR_RNR_RETRY | VB_ATTR_SQ_PSN | VB_ATTR_READS_OUT));
}
