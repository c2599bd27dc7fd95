/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * POSIX locks of a program on a file whose memory it registers. A process loses all its locks on a
 * file when it closes any descriptor of it. So the adapter must not close one, neither at the end
 * that registers nor at the end that maps what its peer has registered. Two ends map one file, each
 * locks a byte of it, and each writes to the other until it has the other's memory mapped. A third
 * process sees which process holds which lock.
 */
#include "support_ends.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_S 30

/* --- the file, which was opened before the two ends existed -- */

static int file_fd;

static void grow_file(void)
{
	EXPECT(file_fd >= 0);
	EXPECT_EQ(ftruncate(file_fd, LENGTH), 0);
}

static void make_memfd(void)
{
	file_fd = memfd_create("test", MFD_CLOEXEC);
	grow_file();
}

static void make_file_in(const char *folder, bool is_unlinked)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/test_posix_locks.XXXXXX", folder);
	file_fd = mkostemp(path, O_CLOEXEC);
	grow_file();
	if (is_unlinked)
		EXPECT_EQ(unlink(path), 0);
}

static void remove_file(void)
{
	char link[32], path[128];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", file_fd);
	length = readlink(link, path, sizeof(path) - 1);
	EXPECT(length > 0);
	path[length] = '\0';
	(void)unlink(path);
}

static uint8_t *map_file(void)
{
	uint8_t *memory = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);

	EXPECT(memory != MAP_FAILED);
	return memory;
}

static uint32_t count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long inode;
	struct stat status;
	uint32_t count = 0;
	char line[512];

	EXPECT(maps);
	EXPECT_EQ(fstat(file_fd, &status), 0);
	while (fgets(line, sizeof(line), maps))
		count += sscanf(line, "%*s %*s %*s %*s %lu", &inode) == 1 && inode == status.st_ino;
	fclose(maps);
	return count;
}

/* --- locks --- */

static void lock_byte(uint32_t byte)
{
	struct flock lock = { .l_type = F_WRLCK, .l_start = byte, .l_len = 1 };

	EXPECT_EQ(fcntl(file_fd, F_SETLK, &lock), 0);
}

static int watcher_fd;

/* Starts a process that holds no lock, and reports the holder of the byte that it is asked for. */
static void start_watcher(void)
{
	int ends[2];

	EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	watcher_fd = ends[0];
	if (fork_end())
		return;
	close(ends[0]);
	for (uint32_t byte; read(ends[1], &byte, sizeof(byte)) == sizeof(byte);) {
		struct flock lock = { .l_type = F_WRLCK, .l_start = byte, .l_len = 1 };
		pid_t holder =
			fcntl(file_fd, F_GETLK, &lock) || lock.l_type == F_UNLCK ? 0 : lock.l_pid;

		if (write(ends[1], &holder, sizeof(holder)) != sizeof(holder))
			break;
	}
	_exit(0);
}

static pid_t holder_of(uint32_t byte)
{
	pid_t holder;

	EXPECT_EQ(write(watcher_fd, &byte, sizeof(byte)), (ssize_t)sizeof(byte));
	EXPECT_EQ(read(watcher_fd, &holder, sizeof(holder)), (ssize_t)sizeof(holder));
	return holder;
}

/* --- the ends --- */

enum { PARENT_BYTE = LENGTH, CHILD_BYTE };
enum { CHILD_HAS_MAPPED = 3, PARENT_HAS_MAPPED, CHILD_HAS_DEREGISTERED, CHILD_MAY_CLOSE };

/* The end has the peer's mapping beside its own. */
static void write_until_mapped(struct end *end)
{
	time_t end_s = time(NULL) + WAIT_S;

	do
		do_at(end, IBV_WR_RDMA_WRITE, 0, 8);
	while (count_mappings() < 2 && time(NULL) < end_s);
	EXPECT_EQ(count_mappings(), 2);
}

/* The peer's mapping is removed when the peer has announced that. */
static void poll_until_unmapped(struct end *end)
{
	time_t end_s = time(NULL) + WAIT_S;
	struct ibv_wc completion;

	while (count_mappings() > 1 && time(NULL) < end_s)
		EXPECT_EQ(ibv_poll_cq(end->cq, 1, &completion), 0);
	EXPECT_EQ(count_mappings(), 1);
}

static void be_child(struct board *board)
{
	struct end end = { 0 };

	lock_byte(CHILD_BYTE);
	meet_as_child(&end, board, map_file());
	write_until_mapped(&end);
	reach_step(board, CHILD_HAS_MAPPED);
	await_step(board, PARENT_HAS_MAPPED);
	deregister(&end);
	reach_step(board, CHILD_HAS_DEREGISTERED);
	await_step(board, CHILD_MAY_CLOSE);
	close_end(&end);
	_exit(0);
}

static void expect_locks(pid_t child)
{
	EXPECT_EQ(holder_of(PARENT_BYTE), getpid());
	EXPECT_EQ(holder_of(CHILD_BYTE), child);
}

static void expect_locks_to_survive(void)
{
	struct board *board = make_board();
	struct end end = { 0 };
	pid_t child;

	begin();
	start_watcher();
	child = fork_end();
	if (!child)
		be_child(board);
	lock_byte(PARENT_BYTE);
	open_end(&end, map_file());
	EXPECT_EQ(holder_of(PARENT_BYTE), getpid());
	introduce_parent(&end, board);
	await_step(board, CHILD_HAS_MAPPED);
	expect_locks(child);
	write_until_mapped(&end);
	expect_locks(child);
	reach_step(board, PARENT_HAS_MAPPED);
	await_step(board, CHILD_HAS_DEREGISTERED);
	poll_until_unmapped(&end);
	expect_locks(child);
	expect_child_success(fork_end() ?: (_exit(0), 0));
	expect_locks(child);
	reach_step(board, CHILD_MAY_CLOSE);
	expect_child_success(child);
	EXPECT_EQ(holder_of(PARENT_BYTE), getpid());
	close_end(&end);
	EXPECT_EQ(holder_of(PARENT_BYTE), getpid());
	remove_file();
}

TEST(locks_on_a_memfd_survive)
{
	make_memfd();
	expect_locks_to_survive();
}

TEST(locks_on_a_file_survive)
{
	make_file_in("/var/tmp", false);
	expect_locks_to_survive();
}

TEST(locks_on_a_file_in_memory_survive)
{
	make_file_in("/dev/shm", false);
	expect_locks_to_survive();
}

TEST(locks_on_a_file_without_a_name_survive)
{
	make_file_in("/dev/shm", true);
	expect_locks_to_survive();
}

/*
 * Locks of the other kinds belong to the open file: a process that holds it open for longer holds
 * the locks for longer.
 */
TEST(a_lock_of_an_open_file_goes_when_the_program_closes_it)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 1 };
	struct end end = { 0 };
	int locked_fd;
	char path[32];

	make_memfd();
	begin();
	locked_fd = file_fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", locked_fd);
	file_fd = open(path, O_RDWR | O_CLOEXEC);
	EXPECT(file_fd > locked_fd);
	EXPECT_EQ(fcntl(locked_fd, F_OFD_SETLK, &lock), 0);
	open_end(&end, map_file());
	EXPECT_EQ(close(locked_fd), 0);
	EXPECT_EQ(fcntl(file_fd, F_OFD_SETLK, &lock), 0);
	close_end(&end);
}

/* Opening a file under a lease means waiting until the lease is given up. */
TEST(a_lease_of_the_program_does_not_hold_up_registering)
{
	struct end end = { 0 };

	make_file_in("/dev/shm", false);
	begin();
	signal(SIGIO, SIG_IGN);
	EXPECT_EQ(fcntl(file_fd, F_SETLEASE, F_WRLCK), 0);
	open_end(&end, map_file());
	close_end(&end);
	remove_file();
}
