/* t/unit/base/client_addr.c -- which addresses are one client. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>
#include "base/client_addr.h"
#include "t/unit/test.h"

static uint32_t
key(const char *address)
{
	return (client_addr_key(client_addr_written(address)));
}

static uint32_t
key_of_v4(uint32_t host_order)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(host_order) };

	return (client_addr_key(client_addr_of((struct sockaddr *)&in)));
}

/* Neighbours in a network are different clients: every bit of the address counts. */
TEST("/client-addr/every-bit-of-ipv4-counts")
{
	GHashTable *seen = g_hash_table_new(NULL, NULL);
	unsigned i, bit;

	for (i = 0; i < 256; i++)
		g_hash_table_add(seen, GUINT_TO_POINTER(key_of_v4(0xc0000200u + i)));
	g_assert_cmpuint(g_hash_table_size(seen), ==, 256);
	g_hash_table_destroy(seen);
	for (bit = 0; bit < 32; bit++)
		g_assert_cmpuint(key_of_v4(0xc0000200u ^ 1u << bit), !=, key("192.0.2.0"));
}

TEST("/client-addr/ipv6-counts-by-network")
{
	g_assert_cmpuint(key("2001:db8:1:2::1"), ==, key("2001:db8:1:2:ffff::7"));
	g_assert_cmpuint(key("2001:db8:1:2::1"), !=, key("2001:db8:1:3::1"));
	g_assert_cmpuint(key("2001:db8:1:2::1"), !=, key("2001:db9:1:2::1"));
}

TEST("/client-addr/mapped-is-ipv4")
{
	g_assert_cmpuint(key("::ffff:192.0.2.1"), ==, key("192.0.2.1"));
	g_assert_cmpuint(key("::ffff:a00:1"), ==, key("10.0.0.1")); /* however it is written */
	g_assert_cmpuint(key("::FFFF:0a00:0001"), ==, key("10.0.0.1"));
	g_assert_cmpuint(key("::ffff:192.0.2.1"), !=, key("::ffff:192.0.2.2"));
}

/* The text of an address and the address of a socket are the same client. */
TEST("/client-addr/written-or-of-a-socket")
{
	static const char *const t[] = { "::1", "2001:db8:1:2::9", "::ffff:192.0.2.1",
		"::ffff:0.0.0.0" };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	size_t i;

	g_assert_cmpuint(key_of_v4(0x7f000001), ==, key("127.0.0.1"));
	for (i = 0; i < G_N_ELEMENTS(t); i++) {
		g_assert_cmpint(inet_pton(AF_INET6, t[i], &six.sin6_addr), ==, 1);
		g_assert_true(client_addr_same(client_addr_of((struct sockaddr *)&six),
		    client_addr_written(t[i])));
	}
}

TEST("/client-addr/unknown-has-no-key")
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct sockaddr none = { .sa_family = 0 };

	g_assert_cmpuint(client_addr_key(client_addr_of((struct sockaddr *)&un)), ==, 0);
	g_assert_cmpuint(client_addr_key(client_addr_of(&none)), ==, 0);
	g_assert_cmpuint(key(""), ==, 0);
	g_assert_cmpuint(key("localhost"), ==, 0);
	g_assert_cmpuint(key("10.0.0.1 "), ==, 0);
	g_assert_cmpuint(key("0.0.0.0"), !=, 0);
}

TEST("/client-addr/names")
{
	static const struct {
		const char *a, *name;
	} t[] = {
		{ "192.0.2.1", "192.0.2.1" },
		{ "::ffff:192.0.2.1", "192.0.2.1" },
		{ "192.0.2.2", "192.0.2.2" },
		{ "0.0.0.0", "0.0.0.0" },
		{ "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64" },
		{ "2001:db8:1:2::9", "2001:db8:1:2::/64" },
		{ "2001:db8:1:3::9", "2001:db8:1:3::/64" },
		{ "::1", "::/64" },
		{ "localhost", "unix" },
	};
	char name[CLIENT_ADDR_MAX];
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(t); i++)
		g_assert_cmpstr(client_addr_name(client_addr_written(t[i].a), name), ==, t[i].name);
}

TEST("/client-addr/texts")
{
	static const struct {
		const char *a, *text;
	} t[] = { { "::ffff:192.0.2.1", "192.0.2.1" }, { "2001:db8::7", "2001:db8::7" },
		{ "::1", "::1" } };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000209) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	char buf[CLIENT_ADDR_MAX];
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(t); i++) {
		g_assert_cmpint(inet_pton(AF_INET6, t[i].a, &six.sin6_addr), ==, 1);
		g_assert_cmpstr(client_addr_text((struct sockaddr *)&six, buf), ==, t[i].text);
	}
	g_assert_cmpstr(client_addr_text((struct sockaddr *)&four, buf), ==, "192.0.2.9");
	g_assert_cmpstr(client_addr_text((struct sockaddr *)&un, buf), ==, "unix");
}
