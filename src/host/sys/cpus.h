/* SPDX-License-Identifier: BSD-2-Clause */
/* How many CPUs there are for us, and how many threads want them. */
#ifndef VB_HOST_SYS_CPUS_H
#define VB_HOST_SYS_CPUS_H

#include <stdint.h>

/* The CPUs on which the calling thread may run. 0: the kernel does not report them. */
uint32_t vb_cpus_count_own(void);

/* The CPUs of the machine that are in use. 0: the kernel does not report them. */
uint32_t vb_cpus_count_all(void);

/*
 * The number of threads of the whole machine that run or could run, including this one. 0: the
 * kernel does not report it.
 */
uint32_t vb_cpus_count_running_threads(void);

#endif
