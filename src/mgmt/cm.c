/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The machine and its connections: creation, destruction, outgoing MADs and events, time. A
 * communication ID consists of the prefix of the process and a number that counts up from a random
 * start and is then scrambled. Thus IDs recur late, if ever, even after a restart of the process,
 * and a peer that knows one ID does not know the next.
 */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"
#include "base/heap.h"

#define PREFIX_BITS_MAX 16
#define ID_ROUNDS 4u

static bool is_valid(const struct vb_cm_config *config)
{
	if (!config->connection_max || config->id_prefix_bits > PREFIX_BITS_MAX)
		return false;
	/* There are more IDs than connections. */
	return !(config->id_prefix >> config->id_prefix_bits) &&
	       config->connection_max <= UINT32_MAX >> config->id_prefix_bits;
}

vb_err vb_cm_create(const struct vb_cm_config *config, struct vb_cm **cm_out)
{
	struct vb_prng prng;
	struct vb_cm *cm;

	if (!is_valid(config))
		return VB_EINVAL;
	cm = vb_heap_alloc(1, sizeof(*cm));
	if (!cm)
		return VB_ENOMEM;
	cm->config = *config;
	vb_prng_init(&prng, config->seed);
	cm->transaction_base = vb_prng_next(&prng) << 32;
	cm->salt = vb_prng_next(&prng);
	cm->next_id = (uint32_t)vb_prng_next(&prng);
	cm->id_key = vb_prng_next(&prng);
	vb_list_init(&cm->listeners);
	vb_list_init(&cm->sending);
	vb_list_init(&cm->talking);
	vb_timers_init(&cm->timers);
	cm->slots = vb_heap_alloc(config->connection_max, sizeof(struct vb_cm_connection *));
	if (!cm->slots)
		goto free_cm;
	if (vb_cm_index_init(cm) != VB_OK)
		goto free_slots;
	*cm_out = cm;
	return VB_OK;

free_slots:
	vb_heap_free(cm->slots);
free_cm:
	vb_heap_free(cm);
	return VB_ENOMEM;
}

void vb_cm_destroy(struct vb_cm *cm)
{
	for (uint32_t i = 0; i < cm->config.connection_max; i++)
		vb_heap_free(cm->slots[i]);
	while (vb_list_is_linked(&cm->listeners)) {
		struct vb_cm_listener *listener =
			VB_CONTAINER(cm->listeners.next, struct vb_cm_listener, node);

		vb_list_remove(&listener->node);
		vb_heap_free(listener);
	}
	vb_timers_fini(&cm->timers);
	vb_cm_index_fini(cm);
	vb_heap_free(cm->slots);
	vb_heap_free(cm);
}

const struct vb_cm_counters *vb_cm_counters(const struct vb_cm *cm)
{
	return &cm->counters;
}

/* --- making and freeing ----------------------------------------------------------------------- */

static uint32_t mix(uint64_t value)
{
	value *= UINT64_C(0x9e3779b97f4a7c15);
	value = (value ^ value >> 29) * UINT64_C(0xd6e8feb86659fd93);
	return (uint32_t)(value >> 32);
}

/* A Feistel network over the low `bits`: a permutation. */
static uint32_t scramble(const struct vb_cm *cm, uint32_t value, uint32_t bits)
{
	uint32_t low_bits = bits / 2;
	uint32_t low_mask = (1u << low_bits) - 1;
	uint32_t high_mask = (1u << (bits - low_bits)) - 1;
	uint32_t low = value & low_mask;
	uint32_t high = value >> low_bits & high_mask;

	for (uint32_t i = 0; i < ID_ROUNDS; i++) {
		high ^= mix(cm->id_key + (low | i << 24)) & high_mask;
		low ^= mix(~cm->id_key + (high | i << 24)) & low_mask;
	}
	return high << low_bits | low;
}

static uint32_t claim_id(struct vb_cm *cm)
{
	uint32_t bits = 32 - cm->config.id_prefix_bits;
	uint32_t prefix = bits == 32 ? 0 : cm->config.id_prefix << bits;
	struct vb_cm_key key = { 0 };

	do
		key.number = prefix | scramble(cm, cm->next_id++, bits);
	while (!key.number || vb_cm_index_find(cm, VB_CM_BY_LOCAL_ID, key));
	return key.number;
}

/* A free slot exists: there are fewer connections than slots. */
static uint32_t claim_slot(struct vb_cm *cm)
{
	while (cm->slots[cm->next_slot])
		cm->next_slot = (cm->next_slot + 1) % cm->config.connection_max;
	return cm->next_slot;
}

struct vb_cm_connection *vb_cm_connection_make(struct vb_cm *cm)
{
	struct vb_cm_connection *connection;

	if (cm->connection_count == cm->config.connection_max ||
	    vb_timers_reserve(&cm->timers, cm->connection_count + 1) != VB_OK)
		return NULL;
	connection = vb_heap_alloc(1, sizeof(*connection));
	if (!connection)
		return NULL;
	connection->cm = cm;
	connection->slot = claim_slot(cm);
	connection->self.state = VB_CM_IDLE;
	connection->self.local_id = claim_id(cm);
	connection->self.peer_qpn = VB_MAD_QPN;
	vb_timer_init(&connection->timer, 0);
	vb_list_init(&connection->waiting);
	vb_list_init(&connection->talking);
	vb_list_init(&connection->sending);
	vb_cm_index_add(connection, VB_CM_BY_LOCAL_ID,
			(struct vb_cm_key){ .number = connection->self.local_id });
	cm->slots[connection->slot] = connection;
	cm->connection_count++;
	return connection;
}

vb_err vb_cm_connection_create(struct vb_cm *cm, void *owner,
			       struct vb_cm_connection **connection_out)
{
	struct vb_cm_connection *connection;

	if (cm->connection_count == cm->config.connection_max)
		return VB_ENOSPC;
	connection = vb_cm_connection_make(cm);
	if (!connection)
		return VB_ENOMEM;
	connection->owner = owner;
	*connection_out = connection;
	return VB_OK;
}

static void free_connection(struct vb_cm_connection *connection)
{
	struct vb_cm *cm = connection->cm;

	for (int i = 0; i < VB_CM_INDEX_COUNT; i++)
		vb_cm_index_remove(connection, (enum vb_cm_index)i);
	vb_timer_remove(&cm->timers, &connection->timer);
	vb_list_remove(&connection->talking);
	vb_list_remove(&connection->sending);
	cm->slots[connection->slot] = NULL;
	cm->connection_count--;
	vb_heap_free(connection);
}

void vb_cm_free_if_over(struct vb_cm_connection *connection)
{
	bool is_over = connection->self.state == VB_CM_CLOSED ||
		       connection->self.state == VB_CM_IDLE;

	if (connection->is_orphan && is_over && !connection->is_request_due &&
	    !connection->is_answer_due)
		free_connection(connection);
}

void vb_cm_connection_set_owner(struct vb_cm_connection *connection, void *owner)
{
	connection->owner = owner;
}

enum vb_cm_state vb_cm_connection_state(const struct vb_cm_connection *connection)
{
	return (enum vb_cm_state)connection->self.state;
}

uint32_t vb_cm_connection_id(const struct vb_cm_connection *connection)
{
	return connection->self.local_id;
}

void vb_cm_connection_qp(const struct vb_cm_connection *connection, struct vb_cm_qp *qp)
{
	*qp = connection->qp;
}

/* --- going out -------------------------------------------------------------------------------- */

static void count_sent(struct vb_cm *cm, const struct vb_cm_mad *mad)
{
	cm->counters.sent[load16(mad->bytes + 16) - VB_MAD_REQ]++;
}

static bool take_refusal(struct vb_cm *cm, struct vb_cm_mad *mad)
{
	if (!cm->refusal_count)
		return false;
	*mad = cm->refusals[cm->refusal_first];
	cm->refusal_first = (cm->refusal_first + 1) % VB_CM_REFUSALS;
	cm->refusal_count--;
	return true;
}

/* Sends the answer first: it is about something older. */
static void take_from(struct vb_cm_connection *connection, struct vb_cm_mad *mad)
{
	struct vb_cm *cm = connection->cm;
	bool is_answer = connection->is_answer_due;

	mad->flow = connection->self.flow;
	mad->qpn = connection->self.peer_qpn;
	memcpy(mad->bytes, is_answer ? connection->answer : connection->request, VB_MAD_SIZE);
	if (!is_answer)
		cm->counters.retried += connection->is_retry;
	if (is_answer)
		connection->is_answer_due = false;
	else
		connection->is_request_due = false;
	vb_list_remove(&connection->sending);
	if (connection->is_request_due)
		vb_list_append(&cm->sending, &connection->sending);
	vb_cm_free_if_over(connection);
}

bool vb_cm_take_mad(struct vb_cm *cm, struct vb_cm_mad *mad)
{
	if (!take_refusal(cm, mad)) {
		if (!vb_list_is_linked(&cm->sending))
			return false;
		take_from(VB_CONTAINER(cm->sending.next, struct vb_cm_connection, sending), mad);
	}
	count_sent(cm, mad);
	return true;
}

/* --- events ----------------------------------------------------------------------------------- */

static bool is_opening(enum vb_cm_event_kind kind)
{
	return kind <= VB_CM_SIDR_RESPONSE;
}

static bool has_message(const struct vb_cm_connection *connection, enum vb_cm_event_kind kind)
{
	if (kind == VB_CM_REJECTED || kind == VB_CM_DISCONNECTED)
		return connection->has_closing;
	return is_opening(kind);
}

/* Removes the addresses from the front of a request's private data. */
static void split_private_data(struct vb_cm_event *event)
{
	struct vb_mad *mad = &event->message;
	struct vb_cm_addressee addressee;

	event->private_length = vb_mad_private_size(mad->kind);
	vb_cm_addressee_of(mad, &addressee);
	event->has_ip = addressee.has_service && vb_service_is_ip(addressee.service) &&
			vb_service_ip_parse(mad->private_data, &event->ip);
	if (!event->has_ip)
		return;
	event->private_length -= VB_SERVICE_IP_SIZE;
	memmove(mad->private_data, mad->private_data + VB_SERVICE_IP_SIZE, event->private_length);
	memset(mad->private_data + event->private_length, 0, VB_SERVICE_IP_SIZE);
}

static void describe_event(struct vb_cm_connection *connection, enum vb_cm_event_kind kind,
			   struct vb_cm_event *event)
{
	bool is_new = kind == VB_CM_REQUEST || kind == VB_CM_SIDR_REQUEST;
	enum vb_mad_parsing parsing;

	*event = (struct vb_cm_event){
		.kind = kind,
		.connection = connection,
		.owner = connection->owner,
		.is_timeout = kind == VB_CM_DISCONNECTED && connection->was_timeout,
		.has_message = has_message(connection, kind),
		.flow = connection->self.flow,
	};
	if (is_new) {
		event->listener = connection->listener;
		event->owner = connection->listener->owner;
		connection->is_unseen = false;
	}
	if (!event->has_message)
		return;
	parsing = vb_mad_parse(is_opening(kind) ? connection->opening : connection->closing,
			       VB_MAD_SIZE, &event->message);
	VB_CHECK(parsing == VB_MAD_PARSED);
	split_private_data(event);
}

bool vb_cm_take_event(struct vb_cm *cm, struct vb_cm_event *event)
{
	struct vb_cm_connection *connection;
	uint32_t kind;

	if (!vb_list_is_linked(&cm->talking))
		return false;
	connection = VB_CONTAINER(cm->talking.next, struct vb_cm_connection, talking);
	kind = (uint32_t)__builtin_ctz(connection->events);
	connection->events &= ~(1u << kind);
	describe_event(connection, (enum vb_cm_event_kind)kind, event);
	if (!connection->events)
		vb_list_remove(&connection->talking);
	return true;
}
