/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings from options: they are checked against the table of settings before they go into the
 * environment.
 */
#include "settings.h"

#include "host/sys/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 64

/* "--log-file=x" is the key "log_file". */
static void copy_key(const char *option, char key[KEY_MAX])
{
	snprintf(key, KEY_MAX, "%.*s", (int)strcspn(option + 2, "="), option + 2);
	for (char *at = key; *at; at++)
		if (*at == '-')
			*at = '_';
}

/*
 * Checks the setting alone, so that a mistake elsewhere, which the program will report, is not
 * reported twice.
 */
static bool is_allowed(const char *key, const char *value, const char *option)
{
	struct vb_config scratch = { 0 };

	return !strcmp(key, "config") || !vb_config_set(&scratch, key, value, option);
}

enum settings_result settings_take(char ***argument)
{
	char *option = **argument;
	char key[KEY_MAX], variable[2 * KEY_MAX];
	char *value;

	if (strncmp(option, "--", 2) || !option[2] || !strcmp(option, "--help"))
		return SETTINGS_NONE;
	copy_key(option, key);
	value = strchr(option, '=');
	value = value ? value + 1 : *++*argument;
	if (!value) {
		fprintf(stderr, "verbatim: %s: there is no such option, or it needs a value\n",
			option);
		return SETTINGS_WRONG;
	}
	if (!is_allowed(key, value, option))
		return SETTINGS_WRONG;
	vb_config_name_variable(key, variable, sizeof(variable));
	if (setenv(variable, value, 1)) {
		perror("verbatim");
		return SETTINGS_WRONG;
	}
	++*argument;
	return SETTINGS_TAKEN;
}

void settings_print(void)
{
	char text[2 * VB_CONFIG_TEXT_MAX];
	struct vb_config config;

	vb_config_load(&config);
	puts("Settings come from the command line (--<setting> <value>), from the environment\n"
	     "(VERBATIM_<SETTING>), and from one file of `setting = value` lines: the one that --config or\n"
	     "VERBATIM_CONFIG names, or ~/.config/verbatim.conf, or /etc/verbatim.conf. They are now:\n");
	for (uint32_t row = 0; vb_config_describe(&config, row, text, sizeof(text)); row++)
		puts(text);
}
