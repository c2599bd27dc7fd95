/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interfaces of this network namespace, as rtnetlink describes them. Uses bare system calls:
 * librspreload would take our sockets for its own. Nothing here needs privileges. /sys/class/net is
 * not used: a process that changed its network namespace still sees the old one there.
 */
#include "host/device/device_priv.h"

#include "base/heap.h"
#include "host/sys/file.h"
#include "link/fd.h"
#include "link/sys.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BUFFER_SIZE (64 * 1024) /* the kernel fills at most 32 KiB at a time */
#define ATTEMPTS_MAX 16 /* for a dump that a change interrupts; the watch reports the last change */
#define LINK_MODE_WORDS_MAX 127
#define SPEED_MBPS_MAX 10000000u

#ifndef RTEXT_FILTER_SKIP_STATS
#define RTEXT_FILTER_SKIP_STATS (1 << 3)
#endif

/* The state of one conversation with the kernel. */
struct inquiry {
	int fd;
	uint32_t sequence;
	uint8_t *buffer;
	struct vb_interfaces *interfaces;
	struct best_route {
		uint32_t ifindex;
		uint32_t metric;
		bool is_ipv6;
	} route;
	bool has_failed; /* no memory */
};

/* --- the table of interfaces ------------------------------------------------------------------ */

/* Makes room for one more element behind `count`. Grows by doubling. */
static void *grow(void *array, uint32_t count, size_t size)
{
	void *longer;

	if (count & (count - 1) || count == 1)
		return array;
	longer = vb_heap_alloc(count ? count * 2 : 2, size);
	if (longer && array) {
		memcpy(longer, array, count * size);
		vb_heap_free(array);
	}
	return longer;
}

struct vb_interface *vb_interfaces_add(struct vb_interfaces *interfaces)
{
	struct vb_interface *list =
		grow(interfaces->list, interfaces->count, sizeof(*interfaces->list));

	if (!list)
		return NULL;
	interfaces->list = list;
	memset(&list[interfaces->count], 0, sizeof(*list));
	return &list[interfaces->count++];
}

struct vb_interface_address *vb_interfaces_add_address(struct vb_interfaces *interfaces)
{
	struct vb_interface_address *list =
		grow(interfaces->addresses, interfaces->address_count, sizeof(*list));

	if (!list)
		return NULL;
	interfaces->addresses = list;
	memset(&list[interfaces->address_count], 0, sizeof(*list));
	return &list[interfaces->address_count++];
}

void vb_interfaces_fini(struct vb_interfaces *interfaces)
{
	vb_heap_free(interfaces->list);
	vb_heap_free(interfaces->addresses);
	*interfaces = (struct vb_interfaces){ 0 };
}

/* --- messages --------------------------------------------------------------------------------- */

/* Like NLMSG_DATA() and RTA_DATA(), which drop the const. */
static const void *body(const struct nlmsghdr *message)
{
	return (const char *)message + NLMSG_HDRLEN;
}

static const void *content(const struct rtattr *attribute)
{
	return (const char *)attribute + RTA_LENGTH(0);
}

/*
 * Finds the attributes behind a message's own struct. A type that comes twice counts once. Unknown
 * types are skipped.
 */
static void index_attributes(const struct nlmsghdr *message, size_t header_size,
			     const struct rtattr **table, uint32_t table_size)
{
	const char *at = (const char *)body(message) + NLMSG_ALIGN(header_size);
	size_t left = message->nlmsg_len - NLMSG_SPACE(header_size);

	memset(table, 0, table_size * sizeof(*table));
	while (left >= sizeof(struct rtattr)) {
		const struct rtattr *attribute = (const void *)at;
		size_t length = RTA_ALIGN(attribute->rta_len);
		uint32_t type = attribute->rta_type & NLA_TYPE_MASK;

		if (attribute->rta_len < sizeof(*attribute) || attribute->rta_len > left)
			return;
		if (type < table_size)
			table[type] = attribute;
		if (length >= left)
			return;
		at += length;
		left -= length;
	}
}

static uint32_t read_u32(const struct rtattr *attribute, uint32_t otherwise)
{
	uint32_t value;

	if (!attribute || RTA_PAYLOAD(attribute) < sizeof(value))
		return otherwise;
	memcpy(&value, content(attribute), sizeof(value));
	return value;
}

static void read_mac(struct vb_interface *interface, const struct ifinfomsg *info,
		     const struct rtattr *attribute)
{
	static const uint8_t zero[6];

	if (info->ifi_type != ARPHRD_ETHER || !attribute ||
	    RTA_PAYLOAD(attribute) != sizeof(interface->mac))
		return;
	memcpy(interface->mac, content(attribute), sizeof(interface->mac));
	interface->has_mac = memcmp(interface->mac, zero, sizeof(zero));
}

/*
 * The driver reports whether there is a carrier, and that counts immediately. IFF_RUNNING reports
 * it only after the kernel's link watch has run, which may be a second later. A link is dormant
 * while an authenticator or the interface below it has yet to open it.
 */
static bool is_connected(const struct ifinfomsg *info, const struct rtattr *operational_state)
{
	uint8_t state = IF_OPER_UNKNOWN;

	if (operational_state && RTA_PAYLOAD(operational_state) >= sizeof(state))
		memcpy(&state, content(operational_state), sizeof(state));
	return (info->ifi_flags & (IFF_LOWER_UP | IFF_DORMANT)) == IFF_LOWER_UP &&
	       state != IF_OPER_DORMANT;
}

static void on_link(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct rtattr *attributes[IFLA_OPERSTATE + 1];
	const struct ifinfomsg *info = body(message);
	struct vb_interface *interface;

	/* Bridges report their ports a second time, under their own family. */
	if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < NLMSG_SPACE(sizeof(*info)) ||
	    info->ifi_family != AF_UNSPEC)
		return;
	index_attributes(message, sizeof(*info), attributes, IFLA_OPERSTATE + 1);
	if (!attributes[IFLA_IFNAME])
		return;
	interface = vb_interfaces_add(inquiry->interfaces);
	if (!interface) {
		inquiry->has_failed = true;
		return;
	}
	snprintf(interface->name, sizeof(interface->name), "%.*s",
		 (int)RTA_PAYLOAD(attributes[IFLA_IFNAME]),
		 (const char *)content(attributes[IFLA_IFNAME]));
	interface->ifindex = (uint32_t)info->ifi_index;
	interface->mtu = read_u32(attributes[IFLA_MTU], 0);
	interface->is_up = info->ifi_flags & IFF_UP;
	interface->has_carrier = is_connected(info, attributes[IFLA_OPERSTATE]);
	interface->is_loopback = info->ifi_flags & IFF_LOOPBACK;
	read_mac(interface, info, attributes[IFLA_ADDRESS]);
}

/* On a point-to-point link IFA_ADDRESS is the peer's; ours is IFA_LOCAL. */
static void on_address(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct rtattr *attributes[IFA_FLAGS + 1], *own;
	const struct ifaddrmsg *info = body(message);
	struct vb_interface_address *address;
	size_t length;

	if (message->nlmsg_type != RTM_NEWADDR || message->nlmsg_len < NLMSG_SPACE(sizeof(*info)))
		return;
	index_attributes(message, sizeof(*info), attributes, IFA_FLAGS + 1);
	own = attributes[IFA_LOCAL] ? attributes[IFA_LOCAL] : attributes[IFA_ADDRESS];
	length = info->ifa_family == AF_INET ? 4 : 16;
	if ((info->ifa_family != AF_INET && info->ifa_family != AF_INET6) || !own ||
	    RTA_PAYLOAD(own) != length)
		return;
	/*
	 * Not an address yet, or never: another host may have it. An optimistic address may be used
	 * meanwhile.
	 */
	if ((read_u32(attributes[IFA_FLAGS], info->ifa_flags) &
	     (IFA_F_TENTATIVE | IFA_F_OPTIMISTIC)) == IFA_F_TENTATIVE ||
	    read_u32(attributes[IFA_FLAGS], info->ifa_flags) & IFA_F_DADFAILED)
		return;
	address = vb_interfaces_add_address(inquiry->interfaces);
	if (!address) {
		inquiry->has_failed = true;
		return;
	}
	address->ifindex = info->ifa_index;
	memcpy(address->gid.raw + 16 - length, content(own), length);
	if (length == 4)
		memset(address->gid.raw + 10, 0xff, 2);
}

/* The interface of a route: the first of its next hops if it has several. */
static uint32_t outgoing(const struct rtattr *const *attributes)
{
	struct rtnexthop hop;

	if (attributes[RTA_MULTIPATH] && RTA_PAYLOAD(attributes[RTA_MULTIPATH]) >= sizeof(hop)) {
		memcpy(&hop, content(attributes[RTA_MULTIPATH]), sizeof(hop));
		return (uint32_t)hop.rtnh_ifindex;
	}
	return read_u32(attributes[RTA_OIF], 0);
}

/*
 * There may be a million routes, so only the best default route is kept. IPv4 takes precedence over
 * IPv6.
 */
static void on_route(struct inquiry *inquiry, const struct nlmsghdr *message)
{
	const struct rtattr *attributes[RTA_TABLE + 1];
	const struct rtmsg *info = body(message);
	struct best_route *best = &inquiry->route;
	struct best_route route;

	if (message->nlmsg_type != RTM_NEWROUTE ||
	    message->nlmsg_len < NLMSG_SPACE(sizeof(*info)) || info->rtm_dst_len ||
	    info->rtm_type != RTN_UNICAST ||
	    info->rtm_flags & (RTNH_F_DEAD | RTNH_F_LINKDOWN | RTM_F_CLONED))
		return;
	index_attributes(message, sizeof(*info), attributes, RTA_TABLE + 1);
	if (read_u32(attributes[RTA_TABLE], info->rtm_table) != RT_TABLE_MAIN)
		return;
	route = (struct best_route){
		.ifindex = outgoing(attributes),
		.metric = read_u32(attributes[RTA_PRIORITY], 0),
		.is_ipv6 = info->rtm_family == AF_INET6,
	};
	if (!route.ifindex || (route.is_ipv6 && best->ifindex && !best->is_ipv6))
		return;
	if (!best->ifindex || route.metric < best->metric)
		*best = route;
}

/* --- the conversation with the kernel --------------------------------------------------------- */

static vb_err inquiry_init(struct inquiry *inquiry, struct vb_interfaces *interfaces)
{
	const int on = 1;
	vb_err err;

	*inquiry = (struct inquiry){ .interfaces = interfaces };
	inquiry->buffer = vb_heap_alloc(1, BUFFER_SIZE);
	if (!inquiry->buffer)
		return VB_ENOMEM;
	inquiry->fd = vb_fd_own(vb_sys_socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	if (inquiry->fd < 0) {
		err = inquiry->fd == -EMFILE ? VB_EMFILE : VB_EOPNOTSUPP;
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "devices", .error = -inquiry->fd),
			     "cannot ask the kernel for network interfaces: %s",
			     strerrordesc_np(-inquiry->fd));
		vb_heap_free(inquiry->buffer);
		return err;
	}
	/* With this option the kernel filters out the routes of other tables; without it, we do. */
	syscall(SYS_setsockopt, inquiry->fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	return VB_OK;
}

static void inquiry_fini(struct inquiry *inquiry)
{
	vb_fd_close(inquiry->fd);
	vb_heap_free(inquiry->buffer);
}

static bool send_request(struct inquiry *inquiry, struct nlmsghdr *request)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	long sent;

	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	request->nlmsg_seq = ++inquiry->sequence;
	do
		sent = syscall(SYS_sendto, inquiry->fd, request, (long)request->nlmsg_len, 0,
			       &kernel, sizeof(kernel));
	while (sent < 0 && errno == EINTR);
	return sent == (long)request->nlmsg_len;
}

static long receive(struct inquiry *inquiry)
{
	struct sockaddr_nl from;
	socklen_t from_length;
	long length;

	do {
		from_length = sizeof(from);
		length = syscall(SYS_recvfrom, inquiry->fd, inquiry->buffer, (long)BUFFER_SIZE, 0,
				 &from, &from_length);
	} while ((length < 0 && errno == EINTR) || (length >= 0 && from.nl_pid != 0));
	return length;
}

enum dump_end {
	DUMP_DONE,
	DUMP_MORE,
	DUMP_INTERRUPTED, /* done, but things changed meanwhile */
	DUMP_REFUSED,
};

/* The end of a dump carries 0 or a negative errno. */
static bool is_failed_end(const struct nlmsghdr *message)
{
	int32_t error = 0;

	if (message->nlmsg_type == NLMSG_DONE && message->nlmsg_len >= NLMSG_LENGTH(sizeof(error)))
		memcpy(&error, body(message), sizeof(error));
	return error < 0;
}

static enum dump_end digest(struct inquiry *inquiry, size_t length, bool *is_interrupted,
			    void (*on_message)(struct inquiry *, const struct nlmsghdr *))
{
	const uint8_t *at = inquiry->buffer;

	while (length >= sizeof(struct nlmsghdr)) {
		const struct nlmsghdr *message = (const void *)at;
		size_t size = NLMSG_ALIGN(message->nlmsg_len);

		if (message->nlmsg_len < sizeof(*message) || message->nlmsg_len > length)
			return DUMP_REFUSED;
		if (message->nlmsg_seq == inquiry->sequence) {
			*is_interrupted |= message->nlmsg_flags & NLM_F_DUMP_INTR;
			if (message->nlmsg_type == NLMSG_ERROR || is_failed_end(message))
				return DUMP_REFUSED;
			if (message->nlmsg_type == NLMSG_DONE)
				return *is_interrupted ? DUMP_INTERRUPTED : DUMP_DONE;
			on_message(inquiry, message);
		}
		if (size >= length)
			break;
		at += size;
		length -= size;
	}
	return DUMP_MORE;
}

static enum dump_end dump(struct inquiry *inquiry, struct nlmsghdr *request,
			  void (*on_message)(struct inquiry *, const struct nlmsghdr *))
{
	bool is_interrupted = false;
	enum dump_end end = DUMP_MORE;

	if (!send_request(inquiry, request))
		return DUMP_REFUSED;
	while (end == DUMP_MORE) {
		long length = receive(inquiry);

		if (length < 0)
			return DUMP_REFUSED;
		end = digest(inquiry, (size_t)length, &is_interrupted, on_message);
	}
	return end;
}

static enum dump_end dump_links(struct inquiry *inquiry)
{
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
		struct rtattr attribute;
		uint32_t mask;
	} request = {
		.header = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETLINK },
		.attribute = { .rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = IFLA_EXT_MASK },
		.mask = RTEXT_FILTER_SKIP_STATS,
	};

	inquiry->interfaces->count = 0;
	return dump(inquiry, &request.header, on_link);
}

static enum dump_end dump_addresses(struct inquiry *inquiry)
{
	struct {
		struct nlmsghdr header;
		struct ifaddrmsg info;
	} request = { .header = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETADDR } };

	inquiry->interfaces->address_count = 0;
	return dump(inquiry, &request.header, on_address);
}

static enum dump_end dump_routes(struct inquiry *inquiry, uint8_t family)
{
	struct {
		struct nlmsghdr header;
		struct rtmsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request), .nlmsg_type = RTM_GETROUTE },
		.info = { .rtm_family = family, .rtm_table = RT_TABLE_MAIN },
	};

	return dump(inquiry, &request.header, on_route);
}

/*
 * A family without routes, or a kernel without the family, refuses the request; then there is no
 * default route.
 */
static enum dump_end dump_default_route(struct inquiry *inquiry)
{
	enum dump_end ipv4, ipv6;

	inquiry->route = (struct best_route){ 0 };
	ipv4 = dump_routes(inquiry, AF_INET);
	ipv6 = dump_routes(inquiry, AF_INET6);
	inquiry->interfaces->default_ifindex = inquiry->route.ifindex;
	return ipv4 == DUMP_INTERRUPTED || ipv6 == DUMP_INTERRUPTED ? DUMP_INTERRUPTED : DUMP_DONE;
}

/* Asks again as long as changes interrupt. Returns false if the kernel refuses. */
static bool ask(struct inquiry *inquiry, enum dump_end (*question)(struct inquiry *))
{
	enum dump_end end = DUMP_INTERRUPTED;

	for (uint32_t i = 0; i < ATTEMPTS_MAX && end == DUMP_INTERRUPTED; i++)
		end = question(inquiry);
	return end != DUMP_REFUSED;
}

/*
 * --- what netlink does not report --------------------------------------------------------------
 */

/*
 * In Mb/s; 0 if the driver does not report it. The first call learns how long the answer's bit
 * masks are.
 */
static uint32_t ask_speed(const struct inquiry *inquiry, const struct vb_interface *interface)
{
	union {
		struct ethtool_link_settings settings;
		uint8_t room[sizeof(struct ethtool_link_settings) + 3 * 4 * LINK_MODE_WORDS_MAX];
	} answer = { .settings = { .cmd = ETHTOOL_GLINKSETTINGS } };
	struct ifreq request = { .ifr_data = (void *)&answer };

	memcpy(request.ifr_name, interface->name, sizeof(request.ifr_name));
	if (syscall(SYS_ioctl, inquiry->fd, SIOCETHTOOL, &request) ||
	    answer.settings.link_mode_masks_nwords >= 0)
		return 0;
	answer.settings.link_mode_masks_nwords = (int8_t)-answer.settings.link_mode_masks_nwords;
	answer.settings.cmd = ETHTOOL_GLINKSETTINGS;
	if (syscall(SYS_ioctl, inquiry->fd, SIOCETHTOOL, &request) ||
	    answer.settings.speed > SPEED_MBPS_MAX)
		return 0;
	return answer.settings.speed;
}

static void read_machine(struct vb_interfaces *interfaces)
{
	struct utsname names;

	if (!vb_file_read("/etc/machine-id", interfaces->machine, 33, NULL) &&
	    !vb_file_read("/var/lib/dbus/machine-id", interfaces->machine, 33, NULL))
		interfaces->machine[0] = 0;
	if (!interfaces->machine[0] && !uname(&names))
		snprintf(interfaces->machine, sizeof(interfaces->machine), "%.63s", names.nodename);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Does not use qsort(), which may take memory from the program's heap. */
static void sort_by_ifindex(struct vb_interface *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		for (uint32_t j = i; j && list[j].ifindex < list[j - 1].ifindex; j--) {
			struct vb_interface moved = list[j];

			list[j] = list[j - 1];
			list[j - 1] = moved;
		}
}

static vb_err read_interfaces(struct inquiry *inquiry)
{
	struct vb_interfaces *interfaces = inquiry->interfaces;

	if (!ask(inquiry, dump_links) || !ask(inquiry, dump_addresses)) {
		vb_log_about(VB_LOG_ERROR, VB_LOG_ABOUT(.phase = "devices"),
			     "the kernel does not tell the network interfaces");
		return VB_EOPNOTSUPP;
	}
	if (!ask(inquiry, dump_default_route))
		interfaces->default_ifindex = 0;
	if (inquiry->has_failed)
		return VB_ENOMEM;
	sort_by_ifindex(interfaces->list, interfaces->count);
	for (uint32_t i = 0; i < interfaces->count; i++)
		if (interfaces->list[i].is_up && !interfaces->list[i].is_loopback)
			interfaces->list[i].speed_mbps = ask_speed(inquiry, &interfaces->list[i]);
	read_machine(interfaces);
	return VB_OK;
}

vb_err vb_interfaces_read(struct vb_interfaces *interfaces)
{
	struct inquiry inquiry;
	vb_err err = inquiry_init(&inquiry, interfaces);

	if (err)
		return err;
	err = read_interfaces(&inquiry);
	inquiry_fini(&inquiry);
	return err;
}
