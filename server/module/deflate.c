/* server/module/deflate.c -- settings deflate.*, and which reply is compressed; see deflate.h. */
#include "server/module/deflate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/must.h"
#include "files/root.h"
#include "io/code/file.h"
#include "server/config/config.h"
#include "server/config/resources.h"
#include "server/config/site.h"
#include "server/module/module.h"
#include "server/module/rules.h"
#include "server/request/request.h"
#include "server/worker/base.h"
#include "wire/http1/http1.h"

#define LOAD_MS 1000u /* the average of a minute does not change faster */

/* ---- deflate.params */

struct deflate_params {
	struct coder_conf conf[CODINGS];
};

static const struct param {
	const char *name;
	enum coding coding;
	size_t at; /* in struct coder_conf */
} params[] = {
	{ "gzip.level", CODING_GZIP, offsetof(struct coder_conf, level) },
	{ "gzip.windowBits", CODING_GZIP, offsetof(struct coder_conf, window) },
	{ "gzip.memLevel", CODING_GZIP, offsetof(struct coder_conf, memory) },
	{ "gzip.strategy", CODING_GZIP, offsetof(struct coder_conf, strategy) },
	{ "BROTLI_PARAM_QUALITY", CODING_BROTLI, offsetof(struct coder_conf, level) },
	{ "BROTLI_PARAM_LGWIN", CODING_BROTLI, offsetof(struct coder_conf, window) },
	{ "BROTLI_PARAM_MODE", CODING_BROTLI, offsetof(struct coder_conf, strategy) },
	{ "ZSTD_c_compressionLevel", CODING_ZSTD, offsetof(struct coder_conf, level) },
	{ "ZSTD_c_windowLog", CODING_ZSTD, offsetof(struct coder_conf, window) },
	{ "ZSTD_c_strategy", CODING_ZSTD, offsetof(struct coder_conf, strategy) },
};

static void
defaults(struct coder_conf *conf)
{
	enum coding c;

	for (c = 0; c < CODINGS; c++)
		conf[c] = (struct coder_conf){ .coding = (uint8_t)c, .level = CODER_LEVEL };
}

/* False: no such setting, or its value is out of range. */
static bool
param_set(struct coder_conf *conf, const struct conf_pair *p)
{
	uint64_t n;
	size_t i;

	for (i = 0; i < NELEM(params); i++)
		if (text_eq(p->key, text_of(params[i].name)))
			break;
	if (i == NELEM(params) || text_u64(p->value, &n) != 0 || n > INT8_MAX)
		return (false);
	((uint8_t *)&conf[params[i].coding])[params[i].at] = (uint8_t)n;
	return (coder_conf_fits(&conf[params[i].coding]));
}

static const void *
params_key(const struct conf *c)
{
	return (c->deflate_params.n != 0 ? c->deflate_params.v : NULL);
}

static void *
params_make(const struct conf *c, char *err, size_t errsize)
{
	struct deflate_params *p = calloc(1, sizeof(*p));
	const struct conf_pair *pair = c->deflate_params.v;
	size_t i;

	if (p == NULL)
		return (rules_no_memory(err, errsize));
	defaults(p->conf);
	for (i = 0; i < c->deflate_params.n; i++) {
		if (param_set(p->conf, &pair[i]))
			continue;
		snprintf(err, errsize,
		    "\"%s\" => \"%s\": unknown setting, or a value out of its range", pair[i].key.p,
		    pair[i].value.p);
		free(p);
		return (NULL);
	}
	p->conf[CODING_DEFLATE] = p->conf[CODING_GZIP];
	p->conf[CODING_DEFLATE].coding = CODING_DEFLATE;
	return (p);
}

const struct rules_kind rules_deflate_params = {
	.directive = "deflate.params",
	.key = params_key,
	.make = params_make,
	.free = free,
};

/* ---- deflate.max-loadavg */

/* "3.5" is 350.  False: no number. */
static bool
hundredths(struct text t, unsigned *out)
{
	struct text whole;
	uint64_t n, part = 0;

	if (!text_next(&t, '.', &whole) || text_u64(whole, &n) != 0 || n > 1000000)
		return (false);
	if (t.n > 2)
		t.n = 2;
	if (t.p != NULL && text_u64(t, &part) != 0)
		return (false);
	*out = (unsigned)(n * 100 + (t.n == 1 ? part * 10 : part));
	return (true);
}

static const void *
load_key(const struct conf *c)
{
	return (c->deflate_load);
}

static void *
load_make(const struct conf *c, char *err, size_t errsize)
{
	unsigned *load = malloc(sizeof(*load));

	if (load == NULL)
		return (rules_no_memory(err, errsize));
	if (hundredths(text_of(c->deflate_load), load))
		return (load);
	free(load);
	snprintf(err, errsize, "expected a number such as \"3.50\", got \"%s\"", c->deflate_load);
	return (NULL);
}

const struct rules_kind rules_deflate_load = {
	.directive = "deflate.max-loadavg",
	.key = load_key,
	.make = load_make,
	.free = free,
};

/* ---- deflate.cache-dir */

struct deflate_cache {
	struct code_cache cache; /* first */
	struct root root;
};

static const void *
cache_key(const struct conf *c)
{
	return (c->deflate_types.n != 0 ? c->deflate_cache_dir : NULL);
}

static void
cache_end(struct code_cache *cache)
{
	struct deflate_cache *k = container_of(cache, struct deflate_cache, cache);

	root_close(&k->root);
	free(k);
}

static void *
cache_make(const struct conf *c, char *err, size_t errsize)
{
	struct deflate_cache *k = calloc(1, sizeof(*k));
	int e;

	if (k == NULL)
		return (rules_no_memory(err, errsize));
	e = root_open(c->deflate_cache_dir, &k->root);
	if (e != 0) {
		snprintf(err, errsize, "\"%s\": %s", c->deflate_cache_dir, io_root_error(e));
		free(k);
		return (NULL);
	}
	e = code_cache_init(&k->cache, k->root.fd, c->deflate_cache_max << 20, cache_end);
	if (e == 0)
		return (k);
	snprintf(err, errsize,
	    "\"%s\": %s; make the user of the server its owner, and writable for nobody else",
	    c->deflate_cache_dir, e == -EPERM ? "others may write there" : strerror(-e));
	root_close(&k->root);
	free(k);
	return (NULL);
}

static void
cache_free(void *rules)
{
	code_cache_put(rules);
}

const struct rules_kind rules_deflate_cache = {
	.directive = "deflate.cache-dir",
	.key = cache_key,
	.make = cache_make,
	.free = cache_free,
};

/* ---- a site */

/* The codings of a list, each once. */
static unsigned
codings(const struct conf_list *list, uint8_t *order)
{
	enum coding c;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < list->n; i++) {
		c = text_eq(list->v[i], TEXT("brotli")) ? CODING_BROTLI : coding_find(list->v[i]);
		if (c != CODINGS && memchr(order, c, n) == NULL)
			order[n++] = (uint8_t)c;
	}
	return (n);
}

void
deflate_of(struct site *s)
{
	static const uint8_t all[] = { CODING_BROTLI, CODING_ZSTD, CODING_GZIP, CODING_DEFLATE };
	const struct conf *c = s->conf;
	const struct deflate_params *p = s->rules[RULES_deflate_params];
	struct deflate *d = &s->deflate;

	if (p != NULL)
		memcpy(d->conf, p->conf, sizeof(d->conf));
	else
		defaults(d->conf);
	if (c->deflate_level != 0)
		d->conf[CODING_GZIP].level = d->conf[CODING_DEFLATE].level =
		    (int8_t)c->deflate_level;
	if (c->deflate_types.n != 0)
		d->n = codings(&c->deflate_encodings, d->order);
	if (c->deflate_types.n != 0 && c->deflate_encodings.n == 0) {
		memcpy(d->order, all, sizeof(all));
		d->n = NELEM(all);
	}
	d->nsiblings = codings(&c->precompressed, d->siblings);
	if (s->rules[RULES_deflate_load] != NULL)
		d->max_load = *(const unsigned *)s->rules[RULES_deflate_load];
	d->cache = (struct code_cache *)(uintptr_t)s->rules[RULES_deflate_cache];
	d->on = d->n != 0 || d->nsiblings != 0;
	s->style.varies = (struct reply_varies){
		.types = d->n != 0 ? c->deflate_types.v : NULL,
		.n = d->n != 0 ? c->deflate_types.n : 0,
		.min = c->deflate_min,
		.max = c->deflate_max != 0 ? c->deflate_max << 10 : UINT64_MAX,
		.all = d->nsiblings != 0,
	};
}

/* ---- a request */

void
deflate_accepts(const struct request *r, struct accept_encoding *a)
{
	const struct http_request *h = &r->http;
	unsigned i;

	accept_encoding_init(a);
	for (i = 0; i < h->nheaders; i++)
		if (h->headers[i].name.n == sizeof("accept-encoding") - 1 &&
		    text_ieq(h->headers[i].name, TEXT("accept-encoding")))
			accept_encoding_line(a, h->headers[i].value);
}

struct machine_load {
	uint64_t asked_ns; /* 0: not yet */
	unsigned load;     /* hundredths */
};
static WORKER_SLOT(struct machine_load, machine);

bool
deflate_is_busy(struct request *r)
{
	struct machine_load *m = worker_slot(r->worker, machine);
	uint64_t now = io_now(r->worker->io);

	if (r->site->deflate.max_load == 0)
		return (false);
	if (m->asked_ns == 0 || now - m->asked_ns > LOAD_MS * NS_PER_MS) {
		m->asked_ns = now;
		m->load = io_machine_load();
	}
	return (m->load > r->site->deflate.max_load);
}
