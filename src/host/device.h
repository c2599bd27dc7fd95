/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The devices that programs see: one for each network interface of this network namespace that is up and has an
 * address. A device is a description; whoever opens it keeps a copy and refreshes it when the watch says that something
 * has changed. Its GIDs are the interface's addresses; all are RoCE v2 and on the device's own interface.
 */
#ifndef VB_HOST_DEVICE_H
#define VB_HOST_DEVICE_H

#include "base/err.h"
#include "host/config.h"
#include "nic/nic.h"

#include <stdbool.h>
#include <stdint.h>

#define VB_DEVICE_NAME_MAX 64 /* as in struct ibv_device, its end included */
#define VB_DEVICE_IFNAME_MAX 16
#define VB_DEVICE_FIRMWARE "1.0.0" /* what every device says of itself */
#define VB_DEVICE_HARDWARE 1
#define VB_DEVICE_HEADERS_MAX 92 /* IPv6 40, UDP 8, BTH 12, the longest extension 28, ICRC 4 */

struct vb_device_gid {
	struct vb_gid gid; /* all zero: an empty entry */
	bool is_host_only; /* no address of the interface: made from its GUID, and reaches this host only */
};

struct vb_device {
	char name[VB_DEVICE_NAME_MAX]; /* "vb_eth0"; stays, also when the interface is renamed */
	char ifname[VB_DEVICE_IFNAME_MAX];
	uint32_t ifindex; /* also its number among the verbs devices: every process counts them alike */
	uint8_t mac[6]; /* all zero if it has none */
	uint64_t guid; /* of node and system image; never 0, no two devices of a host have the same */
	uint32_t interface_mtu;
	uint32_t path_mtu; /* 256 to 4096; 0 if not even that fits, and then the port is down */
	uint32_t speed_mbps;
	bool is_up;
	bool has_carrier;
	bool is_loopback;
	bool is_default_route; /* one device at most */
	/*
	 * [0] a link-local address, or one made from the GUID; [1] an IPv4 address or none; from [2] on the others. An
	 * address keeps its entry as long as it exists. The last one is always empty.
	 */
	struct vb_device_gid gids[VB_GID_COUNT];
};

enum vb_device_change {
	VB_DEVICE_GID_CHANGE = 1, /* see vb_device_changes.gids */
	VB_DEVICE_PORT_ERROR = 2, /* the port was active and is not any more */
	VB_DEVICE_PORT_ACTIVE = 4,
	VB_DEVICE_MTU_CHANGE = 8, /* path_mtu */
	VB_DEVICE_GONE = 16, /* there is no such interface any more; it never comes back */
};

struct vb_device_changes {
	uint32_t what; /* enum vb_device_change */
	bool gids[VB_GID_COUNT]; /* which entries have changed */
};

/*
 * All devices that the configuration chooses: the one with the default route first, then by the interface's index,
 * loopback last. The caller frees them with vb_device_list_free(). VB_EOPNOTSUPP if the kernel does not tell.
 */
VB_MUST_USE vb_err vb_device_list(const struct vb_config *config, struct vb_device **devices_out,
				  uint32_t *count_out);
void vb_device_list_free(struct vb_device *devices);

/* Compares with the interface as it is now, puts the device right and says what was different. */
VB_MUST_USE vb_err vb_device_refresh(struct vb_device *device, const struct vb_config *config,
				     struct vb_device_changes *changes_out);

/* Can packets leave and arrive? */
static inline bool vb_device_is_active(const struct vb_device *device)
{
	return device->is_up && device->has_carrier && device->path_mtu;
}

/* A rate in the terms of InfiniBand. */
struct vb_device_rate {
	uint32_t mbps;
	uint8_t width; /* the codes of the verbs: ibv_port_attr.active_width and .active_speed */
	uint8_t speed;
	const char *text; /* as the kernel says it in sysfs */
};

/* The one next to the interface's speed, from above. */
const struct vb_device_rate *vb_device_rate(const struct vb_device *device);

bool vb_device_gid_is_empty(const struct vb_device_gid *entry);

/*
 * Does a list such as "eth0,lo", "!docker*" or "eth*,!eth1" choose this interface? It must match a name without '!', if
 * there is any, and none with it. Names are the interface's or the device's ("vb_eth0"); * stands for any characters.
 */
bool vb_device_is_chosen(const char *list, const char *ifname, const char *name);

enum vb_device_news {
	VB_DEVICE_NO_NEWS,
	VB_DEVICE_NEWS, /* links or addresses have changed: refresh */
	VB_DEVICE_WATCH_LOST, /* the descriptor is not ours any more: the program has closed it. Do not close it; open anew */
};

/* A descriptor to poll for reading. It is opened before the first list, so that nothing is missed between. */
VB_MUST_USE vb_err vb_device_watch_open(int *fd_out);
void vb_device_watch_close(int fd);
/* Takes all that is there, without waiting. */
enum vb_device_news vb_device_watch_take(int fd);

#endif
