/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first process of the guest (guest.py). It executes /mnt/setup, writes "up" to the second
 * serial line, and takes orders from there, one a line:
 *
 *     run <job> <seconds> <command>    starts a shell command, whose output goes to /mnt/job<job>
 *     end <job>                        ends it before its time
 *
 * Any number of jobs run at a time; "ended <job> <status>" reports the end of each. It is a program
 * and not a script because starting a process is what takes longest on an emulated CPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define LINE "/dev/ttyS1"
#define OUTPUT_FOLDER "/mnt"
#define JOBS_MAX 64
#define ORDER_MAX 8192
#define TIMED_OUT 124 /* as timeout(1) reports it */
#define MS_PER_SECOND 1000ll

struct job {
	pid_t pid; /* also of its process group; 0 if the place is free */
	int number;
	int64_t end_ms;
	int is_late;
};

static struct job jobs[JOBS_MAX];
static int line;
static sigset_t before; /* the signal mask for jobs: the signals blocked before we started */

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * MS_PER_SECOND + now.tv_nsec / 1000000;
}

/* Stays open: input that arrives while the line is closed is lost. */
static void open_line(void)
{
	struct termios modes;

	line = open(LINE, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (line < 0 || tcgetattr(line, &modes))
		exit(1);
	cfmakeraw(&modes);
	tcsetattr(line, TCSANOW, &modes);
}

static void say(const char *word, int job, int status)
{
	dprintf(line, "%s %d %d\n", word, job, status);
}

/* --- jobs ------------------------------------------------------------------------------------- */

static void redirect(int job)
{
	char path[64];
	int output, nothing = open("/dev/null", O_RDONLY);

	snprintf(path, sizeof(path), OUTPUT_FOLDER "/job%d", job);
	output = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	dup2(nothing, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(output, STDERR_FILENO);
	close(nothing);
	close(output);
}

static struct job *free_place(void)
{
	for (int i = 0; i < JOBS_MAX; i++)
		if (!jobs[i].pid)
			return &jobs[i];
	return NULL;
}

static void start(int number, int seconds, const char *command)
{
	struct job *job = free_place();
	pid_t pid = job ? fork() : -1;

	if (pid == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &before, NULL);
		redirect(number);
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
		_exit(127);
	}
	if (pid < 0) {
		say("ended", number, 126);
		return;
	}
	setpgid(pid, pid);
	*job = (struct job){ .pid = pid,
			     .number = number,
			     .end_ms = now_ms() + seconds * MS_PER_SECOND };
}

static void end(int number)
{
	for (int i = 0; i < JOBS_MAX; i++)
		if (jobs[i].pid && jobs[i].number == number)
			kill(-jobs[i].pid, SIGTERM);
}

/* The first process inherits processes whose parents are gone: those belong to no job. */
static void reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < JOBS_MAX; i++) {
			if (jobs[i].pid != pid)
				continue;
			kill(-pid, SIGKILL); /* processes that the job left behind */
			say("ended", jobs[i].number,
			    jobs[i].is_late	? TIMED_OUT
			    : WIFEXITED(status) ? WEXITSTATUS(status)
						: 128 + WTERMSIG(status));
			jobs[i].pid = 0;
		}
}

static void end_late_ones(void)
{
	int64_t now = now_ms();

	for (int i = 0; i < JOBS_MAX; i++)
		if (jobs[i].pid && now >= jobs[i].end_ms) {
			kill(-jobs[i].pid, jobs[i].is_late ? SIGKILL : SIGTERM);
			jobs[i].is_late = 1;
			jobs[i].end_ms = now + MS_PER_SECOND;
		}
}

/* --- orders ----------------------------------------------------------------------------------- */

static void obey(const char *order)
{
	int number, seconds, command = 0;

	if (sscanf(order, "run %d %d %n", &number, &seconds, &command) == 2 && command)
		start(number, seconds, order + command);
	else if (sscanf(order, "end %d", &number) == 1)
		end(number);
}

/* Orders may come in pieces. */
static void take_orders(void)
{
	static char text[ORDER_MAX];
	static size_t length;
	ssize_t count = read(line, text + length, sizeof(text) - length);
	char *newline;

	if (count > 0)
		length += (size_t)count;
	while ((newline = memchr(text, '\n', length))) {
		*newline = '\0';
		obey(text);
		length -= (size_t)(newline + 1 - text);
		memmove(text, newline + 1, length);
	}
}

static void on_child(int number)
{
	(void)number;
}

int main(void)
{
	struct sigaction action = { .sa_handler = on_child };
	const struct timespec second = { .tv_sec = 1 };
	sigset_t child;

	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	open_line();
	if (system("exec /bin/sh " OUTPUT_FOLDER "/setup") < 0)
		return 1;
	sigaction(SIGCHLD, &action, NULL);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigprocmask(SIG_BLOCK, &child, &before);
	dprintf(line, "up\n");
	for (;;) {
		struct pollfd orders = { .fd = line, .events = POLLIN };

		/*
		 * Child exits are noticed here only, so that none is missed between checking and
		 * waiting.
		 */
		if (ppoll(&orders, 1, &second, &before) > 0)
			take_orders();
		reap();
		end_late_ones();
	}
}
