/* SPDX-License-Identifier: BSD-2-Clause */
/* The CA GUID as this process knows it. */
#include "host/registry/guid.h"

#include <stdatomic.h>
#include <sys/random.h>

#define BY_A_MANUFACTURER (2ull << 56) /* a GUID with this bit was assigned by one; ours is not */

static _Atomic uint64_t ca_guid;
static _Atomic uint64_t former; /* the GUID that the process had before */

uint64_t vb_guid(void)
{
	return atomic_load(&ca_guid);
}

void vb_guid_learn(uint64_t guid)
{
	uint64_t none = 0;

	(void)atomic_compare_exchange_strong(&ca_guid, &none, guid);
}

vb_err vb_guid_make(void)
{
	uint64_t guid = atomic_load(&former);

	while (!guid) {
		if (getrandom(&guid, sizeof(guid), 0) != sizeof(guid))
			return VB_EFAULT;
		guid &= ~BY_A_MANUFACTURER;
	}
	vb_guid_learn(guid);
	return VB_OK;
}

void vb_guid_forget(void)
{
	uint64_t guid = atomic_exchange(&ca_guid, 0);

	if (guid)
		atomic_store(&former, guid);
}
