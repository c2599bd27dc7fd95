/* SPDX-License-Identifier: BSD-2-Clause */
/* A doubly linked ring whose nodes live inside the objects. An unlinked node points to itself. */
#ifndef VB_BASE_LIST_H
#define VB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A store through a node that is reached from another node may be a store to the head inside
 * another struct. gcc 12 does not always see that when it optimises at link time: it kept the first
 * member of a list in a register over a loop that moved that member. Hence the attribute.
 */
struct __attribute__((may_alias)) vb_list_node {
	struct vb_list_node *next;
	struct vb_list_node *prev;
};

#define VB_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void vb_list_init(struct vb_list_node *node)
{
	node->next = node;
	node->prev = node;
}

static inline bool vb_list_is_linked(const struct vb_list_node *node)
{
	return node->next != node;
}

static inline void vb_list_append(struct vb_list_node *head, struct vb_list_node *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

static inline void vb_list_remove(struct vb_list_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	vb_list_init(node);
}

/* Moves all members of one list to the end of another. */
static inline void vb_list_append_all(struct vb_list_node *head, struct vb_list_node *from)
{
	while (vb_list_is_linked(from)) {
		struct vb_list_node *first = from->next;

		vb_list_remove(first);
		vb_list_append(head, first);
	}
}

#endif
