/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subcommands. Each takes its own arguments (argv[0] is its name) and returns the exit status.
 */
#ifndef VB_TOOLS_VERBATIM_H
#define VB_TOOLS_VERBATIM_H

#include <stdbool.h>

int command_sim(int argc, char **argv);
int command_demo(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_run(int argc, char **argv);
int command_stat(int argc, char **argv);
int command_top(int argc, char **argv);
int command_trace(int argc, char **argv);

/* As an extcap of Wireshark, which names no subcommand. */
bool is_extcap(const char *argument);
int command_extcap(int argc, char **argv);

#endif
