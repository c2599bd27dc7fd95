/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The choice of the CRC implementation. Polynomial multiplication instructions are many times
 * faster than tables on most CPUs, and slower where they are emulated or missing. The shortest of a
 * few tries counts, because any disturbance only makes a try longer.
 */
#include "host/sys/measure.h"

#include "base/crc.h"
#include "host/sys/clock.h"
#include "host/sys/log.h"

#include <inttypes.h>
#include <pthread.h>

#define LENGTH 2048
#define TRIES 5

static uint64_t time_of(enum vb_crc_method method)
{
	static const uint8_t bytes[LENGTH];
	uint64_t best_ns = UINT64_MAX;
	volatile uint32_t crc = 0;

	vb_crc_choose(method);
	for (int i = 0; i < TRIES; i++) {
		uint64_t begin_ns = vb_clock_now(), spent_ns;

		crc = vb_crc32(crc, bytes, LENGTH);
		spent_ns = vb_clock_now() - begin_ns;
		if (spent_ns < best_ns)
			best_ns = spent_ns;
	}
	return best_ns;
}

static void measure(void)
{
	uint64_t instructions_ns = time_of(VB_CRC_INSTRUCTIONS);
	uint64_t tables_ns = time_of(VB_CRC_TABLES);
	enum vb_crc_method method = tables_ns < instructions_ns ? VB_CRC_TABLES
								: VB_CRC_INSTRUCTIONS;

	vb_crc_choose(method);
	vb_log_about(VB_LOG_DEBUG, VB_LOG_ABOUT(.phase = "open"),
		     "the CRC of %d bytes takes %" PRIu64 " ns by instructions, %" PRIu64
		     " ns by tables: %s are used",
		     LENGTH, instructions_ns, tables_ns,
		     method == VB_CRC_TABLES ? "tables" : "instructions");
}

void vb_measure_crc(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure);
}
