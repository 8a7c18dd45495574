/* t/unit/base/ip.c -- addresses and networks as users write them. */

#include "base/ip.h"
#include "base/must.h"
#include "t/unit/test.h"

static bool
reads(const char *s)
{
	struct ip ip;

	return (ip_read(text_of(s), &ip));
}

TEST("/ip/an address")
{
	static const char *const good[] = { "192.0.2.1", "0.0.0.0", "2001:db8::7",
		"::", "::ffff:192.0.2.1", "2001:0DB8:0:0:0:0:0:7" };
	static const char *const bad[] = { "", "1.2.3", "1.2.3.4.5", "1.2.3.256", "01.2.3.4",
		"1.2.3.4 ", "[::1]", "::1%lo", "1.2.3.4:80", "unknown",
		"2001:0db8:0000:0000:0000:0000:0000:0000:0000:0000:0000" };
	struct ip a, b;
	size_t i;

	for (i = 0; i < NELEM(good); i++)
		g_assert_true(reads(good[i]));
	for (i = 0; i < NELEM(bad); i++)
		g_assert_false(reads(bad[i]));
	g_assert_false(ip_read((struct text){ "1.2.3.4\0", 8 }, &a));
	g_assert_true(ip_read(TEXT("192.0.2.1"), &a) && ip_read(TEXT("::ffff:192.0.2.1"), &b));
	g_assert_cmpmem(&a, sizeof(a), &b, sizeof(b));
	g_assert_true(ip_is_v4(&a));
	g_assert_true(ip_read(TEXT("2001:db8::7"), &b) && !ip_is_v4(&b));
}

static bool
has(const char *net, const char *addr)
{
	struct ip_net n;
	struct ip a;

	g_assert_true(ip_net_read(text_of(net), &n) && ip_read(text_of(addr), &a));
	return (ip_net_has(&n, &a));
}

TEST("/ip/a network")
{
	static const char *const bad[] = { "", "/8", "10.0.0.0/33", "::/129", "10.0.0.0/",
		"10.0.0.0/x", "10.0.0.0/-1", "10.0.0.0/8/8", "all" };
	struct ip_net n;
	size_t i;

	g_assert_true(has("10.0.0.0/8", "10.255.0.1") && !has("10.0.0.0/8", "11.0.0.0"));
	g_assert_true(has("10.0.0.0/9", "10.127.0.1") && !has("10.0.0.0/9", "10.128.0.1"));
	g_assert_true(has("10.1.2.3", "::ffff:10.1.2.3") && !has("10.1.2.3", "10.1.2.4"));
	g_assert_true(has("0.0.0.0/0", "255.1.1.1") && !has("0.0.0.0/0", "2001:db8::1"));
	g_assert_true(has("::/0", "1.2.3.4") && has("::/0", "2001:db8::1"));
	g_assert_true(has("[2001:db8::]/32", "2001:db8:ffff::1"));
	g_assert_true(has("fe80::1%eth0", "fe80::1"));
	g_assert_false(has("2001:db8::/33", "2001:db8:8000::1"));
	for (i = 0; i < NELEM(bad); i++)
		g_assert_false(ip_net_read(text_of(bad[i]), &n));
}
