#include "wire/range.h"

#include <errno.h>

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
	return (text_next(set, '=', &unit) && text_ieq(unit, TEXT("bytes")) && set->n > 0 && set->p[0] != ' ' && set->p[0] != '\t');
}

bool
range_read(struct text spec, struct range_part *p)
{
	struct text first;
	uint64_t last = UINT64_MAX;

	if (!text_next(&spec, '-', &first) || spec.p == NULL)
		return (false);
	p->from = RANGE_TAIL;
	if (first.n == 0)
		return (read_number(spec, &p->to));
	if (!read_number(first, &p->from) || (spec.n > 0 && !read_number(spec, &last)) || last < p->from)
		return (false);
	p->from = p->from == RANGE_TAIL ? RANGE_TAIL - 1 : p->from;
	p->to = last == UINT64_MAX ? last : last + 1;
	return (true);
}

bool
range_set_read(struct text header, struct range_set *set)
{
	struct range_part p;
	struct text specs, spec;

	set->n = 0;
	if (!range_bytes(header, &specs))
		return (false);
	while (text_next(&specs, ',', &spec)) {
		spec = text_trim(spec);
		if (spec.n == 0)
			continue;
		if (!range_read(spec, &p))
			return (false);
		if (set->n < RANGE_PARTS)
			set->part[set->n++] = p;
	}
	return (set->n != 0);
}

bool
range_set_equal(const struct range_set *a, const struct range_set *b)
{
	unsigned i;

	for (i = 0; i < a->n && i < b->n; i++)
		if (a->part[i].from != b->part[i].from || a->part[i].to != b->part[i].to)
			return (false);
	return (a->n == b->n);
}

static struct range_part
clip(struct range_part p, uint64_t size)
{
	if (p.from == RANGE_TAIL)
		return ((struct range_part){p.to < size ? size - p.to : 0, size});
	return ((struct range_part){p.from < size ? p.from : size, p.to < size ? p.to : size});
}

/* Where it belongs among the n sorted ones of out. */
static void
insert(struct range_part out[RANGE_PARTS], unsigned n, struct range_part p)
{
	for (; n > 0 && out[n - 1].from > p.from; n--)
		out[n] = out[n - 1];
	out[n] = p;
}

static unsigned
join(struct range_part out[RANGE_PARTS], unsigned n)
{
	unsigned i, k = 0;

	for (i = 1; i < n; i++) {
		if (out[i].from > out[k].to)
			out[++k] = out[i];
		else if (out[i].to > out[k].to)
			out[k].to = out[i].to;
	}
	return (n != 0 ? k + 1 : 0);
}

unsigned
range_resolve(const struct range_set *set, uint64_t size, uint64_t most, struct range_part out[RANGE_PARTS])
{
	struct range_part p;
	unsigned i, n = 0;

	for (i = 0; i < set->n; i++) {
		p = clip(set->part[i], size);
		if (p.from < p.to)
			insert(out, n++, p);
	}
	n = join(out, n);
	for (i = 0; i < n && most > 0; i++) {
		if (out[i].to - out[i].from > most)
			out[i].to = out[i].from + most;
		most -= out[i].to - out[i].from;
	}
	return (i);
}
