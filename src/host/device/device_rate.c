/* SPDX-License-Identifier: BSD-2-Clause */
/* The rates that an InfiniBand port can have, for interfaces of any speed. */
#include "host/device/device.h"

#define ONE_LANE 1
#define FOUR_LANES 2

/* clang-format off */
static const struct vb_device_rate rates[] = {
	{ 2500,   ONE_LANE,   1,   "2.5 Gb/sec (1X SDR)" },
	{ 5000,   ONE_LANE,   2,   "5 Gb/sec (1X DDR)" },
	{ 10000,  ONE_LANE,   4,   "10 Gb/sec (1X QDR)" },
	{ 20000,  FOUR_LANES, 2,   "20 Gb/sec (4X DDR)" },
	{ 25000,  ONE_LANE,   32,  "25 Gb/sec (1X EDR)" },
	{ 40000,  FOUR_LANES, 8,   "40 Gb/sec (4X FDR10)" },
	{ 56000,  FOUR_LANES, 16,  "56 Gb/sec (4X FDR)" },
	{ 100000, FOUR_LANES, 32,  "100 Gb/sec (4X EDR)" },
	{ 200000, FOUR_LANES, 64,  "200 Gb/sec (4X HDR)" },
	{ 400000, FOUR_LANES, 128, "400 Gb/sec (4X NDR)" },
};
/* clang-format on */

const struct vb_device_rate *vb_device_rate(const struct vb_device *device)
{
	size_t i = 0;

	while (i < sizeof(rates) / sizeof(rates[0]) - 1 && rates[i].mbps < device->speed_mbps)
		i++;
	return &rates[i];
}
