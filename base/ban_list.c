/* base/ban_list.c -- see ban_list.h */
#include "base/ban_list.h"

#include <stdlib.h>
#include <time.h>

#define LENGTHS   129u /* of networks: 0 to 128 bits */
#define LINE_MOST 256u
#define FOR_EVER  UINT64_MAX

struct ban {
	struct ip ip; /* of the network */
	uint64_t until;
	uint8_t bits;
};

struct ban_list {
	size_t n, room;
	struct ban *v; /* by bits, then by address */
	unsigned nlengths;
	struct ban_length {
		size_t first, n;
		uint8_t bits;
	} length[LENGTHS];
};

/* ---- times */

/* The number in n digits; -1: something else. */
static int
digits(struct text *t, size_t n)
{
	struct text d = text_take(t, n);
	uint64_t v;

	return (d.n == n && text_u64(d, &v) == 0 ? (int)v : -1);
}

static bool
skip(struct text *t, const char *any_of)
{
	if (t->n == 0 || strchr(any_of, t->p[0]) == NULL || t->p[0] == '\0')
		return (false);
	(void)text_take(t, 1);
	return (true);
}

static bool
in(int v, int min, int max)
{
	return (v >= min && v <= max);
}

/* "Z", "+01:00", "-0130": seconds to subtract. */
static bool
read_zone(struct text t, int *seconds)
{
	int sign = t.n > 0 && t.p[0] == '-' ? -1 : 1, h, m;

	*seconds = 0;
	if (skip(&t, "Zz"))
		return (t.n == 0);
	if (!skip(&t, "+-"))
		return (false);
	h = digits(&t, 2);
	(void)skip(&t, ":");
	m = digits(&t, 2);
	*seconds = sign * (3600 * h + 60 * m);
	return (t.n == 0 && in(h, 0, 23) && in(m, 0, 59));
}

/* "T12:00:00Z", "T12:00+01:00" */
static bool
read_clock(struct text t, struct tm *tm, int *zone)
{
	if (!skip(&t, "Tt"))
		return (false);
	tm->tm_hour = digits(&t, 2);
	if (!skip(&t, ":"))
		return (false);
	tm->tm_min = digits(&t, 2);
	if (skip(&t, ":"))
		tm->tm_sec = digits(&t, 2);
	return (in(tm->tm_hour, 0, 23) && in(tm->tm_min, 0, 59) && in(tm->tm_sec, 0, 60) &&
		read_zone(t, zone));
}

static bool
read_date(struct text t, uint64_t *s)
{
	struct tm tm = { 0 };
	int zone = 0;
	time_t at;

	tm.tm_year = digits(&t, 4) - 1900;
	if (!skip(&t, "-"))
		return (false);
	tm.tm_mon = digits(&t, 2) - 1;
	if (!skip(&t, "-"))
		return (false);
	tm.tm_mday = digits(&t, 2);
	if (!in(tm.tm_year, 70, 8099) || !in(tm.tm_mon, 0, 11) || !in(tm.tm_mday, 1, 31) ||
	    (t.n != 0 && !read_clock(t, &tm, &zone)))
		return (false);
	at = timegm(&tm) - zone;
	*s = at > 0 ? (uint64_t)at : 0;
	return (true);
}

/* ---- lines */

static bool
is_blank(char c)
{
	return (c == ' ' || c == '\t' || c == '\r');
}

/* The next word of the line; .n 0: none. */
static struct text
word(struct text *line)
{
	size_t n;

	while (skip(line, " \t\r"))
		;
	for (n = 0; n < line->n && !is_blank(line->p[n]); n++)
		;
	return (text_take(line, n));
}

static void
cut_bits(struct ip *ip, unsigned bits)
{
	unsigned i;

	for (i = 0; i < sizeof(ip->b); i++)
		ip->b[i] &= (uint8_t)(bits >= 8 * (i + 1) ? 0xff
				      : bits <= 8 * i     ? 0
							  : 0xff00u >> (bits % 8));
}

/* What is wrong with the line.  NULL: nothing; *is_entry tells an entry from an empty line or
 * comment. */
static const char *
read_line(struct text line, struct ban *b, bool *is_entry)
{
	const char *hash = line.n > 0 ? memchr(line.p, '#', line.n) : NULL;
	struct text name, until;
	struct ip_net net;

	*is_entry = false;
	if (line.n > LINE_MOST)
		return ("expected at most 256 bytes in a line");
	if (hash != NULL)
		line.n = (size_t)(hash - line.p);
	name = word(&line);
	if (name.n == 0)
		return (NULL);
	if (!ip_net_read(name, &net))
		return ("expected an address or a network, as 192.0.2.7 or 2001:db8::/32");
	b->ip = net.ip;
	b->bits = net.bits;
	b->until = FOR_EVER;
	cut_bits(&b->ip, b->bits);
	until = word(&line);
	if (until.n != 0 && text_u64(until, &b->until) != 0 && !read_date(until, &b->until))
		return ("expected a time after the address, as 1796000000 or "
			"2026-11-30T12:00:00Z");
	if (word(&line).n != 0)
		return ("expected one address and one time; a comment begins with #");
	*is_entry = true;
	return (NULL);
}

/* False: no memory for one more entry. */
static bool
append(struct ban_list *l, const struct ban *b)
{
	size_t room = l->room != 0 ? 2 * l->room : 64;
	struct ban *v;

	if (l->n == l->room) {
		v = realloc(l->v, room * sizeof(*v));
		if (v == NULL)
			return (false);
		l->v = v;
		l->room = room;
	}
	l->v[l->n++] = *b;
	return (true);
}

/* ---- the list */

static int
compare(const void *a, const void *b)
{
	const struct ban *x = a, *y = b;
	int c;

	if (x->bits != y->bits)
		return (x->bits < y->bits ? -1 : 1);
	c = memcmp(&x->ip, &y->ip, sizeof(x->ip));
	if (c != 0)
		return (c);
	return (x->until > y->until ? -1 : x->until < y->until);
}

/* Each network once, the longest time of it first; then where each length begins. */
static void
put_in_order(struct ban_list *l)
{
	struct ban_length *len = NULL;
	size_t i, n = 0;

	if (l->n != 0)
		qsort(l->v, l->n, sizeof(l->v[0]), compare);
	for (i = 0; i < l->n; i++) {
		struct ban *b = &l->v[i], *last = n != 0 ? &l->v[n - 1] : NULL;

		if (last != NULL && last->bits == b->bits &&
		    memcmp(&last->ip, &b->ip, sizeof(b->ip)) == 0)
			continue;
		if (len == NULL || len->bits != b->bits) {
			len = &l->length[l->nlengths++];
			*len = (struct ban_length){ .first = n, .bits = b->bits };
		}
		len->n++;
		l->v[n++] = *b;
	}
	l->n = n;
}

struct ban_list *
ban_list_read(struct text file, uint64_t now_s, ban_list_fault *fault, void *arg)
{
	struct ban_list *l = calloc(1, sizeof(*l));
	unsigned number = 0;
	struct text line;
	struct ban b;
	bool is_entry;

	while (l != NULL && text_next(&file, '\n', &line)) {
		const char *why = read_line(line, &b, &is_entry);

		number++;
		if (why != NULL) {
			fault(arg, number, line, why);
		} else if (is_entry && b.until > now_s && l->n == BAN_LIST_MAX) {
			fault(arg, number, line,
			    "expected at most 100000 entries; the rest of "
			    "the file is left out");
			break;
		} else if (is_entry && b.until > now_s && !append(l, &b)) {
			ban_list_free(l);
			return (NULL);
		}
	}
	if (l != NULL)
		put_in_order(l);
	return (l);
}

void
ban_list_free(struct ban_list *l)
{
	if (l == NULL)
		return;
	free(l->v);
	free(l);
}

static const struct ban *
search(const struct ban_list *l, const struct ban_length *len, const struct ip *ip)
{
	size_t low = len->first, high = len->first + len->n;
	struct ip net = *ip;

	cut_bits(&net, len->bits);
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int c = memcmp(&net, &l->v[mid].ip, sizeof(net));

		if (c == 0)
			return (&l->v[mid]);
		if (c < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return (NULL);
}

bool
ban_list_has(const struct ban_list *l, const struct ip *ip, uint64_t now_s)
{
	const struct ban *b;
	unsigned i;

	for (i = 0; i < l->nlengths; i++) {
		b = search(l, &l->length[i], ip);
		if (b != NULL && b->until > now_s)
			return (true);
	}
	return (false);
}

size_t
ban_list_size(const struct ban_list *l)
{
	return (l->n);
}
