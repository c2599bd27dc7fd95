/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices that programs see: one for each network interface of this network namespace that is
 * up and has an address. A device is a description; a caller that opens it keeps a copy and
 * refreshes that when the watch reports a change. Its GIDs are the interface's addresses; all are
 * RoCE v2 and on the device's own interface.
 */
#ifndef VB_HOST_DEVICE_DEVICE_H
#define VB_HOST_DEVICE_DEVICE_H

#include "base/err.h"
#include "host/sys/config.h"
#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_DEVICE_NAME_MAX 64 /* as in struct ibv_device, with the terminating zero */
#define VB_DEVICE_IFNAME_MAX 16
#define VB_DEVICE_FIRMWARE "1.0.0" /* the version that every device reports */
#define VB_DEVICE_HARDWARE 1
#define VB_DEVICE_HEADERS_MAX 92 /* IPv6 40, UDP 8, BTH 12, the longest extension 28, ICRC 4 */

struct vb_device_gid {
	struct vb_gid gid; /* all zero: an empty entry */
	/* No address of the interface: made from its GUID, and reaches only this host. */
	bool is_host_only;
};

struct vb_device {
	char name[VB_DEVICE_NAME_MAX]; /* "vb_eth0"; stays even when the interface is renamed */
	char ifname[VB_DEVICE_IFNAME_MAX];
	/* Also its number among the verbs devices: every process counts them alike. */
	uint32_t ifindex;
	uint8_t mac[6]; /* all zero if it has none */
	/* Of node and system image. Never 0; no two devices of a host have the same. */
	uint64_t guid;
	uint32_t interface_mtu;
	uint32_t path_mtu; /* 256 to 4096; 0 if not even 256 fits: then the port is down */
	uint32_t speed_mbps;
	bool is_up;
	bool has_carrier;
	bool is_loopback;
	bool is_default_route; /* at most one device has it */
	/*
	 * [0] is a link-local address, or one made from the GUID; [1] is an IPv4 address or none;
	 * the others follow from [2] on. An address keeps its entry as long as it exists. The last
	 * entry is always empty.
	 */
	struct vb_device_gid gids[VB_GID_COUNT];
};

enum vb_device_change {
	VB_DEVICE_GID_CHANGE = 1, /* see vb_device_changes.gids */
	VB_DEVICE_PORT_ERROR = 2, /* the port was active and no longer is */
	VB_DEVICE_PORT_ACTIVE = 4,
	VB_DEVICE_MTU_CHANGE = 8, /* path_mtu */
	VB_DEVICE_GONE = 16, /* the interface no longer exists; it never comes back */
};

struct vb_device_changes {
	uint32_t what; /* enum vb_device_change */
	bool gids[VB_GID_COUNT]; /* which entries have changed */
};

/*
 * All devices that the configuration chooses: the one with the default route first, then by the
 * interface's index, loopback last. The caller frees them with vb_device_list_free(). VB_EOPNOTSUPP
 * if the kernel does not list them.
 */
VB_MUST_USE vb_err vb_device_list(const struct vb_config *config, struct vb_device **devices_out,
				  uint32_t *count_out);
void vb_device_list_free(struct vb_device *devices);

/*
 * Compares the device with the interface as it is now, corrects the device and reports the
 * differences.
 */
VB_MUST_USE vb_err vb_device_refresh(struct vb_device *device, const struct vb_config *config,
				     struct vb_device_changes *changes_out);

/* Whether packets can leave and arrive. */
static inline bool vb_device_is_active(const struct vb_device *device)
{
	return device->is_up && device->has_carrier && device->path_mtu;
}

/* A rate in InfiniBand terms. */
struct vb_device_rate {
	uint32_t mbps;
	uint8_t width; /* the codes of the verbs: ibv_port_attr.active_width and .active_speed */
	uint8_t speed;
	const char *text; /* as the kernel writes it in sysfs */
};

/* The smallest rate that is not below the interface's speed; or the largest rate. */
const struct vb_device_rate *vb_device_rate(const struct vb_device *device);

bool vb_device_gid_is_empty(const struct vb_device_gid *entry);

/*
 * Whether a list such as "eth0,lo", "!docker*" or "eth*,!eth1" chooses this interface. The
 * interface must match a name without '!', if there is any, and none with it. Names are the
 * interface's or the device's ("vb_eth0"); * stands for any characters.
 */
bool vb_device_is_chosen(const char *list, const char *ifname, const char *name);

enum vb_device_news {
	VB_DEVICE_NO_NEWS,
	VB_DEVICE_NEWS, /* links or addresses have changed: refresh */
	/*
	 * The descriptor is no longer ours: the program has closed it. Do not close it; open
	 * another one.
	 */
	VB_DEVICE_WATCH_LOST,
};

/*
 * A descriptor to poll for reading. Open it before the first list, so that nothing is missed in
 * between.
 */
VB_MUST_USE vb_err vb_device_watch_open(int *fd_out);
void vb_device_watch_close(int fd);
/* Takes all pending messages, without waiting. */
enum vb_device_news vb_device_watch_take(int fd);

#endif
