/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of devices and its refreshing: what the kernel reports (device_netlink.c), made into
 * devices (device_make.c).
 */
#include "host/device/device_priv.h"

#include "base/heap.h"

#include <errno.h>

vb_err vb_device_list(const struct vb_config *config, struct vb_device **devices_out,
		      uint32_t *count_out)
{
	struct vb_interfaces interfaces = { 0 };
	int errno_before = errno;
	vb_err err = vb_interfaces_read(&interfaces);

	if (!err)
		err = vb_device_make_list(&interfaces, config, devices_out, count_out);
	vb_interfaces_fini(&interfaces);
	errno = errno_before;
	return err;
}

void vb_device_list_free(struct vb_device *devices)
{
	vb_heap_free(devices);
}

vb_err vb_device_refresh(struct vb_device *device, const struct vb_config *config,
			 struct vb_device_changes *changes_out)
{
	struct vb_interfaces interfaces = { 0 };
	int errno_before = errno;
	vb_err err = vb_interfaces_read(&interfaces);

	if (!err)
		vb_device_update(device, &interfaces, config, changes_out);
	vb_interfaces_fini(&interfaces);
	errno = errno_before;
	return err;
}
