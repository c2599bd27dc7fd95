/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets that a link reads beside its receiver: those of multicast groups, and receivers of
 * other processes that may get its datagrams. Each group has a socket that is bound to its address.
 * The kernel gives a unicast datagram to one of the sockets that share a port, but a copy of a
 * multicast datagram to each socket that is in the group and bound to such an address. So every
 * process gets its own copy, and the socket for unicast gets none.
 */
#include "link/udp_priv.h"

#include "link/fd.h"
#include "link/sys.h"

#include <string.h>

static uint32_t find(const struct vb_udp *udp, const struct vb_udp_address *group)
{
	uint32_t i = 0;

	while (i < udp->group_count &&
	       memcmp(udp->groups[i].address.ip, group->ip, sizeof(group->ip)) != 0)
		i++;
	return i;
}

static int become_member(int fd, uint32_t ifindex, const struct vb_udp_address *group)
{
	struct ip_mreqn v4 = { .imr_ifindex = (int)ifindex };
	struct ipv6_mreq v6 = { .ipv6mr_interface = ifindex };

	if (vb_udp_address_is_ipv4(group)) {
		memcpy(&v4.imr_multiaddr, group->ip + 12, sizeof(v4.imr_multiaddr));
		return vb_sys_setsockopt(fd, SOL_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4));
	}
	memcpy(&v6.ipv6mr_multiaddr, group->ip, sizeof(v6.ipv6mr_multiaddr));
	return vb_sys_setsockopt(fd, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &v6, sizeof(v6));
}

static int open_group(const struct vb_udp *udp, const struct vb_udp_address *group)
{
	int fd =
		vb_udp_socket_open_multicast_receiver(group, udp->port, udp->receive_buffer_length);
	int result;

	if (fd < 0)
		return fd;
	result = become_member(fd, udp->ifindex, group);
	if (result >= 0)
		result = vb_udp_watch(udp, fd, EPOLLIN);
	if (result < 0) {
		vb_fd_close(fd);
		return result;
	}
	return fd;
}

vb_err vb_udp_join(struct vb_udp *udp, const struct vb_udp_address *group)
{
	struct vb_udp_address address = *group;
	int fd;

	if (find(udp, group) < udp->group_count)
		return VB_OK;
	if (udp->family == AF_INET && !vb_udp_address_is_ipv4(group))
		return VB_EOPNOTSUPP;
	if (udp->group_count == VB_UDP_GROUPS_MAX)
		return VB_ENOSPC;
	address.scope = udp->ifindex;
	fd = open_group(udp, &address);
	if (fd < 0)
		return vb_udp_err_of(fd);
	udp->groups[udp->group_count++] = (struct vb_udp_group){ address, fd };
	return VB_OK;
}

void vb_udp_leave(struct vb_udp *udp, const struct vb_udp_address *group)
{
	uint32_t index = find(udp, group);

	if (index == udp->group_count)
		return;
	vb_fd_close(udp->groups[index].fd);
	udp->groups[index] = udp->groups[--udp->group_count];
}

void vb_udp_leave_all(struct vb_udp *udp)
{
	while (udp->group_count)
		vb_fd_close(udp->groups[--udp->group_count].fd);
}

uint32_t vb_udp_group_count(const struct vb_udp *udp)
{
	return udp->group_count;
}

struct vb_udp_address vb_udp_group(const struct vb_udp *udp, uint32_t index)
{
	VB_CHECK(index < udp->group_count);
	return udp->groups[index].address;
}

uint32_t vb_udp_socket_count(const struct vb_udp *udp)
{
	return 1 + udp->group_count + udp->more_count;
}

int vb_udp_choose_next_socket(struct vb_udp *udp)
{
	uint32_t index = udp->group_turn++ % vb_udp_socket_count(udp);
	int fd;

	if (!index)
		return udp->receiver;
	if (--index < udp->group_count)
		return udp->groups[index].fd;
	fd = udp->more[index - udp->group_count];
	return vb_fd_is_ours(fd) ? fd : udp->receiver;
}

vb_err vb_udp_read_also(struct vb_udp *udp, int receiver)
{
	int result;

	if (udp->more_count == VB_UDP_MORE_MAX)
		return VB_ENOSPC;
	result = vb_udp_watch(udp, receiver, EPOLLIN);
	if (result < 0)
		return vb_udp_err_of(result);
	udp->more[udp->more_count++] = receiver;
	return VB_OK;
}
