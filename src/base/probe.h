/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static probes (USDT) for perf, bpftrace and SystemTap: docs/OBSERVING.md lists them. A probe that
 * nothing is attached to is one instruction that does nothing, and a note in the executable that
 * says where its arguments are. So arguments must be what the code has at hand: registers, or
 * fields of objects that it works on. Nothing is to be computed for a probe. Without <sys/sdt.h>
 * there are no probes.
 */
#ifndef VB_BASE_PROBE_H
#define VB_BASE_PROBE_H

#ifdef VB_HAS_SDT

#include <sys/sdt.h>

#define VB_PROBE1(name, a) DTRACE_PROBE1(verbatim, name, a)
#define VB_PROBE3(name, a, b, c) DTRACE_PROBE3(verbatim, name, a, b, c)
#define VB_PROBE4(name, a, b, c, d) DTRACE_PROBE4(verbatim, name, a, b, c, d)

#else

#define VB_PROBE1(name, a) ((void)(a))
#define VB_PROBE3(name, a, b, c) ((void)(a), (void)(b), (void)(c))
#define VB_PROBE4(name, a, b, c, d) ((void)(a), (void)(b), (void)(c), (void)(d))

#endif

#endif
