/* server/config/check/convert.c -- turns the value of one entry into a field of struct conf, if it
 * has the type and keeps the limits of its directive. */
#include <stdio.h>
#include <string.h>
#include "base/utf8.h"
#include "server/config/impl.h"
#include "wire/http1/headers.h"
#include "wire/log_format.h"

#define SECRET_MAX 256

struct conversion {
	struct config *cfg;
	const struct cfg_entry *e;
	const struct directive *d;
};

static bool
mismatch_of(struct conversion *k, const struct cfg_value *v, const char *wanted)
{
	struct buf found;

	buf_init(&found, 512);
	if (cfg_is_secret(k->e->key))
		buf_str(&found, "a value that is not shown");
	else
		cfg_value_describe(v, &found);
	cfg_error(k->cfg, k->e->value_pos, "%s: expected %s, got %.*s", k->e->key.p, wanted,
	    (int)found.n, found.p);
	buf_free(&found);
	return (false);
}

static bool
mismatch(struct conversion *k, const char *wanted)
{
	return (mismatch_of(k, k->e->value, wanted));
}

static bool
to_bool(struct conversion *k, const struct cfg_value *v, bool *out)
{
	if (v->kind != CFG_STR ||
	    (!text_eq(v->str, TEXT("enable")) && !text_eq(v->str, TEXT("disable"))))
		return (mismatch(k, "\"enable\" or \"disable\""));
	*out = text_eq(v->str, TEXT("enable"));
	return (true);
}

static uint64_t
limit(const char *s, uint64_t otherwise)
{
	uint64_t v;

	return (text_u64(text_of(s), &v) == 0 ? v : otherwise);
}

static bool
to_uint(struct conversion *k, const struct cfg_value *v, uint64_t *out)
{
	const struct directive *d = k->d;
	char wanted[160];

	if (v->kind == CFG_INT)
		*out = v->num;
	if ((v->kind == CFG_INT || (v->kind == CFG_STR && text_u64(v->str, out) == 0)) &&
	    *out >= limit(d->min, 0) && *out <= limit(d->max, INT64_MAX))
		return (true);
	snprintf(wanted, sizeof(wanted), "a number from %s to %s%s%s", d->min, d->max,
	    d->unit[0] != '\0' ? " " : "", d->unit);
	return (mismatch(k, wanted));
}

static bool
is_one_of(struct text words, struct text t)
{
	struct text w;

	while (text_next(&words, ' ', &w))
		if (text_eq(w, t))
			return (true);
	return (false);
}

/* The value goes to headers and logs, where a line break would begin another header. */
static bool
is_printable(struct text t)
{
	struct text odd;

	if (t.n == 0)
		return (true);
	(void)utf8_visible(&t, &odd);
	return (odd.n == 0);
}

static bool
is_short(struct text t)
{
	return (t.n <= SECRET_MAX && is_printable(t));
}

static bool
is_network(struct text t)
{
	struct ip_net net;

	return (text_eq(t, TEXT("all")) || text_eq(t, TEXT("unix")) || ip_net_read(t, &net));
}

/* An empty string sets nothing. */
static bool
is_file(struct text t)
{
	return (t.n == 0 || (t.p[0] == '/' && t.p[t.n - 1] != '/'));
}

static bool
is_fit(struct conversion *k, struct text t)
{
	static const struct {
		const char *max, *wanted;
		bool (*holds)(struct text);
	} kinds[] = {
		{ "text", "printable text on one line", is_printable },
		{ "secret", "at most 256 bytes of printable text", is_short },
		{ "network",
		    "an address or network such as \"192.0.2.7\", \"10.0.0.0/8\" or "
		    "\"2001:db8::/32\", \"unix\" or \"all\"",
		    is_network },
		{ "name", "the name of a header field", header_is_token },
		{ "path", "a path that begins with \"/\" and ends with the name of a file",
		    is_file },
	};
	size_t i;

	for (i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (strcmp(k->d->max, kinds[i].max) == 0)
			return (kinds[i].holds(t) ||
				mismatch_of(k, cfg_value_str(k->cfg, t), kinds[i].wanted));
	return (true);
}

static bool
is_log_format(struct conversion *k, struct text t)
{
	struct log_format f;
	char why[256];

	if (!is_printable(t))
		return (mismatch(k, "printable text on one line"));
	if (log_format_parse(t, &f, why, sizeof(why)))
		return (true);
	return (cfg_error(k->cfg, k->e->value_pos, "%s: %s", k->e->key.p, why));
}

static bool
is_allowed(struct conversion *k, struct text t)
{
	const struct directive *d = k->d;
	char wanted[160];

	if (d->min[0] == '\0' || is_one_of(text_of(d->min), t))
		return (true);
	snprintf(wanted, sizeof(wanted), "one of: %s", d->min);
	return (mismatch_of(k, cfg_value_str(k->cfg, t), wanted));
}

static bool
to_str(struct conversion *k, const struct cfg_value *v, const char **out)
{
	struct text t;

	if (v->kind == CFG_LIST)
		return (mismatch(k, "a string"));
	t = cfg_value_text(k->cfg, v);
	if ((t.n != 0 || k->d->def[0] != '\0') && !is_allowed(k, t))
		return (false);
	*out = t.n == 0 && k->d->def[0] == '\0' ? NULL : t.p;
	if (strcmp(k->d->max, "log-format") == 0)
		return (is_log_format(k, t));
	return (is_fit(k, t));
}

static bool
to_list(struct conversion *k, const struct cfg_value *v, struct conf_list *out)
{
	static const char wanted[] = "a list of strings like ( \"a\", \"b\" )";
	uint32_t i;

	if (v->kind != CFG_LIST)
		return (mismatch(k, wanted));
	out->n = v->n;
	out->v = cfg_get(k->cfg, v->n * sizeof(*out->v));
	for (i = 0; i < v->n; i++) {
		if (v->items[i].value->kind == CFG_LIST || v->items[i].key.p != NULL)
			return (mismatch(k, wanted));
		out->v[i] = cfg_value_text(k->cfg, v->items[i].value);
		if (!is_allowed(k, out->v[i]) || !is_fit(k, out->v[i]))
			return (false);
	}
	return (true);
}

/* The value of a MAP must be a word of "min", if there are any; else it must fit "max". */
static bool
is_fit_value(struct conversion *k, struct text t)
{
	return (k->d->min[0] != '\0' ? is_allowed(k, t) : is_fit(k, t));
}

static bool
to_map(struct conversion *k, const struct cfg_value *v, struct conf_map *out, bool of_maps)
{
	const char *wanted = of_maps ? "a list like ( \"NAME\" => ( \"a\" => \"b\" ) )"
				     : "a list like ( \"a\" => \"b\" )";
	const struct cfg_value *w;
	struct conf_map *inner;
	uint32_t i;

	if (v->kind != CFG_LIST)
		return (mismatch(k, wanted));
	out->n = v->n;
	out->v = cfg_get(k->cfg, v->n * sizeof(*out->v));
	for (i = 0; i < v->n; i++) {
		w = v->items[i].value;
		if (v->items[i].key.p == NULL || (w->kind == CFG_LIST) != of_maps)
			return (mismatch(k, wanted));
		out->v[i].key = v->items[i].key;
		if (!is_fit(k, out->v[i].key))
			return (false);
		if (!of_maps) {
			out->v[i].value = cfg_value_text(k->cfg, w);
			if (!is_fit_value(k, out->v[i].value))
				return (false);
			continue;
		}
		inner = cfg_get(k->cfg, sizeof(*inner));
		if (!to_map(k, w, inner, false))
			return (false);
		out->v[i].map = inner;
	}
	return (true);
}

bool
cfg_convert(struct config *cfg, const struct cfg_entry *e, const struct directive *d,
    enum dir_type type, void *out)
{
	struct conversion *k = &(struct conversion){ cfg, e, d };
	const struct cfg_value *v = e->value;

	switch (type) {
	case DT_BOOL: return (to_bool(k, v, out));
	case DT_UINT: return (to_uint(k, v, out));
	case DT_STR: return (to_str(k, v, out));
	case DT_LIST: return (to_list(k, v, out));
	case DT_MAP: return (to_map(k, v, out, false));
	case DT_MAPS: return (to_map(k, v, out, true));
	case DT_ALIAS:
	case DT_BLOCK:
	case DT_NOP:
	case DT_OLD: break;
	}
	return (true);
}
