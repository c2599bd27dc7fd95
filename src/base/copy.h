/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Placing a message in memory that another thread watches. memcpy does not promise which byte
 * becomes visible first, but programs spin on the last byte of a message and then read the rest.
 */
#ifndef VB_BASE_COPY_H
#define VB_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>

/* Copies so that the last byte is visible only after all the others. The areas must not overlap. */
void vb_copy_last_byte_last(void *to, const void *from, size_t length);

#endif
