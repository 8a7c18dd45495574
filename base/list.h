/* base/list.h -- doubly linked list; the links are in the members.
 *
 * The head of an empty list points at itself.  A member outside of all lists has been through
 * list_init() or list_del().  So list_linked() is right, and list_del() may be repeated.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include "base/must.h"

struct list {
	struct list *next, *prev;
};

static inline void
list_init(struct list *l)
{
	l->next = l->prev = l;
}

static inline bool
list_empty(const struct list *l)
{
	return (l->next == l);
}

static inline bool
list_linked(const struct list *l)
{
	return (l->next != l);
}

static inline void
list_add_tail(struct list *head, struct list *l)
{
	l->prev = head->prev;
	l->next = head;
	head->prev->next = l;
	head->prev = l;
}

static inline void
list_add_head(struct list *head, struct list *l)
{
	l->next = head->next;
	l->prev = head;
	head->next->prev = l;
	head->next = l;
}

static inline void
list_del(struct list *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	l->next = l->prev = l;
}

/* Removes and returns the first member, or NULL. */
static inline struct list *
list_pop(struct list *head)
{
	struct list *l = head->next;

	if (l == head)
		return (NULL);
	list_del(l);
	return (l);
}

/* Moves all members of *from after those of *to. */
static inline void
list_splice_tail(struct list *to, struct list *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#define list_entry(l, type, field) container_of(l, type, field)
/* Visits the members in order; the body may remove the current one. */
#define list_each(p, head, field)                                                                  \
	for (struct list *at_ = (head)->next, *next_;                                              \
	     at_ != (head) && ((p) = list_entry(at_, __typeof__(*(p)), field), next_ = at_->next); \
	     at_ = next_)

#endif
