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

/* The same without what follows each message: " pid=<this process> program=test_log" and the rest. */
static const char *messages(int fd)
{
	char tail[64];
	char *at, *end;

	caught(fd);
	snprintf(tail, sizeof(tail), " pid=%ld program=test_log", (long)getpid());
	while ((at = strstr(text, tail))) {
		end = strchr(at, '\n');
		EXPECT(end);
		memmove(at, end, strlen(end) + 1);
	}
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
	EXPECT_STR(messages(fd), "verbatim: error: yes 1\n");
	vb_log_set_level(VB_LOG_INFO);
	vb_log(VB_LOG_DEBUG, "no");
	vb_log(VB_LOG_INFO, "a");
	vb_log(VB_LOG_WARN, "b");
	EXPECT_STR(messages(fd), "verbatim: info: a\nverbatim: warn: b\n");
	EXPECT(vb_log_is_on(VB_LOG_WARN) && !vb_log_is_on(VB_LOG_DEBUG));
}

TEST(a_message_is_one_line_whatever_is_in_it)
{
	static char longer[2 * VB_LOG_MESSAGE_MAX];
	int fd = catch_stderr();

	vb_log(VB_LOG_ERROR, "a\nb\033[1m%s", "\r\xc3\xa9");
	EXPECT_STR(messages(fd), "verbatim: error: a?b?[1m?\xc3\xa9\n");
	memset(longer, 'x', sizeof(longer) - 1);
	vb_log(VB_LOG_ERROR, "%s", longer);
	EXPECT_EQ(strlen(messages(fd)), strlen("verbatim: error: \n") + VB_LOG_MESSAGE_MAX - 1);
	EXPECT_EQ(count_lines(text), 1);
}

TEST(a_line_ends_with_what_the_message_is_about)
{
	char expected[256];
	int fd = catch_stderr();

	vb_log_about(VB_LOG_ERROR,
		     VB_LOG_ABOUT(.phase = "open", .device = "vb_eth0", .qpn = 17, .error = EMFILE),
		     "no");
	snprintf(expected, sizeof(expected),
		 "verbatim: error: no pid=%ld program=test_log phase=open device=vb_eth0 "
		 "qp=0x000011 error=EMFILE\n",
		 (long)getpid());
	EXPECT_STR(caught(fd), expected);
	vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.device = "a \"b\"\n", .error = 9999), "no");
	EXPECT(strstr(caught(fd), " device=\"a \\\"b\\\"?\" error=?\n"));
}

TEST(the_phase_is_the_verb_that_a_format_begins_with)
{
	int fd = catch_stderr();

	vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.error = EINVAL), "ibv_post_send: %d", 1);
	EXPECT(strstr(caught(fd), " phase=ibv_post_send error=EINVAL\n"));
	vb_log(VB_LOG_ERROR, "%s: two words", "ibv_post_send");
	EXPECT(!strstr(caught(fd), "phase="));
	vb_log(VB_LOG_ERROR, "two words: nothing");
	EXPECT(!strstr(caught(fd), "phase="));
}

/* Removes `"time":<number>` from a line of JSON, after having looked at it. */
static void cut_time(void)
{
	static const char begin[] = "{\"time\":";
	char *rest;

	EXPECT(!strncmp(text, begin, strlen(begin)));
	EXPECT(strtod(text + strlen(begin), &rest) > 1e9);
	memmove(text + 1, rest, strlen(rest) + 1);
}

TEST(json_has_every_part_of_a_message)
{
	char expected[512];
	int fd = catch_stderr();

	vb_log_set_format(VB_LOG_JSON);
	vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.device = "vb_eth0", .qpn = 17, .error = EMFILE),
		     "ibv_create_qp: \"%s\"", "a\\b\n");
	caught(fd);
	cut_time();
	snprintf(expected, sizeof(expected),
		 "{,\"level\":\"error\",\"pid\":%ld,\"program\":\"test_log\",\"phase\":"
		 "\"ibv_create_qp\",\"device\":\"vb_eth0\",\"qp\":17,\"error\":\"EMFILE\","
		 "\"errno\":24,\"message\":\"ibv_create_qp: \\\"a\\\\b\\u000a\\\"\"}\n",
		 (long)getpid());
	EXPECT_STR(text, expected);
}

/*
 * Whether a line is a string of JSON in UTF-8 without control characters, up to its closing quote,
 * which is followed by "}\n". Written apart from the code under test: bit patterns instead of
 * ranges.
 */
static bool is_json_string(const char *at)
{
	while (*at != '"') {
		uint32_t c = (unsigned char)*at++, more = 0;

		if (c < ' ' || c == 0x7f)
			return false;
		if (c == '\\') {
			if (*at == 'u' && strspn(at + 1, "0123456789abcdef") < 4)
				return false;
			if (*at != 'u' && *at != '"' && *at != '\\')
				return false;
			at += *at == 'u' ? 5 : 1;
		}
		if (c >= 0x80) {
			more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
			c &= 0x3fu >> more;
			for (uint32_t i = 0; i < more; i++, at++) {
				if (((unsigned char)*at & 0xc0) != 0x80)
					return false;
				c = c << 6 | ((unsigned char)*at & 0x3f);
			}
			if (c < (more == 1   ? 0x80u
				 : more == 2 ? 0x800u
					     : 0x10000u) ||
			    c > 0x10ffff || c >> 11 == 0x1b)
				return false;
		}
	}
	return !strcmp(at, "\"}\n");
}

/* A format for each message, because a place is rate-limited. */
static void log_text(const char *message)
{
	static char formats[2000][4];
	static uint32_t count;

	strcpy(formats[count], "%s");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vb_log(VB_LOG_ERROR, formats[count++], message);
#pragma GCC diagnostic pop
}

TEST(json_is_json_whatever_bytes_a_message_has)
{
	static const char key[] = "\"message\":\"";
	char message[2 * VB_LOG_MESSAGE_MAX];
	int fd = catch_stderr();
	uint32_t seed = 1;

	vb_log_set_format(VB_LOG_JSON);
	for (uint32_t i = 0; i < 120; i++) { /* the table of places has room for as many */
		size_t length = i < 20 ? VB_LOG_MESSAGE_MAX + 10 : 1 + i;

		for (size_t k = 0; k < length; k++) {
			seed = seed * 1103515245 + 12345;
			/* Every second message has only bytes that are not ASCII. */
			message[k] = (char)(i % 2 ? 0x80 | seed >> 24 : seed >> 23 | 1);
			if (!message[k])
				message[k] = 'x';
		}
		message[length] = 0;
		log_text(message);
		EXPECT(strstr(caught(fd), key));
		EXPECT_EQ(count_lines(text), 1);
		EXPECT(is_json_string(strstr(text, key) + strlen(key)));
	}
	log_text("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
	EXPECT(strstr(caught(fd), "\"message\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"}\n"));
}

TEST(a_place_that_repeats_itself_is_cut_short_and_others_are_not)
{
	int fd = catch_stderr();

	for (uint32_t i = 0; i < 1000; i++)
		vb_log(VB_LOG_ERROR, "again %u", i);
	vb_log(VB_LOG_ERROR, "something else");
	EXPECT_EQ(count_lines(messages(fd)), VB_LOG_BURST + 1);
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
	EXPECT(strstr(text, " like this before) pid="));
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
	EXPECT_STR(messages(file), "verbatim: error: one\nverbatim: error: two\n");
	vb_log_set_file("/nowhere/at/all");
	vb_log(VB_LOG_ERROR, "three");
	EXPECT_STR(messages(fd), "verbatim: error: three\n");
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
	EXPECT_STR(messages(fd), "verbatim: error: where to?\n");
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
	EXPECT(count_lines(messages(fd)) >= VB_LOG_BURST);
	EXPECT(!strncmp(text, "verbatim: error: from a thread\n", 31));
}
