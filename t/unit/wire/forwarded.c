/* t/unit/wire/forwarded.c -- the client as proxies wrote it down; what a client cannot forge. */
#include <glib.h>

#include "base/must.h"
#include "t/unit/linear.h"
#include "wire/forwarded.h"

/* 10.0.0.0/8 and 2001:db8:ffff::/48 */
static bool
trusts(const void *arg, const struct ip *ip)
{
	struct ip_net v4, v6;

	g_assert_true(ip_net_read(TEXT("10.0.0.0/8"), &v4));
	g_assert_true(ip_net_read(TEXT("2001:db8:ffff::/48"), &v6));
	return (ip_net_has(&v4, ip) || ip_net_has(&v6, ip));
}

static bool
is(const struct forwarded_walk *w, const char *addr, unsigned port)
{
	struct ip ip;

	if (addr == NULL)
		return (!w->found.has_addr);
	g_assert_true(ip_read(text_of(addr), &ip));
	return (w->found.has_addr && memcmp(&ip, &w->found.addr, sizeof(ip)) == 0 &&
		w->found.port == port);
}

struct row {
	const char *line, *addr;
	unsigned port;
	enum forwarded_scheme scheme;
};

static void
check(const struct row *v, size_t n, void (*read)(struct forwarded_walk *, struct text))
{
	struct forwarded_walk w;
	char *exact;
	size_t i;

	for (i = 0; i < n; i++) {
		w = (struct forwarded_walk){ .trusts = trusts };
		exact = g_memdup2(v[i].line, strlen(v[i].line)); /* a read past it is found */
		read(&w, (struct text){ exact, strlen(v[i].line) });
		if (!is(&w, v[i].addr, v[i].port) || w.found.scheme != v[i].scheme)
			g_error("%s: port %u scheme %d", v[i].line, w.found.port, w.found.scheme);
		g_free(exact);
	}
}

TEST("/forwarded/X-Forwarded-For")
{
	static const struct row rows[] = {
		{ "203.0.113.7", "203.0.113.7", 0, 0 },
		{ "203.0.113.7:4711", "203.0.113.7", 4711, 0 },
		{ "2001:db8::1", "2001:db8::1", 0, 0 },
		{ "[2001:db8::1]", "2001:db8::1", 0, 0 },
		{ "[2001:db8::1]:4711", "2001:db8::1", 4711, 0 },
		{ "::ffff:203.0.113.7", "203.0.113.7", 0, 0 },
		{ "198.51.100.1, 203.0.113.7", "203.0.113.7", 0, 0 },
		{ "198.51.100.1, 203.0.113.7, 10.1.1.1", "203.0.113.7", 0, 0 },
		{ "203.0.113.7,\t 10.1.1.1 , ::ffff:10.1.1.2,, ,", "203.0.113.7", 0, 0 },
		{ "203.0.113.7, 2001:db8:ffff::7", "203.0.113.7", 0, 0 },
		{ "10.2.2.2, 10.1.1.1", "10.2.2.2", 0, 0 },
		/* the writer of what is not an address */
		{ "203.0.113.7, x, 10.1.1.1", "10.1.1.1", 0, 0 },
		{ "203.0.113.7, unknown", NULL, 0, 0 },
		{ "203.0.113.7, _hidden, 10.1.1.1", "10.1.1.1", 0, 0 },
		{ "", NULL, 0, 0 },
		{ " , ,", NULL, 0, 0 },
		{ "203.0.113.7 10.1.1.1", NULL, 0, 0 },
		{ "[203.0.113.7]", NULL, 0, 0 },
		{ "[2001:db8::1", NULL, 0, 0 },
		{ "2001:db8::1]", NULL, 0, 0 },
		{ "[]", NULL, 0, 0 },
		{ "[", NULL, 0, 0 },
		{ ":", NULL, 0, 0 },
		{ "203.0.113.7:", NULL, 0, 0 },
		{ "203.0.113.7:65536", NULL, 0, 0 },
		{ "203.0.113.7:-1", NULL, 0, 0 },
		{ "fe80::1%eth0", NULL, 0, 0 },
		{ "0203.0.113.7", NULL, 0, 0 },
		{ "\"203.0.113.7\"", NULL, 0, 0 },
	};

	check(rows, NELEM(rows), forwarded_addresses);
}

TEST("/forwarded/Forwarded")
{
	static const struct row rows[] = {
		{ "for=203.0.113.7", "203.0.113.7", 0, 0 },
		{ "For=\"[2001:db8::1]:4711\";proto=https", "2001:db8::1", 4711, SCHEME_HTTPS },
		{ "for=\"[2001:db8::1]:_x\"", "2001:db8::1", 0, 0 },
		{ "for=[2001:db8::1]:80", "2001:db8::1", 80, 0 },
		{ "PROTO=HTTP ; FOR=\"203.0.113.7\" ;by=_a;host=\"a,b;c\"", "203.0.113.7", 0,
		    SCHEME_HTTP },
		{ "for=203.0.113.7;proto=https, for=10.1.1.1;proto=http", "203.0.113.7", 0,
		    SCHEME_HTTPS },
		{ "for=203.0.113.7, for=10.1.1.1;proto=http", "203.0.113.7", 0, SCHEME_HTTP },
		{ "for=198.51.100.1;proto=https,for=203.0.113.7", "203.0.113.7", 0, 0 },
		{ "for=\"\\203.0.113.7\"", "203.0.113.7", 0, 0 },
		/* no address, and the writer is believed about the scheme */
		{ "for=203.0.113.7, for=unknown;proto=https", NULL, 0, SCHEME_HTTPS },
		{ "for=_hidden, for=10.1.1.1", "10.1.1.1", 0, 0 },
		{ "proto=https", NULL, 0, SCHEME_HTTPS },
		{ "for=\"_hidden:_x\"", NULL, 0, 0 },
		/* malformed */
		{ "for=203.0.113.7;for=203.0.113.8", NULL, 0, 0 },
		{ "for", NULL, 0, 0 },
		{ "for=", NULL, 0, 0 },
		{ "=203.0.113.7", NULL, 0, 0 },
		{ "for =203.0.113.7", NULL, 0, 0 },
		{ "for=\"203.0.113.7", NULL, 0, 0 },
		{ "for=203.0.113.7\"", NULL, 0, 0 },
		{ "for=\"203.0.113.7\\\"", NULL, 0, 0 },
		{ "for=\"203.0.\"113.7\"", NULL, 0, 0 },
		{ "for=203.0.113.7;proto=gopher", "203.0.113.7", 0, 0 },
		{ "203.0.113.7", NULL, 0, 0 },
		/* what a client leaves open does not reach the proxy's own element */
		{ "for=\"x, for=203.0.113.7", "203.0.113.7", 0, 0 },
		{ "for=\"x\\, for=\"[2001:db8::7]:1\"", "2001:db8::7", 1, 0 },
		{ "\", for=203.0.113.7;host=\"a\", for=10.1.1.1", "203.0.113.7", 0, 0 },
		{ "for=203.0.113.7;host=\"\\\"a\", for=10.1.1.1", "203.0.113.7", 0, 0 },
	};

	check(rows, NELEM(rows), forwarded_elements);
}

TEST("/forwarded/several lines")
{
	struct forwarded_walk w = { .trusts = trusts };

	forwarded_addresses(&w, TEXT("10.1.1.1"));
	forwarded_addresses(&w, TEXT(""));
	g_assert_true(is(&w, "10.1.1.1", 0));
	forwarded_addresses(&w, TEXT("198.51.100.1, 203.0.113.7"));
	forwarded_addresses(&w, TEXT("192.0.2.1")); /* not read any more */
	g_assert_true(is(&w, "203.0.113.7", 0));
	g_assert_cmpint(forwarded_proto(TEXT("http, HTTPS")), ==, SCHEME_HTTPS);
	g_assert_cmpint(forwarded_proto(TEXT("https,http ,")), ==, SCHEME_HTTP);
	g_assert_cmpint(forwarded_proto(TEXT("wss")), ==, SCHEME_UNKNOWN);
	g_assert_cmpint(forwarded_proto(TEXT("")), ==, SCHEME_UNKNOWN);
}

/* 203.0.113.7 behind n trusted hops: 10.0.0.n is the first one. */
TEST("/forwarded/hops")
{
	struct forwarded_walk w;
	GString *s;
	unsigned n, i;

	for (n = FORWARDED_HOPS - 2; n <= 1000;
	     n = n < FORWARDED_HOPS + 2 ? n + 1 : 1000 + (n == 1000)) {
		s = g_string_new("203.0.113.7");
		for (i = n; i > 0; i--)
			g_string_append_printf(s, ", 10.0.%u.%u", i / 256, i % 256);
		w = (struct forwarded_walk){ .trusts = trusts };
		forwarded_addresses(&w, (struct text){ s->str, s->len });
		if (n < FORWARDED_HOPS)
			g_assert_true(is(&w, "203.0.113.7", 0));
		else
			g_assert_true(is(&w, "10.0.0.32", 0));
		g_string_free(s, TRUE);
	}
}

static GString *
repeated(const char *first, const char *s, unsigned n)
{
	GString *all = g_string_new(first);

	while (n-- > 0)
		g_string_append(all, s);
	return (all);
}

static GString *
make_quotes(unsigned n)
{
	return (repeated("", "\"", n));
}

static GString *
make_slashes(unsigned n)
{
	return (repeated("\"", "\\", n));
}

static GString *
make_escapes(unsigned n)
{
	return (repeated("\"", "\\\"", n));
}

static GString *
make_commas(unsigned n)
{
	return (repeated("", " ,", n));
}

static GString *
make_pairs(unsigned n)
{
	return (repeated("for=1", ";a=b", n));
}

static void
work(const GString *s)
{
	struct forwarded_walk w = { .trusts = trusts };

	forwarded_elements(&w, (struct text){ s->str, s->len });
	w = (struct forwarded_walk){ .trusts = trusts };
	forwarded_addresses(&w, (struct text){ s->str, s->len });
	(void)forwarded_proto((struct text){ s->str, s->len });
}

int
main(int argc, char **argv)
{
	static const struct linear linear[] = {
		{ "quotes", make_quotes, work, 30000 },
		{ "backslashes", make_slashes, work, 30000 },
		{ "escapes", make_escapes, work, 15000 },
		{ "commas", make_commas, work, 15000 },
		{ "pairs", make_pairs, work, 8000 },
	};
	char *path;
	size_t i;

	g_test_init(&argc, &argv, NULL);
	for (i = 0; i < NELEM(linear); i++) {
		path = g_strdup_printf("/forwarded/linear/%s", linear[i].name);
		g_test_add_data_func(path, &linear[i], linear_test);
		g_free(path);
	}
	return (tests_run());
}
