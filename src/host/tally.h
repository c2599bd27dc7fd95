/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that programs poll for events: readable while they count more than 0. A program owns them in every way but
 * this: if it closes one, its number may come back as a file of the program, which then is left alone.
 */
#ifndef VB_HOST_TALLY_H
#define VB_HOST_TALLY_H

/* A new one, or a negative errno. It is closed on exec. */
int vb_tally_open(void);
void vb_tally_close(int fd);

void vb_tally_up(int fd);
void vb_tally_down(int fd); /* it counts more than 0 */

#endif
