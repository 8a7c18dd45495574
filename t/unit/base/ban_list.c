/* t/unit/base/ban_list.c -- files of clients that are not served. */

#include "base/ban_list.h"
#include "base/must.h"
#include "t/unit/test.h"

#define NOW 1800000000u

static GString *faults; /* "line:text;" */

static void
fault(void *arg, unsigned line, struct text text, const char *why)
{
	g_assert_nonnull(why);
	g_string_append_printf(faults, "%u:%.*s;", line, (int)text.n, text.p);
}

static struct ban_list *
list(const char *file, const char *want_faults)
{
	struct ban_list *l;

	faults = g_string_new(NULL);
	l = ban_list_read(text_of(file), NOW, fault, NULL);
	g_assert_nonnull(l);
	g_assert_cmpstr(faults->str, ==, want_faults);
	g_string_free(faults, TRUE);
	return (l);
}

static bool
has(const struct ban_list *l, const char *addr, uint64_t now)
{
	struct ip ip;

	g_assert_true(ip_read(text_of(addr), &ip));
	return (ban_list_has(l, &ip, now));
}

TEST("/ban-list/networks")
{
	struct ban_list *l = list("# header\n\n192.0.2.7\n  10.1.2.3/8\t# all of it\r\n"
				  "2001:db8:1::/48\n198.51.100.128/25\n198.51.100.200",
	    "");

	g_assert_cmpuint(ban_list_size(l), ==, 5);
	g_assert_true(has(l, "192.0.2.7", NOW) && !has(l, "192.0.2.6", NOW));
	g_assert_true(has(l, "::ffff:192.0.2.7", NOW));
	g_assert_true(has(l, "10.255.0.1", NOW) && !has(l, "11.0.0.0", NOW));
	g_assert_true(has(l, "2001:db8:1:ffff::9", NOW) && !has(l, "2001:db8:2::1", NOW));
	g_assert_true(has(l, "198.51.100.129", NOW) && !has(l, "198.51.100.127", NOW));
	ban_list_free(l);
	l = list("0.0.0.0/0\n", "");
	g_assert_true(has(l, "203.0.113.1", NOW) && !has(l, "2001:db8::1", NOW));
	ban_list_free(l);
	l = list("::/0", "");
	g_assert_true(has(l, "203.0.113.1", NOW) && has(l, "2001:db8::1", NOW));
	ban_list_free(l);
	l = list("", "");
	g_assert_false(has(l, "203.0.113.1", NOW));
	ban_list_free(l);
}

TEST("/ban-list/times")
{
	static const struct {
		const char *time;
		uint64_t until;
	} rows[] = {
		{ "1800000001", 1800000001 },
		{ "2027-01-15T08:00:01Z", 1800000001 },
		{ "2027-01-15t09:00:01+01:00", 1800000001 },
		{ "2027-01-15T06:30:01-0130", 1800000001 },
		{ "2027-01-15T08:01Z", 1800000060 },
		{ "2027-01-16", 1800057600 },
		{ "9999-12-31", 253402214400 },
	};
	struct ban_list *l;
	char line[80];
	size_t i;

	for (i = 0; i < NELEM(rows); i++) {
		g_snprintf(line, sizeof(line), "192.0.2.1 %s # why", rows[i].time);
		l = list(line, "");
		g_assert_true(has(l, "192.0.2.1", rows[i].until - 1));
		g_assert_false(has(l, "192.0.2.1", rows[i].until));
		ban_list_free(l);
	}
	l = list("192.0.2.1 1799999999\n192.0.2.2 2027-01-15T08:00:00Z\n192.0.2.3 0", "");
	g_assert_cmpuint(ban_list_size(l), ==, 0);
	ban_list_free(l);
	l = list("192.0.2.1 1800000010\n192.0.2.1 1800000020\n192.0.2.1 1800000015", "");
	g_assert_cmpuint(ban_list_size(l), ==, 1);
	g_assert_true(has(l, "192.0.2.1", 1800000019));
	ban_list_free(l);
	/* the network counts on when the ban of an address in it is over */
	l = list("192.0.2.0/24\n192.0.2.1 1800000010", "");
	g_assert_true(has(l, "192.0.2.1", 1800000019));
	ban_list_free(l);
}

TEST("/ban-list/broken")
{
	static const char *const bad[] = { "localhost", "192.0.2", "192.0.2.1/33", "/8",
		"192.0.2.1 x", "192.0.2.1 2027-13-01", "192.0.2.1 2027-01-01T25:00Z",
		"192.0.2.1 2027-01-01T20:00", "192.0.2.1 2027-1-1", "192.0.2.1 -1",
		"192.0.2.1 2027-01-01 x", "192.0.2.1 1 2", "192.0.2.1 99999999999999999999" };
	char file[200], want[200], *longer = g_strnfill(300, '1');
	struct ban_list *l;
	size_t i;

	for (i = 0; i < NELEM(bad); i++) {
		g_snprintf(file, sizeof(file), "# a\n%s\n192.0.2.9\n", bad[i]);
		g_snprintf(want, sizeof(want), "2:%s;", bad[i]);
		l = list(file, want);
		g_assert_true(ban_list_size(l) == 1 && has(l, "192.0.2.9", NOW));
		ban_list_free(l);
	}
	faults = g_string_new(NULL);
	l = ban_list_read(text_of(longer), NOW, fault, NULL);
	g_assert_true(g_str_has_prefix(faults->str, "1:1111"));
	ban_list_free(l);
	g_string_truncate(faults, 0);
	l = ban_list_read((struct text){ "192.0.2.1\0\n10.0.0.1\n", 20 }, NOW, fault, NULL);
	g_assert_cmpuint(ban_list_size(l), ==, 1);
	ban_list_free(l);
	g_string_free(faults, TRUE);
	g_free(longer);
}

TEST("/ban-list/bound")
{
	g_autoptr(GString) file = g_string_new(NULL);
	struct ban_list *l;
	unsigned i;

	for (i = 0; i < BAN_LIST_MAX + 10; i++)
		g_string_append_printf(file, "10.%u.%u.%u\n", i >> 16, i >> 8 & 255, i & 255);
	faults = g_string_new(NULL);
	l = ban_list_read((struct text){ file->str, file->len }, NOW, fault, NULL);
	g_assert_cmpuint(ban_list_size(l), ==, BAN_LIST_MAX);
	g_assert_cmpstr(faults->str, ==, "100001:10.1.134.160;");
	g_assert_true(has(l, "10.1.134.159", NOW) && !has(l, "10.1.134.160", NOW));
	g_assert_true(has(l, "10.0.0.0", NOW) && !has(l, "9.255.255.255", NOW));
	ban_list_free(l);
	g_string_free(faults, TRUE);
}
