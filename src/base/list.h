/* SPDX-License-Identifier: BSD-2-Clause */
/* A doubly linked ring whose links live inside the objects. An unlinked link points to itself. */
#ifndef VB_BASE_LIST_H
#define VB_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A store through a link that is reached from another link may be a store to the head inside
 * another struct. gcc 12 does not always see that when it optimises at link time: it kept the first
 * member of a list in a register over a loop that moved that member. Hence the attribute.
 */
struct __attribute__((may_alias)) vb_link {
	struct vb_link *next;
	struct vb_link *prev;
};

#define VB_CONTAINER(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

static inline void vb_link_init(struct vb_link *link)
{
	link->next = link;
	link->prev = link;
}

static inline bool vb_link_is_linked(const struct vb_link *link)
{
	return link->next != link;
}

static inline void vb_link_append(struct vb_link *head, struct vb_link *link)
{
	link->prev = head->prev;
	link->next = head;
	head->prev->next = link;
	head->prev = link;
}

static inline void vb_link_remove(struct vb_link *link)
{
	link->prev->next = link->next;
	link->next->prev = link->prev;
	vb_link_init(link);
}

/* Moves all members of one list to the end of another. */
static inline void vb_link_append_all(struct vb_link *head, struct vb_link *from)
{
	while (vb_link_is_linked(from)) {
		struct vb_link *first = from->next;

		vb_link_remove(first);
		vb_link_append(head, first);
	}
}

#endif
