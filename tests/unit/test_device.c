/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From interfaces to devices, with interfaces that are made up here: path MTUs, GUIDs, entries of
 * the GID table, the choice and order of devices, and what a refresh reports.
 * tests/live/test_device.c asks a real kernel.
 */
#include "harness.h"

#include "host/device/device_priv.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct vb_interfaces interfaces;
	struct vb_config config;
	struct vb_device *devices;
	uint32_t count;
};

static void begin(struct fixture *f)
{
	*f = (struct fixture){ .interfaces = { .machine = "0123456789abcdef" } };
}

static struct vb_interface *add_interface(struct fixture *f, uint32_t ifindex, const char *name)
{
	struct vb_interface *interface = vb_interfaces_add(&f->interfaces);

	*interface = (struct vb_interface){
		.ifindex = ifindex,
		.mac = { 2, 0, 0, 0, 0, (uint8_t)ifindex },
		.has_mac = true,
		.mtu = 1500,
		.is_up = true,
		.has_carrier = true,
	};
	snprintf(interface->name, sizeof(interface->name), "%s", name);
	return interface;
}

static struct vb_gid gid_of(const char *text)
{
	struct vb_gid gid;

	EXPECT_EQ(inet_pton(AF_INET6, text, gid.raw), 1);
	return gid;
}

static void add_address(struct fixture *f, uint32_t ifindex, const char *text)
{
	*vb_interfaces_add_address(&f->interfaces) =
		(struct vb_interface_address){ gid_of(text), ifindex };
}

static void remove_address(struct fixture *f, const char *text)
{
	struct vb_gid gid = gid_of(text);
	uint32_t kept = 0;

	for (uint32_t i = 0; i < f->interfaces.address_count; i++)
		if (memcmp(&f->interfaces.addresses[i].gid, &gid, sizeof(gid)))
			f->interfaces.addresses[kept++] = f->interfaces.addresses[i];
	f->interfaces.address_count = kept;
}

static void make_list(struct fixture *f)
{
	vb_device_list_free(f->devices);
	EXPECT_EQ(vb_device_make_list(&f->interfaces, &f->config, &f->devices, &f->count), VB_OK);
}

static struct vb_device_changes update(struct fixture *f)
{
	struct vb_device_changes changes;

	vb_device_update(&f->devices[0], &f->interfaces, &f->config, &changes);
	return changes;
}

static void end(struct fixture *f)
{
	vb_device_list_free(f->devices);
	vb_interfaces_fini(&f->interfaces);
}

/* "" stands for an empty entry; "*" behind a GID means that it reaches this host only. */
static void expect_gid(const struct vb_device *device, uint32_t index, const char *expected)
{
	char text[INET6_ADDRSTRLEN + 1] = "";

	if (!vb_device_gid_is_empty(&device->gids[index]))
		inet_ntop(AF_INET6, device->gids[index].gid.raw, text, sizeof(text));
	if (device->gids[index].is_host_only)
		strcat(text, "*");
	EXPECT_STR(text, expected);
}

static void expect_names(const struct fixture *f, const char *expected)
{
	char text[512] = "";

	for (uint32_t i = 0; i < f->count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, f->devices[i].name);
	}
	EXPECT_STR(text, expected);
}

TEST(the_path_mtu_is_the_largest_that_fits_with_all_headers)
{
	EXPECT_EQ(vb_device_path_mtu(65536, 0), 4096);
	EXPECT_EQ(vb_device_path_mtu(9000, 0), 4096);
	EXPECT_EQ(vb_device_path_mtu(4096 + 92, 0), 4096);
	EXPECT_EQ(vb_device_path_mtu(4096 + 91, 0), 2048);
	EXPECT_EQ(vb_device_path_mtu(1500, 0), 1024);
	EXPECT_EQ(vb_device_path_mtu(1280, 0), 1024);
	EXPECT_EQ(vb_device_path_mtu(576, 0), 256);
	EXPECT_EQ(vb_device_path_mtu(256 + 92, 0), 256);
	EXPECT_EQ(vb_device_path_mtu(256 + 91, 0), 0);
	EXPECT_EQ(vb_device_path_mtu(0, 0), 0);
}

TEST(the_path_mtu_keeps_the_limit_of_the_configuration)
{
	EXPECT_EQ(vb_device_path_mtu(9000, 4096), 4096);
	EXPECT_EQ(vb_device_path_mtu(9000, 1024), 1024);
	EXPECT_EQ(vb_device_path_mtu(1500, 4096), 1024);
	EXPECT_EQ(vb_device_path_mtu(9000, 256), 256);
}

TEST(a_guid_is_the_eui_64_of_the_mac)
{
	const uint8_t mac[6] = { 0x02, 0xfc, 0, 0x12, 0x34, 0x56 };
	struct fixture f;
	struct vb_interface *interface;

	begin(&f);
	interface = add_interface(&f, 4, "eth0");
	memcpy(interface->mac, mac, sizeof(mac));
	EXPECT_EQ(vb_device_guid(&f.interfaces, interface), 0x00fc00fffe123456ull);
	end(&f);
}

TEST(a_guid_without_a_mac_comes_from_machine_and_name)
{
	struct fixture f;
	uint64_t lo, tun;

	begin(&f);
	add_interface(&f, 1, "lo")->has_mac = false;
	add_interface(&f, 2, "tun0")->has_mac = false;
	lo = vb_device_guid(&f.interfaces, &f.interfaces.list[0]);
	tun = vb_device_guid(&f.interfaces, &f.interfaces.list[1]);
	EXPECT(lo && tun && lo != tun);
	EXPECT_EQ(lo >> 56 & 2, 0);
	EXPECT_EQ(vb_device_guid(&f.interfaces, &f.interfaces.list[0]), lo);
	strcpy(f.interfaces.machine, "another");
	EXPECT(vb_device_guid(&f.interfaces, &f.interfaces.list[0]) != lo);
	end(&f);
}

TEST(interfaces_with_the_same_mac_have_different_guids)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 3, "eth0");
	add_interface(&f, 4, "eth0.100");
	add_interface(&f, 5, "br0");
	memcpy(f.interfaces.list[1].mac, f.interfaces.list[0].mac, 6);
	memcpy(f.interfaces.list[2].mac, f.interfaces.list[0].mac, 6);
	EXPECT_EQ(vb_device_guid(&f.interfaces, &f.interfaces.list[0]), 0x000000fffe000003ull);
	EXPECT(vb_device_guid(&f.interfaces, &f.interfaces.list[1]) != 0x000000fffe000003ull);
	EXPECT(vb_device_guid(&f.interfaces, &f.interfaces.list[1]) !=
	       vb_device_guid(&f.interfaces, &f.interfaces.list[2]));
	end(&f);
}

TEST(gids_are_link_local_then_ipv4_then_the_others)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "2001:db8::1");
	add_address(&f, 2, "::ffff:10.0.0.1");
	add_address(&f, 7, "::ffff:10.9.9.9");
	add_address(&f, 2, "::ffff:10.0.0.2");
	add_address(&f, 2, "fe80::1");
	add_address(&f, 2, "::ffff:10.0.0.1"); /* with another prefix length */
	make_list(&f);
	EXPECT_EQ(f.count, 1);
	expect_gid(&f.devices[0], 0, "fe80::1");
	expect_gid(&f.devices[0], 1, "::ffff:10.0.0.1");
	expect_gid(&f.devices[0], 2, "::ffff:10.0.0.2");
	expect_gid(&f.devices[0], 3, "2001:db8::1");
	expect_gid(&f.devices[0], 4, "");
	end(&f);
}

TEST(without_a_link_local_address_gid_0_is_made_from_the_guid)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "2001:db8::1");
	make_list(&f);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2*");
	expect_gid(&f.devices[0], 1, "");
	expect_gid(&f.devices[0], 2, "2001:db8::1");
	end(&f);
}

TEST(gids_keep_their_index_while_addresses_come_and_go)
{
	struct vb_device_changes changes;
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "fe80::1");
	add_address(&f, 2, "::ffff:10.0.0.1");
	add_address(&f, 2, "::ffff:10.0.0.2");
	add_address(&f, 2, "2001:db8::1");
	make_list(&f);

	remove_address(&f, "::ffff:10.0.0.1");
	changes = update(&f);
	EXPECT_EQ(changes.what, VB_DEVICE_GID_CHANGE);
	EXPECT(changes.gids[1] && !changes.gids[0] && !changes.gids[2] && !changes.gids[3]);
	expect_gid(&f.devices[0], 1, "");
	expect_gid(&f.devices[0], 2, "::ffff:10.0.0.2");
	expect_gid(&f.devices[0], 3, "2001:db8::1");

	/* Entry 1 is kept for IPv4. */
	add_address(&f, 2, "2001:db8::2");
	changes = update(&f);
	expect_gid(&f.devices[0], 1, "");
	expect_gid(&f.devices[0], 4, "2001:db8::2");
	add_address(&f, 2, "::ffff:10.0.0.3");
	changes = update(&f);
	expect_gid(&f.devices[0], 1, "::ffff:10.0.0.3");
	EXPECT_EQ(update(&f).what, 0);
	end(&f);
}

TEST(gid_0_follows_the_link_local_address)
{
	struct vb_device_changes changes;
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "::ffff:10.0.0.1");
	make_list(&f);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2*");

	/* The same GID, but now it reaches other hosts. */
	add_address(&f, 2, "fe80::ff:fe00:2");
	changes = update(&f);
	EXPECT_EQ(changes.what, VB_DEVICE_GID_CHANGE);
	EXPECT(changes.gids[0]);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2");

	add_address(&f, 2, "fe80::5");
	update(&f);
	expect_gid(&f.devices[0], 2, "fe80::5");
	remove_address(&f, "fe80::ff:fe00:2");
	update(&f);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2*");
	expect_gid(&f.devices[0], 2, "fe80::5");
	end(&f);
}

TEST(no_gid_is_there_twice)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "fe80::5");
	add_address(&f, 2, "fe80::ff:fe00:2");
	make_list(&f);
	expect_gid(&f.devices[0], 2, "fe80::ff:fe00:2");
	remove_address(&f, "fe80::5");
	update(&f);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2");
	expect_gid(&f.devices[0], 2, "");
	end(&f);
}

TEST(a_full_gid_table_still_has_an_empty_entry)
{
	struct fixture f;
	char text[64];

	begin(&f);
	add_interface(&f, 2, "eth0");
	for (uint32_t i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "::ffff:10.0.%u.%u", i / 200, i % 200 + 1);
		add_address(&f, 2, text);
	}
	make_list(&f);
	expect_gid(&f.devices[0], 0, "fe80::ff:fe00:2*");
	expect_gid(&f.devices[0], 126, "::ffff:10.0.0.126");
	expect_gid(&f.devices[0], 127, "");
	EXPECT_EQ(vb_device_place_gids(&f.devices[0], &f.interfaces), 300 - 126);
	end(&f);
}

TEST(the_default_route_comes_first_and_loopback_last)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 1, "lo")->is_loopback = true;
	add_interface(&f, 2, "eth0");
	add_interface(&f, 3, "eth1");
	add_interface(&f, 9, "wlan0");
	for (uint32_t i = 0; i < 4; i++)
		add_address(&f, f.interfaces.list[i].ifindex, "::ffff:10.0.0.1");
	make_list(&f);
	expect_names(&f, "vb_eth0 vb_eth1 vb_wlan0 vb_lo");
	f.interfaces.default_ifindex = 9;
	make_list(&f);
	expect_names(&f, "vb_wlan0 vb_eth0 vb_eth1 vb_lo");
	EXPECT(f.devices[0].is_default_route && !f.devices[1].is_default_route);
	end(&f);
}

TEST(only_interfaces_that_are_up_with_an_address_and_room_for_a_packet_are_devices)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "good");
	add_interface(&f, 3, "down")->is_up = false;
	add_interface(&f, 4, "bare");
	add_interface(&f, 5, "small")->mtu = 300;
	add_interface(&f, 6, "unplugged")->has_carrier = false;
	add_address(&f, 2, "::ffff:10.0.0.1");
	add_address(&f, 3, "::ffff:10.0.0.1");
	add_address(&f, 5, "::ffff:10.0.0.1");
	add_address(&f, 6, "::ffff:10.0.0.1");
	make_list(&f);
	expect_names(&f, "vb_good vb_unplugged");
	EXPECT(vb_device_is_active(&f.devices[0]));
	EXPECT(!vb_device_is_active(&f.devices[1]));
	end(&f);
}

TEST(odd_names_become_names_of_files_and_stay_different)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0:1");
	add_interface(&f, 3, "eth0/1");
	add_interface(&f, 4, "\xc3\xa9*");
	add_interface(&f, 5, "eth0.7@x-y");
	for (uint32_t i = 2; i <= 5; i++)
		add_address(&f, i, "::ffff:10.0.0.1");
	make_list(&f);
	expect_names(&f, "vb_eth0_1 vb_eth0_1_3 vb____ vb_eth0.7@x-y");
	end(&f);
}

TEST(unknown_speeds_are_moderate_and_loopback_is_never_the_fastest)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 1, "lo")->is_loopback = true;
	add_interface(&f, 2, "eth0")->speed_mbps = 25000;
	add_interface(&f, 3, "tun0");
	for (uint32_t i = 1; i <= 3; i++)
		add_address(&f, i, "::ffff:10.0.0.1");
	make_list(&f);
	EXPECT_EQ(f.devices[0].speed_mbps, 25000);
	EXPECT_EQ(f.devices[1].speed_mbps, 10000);
	EXPECT_EQ(f.devices[2].speed_mbps, 2500);
	end(&f);
}

TEST(a_list_of_names_chooses_devices)
{
	EXPECT(vb_device_is_chosen("", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen(" , ", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("eth0,lo", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("lo, eth0", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("vb_eth0", "eth0", "vb_eth0"));
	EXPECT(!vb_device_is_chosen("eth0,lo", "eth1", "vb_eth1"));
	EXPECT(!vb_device_is_chosen("eth", "eth0", "vb_eth0"));
	EXPECT(!vb_device_is_chosen("eth00", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("!docker0", "eth0", "vb_eth0"));
	EXPECT(!vb_device_is_chosen("!docker0", "docker0", "vb_docker0"));
	EXPECT(vb_device_is_chosen("e*", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("*0", "eth0", "vb_eth0"));
	EXPECT(vb_device_is_chosen("*t*", "eth0", "vb_eth0"));
	EXPECT(!vb_device_is_chosen("e*1", "eth0", "vb_eth0"));
	EXPECT(!vb_device_is_chosen("eth*,!eth1", "eth1", "vb_eth1"));
	EXPECT(!vb_device_is_chosen("!eth1,eth*", "eth1", "vb_eth1"));
	EXPECT(vb_device_is_chosen("!", "eth1", "vb_eth1"));
	EXPECT(!vb_device_is_chosen("!*", "eth1", "vb_eth1"));
}

TEST(the_configuration_chooses_devices_and_limits_their_mtu)
{
	struct fixture f;

	begin(&f);
	strcpy(f.config.devices, "!eth1");
	f.config.mtu = 512;
	add_interface(&f, 2, "eth0");
	add_interface(&f, 3, "eth1");
	add_address(&f, 2, "::ffff:10.0.0.1");
	add_address(&f, 3, "::ffff:10.0.1.1");
	make_list(&f);
	expect_names(&f, "vb_eth0");
	EXPECT_EQ(f.devices[0].path_mtu, 512);
	EXPECT_EQ(f.devices[0].interface_mtu, 1500);
	end(&f);
}

TEST(a_refresh_reports_port_and_mtu)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "::ffff:10.0.0.1");
	make_list(&f);
	EXPECT_EQ(update(&f).what, 0);
	f.interfaces.list[0].has_carrier = false;
	EXPECT_EQ(update(&f).what, VB_DEVICE_PORT_ERROR);
	f.interfaces.list[0].is_up = false;
	EXPECT_EQ(update(&f).what, 0);
	f.interfaces.list[0].has_carrier = f.interfaces.list[0].is_up = true;
	EXPECT_EQ(update(&f).what, VB_DEVICE_PORT_ACTIVE);
	f.interfaces.list[0].mtu = 9000;
	EXPECT_EQ(update(&f).what, VB_DEVICE_MTU_CHANGE);
	EXPECT_EQ(f.devices[0].path_mtu, 4096);
	f.interfaces.list[0].mtu = 200;
	EXPECT_EQ(update(&f).what, VB_DEVICE_MTU_CHANGE | VB_DEVICE_PORT_ERROR);
	end(&f);
}

TEST(a_device_keeps_its_name_and_guid_when_the_interface_is_renamed)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "::ffff:10.0.0.1");
	make_list(&f);
	strcpy(f.interfaces.list[0].name, "wan");
	EXPECT_EQ(update(&f).what, 0);
	EXPECT_STR(f.devices[0].name, "vb_eth0");
	EXPECT_STR(f.devices[0].ifname, "wan");
	end(&f);
}

TEST(a_device_whose_interface_is_gone_is_down_and_keeps_its_gids)
{
	struct fixture f;

	begin(&f);
	add_interface(&f, 2, "eth0");
	add_address(&f, 2, "::ffff:10.0.0.1");
	make_list(&f);
	f.interfaces.count = 0;
	EXPECT_EQ(update(&f).what, VB_DEVICE_GONE | VB_DEVICE_PORT_ERROR);
	expect_gid(&f.devices[0], 1, "::ffff:10.0.0.1");
	EXPECT_EQ(update(&f).what, VB_DEVICE_GONE);
	end(&f);
}
