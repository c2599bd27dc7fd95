/* SPDX-License-Identifier: BSD-2-Clause */
/* How a network namespace is made, with its interfaces. */
#include "namespace.h"

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool is_written = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return is_written;
}

void namespace_unshare(int kinds)
{
	char map[64];

	snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(kinds) &&
	    (unshare(CLONE_NEWUSER | kinds) || !write_text("/proc/self/uid_map", map)))
		SKIP("may not make a namespace: %s", strerror(errno));
}

void need_another_user(void)
{
	int status;
	pid_t child = fork();

	EXPECT(child >= 0);
	if (!child)
		_exit(geteuid() == NOBODY || setuid(NOBODY) != 0);
	EXPECT_EQ(waitpid(child, &status, 0), child);
	if (status)
		SKIP("only root can become another user");
}

/*
 * Chooses a kind of interface that needs no peer, sends nowhere and is active immediately; not
 * every kernel has both kinds.
 */
static void choose_kind(void)
{
	if (!system("ip link add try0 type dummy 2>/dev/null && ip link del try0"))
		setenv("KIND", "dummy", 1);
	else if (!system("ip link add try0 type ifb 2>/dev/null && ip link del try0"))
		setenv("KIND", "ifb", 1);
	else
		SKIP("this kernel has neither dummy nor ifb interfaces");
}

void namespace_enter(void)
{
	if (system("ip -V >/dev/null 2>&1"))
		SKIP("there is no `ip` (iproute2)");
	namespace_unshare(CLONE_NEWNET);
	if (access("/proc/net/if_inet6", F_OK))
		SKIP("this kernel has no IPv6");
	/*
	 * Addresses are then usable immediately, not after a second or two of duplicate address
	 * detection.
	 */
	write_text("/proc/sys/net/ipv6/conf/all/accept_dad", "0");
	write_text("/proc/sys/net/ipv6/conf/default/accept_dad", "0");
	choose_kind();
}

void ip(const char *format, ...)
{
	char arguments[256], command[300];
	va_list args;

	va_start(args, format);
	vsnprintf(arguments, sizeof(arguments), format, args);
	va_end(args);
	snprintf(command, sizeof(command), "ip %s", arguments);
	if (system(command))
		FAIL("this failed: %s", command);
}

void namespace_add_dummy(const char *name)
{
	ip("link add %s type $KIND", name);
	ip("link set %s addrgenmode none", name);
	ip("link set %s up", name);
}
