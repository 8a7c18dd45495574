/* wire/forwarded.c -- see forwarded.h */
#include "wire/forwarded.h"
#include "wire/http1/scan.h"

/* ---- members, from the right */

/* The opening quote of a string that ends before end, or begin: there is none. */
static const char *
quote_before(const char *begin, const char *end)
{
	const char *p, *q;

	for (p = end; p > begin;) {
		if (*--p != '"')
			continue;
		for (q = p; q > begin && q[-1] == '\\'; q--)
			;
		if ((p - q) % 2 == 0)
			return (p);
		p = q; /* an escaped quote */
	}
	return (begin);
}

/* Takes the part after the last sep from the end of *rest; false: nothing is left.  quotes: a sep
 * within quotes is a part of a value. */
static bool
last_part(struct text *rest, char sep, bool quotes, struct text *part)
{
	const char *begin = rest->p, *end, *p;

	if (begin == NULL)
		return (false);
	end = begin + rest->n;
	for (p = end; p > begin && p[-1] != sep;)
		p = quotes && p[-1] == '"' ? quote_before(begin, p - 1) : p - 1;
	*part = (struct text){ p, (size_t)(end - p) };
	*rest = p > begin ? (struct text){ begin, (size_t)(p - 1 - begin) } : TEXT_NONE;
	return (true);
}

/* ---- addresses */

static bool
port_read(struct text t, uint16_t *port)
{
	uint64_t n;

	*port = 0;
	if (t.n > 1 && t.p[0] == '_')
		return (true);
	if (t.n > 5 || text_u64(t, &n) != 0 || n > UINT16_MAX)
		return (false);
	*port = (uint16_t)n;
	return (true);
}

/* The address within brackets, or up to the first colon; *rest is what follows.  t is not empty. */
static struct text
host_of(struct text t, struct text *rest)
{
	const char *end, *stop = t.p + t.n;
	bool v6 = t.p[0] == '[';

	end = memchr(t.p, v6 ? ']' : ':', t.n);
	if (end == NULL)
		end = stop;
	*rest = (struct text){ end, (size_t)(stop - end) };
	if (!v6 || end == stop)
		return ((struct text){ t.p, (size_t)(end - t.p) });
	*rest = (struct text){ end + 1, (size_t)(stop - end - 1) };
	return ((struct text){ t.p + 1, (size_t)(end - t.p - 1) });
}

/* "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:80"; a hidden port
 * (":_x") is 0.  False: no address. */
static bool
node_address(struct text t, struct ip *ip, uint16_t *port)
{
	struct text host, rest;

	*port = 0;
	if (t.n == 0)
		return (false);
	if (ip_read(t, ip))
		return (true);
	host = host_of(t, &rest);
	if (!ip_read(host, ip) || (t.p[0] == '[') != (memchr(host.p, ':', host.n) != NULL))
		return (false);
	return (rest.n == 0 ||
		(rest.p[0] == ':' && port_read((struct text){ rest.p + 1, rest.n - 1 }, port)));
}

/* ---- the walk */

static void
walk_node(struct forwarded_walk *w, struct text node)
{
	struct ip ip;
	uint16_t port;

	if (!node_address(node, &ip, &port)) {
		w->over = true;
		return;
	}
	w->found.has_addr = true;
	w->found.addr = ip;
	w->found.port = port;
	w->over = !w->trusts(w->arg, &ip);
}

static bool
goes_on(struct forwarded_walk *w)
{
	w->over = w->over || w->hops >= FORWARDED_HOPS;
	w->hops++;
	return (!w->over);
}

void
forwarded_addresses(struct forwarded_walk *w, struct text line)
{
	struct text member;

	while (!w->over && last_part(&line, ',', false, &member)) {
		member = text_trim(member);
		if (member.n > 0 && goes_on(w))
			walk_node(w, member);
	}
}

static enum forwarded_scheme
scheme_of(struct text word)
{
	if (text_ieq(word, TEXT("https")))
		return (SCHEME_HTTPS);
	return (text_ieq(word, TEXT("http")) ? SCHEME_HTTP : SCHEME_UNKNOWN);
}

enum forwarded_scheme
forwarded_proto(struct text line)
{
	struct text word;

	while (last_part(&line, ',', false, &word)) {
		word = text_trim(word);
		if (word.n > 0)
			return (scheme_of(word));
	}
	return (SCHEME_UNKNOWN);
}

/* ---- Forwarded (RFC 7239, 4) */

struct element {
	struct text node, proto; /* .p NULL: none */
};

#define VALUE_MAX 64 /* longer ones are neither an address nor a scheme */

/* Proxies write an address with a port without quotes, too. */
static bool
is_node(char c)
{
	return (c == ':' || c == '[' || c == ']');
}

/* Without its quotes; an escape is removed.  .p NULL: malformed. */
static struct text
value_of(struct text t, char dst[VALUE_MAX])
{
	size_t i, n = 0;

	if (t.n < 2 || t.p[0] != '"') {
		for (i = 0; i < t.n && (is(t.p[i], C_TOKEN) || is_node(t.p[i])); i++)
			;
		return (t.n > 0 && i == t.n ? t : TEXT_NONE);
	}
	if (t.p[t.n - 1] != '"')
		return (TEXT_NONE);
	for (i = 1; i < t.n - 1; i++) {
		if (t.p[i] == '"' || (t.p[i] == '\\' && ++i >= t.n - 1))
			return (TEXT_NONE);
		if (n < VALUE_MAX)
			dst[n++] = t.p[i];
	}
	return ((struct text){ dst, n });
}

/* False: malformed. */
static bool
pair_read(struct text pair, char dst[VALUE_MAX], struct text *name, struct text *value)
{
	const char *eq = pair.n > 0 ? memchr(pair.p, '=', pair.n) : NULL;

	if (eq == NULL)
		return (false);
	*name = (struct text){ pair.p, (size_t)(eq - pair.p) };
	*value = value_of((struct text){ eq + 1, pair.n - name->n - 1 }, dst);
	return (name->n > 0 && skip(name->p, eq, C_TOKEN) == eq && value->p != NULL);
}

/* False: malformed, for example a name that comes twice. */
static bool
element_read(struct text t, char node[VALUE_MAX], char proto[VALUE_MAX], struct element *e)
{
	struct text pair, name, value, *to;
	char other[VALUE_MAX];

	*e = (struct element){ TEXT_NONE, TEXT_NONE };
	while (last_part(&t, ';', true, &pair)) {
		pair = text_trim(pair);
		if (pair.n == 0)
			continue;
		if (!pair_read(pair, other, &name, &value))
			return (false);
		to = text_ieq(name, TEXT("for"))     ? &e->node
		     : text_ieq(name, TEXT("proto")) ? &e->proto
						     : NULL;
		if (to == NULL)
			continue;
		if (to->p != NULL)
			return (false);
		*to = (struct text){ to == &e->node ? node : proto,
			value.n < VALUE_MAX ? value.n : VALUE_MAX };
		memcpy(to == &e->node ? node : proto, value.p, to->n);
	}
	return (true);
}

static void
walk_element(struct forwarded_walk *w, struct text member)
{
	char node[VALUE_MAX], proto[VALUE_MAX];
	struct element e;

	if (!element_read(member, node, proto, &e)) {
		w->over = true;
		return;
	}
	/* the member that wrote it is trusted, even if it hides the address */
	if (e.proto.p != NULL && scheme_of(e.proto) != SCHEME_UNKNOWN)
		w->found.scheme = scheme_of(e.proto);
	walk_node(w, e.node);
}

void
forwarded_elements(struct forwarded_walk *w, struct text line)
{
	struct text member;

	while (!w->over && last_part(&line, ',', true, &member)) {
		member = text_trim(member);
		if (member.n > 0 && goes_on(w))
			walk_element(w, member);
	}
}
