/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function that every fuzz target defines. libFuzzer calls it in a fuzz build, replay_main.c in
 * the others. Return 0; end a run that found something with abort() or a sanitizer report.
 */
#ifndef VB_TESTS_FUZZ_H
#define VB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
