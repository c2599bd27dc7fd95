/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable of RoCEv2: UDP sockets of an ordinary user. A link moves datagrams with the IP fields
 * that matter to the transport, and knows nothing of their content, except for steering. The ICRC
 * of a packet covers fields that the kernel writes, so a sender may rely on the following.
 * Don't-fragment is set. The IPv4 ID is 0, or with segmentation the segment's index; both count
 * from the message's number if the connected transmit socket sends it. The UDP source port is one
 * of vb_udp_source_port(). One thread at a time uses a link.
 */
#ifndef VB_LINK_UDP_H
#define VB_LINK_UDP_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define VB_UDP_SOURCES_MAX 16
#define VB_UDP_SEGMENTS_MAX 64 /* of a message */
#define VB_UDP_IOVECS_MAX 1024 /* of a message */
#define VB_UDP_GROUPS_MAX 1024 /* that a link is in at the same time: each costs a descriptor */
#define VB_UDP_MESSAGE_MAX 65000 /* bytes, all segments together */

struct vb_udp;

struct vb_udp_address {
	uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
	/* interface index; meaningful for link-local and multicast addresses */
	uint32_t scope;
};

/*
 * Whether it is an address of this host, according to the kernel's routing: one or two system
 * calls.
 */
bool vb_udp_address_is_local(const struct vb_udp_address *address);

/* The fields shared by messages that take the same path, except the source port. */
struct vb_udp_route {
	struct vb_udp_address destination;
	struct vb_udp_address source;
	uint8_t traffic_class;
	uint8_t hop_limit;
};

struct vb_udp_config {
	/* from vb_udp_receiver_open(), lent for the link's life; NULL: the link opens its own */
	const int *receiver;
	/* for link-local and multicast destinations without a scope; 0: none */
	uint32_t ifindex;
	uint16_t port; /* to receive on; 0: any, see vb_udp_port() */
	uint16_t destination_port; /* to send to; 0: the port to receive on */
	uint32_t source_count; /* transmit sockets; 0: 1 */
	uint16_t source_ports[VB_UDP_SOURCES_MAX]; /* the ports they must have; 0: any */
	uint32_t receive_buffer_length; /* requested, as for SO_RCVBUF; 0: the system's default */
	/* longer ones are dropped, coalesced ones count as a whole; 0: 65,535 */
	uint32_t datagram_length_max;
	bool is_segmenting; /* one message may be up to 64 datagrams */
	bool is_host_only; /* packets to other hosts are dropped: the port is not ours there */
	bool is_connected_tx_wanted; /* see vb_udp_connected_tx() */
	/* even if the machine has IPv6; a machine without IPv6 has only IPv4 anyway */
	bool is_ipv4_only;
	/* VB_UDP_COUNTER_COUNT of them, lent for the link's life, to count on; NULL: its own */
	uint64_t *counters;
};

/*
 * Receives on one port of all addresses, together with other links of this user on the same port
 * (see vb_udp_steer()). VB_EBUSY: another process holds a port that was asked for. The caller owns
 * the link and ends it with vb_udp_close().
 */
VB_MUST_USE vb_err vb_udp_open(const struct vb_udp_config *config, struct vb_udp **udp_out);
void vb_udp_close(struct vb_udp *udp);

/*
 * False if the program has closed a descriptor of the link: the link moves nothing any more, and
 * must be closed.
 */
bool vb_udp_is_intact(const struct vb_udp *udp);

uint16_t vb_udp_port(const struct vb_udp *udp); /* the port it receives on */
uint32_t vb_udp_source_count(const struct vb_udp *udp);
uint16_t vb_udp_source_port(const struct vb_udp *udp, uint32_t source_index);
uint32_t vb_udp_receive_buffer_length(const struct vb_udp *udp); /* as the kernel reports it */

/*
 * The number of segments that a message may have now: 64, or 1. It drops to 1 permanently when a
 * message shows that the kernel or the interface does not segment. Messages with segments are then
 * sent as single datagrams with IPv4 ID 0: an ICRC for the segment's index is wrong from then on.
 */
uint32_t vb_udp_segments_max(const struct vb_udp *udp);

/*
 * For poll() and epoll: readable when there is a datagram, or an error to take
 * (vb_udp_take_unreachable()). It stays readable until the cause is gone: a caller that waits for
 * it must also take errors. It belongs to the link.
 */
int vb_udp_fd(const struct vb_udp *udp);

/* --- sending ---------------------------------------------------------------------------------- */

/*
 * One datagram, or several of one flow: all segment_length long but the last, which may be shorter.
 */
struct vb_udp_message {
	struct vb_udp_address destination;
	struct vb_udp_address source; /* an address of this host; all 0: the kernel chooses */
	uint32_t source_index; /* which transmit socket, and so which source port */
	uint16_t segment_length; /* 0: one datagram */
	uint8_t traffic_class; /* DSCP and ECN */
	uint8_t hop_limit; /* 0: 64 */
	/*
	 * Goes with this number by the connected transmit socket (vb_udp_connected_tx()); the
	 * addresses, class and limit are ignored.
	 */
	bool is_connected_tx;
	uint16_t ip_id;
	const struct iovec *iovecs; /* the bytes, in order; borrowed for the call */
	uint32_t iovec_count;
};

/*
 * Returns how many messages, from the first on, were taken: sent, or dropped and counted (memory
 * that is not there, no route, too long …). Fewer than `count` means that the kernel has no room
 * now.
 */
uint32_t vb_udp_send(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count);

/*
 * The connected transmit socket: if many messages in a row take one path, they may go faster, with
 * numbers that count up. Returns the path for which messages from that source may use it, and the
 * next number; NULL if there is none. Apart from what was sent since, the two differ from the last
 * time only if vb_udp_take_connected_tx_change() reported it. A message with a number that is not
 * the next one is dropped.
 */
const struct vb_udp_route *vb_udp_connected_tx(const struct vb_udp *udp, uint32_t source_index,
					       uint16_t *next_ip_id);
bool vb_udp_take_connected_tx_change(struct vb_udp *udp);

/*
 * Takes up to `capacity` destinations that, since the last call, turned out to have no process on
 * the port, or not to exist; returns their number. Costs a system call for each transmit socket: to
 * be called when the fd woke a thread, or a timer fired.
 */
uint32_t vb_udp_take_unreachable(struct vb_udp *udp, struct vb_udp_address *destinations,
				 uint32_t capacity);

/* --- receiving -------------------------------------------------------------------------------- */

struct vb_udp_datagram {
	const uint8_t *data; /* the link's; valid until the next vb_udp_receive() */
	uint32_t length;
	struct vb_udp_address source;
	struct vb_udp_address destination; /* scope: the interface that it came in on */
	uint16_t source_port;
	uint16_t segment_index; /* in the coalesced message: the likely IPv4 ID */
	uint8_t traffic_class; /* 0 if the lent receiver does not report it … */
	uint8_t hop_limit; /* … likewise: vb_udp_receiver_enable_ip_fields() */
};

/*
 * Never waits. Returns the number of datagrams in `out`; 0 means none now. Only then may the caller
 * wait for vb_udp_fd(), which is immediately readable if there are some after all: the link may
 * hold datagrams that the kernel no longer has, and does not look at all its sockets each time. All
 * are from one socket: if one of them was sent to a group, all were.
 */
uint32_t vb_udp_receive(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t capacity);

/*
 * Whether the busiest sender may have a connected receive socket, which is faster; at first it may
 * not. For a link that shares its port with no other: packets from that sender to other links on
 * the port would come to this link.
 */
void vb_udp_allow_connected_rx(struct vb_udp *udp, bool is_allowed);

/*
 * From now on, vb_udp_receive() reads this receiving socket as well, as long as the caller has it
 * open. The overflow of receiving sockets is no longer counted. VB_ENOSPC: there are too many.
 */
VB_MUST_USE vb_err vb_udp_read_also(struct vb_udp *udp, int receiver);

/* The next vb_udp_receive() looks at all sockets: for a caller that sleeps if it finds nothing. */
void vb_udp_read_others_next(struct vb_udp *udp);

/*
 * Joins a multicast group on the link's interface; joining more than once is the same as once.
 * Every link in the group gets a copy of each datagram that is sent to it, including the sender's
 * own if it is in the group. VB_ENOSPC: too many groups; VB_EOPNOTSUPP: these sockets do not
 * support such an address.
 */
VB_MUST_USE vb_err vb_udp_join(struct vb_udp *udp, const struct vb_udp_address *group);
void vb_udp_leave(struct vb_udp *udp, const struct vb_udp_address *group);

/* The groups it is in. */
uint32_t vb_udp_group_count(const struct vb_udp *udp);
struct vb_udp_address vb_udp_group(const struct vb_udp *udp, uint32_t index);

/*
 * All links of one user on one port form a group; a unicast datagram goes to one of them. From now
 * on it goes to number (destination QPN >> shift) & mask, or for QPNs 0 and 1 to number `special`,
 * in the order in which they were opened; to any, if there is no such number. When a receiving
 * socket is closed, the last one gets its number. A message of several segments goes where its
 * first segment goes. Any link of the group may call this, for the whole group.
 */
VB_MUST_USE vb_err vb_udp_steer(struct vb_udp *udp, uint32_t shift, uint32_t mask,
				uint32_t special);

/* --- receiving sockets ------------------------------------------------------------------------ */

/*
 * Opens a socket to receive on, the last one of its group (see vb_udp_steer()). Of `config`, it
 * uses port, receive_buffer_length and is_ipv4_only. The socket may be given to other processes.
 * The group's places stay as they are while some process has each of its sockets open, whichever
 * process reads them. Errors as for vb_udp_open().
 */
VB_MUST_USE vb_err vb_udp_receiver_open(const struct vb_udp_config *config, int *fd_out);
void vb_udp_receiver_close(int fd);

/*
 * From now on, traffic class and hop limit of what it receives are reported. This costs time with
 * each message. A link that the socket is lent to must also be notified.
 */
VB_MUST_USE vb_err vb_udp_receiver_enable_ip_fields(int fd);
void vb_udp_enable_ip_fields(struct vb_udp *udp);

uint16_t vb_udp_receiver_port(int fd); /* 0 if the descriptor is no such socket */

/*
 * The number of sockets on a port, of all addresses; 0 if the kernel does not report it. Takes a
 * millisecond.
 */
uint32_t vb_udp_count_receivers(uint16_t port);

/* No process will read the socket for now: what is in it and what arrives is discarded. */
void vb_udp_receiver_retire(int fd);

/* From now on, the kernel keeps again what arrives. */
void vb_udp_receiver_end_retirement(int fd);

/* … for a new reader. What the last one, which may have been killed, left behind is discarded. */
void vb_udp_receiver_adopt(int fd, uint32_t receive_buffer_length);

/* --- counters --------------------------------------------------------------------------------- */

#define VB_UDP_COUNTERS(X)                                                                     \
	X(TX_MESSAGES, "udp_tx_messages")                                                      \
	X(TX_DATAGRAMS, "udp_tx_datagrams")                                                    \
	X(TX_BYTES, "udp_tx_bytes")                                                            \
	X(TX_CONNECTED, "udp_tx_connected") /* opened */                                       \
	X(TX_GSO_DEFAULTS, "udp_tx_gso_defaults") /* default segment sizes that were set */    \
	X(TX_LOST_COUNT, "udp_tx_lost_count") /* of a connected transmit socket */             \
	X(TX_STOPS, "udp_tx_stops") /* the kernel had no room */                               \
	X(TX_SPLIT, "udp_tx_split") /* messages sent as single datagrams */                    \
	X(TX_DROP_MEMORY, "udp_tx_drop_memory") /* memory was not there */                     \
	X(TX_DROP_TOO_LONG, "udp_tx_drop_too_long") /* for the interface */                    \
	X(TX_DROP_NO_ROUTE, "udp_tx_drop_no_route")                                            \
	X(TX_DROP_FORBIDDEN, "udp_tx_drop_forbidden") /* by a firewall, or a broadcast */      \
	X(TX_DROP_PORT_HELD, "udp_tx_drop_port_held_by_others") /* see is_host_only */         \
	X(TX_DROP_NO_ROOM, "udp_tx_drop_no_room") /* the rest of a message that was begun */   \
	X(TX_DROP_NUMBER, "udp_tx_drop_number") /* not the next one */                         \
	X(TX_DROP_OTHER, "udp_tx_drop_other") /* such as a source that is not ours */          \
	X(RX_MESSAGES, "udp_rx_messages")                                                      \
	X(RX_DATAGRAMS, "udp_rx_datagrams")                                                    \
	X(RX_BYTES, "udp_rx_bytes")                                                            \
	X(RX_CONNECTED, "udp_rx_connected") /* that got a connected receive socket */          \
	X(RX_DROP_OVERFLOW, "udp_rx_drop_overflow") /* receive buffer; the kernel's count */   \
	X(RX_DROP_TRUNCATED, "udp_rx_drop_truncated")                                          \
	X(RX_DROP_UNADDRESSED, "udp_rx_drop_unaddressed") /* the kernel reported too little */ \
	X(RX_UNREACHABLE, "udp_rx_unreachable")                                                \
	X(RX_OTHER_ERROR, "udp_rx_other_error") /* other ICMP answers */

enum vb_udp_counter {
#define X(symbol, name) VB_UDP_##symbol,
	VB_UDP_COUNTERS(X)
#undef X
		VB_UDP_COUNTER_COUNT
};

/* VB_UDP_COUNTER_COUNT of them. */
const uint64_t *vb_udp_counters(const struct vb_udp *udp);
const char *vb_udp_counter_name(enum vb_udp_counter counter);

#endif
