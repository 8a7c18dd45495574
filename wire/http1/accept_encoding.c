/* wire/http1/accept_encoding.c -- see accept_encoding.h */
#include "wire/http1/accept_encoding.h"

#include <string.h>

#include "base/must.h"

static const struct {
	struct text name;
	enum coding coding;
} names[] = {
	/* the name in headers first */
	{ TEXT("identity"), CODING_IDENTITY },
	{ TEXT("gzip"), CODING_GZIP },
	{ TEXT("deflate"), CODING_DEFLATE },
	{ TEXT("br"), CODING_BROTLI },
	{ TEXT("zstd"), CODING_ZSTD },
	{ TEXT("x-gzip"), CODING_GZIP },
};

struct text
coding_name(enum coding c)
{
	return (names[c].name);
}

enum coding
coding_find(struct text name)
{
	size_t i;

	for (i = 0; i < NELEM(names); i++)
		if (text_ieq(name, names[i].name))
			return (names[i].coding);
	return (CODINGS);
}

void
accept_encoding_init(struct accept_encoding *a)
{
	unsigned i;

	for (i = 0; i < CODINGS; i++)
		a->q[i] = ACCEPT_UNSET;
	a->any = ACCEPT_UNSET;
	a->members = 0;
}

/* "0.5" is 500; at most three digits after the point.  -1: no weight. */
static int
weight(struct text t)
{
	unsigned q, unit = 100;
	size_t i;

	if (t.n == 0 || t.n > 5 || (t.p[0] != '0' && t.p[0] != '1') || (t.n > 1 && t.p[1] != '.'))
		return (-1);
	q = t.p[0] == '1' ? 1000 : 0;
	for (i = 2; i < t.n; i++, unit /= 10) {
		if (t.p[i] < '0' || t.p[i] > '9')
			return (-1);
		q += (unsigned)(t.p[i] - '0') * unit;
	}
	return (q <= 1000 ? (int)q : -1);
}

/* The weight after the name; -1: malformed. */
static int
weight_of(struct text params)
{
	struct text p = text_trim(params);

	if (p.n < 2 || (p.p[0] != 'q' && p.p[0] != 'Q') || p.p[1] != '=')
		return (-1);
	text_take(&p, 2);
	return (weight(p));
}

/* If a coding is listed twice, the lower weight counts. */
static void
note(uint16_t *q, int weight)
{
	if (*q == ACCEPT_UNSET || weight < *q)
		*q = (uint16_t)weight;
}

static void
member(struct accept_encoding *a, struct text m)
{
	const char *semi = memchr(m.p, ';', m.n);
	struct text name = m;
	int q = 1000;
	enum coding c;

	if (semi != NULL) {
		name.n = (size_t)(semi - m.p);
		q = weight_of((struct text){ semi + 1, m.n - name.n - 1 });
	}
	name = text_trim(name);
	if (q < 0)
		return;
	c = coding_find(name);
	if (c != CODINGS)
		note(&a->q[c], q);
	else if (text_eq(name, TEXT("*")))
		note(&a->any, q);
}

void
accept_encoding_line(struct accept_encoding *a, struct text line)
{
	struct text m;

	while (line.n != 0 && text_next(&line, ',', &m)) {
		m = text_trim(m);
		if (m.n == 0)
			continue;
		if (a->members++ >= ACCEPT_MEMBERS)
			return;
		member(a, m);
	}
}

static unsigned
q_of(const struct accept_encoding *a, enum coding c)
{
	if (a->q[c] != ACCEPT_UNSET)
		return (a->q[c]);
	if (a->any != ACCEPT_UNSET)
		return (a->any);
	/* identity is accepted, but any other coding is better */
	return (c == CODING_IDENTITY ? 1 : 0);
}

bool
accept_encoding_takes(const struct accept_encoding *a, enum coding c)
{
	return (q_of(a, c) != 0);
}

/* Identity counts only if the client names it: "*;q=0.5" is not a wish for it. */
enum coding
accept_encoding_pick(const struct accept_encoding *a, const uint8_t *order, unsigned n)
{
	unsigned least = a->q[CODING_IDENTITY] != ACCEPT_UNSET ? a->q[CODING_IDENTITY] : 1, i;

	for (i = 0; i < n; i++)
		if (q_of(a, order[i]) != 0 && q_of(a, order[i]) >= least)
			return (order[i]);
	return (CODING_IDENTITY);
}
