/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target with a planted fault: it trusts the length that its input claims, as a careless
 * parser would. It must crash on corpus/canary/lies and survive corpus/canary/honest; if it does
 * not, the sanitizers are not active and no other target proves anything.
 */
#include "fuzz.h"

static volatile unsigned sink;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	for (size_t i = 0; i < data[0]; i++)
		sink = data[1 + i]; /* the fault: data[0] was never compared with size */
	return 0;
}
