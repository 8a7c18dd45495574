/* server/process/share.c -- see share.h */
#include "server/process/share.h"

#include "base/text.h"

static uint64_t *
row_of(struct share *s, uint32_t client)
{
	return (&s->row[text_hash((struct text){ (const char *)&client, sizeof(client) }) %
			SHARE_ROWS]);
}

static uint64_t
add(uint64_t *to, uint64_t n)
{
	return (__atomic_add_fetch(to, n, __ATOMIC_RELAXED));
}

bool
share_take(struct share *s, uint32_t client, uint64_t n, uint64_t limit)
{
	uint64_t *row = row_of(s, client), used, mine;

	if (n > limit)
		return (false);
	used = add(&s->used, n);
	mine = add(row, n);
	if (used + mine <= limit) /* mine <= (limit - others) / 2 */
		return (true);
	add(&s->used, -n);
	add(row, -n);
	return (false);
}

void
share_give(struct share *s, uint32_t client, uint64_t n)
{
	add(row_of(s, client), -n);
	add(&s->used, -n);
}
