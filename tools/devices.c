/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `verbatim devices` shows the devices that programs will see, and what may keep them from working:
 * another user, or the kernel's Soft-RoCE, may hold the UDP port that all RoCE packets are sent to.
 */
#include "settings.h"
#include "verbatim.h"

#include "host/device/device.h"
#include "host/registry/mail.h"
#include "host/registry/port_holders.h"
#include "host/sys/config.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROCE_PORT 4791
#define KERNEL_DEVICES_MAX 16
#define KERNEL_DEVICES_PATH "/sys/class/infiniband"

/* Other users of RDMA on this host. */
struct rdma_users {
	struct vb_port_holders holders; /* of the RoCE port */
	char kernel_devices[KERNEL_DEVICES_MAX][VB_DEVICE_NAME_MAX];
	uint32_t kernel_device_count;
};

/* --- other users of RDMA --- */

static void find_kernel_devices(struct rdma_users *rdma_users)
{
	DIR *directory = opendir(KERNEL_DEVICES_PATH);
	struct dirent *entry;

	while (directory && (entry = readdir(directory)) &&
	       rdma_users->kernel_device_count < KERNEL_DEVICES_MAX) {
		/* Under `verbatim run` our own devices also appear there. */
		if (entry->d_name[0] == '.' || !strncmp(entry->d_name, "vb_", 3))
			continue;
		snprintf(rdma_users->kernel_devices[rdma_users->kernel_device_count++],
			 VB_DEVICE_NAME_MAX, "%.63s", entry->d_name);
	}
	if (directory)
		closedir(directory);
}

static const char *user_name(uid_t uid)
{
	struct passwd *user = getpwuid(uid);

	return user ? user->pw_name : "?";
}

/* --- this host -------------------------------------------------------------------------------- */

/*
 * True if the kernel lets a process access the memory of other processes of its user: Yama may
 * forbid it.
 */
static bool can_access_peer_memory(void)
{
	char scope = '0';
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");

	if (file) {
		if (fread(&scope, 1, 1, file) != 1)
			scope = '0';
		fclose(file);
	}
	return scope == '0' || (scope != '3' && geteuid() == 0);
}

/* --- both formats ----------------------------------------------------------------------------- */

static void describe_gid(const struct vb_gid *gid, char text[INET6_ADDRSTRLEN])
{
	inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static bool is_host_only_gid(const struct vb_device *device, uint32_t index)
{
	return device->is_loopback || device->gids[index].is_host_only;
}

static const char *describe_state(const struct vb_device *device)
{
	if (vb_device_is_active(device))
		return "active";
	return device->has_carrier ? "down" : "no carrier";
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_local_peers(const struct vb_config *config)
{
	if (config->path == VB_PATH_WIRE)
		printf("\nPeers on this host are reached by packets: the path is set to wire.\n");
	else if (can_access_peer_memory())
		printf("\nPeers of this user on this host are reached by shared memory.\n");
	else
		printf("\nPeers of this user on this host are reached by shared memory. Their private memory needs\n"
		       "their help, because Yama forbids direct access (sysctl kernel.yama.ptrace_scope).\n");
}

static void print_device(const struct vb_device *device)
{
	char gid[INET6_ADDRSTRLEN];

	printf("%s%s\n", device->name, device->is_default_route ? " (default route)" : "");
	printf("    interface  %s, %s, MTU %u, %u Mb/s\n", device->ifname, describe_state(device),
	       device->interface_mtu, device->speed_mbps);
	printf("    path MTU   %u\n", device->path_mtu);
	printf("    GUID       %04x:%04x:%04x:%04x\n", (unsigned)(device->guid >> 48),
	       (unsigned)(device->guid >> 32 & 0xffff), (unsigned)(device->guid >> 16 & 0xffff),
	       (unsigned)(device->guid & 0xffff));
	for (uint32_t i = 0; i < VB_GID_COUNT; i++) {
		if (vb_device_gid_is_empty(&device->gids[i]))
			continue;
		describe_gid(&device->gids[i].gid, gid);
		printf("    GID %-6u %-28s RoCE v2%s\n", i, gid,
		       is_host_only_gid(device, i) ? ", this host only" : "");
	}
}

static void print_holders(const struct vb_port_holders *holders)
{
	for (uint32_t i = 0; i < holders->user_count; i++) {
		uid_t uid = holders->users[i];

		printf("\nUDP port %d is held by %s (uid %u)%s.\n", ROCE_PORT, user_name(uid), uid,
		       uid == 0 && holders->has_soft_roce ? ", perhaps the kernel's Soft-RoCE"
							  : "");
	}
	if (holders->is_unshared)
		printf("\nUDP port %d is held by a program of yours that does not share it.\n",
		       ROCE_PORT);
	if (vb_port_holders_are_in_the_way(holders))
		printf("Until it is free, your programs reach only each other on this host. Programs that already run\n"
		       "when it becomes free, and those that start while one of them still runs, stay limited in this way.\n");
}

static void print_name_conflicts(void)
{
	struct vb_mail_user user = vb_mail_user();
	char text[1024];

	if (user.is_overflow) {
		printf("\nThis user namespace does not map your user, who appears as the overflow uid %u, like every other\n"
		       "unmapped user. Therefore peers on this host are reached by packets only, and your programs\n"
		       "exchange no messages.\n",
		       user.uid);
		return;
	}
	vb_mail_describe_strangers(&user, text, sizeof(text));
	if (*text)
		printf("\nNames by which your programs find each other are held by others: %s.\n"
		       "Your programs skip them and use other names.\n",
		       text);
}

static void print_rdma_users(const struct rdma_users *rdma_users)
{
	print_holders(&rdma_users->holders);
	print_name_conflicts();
	if (rdma_users->kernel_device_count)
		printf("\nThe kernel has RDMA devices of its own, which `verbatim run` does not show:");
	for (uint32_t i = 0; i < rdma_users->kernel_device_count; i++)
		printf(" %s", rdma_users->kernel_devices[i]);
	if (rdma_users->kernel_device_count)
		printf("\n");
}

static void print_text(const struct vb_device *devices, uint32_t count,
		       const struct rdma_users *rdma_users, const struct vb_config *config)
{
	for (uint32_t i = 0; i < count; i++) {
		if (i)
			printf("\n");
		print_device(&devices[i]);
	}
	if (count)
		print_local_peers(config);
	fflush(stdout);
	if (!count)
		fprintf(stderr,
			"verbatim devices: no devices: no chosen network interface is up and has an address\n");
	print_rdma_users(rdma_users);
}

/* --- JSON ------------------------------------------------------------------------------------- */

/*
 * Names of interfaces may hold nearly any byte. A byte that is not ASCII is written as the code
 * point of the same number (Latin-1).
 */
static void print_string(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < ' ' || c >= 0x7f || c == '"' || c == '\\')
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

static void print_pair(const char *key, const char *value)
{
	printf("\"%s\": ", key);
	print_string(value);
	printf(", ");
}

static void print_gids_json(const struct vb_device *device)
{
	const char *between = "";
	char gid[INET6_ADDRSTRLEN];

	printf("\"gids\": [");
	for (uint32_t i = 0; i < VB_GID_COUNT; i++) {
		if (vb_device_gid_is_empty(&device->gids[i]))
			continue;
		describe_gid(&device->gids[i].gid, gid);
		printf("%s\n      { \"index\": %u, \"gid\": \"%s\", \"type\": \"RoCE v2\", \"host_only\": %s }",
		       between, i, gid, is_host_only_gid(device, i) ? "true" : "false");
		between = ",";
	}
	printf(" ]");
}

static void print_device_json(const struct vb_device *device)
{
	const uint8_t *mac = device->mac;

	printf("\n    { ");
	print_pair("name", device->name);
	print_pair("interface", device->ifname);
	print_pair("state", describe_state(device));
	printf("\"ifindex\": %u, \"mac\": \"%02x:%02x:%02x:%02x:%02x:%02x\", \"guid\": \"%016" PRIx64
	       "\",\n      ",
	       device->ifindex, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], device->guid);
	printf("\"interface_mtu\": %u, \"path_mtu\": %u, \"speed_mbps\": %u, ",
	       device->interface_mtu, device->path_mtu, device->speed_mbps);
	printf("\"default_route\": %s, \"loopback\": %s,\n      ",
	       device->is_default_route ? "true" : "false", device->is_loopback ? "true" : "false");
	print_gids_json(device);
	printf(" }");
}

static void print_holder_json(uid_t uid, bool is_first)
{
	printf("%s{ ", is_first ? " " : ", ");
	print_pair("user", user_name(uid));
	printf("\"uid\": %u }", uid);
}

static void print_json(const struct vb_device *devices, uint32_t count,
		       const struct rdma_users *rdma_users, const struct vb_config *config)
{
	printf("{\n  \"devices\": [");
	for (uint32_t i = 0; i < count; i++) {
		printf("%s", i ? "," : "");
		print_device_json(&devices[i]);
	}
	printf(" ],\n  \"port\": %d,\n  \"port_held_by\": [", ROCE_PORT);
	for (uint32_t i = 0; i < rdma_users->holders.user_count; i++)
		print_holder_json(rdma_users->holders.users[i], i == 0);
	if (rdma_users->holders.is_unshared)
		print_holder_json(geteuid(), true);
	printf(" ],\n  \"kernel_devices\": [");
	for (uint32_t i = 0; i < rdma_users->kernel_device_count; i++) {
		printf("%s", i ? ", " : " ");
		print_string(rdma_users->kernel_devices[i]);
	}
	printf(" ],\n  \"path\": \"%s\", \"reaches_memory\": %s\n}\n",
	       config->path == VB_PATH_WIRE ? "wire" : "auto",
	       can_access_peer_memory() ? "true" : "false");
}

/* --- the command ------------------------------------------------------------------------------ */

static void print_help(void)
{
	puts("usage: verbatim devices [--json] [--<setting> <value>]...\n\n"
	     "Shows the RDMA devices that programs will see: one for each network interface that is up and\n"
	     "has an address. The exit status is 0 if there is one, 1 if there is none, 2 if the command line is\n"
	     "wrong, and 3 if devices cannot be listed.\n");
	settings_print();
}

/* Returns -1 to continue, otherwise the exit status. */
static int parse_options(char **argument, bool *is_json)
{
	while (*argument) {
		enum settings_result result;

		if (!strcmp(*argument, "--json")) {
			*is_json = true;
			argument++;
			continue;
		}
		result = settings_take(&argument);
		if (result == SETTINGS_WRONG)
			return 2;
		if (result == SETTINGS_TAKEN)
			continue;
		if (!strcmp(*argument, "--help") || !strcmp(*argument, "-h")) {
			print_help();
			return 0;
		}
		fprintf(stderr, "verbatim devices: cannot read '%s'; try --help\n", *argument);
		return 2;
	}
	return -1;
}

int command_devices(int argc, char **argv)
{
	struct rdma_users rdma_users = { 0 };
	struct vb_device *devices;
	struct vb_config config;
	bool is_json = false;
	uint32_t count;
	int status = parse_options(argv + 1, &is_json);

	(void)argc;
	if (status >= 0)
		return status;
	vb_config_load(&config);
	if (vb_device_list(&config, &devices, &count))
		return 3;
	vb_port_holders_find(ROCE_PORT, &rdma_users.holders);
	find_kernel_devices(&rdma_users);
	if (is_json)
		print_json(devices, count, &rdma_users, &config);
	else
		print_text(devices, count, &rdma_users, &config);
	vb_device_list_free(devices);
	return count ? 0 : 1;
}
