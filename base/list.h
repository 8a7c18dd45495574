/* base/list.h -- doubly linked list whose links live in the members.
 *
 * A head is a link that points at itself when empty.  A member that is in no list has been through
 * list_init() or list_del(), so list_linked() tells the truth and list_del() may be repeated.
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

/* First member taken out of the list, or NULL. */
static inline struct list *
list_pop(struct list *head)
{
	struct list *l = head->next;

	if (l == head)
		return (NULL);
	list_del(l);
	return (l);
}

/* All of *from behind the members of *to; *from is empty then. */
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
#define list_foreach_safe(l, tmp, head) \
	for ((l) = (head)->next, (tmp) = (l)->next; (l) != (head); (l) = (tmp), (tmp) = (l)->next)

#endif
