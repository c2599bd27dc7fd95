/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names and contents of the tree, in the kernel's words. The class folders hold links into a folder
 * of each device, as they do for an adapter on a bus, so that a program that goes from a device to
 * its interface, or to another class, finds it.
 */
#include "shim/tree_entry_priv.h"

#include "base/bytes.h"
#include "host/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define END                         \
	{                           \
		.kind = VB_TREE_END \
	}
#define FILE_OF(title, function)                                          \
	{                                                                 \
		.kind = VB_TREE_FILE, .name = (title), .show = (function) \
	}
#define LINK_OF(title, function)                                          \
	{                                                                 \
		.kind = VB_TREE_LINK, .name = (title), .show = (function) \
	}
#define FOLDER_OF(title, table)                                              \
	{                                                                    \
		.kind = VB_TREE_FOLDER, .name = (title), .children = (table) \
	}

#define CPUS_MAX 1024

/* --- attributes of the port --- */

static int show_state(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size,
			vb_device_is_active(node->device) ? "4: ACTIVE\n" : "1: DOWN\n");
}

static int show_phys_state(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size,
			vb_device_is_active(node->device) ? "5: LinkUp\n" : "3: Disabled\n");
}

static int show_rate(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", vb_device_rate(node->device)->text);
}

static int show_link_layer(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "Ethernet\n");
}

static int show_capabilities(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	/* the connection manager's capability bit */
	return snprintf(text, size, "0x%08x\n", 1u << 16);
}

static int show_zero(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0\n");
}

static int show_zero_hex(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0x0\n");
}

static int show_pkey(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "0x%04x\n", VB_PKEY_DEFAULT);
}

static int show_gid(const struct vb_tree_node *node, char *text, size_t size)
{
	const uint8_t *raw = node->device->gids[node->number].gid.raw;

	return snprintf(text, size, "%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n", load16(raw),
			load16(raw + 2), load16(raw + 4), load16(raw + 6), load16(raw + 8),
			load16(raw + 10), load16(raw + 12), load16(raw + 14));
}

/* The kernel refuses to read these files for an empty entry. */
static int show_gid_type(const struct vb_tree_node *node, char *text, size_t size)
{
	if (vb_device_gid_is_empty(&node->device->gids[node->number]))
		return -EINVAL;
	return snprintf(text, size, "RoCE v2\n");
}

static int show_gid_interface(const struct vb_tree_node *node, char *text, size_t size)
{
	if (vb_device_gid_is_empty(&node->device->gids[node->number]))
		return -EINVAL;
	return snprintf(text, size, "%s\n", node->device->ifname);
}

/* --- attributes of the device --- */

static int show_node_type(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "1: CA\n");
}

static int show_guid(const struct vb_tree_node *node, char *text, size_t size)
{
	uint64_t guid = node->device->guid;

	return snprintf(text, size, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
			(unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
			(unsigned)(guid & 0xffff));
}

static int show_name(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size, "%s\n", node->device->name);
}

static int show_firmware(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "%s\n", VB_DEVICE_FIRMWARE);
}

static int show_revision(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "%x\n", VB_DEVICE_HARDWARE);
}

static int show_make(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "verbatim\n");
}

static int show_no_numa_node(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "-1\n");
}

/* --- CPUs that are near: all ------------------------------------------------------------------ */

static int show_cpu_list(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	if (!vb_file_read("/sys/devices/system/cpu/online", text, size, NULL))
		return -errno;
	return (int)strlen(text);
}

/* Parses "0-2,5" into bits. Returns the number of 32-bit words up to the highest bit. */
static uint32_t parse_cpus(const char *list, uint32_t words[CPUS_MAX / 32])
{
	unsigned first, last, count = 1;
	int length;

	while (sscanf(list, "%u%n", &first, &length) == 1) {
		list += length;
		last = first;
		if (sscanf(list, "-%u%n", &last, &length) == 1)
			list += length;
		for (unsigned cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
			words[cpu / 32] |= 1u << cpu % 32;
			count = max32(count, cpu / 32 + 1);
		}
		list += *list == ',';
	}
	return count;
}

static int show_cpu_mask(const struct vb_tree_node *node, char *text, size_t size)
{
	uint32_t words[CPUS_MAX / 32] = { 0 };
	int length = show_cpu_list(node, text, size);
	uint32_t count;

	if (length < 0)
		return length;
	count = parse_cpus(text, words);
	length = 0;
	while (count-- > 0)
		length += snprintf(text + length, size - (size_t)length, "%08x%c", words[count],
				   count ? ',' : '\n');
	return length;
}

/* --- links ------------------------------------------------------------------------------------ */

static int show_class_link(const struct vb_tree_node *node, char *text, size_t size)
{
	const char *name = node->device->name;

	return snprintf(text, size, "../../devices/virtual/verbatim/%s/infiniband/%s", name, name);
}

static int show_verbs_link(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size, "../../devices/virtual/verbatim/%s/infiniband_verbs/uverbs%u",
			node->device->name, node->device->ifindex);
}

static int show_device_link(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size, "../../../%s", node->device->name);
}

static int show_subsystem_link(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "../../../../../../class/infiniband");
}

static int show_verbs_subsystem_link(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "../../../../../../class/infiniband_verbs");
}

static int show_interface_link(const struct vb_tree_node *node, char *text, size_t size)
{
	return snprintf(text, size, "../../../../../class/net/%s", node->device->ifname);
}

/* --- the verbs device ------------------------------------------------------------------------- */

static int show_verbs_number(const struct vb_tree_node *node, char *text, size_t size)
{
	uint64_t number = vb_tree_device_number(node);

	return snprintf(text, size, "%u:%u\n", (unsigned)(number >> 32), (unsigned)number);
}

static int show_class_abi(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "6\n");
}

static int show_verbs_abi(const struct vb_tree_node *node, char *text, size_t size)
{
	(void)node;
	return snprintf(text, size, "1\n");
}

/* --- the table -------------------------------------------------------------------------------- */

/* clang-format off */
static const struct vb_tree_entry pkeys[] = {
	FILE_OF("0", show_pkey),
	END
};

static const struct vb_tree_entry gids[] = {
	{ .kind = VB_TREE_FILE, .naming = VB_TREE_BY_GID, .show = show_gid },
	END
};

static const struct vb_tree_entry gid_types[] = {
	{ .kind = VB_TREE_FILE, .naming = VB_TREE_BY_GID, .show = show_gid_type },
	END
};

static const struct vb_tree_entry gid_interfaces[] = {
	{ .kind = VB_TREE_FILE, .naming = VB_TREE_BY_GID, .show = show_gid_interface },
	END
};

static const struct vb_tree_entry gid_attributes[] = {
	FOLDER_OF("types", gid_types),
	FOLDER_OF("ndevs", gid_interfaces),
	END
};

static const struct vb_tree_entry counters[] = {
	{ .kind = VB_TREE_FILE, .naming = VB_TREE_BY_COUNTER, .show = vb_tree_counter_show },
	END
};

static const struct vb_tree_entry hw_counters[] = {
	{ .kind = VB_TREE_FILE, .naming = VB_TREE_BY_HW_COUNTER, .show = vb_tree_counter_show },
	END
};

static const struct vb_tree_entry port[] = {
	FILE_OF("state", show_state),
	FILE_OF("phys_state", show_phys_state),
	FILE_OF("rate", show_rate),
	FILE_OF("link_layer", show_link_layer),
	FILE_OF("cap_mask", show_capabilities),
	FILE_OF("lid", show_zero_hex),
	FILE_OF("lid_mask_count", show_zero),
	FILE_OF("sm_lid", show_zero_hex),
	FILE_OF("sm_sl", show_zero),
	FOLDER_OF("pkeys", pkeys),
	FOLDER_OF("gids", gids),
	FOLDER_OF("gid_attrs", gid_attributes),
	FOLDER_OF("counters", counters),
	FOLDER_OF("hw_counters", hw_counters),
	END
};

static const struct vb_tree_entry ports[] = {
	FOLDER_OF("1", port),
	END
};

static const struct vb_tree_entry adapter[] = {
	FILE_OF("node_type", show_node_type),
	FILE_OF("node_guid", show_guid),
	FILE_OF("sys_image_guid", show_guid),
	FILE_OF("node_desc", show_name),
	FILE_OF("fw_ver", show_firmware),
	FILE_OF("hw_rev", show_revision),
	FILE_OF("hca_type", show_make),
	FILE_OF("board_id", show_make),
	FOLDER_OF("ports", ports),
	LINK_OF("device", show_device_link),
	LINK_OF("subsystem", show_subsystem_link),
	END
};

static const struct vb_tree_entry verbs[] = {
	FILE_OF("ibdev", show_name),
	FILE_OF("abi_version", show_verbs_abi),
	FILE_OF("dev", show_verbs_number),
	LINK_OF("device", show_device_link),
	LINK_OF("subsystem", show_verbs_subsystem_link),
	END
};

static const struct vb_tree_entry own_adapter[] = {
	{ .kind = VB_TREE_FOLDER, .naming = VB_TREE_BY_DEVICE, .children = adapter },
	END
};

static const struct vb_tree_entry own_verbs[] = {
	{ .kind = VB_TREE_FOLDER, .naming = VB_TREE_BY_VERBS, .children = verbs },
	END
};

static const struct vb_tree_entry own_interface[] = {
	{ .kind = VB_TREE_LINK, .naming = VB_TREE_BY_INTERFACE, .show = show_interface_link },
	END
};

static const struct vb_tree_entry device[] = {
	FOLDER_OF("infiniband", own_adapter),
	FOLDER_OF("infiniband_verbs", own_verbs),
	FOLDER_OF("net", own_interface),
	FILE_OF("numa_node", show_no_numa_node),
	FILE_OF("local_cpulist", show_cpu_list),
	FILE_OF("local_cpus", show_cpu_mask),
	END
};

static const struct vb_tree_entry devices[] = {
	{ .kind = VB_TREE_FOLDER, .naming = VB_TREE_BY_DEVICE, .children = device },
	END
};

static const struct vb_tree_entry class_infiniband[] = {
	{ .kind = VB_TREE_LINK, .naming = VB_TREE_BY_DEVICE, .show = show_class_link },
	END
};

static const struct vb_tree_entry class_verbs[] = {
	FILE_OF("abi_version", show_class_abi),
	{ .kind = VB_TREE_LINK, .naming = VB_TREE_BY_VERBS, .show = show_verbs_link },
	END
};

static const struct vb_tree_entry dev[] = {
	{ .kind = VB_TREE_DEVICE, .naming = VB_TREE_BY_VERBS },
	{ .kind = VB_TREE_DEVICE, .name = "rdma_cm" },
	END
};

const struct vb_tree_root vb_tree_roots[VB_TREE_ROOT_COUNT] = {
	{ "/sys/class/infiniband", "/sys/class", FOLDER_OF(NULL, class_infiniband) },
	{ "/sys/class/infiniband_verbs", "/sys/class", FOLDER_OF(NULL, class_verbs) },
	{ "/sys/devices/virtual/verbatim", "/sys/devices/virtual", FOLDER_OF(NULL, devices) },
	{ "/dev/infiniband", "/dev", FOLDER_OF(NULL, dev) },
};
/* clang-format on */
