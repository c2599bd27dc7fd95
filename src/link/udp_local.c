/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The check whether an address belongs to this host. It asks the kernel's routing each time,
 * because addresses come and go. Only links that may not send to other hosts need it. An attempt to
 * bind to the address would not show it if the administrator permits binding to any.
 */
#include "link/udp_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define ATTRIBUTES_MAX 64

struct question {
	struct nlmsghdr header;
	struct rtmsg route;
	uint8_t attributes[ATTRIBUTES_MAX];
};

struct answer {
	struct nlmsghdr header;
	struct rtmsg route;
	uint8_t rest[1024];
};

static void append(struct question *question, unsigned short type, const void *value, size_t length)
{
	struct rtattr attribute = { .rta_len = (unsigned short)RTA_LENGTH(length),
				    .rta_type = type };
	uint8_t *end = (uint8_t *)question + question->header.nlmsg_len;

	memcpy(end, &attribute, sizeof(attribute));
	memcpy(end + RTA_LENGTH(0), value, length);
	question->header.nlmsg_len += (uint32_t)RTA_SPACE(length);
}

static void fill_question(struct question *question, const struct vb_udp_address *address)
{
	bool is_ipv4 = vb_udp_address_is_ipv4(address);
	uint32_t length = is_ipv4 ? 4 : 16;

	*question = (struct question){
		.header = { .nlmsg_len = NLMSG_LENGTH(sizeof(question->route)),
			    .nlmsg_type = RTM_GETROUTE,
			    .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = is_ipv4 ? AF_INET : AF_INET6,
			   .rtm_dst_len = (unsigned char)(8 * length) },
	};
	append(question, RTA_DST, address->ip + sizeof(address->ip) - length, length);
	/* An address of another interface also belongs to this host. */
	if (address->scope && vb_udp_address_has_scope(address))
		append(question, RTA_OIF, &address->scope, sizeof(address->scope));
}

static bool ask(int fd, struct question *question, struct answer *answer)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct iovec out = { question, question->header.nlmsg_len };
	struct iovec in = { answer, sizeof(*answer) };
	struct msghdr request = {
		.msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &out, .msg_iovlen = 1
	};
	struct msghdr reply = { .msg_iov = &in, .msg_iovlen = 1 };

	if (vb_sys_sendmsg(fd, &request, 0) < 0)
		return false;
	return vb_sys_recvmsg(fd, &reply, MSG_DONTWAIT) >=
	       (int)(sizeof(answer->header) + sizeof(answer->route));
}

/* The kernel answers while it takes the question. */
bool vb_udp_address_is_local(const struct vb_udp_address *address)
{
	struct question question;
	struct answer answer;
	int fd = vb_fd_own(vb_sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	bool is_local;

	if (fd < 0)
		return false;
	fill_question(&question, address);
	is_local = ask(fd, &question, &answer) && answer.header.nlmsg_type == RTM_NEWROUTE &&
		   answer.route.rtm_type == RTN_LOCAL;
	vb_fd_close(fd);
	return is_local;
}
