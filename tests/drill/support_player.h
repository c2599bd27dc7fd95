/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays scripts against a peer; docs/TESTING.md describes how they are written. */
#ifndef VB_TESTS_DRILL_SUPPORT_PLAYER_H
#define VB_TESTS_DRILL_SUPPORT_PLAYER_H

/*
 * Makes each script a test of this executable, named after its file. The file that has a peer calls
 * this before main().
 */
void player_register_scripts(void);

#endif
