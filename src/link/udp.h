/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cable of RoCEv2: UDP sockets of an ordinary user. It moves datagrams with the IP fields that the
 * transport cares about and knows nothing of what is in them, steering excepted. The ICRC of a packet covers fields
 * that the kernel writes, and this is what a sender may rely on: don't-fragment is set; the IPv4 ID is 0, or with
 * segmentation the segment's index, both counted from the message's number if it goes by express; the UDP source port is one of vb_udp_source_port(). One thread at a time
 * uses a link.
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
#define VB_UDP_GROUPS_MAX 1024 /* that a link is in at once: each costs a descriptor */
#define VB_UDP_MESSAGE_MAX 65000 /* bytes, all segments together */

struct vb_udp;

struct vb_udp_address {
	uint8_t ip[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint32_t scope; /* interface index; means something for link-local and multicast addresses */
};

/* Whether it is an address of this host, as the kernel's routing says: a system call or two. */
bool vb_udp_address_is_local(const struct vb_udp_address *address);

/* What messages have in common that take the same way, the source port apart. */
struct vb_udp_way {
	struct vb_udp_address destination;
	struct vb_udp_address source;
	uint8_t traffic_class;
	uint8_t hop_limit;
};

struct vb_udp_config {
	const int *
		receiver; /* of vb_udp_receiver_open(), lent for the link's life; NULL: one of its own */
	uint32_t interface_index; /* for link-local and multicast destinations without a scope; 0: none */
	uint16_t port; /* to receive on; 0: any, see vb_udp_port() */
	uint16_t destination_port; /* to send to; 0: the port to receive on */
	uint32_t source_count; /* transmit sockets; 0: 1 */
	uint16_t source_ports[VB_UDP_SOURCES_MAX]; /* which they shall have; 0: any */
	uint32_t receive_buffer_length; /* wish, as for SO_RCVBUF; 0: the system's default */
	uint32_t datagram_length_max; /* longer ones are dropped, coalesced ones count whole; 0: 65,535 */
	bool is_segmenting; /* one message may be up to 64 datagrams */
	bool is_host_only; /* what is for other hosts is dropped: there, the port is not ours */
	bool is_express_wanted; /* see vb_udp_express() */
	bool is_ipv4_only; /* also where the machine has IPv6; without it, IPv4 is all there is */
};

/*
 * Receives on one port of all addresses, together with other links of this user on the same port (see
 * vb_udp_steer()). VB_EBUSY: somebody else holds a port that was asked for. The caller owns the link and ends it with
 * vb_udp_close().
 */
VB_MUST_USE vb_err vb_udp_open(const struct vb_udp_config *config, struct vb_udp **udp_out);
void vb_udp_close(struct vb_udp *udp);

/* False if the program has closed a descriptor of the link: it moves nothing any more, and needs to be closed. */
bool vb_udp_is_intact(const struct vb_udp *udp);

uint16_t vb_udp_port(const struct vb_udp *udp); /* that it receives on */
uint32_t vb_udp_source_count(const struct vb_udp *udp);
uint16_t vb_udp_source_port(const struct vb_udp *udp, uint32_t source_index);
uint32_t vb_udp_receive_buffer_length(const struct vb_udp *udp); /* as the kernel reports it */

/*
 * How many segments a message may have now: 64, or 1. It falls to 1 for good when a message shows that the kernel or
 * the interface does not segment. Messages with segments are then sent as single datagrams, whose IPv4 ID is 0:
 * an ICRC for the segment's index is wrong from then on.
 */
uint32_t vb_udp_segments_max(const struct vb_udp *udp);

/*
 * For poll() and epoll: readable when there is a datagram, an error to take (vb_udp_take_unreachable()), or room again
 * after vb_udp_send() had to stop. It stays readable until the cause is gone: who waits for it must also take errors. It
 * belongs to the link.
 */
int vb_udp_fd(const struct vb_udp *udp);

/* --- sending ------------------------------------------------------------------------------------ */

/* One datagram, or several of one flow: all segment_length long but the last, which may be shorter. */
struct vb_udp_message {
	struct vb_udp_address destination;
	struct vb_udp_address source; /* an address of this host; all 0: the kernel chooses */
	uint32_t source_index; /* which transmit socket, and so which source port */
	uint16_t segment_length; /* 0: one datagram */
	uint8_t traffic_class; /* DSCP and ECN */
	uint8_t hop_limit; /* 0: 64 */
	bool is_express; /* with this number, by its express (vb_udp_express()); the addresses, class and limit are not looked at */
	uint16_t ip_id;
	const struct iovec *iovecs; /* the bytes, in order; borrowed for the call */
	uint32_t iovec_count;
};

/*
 * Returns how many messages, from the first on, were taken: sent, or dropped and counted (memory that is not
 * there, no route, too long …). Fewer than `count` means that the kernel has no room now.
 */
uint32_t vb_udp_send(struct vb_udp *udp, const struct vb_udp_message *messages, uint32_t count);

/*
 * The express: where many messages in a row go one way, they may go faster, with numbers that count up. Returns the way whose messages from
 * that transmit socket may do so, and the number of the next; NULL if there is none. The two differ from the last time, apart
 * from what was sent since, if vb_udp_has_express_changed() said so. A message with a number that is not the next one is dropped.
 */
const struct vb_udp_way *vb_udp_express(const struct vb_udp *udp, uint32_t source_index,
					uint16_t *next_ip_id);
bool vb_udp_has_express_changed(struct vb_udp *udp);

/*
 * Takes out up to `capacity` destinations where, since the last call, it turned out that nobody has the port, or that there is no such
 * host; returns how many.
 * Costs a system call for each transmit socket: for when the fd woke somebody, or a timer fired.
 */
uint32_t vb_udp_take_unreachable(struct vb_udp *udp, struct vb_udp_address *destinations,
				 uint32_t capacity);

/* --- receiving ---------------------------------------------------------------------------------- */

struct vb_udp_datagram {
	const uint8_t *data; /* the link's; valid until the next vb_udp_receive() */
	uint32_t length;
	struct vb_udp_address source;
	struct vb_udp_address destination; /* its scope is the interface that it came in on */
	uint16_t source_port;
	uint16_t segment_index; /* in what the kernel coalesced: the likely IPv4 ID */
	uint8_t traffic_class; /* 0 if a receiver was lent that does not tell it … */
	uint8_t hop_limit; /* … the same: vb_udp_receiver_tell_class() */
};

/*
 * Never waits. Returns how many datagrams there are in `out`; 0 means none now, and only then may one wait for
 * vb_udp_fd(), which is readable at once if there are some all the same: the link may hold datagrams that the kernel no longer has, and
 * does not look at all its sockets each time. All are of one socket: if one of them was sent to a group, all were.
 */
uint32_t vb_udp_receive(struct vb_udp *udp, struct vb_udp_datagram *out, uint32_t capacity);

/*
 * Whether the sender from which most comes may have a socket of its own, which is faster; at first it may not. For a link that
 * shares its port with no other: what that sender sends to others of the port comes to this link then.
 */
void vb_udp_allow_flow(struct vb_udp *udp, bool is_allowed);

/* The next vb_udp_receive() looks at all sockets: for who sleeps if it finds nothing. */
void vb_udp_look_everywhere(struct vb_udp *udp);

/*
 * Takes part in a multicast group on the link's interface; more than once is the same as once. Every link in the group gets a
 * copy of each datagram that is sent to it, the sender's own too if it is a member. VB_ENOSPC: too many groups;
 * VB_EOPNOTSUPP: these sockets know no such address.
 */
VB_MUST_USE vb_err vb_udp_join(struct vb_udp *udp, const struct vb_udp_address *group);
void vb_udp_leave(struct vb_udp *udp, const struct vb_udp_address *group);

/* Those it is in. */
uint32_t vb_udp_group_count(const struct vb_udp *udp);
struct vb_udp_address vb_udp_group(const struct vb_udp *udp, uint32_t index);

/*
 * All links of one user on one port form a group; a unicast datagram goes to one of them. From now on it goes to number
 * (destination QPN >> shift) & mask, or for QPNs 0 and 1 number `special`, in the order in which they were opened; to any,
 * where there is no such number. When a receiving socket is closed, the last one gets its number. A message of several segments goes where its first
 * does. Any link of the group may call this, for all of it.
 */
VB_MUST_USE vb_err vb_udp_steer(struct vb_udp *udp, uint32_t shift, uint32_t mask,
				uint32_t special);

/* --- receiving sockets -------------------------------------------------------------------------- */

/*
 * A socket to receive on, the last one of its group (see vb_udp_steer()): of `config`, port, receive_buffer_length and
 * is_ipv4_only count. It may be given to other processes. The group's places stay as they are for as long as anybody has
 * each of its sockets open, whoever reads them. Errors as of vb_udp_open().
 */
VB_MUST_USE vb_err vb_udp_receiver_open(const struct vb_udp_config *config, int *fd_out);
void vb_udp_receiver_close(int fd);

/*
 * Traffic class and hop limit of what it receives are told from now on. Costs time with each message. A link that it is lent to needs to be told,
 * too.
 */
VB_MUST_USE vb_err vb_udp_receiver_tell_class(int fd);
void vb_udp_tell_class(struct vb_udp *udp);

uint16_t vb_udp_receiver_port(int fd); /* 0 if the descriptor is no such socket */

/* How many sockets there are on a port, of all addresses; 0 if the kernel does not say. Takes a millisecond. */
uint32_t vb_udp_receivers_on(uint16_t port);

/* Nobody will read it for now: what is in it and what comes is thrown away. */
void vb_udp_receiver_retire(int fd);

/* The opposite. What its last reader left behind, who may have been killed, is thrown away. */
void vb_udp_receiver_adopt(int fd, uint32_t receive_buffer_length);

/* --- counters ----------------------------------------------------------------------------------- */

#define VB_UDP_COUNTERS(X)                                                                     \
	X(TX_MESSAGES, "udp_tx_messages")                                                      \
	X(TX_DATAGRAMS, "udp_tx_datagrams")                                                    \
	X(TX_BYTES, "udp_tx_bytes")                                                            \
	X(TX_EXPRESSES, "udp_tx_expresses") /* opened */                                       \
	X(TX_CUTS,                                                                             \
	  "udp_tx_cuts") /* lengths of segments that an express was told of once for all */    \
	X(TX_LOST_COUNT, "udp_tx_lost_count") /* of an express */                              \
	X(TX_STOPS, "udp_tx_stops") /* the kernel had no room */                               \
	X(TX_SPLIT, "udp_tx_split") /* messages sent as single datagrams */                    \
	X(TX_DROP_MEMORY, "udp_tx_drop_memory") /* was not there */                            \
	X(TX_DROP_TOO_LONG, "udp_tx_drop_too_long") /* for the interface */                    \
	X(TX_DROP_NO_ROUTE, "udp_tx_drop_no_route")                                            \
	X(TX_DROP_FORBIDDEN, "udp_tx_drop_forbidden") /* by a firewall, or a broadcast */      \
	X(TX_DROP_PORT_HELD, "udp_tx_drop_port_held_by_others") /* see is_host_only */         \
	X(TX_DROP_NO_ROOM, "udp_tx_drop_no_room") /* the rest of a message that was begun */   \
	X(TX_DROP_NUMBER, "udp_tx_drop_number") /* not the express's next */                   \
	X(TX_DROP_OTHER, "udp_tx_drop_other") /* such as a source that is not ours */          \
	X(RX_MESSAGES, "udp_rx_messages")                                                      \
	X(RX_DATAGRAMS, "udp_rx_datagrams")                                                    \
	X(RX_BYTES, "udp_rx_bytes")                                                            \
	X(RX_FLOWS, "udp_rx_flows") /* that got a socket of their own */                       \
	X(RX_DROP_OVERFLOW, "udp_rx_drop_overflow") /* as the kernel counts: receive buffer */ \
	X(RX_DROP_TRUNCATED, "udp_rx_drop_truncated")                                          \
	X(RX_DROP_UNADDRESSED, "udp_rx_drop_unaddressed") /* the kernel said too little */     \
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
