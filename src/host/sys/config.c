/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of settings, and the reading of their values from file and environment. */
#include "host/sys/config.h"

#include "base/heap.h"
#include "host/sys/file.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (64 * 1024)
#define VARIABLE_PREFIX "VERBATIM_"
#define CHOICES_MAX 7

struct choice {
	const char *name;
	uint32_t value;
};

enum kind {
	TEXT, /* a char[VB_CONFIG_TEXT_MAX] */
	NUMBER, /* a uint32_t from min to max */
	SIZE, /* the same, with an optional K, M or G */
	CHOICE, /* a uint32_t or an enum */
};

#define SETTINGS VB_LOG_ABOUT(.phase = "settings", .error = EINVAL)
#define AT(field) offsetof(struct vb_config, field)

/* clang-format off */
static const struct setting {
	const char *key;
	enum kind kind;
	size_t offset;
	uint32_t min, max;
	const char *default_text; /* the default, as a user would write it */
	const char *help;
	struct choice choices[CHOICES_MAX];
} settings[] = {
	{ "devices", TEXT, AT(devices), 0, 0, "",
	  "interfaces that become devices, such as eth0,lo or !docker*; all if empty", { { 0 } } },
	{ "mtu", CHOICE, AT(mtu), 0, 0, "auto",
	  "largest path MTU; auto is what fits the interface",
	  { { "auto", 0 }, { "256", 256 }, { "512", 512 }, { "1024", 1024 }, { "2048", 2048 },
	    { "4096", 4096 } } },
	{ "log", CHOICE, AT(log), 0, 0, "error",
	  "what is reported",
	  { { "error", VB_LOG_ERROR }, { "warn", VB_LOG_WARN }, { "info", VB_LOG_INFO },
	    { "debug", VB_LOG_DEBUG } } },
	{ "log_file", TEXT, AT(log_file), 0, 0, "",
	  "file to which reports are added; stderr if empty", { { 0 } } },
	{ "log_format", CHOICE, AT(log_format), 0, 0, "text",
	  "how reports are written: lines that end in key=value, or objects of JSON",
	  { { "text", VB_LOG_TEXT }, { "json", VB_LOG_JSON } } },
	{ "icrc", CHOICE, AT(icrc), 0, 0, "solved",
	  "check of received packets: for the IP ID they should have, for any IP ID, or none",
	  { { "strict", VB_ICRC_STRICT }, { "solved", VB_ICRC_SOLVED }, { "off", VB_ICRC_OFF } } },
	{ "path", CHOICE, AT(path), 0, 0, "auto",
	  "way to peers on this host: shared memory if possible, or packets as to any other",
	  { { "auto", VB_PATH_AUTO }, { "wire", VB_PATH_WIRE } } },
	{ "share", CHOICE, AT(share), 0, 0, "on",
	  "whether private memory becomes shared when it is registered, where nobody can tell",
	  { { "on", VB_SHARE_ON }, { "off", VB_SHARE_OFF } } },
	{ "self_check", CHOICE, AT(self_check), 0, 0, "off",
	  "whether the adapter compares what passes its port with its counters, and reports it",
	  { { "off", 0 }, { "on", 1 } } },
	{ "receive_buffer", SIZE, AT(receive_buffer), 0, 1u << 30, "0",
	  "bytes that a socket may hold; 0 is 4M, or less if the kernel permits less", { { 0 } } },
	{ "qp_depth", NUMBER, AT(qp_depth), 0, 1u << 24, "0",
	  "work requests in a queue of a QP at most; 0 is the adapter's own limit", { { 0 } } },
	{ "cq_depth", NUMBER, AT(cq_depth), 0, 1u << 24, "0",
	  "entries of a CQ at most; 0 is the adapter's own limit", { { 0 } } },
	{ "srq_depth", NUMBER, AT(srq_depth), 0, 1u << 24, "0",
	  "receives in an SRQ at most; 0 is the adapter's own limit", { { 0 } } },
	{ "reads", NUMBER, AT(reads), 0, 255, "0",
	  "READs and atomics under way on a QP at most; 0 is the adapter's own limit", { { 0 } } },
};
/* clang-format on */

#define SETTING_COUNT (sizeof(settings) / sizeof(settings[0]))

/* Every kind of value other than TEXT is 32 bits wide, also the enums. */
_Static_assert(sizeof(enum vb_log_level) == 4 && sizeof(enum vb_log_format) == 4 &&
		       sizeof(enum vb_icrc_mode) == 4 && sizeof(enum vb_path_choice) == 4 &&
		       sizeof(enum vb_share) == 4,
	       "choices are stored as uint32_t");

static void store_number(struct vb_config *config, const struct setting *setting, uint32_t value)
{
	memcpy((char *)config + setting->offset, &value, sizeof(value));
}

static uint32_t load_number(const struct vb_config *config, const struct setting *setting)
{
	uint32_t value;

	memcpy(&value, (const char *)config + setting->offset, sizeof(value));
	return value;
}

static bool parse_number(const struct setting *setting, const char *text, uint32_t *value_out)
{
	static const char units[] = "KMG";
	unsigned long long value;
	const char *unit;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno)
		return false;
	if (setting->kind == SIZE && *end) {
		unit = strchr(units, toupper((unsigned char)*end));
		if (!unit || value > UINT32_MAX)
			return false;
		value <<= 10 * (unit - units + 1);
		end++;
	}
	if (*end || value < setting->min || value > setting->max)
		return false;
	*value_out = (uint32_t)value;
	return true;
}

static bool parse_choice(const struct setting *setting, const char *text, uint32_t *value_out)
{
	for (const struct choice *choice = setting->choices; choice->name; choice++) {
		if (!strcmp(choice->name, text)) {
			*value_out = choice->value;
			return true;
		}
	}
	return false;
}

/* Stores the value and returns true if it is allowed. */
static bool parse_value(struct vb_config *config, const struct setting *setting, const char *text)
{
	uint32_t value = 0;

	switch (setting->kind) {
	case TEXT:
		if (strlen(text) >= VB_CONFIG_TEXT_MAX)
			return false;
		strcpy((char *)config + setting->offset, text);
		return true;
	case NUMBER:
	case SIZE:
		if (!parse_number(setting, text, &value))
			return false;
		break;
	case CHOICE:
		if (!parse_choice(setting, text, &value))
			return false;
		break;
	}
	store_number(config, setting, value);
	return true;
}

static void describe_allowed(const struct setting *setting, char *text, size_t size)
{
	size_t length = 0;

	switch (setting->kind) {
	case TEXT:
		snprintf(text, size, "shorter than %d characters", VB_CONFIG_TEXT_MAX);
		return;
	case NUMBER:
		snprintf(text, size, "%u to %u", setting->min, setting->max);
		return;
	case SIZE:
		snprintf(text, size, "%u to %u, or a number with K, M or G", setting->min,
			 setting->max);
		return;
	case CHOICE:
		for (const struct choice *choice = setting->choices; choice->name; choice++) {
			const char *between = choice == setting->choices ? ""
					      : choice[1].name		 ? ", "
									 : " or ";

			length += (size_t)snprintf(text + length, size - length, "%s%s", between,
						   choice->name);
			VB_CHECK(length < size);
		}
		return;
	}
}

static const struct setting *find_setting(const char *key)
{
	for (size_t i = 0; i < SETTING_COUNT; i++)
		if (!strcmp(settings[i].key, key))
			return &settings[i];
	return NULL;
}

static void set_default(struct vb_config *config, const struct setting *setting)
{
	VB_CHECK(parse_value(config, setting, setting->default_text));
}

static vb_err set_value(struct vb_config *config, const struct setting *setting, const char *value,
			const char *where, bool logs_nothing)
{
	char allowed[128];

	if (parse_value(config, setting, value))
		return VB_OK;
	set_default(config, setting);
	if (!logs_nothing) {
		describe_allowed(setting, allowed, sizeof(allowed));
		vb_log_about(VB_LOG_ERROR, SETTINGS,
			     "%s: %s cannot be '%.100s'; it may be %s; taking '%s'", where,
			     setting->key, value, allowed, setting->default_text);
	}
	return VB_EINVAL;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = 0;
	return text;
}

/* A comment begins a line or follows a space, because names of files may contain a #. */
static void cut_comment(char *line)
{
	for (char *at = line; *at; at++) {
		if (*at == '#' && (at == line || isspace((unsigned char)at[-1]))) {
			*at = 0;
			return;
		}
	}
}

static void read_line(struct vb_config *config, char *line, const char *where, bool logs_nothing)
{
	const struct setting *setting;
	char *key, *equals;

	cut_comment(line);
	key = trim(line);
	if (!*key)
		return;
	equals = strchr(key, '=');
	if (!equals) {
		if (!logs_nothing)
			vb_log_about(VB_LOG_ERROR, SETTINGS,
				     "%s: '%.100s' is not of the form key = value", where, key);
		return;
	}
	*equals = 0;
	key = trim(key);
	setting = find_setting(key);
	if (setting)
		(void)!set_value(config, setting, trim(equals + 1), where, logs_nothing);
	else if (!logs_nothing)
		vb_log_about(VB_LOG_ERROR, SETTINGS, "%s: there is no setting '%.100s'", where,
			     key);
}

static void read_lines(struct vb_config *config, const char *path, char *text, bool logs_nothing)
{
	char where[PATH_MAX + 16];
	char *rest = text, *line;

	for (unsigned number = 1; (line = strsep(&rest, "\n")); number++) {
		snprintf(where, sizeof(where), "%s:%u", path, number);
		read_line(config, line, where, logs_nothing);
	}
}

/*
 * False if there is no such file. A file that cannot be read is reported only if the user named it.
 */
static bool read_file(struct vb_config *config, const char *path, bool is_named, bool logs_nothing)
{
	char *text = vb_heap_alloc(1, FILE_MAX);
	bool is_read, is_cut;

	if (!text)
		return false;
	is_read = vb_file_read(path, text, FILE_MAX, &is_cut);
	if (is_read)
		read_lines(config, path, text, logs_nothing);
	if (!logs_nothing && is_read && is_cut)
		vb_log_about(VB_LOG_ERROR, SETTINGS, "%s: only the first %d bytes are read", path,
			     FILE_MAX - 1);
	if (!logs_nothing && !is_read && is_named)
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "settings", .error = errno),
			     "VERBATIM_CONFIG: cannot read '%s': %s", path, strerrordesc_np(errno));
	vb_heap_free(text);
	return is_read;
}

/*
 * Reads the first file that exists. Programs with more rights than their user ignore the
 * environment.
 */
static void read_files(struct vb_config *config, bool logs_nothing)
{
	const char *named = secure_getenv("VERBATIM_CONFIG");
	const char *home = secure_getenv("HOME");
	char path[PATH_MAX];

	if (named && *named) {
		read_file(config, named, true, logs_nothing);
		return;
	}
	if (home && *home &&
	    snprintf(path, sizeof(path), "%s/.config/verbatim.conf", home) < PATH_MAX &&
	    read_file(config, path, false, logs_nothing))
		return;
	read_file(config, "/etc/verbatim.conf", false, logs_nothing);
}

void vb_config_name_variable(const char *key, char *name, size_t size)
{
	snprintf(name, size, VARIABLE_PREFIX "%s", key);
	for (char *at = name; *at; at++)
		*at = (char)toupper((unsigned char)*at);
}

/* An empty variable counts as unset. */
static void read_environment(struct vb_config *config, bool logs_nothing)
{
	char name[64];

	for (size_t i = 0; i < SETTING_COUNT; i++) {
		const char *value;

		vb_config_name_variable(settings[i].key, name, sizeof(name));
		value = secure_getenv(name);
		if (value && *value)
			(void)!set_value(config, &settings[i], value, name, logs_nothing);
	}
}

static void read_all(struct vb_config *config, bool logs_nothing)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SETTING_COUNT; i++)
		set_default(config, &settings[i]);
	read_files(config, logs_nothing);
	read_environment(config, logs_nothing);
}

static void direct_log(const struct vb_config *config)
{
	vb_log_set_level(config->log);
	vb_log_set_format(config->log_format);
	vb_log_set_file(config->log_file);
}

/* Reads the settings twice: complaints must go where the final settings direct them. */
void vb_config_load(struct vb_config *config)
{
	int errno_before = errno;

	read_all(config, true);
	direct_log(config);
	read_all(config, false);
	errno = errno_before;
}

vb_err vb_config_set(struct vb_config *config, const char *key, const char *value,
		     const char *where)
{
	const struct setting *setting = find_setting(key);
	vb_err err;

	if (!setting) {
		vb_log_about(VB_LOG_ERROR, SETTINGS, "%s: there is no setting '%.100s'", where,
			     key);
		return VB_EINVAL;
	}
	err = set_value(config, setting, value, where, false);
	direct_log(config);
	return err;
}

static void describe_value(const struct vb_config *config, const struct setting *setting,
			   char *text, size_t size)
{
	uint32_t value;

	if (setting->kind == TEXT) {
		snprintf(text, size, "%s", (const char *)config + setting->offset);
		return;
	}
	value = load_number(config, setting);
	for (const struct choice *choice = setting->choices; choice->name; choice++) {
		if (choice->value == value) {
			snprintf(text, size, "%s", choice->name);
			return;
		}
	}
	snprintf(text, size, "%u", value);
}

bool vb_config_describe(const struct vb_config *config, uint32_t row, char *text, size_t size)
{
	char value[VB_CONFIG_TEXT_MAX], allowed[128] = "", name[64];
	const struct setting *setting;

	if (row >= SETTING_COUNT)
		return false;
	setting = &settings[row];
	vb_config_name_variable(setting->key, name, sizeof(name));
	describe_value(config, setting, value, sizeof(value));
	if (setting->kind != TEXT)
		describe_allowed(setting, allowed, sizeof(allowed));
	snprintf(text, size, "%s = %s\n    %s%s%s%s [%s]", setting->key, value, setting->help,
		 *allowed ? " (" : "", allowed, *allowed ? ")" : "", name);
	return true;
}
