/* SPDX-License-Identifier: BSD-2-Clause */
/* The one place that calls isa-l. */
#include "base/crc.h"

#include <isa-l/crc.h>

uint32_t vb_crc32(uint32_t crc, const void *bytes, size_t length)
{
	return crc32_gzip_refl(crc, bytes, length);
}
