/* t/unit/proxy-core/backends.c -- the addresses of a name change while requests run. */
#include "t/unit/proxy-core/exchange_test.h"
#include "proxy-core/upstream.h"

static struct backends list;

static unsigned
addresses(struct address *v, const char *const *specs)
{
	unsigned n = 0;

	while (specs[n] != NULL) {
		g_assert_cmpint(address_parse(specs[n], &v[n]), ==, 0);
		n++;
	}
	return (n);
}

#define LIST(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
add(const char *spec, const char *const *specs, bool split, unsigned weight)
{
	struct address v[8];
	unsigned n = addresses(v, specs);

	list.split = split;
	list.block = 7;
	g_assert_cmpint(backends_add(&list, spec, v, n, weight), ==, 0);
}

static void
replace(unsigned place, const char *const *specs, unsigned added, unsigned removed)
{
	struct address v[8];
	unsigned n = addresses(v, specs), a, r;

	g_assert_cmpint(backends_replace(&list, place, v, n, &a, &r), ==, 0);
	g_assert_cmpuint(a, ==, added);
	g_assert_cmpuint(r, ==, removed);
}

static void
is_list(const char *names, const char *weights)
{
	GString *s = g_string_new(NULL), *w = g_string_new(NULL);
	size_t i;

	for (i = 0; i < list.n; i++) {
		g_string_append_printf(s, "%s ", list.v[i]->name);
		g_string_append_printf(w, "%u ", list.weight[i]);
		g_assert_cmpuint(list.v[i]->users, ==, 1);
	}
	g_assert_cmpstr(s->str, ==, names);
	g_assert_cmpstr(w->str, ==, weights);
	g_string_free(s, TRUE);
	g_string_free(w, TRUE);
}

TEST("/backends/a place gets other addresses")
{
	add("10.1.0.1:80", LIST("10.1.0.1:80"), true, 1);
	add("app:80", LIST("10.1.0.2:80", "10.1.0.3:80"), true, 5);
	add("10.1.0.9:80", LIST("10.1.0.9:80"), true, 2);
	is_list("10.1.0.1:80 10.1.0.2:80 10.1.0.3:80 10.1.0.9:80 ", "1 5 5 2 ");
	replace(1, LIST("10.1.0.3:80", "10.1.0.2:80"), 0, 0);
	g_assert_cmpuint(list.version, ==, 0);
	replace(1, LIST("10.1.0.4:80", "10.1.0.3:80"), 1, 1);
	g_assert_cmpuint(list.version, ==, 1);
	is_list("10.1.0.1:80 10.1.0.3:80 10.1.0.4:80 10.1.0.9:80 ", "1 5 5 2 ");
	replace(1, LIST("10.1.0.9:80", "10.1.0.9:80"), 1, 2); /* also in another place */
	g_assert_cmpuint(list.n, ==, 3);
	backends_put(&list);
	add("one.name:80", LIST("10.1.0.5:80"), false, 1);
	g_assert_cmpstr(list.v[0]->name, ==, "one.name:80");
	replace(0, LIST("10.1.0.6:80", "10.1.0.5:80"), 1, 1);
	g_assert_cmpuint(list.v[0]->naddress, ==, 2);
	is_list("one.name:80 ", "1 ");
	backends_put(&list);
}

TEST("/backends/too many addresses change nothing")
{
	struct address v[BACKENDS_MAX + 1];
	unsigned a, r, i, version = list.version;
	char s[32];

	list.split = true;
	for (i = 0; i <= BACKENDS_MAX; i++) {
		g_snprintf(s, sizeof(s), "10.2.0.%u:80", i);
		g_assert_cmpint(address_parse(s, &v[i]), ==, 0);
	}
	g_assert_cmpint(backends_add(&list, "n:80", v, BACKENDS_MAX, 1), ==, 0);
	g_assert_cmpint(backends_replace(&list, 0, v, BACKENDS_MAX + 1, &a, &r), ==, -E2BIG);
	g_assert_cmpuint(a + r, ==, 0);
	g_assert_cmpuint(list.version, ==, version);
	g_assert_cmpuint(list.n, ==, BACKENDS_MAX);
	for (i = 0; i < BACKENDS_MAX; i++)
		g_assert_cmpuint(list.v[i]->users, ==, 1);
	backends_put(&list);
}

/* ---------------------------------------------------------------- under load */

static void
moved(const char *const *specs)
{
	struct address v[8];
	unsigned n = addresses(v, specs), a, r;

	g_assert_cmpint(backends_replace(&backends, 0, v, n, &a, &r), ==, 0);
}

static const struct sockaddr_in *
connecting(void)
{
	struct io_op *op = sim_find(io, IO_CONNECT, NULL);

	g_assert_nonnull(op);
	return ((const struct sockaddr_in *)(const void *)op->connect.addr);
}

/* One request runs, one waits, one socket is kept; then the name has another address. */
EXCHANGE_TEST("/backends/a replaced backend ends in peace", a_conf(one, 1), conf.max_pool_size = 1)
{
	struct client all[3] = { 0 };
	int i;

	asked(&all[0], "GET");
	ask(&all[1], "GET");
	moved(LIST("10.9.0.1:80"));
	ask(&all[2], "GET"); /* the worker notices */
	g_assert_cmphex(ntohl(connecting()->sin_addr.s_addr), ==, 0x0a090001);
	reply("\nold"); /* the running one ends in peace, and its socket closes */
	ENDED(&all[0], 0);
	g_assert_cmpstr(all[0].body->str, ==, "old");
	for (i = 1; i < 3; i++) {
		if (i == 1)
			run_connect(0);
		run_send();
		reply("\nnew");
	}
	ENDED(&all[1], 0);
	ENDED(&all[2], 0);
	sim_advance_ms(io, 300);
	g_assert_true(list_empty(&up->members.leaving));
	g_assert_cmpuint(up->members.n, ==, 1);
	for (i = 0; i < 3; i++)
		client_free(&all[i]);
}

/* Without a request the next tick notices, so a kept socket does not hold a retired backend. */
EXCHANGE_TEST("/backends/an idle worker notices", a_conf(one, 1))
{
	kept_one(&c);
	moved(LIST("10.9.0.1:80", "10.9.0.2:80"));
	sim_advance_ms(io, 300);
	g_assert_cmpuint(open_sockets(), ==, 0);
	g_assert_cmpuint(up->members.n, ==, 2);
	kept_one(&c);
}

/* One backend of all addresses: its sockets to the old ones are not used again. */
EXCHANGE_TEST("/backends/one backend of all addresses moves", a_conf(one, 1))
{
	kept_one(&c);
	asked(&c, "GET");
	backends.split = false;
	moved(LIST("10.9.0.1:80"));
	asked(&d, "GET");
	reply("\nold");
	reply("\nnew");
	ENDED(&c, 0);
	ENDED(&d, 0);
	g_assert_cmpuint(open_sockets(), ==, 1);
	g_assert_cmpuint(up->members.n, ==, 1);
}
