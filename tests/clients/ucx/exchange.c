/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UCX program that checks every byte, compiled by tests/clients/run: ucx_perftest measures and
 * checks nothing. Its two ends do the same to each other at the same time: tagged messages,
 * streams, active messages, puts, gets and atomics, of 1 byte to 64 MB. The bytes of a message
 * follow from its sender and a number. Words on the command line choose how the ends find each
 * other and how they wait. With "forever" they exchange messages until one of them is killed, of which
 * the other must learn.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, TAG = 7, TAG_BARRIER = 8, AM_ID = 3, SECONDS_MAX = 120 };

/* What the command line says. */
static const char *server_address; /* NULL: this end is the server */
static uint16_t port;
static bool has_sockaddr, has_events, is_endless, is_short;

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h peer;
static int connection = -1; /* by which the ends found each other, if it was TCP */
static ucs_status_t peer_failure = UCS_OK;
static const char *step = "start"; /* what is being tried, for messages about failures */

static _Noreturn void fail(const char *form, ...)
{
	va_list arguments;

	fprintf(stderr, "exchange: %s: %s: ", server_address ? "client" : "server", step);
	va_start(arguments, form);
	vfprintf(stderr, form, arguments);
	va_end(arguments);
	fprintf(stderr, "\n");
	exit(1);
}

static void expect_ok(ucs_status_t status)
{
	if (status != UCS_OK)
		fail("%s", ucs_status_string(status));
}

/* --- buffers ---------------------------------------------------------------------------------- */

/* Different for each message and end, and not periodic in any power of two. */
static uint8_t byte_of(bool is_from_client, uint32_t message, size_t at)
{
	uint32_t x = (message * 2 + is_from_client) * 2654435761u + (uint32_t)at * 40503u +
		     (uint32_t)(at >> 8) * 97u;

	return (uint8_t)(x >> 13 ^ x >> 3);
}

static uint8_t *make_buffer(size_t length)
{
	uint8_t *buffer = malloc(length + GUARD);

	if (!buffer)
		fail("no memory");
	memset(buffer, GUARD_BYTE, length + GUARD);
	return buffer;
}

static uint8_t *make_message(size_t length, uint32_t message)
{
	uint8_t *buffer = make_buffer(length);

	for (size_t i = 0; i < length; i++)
		buffer[i] = byte_of(server_address, message, i);
	return buffer;
}

/* The buffer has the peer's message, or with is_own that of this end, and nothing behind it. */
static void expect_message(const uint8_t *buffer, size_t length, uint32_t message, bool is_own)
{
	bool is_from_client = (server_address != NULL) == is_own;

	for (size_t i = 0; i < length; i++)
		if (buffer[i] != byte_of(is_from_client, message, i))
			fail("byte %zu of %zu is %u, wanted %u", i, length, buffer[i],
			     byte_of(is_from_client, message, i));
	for (size_t i = length; i < length + GUARD; i++)
		if (buffer[i] != GUARD_BYTE)
			fail("byte %zu behind a buffer of %zu has changed", i - length, length);
}

/* --- waiting ---------------------------------------------------------------------------------- */

/* Drives the worker once; with events it sleeps if there is nothing to do. */
static void progress(void)
{
	struct pollfd event = { .events = POLLIN };
	ucs_status_t status;

	if (ucp_worker_progress(worker) || !has_events)
		return;
	status = ucp_worker_arm(worker);
	if (status == UCS_ERR_BUSY)
		return;
	expect_ok(status);
	expect_ok(ucp_worker_get_efd(worker, &event.fd));
	if (poll(&event, 1, SECONDS_MAX * 1000) == 0)
		fail("no event came");
}

static ucs_status_t status_of(void *request)
{
	ucs_status_t status;

	if (!UCS_PTR_IS_PTR(request))
		return UCS_PTR_STATUS(request);
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
		progress();
	ucp_request_free(request);
	return status;
}

static void finish(void *request)
{
	expect_ok(status_of(request));
}

static const ucp_request_param_t plain;

static void flush(void)
{
	finish(ucp_ep_flush_nbx(peer, &plain));
}

static void *receive(void *buffer, size_t length, ucp_tag_t tag)
{
	return ucp_tag_recv_nbx(worker, buffer, length, tag, ~(ucp_tag_t)0, &plain);
}

static void swap_tagged(const void *out, void *in, size_t length, ucp_tag_t tag)
{
	void *received = receive(in, length, tag);

	finish(ucp_tag_send_nbx(peer, out, length, tag, &plain));
	finish(received);
}

/* Returns when the peer is here as well. */
static void meet(void)
{
	uint8_t out = 1, in;

	swap_tagged(&out, &in, sizeof(out), TAG_BARRIER);
}

/* --- messages --------------------------------------------------------------------------------- */

static void try_tagged(size_t length, uint32_t message)
{
	uint8_t *out = make_message(length, message), *in = make_buffer(length);

	step = "tagged messages";
	swap_tagged(out, in, length, TAG);
	expect_message(in, length, message, false);
	free(out);
	free(in);
}

static void try_stream(size_t length, uint32_t message)
{
	static const ucp_request_param_t whole = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
						   .flags = UCP_STREAM_RECV_FLAG_WAITALL };
	uint8_t *out = make_message(length, message), *in = make_buffer(length);
	size_t received;
	void *request;

	step = "streams";
	request = ucp_stream_recv_nbx(peer, in, length, &received, &whole);
	finish(ucp_stream_send_nbx(peer, out, length, &plain));
	finish(request);
	expect_message(in, length, message, false);
	free(out);
	free(in);
}

static struct {
	uint8_t *in;
	size_t length; /* of the message that is expected */
	uint32_t message; /* its number, which comes as the header */
	bool has_come;
	void *request; /* that fetches the data of a long message */
} active;

static ucs_status_t on_active(void *argument, const void *header, size_t header_length, void *data,
			      size_t length, const ucp_am_recv_param_t *how)
{
	(void)argument;
	if (header_length != sizeof(active.message) ||
	    memcmp(header, &active.message, header_length) != 0 || length != active.length)
		fail("another message has come than was expected");
	if (how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
		active.request = ucp_am_recv_data_nbx(worker, data, active.in, length, &plain);
	else
		memcpy(active.in, data, length);
	active.has_come = true;
	return how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV ? UCS_INPROGRESS : UCS_OK;
}

static void try_active(size_t length, uint32_t message)
{
	uint8_t *out = make_message(length, message);
	void *sent;

	step = "active messages";
	active.in = make_buffer(length);
	active.length = length;
	active.message = message;
	active.has_come = false;
	active.request = NULL;
	meet(); /* the peer's handler has a place for the message */
	sent = ucp_am_send_nbx(peer, AM_ID, &message, sizeof(message), out, length, &plain);
	while (!active.has_come)
		progress();
	finish(active.request);
	finish(sent);
	expect_message(active.in, length, message, false);
	meet();
	free(out);
	free(active.in);
}

/* --- one-sided operations --------------------------------------------------------------------- */

/* Memory of this end that the peer may access, and that of the peer. */
struct window {
	uint8_t *bytes;
	ucp_mem_h memory;
	uint64_t remote;
	ucp_rkey_h key;
};

static void open_window(struct window *window, size_t length)
{
	ucp_mem_map_params_t parameters = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
							  UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					    .length = length };
	uint64_t address;
	uint8_t remote_key[1024];
	size_t key_length;
	void *key;

	window->bytes = make_buffer(length);
	parameters.address = window->bytes;
	address = (uintptr_t)window->bytes;
	expect_ok(ucp_mem_map(context, &parameters, &window->memory));
	expect_ok(ucp_rkey_pack(context, window->memory, &key, &key_length));
	if (key_length > sizeof(remote_key))
		fail("a key of %zu bytes", key_length);
	swap_tagged(&address, &window->remote, sizeof(address), TAG);
	swap_tagged(key, remote_key, key_length, TAG);
	expect_ok(ucp_ep_rkey_unpack(peer, remote_key, &window->key));
	ucp_rkey_buffer_release(key);
}

static void close_window(struct window *window)
{
	meet();
	ucp_rkey_destroy(window->key);
	expect_ok(ucp_mem_unmap(context, window->memory));
	free(window->bytes);
}

static void try_put_and_get(size_t length, uint32_t message)
{
	uint8_t *out = make_message(length, message), *in = make_buffer(length);
	struct window window;

	step = "put and get";
	open_window(&window, length);
	finish(ucp_put_nbx(peer, out, length, window.remote, window.key, &plain));
	flush();
	meet();
	expect_message(window.bytes, length, message, false);
	finish(ucp_get_nbx(peer, in, length, window.remote, window.key, &plain));
	flush();
	expect_message(in, length, message, true);
	close_window(&window);
	free(out);
	free(in);
}

static uint64_t masked(uint64_t value, size_t size)
{
	return size == sizeof(uint32_t) ? (uint32_t)value : value;
}

/* Does one atomic operation of 4 or 8 bytes at the peer, and returns what was there before. */
static uint64_t fetch(struct window *window, ucp_atomic_op_t operation, uint64_t operand,
		      uint64_t reply, size_t size)
{
	ucp_request_param_t how = { .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
						    UCP_OP_ATTR_FIELD_REPLY_BUFFER,
				    .datatype = ucp_dt_make_contig(size),
				    .reply_buffer = &reply };

	finish(ucp_atomic_op_nbx(peer, operation, &operand, 1, window->remote, window->key, &how));
	return masked(reply, size);
}

static void post(struct window *window, ucp_atomic_op_t operation, uint64_t operand, size_t size)
{
	ucp_request_param_t how = { .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE,
				    .datatype = ucp_dt_make_contig(size) };

	finish(ucp_atomic_op_nbx(peer, operation, &operand, 1, window->remote, window->key, &how));
	flush();
}

static void expect_value(uint64_t is, uint64_t wanted, size_t size)
{
	if (is != masked(wanted, size))
		fail("a number of %zu bytes is %#llx, wanted %#llx", size, (unsigned long long)is,
		     (unsigned long long)masked(wanted, size));
}

static void try_atomics(size_t size)
{
	const uint64_t start = 0xfffffffffffffff0u, one = 0x0123456789abcdefu;
	struct window window;
	uint64_t value = start;

	step = "atomics";
	open_window(&window, sizeof(value) * 2);
	memset(window.bytes, 0, sizeof(value) * 2);
	memcpy(window.bytes, &value, size);
	meet();
	for (uint64_t i = 0; i < 100; i++) /* the sum passes zero on its way */
		expect_value(fetch(&window, UCP_ATOMIC_OP_ADD, 1, 0, size), start + i, size);
	post(&window, UCP_ATOMIC_OP_ADD, 7, size);
	value = start + 107;
	expect_value(fetch(&window, UCP_ATOMIC_OP_SWAP, one, 0, size), value, size);
	/* The operand is what must be there; the reply buffer brings the new value. */
	expect_value(fetch(&window, UCP_ATOMIC_OP_CSWAP, one + 1, 5, size), one, size);
	expect_value(fetch(&window, UCP_ATOMIC_OP_CSWAP, masked(one, size), 5, size), one, size);
	expect_value(fetch(&window, UCP_ATOMIC_OP_ADD, 0, 0, size), 5, size);
	meet();
	value = 0;
	memcpy(&value, window.bytes, size);
	expect_value(value, 5, size);
	for (size_t i = size; i < sizeof(value) * 2; i++)
		if (window.bytes[i])
			fail("byte %zu behind a number of %zu bytes has changed", i - size, size);
	close_window(&window);
}

/* --- finding each other ----------------------------------------------------------------------- */

static void on_failure(void *argument, ucp_ep_h failed, ucs_status_t status)
{
	(void)argument;
	(void)failed;
	peer_failure = status;
}

static void make_worker(void)
{
	static const ucp_params_t parameters = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG | UCP_FEATURE_STREAM | UCP_FEATURE_AM |
			    UCP_FEATURE_RMA | UCP_FEATURE_AMO32 | UCP_FEATURE_AMO64 |
			    UCP_FEATURE_WAKEUP,
	};
	static const ucp_worker_params_t single = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	static const ucp_am_handler_param_t handler = {
		.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
		.id = AM_ID,
		.cb = on_active,
	};

	expect_ok(ucp_init(&parameters, NULL, &context));
	expect_ok(ucp_worker_create(context, &single, &worker));
	expect_ok(ucp_worker_set_am_recv_handler(worker, &handler));
}

static void connect_to(ucp_ep_params_t *parameters)
{
	parameters->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
				  UCP_EP_PARAM_FIELD_ERR_HANDLER;
	parameters->err_mode = UCP_ERR_HANDLING_MODE_PEER;
	parameters->err_handler.cb = on_failure;
	expect_ok(ucp_ep_create(worker, parameters, &peer));
}

static struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (text && inet_pton(AF_INET, text, &address.sin_addr) != 1)
		fail("%s is no IPv4 address", text);
	return address;
}

static void on_connect(ucp_conn_request_h request, void *argument)
{
	*(ucp_conn_request_h *)argument = request;
}

static void listen_for_peer(void)
{
	struct sockaddr_in address = address_of(NULL);
	ucp_conn_request_h request = NULL;
	ucp_listener_params_t here = {
		.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR |
			      UCP_LISTENER_PARAM_FIELD_CONN_HANDLER,
		.sockaddr = { (struct sockaddr *)&address, sizeof(address) },
		.conn_handler = { on_connect, &request },
	};
	ucp_ep_params_t there = { .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST };
	ucp_listener_h listener;

	expect_ok(ucp_listener_create(worker, &here, &listener));
	while (!request)
		progress();
	there.conn_request = request;
	connect_to(&there);
	meet();
	ucp_listener_destroy(listener);
}

static void connect_by_sockaddr(void)
{
	struct sockaddr_in address = address_of(server_address);
	ucp_ep_params_t there = {
		.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
		.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
		.sockaddr = { (struct sockaddr *)&address, sizeof(address) },
	};

	connect_to(&there);
	meet();
}

/* A TCP connection, over which the ends exchange the addresses of their workers. */
static int open_socket(void)
{
	struct sockaddr_in address = address_of(server_address);
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0), accepted;

	if (server_address) {
		if (connect(listener, (struct sockaddr *)&address, sizeof(address)))
			fail("connect: %s", strerror(errno));
		return listener;
	}
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		fail("listen: %s", strerror(errno));
	accepted = accept(listener, NULL, NULL);
	close(listener);
	return accepted;
}

static void connect_by_addresses(void)
{
	ucp_ep_params_t there = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *address;
	uint8_t remote[4096];
	size_t length, remote_length;

	connection = open_socket();
	expect_ok(ucp_worker_get_address(worker, &address, &length));
	if (write(connection, &length, sizeof(length)) != sizeof(length) ||
	    write(connection, address, length) != (ssize_t)length ||
	    recv(connection, &remote_length, sizeof(length), MSG_WAITALL) != sizeof(length) ||
	    remote_length > sizeof(remote) ||
	    recv(connection, remote, remote_length, MSG_WAITALL) != (ssize_t)remote_length)
		fail("the ends could not exchange their addresses");
	there.address = (const ucp_address_t *)remote;
	connect_to(&there);
	ucp_worker_release_address(worker, address);
	meet();
}

/* --- the whole -------------------------------------------------------------------------------- */

static void try_all(void)
{
	static const size_t lengths[] = { 1,	 8,	 63,	 64,	  1000,	    4096,    8191,
					  65536, 100003, 262144, 1000003, 10000019, 67108864 };
	size_t count = sizeof(lengths) / sizeof(lengths[0]) - (is_short ? 2 : 0);

	for (uint32_t i = 0; i < count; i++) {
		try_tagged(lengths[i], 4 * i);
		try_stream(lengths[i], 4 * i + 1);
		try_active(lengths[i], 4 * i + 2);
		try_put_and_get(lengths[i], 4 * i + 3);
	}
	try_atomics(sizeof(uint32_t));
	try_atomics(sizeof(uint64_t));
}

/* One end is killed while messages are under way. The other must get an error and not wait. */
static _Noreturn void exchange_forever(void)
{
	enum { LENGTH = 100000 };
	uint8_t *out = make_message(LENGTH, 0), *in = make_buffer(LENGTH);
	ucs_status_t status = UCS_OK;

	step = "a peer that dies";
	printf("exchange: under way\n");
	fflush(stdout);
	while (status == UCS_OK && peer_failure == UCS_OK) {
		void *received = receive(in, LENGTH, TAG);

		status = status_of(ucp_tag_send_nbx(peer, out, LENGTH, TAG, &plain));
		while (peer_failure == UCS_OK && UCS_PTR_IS_PTR(received) &&
		       ucp_request_check_status(received) == UCS_INPROGRESS)
			progress();
		if (peer_failure == UCS_OK && UCS_PTR_IS_PTR(received))
			ucp_request_free(received);
	}
	while (peer_failure == UCS_OK)
		progress();
	printf("exchange: the peer has died: %s\n", ucs_status_string(peer_failure));
	exit(1);
}

/* The end that leaves first can no longer answer: so both stay until both have all answers. */
static void await_other_end(void)
{
	char byte = 1;

	if (write(connection, &byte, 1) != 1)
		fail("the peer has gone");
	while (recv(connection, &byte, 1, MSG_DONTWAIT) < 0)
		ucp_worker_progress(worker);
	close(connection);
}

static void leave(void)
{
	static const ucp_request_param_t forced = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
						    .flags = UCP_EP_CLOSE_FLAG_FORCE };
	ucs_status_t status;

	if (connection >= 0) {
		flush();
		await_other_end();
	}
	/* By sockaddr, the end that closes first resets the connection of the other. */
	status = status_of(ucp_ep_close_nbx(peer, connection >= 0 ? &forced : &plain));
	if (status != UCS_OK && status != UCS_ERR_CONNECTION_RESET)
		fail("closing: %s", ucs_status_string(status));
	ucp_worker_destroy(worker);
	ucp_cleanup(context);
}

static void read_words(int count, char **words)
{
	for (int i = 1; i < count; i++) {
		if (strcmp(words[i], "sockaddr") == 0)
			has_sockaddr = true;
		else if (strcmp(words[i], "events") == 0)
			has_events = true;
		else if (strcmp(words[i], "forever") == 0)
			is_endless = true;
		else if (strcmp(words[i], "short") == 0)
			is_short = true;
		else if (strcmp(words[i], "-p") == 0 && i + 1 < count)
			port = (uint16_t)atoi(words[++i]);
		else
			server_address = words[i];
	}
}

int main(int count, char **words)
{
	read_words(count, words);
	alarm(SECONDS_MAX);
	make_worker();
	if (!has_sockaddr)
		connect_by_addresses();
	else if (server_address)
		connect_by_sockaddr();
	else
		listen_for_peer();
	if (is_endless)
		exchange_forever();
	try_all();
	step = "the end";
	meet();
	printf("exchange: all bytes were right\n");
	leave();
	return 0;
}
