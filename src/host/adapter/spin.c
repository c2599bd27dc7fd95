/* SPDX-License-Identifier: BSD-2-Clause */
#include "host/adapter/spin.h"

#include "host/sys/file.h"

#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CPUS_MAX 8192
#define TIMEOUTS_MAX 8u

void vb_spin_on_sleep(struct vb_spin *spin, uint64_t slept_ns, bool is_woken)
{
	if (!is_woken || slept_ns > VB_SPIN_SOON_NS)
		spin->soon_count = 0;
	else if (spin->soon_count < VB_SPIN_EARNED_MAX)
		spin->soon_count++;
}

bool vb_spin_is_earned(const struct vb_spin *spin, uint64_t now_ns)
{
	return spin->soon_count >= VB_SPIN_EARNED << spin->timeout_count &&
	       now_ns >= spin->rests_until_ns;
}

static uint32_t count_own_cpus(void)
{
	unsigned long sets[CPUS_MAX / (8 * sizeof(unsigned long))] = { 0 };
	uint32_t count = 0;

	if (syscall(SYS_sched_getaffinity, 0, sizeof(sets), sets) < 0)
		return 0;
	for (uint32_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
		count += (uint32_t)__builtin_popcountl(sets[i]);
	return count;
}

/*
 * The number of threads of the whole machine that run or could run, including this one. 0: the
 * kernel does not report it.
 */
static uint32_t count_running(void)
{
	char text[128];
	uint32_t count;

	if (!vb_file_read("/proc/loadavg", text, sizeof(text), NULL) ||
	    sscanf(text, "%*s %*s %*s %u/", &count) != 1)
		return 0;
	return count;
}

bool vb_spin_look_for_cpu(struct vb_spin *spin, uint64_t now_ns)
{
	uint32_t running;

	if (now_ns - spin->counted_ns < VB_SPIN_COUNTED_NS)
		return true;
	running = count_running();
	if (!running || running > count_own_cpus()) {
		spin->rests_until_ns = now_ns + VB_SPIN_RESTS_NS;
		return false;
	}
	spin->counted_ns = now_ns;
	return true;
}

void vb_spin_on_packet(struct vb_spin *spin)
{
	spin->timeout_count = 0;
}

void vb_spin_on_timeout(struct vb_spin *spin)
{
	spin->soon_count = 0;
	if (spin->timeout_count < TIMEOUTS_MAX)
		spin->timeout_count++;
}

void vb_spin_on_loss(struct vb_spin *spin, uint64_t now_ns)
{
	spin->counted_ns = 0;
	spin->rests_until_ns = now_ns + VB_SPIN_LOSES_NS;
}
