/* SPDX-License-Identifier: BSD-2-Clause */
/* How a process of another user holds names, counts what comes to them, and connects to others. */
#include "support_stranger.h"

#include "namespace.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HELD_MAX = 8192, VISITED_MAX = 64, MESSAGE_MAX = 1 << 18, RIGHTS = 8 };

static struct pollfd held[HELD_MAX];
static uint32_t held_count;
static uint32_t listener_count;

static struct spoils *make_spoils(void)
{
	struct spoils *spoils = mmap(NULL, sizeof(*spoils), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	EXPECT(spoils != MAP_FAILED);
	return spoils;
}

static socklen_t address_of_name(const char *name, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(address->sun_path + 1, name, strlen(name));
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

static void become_stranger(void)
{
	struct rlimit limit = { HELD_MAX + 64, HELD_MAX + 64 };

	EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	EXPECT_EQ(setgid(STRANGER), 0);
	EXPECT_EQ(setuid(STRANGER), 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Another process may have the name already. */
static void hold_name(const struct hold *hold, const char *name, struct spoils *spoils)
{
	struct sockaddr_un address;
	socklen_t length = address_of_name(name, &address);
	int fd = socket(AF_UNIX, hold->type | SOCK_NONBLOCK, 0);

	EXPECT(fd >= 0);
	if (bind(fd, (struct sockaddr *)&address, length)) {
		close(fd);
		return;
	}
	if (hold->type != SOCK_DGRAM && !hold->is_silent)
		EXPECT_EQ(listen(fd, 100), 0);
	EXPECT(held_count < HELD_MAX);
	held[held_count++] = (struct pollfd){ .fd = fd, .events = hold->is_silent ? 0 : POLLIN };
	spoils->name_count++;
}

static void hold_all(const struct hold *hold, struct spoils *spoils)
{
	char name[128];

	for (uint32_t i = 0; hold->names[i]; i++)
		for (uint32_t number = hold->first; number < hold->first + hold->count; number++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(name, sizeof(name), hold->names[i], number);
#pragma GCC diagnostic pop
			hold_name(hold, name, spoils);
			if (!strchr(hold->names[i], '%'))
				break;
		}
	listener_count = held_count;
}

static void take_message(int fd, struct spoils *spoils)
{
	static char bytes[MESSAGE_MAX];
	char control[CMSG_SPACE(253 * sizeof(int))];
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = control,
				  .msg_controllen = sizeof(control) };

	if (recvmsg(fd, &message, MSG_DONTWAIT) <= 0)
		return;
	spoils->messages++;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_type == SCM_RIGHTS)
			spoils->descriptors +=
				(uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
}

static void take_all(struct spoils *spoils)
{
	for (;;) {
		uint32_t count = held_count;

		poll(held, count, -1);
		for (uint32_t i = 0; i < count; i++) {
			int fd;

			if (!(held[i].revents & POLLIN))
				continue;
			take_message(held[i].fd, spoils);
			fd = i < listener_count ? accept(held[i].fd, NULL, NULL) : -1;
			if (fd >= 0 && held_count < HELD_MAX)
				held[held_count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
			if (held[i].revents & POLLHUP)
				held[i].fd = -1;
		}
	}
}

pid_t stranger_start(const struct hold *hold, struct spoils **spoils_out)
{
	struct spoils *spoils = make_spoils();
	int pipes[2];
	pid_t pid;

	need_another_user();
	EXPECT_EQ(pipe(pipes), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		become_stranger();
		hold_all(hold, spoils);
		EXPECT_EQ(write(pipes[1], "h", 1), 1);
		take_all(spoils);
	}
	close(pipes[1]);
	EXPECT_EQ(read(pipes[0], &(char){ 0 }, 1), 1);
	close(pipes[0]);
	*spoils_out = spoils;
	return pid;
}

void stranger_end(pid_t stranger)
{
	EXPECT_EQ(kill(stranger, SIGKILL), 0);
	EXPECT_EQ(waitpid(stranger, NULL, 0), stranger);
}

/* --- visiting --- */

static uint32_t find_names(const char *prefix, char names[VISITED_MAX][128])
{
	FILE *file = fopen("/proc/net/unix", "r");
	char line[512];
	uint32_t count = 0;

	EXPECT(file);
	while (count < VISITED_MAX && fgets(line, sizeof(line), file)) {
		char *name = strstr(line, " @");

		if (!name || strncmp(name + 2, prefix, strlen(prefix)) != 0)
			continue;
		name[strcspn(name, "\n")] = 0;
		snprintf(names[count++], 128, "%.127s", name + 2);
	}
	fclose(file);
	return count;
}

bool is_named(const char *part)
{
	FILE *file = fopen("/proc/net/unix", "r");
	char line[512];
	bool is_found = false;

	EXPECT(file);
	while (!is_found && fgets(line, sizeof(line), file))
		is_found = strstr(line, part);
	fclose(file);
	return is_found;
}

/* Sends messages of all kinds, truncated, with descriptors. */
static void send_nonsense(int fd)
{
	for (uint32_t kind = 0x76623100; kind < 0x76623300; kind++) {
		uint32_t words[16] = { kind, 1 };
		int fds[RIGHTS] = { 0, 1, 2, 0, 1, 2, 0, 1 };
		char control[CMSG_SPACE(sizeof(fds))] = { 0 };
		struct iovec part = { words, sizeof(words) };
		struct msghdr message = { .msg_iov = &part,
					  .msg_iovlen = 1,
					  .msg_control = control,
					  .msg_controllen = sizeof(control) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&message);

		*c = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(sizeof(fds)) };
		memcpy(CMSG_DATA(c), fds, sizeof(fds));
		(void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

static void visit(const char *name, bool is_sending, struct spoils *spoils)
{
	static const int types[] = { SOCK_SEQPACKET, SOCK_DGRAM, SOCK_STREAM };
	struct sockaddr_un address;
	socklen_t length = address_of_name(name, &address);

	for (uint32_t i = 0; i < 3; i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_NONBLOCK, 0);

		EXPECT(fd >= 0);
		if (!connect(fd, (struct sockaddr *)&address, length)) {
			spoils->visits++;
			if (is_sending)
				send_nonsense(fd);
			else
				(void)!send(fd, "nonsense", 8, MSG_DONTWAIT | MSG_NOSIGNAL);
		}
		close(fd);
	}
}

static void visit_all(const char *prefix, bool is_sending, struct spoils *spoils)
{
	char names[VISITED_MAX][128];

	for (;;) {
		uint32_t count = find_names(prefix, names);

		for (uint32_t round = 0; round < (is_sending ? 1 : 1000); round++)
			for (uint32_t i = 0; i < count; i++)
				visit(names[i], is_sending, spoils);
		spoils->round++;
	}
}

pid_t stranger_visit(const char *prefix, bool is_sending, struct spoils **spoils_out)
{
	struct spoils *spoils = make_spoils();
	pid_t pid;

	need_another_user();
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		become_stranger();
		visit_all(prefix, is_sending, spoils);
	}
	*spoils_out = spoils;
	return pid;
}
