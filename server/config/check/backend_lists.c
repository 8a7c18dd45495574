/* server/config/check/backend_lists.c -- see backend_lists.h */
#include "server/config/check/backend_lists.h"

#include <errno.h>
#include <stdio.h>

#include "base/must.h"
#include "proxy-core/backends.h"

/* One of the two lists of a block. */
struct list_conf {
	int number;
	const struct conf_list *specs, *weights; /* weights NULL: all are 1 */
	const char *directive;
};

struct list_making {
	struct sources *sources;
	char *err;
	size_t errsize;
};

/* Returns the number of addresses of a backend; 0: refused.  A numeric address needs no look-up. */
static size_t
host_addresses(struct list_making *k, const char *spec, struct address v[ADDRESS_MAX])
{
	struct source is;
	size_t n = 0;

	if (address_parse(spec, &v[0]) == 0)
		return (1);
	is = sources_get(k->sources, SOURCE_HOST, spec, NULL);
	if (is.err == 0) {
		n = is.bytes.n / sizeof(*v);
		if (address_are_inet((const struct address *)(const void *)is.bytes.p, n))
			memcpy(v, is.bytes.p, n * sizeof(*v));
		else
			n = 0;
	}
	if (n == 0)
		snprintf(k->err, k->errsize, "%s",
		    is.extra != NULL ? is.extra : strerror(is.err != 0 ? -is.err : EINVAL));
	source_free(&is);
	return (n);
}

/* The i-th weight, which was checked; 1 if there are none. */
static unsigned
weight_of(const struct list_conf *b, size_t i)
{
	uint64_t w = 1;

	if (b->weights != NULL && i < b->weights->n)
		must(text_u64(b->weights->v[i], &w) == 0);
	return ((unsigned)w);
}

static bool
add(struct list_making *k, struct backends *list, const struct list_conf *b, size_t i)
{
	const char *spec = b->specs->v[i].p;
	struct address v[ADDRESS_MAX];
	size_t n = host_addresses(k, spec, v);
	int err;

	if (n == 0)
		return (false);
	err = backends_add(list, spec, v, n, weight_of(b, i));
	if (err == -E2BIG)
		snprintf(k->err, k->errsize,
		    "more than %d addresses; write fewer, or \"disable\" "
		    "proxy-core.split-hostnames",
		    BACKENDS_MAX);
	else if (err != 0)
		snprintf(k->err, k->errsize, "\"%s\": %s", spec, strerror(-err));
	return (err == 0);
}

static bool
make(struct list_making *k, GPtrArray *lists, const struct conf *c, const struct list_conf *b)
{
	struct backends *list = g_new0(struct backends, 1);
	size_t i;

	g_ptr_array_add(lists, list);
	list->block = (unsigned)b->number;
	list->split = c->proxy_split;
	list->resolve_s = (unsigned)c->proxy_resolve_interval;
	for (i = 0; i < b->specs->n; i++)
		if (!add(k, list, b, i))
			return (false);
	return (true);
}

const char *
backend_lists_add(GPtrArray *lists, struct sources *sources, const struct conf *c, char *err,
    size_t errsize)
{
	const struct list_conf both[] = {
		{ c->proxy_number, &c->proxy_backends, &c->proxy_weights, "proxy-core.backends" },
		{ c->authorizer_number, &c->authorizer, NULL, "proxy-core.authorizer" },
	};
	struct list_making k = { sources, err, errsize };
	size_t i, round;

	/* Either of a block's lists may have the lower number; the second round finds the other. */
	for (round = 0; round < NELEM(both); round++)
		for (i = 0; i < NELEM(both); i++)
			if (both[i].number == (int)lists->len && !make(&k, lists, c, &both[i]))
				return (both[i].directive);
	return (NULL);
}

void
backend_lists_fetch(struct sources *sources, const struct conf *c)
{
	const struct conf_list *const both[] = { &c->proxy_backends, &c->authorizer };
	struct address v[ADDRESS_MAX];
	char err[512];
	struct list_making k = { sources, err, sizeof(err) };
	size_t i, j;

	for (i = 0; i < NELEM(both); i++)
		for (j = 0; j < both[i]->n; j++)
			if (host_addresses(&k, both[i]->v[j].p, v) == 0)
				break;
}
