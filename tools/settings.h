/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings (host/sys/config.h) as options of a command: "--mtu 1024" or "--mtu=1024", "--config
 * FILE" for the file. The chosen values go into the environment, where this process and its
 * children find them.
 */
#ifndef VB_TOOLS_SETTINGS_H
#define VB_TOOLS_SETTINGS_H

enum settings_result {
	SETTINGS_NONE, /* not a setting, but "--help", "--" or an argument */
	SETTINGS_TAKEN,
	SETTINGS_WRONG, /* reported */
};

/* Examines the option at *argument, and moves past it if it is taken. */
enum settings_result settings_take(char ***argument);

/* Prints where settings come from, and each setting with its current value. */
void settings_print(void);

#endif
