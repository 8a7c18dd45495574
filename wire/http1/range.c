#include "wire/http1/range.h"

#include <errno.h>
#include <string.h>

static bool
read_number(struct text t, uint64_t *out)
{
	int err = text_u64(t, out);

	if (err == -ERANGE)
		*out = UINT64_MAX;
	return (err != -EINVAL);
}

bool
range_bytes(struct text header, struct text *set)
{
	struct text unit;

	*set = header;
	return (text_next(set, '=', &unit) && text_ieq(unit, TEXT("bytes")) && set->n > 0 &&
		set->p[0] != ' ' && set->p[0] != '\t');
}

static bool
read_part(struct text spec, struct range_part *p)
{
	struct text first;
	uint64_t last = UINT64_MAX;

	if (!text_next(&spec, '-', &first) || spec.p == NULL)
		return (false);
	p->from = RANGE_TAIL;
	if (first.n == 0)
		return (read_number(spec, &p->to));
	if (!read_number(first, &p->from) || (spec.n > 0 && !read_number(spec, &last)) ||
	    last < p->from)
		return (false);
	p->from = p->from == RANGE_TAIL ? RANGE_TAIL - 1 : p->from;
	p->to = last == UINT64_MAX ? last : last + 1;
	return (true);
}

int
range_next(struct text *set, struct range_part *p)
{
	struct text spec;

	while (text_next(set, ',', &spec)) {
		spec = text_trim(spec);
		if (spec.n != 0)
			return (read_part(spec, p) ? 1 : -1);
	}
	return (0);
}

bool
range_set_read(struct text header, struct range_set *set)
{
	struct range_part p;
	struct text specs;
	int more;

	set->n = 0;
	if (!range_bytes(header, &specs))
		return (false);
	while ((more = range_next(&specs, &p)) == 1)
		if (set->n < RANGE_PARTS)
			set->part[set->n++] = p;
	return (more == 0 && set->n != 0);
}

struct range_part
range_clip(struct range_part p, uint64_t size)
{
	if (p.from == RANGE_TAIL)
		return ((struct range_part){ p.to < size ? size - p.to : 0, size });
	return ((struct range_part){ p.from < size ? p.from : size, p.to < size ? p.to : size });
}

/* Inserts it into the n sorted parts of out. */
static void
insert(struct range_part out[RANGE_PARTS], unsigned n, struct range_part p)
{
	for (; n > 0 && out[n - 1].from > p.from; n--)
		out[n] = out[n - 1];
	out[n] = p;
}

static bool
touch(const struct range_part *a, const struct range_part *b)
{
	return (a->from <= b->to && b->from <= a->to);
}

unsigned
range_join(struct range_part *out, unsigned n, struct range_part p)
{
	unsigned at = n, i = 0;

	while (i < n) {
		if (!touch(&out[i], &p)) {
			i++;
			continue;
		}
		p.from = out[i].from < p.from ? out[i].from : p.from;
		p.to = out[i].to > p.to ? out[i].to : p.to;
		n--;
		memmove(&out[i], &out[i + 1], (n - i) * sizeof(*out));
		if (i < at)
			at = i;
		i = 0; /* the larger range may touch one that the smaller one did not */
	}
	memmove(&out[at + 1], &out[at], (n - at) * sizeof(*out));
	out[at] = p;
	return (n + 1);
}

unsigned
range_resolve(const struct range_set *set, uint64_t size, uint64_t most,
    struct range_part out[RANGE_PARTS])
{
	struct range_part p;
	unsigned i, n = 0;

	for (i = 0; i < set->n; i++) {
		p = range_clip(set->part[i], size);
		if (p.from < p.to)
			n = range_join(out, n, p);
	}
	for (i = 1; i < n; i++)
		insert(out, i, out[i]);
	for (i = 0; i < n && most > 0; i++) {
		if (out[i].to - out[i].from > most)
			out[i].to = out[i].from + most;
		most -= out[i].to - out[i].from;
	}
	return (i);
}
