/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The assignment of addresses to entries of a GID table. Programs remember indices, so an address
 * never moves while it exists. Programs use entries 0 and 1 without looking.
 */
#include "host/device/device_priv.h"

#include "base/bytes.h"

#include <string.h>

#define INDEX_LINK_LOCAL 0
#define INDEX_IPV4 1
#define INDEX_OTHERS 2
#define INDEX_END (VB_GID_COUNT - 1) /* one entry is always empty: programs look for one */

static const uint8_t ipv4_prefix[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool vb_device_is_link_local(const struct vb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

bool vb_device_is_ipv4(const struct vb_gid *gid)
{
	return !memcmp(gid->raw, ipv4_prefix, sizeof(ipv4_prefix));
}

bool vb_device_gid_is_empty(const struct vb_device_gid *entry)
{
	static const struct vb_gid empty;

	return !memcmp(&entry->gid, &empty, sizeof(empty));
}

static struct vb_device_gid *find(struct vb_device *device, const struct vb_gid *gid)
{
	for (uint32_t i = 0; i < INDEX_END; i++)
		if (!memcmp(&device->gids[i].gid, gid, sizeof(*gid)))
			return &device->gids[i];
	return NULL;
}

static bool has_address(const struct vb_interfaces *interfaces, uint32_t ifindex,
			const struct vb_gid *gid)
{
	for (uint32_t i = 0; i < interfaces->address_count; i++)
		if (interfaces->addresses[i].ifindex == ifindex &&
		    !memcmp(&interfaces->addresses[i].gid, gid, sizeof(*gid)))
			return true;
	return false;
}

/*
 * Removes entries whose address no longer exists, and the generated one: it is made again if it is
 * still needed.
 */
static void remove_old(struct vb_device *device, const struct vb_interfaces *interfaces)
{
	for (uint32_t i = 0; i < INDEX_END; i++) {
		struct vb_device_gid *entry = &device->gids[i];

		if (!vb_device_gid_is_empty(entry) &&
		    (entry->is_host_only || !has_address(interfaces, device->ifindex, &entry->gid)))
			*entry = (struct vb_device_gid){ 0 };
	}
}

static struct vb_device_gid *find_room(struct vb_device *device, const struct vb_gid *gid)
{
	uint32_t first = vb_device_is_link_local(gid) ? INDEX_LINK_LOCAL
			 : vb_device_is_ipv4(gid)     ? INDEX_IPV4
						      : INDEX_OTHERS;

	for (uint32_t i = first; i < INDEX_END; i++) {
		if (i == INDEX_IPV4 && !vb_device_is_ipv4(gid))
			continue;
		if (vb_device_gid_is_empty(&device->gids[i]))
			return &device->gids[i];
	}
	return NULL;
}

/* Returns false if there is no room. */
static bool place(struct vb_device *device, const struct vb_gid *gid)
{
	struct vb_device_gid *entry;

	if (find(device, gid))
		return true;
	entry = find_room(device, gid);
	if (entry)
		*entry = (struct vb_device_gid){ .gid = *gid };
	return entry;
}

/*
 * Fills entry 0, which is never empty. The GID generated for it may be an address already; then
 * that address moves, so that no GID is there twice.
 */
static void make_link_local(struct vb_device *device)
{
	struct vb_device_gid made = { .gid = { { 0xfe, 0x80 } }, .is_host_only = true };
	struct vb_device_gid *same;

	if (!vb_device_gid_is_empty(&device->gids[INDEX_LINK_LOCAL]))
		return;
	store64(made.gid.raw + 8, device->guid);
	same = find(device, &made.gid);
	if (same) {
		made = *same;
		*same = (struct vb_device_gid){ 0 };
	}
	device->gids[INDEX_LINK_LOCAL] = made;
}

/* IPv4 addresses come first: they fill the front of a new table. */
uint32_t vb_device_place_gids(struct vb_device *device, const struct vb_interfaces *interfaces)
{
	uint32_t left_out = 0;

	remove_old(device, interfaces);
	for (uint32_t pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < interfaces->address_count; i++) {
			const struct vb_interface_address *address = &interfaces->addresses[i];

			if (address->ifindex == device->ifindex &&
			    vb_device_is_ipv4(&address->gid) == (pass == 0))
				left_out += !place(device, &address->gid);
		}
	}
	make_link_local(device);
	return left_out;
}
