/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for librpma, which tests/clients/rpma.sh builds and runs: the server lends a block of
 * memory, the client writes a pattern there piece by piece, flushes it, reads it back and compares.
 * Then the client writes a word atomically, sends a message with the checksum of the block, and the
 * server compares its memory with it and answers. Either end exits with 0 only if all was right.
 */
#include <librpma.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 4 << 20, PIECE_BYTES = 64 << 10, MESSAGE_BYTES = 64, DESCRIPTOR_BYTES = 64 };

struct note {
	uint64_t checksum;
	uint64_t word;
};

struct end {
	struct rpma_peer *peer;
	struct rpma_conn *conn;
	struct rpma_mr_local *block;
	struct rpma_mr_local *messages; /* one that is sent, one that is received */
	uint8_t *memory;
	uint8_t *message;
};

/* What the server tells the client about its block, as private data of the connection. */
struct introduction {
	uint8_t size;
	uint8_t descriptor[DESCRIPTOR_BYTES];
};

static void must(int result, const char *what)
{
	if (!result)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(result));
	exit(1);
}

static uint64_t checksum_of(const uint8_t *memory)
{
	uint64_t sum = 14695981039346656037u;

	for (size_t i = 0; i < BLOCK_BYTES; i++)
		sum = (sum ^ memory[i]) * 1099511628211u;
	return sum;
}

static uint8_t *allocate(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED) {
		perror("mmap");
		exit(1);
	}
	return memory;
}

static void open_end(struct end *end, const char *address, enum rpma_util_ibv_context_type type)
{
	struct ibv_context *device = NULL;
	int usage = RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC |
		    RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY;

	must(rpma_utils_get_ibv_context(address, type, &device), "rpma_utils_get_ibv_context");
	must(rpma_peer_new(device, &end->peer), "rpma_peer_new");
	end->memory = allocate(BLOCK_BYTES);
	end->message = allocate(2 * MESSAGE_BYTES);
	must(rpma_mr_reg(end->peer, end->memory, BLOCK_BYTES, usage, &end->block), "rpma_mr_reg");
	must(rpma_mr_reg(end->peer, end->message, 2 * MESSAGE_BYTES,
			 RPMA_MR_USAGE_SEND | RPMA_MR_USAGE_RECV, &end->messages),
	     "rpma_mr_reg");
}

static void await_event(struct rpma_conn *conn, enum rpma_conn_event wanted)
{
	enum rpma_conn_event event;

	must(rpma_conn_next_event(conn, &event), "rpma_conn_next_event");
	if (event == wanted)
		return;
	fprintf(stderr, "event: %s\n", rpma_utils_conn_event_2str(event));
	exit(1);
}

static void await_completion(struct end *end, enum ibv_wc_opcode opcode)
{
	struct rpma_cq *cq = NULL;
	struct ibv_wc completion;
	int result;

	must(rpma_conn_get_cq(end->conn, &cq), "rpma_conn_get_cq");
	while ((result = rpma_cq_get_wc(cq, 1, &completion, NULL)) == RPMA_E_NO_COMPLETION)
		must(rpma_cq_wait(cq), "rpma_cq_wait");
	must(result, "rpma_cq_get_wc");
	if (completion.status == IBV_WC_SUCCESS && completion.opcode == opcode)
		return;
	fprintf(stderr, "completion: %s, opcode %d\n", ibv_wc_status_str(completion.status),
		completion.opcode);
	exit(1);
}

static void post_receive(struct end *end)
{
	must(rpma_recv(end->conn, end->messages, MESSAGE_BYTES, MESSAGE_BYTES, NULL), "rpma_recv");
}

static void send_note(struct end *end, uint64_t checksum, uint64_t word)
{
	struct note note = { .checksum = checksum, .word = word };

	memcpy(end->message, &note, sizeof(note));
	must(rpma_send(end->conn, end->messages, 0, MESSAGE_BYTES, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "rpma_send");
}

static struct note received_note(struct end *end)
{
	struct note note;

	memcpy(&note, end->message + MESSAGE_BYTES, sizeof(note));
	return note;
}

static int serve(struct end *end, const char *address, const char *port)
{
	struct introduction introduction = { 0 };
	struct rpma_conn_private_data data = { .ptr = &introduction, .len = sizeof(introduction) };
	struct rpma_ep *endpoint = NULL;
	struct rpma_conn_req *request = NULL;
	uint64_t word = 0;
	size_t size = 0;
	struct note note;

	must(rpma_ep_listen(end->peer, address, port, &endpoint), "rpma_ep_listen");
	must(rpma_mr_get_descriptor_size(end->block, &size), "rpma_mr_get_descriptor_size");
	introduction.size = (uint8_t)size;
	must(rpma_mr_get_descriptor(end->block, introduction.descriptor), "rpma_mr_get_descriptor");
	must(rpma_ep_next_conn_req(endpoint, NULL, &request), "rpma_ep_next_conn_req");
	must(rpma_conn_req_recv(request, end->messages, MESSAGE_BYTES, MESSAGE_BYTES, NULL),
	     "rpma_conn_req_recv");
	must(rpma_conn_req_connect(&request, &data, &end->conn), "rpma_conn_req_connect");
	await_event(end->conn, RPMA_CONN_ESTABLISHED);
	await_completion(end, IBV_WC_RECV);
	note = received_note(end);
	memcpy(&word, end->memory, sizeof(word));
	send_note(end, checksum_of(end->memory), word);
	await_completion(end, IBV_WC_SEND);
	await_event(end->conn, RPMA_CONN_CLOSED);
	must(rpma_ep_shutdown(&endpoint), "rpma_ep_shutdown");
	return note.checksum != checksum_of(end->memory) || note.word != word;
}

static void write_block(struct end *end, struct rpma_mr_remote *remote)
{
	for (size_t at = 0; at < BLOCK_BYTES; at += PIECE_BYTES) {
		must(rpma_write(end->conn, remote, at, end->block, at, PIECE_BYTES,
				RPMA_F_COMPLETION_ON_ERROR, NULL),
		     "rpma_write");
		if (at / PIECE_BYTES % 4 != 3)
			continue;
		must(rpma_flush(end->conn, remote, at, PIECE_BYTES, RPMA_FLUSH_TYPE_VISIBILITY,
				RPMA_F_COMPLETION_ALWAYS, NULL),
		     "rpma_flush");
		await_completion(end, IBV_WC_RDMA_READ);
	}
}

static void read_block(struct end *end, struct rpma_mr_remote *remote)
{
	memset(end->memory, 0, BLOCK_BYTES);
	for (size_t at = 0; at < BLOCK_BYTES; at += PIECE_BYTES) {
		must(rpma_read(end->conn, end->block, at, remote, at, PIECE_BYTES,
			       RPMA_F_COMPLETION_ALWAYS, NULL),
		     "rpma_read");
		await_completion(end, IBV_WC_RDMA_READ);
	}
}

static void connect_to(struct end *end, const char *address, const char *port,
		       struct rpma_mr_remote **remote)
{
	struct rpma_conn_private_data data = { 0 };
	struct rpma_conn_req *request = NULL;
	struct introduction introduction;

	must(rpma_conn_req_new(end->peer, address, port, NULL, &request), "rpma_conn_req_new");
	must(rpma_conn_req_connect(&request, NULL, &end->conn), "rpma_conn_req_connect");
	await_event(end->conn, RPMA_CONN_ESTABLISHED);
	must(rpma_conn_get_private_data(end->conn, &data), "rpma_conn_get_private_data");
	memcpy(&introduction, data.ptr, sizeof(introduction));
	must(rpma_mr_remote_from_descriptor(introduction.descriptor, introduction.size, remote),
	     "rpma_mr_remote_from_descriptor");
}

static int ask(struct end *end, const char *address, const char *port)
{
	const char word[8] = "verbatim";
	struct rpma_mr_remote *remote = NULL;
	uint64_t checksum, number;

	connect_to(end, address, port, &remote);
	for (size_t i = 0; i < BLOCK_BYTES; i++)
		end->memory[i] = (uint8_t)(i * 131 + i / 4096);
	checksum = checksum_of(end->memory);
	write_block(end, remote);
	read_block(end, remote);
	if (checksum_of(end->memory) != checksum) {
		fprintf(stderr, "other bytes came back than were written\n");
		return 1;
	}
	must(rpma_atomic_write(end->conn, remote, 0, word, RPMA_F_COMPLETION_ALWAYS, NULL),
	     "rpma_atomic_write");
	await_completion(end, IBV_WC_RDMA_WRITE);
	memcpy(end->memory, word, sizeof(word));
	memcpy(&number, word, sizeof(number));
	post_receive(end);
	send_note(end, checksum_of(end->memory), number);
	await_completion(end, IBV_WC_SEND);
	await_completion(end, IBV_WC_RECV);
	must(rpma_mr_remote_delete(&remote), "rpma_mr_remote_delete");
	must(rpma_conn_disconnect(end->conn), "rpma_conn_disconnect");
	await_event(end->conn, RPMA_CONN_CLOSED);
	return received_note(end).checksum != checksum_of(end->memory) ||
	       received_note(end).word != number;
}

int main(int argc, char **argv)
{
	struct end end = { 0 };
	int is_server = argc == 4 && !strcmp(argv[1], "server");
	int status;

	if (argc != 4) {
		fprintf(stderr, "usage: mirror server|client <address> <port>\n");
		return 2;
	}
	open_end(&end, argv[2],
		 is_server ? RPMA_UTIL_IBV_CONTEXT_LOCAL : RPMA_UTIL_IBV_CONTEXT_REMOTE);
	status = is_server ? serve(&end, argv[2], argv[3]) : ask(&end, argv[2], argv[3]);
	must(rpma_conn_delete(&end.conn), "rpma_conn_delete");
	must(rpma_mr_dereg(&end.block), "rpma_mr_dereg");
	must(rpma_mr_dereg(&end.messages), "rpma_mr_dereg");
	must(rpma_peer_delete(&end.peer), "rpma_peer_delete");
	printf("%s\n", status ? "the block is wrong" : "the block is right");
	return status;
}
