/* t/unit/proxy-core/address.c -- every form of an address, and texts that are not one. */
#include <arpa/inet.h>
#include <errno.h>
#include "proxy-core/address.h"
#include "t/unit/test.h"

TEST("/address/every form")
{
	static const struct {
		const char *spec;
		int err;
		const char *name;
	} v[] = {
		{ "unix:/run/app.sock", 0, "unix:/run/app.sock" },
		{ "/run/app.sock", 0, "unix:/run/app.sock" },
		{ "127.0.0.1:9000", 0, "127.0.0.1:9000" },
		{ "127.0.0.1", 0, "127.0.0.1:80" },
		{ "[::1]", 0, "[::1]:80" },
		{ "[::1]:9000", 0, "[::1]:9000" },
		{ "[2001:DB8:0::1]:1", 0, "[2001:db8::1]:1" },
		{ "localhost", -ENOENT, NULL },
		{ "localhost:80", -ENOENT, NULL },
		{ "", -EINVAL, NULL },
		{ "unix:@app", 0, "unix:@app" },
		{ "unix:@", -EINVAL, NULL },
		{ "unix:", -EINVAL, NULL },
		{ ":80", -EINVAL, NULL },
		{ "127.0.0.1:", -EINVAL, NULL },
		{ "127.0.0.1:0", -EINVAL, NULL },
		{ "127.0.0.1:65536", -EINVAL, NULL },
		{ "127.0.0.1:80x", -EINVAL, NULL },
		{ "::1", -EINVAL, NULL },
		{ "[::1", -EINVAL, NULL },
		{ "[::1]80", -EINVAL, NULL },
		{ "[localhost]:80", -EINVAL, NULL },
	};
	struct address a;
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(v); i++) {
		g_test_message("%s", v[i].spec);
		g_assert_cmpint(address_parse(v[i].spec, &a), ==, v[i].err);
		if (v[i].err == 0)
			g_assert_cmpstr(a.name, ==, v[i].name);
	}
}

/* Addresses that another process says it got from the resolver. */
TEST("/address/only what a resolver can give is learnt")
{
	struct address good, bad, v[ADDRESS_MAX + 1];
	size_t i;

	g_assert_cmpint(address_parse("192.0.2.1:80", &good), ==, 0);
	g_assert_true(address_are_inet(&good, 1));
	g_assert_false(address_are_inet(NULL, 0));
	for (i = 0; i <= ADDRESS_MAX; i++)
		v[i] = good;
	g_assert_true(address_are_inet(v, ADDRESS_MAX));
	g_assert_false(address_are_inet(v, ADDRESS_MAX + 1));
	bad = good;
	bad.len = 4000;
	g_assert_false(address_are_inet(&bad, 1));
	v[1] = bad;
	g_assert_false(address_are_inet(v, 2));
	bad = good;
	bad.sa.sa_family = AF_UNIX;
	g_assert_false(address_are_inet(&bad, 1));
	bad = good;
	memset(bad.name, 'x', sizeof(bad.name));
	g_assert_false(address_are_inet(&bad, 1));
}

TEST("/address/a unix path fits or is refused")
{
	char spec[256] = "unix:/";
	struct address a;

	memset(spec + 6, 'x', 106);
	g_assert_cmpint(address_parse(spec, &a), ==, 0);
	g_assert_cmpint(a.len, ==, offsetof(struct sockaddr_un, sun_path) + 108);
	g_assert_cmpint(a.un.sun_path[107], ==, '\0');
	spec[112] = 'x';
	g_assert_cmpint(address_parse(spec, &a), ==, -ENAMETOOLONG);
}

/* The kernel takes all bytes of an abstract name, so it has no NUL at its end. */
TEST("/address/an abstract socket has a name without end")
{
	struct address a;

	g_assert_cmpint(address_parse("unix:@app", &a), ==, 0);
	g_assert_cmpint(a.len, ==, offsetof(struct sockaddr_un, sun_path) + 4);
	g_assert_cmpmem(a.un.sun_path, 4, "\0app", 4);
	g_assert_null(address_fault("unix:@app"));
	g_assert_null(address_fault("some.name:80"));
	g_assert_nonnull(address_fault("unix:@"));
	g_assert_nonnull(address_fault("[::1"));
}

TEST("/address/names are looked up")
{
	struct address v[ADDRESS_MAX];
	char err[200] = "";
	int i, n;

	n = address_lookup("localhost:7", v, err, sizeof(err));
	g_assert_cmpint(n, >=, 1);
	for (i = 0; i < n; i++)
		g_assert_cmpint(ntohs(v[i].sa.sa_family == AF_INET6 ? v[i].in6.sin6_port
								    : v[i].in.sin_port),
		    ==, 7);
	g_assert_cmpint(address_lookup("192.0.2.1:80", v, err, sizeof(err)), ==, 1);
	g_assert_cmpstr(v[0].name, ==, "192.0.2.1:80");
	g_assert_cmpint(address_lookup("nowhere:x", v, err, sizeof(err)), ==, -EINVAL);
	g_assert_cmpstr(err, ==,
	    "\"nowhere:x\": expected a port of 0 to 65535 after the host; "
	    "an address is unix:/path, host:port, a.b.c.d:port or [v6]:port");
	g_assert_cmpint(address_lookup(":80", v, err, sizeof(err)), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "\":80\": expected a host; "));
	g_assert_cmpint(address_lookup("nowhere:0", v, err, sizeof(err)), ==, -EINVAL);
	g_assert_nonnull(strstr(err, "\"nowhere:0\": expected a port of 1 to 65535; "));
}
