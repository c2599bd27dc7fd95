/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces as the kernel describes them (device_netlink.c), and the devices that are made of
 * them (device_make.c, device_gid.c). The latter two files do not ask the system for anything, so
 * tests can make up any interface.
 */
#ifndef VB_HOST_DEVICE_DEVICE_PRIV_H
#define VB_HOST_DEVICE_DEVICE_PRIV_H

#include "host/device/device.h"

#include <stddef.h>

struct vb_interface {
	char name[VB_DEVICE_IFNAME_MAX];
	uint32_t ifindex;
	uint8_t mac[6];
	bool has_mac; /* an Ethernet address that is not zero */
	uint32_t mtu;
	bool is_up;
	bool has_carrier;
	bool is_loopback;
	uint32_t speed_mbps; /* 0: unknown */
};

struct vb_interface_address {
	struct vb_gid gid; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t ifindex;
};

/* The state of all interfaces at one moment. Zero-initialised, it is empty. */
struct vb_interfaces {
	struct vb_interface *list; /* by ifindex */
	uint32_t count;
	struct vb_interface_address *addresses; /* in the kernel's order */
	uint32_t address_count;
	uint32_t default_ifindex; /* 0: there is no default route */
	/* Distinguishes this machine from others, also after the next start. */
	char machine[64];
};

/* Appends a zeroed element; NULL without memory. */
struct vb_interface *vb_interfaces_add(struct vb_interfaces *interfaces);
struct vb_interface_address *vb_interfaces_add_address(struct vb_interfaces *interfaces);
void vb_interfaces_fini(struct vb_interfaces *interfaces);

/* Asks the kernel. */
VB_MUST_USE vb_err vb_interfaces_read(struct vb_interfaces *interfaces);

uint32_t vb_device_path_mtu(uint32_t interface_mtu, uint32_t limit);
uint64_t vb_device_guid(const struct vb_interfaces *interfaces,
			const struct vb_interface *interface);
bool vb_device_is_link_local(const struct vb_gid *gid);
bool vb_device_is_ipv4(const struct vb_gid *gid);

/*
 * Corrects the GID table for the addresses that the interface has now. Returns how many found no
 * room.
 */
uint32_t vb_device_place_gids(struct vb_device *device, const struct vb_interfaces *interfaces);

VB_MUST_USE vb_err vb_device_make_list(const struct vb_interfaces *interfaces,
				       const struct vb_config *config,
				       struct vb_device **devices_out, uint32_t *count_out);
void vb_device_update(struct vb_device *device, const struct vb_interfaces *interfaces,
		      const struct vb_config *config, struct vb_device_changes *changes_out);

#endif
