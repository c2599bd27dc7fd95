/* SPDX-License-Identifier: BSD-2-Clause */
/* The log: levels, one line per message, files, repetition, and what logging must not disturb. */
#include "harness.h"

#include "host/sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char text[64 * 1024];

/* Redirects stderr into a pipe, which is read after the messages. */
static int catch_stderr(void)
{
	int fds[2];

	EXPECT_EQ(pipe(fds), 0);
	EXPECT_EQ(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	EXPECT_EQ(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	return fds[0];
}

static const char *caught(int fd)
{
	ssize_t length = read(fd, text, sizeof(text) - 1);

	text[length > 0 ? length : 0] = 0;
	return text;
}

static uint32_t count_lines(const char *lines)
{
	uint32_t count = 0;

	for (; *lines; lines++)
		count += *lines == '\n';
	return count;
}

TEST(only_errors_are_written_until_the_level_asks_for_more)
{
	int fd = catch_stderr();

	vb_log(VB_LOG_WARN, "no");
	vb_log(VB_LOG_ERROR, "yes %d", 1);
	EXPECT_STR(caught(fd), "verbatim: error: yes 1\n");
	vb_log_set_level(VB_LOG_INFO);
	vb_log(VB_LOG_DEBUG, "no");
	vb_log(VB_LOG_INFO, "a");
	vb_log(VB_LOG_WARN, "b");
	EXPECT_STR(caught(fd), "verbatim: info: a\nverbatim: warn: b\n");
	EXPECT(vb_log_is_on(VB_LOG_WARN) && !vb_log_is_on(VB_LOG_DEBUG));
}

TEST(a_message_is_one_line_whatever_is_in_it)
{
	static char longer[2 * VB_LOG_LINE_MAX];
	int fd = catch_stderr();

	vb_log(VB_LOG_ERROR, "a\nb\033[1m%s", "\r\xc3\xa9");
	EXPECT_STR(caught(fd), "verbatim: error: a?b?[1m?\xc3\xa9\n");
	memset(longer, 'x', sizeof(longer) - 1);
	vb_log(VB_LOG_ERROR, "%s", longer);
	EXPECT_EQ(strlen(caught(fd)), VB_LOG_LINE_MAX - 1);
	EXPECT_EQ(count_lines(text), 1);
	EXPECT_EQ(text[VB_LOG_LINE_MAX - 2], '\n');
}

TEST(a_place_that_repeats_itself_is_cut_short_and_others_are_not)
{
	int fd = catch_stderr();

	for (uint32_t i = 0; i < 1000; i++)
		vb_log(VB_LOG_ERROR, "again %u", i);
	vb_log(VB_LOG_ERROR, "something else");
	EXPECT_EQ(count_lines(caught(fd)), VB_LOG_BURST + 1);
	EXPECT(strstr(text, "again 9\nverbatim: error: something else\n"));
}

TEST(after_a_second_the_place_says_what_was_left_out)
{
	int fd = catch_stderr();

	/* No sleep: the test keeps logging until the second is over. */
	for (uint32_t i = 0; i < VB_LOG_BURST; i++)
		vb_log(VB_LOG_ERROR, "again");
	EXPECT_EQ(count_lines(caught(fd)), VB_LOG_BURST);
	while (!*caught(fd))
		vb_log(VB_LOG_ERROR, "again");
	EXPECT(!strncmp(text, "verbatim: error: again (and ", 28));
	EXPECT(strstr(text, " like this before)\n"));
}

TEST(more_places_than_the_table_has_are_no_harm)
{
	static char formats[300][16];
	int fd = catch_stderr();

	for (uint32_t i = 0; i < 300; i++) {
		snprintf(formats[i], sizeof(formats[i]), "place %u", i);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
		vb_log(VB_LOG_ERROR, formats[i]);
#pragma GCC diagnostic pop
	}
	EXPECT_EQ(count_lines(caught(fd)), 127 + VB_LOG_BURST);
}

TEST(lines_go_to_a_file_and_to_stderr_if_it_cannot_be_written)
{
	char path[] = "/tmp/vb_test_log.XXXXXX";
	int file = mkstemp(path), fd = catch_stderr();

	EXPECT(file >= 0);
	vb_log_set_file(path);
	vb_log(VB_LOG_ERROR, "one");
	vb_log(VB_LOG_ERROR, "two");
	unlink(path);
	EXPECT_STR(caught(fd), "");
	EXPECT_STR(caught(file), "verbatim: error: one\nverbatim: error: two\n");
	vb_log_set_file("/nowhere/at/all");
	vb_log(VB_LOG_ERROR, "three");
	EXPECT_STR(caught(fd), "verbatim: error: three\n");
}

TEST(a_reader_that_went_away_does_not_end_the_program)
{
	int fd = catch_stderr();
	sigset_t pending;

	close(fd);
	errno = 123;
	vb_log(VB_LOG_ERROR, "nobody reads this");
	EXPECT_EQ(errno, 123);
	EXPECT_EQ(sigpending(&pending), 0);
	EXPECT(!sigismember(&pending, SIGPIPE));
}

TEST(a_file_that_may_not_grow_does_not_end_the_program)
{
	struct rlimit limit = { 0, 0 };
	int fd = catch_stderr();
	sigset_t pending;
	char path[] = "/tmp/test_log.XXXXXX";

	close(mkstemp(path));
	vb_log_set_file(path);
	EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	vb_log(VB_LOG_ERROR, "where to?");
	EXPECT_STR(caught(fd), "verbatim: error: where to?\n");
	EXPECT_EQ(dup2(open(path, O_WRONLY), STDERR_FILENO), STDERR_FILENO);
	vb_log(VB_LOG_ERROR, "nowhere");
	EXPECT_EQ(sigpending(&pending), 0);
	EXPECT(!sigismember(&pending, SIGXFSZ));
	unlink(path);
}

static void *speak(void *unused)
{
	for (uint32_t i = 0; i < 1000; i++)
		vb_log(VB_LOG_ERROR, "from a thread");
	return unused;
}

TEST(threads_may_speak_at_the_same_time)
{
	int fd = catch_stderr();
	pthread_t threads[4];

	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(pthread_create(&threads[i], NULL, speak, NULL), 0);
	for (uint32_t i = 0; i < 4; i++)
		EXPECT_EQ(pthread_join(threads[i], NULL), 0);
	EXPECT(count_lines(caught(fd)) >= VB_LOG_BURST);
	EXPECT(!strncmp(text, "verbatim: error: from a thread\n", 31));
}
