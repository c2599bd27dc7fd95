/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Refusing a call: the errno for the program and a line for the person who wonders why. The line names the verb, the
 * object, the value that was wrong and the limit. Only where the program has made a mistake: what is ordinary, such as a
 * queue that is full, is told at VB_LOG_DEBUG.
 */
#ifndef VB_ABI_REFUSE_PRIV_H
#define VB_ABI_REFUSE_PRIV_H

#include "host/log.h"

/* The value is `error`: return vb_abi_refuse(EINVAL, "ibv_create_cq: …", …); */
#define vb_abi_refuse(error, ...) (vb_log(VB_LOG_WARN, __VA_ARGS__), (error))

#endif
