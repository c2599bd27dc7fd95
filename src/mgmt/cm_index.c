/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lookup of connections by our numbers and the peer's: chained hash tables whose links are in the
 * connections. The hash is salted, so that an attacker cannot choose numbers that all fall into one
 * chain.
 */
#include "mgmt/cm_priv.h"

#include "base/bytes.h"
#include "base/heap.h"

#define BUCKETS_MAX 4096u

vb_err vb_cm_index_init(struct vb_cm *cm)
{
	uint32_t bucket_count = power_of_two_above(min32(cm->config.connection_max, BUCKETS_MAX));

	cm->bucket_mask = bucket_count - 1;
	for (int i = 0; i < VB_CM_INDEX_COUNT; i++) {
		cm->buckets[i] = vb_heap_alloc(bucket_count, sizeof(struct vb_cm_connection *));
		if (!cm->buckets[i]) {
			vb_cm_index_fini(cm);
			return VB_ENOMEM;
		}
	}
	return VB_OK;
}

void vb_cm_index_fini(struct vb_cm *cm)
{
	for (int i = 0; i < VB_CM_INDEX_COUNT; i++) {
		vb_heap_free(cm->buckets[i]);
		cm->buckets[i] = NULL;
	}
}

struct vb_cm_key vb_cm_key_of_peer(const struct vb_cm_arrival *arrival, uint32_t number,
				   uint64_t guid)
{
	return (struct vb_cm_key){ number, guid, arrival->reply.destination };
}

static struct vb_cm_connection **bucket_of(const struct vb_cm *cm, enum vb_cm_index index,
					   struct vb_cm_key key)
{
	uint64_t hash = (key.number ^ cm->salt) * UINT64_C(0x9e3779b97f4a7c15);

	hash = (hash ^ hash >> 32 ^ key.scope) * UINT64_C(0xd6e8feb86659fd93);
	hash = (hash ^ hash >> 32 ^ load64(key.address.raw)) * UINT64_C(0x9e3779b97f4a7c15);
	hash = (hash ^ hash >> 32 ^ load64(key.address.raw + 8)) * UINT64_C(0xd6e8feb86659fd93);
	return &cm->buckets[index][(hash >> 32) & cm->bucket_mask];
}

static bool is_same(struct vb_cm_key a, struct vb_cm_key b)
{
	return a.number == b.number && a.scope == b.scope && vb_gid_equal(&a.address, &b.address);
}

void vb_cm_index_add(struct vb_cm_connection *connection, enum vb_cm_index index,
		     struct vb_cm_key key)
{
	struct vb_cm_entry *entry = &connection->entries[index];
	struct vb_cm_connection **bucket = bucket_of(connection->cm, index, key);

	VB_CHECK(!entry->is_in);
	*entry = (struct vb_cm_entry){ .next = *bucket, .key = key, .is_in = true };
	*bucket = connection;
}

void vb_cm_index_remove(struct vb_cm_connection *connection, enum vb_cm_index index)
{
	struct vb_cm_entry *entry = &connection->entries[index];
	struct vb_cm_connection **at;

	if (!entry->is_in)
		return;
	at = bucket_of(connection->cm, index, entry->key);
	while (*at != connection)
		at = &(*at)->entries[index].next;
	*at = entry->next;
	entry->is_in = false;
}

struct vb_cm_connection *vb_cm_index_find(const struct vb_cm *cm, enum vb_cm_index index,
					  struct vb_cm_key key)
{
	struct vb_cm_connection *at = *bucket_of(cm, index, key);

	while (at && !is_same(at->entries[index].key, key))
		at = at->entries[index].next;
	return at;
}
