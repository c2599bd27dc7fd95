/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The set of our UDP ports, and what the kernel reported about others. Its answers hold for a
 * while. A port of our user stays trusted until it is seen in another user's hands, because the
 * last packets of a process may arrive when its sockets are gone. A port of another user is asked
 * about again soon, because our user may get it. The kernel finds the socket as it would for a
 * packet to that port (sock_diag), and reports its user. A kernel without sock_diag still lists all
 * ports with their users (/proc/net/udp), which takes longer the more there are.
 */
#include "host/registry/own_ports.h"

#include "base/heap.h"
#include "host/registry/port_holders.h"
#include "link/fd.h"
#include "link/sys.h"
#include "link/udp.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define ADDRESSES 64u /* remembered addresses; a power of two */
#define MEMORY_NS 100000000u /* how long an answer holds */

struct known_address {
	struct vb_gid gid; /* all zero: none */
	uint32_t interface;
	bool is_local;
};

struct vb_own_ports {
	bool is_off; /* the kernel does not report our user */
	bool is_by_list; /* the kernel has no sock_diag */
	uint32_t user; /* as the kernel reports it */
	struct vb_user_ports list;
	uint64_t trusted[VB_PORT_WORDS]; /* added, or found and not in doubt */
	uint64_t added[VB_PORT_WORDS];
	uint64_t found[VB_PORT_WORDS]; /* at some time, as our user's */
	uint64_t strange[VB_PORT_WORDS];
	uint64_t asked_ns; /* when the remembered answers began */
	struct known_address addresses[ADDRESSES];
};

enum holder { FELLOW, STRANGER, NOBODY, UNKNOWN };

struct question {
	struct nlmsghdr header;
	struct inet_diag_req_v2 request;
};

struct answer {
	struct nlmsghdr header;
	union {
		struct inet_diag_msg socket;
		struct nlmsgerr error;
	};
	uint8_t rest[256];
};

static void set(uint64_t *words, uint16_t port)
{
	words[port / 64] |= UINT64_C(1) << port % 64;
}

static void unset(uint64_t *words, uint16_t port)
{
	words[port / 64] &= ~(UINT64_C(1) << port % 64);
}

/* --- the kernel --- */

/* In sock_diag's terms, the socket is the packet's target: its own address is the destination. */
static void fill_question(struct question *question, const struct vb_gid *address, uint16_t port)
{
	bool is_ipv4 = vb_gid_is_ipv4(address);
	struct inet_diag_sockid *id = &question->request.id;

	*question = (struct question){
		.header = { .nlmsg_len = sizeof(*question),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST },
		.request = { .sdiag_family = is_ipv4 ? AF_INET : AF_INET6,
			     .sdiag_protocol = IPPROTO_UDP,
			     .idiag_states = UINT32_MAX },
	};
	id->idiag_dport = htons(port);
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (is_ipv4)
		memcpy(id->idiag_dst, address->raw + 12, 4);
	else
		memcpy(id->idiag_dst, address->raw, 16);
}

static bool ask(const struct vb_gid *address, uint16_t port, struct answer *answer)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct question question;
	struct iovec out = { &question, sizeof(question) };
	struct iovec in = { answer, sizeof(*answer) };
	struct msghdr request = {
		.msg_name = &kernel, .msg_namelen = sizeof(kernel), .msg_iov = &out, .msg_iovlen = 1
	};
	struct msghdr reply = { .msg_iov = &in, .msg_iovlen = 1 };
	int fd = vb_fd_own(vb_sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	bool is_answered;

	if (fd < 0)
		return false;
	fill_question(&question, address, port);
	is_answered = vb_sys_sendmsg(fd, &request, 0) >= 0 &&
		      vb_sys_recvmsg(fd, &reply, MSG_DONTWAIT) >=
			      (int)(sizeof(answer->header) + sizeof(answer->error));
	vb_fd_close(fd);
	return is_answered;
}

static enum holder find_holder(struct vb_own_ports *ports, const struct vb_gid *address,
			       uint16_t port)
{
	struct answer answer;

	if (ports->is_by_list)
		return vb_user_ports_has(&ports->list, ports->user, port) ? FELLOW : STRANGER;
	if (!ask(address, port, &answer))
		return UNKNOWN;
	if (answer.header.nlmsg_type == NLMSG_ERROR)
		return answer.error.error == -ENOENT ? NOBODY : UNKNOWN;
	return answer.socket.idiag_uid == ports->user ? FELLOW : STRANGER;
}

static void find_self(struct vb_own_ports *ports, uint16_t port)
{
	struct vb_gid any = vb_gid_from_ipv4(INADDR_LOOPBACK);
	struct answer answer;

	ports->is_by_list = !ask(&any, port, &answer) || answer.header.nlmsg_type == NLMSG_ERROR;
	ports->user = ports->is_by_list ? geteuid() : answer.socket.idiag_uid;
	ports->is_off = ports->is_by_list && !vb_user_ports_has(&ports->list, ports->user, port);
}

/* --- addresses --- */

static bool is_loopback(const struct vb_gid *gid)
{
	static const struct vb_gid ipv6 = { .raw = { [15] = 1 } };

	return (vb_gid_is_ipv4(gid) && gid->raw[12] == IN_LOOPBACKNET) || vb_gid_equal(gid, &ipv6);
}

/* There are too many loopback addresses to remember. */
static bool is_local(struct vb_own_ports *ports, const struct vb_gid *gid, uint32_t interface)
{
	struct known_address *known =
		&ports->addresses[(gid->raw[15] ^ gid->raw[14] ^ gid->raw[11]) % ADDRESSES];
	struct vb_udp_address address = { .scope = interface };

	if (is_loopback(gid))
		return true;
	if (vb_gid_equal(&known->gid, gid) && known->interface == interface)
		return known->is_local;
	memcpy(address.ip, gid->raw, sizeof(address.ip));
	*known = (struct known_address){ *gid, interface, vb_udp_address_is_local(&address) };
	return known->is_local;
}

/* --- ports --- */

/* An old answer is only a hint. */
void vb_own_ports_expire(struct vb_own_ports *ports, uint64_t now_ns)
{
	if (ports->is_off || now_ns - ports->asked_ns < MEMORY_NS)
		return;
	ports->asked_ns = now_ns;
	memcpy(ports->trusted, ports->added, sizeof(ports->trusted));
	memset(ports->strange, 0, sizeof(ports->strange));
	memset(ports->addresses, 0, sizeof(ports->addresses));
}

static bool was_found(const struct vb_own_ports *ports, uint16_t port)
{
	return vb_own_ports_has(ports->found, port);
}

bool vb_own_ports_is_stranger(struct vb_own_ports *ports, const struct vb_gid *source,
			      uint32_t interface, uint16_t port, uint64_t now_ns)
{
	enum holder holder;

	if (ports->is_off)
		return false;
	vb_own_ports_expire(ports, now_ns);
	if (!is_local(ports, source, interface) || vb_own_ports_has(ports->trusted, port))
		return false;
	if (vb_own_ports_has(ports->strange, port))
		return true;
	holder = find_holder(ports, source, port);
	if (holder == UNKNOWN)
		return false;
	if (holder == FELLOW || (holder == NOBODY && was_found(ports, port))) {
		set(ports->found, port);
		set(ports->trusted, port);
		return false;
	}
	unset(ports->found, port);
	/* The list is read again when it is old, and may lack a new port until then. */
	if (!ports->is_by_list)
		set(ports->strange, port);
	return true;
}

const uint64_t *vb_own_ports_trusted(const struct vb_own_ports *ports)
{
	return ports->trusted;
}

void vb_own_ports_add(struct vb_own_ports *ports, uint16_t port)
{
	set(ports->added, port);
	set(ports->trusted, port);
	unset(ports->strange, port);
}

void vb_own_ports_remove(struct vb_own_ports *ports, uint16_t port)
{
	unset(ports->added, port);
	unset(ports->trusted, port);
}

vb_err vb_own_ports_create(uint16_t port, struct vb_own_ports **ports_out)
{
	struct vb_own_ports *ports = vb_heap_alloc(1, sizeof(*ports));

	if (!ports)
		return VB_ENOMEM;
	find_self(ports, port);
	*ports_out = ports;
	return VB_OK;
}

void vb_own_ports_destroy(struct vb_own_ports *ports)
{
	vb_heap_free(ports);
}
