/* wire/codec/pieces.c -- see pieces.h */
#include <errno.h>
#include "wire/codec/pieces.h"

/* "a-" or "a-b" */
static bool
range_read(struct text t, struct piece *p)
{
	struct text from;

	if (!text_next(&t, '-', &from) || t.p == NULL || text_u64(from, &p->from) < 0 ||
	    p->from >= INT64_MAX)
		return (false);
	p->to = UINT64_MAX;
	if (t.n == 0)
		return (true);
	if (text_u64(t, &p->to) < 0 || p->to >= INT64_MAX || p->from > p->to)
		return (false);
	p->to++;
	return (true);
}

static bool
piece_read(struct text t, struct piece *p)
{
	t = text_trim(t);
	return (text_next(&t, ' ', &p->path) && p->path.n != 0 && t.p != NULL &&
		range_read(text_trim(t), p));
}

int
pieces_read(struct text value, struct piece v[PIECES_MAX])
{
	struct text part;
	unsigned n = 0;

	while (text_next(&value, ',', &part)) {
		if (n == PIECES_MAX || !piece_read(part, &v[n++]))
			return (-EINVAL);
	}
	return ((int)n);
}
