/* SPDX-License-Identifier: BSD-2-Clause */
/* What the keeper does with files. The tasks run in the keeper's thread and table. */
#include "host/local/kept.h"

#include "host/local/keeper.h"
#include "host/memory/expanse.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* --- opening and closing --- */

struct opening {
	const char *path;
	const struct vb_mapping *mapping;
	int fd;
};

static bool is_file_of(const struct stat *status, const struct vb_mapping *mapping)
{
	return S_ISREG(status->st_mode) && status->st_ino == mapping->inode &&
	       status->st_dev == mapping->device;
}

/*
 * Looks at the file before opening it, since opening a device may have side effects. Does not wait
 * for a process that has a lease on the file.
 */
static void open_file(void *argument, int fd)
{
	struct opening *opening = argument;
	struct stat status;

	(void)fd;
	opening->fd = -1;
	if (syscall(SYS_newfstatat, AT_FDCWD, opening->path, &status, 0) ||
	    !is_file_of(&status, opening->mapping))
		return;
	opening->fd = vb_sys_result(syscall(SYS_openat, AT_FDCWD, opening->path,
					    O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
	if (opening->fd < 0 ||
	    (!syscall(SYS_fstat, opening->fd, &status) && is_file_of(&status, opening->mapping)))
		return;
	vb_sys_close(opening->fd);
	opening->fd = -1;
}

bool vb_kept_open(const char *path, const struct vb_mapping *mapping, struct vb_kept *kept_out)
{
	struct opening opening = { .path = path, .mapping = mapping };
	uint32_t keeper = vb_keeper_call(0, open_file, &opening, -1);

	if (!keeper || opening.fd < 0)
		return false;
	*kept_out = (struct vb_kept){ keeper, opening.fd };
	return true;
}

static void close_file(void *argument, int fd)
{
	const struct vb_kept *kept = argument;

	(void)fd;
	vb_sys_close(kept->fd);
}

void vb_kept_close(struct vb_kept *kept)
{
	if (kept->keeper)
		(void)vb_keeper_call(kept->keeper, close_file, kept, -1);
	*kept = (struct vb_kept){ 0 };
}

/* --- envelopes --- */

union control {
	struct cmsghdr header; /* for its alignment */
	uint8_t bytes[CMSG_SPACE(sizeof(int))];
};

struct sealing {
	const struct vb_kept *kept;
	int result;
};

static void put_in(void *argument, int fd)
{
	struct sealing *sealing = argument;
	char byte = 0;
	struct iovec part = { &byte, sizeof(byte) };
	union control control = { .header = { .cmsg_level = SOL_SOCKET,
					      .cmsg_type = SCM_RIGHTS,
					      .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.header), &sealing->kept->fd, sizeof(sealing->kept->fd));
	sealing->result = vb_sys_sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

int vb_kept_seal(const struct vb_kept *kept)
{
	struct sealing sealing = { .kept = kept, .result = -EBADF };
	int ends[2];

	if (!kept->keeper)
		return -EBADF;
	if (syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	for (int i = 0; i < 2; i++)
		ends[i] = vb_fd_own(ends[i]);
	if (!vb_keeper_call(kept->keeper, put_in, &sealing, ends[0]))
		sealing.result = -EBADF;
	vb_fd_close(ends[0]);
	if (sealing.result > 0)
		return ends[1];
	vb_fd_close(ends[1]);
	return sealing.result;
}

struct mapping_of_sealed {
	size_t length;
	uint64_t offset;
	void *memory;
};

/* The control buffer has room for no more than one file. */
static int take_out(int envelope)
{
	char byte;
	struct iovec part = { &byte, sizeof(byte) };
	union control control;
	struct msghdr message = { .msg_iov = &part,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	int fd = -1;

	if (vb_sys_recvmsg(envelope, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) < 0)
		return -1;
	header = CMSG_FIRSTHDR(&message);
	if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static void map_sealed(void *argument, int fd)
{
	struct mapping_of_sealed *mapping = argument;
	int file = take_out(fd);

	if (file < 0)
		return;
	mapping->memory =
		vb_expanse_map(file, mapping->length, PROT_READ | PROT_WRITE, mapping->offset);
	vb_sys_close(file);
}

void *vb_kept_map_sealed(int envelope, size_t length, uint64_t offset)
{
	struct mapping_of_sealed mapping = { .length = length, .offset = offset };

	(void)vb_keeper_call(0, map_sealed, &mapping, envelope);
	return mapping.memory;
}
