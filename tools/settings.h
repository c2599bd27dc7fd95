/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The settings (host/config.h) as options of a command: "--mtu 1024" or "--mtu=1024", "--config FILE" for the file. What is
 * chosen so goes into the environment, where this process and its children find it.
 */
#ifndef VB_TOOLS_SETTINGS_H
#define VB_TOOLS_SETTINGS_H

enum settings_result {
	SETTINGS_NONE, /* it is no option at all, but "--help", "--" or an argument */
	SETTINGS_TAKEN,
	SETTINGS_WRONG, /* reported */
};

/* Looks at the option at *argument, and moves behind it if it is taken. */
enum settings_result settings_take(char ***argument);

/* Where settings come from, and each with its value now. */
void settings_print(void);

#endif
