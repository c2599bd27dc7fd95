/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The making of devices from interfaces: which, in which order, under which names and GUIDs; and
 * what has changed since.
 */
#include "host/device/device_priv.h"

#include "base/bytes.h"
#include "base/heap.h"

#include <stdio.h>
#include <string.h>

#define NAME_PREFIX "vb_"
#define PATH_MTU_MAX 4096u
#define PATH_MTU_MIN 256u

/*
 * Programs prefer fast devices. A device that reaches no other host must not look faster than any
 * that does.
 */
#define SPEED_UNKNOWN_MBPS 10000
#define SPEED_LOOPBACK_MBPS 2500

/* --- one interface ---------------------------------------------------------------------------- */

uint32_t vb_device_path_mtu(uint32_t interface_mtu, uint32_t limit)
{
	for (uint32_t mtu = PATH_MTU_MAX; mtu >= PATH_MTU_MIN; mtu /= 2)
		if (interface_mtu >= mtu + VB_DEVICE_HEADERS_MAX && (!limit || mtu <= limit))
			return mtu;
	return 0;
}

/*
 * EUI-64 in the form of IPv6 interface identifiers (RFC 4291, appendix A): the GUID is the lower
 * half of the link-local address.
 */
static uint64_t guid_of_mac(const uint8_t mac[6])
{
	const uint8_t bytes[8] = {
		mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5],
	};

	return load64(bytes);
}

static uint64_t hash(uint64_t state, const char *text)
{
	for (; *text; text++)
		state = (state ^ (unsigned char)*text) * 0x100000001b3ull; /* FNV-1a */
	return state;
}

/*
 * Makes a GUID from the names of machine and interface. The bit that says "assigned by a
 * manufacturer" is 0.
 */
static uint64_t guid_of_name(const char *machine, const char *ifname)
{
	uint64_t guid = hash(0xcbf29ce484222325ull, machine);

	guid = hash(guid, "/");
	guid = hash(guid, ifname);
	/* The last letters of a name have not yet reached the bits near the lowest ones. */
	guid ^= guid >> 32;
	guid *= 0xd6e8feb86659fd93ull;
	guid ^= guid >> 32;
	guid &= ~(2ull << 56);
	return guid ? guid : 1;
}

/*
 * A bridge has the MAC of one of its ports, a VLAN that of its interface. Only the first interface
 * with a MAC gets its GUID from it.
 */
static bool owns_mac(const struct vb_interfaces *interfaces, const struct vb_interface *interface)
{
	if (!interface->has_mac)
		return false;
	for (uint32_t i = 0; i < interfaces->count; i++) {
		const struct vb_interface *other = &interfaces->list[i];

		if (other->has_mac && other->ifindex < interface->ifindex &&
		    !memcmp(other->mac, interface->mac, sizeof(other->mac)))
			return false;
	}
	return true;
}

uint64_t vb_device_guid(const struct vb_interfaces *interfaces,
			const struct vb_interface *interface)
{
	uint64_t guid = owns_mac(interfaces, interface)
				? guid_of_mac(interface->mac)
				: guid_of_name(interfaces->machine, interface->name);

	return guid ? guid : 1;
}

static uint32_t speed_of(const struct vb_interface *interface)
{
	if (interface->is_loopback)
		return SPEED_LOOPBACK_MBPS;
	return interface->speed_mbps ? interface->speed_mbps : SPEED_UNKNOWN_MBPS;
}

/* Names of devices become names of files, so unusual characters are replaced. */
static void name_device(const char *ifname, char name[VB_DEVICE_NAME_MAX])
{
	snprintf(name, VB_DEVICE_NAME_MAX, NAME_PREFIX "%s", ifname);
	for (char *at = name; *at; at++)
		if (*at <= ' ' || *at >= 0x7f || strchr("/:\\\"'`$*?", *at))
			*at = '_';
}

/* --- which interfaces ------------------------------------------------------------------------- */

/* Whether the pattern, which ends at `end`, matches the whole text. */
static bool matches(const char *pattern, const char *end, const char *text)
{
	if (pattern == end)
		return !*text;
	if (*pattern == '*')
		return matches(pattern + 1, end, text) ||
		       (*text && matches(pattern, end, text + 1));
	return *pattern == *text && matches(pattern + 1, end, text + 1);
}

bool vb_device_is_chosen(const char *list, const char *ifname, const char *name)
{
	bool has_wanted = false, is_wanted = false;

	while (*list) {
		size_t skip = strspn(list, ", \t");
		size_t length = strcspn(list + skip, ", \t");
		const char *item = list + skip, *end = item + length;
		bool is_refusal = *item == '!', is_match;

		list = end;
		item += is_refusal;
		if (item >= end)
			continue;
		is_match = matches(item, end, ifname) || matches(item, end, name);
		if (is_match && is_refusal)
			return false;
		if (!is_refusal) {
			has_wanted = true;
			is_wanted |= is_match;
		}
	}
	return is_wanted || !has_wanted;
}

static bool is_addressed(const struct vb_interfaces *interfaces, uint32_t ifindex)
{
	for (uint32_t i = 0; i < interfaces->address_count; i++)
		if (interfaces->addresses[i].ifindex == ifindex)
			return true;
	return false;
}

static bool is_device(const struct vb_interfaces *interfaces, const struct vb_interface *interface,
		      const struct vb_config *config)
{
	char name[VB_DEVICE_NAME_MAX];

	name_device(interface->name, name);
	if (!interface->is_up || !is_addressed(interfaces, interface->ifindex) ||
	    !vb_device_is_chosen(config->devices, interface->name, name))
		return false;
	if (vb_device_path_mtu(interface->mtu, config->mtu))
		return true;
	vb_log_about(VB_LOG_INFO, VB_LOG_ABOUT(.phase = "devices"),
		     "%s: is no device: a packet does not fit its MTU of %u", interface->name,
		     interface->mtu);
	return false;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Updates what follows the interface; the device's name and GUID do not. */
static void follow(struct vb_device *device, const struct vb_interfaces *interfaces,
		   const struct vb_interface *interface, const struct vb_config *config)
{
	uint32_t left_out;

	snprintf(device->ifname, sizeof(device->ifname), "%s", interface->name);
	memcpy(device->mac, interface->mac, sizeof(device->mac));
	device->interface_mtu = interface->mtu;
	device->path_mtu = vb_device_path_mtu(interface->mtu, config->mtu);
	device->speed_mbps = speed_of(interface);
	device->is_up = interface->is_up;
	device->has_carrier = interface->has_carrier;
	device->is_loopback = interface->is_loopback;
	device->is_default_route = interfaces->default_ifindex == interface->ifindex;
	left_out = vb_device_place_gids(device, interfaces);
	if (left_out)
		vb_log_about(VB_LOG_WARN, VB_LOG_ABOUT(.phase = "devices", .device = device->name),
			     "%s: its GID table is full; addresses without an entry: %u",
			     device->name, left_out);
}

/* Two unusual names may have become the same. */
static void make_name_unique(struct vb_device *device, const struct vb_device *others,
			     uint32_t count)
{
	size_t length = strlen(device->name);

	for (uint32_t i = 0; i < count; i++) {
		if (!strcmp(others[i].name, device->name)) {
			snprintf(device->name + length, sizeof(device->name) - length, "_%u",
				 device->ifindex);
			return;
		}
	}
}

static bool is_before(const struct vb_device *a, const struct vb_device *b)
{
	if (a->is_loopback != b->is_loopback)
		return b->is_loopback;
	if (a->is_default_route != b->is_default_route)
		return a->is_default_route;
	return a->ifindex < b->ifindex;
}

/* Does not use qsort(), which may take memory from the program's heap. */
static void sort_by_rank(struct vb_device *devices, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = i; j && is_before(&devices[j], &devices[j - 1]); j--) {
			struct vb_device moved = devices[j];

			devices[j] = devices[j - 1];
			devices[j - 1] = moved;
		}
}

vb_err vb_device_make_list(const struct vb_interfaces *interfaces, const struct vb_config *config,
			   struct vb_device **devices_out, uint32_t *count_out)
{
	/* One more than needed: an empty list is also something to free. */
	struct vb_device *devices = vb_heap_alloc(interfaces->count + 1, sizeof(*devices));
	uint32_t count = 0;

	if (!devices)
		return VB_ENOMEM;
	for (uint32_t i = 0; i < interfaces->count; i++) {
		const struct vb_interface *interface = &interfaces->list[i];
		struct vb_device *device = &devices[count];

		if (!is_device(interfaces, interface, config))
			continue;
		name_device(interface->name, device->name);
		device->ifindex = interface->ifindex;
		device->guid = vb_device_guid(interfaces, interface);
		make_name_unique(device, devices, count);
		follow(device, interfaces, interface, config);
		count++;
	}
	sort_by_rank(devices, count);
	*devices_out = devices;
	*count_out = count;
	return VB_OK;
}

static const struct vb_interface *find_interface(const struct vb_interfaces *interfaces,
						 uint32_t ifindex)
{
	for (uint32_t i = 0; i < interfaces->count; i++)
		if (interfaces->list[i].ifindex == ifindex)
			return &interfaces->list[i];
	return NULL;
}

static void compare(const struct vb_device *before, const struct vb_device *after,
		    struct vb_device_changes *changes)
{
	bool was_active = vb_device_is_active(before), is_active = vb_device_is_active(after);

	for (uint32_t i = 0; i < VB_GID_COUNT; i++) {
		const struct vb_device_gid *a = &before->gids[i], *b = &after->gids[i];

		changes->gids[i] = memcmp(&a->gid, &b->gid, sizeof(a->gid)) ||
				   a->is_host_only != b->is_host_only;
		if (changes->gids[i])
			changes->what |= VB_DEVICE_GID_CHANGE;
	}
	if (was_active && !is_active)
		changes->what |= VB_DEVICE_PORT_ERROR;
	if (!was_active && is_active)
		changes->what |= VB_DEVICE_PORT_ACTIVE;
	if (before->path_mtu != after->path_mtu)
		changes->what |= VB_DEVICE_MTU_CHANGE;
}

/*
 * The GIDs of an interface that no longer exists stay: programs that still hold the device see what
 * they knew.
 */
void vb_device_update(struct vb_device *device, const struct vb_interfaces *interfaces,
		      const struct vb_config *config, struct vb_device_changes *changes_out)
{
	const struct vb_interface *interface = find_interface(interfaces, device->ifindex);
	struct vb_device before = *device;

	*changes_out = (struct vb_device_changes){ 0 };
	if (interface) {
		follow(device, interfaces, interface, config);
	} else {
		changes_out->what |= VB_DEVICE_GONE;
		device->is_up = device->has_carrier = device->is_default_route = false;
	}
	compare(&before, device, changes_out);
}
