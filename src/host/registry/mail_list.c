/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of abstract names, obtained from the kernel by netlink or from its text file. */
#include "host/registry/mail_list.h"

#include "base/heap.h"
#include "link/fd.h"
#include "link/sys.h"

#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdio.h>
#include <string.h>

#define ANSWER_SIZE 32768
#define ANSWERS_MAX 4096u /* so that a flood of names cannot keep us here for ever */
#define NAMES_MAX 16384u
#define STATE_CLOSE 7 /* TCP_CLOSE and TCP_LISTEN, which the kernel also uses for UNIX sockets */
#define STATE_LISTEN 10
#define SHOW_UID 0x40 /* UDIAG_SHOW_UID and UNIX_DIAG_UID, which older headers lack */
#define ATTRIBUTE_UID 7
#define CHUNK 8192u

/* --- adding --- */

static bool begins_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static bool grow(struct vb_mail_list *list)
{
	uint32_t capacity = list->capacity ? 2 * list->capacity : 32;
	struct vb_mail_name *names;

	names = capacity <= NAMES_MAX ? vb_heap_alloc(capacity, sizeof(*names)) : NULL;
	if (!names)
		return false;
	if (list->count)
		memcpy(names, list->names, list->count * sizeof(*names));
	vb_heap_free(list->names);
	list->names = names;
	list->capacity = capacity;
	return true;
}

static void add_name(struct vb_mail_list *list, const char *text)
{
	if (list->count == list->capacity && !grow(list))
		return;
	snprintf(list->names[list->count++].text, VB_MAIL_NAME_MAX, "%s", text);
}

static void add_stranger(struct vb_mail_list *list, const char *text, uid_t uid)
{
	uint32_t i = 0;

	while (i < list->stranger_count && list->strangers[i].uid != uid)
		i++;
	if (i == VB_MAIL_STRANGERS_MAX)
		return;
	if (i == list->stranger_count) {
		list->strangers[list->stranger_count++] = (struct vb_mail_stranger){ .uid = uid };
		snprintf(list->strangers[i].name.text, VB_MAIL_NAME_MAX, "%s", text);
	}
	list->strangers[i].count++;
}

/* --- netlink --- */

static bool request(int fd, enum vb_mail_list_of of)
{
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} message = {
		.header = { .nlmsg_len = sizeof(message),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.request = { .sdiag_family = AF_UNIX,
			     .udiag_states = 1u << STATE_LISTEN |
					     (of == VB_MAIL_ALL_NAMES ? 1u << STATE_CLOSE : 0),
			     .udiag_show = UDIAG_SHOW_NAME | SHOW_UID },
	};

	return vb_sys_send(fd, &message, sizeof(message), MSG_DONTWAIT) == (int)sizeof(message);
}

/* False if the kernel does not report the owner. */
static bool read_entry(struct vb_mail_list *list, const struct vb_mail_user *user,
		       const char *prefix, const struct nlmsghdr *header)
{
	const uint8_t *next = (const uint8_t *)header + NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	size_t left = header->nlmsg_len - NLMSG_LENGTH(sizeof(struct unix_diag_msg));
	char text[VB_MAIL_NAME_MAX] = "";
	bool has_uid = false;
	uint32_t uid = 0;

	while (left >= sizeof(struct nlattr)) {
		struct nlattr attribute;
		size_t length;

		memcpy(&attribute, next, sizeof(attribute));
		length = attribute.nla_len - NLA_HDRLEN;
		if (attribute.nla_len < NLA_HDRLEN || attribute.nla_len > left)
			break;
		if (attribute.nla_type == UNIX_DIAG_NAME && length > 1 && !next[NLA_HDRLEN])
			snprintf(text, sizeof(text), "%.*s", (int)length - 1,
				 (const char *)next + NLA_HDRLEN + 1);
		if (attribute.nla_type == ATTRIBUTE_UID && length == sizeof(uid)) {
			memcpy(&uid, next + NLA_HDRLEN, sizeof(uid));
			has_uid = true;
		}
		length = NLA_ALIGN(attribute.nla_len);
		if (length >= left)
			break;
		next += length;
		left -= length;
	}
	if (!begins_with(text, prefix))
		return true;
	if (has_uid && uid == user->uid)
		add_name(list, text);
	else if (has_uid)
		add_stranger(list, text, uid);
	return has_uid;
}

enum reading { MORE, DONE, FAILED };

static enum reading read_answer(struct vb_mail_list *list, const struct vb_mail_user *user,
				const char *prefix, const void *bytes, int length)
{
	const uint8_t *next = bytes;

	while ((size_t)length >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *header = (const void *)next;
		uint32_t step = NLMSG_ALIGN(header->nlmsg_len);

		if (header->nlmsg_type == NLMSG_DONE)
			return DONE;
		if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
		    header->nlmsg_len > (size_t)length ||
		    header->nlmsg_len < NLMSG_LENGTH(sizeof(struct unix_diag_msg)) ||
		    !read_entry(list, user, prefix, header))
			return FAILED;
		next += step;
		length = step < (uint32_t)length ? length - (int)step : 0;
	}
	return MORE;
}

static bool fill_by_netlink(struct vb_mail_list *list, const struct vb_mail_user *user,
			    const char *prefix, enum vb_mail_list_of of)
{
	int fd = vb_fd_own(vb_sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	enum reading reading = fd >= 0 && request(fd, of) ? MORE : FAILED;
	union {
		struct nlmsghdr header;
		uint8_t bytes[ANSWER_SIZE];
	} answer;

	for (uint32_t i = 0; reading == MORE && i < ANSWERS_MAX; i++) {
		struct iovec whole = { &answer, sizeof(answer) };
		struct msghdr message = { .msg_iov = &whole, .msg_iovlen = 1 };
		int length = vb_sys_recvmsg(fd, &message, MSG_DONTWAIT);

		reading = length > 0 ? read_answer(list, user, prefix, &answer, length) : FAILED;
	}
	vb_fd_close(fd);
	return reading == DONE;
}

/* --- text --- */

/* "number: references protocol flags type state inode @name" */
static void read_line(struct vb_mail_list *list, const char *prefix, char *line)
{
	const char *name = strstr(line, " @");
	unsigned flags;

	if (name && begins_with(name + 2, prefix) && sscanf(line, "%*s %*x %*x %x", &flags) == 1 &&
	    flags & 1u << 16)
		add_name(list, name + 2);
}

static size_t read_lines(struct vb_mail_list *list, const char *prefix, char *text, size_t length)
{
	char *line = text;
	char *end;

	while ((end = memchr(line, '\n', (size_t)(text + length - line)))) {
		*end = 0;
		read_line(list, prefix, line);
		line = end + 1;
	}
	length = (size_t)(text + length - line);
	memmove(text, line, length);
	return length;
}

static void fill_by_text(struct vb_mail_list *list, const char *prefix)
{
	int fd = vb_fd_own(vb_sys_result(syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/net/unix",
						 O_RDONLY | O_CLOEXEC, 0)));
	char text[CHUNK];
	size_t length = 0;

	while (fd >= 0 && length < sizeof(text)) {
		long got = syscall(SYS_read, fd, text + length, sizeof(text) - length);

		if (got <= 0)
			break;
		length = read_lines(list, prefix, text, length + (size_t)got);
	}
	vb_fd_close(fd);
}

/* --- the list --- */

static bool is_before(const struct vb_mail_name *a, const struct vb_mail_name *b)
{
	return strcmp(a->text, b->text) < 0;
}

static void swap(struct vb_mail_name *a, struct vb_mail_name *b)
{
	struct vb_mail_name moved = *a;

	*a = *b;
	*b = moved;
}

/* Restores the heap below `root`: no name sorts after its parent. */
static void sift_down(struct vb_mail_name *names, uint32_t root, uint32_t count)
{
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && is_before(&names[child], &names[child + 1]))
			child++;
		if (!is_before(&names[root], &names[child]))
			return;
		swap(&names[root], &names[child]);
	}
}

/*
 * Heap sort, because other users may make the list long, and qsort() may take memory from the
 * program's heap.
 */
static void sort(struct vb_mail_name *names, uint32_t count)
{
	for (uint32_t root = count / 2; root--;)
		sift_down(names, root, count);
	for (uint32_t last = count; last-- > 1;) {
		swap(&names[0], &names[last]);
		sift_down(names, 0, last);
	}
}

void vb_mail_list_fill(struct vb_mail_list *list, const struct vb_mail_user *user,
		       enum vb_mail_list_of of)
{
	struct vb_mail_name prefix = vb_mail_name(user, "");

	list->count = list->stranger_count = 0;
	list->has_uids = fill_by_netlink(list, user, prefix.text, of);
	if (!list->has_uids) {
		list->count = list->stranger_count = 0;
		fill_by_text(list, prefix.text);
	}
	sort(list->names, list->count);
}

void vb_mail_list_clear(struct vb_mail_list *list)
{
	vb_heap_free(list->names);
	*list = (struct vb_mail_list){ 0 };
}

/* The index of the first name that does not sort before `text`. */
static uint32_t find(const struct vb_mail_list *list, const char *text)
{
	uint32_t begin = 0;
	uint32_t end = list->count;

	while (begin < end) {
		uint32_t middle = (begin + end) / 2;

		if (strcmp(list->names[middle].text, text) < 0)
			begin = middle + 1;
		else
			end = middle;
	}
	return begin;
}

bool vb_mail_list_has(const struct vb_mail_list *list, const char *text)
{
	uint32_t place = find(list, text);

	return place < list->count && !strcmp(list->names[place].text, text);
}

uint32_t vb_mail_list_first(const struct vb_mail_list *list, const char *text, uint32_t *end_out)
{
	char prefix[VB_MAIL_NAME_MAX + 1];
	uint32_t first;

	snprintf(prefix, sizeof(prefix), "%s~", text);
	first = find(list, prefix);
	*end_out = first;
	while (*end_out < list->count && begins_with(list->names[*end_out].text, prefix))
		++*end_out;
	return first;
}
