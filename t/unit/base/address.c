/* t/unit/base/address.c -- each form of an address, malformed ones, and their messages. */
#include <errno.h>
#include "base/address.h"
#include "base/must.h"
#include "t/unit/test.h"

#define NO_PORT (-1)

static void
eq(struct text got, const char *want)
{
	g_autofree char *s = g_strndup(got.p != NULL ? got.p : "", got.n);

	g_assert_cmpstr(s, ==, want != NULL ? want : "");
	g_assert_true((got.p == NULL) == (want == NULL));
}

TEST("/address/what can be read")
{
	static const struct {
		const char *spec, *path, *host;
		int port;
	} v[] = {
		{ "unix:/run/a", "/run/a", NULL, NO_PORT },
		{ "unix:a", "a", NULL, NO_PORT },
		{ "/run/a:80", "/run/a:80", NULL, NO_PORT },
		{ "localhost", NULL, "localhost", NO_PORT },
		{ "localhost:80", NULL, "localhost", 80 },
		{ "192.0.2.1:0", NULL, "192.0.2.1", 0 },
		{ "192.0.2.1:65535", NULL, "192.0.2.1", 65535 },
		{ "[::1]", NULL, "[::1]", NO_PORT },
		{ "[2001:DB8::1]:8080", NULL, "[2001:DB8::1]", 8080 },
		{ "[fe80::1%eth0]:80", NULL, "[fe80::1%eth0]", 80 },
		{ ":80", NULL, "", 80 },
		{ "*:80", NULL, "*", 80 },
	};
	struct address_parts a;
	const char *fault;
	size_t i;

	for (i = 0; i < NELEM(v); i++) {
		g_test_message("%s", v[i].spec);
		g_assert_cmpint(address_read(text_of(v[i].spec), &a, &fault), ==, 0);
		g_assert_null(fault);
		eq(a.path, v[i].path);
		eq(a.host, v[i].host);
		g_assert_true((a.port.p == NULL) == (v[i].port == NO_PORT));
		g_assert_cmpint(a.port_number, ==, v[i].port == NO_PORT ? 0 : v[i].port);
	}
}

TEST("/address/what cannot says what was expected")
{
	static const struct {
		const char *spec;
		int err;
		const char *fault;
	} v[] = {
		{ "", -EINVAL, "expected an address" },
		{ "unix:", -EINVAL, "expected a path after unix:" },
		{ "localhost:", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "localhost:65536", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "localhost:80x", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "localhost:-1", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "[::1]80", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "[::1]x:80", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "[::1]:", -EINVAL, "expected a port of 0 to 65535 after the host" },
		{ "[::1", -EINVAL, "expected \"]\" after an IPv6 address" },
		{ "::1", -EINVAL, "expected an IPv6 address in brackets, as in [::1]:80" },
		{ "a:b:80", -EINVAL, "expected an IPv6 address in brackets, as in [::1]:80" },
		{ "[localhost]:80", -EINVAL, "expected an IPv6 address between the brackets" },
		{ "[]:80", -EINVAL, "expected an IPv6 address between the brackets" },
		{ "a b:80", -EINVAL, "expected a host without spaces" },
		{ "a\n:80", -EINVAL, "expected an address without control characters" },
		{ "/run/a\177", -EINVAL, "expected an address without control characters" },
	};
	struct address_parts a;
	const char *fault;
	size_t i;

	for (i = 0; i < NELEM(v); i++) {
		g_test_message("%s", v[i].spec);
		g_assert_cmpint(address_read(text_of(v[i].spec), &a, &fault), ==, v[i].err);
		g_assert_cmpstr(fault, ==, v[i].fault);
	}
}

TEST("/address/a path fits or is refused")
{
	char spec[128] = "unix:/";
	struct address_parts a;
	const char *fault;

	memset(spec + 6, 'x', ADDRESS_PATH_MAX - 1);
	g_assert_cmpint(address_read(text_of(spec), &a, &fault), ==, 0);
	g_assert_cmpuint(a.path.n, ==, ADDRESS_PATH_MAX);
	spec[5 + ADDRESS_PATH_MAX] = 'x';
	g_assert_cmpint(address_read(text_of(spec), &a, &fault), ==, -ENAMETOOLONG);
	g_assert_cmpstr(fault, ==, "expected a path of at most 107 bytes, as unix sockets have");
}

/* Where nothing needs to be an address: the name of a host in a request. */
TEST("/address/host and port meet at the colon")
{
	struct text host, port;

	g_assert_true(address_cut(TEXT("www.example.org:80"), &host, &port));
	eq(host, "www.example.org");
	eq(port, "80");
	g_assert_true(address_cut(TEXT("unix:80"), &host, &port));
	eq(host, "unix");
	g_assert_true(address_cut(TEXT("host:"), &host, &port));
	eq(port, "");
	g_assert_true(address_cut(TEXT("[::1]"), &host, &port));
	eq(host, "[::1]");
	eq(port, NULL);
	g_assert_true(address_cut(TEXT("[any thing]:99999999999999999999"), &host, &port));
	eq(port, "99999999999999999999");
	g_assert_true(address_cut(TEXT(""), &host, &port));
	eq(host, "");
	g_assert_false(address_cut(TEXT("::1"), &host, &port));
	g_assert_false(address_cut(TEXT("[::1"), &host, &port));
	g_assert_false(address_cut(TEXT("[::1]x80"), &host, &port));
	g_assert_false(address_cut(TEXT("host:80x"), &host, &port));
}

TEST("/address/to listen takes a port")
{
	struct address_parts a;
	const char *fault;

	g_assert_cmpint(address_read_port(TEXT("localhost"), &a, &fault), ==, -EINVAL);
	g_assert_cmpstr(fault, ==, "expected a port after the host");
	g_assert_cmpint(address_read_port(TEXT("unix:"), &a, &fault), ==, -EINVAL);
	g_assert_cmpstr(fault, ==, "expected a path after unix:");
	g_assert_cmpint(address_read_port(TEXT(":0"), &a, &fault), ==, 0);
	g_assert_cmpint(address_read_port(TEXT("/run/a"), &a, &fault), ==, 0);
	g_assert_null(fault);
}

TEST("/address/small questions")
{
	eq(address_bare(TEXT("[::1]")), "::1");
	eq(address_bare(TEXT("::1")), "::1");
	eq(address_bare(TEXT("[")), "[");
	eq(address_path(TEXT("/a")), "/a");
	eq(address_path(TEXT("unix:")), "");
	eq(address_path(TEXT("unix")), NULL);
	eq(address_path(TEXT("")), NULL);
	g_assert_true(address_is_any(TEXT("")) && address_is_any(TEXT("*")) &&
		      address_is_any(TEXT("0.0.0.0")));
	g_assert_false(address_is_any(TEXT("[::]")) || address_is_any(TEXT("127.0.0.1")));
}

TEST("/address/one socket has several names")
{
	static const struct {
		const char *a, *b;
		bool same;
	} v[] = {
		{ ":80", "0.0.0.0:80", true },
		{ ":80", "*:80", true },
		{ ":80", ":81", false },
		{ ":80", "[::]:80", false },
		{ "127.0.0.1:80", ":80", false },
		{ "LOCALHOST:80", "localhost:80", true },
		{ "[::1]:80", "[::1]:80", true },
		{ "unix:/a", "/a", true },
		{ "/a", "/b", false },
		{ "/a", ":80", false },
		{ ":80", "/a", false },
		{ "::1", "::1", false },
	};
	size_t i;

	for (i = 0; i < NELEM(v); i++) {
		g_test_message("%s %s", v[i].a, v[i].b);
		g_assert_true(address_same(text_of(v[i].a), text_of(v[i].b)) == v[i].same);
	}
}
