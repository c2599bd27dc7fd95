/* SPDX-License-Identifier: BSD-2-Clause */
/* Plays scripts against a peer; docs/TESTING.md says how they are written. */
#ifndef VB_TESTS_DRILL_SUPPORT_PLAYER_H
#define VB_TESTS_DRILL_SUPPORT_PLAYER_H

/* Makes each script a test of this executable, by its file's name. Called before main() by whoever has a peer. */
void player_register_scripts(void);

#endif
