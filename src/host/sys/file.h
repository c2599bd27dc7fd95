/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small text files, read with bare system calls: functions that programs interpose (rsockets, our
 * own preload) are not called.
 */
#ifndef VB_HOST_SYS_FILE_H
#define VB_HOST_SYS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Reads a file as a string; what does not fit is cut off. False, with errno, if it cannot be read.
 * `is_cut_out` may be NULL.
 */
bool vb_file_read(const char *path, char *text, size_t size, bool *is_cut_out);

#endif
