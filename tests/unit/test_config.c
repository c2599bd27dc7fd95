/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Settings: defaults, file, environment, command line, in order of precedence; and the one line
 * that each wrong value gets. Complaints go to a log file here, which is read back.
 */
#include "harness.h"

#include "host/sys/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/vb_test_config.XXXXXX";
static char config_path[64], log_path[64], log_text[4096];

static void clean_up(void)
{
	unlink(config_path);
	unlink(log_path);
	rmdir(directory);
}

/* A clean environment: no variables, no home; reports go to a file. */
static void begin(const char *file_text)
{
	FILE *file;

	clearenv();
	EXPECT(mkdtemp(directory));
	atexit(clean_up);
	snprintf(config_path, sizeof(config_path), "%s/c", directory);
	snprintf(log_path, sizeof(log_path), "%s/l", directory);
	file = fopen(config_path, "w");
	EXPECT(file);
	fputs(file_text, file);
	fclose(file);
	setenv("VERBATIM_CONFIG", config_path, 1);
	setenv("VERBATIM_LOG_FILE", log_path, 1);
}

/* Removes what follows the messages: the process, the phase, the error. */
static void cut_tails(void)
{
	char *at, *end;

	while ((at = strstr(log_text, " pid="))) {
		end = strchr(at, '\n');
		EXPECT(end && strstr(at, " phase=settings error=") < end);
		memmove(at, end, strlen(end) + 1);
	}
}

/* Everything reported, with the directory's name replaced by D. */
static const char *read_log(void)
{
	FILE *file = fopen(log_path, "r");
	size_t length = file ? fread(log_text, 1, sizeof(log_text) - 1, file) : 0;
	char *at;

	log_text[length] = 0;
	while ((at = strstr(log_text, directory))) {
		*at = 'D';
		memmove(at + 1, at + strlen(directory), strlen(at + strlen(directory)) + 1);
	}
	cut_tails();
	if (file)
		fclose(file);
	return log_text;
}

TEST(without_settings_everything_is_default)
{
	struct vb_config config;

	begin("");
	vb_config_load(&config);
	EXPECT_STR(config.devices, "");
	EXPECT_EQ(config.mtu, 0);
	EXPECT_EQ(config.log, VB_LOG_ERROR);
	EXPECT_EQ(config.icrc, VB_ICRC_SOLVED);
	EXPECT_EQ(config.receive_buffer, 0);
	EXPECT_EQ(config.qp_depth, 0);
	EXPECT_STR(read_log(), "");
}

TEST(a_file_sets_values)
{
	struct vb_config config;

	begin("# a comment\n\n  devices = eth0, lo  # two\nmtu=1024\nicrc =off\nreceive_buffer = 4M\n"
	      "qp_depth= 100\nreads = 16\nlog = debug");
	vb_config_load(&config);
	EXPECT_STR(config.devices, "eth0, lo");
	EXPECT_EQ(config.mtu, 1024);
	EXPECT_EQ(config.icrc, VB_ICRC_OFF);
	EXPECT_EQ(config.receive_buffer, 4u << 20);
	EXPECT_EQ(config.qp_depth, 100);
	EXPECT_EQ(config.reads, 16);
	EXPECT_EQ(config.log, VB_LOG_DEBUG);
	EXPECT(vb_log_is_on(VB_LOG_DEBUG));
	EXPECT_STR(read_log(), "");
}

TEST(the_environment_is_stronger_than_the_file_and_the_command_line_than_both)
{
	struct vb_config config;

	begin("mtu = 1024\nicrc = off\nreads = 3\n");
	setenv("VERBATIM_MTU", "2048", 1);
	setenv("VERBATIM_READS", "", 1);
	vb_config_load(&config);
	EXPECT_EQ(config.mtu, 2048);
	EXPECT_EQ(config.icrc, VB_ICRC_OFF);
	EXPECT_EQ(config.reads, 3);
	EXPECT_EQ(vb_config_set(&config, "mtu", "auto", "--mtu"), VB_OK);
	EXPECT_EQ(config.mtu, 0);
}

TEST(a_wrong_value_is_reported_once_and_the_default_taken)
{
	struct vb_config config;

	begin("mtu = 1024\nreads = 256\nnonsense\ncolour = red\nreceive_buffer = 4X\nqp_depth=-1\n");
	setenv("VERBATIM_MTU", "1500", 1);
	vb_config_load(&config);
	EXPECT_EQ(config.mtu, 0);
	EXPECT_EQ(config.reads, 0);
	EXPECT_STR(
		read_log(),
		"verbatim: error: D/c:2: reads cannot be '256'; it may be 0 to 255; taking '0'\n"
		"verbatim: error: D/c:3: 'nonsense' is not of the form key = value\n"
		"verbatim: error: D/c:4: there is no setting 'colour'\n"
		"verbatim: error: D/c:5: receive_buffer cannot be '4X'; it may be 0 to 1073741824, "
		"or a number with K, M or G; taking '0'\n"
		"verbatim: error: D/c:6: qp_depth cannot be '-1'; it may be 0 to 16777216; taking '0'\n"
		"verbatim: error: VERBATIM_MTU: mtu cannot be '1500'; it may be auto, 256, 512, 1024, "
		"2048 or 4096; taking 'auto'\n");
}

TEST(sizes_have_units_and_bounds)
{
	struct vb_config config;

	begin("");
	vb_config_load(&config);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "212992", "x"), VB_OK);
	EXPECT_EQ(config.receive_buffer, 212992);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "8k", "x"), VB_OK);
	EXPECT_EQ(config.receive_buffer, 8192);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "1G", "x"), VB_OK);
	EXPECT_EQ(config.receive_buffer, 1u << 30);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "2G", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "4294967295G", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "99999999999999999999", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "4KK", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", "", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "receive_buffer", " 4", "x"), VB_EINVAL);
	EXPECT_EQ(vb_config_set(&config, "qp_depth", "4K", "x"), VB_EINVAL);
}

TEST(a_value_that_is_too_long_is_refused)
{
	static char text[VB_CONFIG_TEXT_MAX + 1];
	struct vb_config config;

	begin("");
	vb_config_load(&config);
	memset(text, 'x', VB_CONFIG_TEXT_MAX - 1);
	EXPECT_EQ(vb_config_set(&config, "devices", text, "x"), VB_OK);
	EXPECT_STR(config.devices, text);
	text[VB_CONFIG_TEXT_MAX - 1] = 'x';
	EXPECT_EQ(vb_config_set(&config, "devices", text, "x"), VB_EINVAL);
	EXPECT_STR(config.devices, "");
}

TEST(a_file_that_the_user_named_must_be_readable)
{
	struct vb_config config;

	begin("");
	unlink(config_path);
	vb_config_load(&config);
	EXPECT_STR(
		read_log(),
		"verbatim: error: VERBATIM_CONFIG: cannot read 'D/c': No such file or directory\n");
}

TEST(the_file_of_the_home_directory_is_read)
{
	char command[256], path[128];
	struct vb_config config;

	begin("mtu = 512\n");
	unsetenv("VERBATIM_CONFIG");
	setenv("HOME", directory, 1);
	snprintf(path, sizeof(path), "%s/.config/verbatim.conf", directory);
	snprintf(command, sizeof(command), "/bin/mkdir %s/.config && /bin/cp %s %s", directory,
		 config_path, path);
	EXPECT_EQ(system(command), 0);
	vb_config_load(&config);
	unlink(path);
	snprintf(path, sizeof(path), "%s/.config", directory);
	rmdir(path);
	EXPECT_EQ(config.mtu, 512);
}

TEST(every_setting_describes_itself)
{
	struct vb_config config;
	char text[2 * VB_CONFIG_TEXT_MAX];
	uint32_t count = 0;

	begin("mtu = 512\n");
	vb_config_load(&config);
	for (; vb_config_describe(&config, count, text, sizeof(text)); count++)
		EXPECT(strstr(text, "VERBATIM_"));
	EXPECT_EQ(count, 14);
	EXPECT(vb_config_describe(&config, 1, text, sizeof(text)));
	EXPECT_STR(text, "mtu = 512\n    largest path MTU; auto is what fits the interface "
			 "(auto, 256, 512, 1024, 2048 or 4096) [VERBATIM_MTU]");
}
