/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The internals of a UDP link. Its sockets are of one family: IPv6 sockets that also carry IPv4, or
 * IPv4 sockets if there is no IPv6. The arguments of system calls lie in two boxes that are made
 * once.
 */
#ifndef VB_LINK_UDP_PRIV_H
#define VB_LINK_UDP_PRIV_H

#include "link/udp.h"

#include <netinet/in.h>
#include <stdalign.h>
#include <sys/socket.h>

#define VB_UDP_MORE_MAX 255u
#define VB_UDP_TX_BATCH VB_UDP_SEGMENTS_MAX /* a message that is split must fit */
#define VB_UDP_RX_BATCH 32
#define VB_UDP_HOP_LIMIT_DEFAULT 64
#define VB_UDP_IPV4_HEADERS (20 + 8)
#define VB_UDP_TX_CONTROL 128
#define VB_UDP_RX_CONTROL 256

union vb_udp_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct vb_udp_transmitter {
	int fd;
};

/* The default segment size of a connected transmit socket. */
struct vb_udp_gso_default {
	uint16_t length; /* of the segments; 0: none */
	uint16_t last_length; /* the size that the last messages carried … */
	int32_t streak; /* … and how many in a row; ignored below 0 */
};

struct vb_udp_connected_tx {
	bool is_open;
	struct vb_udp_transmitter socket;
	struct vb_udp_route route;
	uint16_t next_ip_id; /* of IPv4 */
	uint32_t sent_since_check;
	struct vb_udp_gso_default gso_default;
};

/* All messages with one source port. */
struct vb_udp_source {
	struct vb_udp_transmitter socket;
	uint16_t port;
	struct vb_udp_route last_route; /* where the last message went … */
	int32_t streak; /* … and how many in a row; ignored below 0 */
	struct vb_udp_connected_tx connected_tx;
};

struct vb_udp_group {
	struct vb_udp_address address;
	int fd;
};

/* udp_connected_rx.c */
struct vb_udp_connected_rx {
	bool is_allowed;
	bool is_open;
	bool is_leaving; /* to be closed once it is empty */
	bool is_mixed; /* may hold other senders' messages, from before it was connected */
	int fd;
	/*
	 * The receiver may hold this many messages, at most, that the sender sent before this
	 * socket existed.
	 */
	uint32_t behind;
	uint32_t taken; /* messages, or looks without result, since the last look at the others */
	struct vb_udp_datagram sender; /* the addresses of all its messages */
	struct vb_udp_datagram last; /* the last sender by other sockets … */
	int32_t streak; /* … and how many in a row; ignored below 0 */
	uint32_t overflow_count;
};

struct vb_udp_outbox {
	struct mmsghdr headers[VB_UDP_TX_BATCH];
	union vb_udp_name names[VB_UDP_TX_BATCH];
	alignas(struct cmsghdr) uint8_t control[VB_UDP_TX_BATCH][VB_UDP_TX_CONTROL];
	/* pieces of a message that is split */
	struct iovec pieces[VB_UDP_IOVECS_MAX + VB_UDP_SEGMENTS_MAX];
};

struct vb_udp_inbox {
	struct mmsghdr headers[VB_UDP_RX_BATCH];
	union vb_udp_name names[VB_UDP_RX_BATCH];
	struct iovec iovecs[VB_UDP_RX_BATCH];
	alignas(struct cmsghdr) uint8_t control[VB_UDP_RX_BATCH][VB_UDP_RX_CONTROL];
	uint8_t *bytes;
	uint32_t batch_length; /* number to ask the kernel for */
	bool was_empty; /* the kernel had none the last time */
	bool is_by_connected_rx; /* the messages came by the connected receive socket … */
	bool is_named; /* … and still carry their sender */
	uint32_t count; /* messages present … */
	uint32_t next; /* … the first that is not completely split … */
	bool is_begun; /* … which has been examined … */
	struct vb_udp_datagram datagram; /* … its first datagram, … */
	/*
	 * … how far it is split (beside the datagram: a copy right after a narrow store waits for
	 * it), …
	 */
	uint32_t offset;
	uint16_t segment_index;
	uint32_t length_left; /* … its remaining bytes … */
	uint32_t segment_length; /* … and its segment length */
	uint32_t overflow_count; /* the kernel's count, which wraps */
};

struct vb_udp {
	int family; /* of all sockets */
	int receiver;
	bool is_receiver_lent; /* by the caller, which closes it */
	int poller; /* an epoll set of the sockets */
	uint32_t source_count;
	struct vb_udp_source sources[VB_UDP_SOURCES_MAX];
	uint32_t group_count;
	uint32_t group_turn; /* counts up: which socket is read next */
	struct vb_udp_group groups[VB_UDP_GROUPS_MAX];
	uint32_t more_count; /* receiving sockets besides our own … */
	int more[VB_UDP_MORE_MAX]; /* … which others own */
	struct vb_udp_connected_rx connected_rx;
	uint32_t ifindex;
	uint32_t receive_buffer_length; /* as requested */
	uint16_t port;
	uint16_t destination_port;
	bool is_segmenting;
	bool is_host_only;
	bool is_connected_tx_wanted;
	bool has_connected_tx_changed;
	bool is_connected_tx_work_due;
	uint64_t *counters; /* these, or the caller's */
	uint64_t own_counters[VB_UDP_COUNTER_COUNT];
	struct vb_udp_outbox outbox;
	struct vb_udp_inbox inbox;
};

/* udp_address.c */
bool vb_udp_address_is_ipv4(const struct vb_udp_address *address);
bool vb_udp_address_is_zero(const struct vb_udp_address *address);
bool vb_udp_address_is_multicast(const struct vb_udp_address *address);
bool vb_udp_address_has_scope(const struct vb_udp_address *address);
struct vb_udp_address vb_udp_address_from_ipv4(struct in_addr ip, uint32_t scope);
/* Returns the name's length; 0 if the family cannot express the address. */
socklen_t vb_udp_address_store(const struct vb_udp_address *address, uint16_t port, int family,
			       union vb_udp_name *name);
struct vb_udp_address vb_udp_address_load(const union vb_udp_name *name, uint16_t *port);

/* udp_socket.c: sockets with all their options, bound; a negative errno if that fails. */
int vb_udp_socket_open_receiver(int family, const struct vb_udp_config *config);
int vb_udp_socket_open_transmitter(int family, uint16_t port, bool is_host_only);
/* With the port of a transmit socket, for one path; not yet connected. */
int vb_udp_socket_open_connected_tx(int transmitter_fd, int family,
				    const struct vb_udp_route *route, uint32_t scope);
/* For the address of a multicast group. */
int vb_udp_socket_open_multicast_receiver(const struct vb_udp_address *group, uint16_t port,
					  uint32_t receive_buffer_length);
/* For one address of this host; not yet connected, and reports no addresses. */
int vb_udp_socket_open_connected_rx(const struct vb_udp_address *address, uint16_t port,
				    uint32_t receive_buffer_length);
uint16_t vb_udp_socket_port(int fd);
void vb_udp_socket_set_receive_buffer(int fd, uint32_t length); /* 0: none */
int vb_udp_socket_enable_ip_fields(int fd, int family); /* traffic class and hop limit */
/* No thread reads the socket: the kernel need not keep what arrives. */
int vb_udp_socket_refuse_input(int fd);

/* udp_receiver.c */
int vb_udp_receiver_family(int fd);
bool vb_udp_receiver_has_ip_fields(int fd);
/* Datagrams that the kernel had no room for, so far. */
uint32_t vb_udp_receiver_overflow_count(int fd);

/* udp_receive.c */
VB_MUST_USE vb_err vb_udp_inbox_init(struct vb_udp_inbox *inbox, uint32_t datagram_length_max);
void vb_udp_inbox_fini(struct vb_udp_inbox *inbox);

/* udp_group.c */
/* The receiver, those besides it and the sockets of groups, in turns; and how many they are. */
int vb_udp_choose_next_socket(struct vb_udp *udp);
uint32_t vb_udp_socket_count(const struct vb_udp *udp);
void vb_udp_leave_all(struct vb_udp *udp);

/* udp_connected_rx.c */
void vb_udp_connected_rx_close(struct vb_udp *udp);
void vb_udp_connected_rx_notice(struct vb_udp *udp, const struct vb_udp_datagram *datagram);
/*
 * Whether the other sockets come before the connected receive socket; and the result of a look at
 * them, or at it.
 */
bool vb_udp_connected_rx_is_turn_of_others(const struct vb_udp *udp);
void vb_udp_connected_rx_on_others(struct vb_udp *udp, uint32_t message_count);
void vb_udp_connected_rx_on_look(struct vb_udp *udp, uint32_t message_count);

/* udp.c */
vb_err vb_udp_err_of(int result); /* the error of a failed system call */
int vb_udp_watch(const struct vb_udp *udp, int fd, uint32_t events); /* adds it to the poller */

/* udp_send.c: the interface that an address refers to; 0: none. */
uint32_t vb_udp_scope_of(const struct vb_udp *udp, const struct vb_udp_address *address);

/* udp_gso_default.c */

/* Whether the socket segments the message correctly by default. */
bool vb_udp_gso_default_is_known(const struct vb_udp_gso_default *gso_default,
				 const struct vb_udp_message *message);
/* To be called for each message that is sent. */
void vb_udp_gso_default_notice(struct vb_udp *udp, struct vb_udp_gso_default *gso_default,
			       const struct vb_udp_message *message);
/* Sets the socket's default to the size that many messages in a row carried, if they did. */
void vb_udp_gso_default_set(struct vb_udp *udp, int fd, struct vb_udp_gso_default *gso_default);

/* udp_connected_tx.c */
void vb_udp_connected_tx_notice(struct vb_udp *udp, const struct vb_udp_message *message);
void vb_udp_connected_tx_close(struct vb_udp *udp, struct vb_udp_source *source);
/* Whether the message may go by this socket, `ahead` messages after the next. */
bool vb_udp_connected_tx_can_take(const struct vb_udp_connected_tx *connected_tx,
				  const struct vb_udp_message *message, uint32_t ahead);
/* The kernel has taken `sent` of the `tried` messages. */
void vb_udp_connected_tx_on_sent(struct vb_udp *udp, struct vb_udp_source *source, uint32_t sent,
				 uint32_t tried);
/*
 * Opens connected transmit sockets and checks their numbers. To be called after all messages that
 * already have a number: asking takes numbers, and a message by such a socket does not carry its
 * path.
 */
void vb_udp_connected_tx_do_work(struct vb_udp *udp);
void vb_udp_connected_tx_on_refused(struct vb_udp *udp, struct vb_udp_source *source, int error);

#endif
